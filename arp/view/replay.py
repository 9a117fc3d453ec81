"""What renderers of one group get of facts that are read from the log.

A fact says what changed, not what the screen was. So a patch is replayed only to a profile that
shows everything natively; one that needs it translated gets a snapshot instead.
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


class Replayed(NamedTuple):
    """What a group of renderers gets of some facts."""

    frames: list[bytes]
    commits: list[int]
    """The places of the commits among them, each once."""


def replayed(facts: Iterable[Fact], group: FrameGroup) -> Replayed | None:
    """Return the frames that show facts, as such a group got them when they were new.

    Args:
        facts: In order, behind what the renderer has.
        group: For whom.

    Returns:
        `None` if the log alone does not say what the renderer would have got.
    """
    frames: list[bytes] = []
    commits: dict[int, None] = {}
    try:
        for message in _messages(facts, group):
            if isinstance(message, Commit) and message.seq is not None:
                commits[message.seq] = None
            parts = encoded(message, group)
            if len(parts) > 1 and not frames and isinstance(message, Delta):
                # It may have some of this text already: its cursor is that of the last piece.
                return None
            frames += parts
    except NeedsSnapshot:
        return None
    most = group.profile.limits.max_message_bytes
    packed = pack(frames, group.encoding, most) if group.batch and frames else frames
    return Replayed(packed, list(commits))


def _messages(facts: Iterable[Fact], group: FrameGroup) -> Iterator[AgentMessage]:
    for fact in facts:
        if fact.type == "artifact.changed" and "anew" in fact.payload:
            raise NeedsSnapshot  # it may show the turn that the id was of before
        if fact.type == "artifact.changed" and "role" in fact.payload and inlines(group.profile):
            raise NeedsSnapshot  # it shows a popup or an overlay where that has its place
        messages = messages_of(fact)
        if group.profile.ends_at_questions and ends_stream(fact.type, fact.payload):
            messages = stream_end(messages)
        for message in messages:
            yield from addressed(_as_it_was(message, group.profile), group)


def _as_it_was(message: AgentMessage, profile: Profile) -> AgentMessage:
    """Return a message as this profile takes it; raise `NeedsSnapshot` if that needs a screen."""
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
