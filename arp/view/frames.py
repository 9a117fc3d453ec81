"""Frames on their way: shared by all that get the same, several messages in one where asked for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from arp.protocol.codec import (
    ARRAY_BYTES,
    MAX_BATCH,
    Encoding,
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
from arp.session.recorded import THINKING, Text
from arp.view.chunks import chunked, divided
from arp.view.profile import Profile

MAX_FRAME_BYTES = 256 << 10
"""A frame is closed when it has grown to this; a single larger message still goes whole."""

PIECE_BYTES = 128 << 10
"""A message of a snapshot or a catch-up is divided into such of this size, where it can be."""


class FrameGroup(NamedTuple):
    """Renderers that get the very same bytes."""

    profile: Profile
    encoding: Encoding
    part: str | None = None
    """A text part that they know by id (it came by a snapshot), not as the open one."""
    batch: bool = False
    """They take an array of messages in one frame."""


class Frames(list[bytes]):
    """Frames that several renderers get."""

    __slots__ = ("__weakref__", "prefixed", "wire")

    def __init__(self, frames: Iterable[bytes] = ()) -> None:
        super().__init__(frames)
        self.wire: bytes | None = None
        """What WebSockets send of them, the same for all."""
        self.prefixed: bytes | None = None
        """What Unix sockets send of them, the same for all."""


def pack(frames: Sequence[bytes], encoding: Encoding, most: int | None = None) -> Frames:
    """Join frames of one message each into arrays, as few as the bounds allow.

    Args:
        frames: In order.
        encoding: Of all of them.
        most: Bytes that the renderer takes in one; `None` = it set no limit.
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
    """Return a message that a group takes as frames; several if it is too large for one."""
    most = group.profile.limits.max_message_bytes
    if most is not None:
        return chunked(message, most, group.encoding)
    frame = encode_shown(message)
    return [frame if group.encoding == "json" else recode(frame, group.encoding)]


def in_pieces(
    messages: Iterable[AgentMessage], group: FrameGroup, part: str | None = None
) -> list[bytes]:
    """Return messages that one renderer gets at once as frames, large ones in several.

    Args:
        messages: As every renderer could get them, in order.
        group: For whom.
        part: The text part that a delta among them belongs to.
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
    """Return the frames that show a text to a group.

    Almost all that is ever sent is this, so it makes no detour by `addressed`.
    """
    message = text.message
    if text.type == THINKING:
        if not group.profile.takes("thinking"):
            return []
    elif text.part is not None and text.part == group.part and text.characters > len(text.text):
        # The last condition: after `replace: true` the numbers of text parts begin again. A text
        # that opens its part does not continue the one that these renderers know by the same id.
        message = _in_part(message, text.part)
    return encoded(message, group)


def _in_part(delta: Delta, part: str) -> Delta:
    """Return a delta that names the text part that it goes to."""
    payload = msgspec.structs.replace(delta.payload, target=part)
    return msgspec.structs.replace(delta, payload=payload)


def addressed(
    message: AgentMessage, group: FrameGroup, part: str | None = None
) -> list[AgentMessage]:
    """Return a message as a group takes it, apart from degrading.

    A renderer that knows only the draft gets neither inputs of others nor commands, and one
    component a `render`; only who asked for `thinking` sees it, and for `tool-detail` what tools
    are at and return; a text part that came by a snapshot is named in its deltas.

    Args:
        message: As every renderer could get it.
        group: For whom.
        part: The text part that a delta belongs to.
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
            return _described(message, profile)
        case Render() if not profile.said_hello:
            return _one_by_one(message)
        case _:
            return [message]


def _described(message: SurfaceMessage, profile: Profile) -> list[AgentMessage]:
    """Return what a profile gets of a surface's description or closing.

    Where popups and overlays show on `main`, nothing is said of them. A renderer that knows no
    surfaces besides `main` may show their components all the same: it gets them removed.
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
    """Return one `render` a component; only the first of them replaces what was there."""
    if not message.components:
        return [message]
    name = message.tool_name or ""
    return [
        msgspec.structs.replace(
            message, components=[one], tool_name=name, replace=message.replace and place == 0
        )
        for place, one in enumerate(message.components)
    ]
