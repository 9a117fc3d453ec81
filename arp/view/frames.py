"""Encoding of frames: shared by all renderers of a group, in arrays if the group accepts them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from arp.protocol.codec import (
    ARRAY_BYTES,
    MAX_BATCH,
    Encoding,
    encode_json,
    encode_shown,
    join_frames,
    recode,
)
from arp.protocol.messages import (
    AgentMessage,
    CommandsMessage,
    Commit,
    Delta,
    DeltaPayload,
    InputEcho,
    Render,
    StateMessage,
    SurfaceMessage,
    ToolEnd,
    ToolProgress,
)
from arp.session.recording.recorded import REASONING_TEXT, Text
from arp.view.chunks import chunked, divided
from arp.view.profile import Profile

MAX_FRAME_BYTES = 256 << 10
"""Size up to which messages are packed into one frame; a single larger message is not divided."""

PIECE_BYTES = 128 << 10
"""Size of the pieces into which messages of a snapshot or a catch-up are divided, if possible."""


class FrameGroup(NamedTuple):
    """Renderers that receive the same bytes."""

    profile: Profile
    encoding: Encoding
    part: str | None = None
    """Text part that they received in a snapshot; they know it by id, not as the open part."""
    batch: bool = False
    """Whether they accept an array of messages in one frame."""


class Frames(list[bytes]):
    """Frames that several renderers share."""

    __slots__ = ("__weakref__", "prefixed", "wire")

    def __init__(self, frames: Iterable[bytes] = ()) -> None:
        super().__init__(frames)
        self.wire: bytes | None = None
        """Cached bytes for WebSockets."""
        self.prefixed: bytes | None = None
        """Cached bytes for Unix sockets."""


def pack(frames: Sequence[bytes], encoding: Encoding, most: int | None = None) -> Frames:
    """Join frames of one message each into as few arrays as the limits allow.

    Args:
        frames: Frames in order.
        encoding: Encoding of all frames.
        most: Largest frame of the renderer, in bytes; `None` = no limit.
    """
    if len(frames) == 1:
        return Frames(frames)
    out = Frames()
    held: list[bytes] = []
    size = 0
    bound = MAX_FRAME_BYTES if most is None else min(MAX_FRAME_BYTES, most - ARRAY_BYTES)
    for frame in frames:
        if held and (size + len(frame) > bound or len(held) == MAX_BATCH):
            out.append(join_frames(held, encoding))
            held, size = [], 0
        held.append(frame)
        size += len(frame)
    if held:
        out.append(join_frames(held, encoding))
    return out


def encoded(message: AgentMessage, group: FrameGroup) -> list[bytes]:
    """Return a message for a group as frames; several if it is above the size limit."""
    most = group.profile.limits.max_message_bytes
    if most is not None:
        return chunked(message, most, group.encoding)
    frame = encode_shown(message)
    return [frame if group.encoding == "json" else recode(frame, group.encoding)]


def in_pieces(
    messages: Iterable[AgentMessage], group: FrameGroup, part: str | None = None
) -> list[bytes]:
    """Return the messages of a snapshot or a catch-up as frames; large messages are divided.

    Args:
        messages: Messages in order. `addressed` adapts each of them to the group.
        group: The group of the renderer.
        part: Id of the text part that deltas without a target extend.
    """
    most = group.profile.limits.max_message_bytes
    frames = [
        frame
        for before in messages
        for message in addressed(before, group, part)
        for frame in (
            divided(message, PIECE_BYTES, group.encoding)
            if most is None
            else encoded(message, group)
        )
    ]
    return pack(frames, group.encoding, most) if group.batch and frames else frames


def text_frames(text: Text, group: FrameGroup) -> list[bytes]:
    """Return the frames of a streamed text for a group.

    Nearly all messages are of this kind, so this path avoids the cost of `addressed`.
    """
    message = text.message
    if text.type == REASONING_TEXT:
        if not group.profile.takes("thinking"):
            return []
    elif text.part is not None and text.part == group.part and text.characters > len(text.text):
        # The last condition: after `replace: true` the numbers of text parts begin again. The first
        # text of a new part must not extend an old part with the same id.
        message = _in_part(message, text.part)
    if group.profile.limits.max_message_bytes is not None:
        return encoded(message, group)
    # Its only integers are sequence numbers, which no renderer would round.
    frame = encode_json(message)
    return [frame if group.encoding == "json" else recode(frame, group.encoding)]


def _in_part(delta: Delta, part: str) -> Delta:
    """Return a delta with a text part as its target."""
    payload = msgspec.structs.replace(delta.payload, target=part)
    return msgspec.structs.replace(delta, payload=payload)


def addressed(
    message: AgentMessage, group: FrameGroup, part: str | None = None
) -> list[AgentMessage]:
    """Return the messages that a group receives for a message; components are degraded elsewhere.

    A renderer of the draft gets no echoes of inputs, no commands and no shared state, and one
    component per `render`. Reasoning needs the feature `thinking`; progress and results of tools
    need `tool-detail`. Deltas of a text part that was received in a snapshot name the part.

    Args:
        message: The message for a renderer with all features.
        group: The group.
        part: Id of the text part that a delta without a target extends.
    """
    profile = group.profile
    match message:
        case Delta(payload=DeltaPayload(kind="thinking")):
            return [message] if profile.takes("thinking") else []
        case Delta(payload=DeltaPayload(target=None)) if part is not None and part == group.part:
            return [_in_part(message, part)]
        case ToolProgress() if not profile.takes("tool-detail"):
            return []
        case ToolEnd(payload=end) if not profile.takes("tool-detail"):
            bare = msgspec.structs.replace(end, result=None, result_ref=None, duration_ms=None)
            return [msgspec.structs.replace(message, payload=bare)]
        case InputEcho() | CommandsMessage() | StateMessage() if not profile.said_hello:
            return []
        case SurfaceMessage():
            return _surface_messages(message, profile)
        case Render() if not profile.said_hello:
            return _one_by_one(message)
        case _:
            return [message]


def _surface_messages(message: SurfaceMessage, profile: Profile) -> list[AgentMessage]:
    """Return the messages that a profile receives for the metadata or the closing of a surface.

    Popups and overlays that are shown on `main` have no such messages. A renderer without the
    feature `multi-surface` may still show components of other surfaces: when such a surface is
    closed, its components are removed.
    """
    if message.payload.is_transient and not profile.takes("overlays"):
        return []
    if profile.takes("multi-surface"):
        return [message]
    if message.closed is None:
        return []
    session_id, name = message.session_id, message.surface
    empty = Render(session_id=session_id, surface=name, components=[], replace=True)
    return [empty, Commit(session_id=session_id, seq=message.seq, surface=name)]


def _one_by_one(message: Render) -> list[AgentMessage]:
    """Return one `render` per component; only the first one may replace the content."""
    if not message.components:
        return [message]
    name = message.tool_name or ""
    return [
        msgspec.structs.replace(
            message, components=[one], tool_name=name, replace=message.replace and index == 0
        )
        for index, one in enumerate(message.components)
    ]
