"""One fact on its way: what the ledger keeps of it, and what renderers are told.

Theory of operation. A session records facts; each has a sequence and at most one group of messages.
While a text is still *open*, neighbouring text joins it, so that a write to the ledger costs one
fact, however many tokens gathered. Frames are made once per group and shared by all renderers of
that kind.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec
from msgspec import Struct

from arp.ledger.fact_writer import FactWriter
from arp.protocol.codec import recode
from arp.protocol.delta_writer import DeltaWriter
from arp.protocol.json_value import Json, JsonObject
from arp.protocol.messages import (
    AgentMessage,
    Delta,
    DeltaPayload,
)
from arp.view.frames import FrameGroup, addressed, encoded
from arp.view.profile import Profile
from arp.view.snapshot import Cursor

_to_json = msgspec.json.Encoder().encode

THINKING = "reasoning.delta"
SAYING = "model.delta"


class RecordedFact:
    """A recorded fact."""

    __slots__ = ("ids", "messages", "payload", "sequence", "translated", "type")

    def __init__(
        self,
        sequence: int,
        type_name: str,
        payload: JsonObject,
        ids: dict[str, Json],
        messages: list[AgentMessage],
    ) -> None:
        self.sequence = sequence
        self.type = type_name
        self.payload = payload
        self.ids = ids
        """Correlation ids of the fact, by field name."""
        self.messages = messages
        self.translated: dict[Profile, list[AgentMessage] | None] = {}
        """For profiles that do not take the messages as they are; `None`: needs a snapshot."""

    def fact(self, writer: FactWriter, at: str) -> bytes:
        """Gives the fact, encoded."""
        return writer.fact(at, self.sequence, self.type, self.payload, self.ids)

    @property
    def is_edit(self) -> bool:
        """Tells whether something takes the place of an input that was told."""
        return self.type == "queue.changed" and "input" in self.payload

    def frames(self, group: FrameGroup) -> list[bytes] | None:
        """Gives the frames for a group; `None` if it needs a snapshot instead."""
        if self.is_edit and group.profile.said_hello and not group.profile.takes("branches"):
            return None
        messages: list[AgentMessage] | None = self.messages
        if self.translated:
            messages = self.translated.get(group.profile, messages)
        if messages is None:
            return None
        return [
            frame
            for before in messages
            for message in addressed(before, group)
            for frame in encoded(message, group)
        ]


class Text(Struct, eq=False, gc=False):
    """A recorded text: open while neighbouring text may join it, then closed."""

    sequence: int
    type: str
    turn_id: str
    deltas: DeltaWriter
    chunks: list[str] = []
    thread_id: str | None = None
    """Of its turn; `None` is the session's first."""
    # What follows holds once it is closed.
    text: str = ""
    """All of it."""
    json: str = ""
    """As a JSON string: the fact and every frame hold the same."""
    part: str | None = None
    """The text part of the output that is open behind it."""
    characters: int = 0
    """How much that part holds then."""
    thinking: int = 0
    """How much the turn has thought then."""

    def close(self, text: str) -> None:
        """Ends it; its owner knows its place and writes it down.

        Args:
            text: What may be told of what was said.
        """
        try:
            self.json = _to_json(text).decode()
        except UnicodeEncodeError:  # Half a surrogate pair must not stop a session's log.
            text = text.encode("utf-8", "replace").decode()
            self.json = _to_json(text).decode()
        self.text = text

    @property
    def cursor(self) -> Cursor:
        """How far a renderer is that has been told everything up to it."""
        return Cursor(self.sequence, self.part, self.characters, self.turn_id, self.thinking)

    @property
    def messages(self) -> list[AgentMessage]:
        """What shows it, as a value."""
        kind = "thinking" if self.type == THINKING else None
        payload = DeltaPayload(self.text, kind=kind)
        session_id = self.deltas.session_id
        return [
            Delta(session_id=session_id, seq=self.sequence, turn_id=self.turn_id, payload=payload)
        ]

    def fact(self, writer: FactWriter, at: str) -> bytes:
        """Gives the fact, encoded."""
        return writer.text(at, self.sequence, self.type, self.turn_id, self.json, self.thread_id)

    def frames(self, group: FrameGroup) -> list[bytes]:
        """Gives the frames for a group."""
        target = kind = None
        if self.type == THINKING:
            if not group.profile.takes("thinking"):
                return []
            kind = "thinking"
        elif group.part is not None and group.part == self.part:
            # After `replace: true` the numbers of text parts begin again: a text that opens its
            # part is no continuation of the one that these renderers know by the same id.
            opens = self.characters == len(self.text)
            target = None if opens else self.part
        frame = self.deltas.delta(self.sequence, self.turn_id, self.json, target, kind)
        if group.encoding != "json":
            frame = recode(frame, group.encoding)
        most = group.profile.limits.max_message_bytes
        if most is not None and len(frame) > most:
            return [part for one in self._named(target) for part in encoded(one, group)]
        return [frame]

    def _named(self, target: str | None) -> list[AgentMessage]:
        """Gives what shows it, with the part that it goes to."""
        if target is None:
            return self.messages
        (delta,) = self.messages
        assert isinstance(delta, Delta)
        payload = msgspec.structs.replace(delta.payload, target=target)
        return [msgspec.structs.replace(delta, payload=payload)]


Recorded: TypeAlias = RecordedFact | Text


class TextBatch(Struct, frozen=True):
    """One text, and nothing else that a session recorded since it was last drained.

    So there is no commit in it, and nothing that a list of sessions shows. Most of what is ever
    written is this.
    """

    facts: list[bytes]
    text: Text
    sequence: int
    """Of the newest fact."""

    @property
    def recorded(self) -> list[Recorded]:
        """What was recorded, in order."""
        return [self.text]

    @property
    def cursor(self) -> Cursor:
        """How far a renderer is that has been told all of it."""
        return self.text.cursor


class Batch(Struct, frozen=True):
    """What a session recorded since it was last drained."""

    facts: list[bytes]
    recorded: list[Recorded]
    cursor: Cursor
    """How far a renderer is that has been told all of it."""

    @property
    def sequence(self) -> int:
        """Of the newest fact."""
        return self.cursor.seq
