"""Replay of facts from the log to the renderers of one group.

A fact contains the change, not the screen before it. A patch can therefore be replayed only to a
profile that shows everything natively; a profile that needs a translation gets a snapshot instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from arp.ledger.fact import Fact
from arp.protocol.messages import AgentMessage, Commit, Delta, InputEcho, Patch, Render
from arp.protocol.patch import Append, Insert, Replace
from arp.session.recovery import messages_of
from arp.view.frames import FrameGroup, addressed, encoded, pack
from arp.view.inlined import inlines
from arp.view.profile import DRAFT, Profile, is_native, shown_as
from arp.view.stream_end import ends_stream, stream_end
from arp.view.translate import NeedsSnapshot


class ReplayedFrames(NamedTuple):
    """The frames of replayed facts."""

    frames: list[bytes]
    commits: list[int]
    """Sequence numbers of the commits among them, each once."""


def replayed(facts: Iterable[Fact], group: FrameGroup) -> ReplayedFrames | None:
    """Return the frames of facts, as the group received them live.

    Args:
        facts: The facts after the renderer's cursor, in order.
        group: The group of the renderer.

    Returns:
        The frames; `None` if the log alone does not determine them and a snapshot is needed.
    """
    frames: list[bytes] = []
    commits: dict[int, None] = {}
    try:
        for message in _messages(facts, group):
            if isinstance(message, Commit) and message.seq is not None:
                commits[message.seq] = None
            parts = encoded(message, group)
            if len(parts) > 1 and not frames and isinstance(message, Delta):
                # The renderer may have the first pieces of this text already, because only the last
                # piece carries the `seq`. Sent again, they would appear twice.
                return None
            frames += parts
    except NeedsSnapshot:
        return None
    most = group.profile.limits.max_message_bytes
    packed = pack(frames, group.encoding, most) if group.batch and frames else frames
    return ReplayedFrames(packed, list(commits))


def _messages(facts: Iterable[Fact], group: FrameGroup) -> Iterator[AgentMessage]:
    for fact in facts:
        if fact.type == "artifact.changed" and "anew" in fact.payload:
            raise NeedsSnapshot  # an id is reused; the renderer may still show the old component
        if fact.type == "artifact.changed" and "role" in fact.payload and inlines(group.profile):
            raise NeedsSnapshot  # the renderer shows the popup or overlay in a group on `main`
        messages = messages_of(fact)
        if group.profile.ends_at_questions and ends_stream(fact.type, fact.payload):
            messages = stream_end(messages)
        for message in messages:
            yield from addressed(_for_profile(message, group.profile), group)


def _for_profile(message: AgentMessage, profile: Profile) -> AgentMessage:
    """Return a message as renderers with this profile received it live.

    Raises:
        NeedsSnapshot: What they received depends on the screen at that time, which is not known.
    """
    if isinstance(message, Render):
        shown = [
            piece for component in message.components for piece in shown_as(component, profile)
        ]
        return msgspec.structs.replace(message, components=shown)
    if isinstance(message, InputEcho) and message.edited and not profile.takes("branches"):
        raise NeedsSnapshot
    if isinstance(message, Patch) and not _takes_patches(message, profile):
        raise NeedsSnapshot
    return message


def _takes_patches(message: Patch, profile: Profile) -> bool:
    """Return whether the operations reached this profile unchanged, whatever the screen was."""
    if (
        not set(DRAFT.versions) <= set(profile.versions)
        or profile.limits.max_table_rows is not None
        or profile.limits.max_message_bytes is not None
    ):
        return False
    for op in message.ops:
        if isinstance(op, Append) and not profile.takes("patch-append"):
            return False
        if isinstance(op, Insert | Replace) and not is_native(op.component, profile):
            return False
    return True
