"""What a session records: facts, texts, and how far a renderer of them is.

Theory of operation. Each recorded fact has a sequence and the messages that show it. What renderers
get of them is made behind the session, in `arp/view`. A text is a class of its own, since most of
what is ever recorded is text: all that is known of it is written down when it is recorded.
"""

from __future__ import annotations

from typing import Protocol, TypeAlias

import msgspec
from msgspec import Struct

from arp.ledger.fact_writer import FactWriter
from arp.protocol.json_value import Json, JsonObject
from arp.protocol.messages import AgentMessage, Delta, DeltaPayload
from arp.protocol.screen import Screen
from arp.protocol.tree import Tree
from arp.session.projection import At
from arp.surface.change import Change

_to_json = msgspec.json.Encoder().encode

THINKING = "reasoning.delta"
SAYING = "model.delta"


class Cursor(Struct, frozen=True):
    """How far a renderer has come."""

    seq: int = 0
    part: str | None = None
    """The text part that was open there."""
    characters: int = 0
    """How much of it had been sent."""
    turn: str | None = None
    """The turn that ran there last."""
    thinking: int = 0
    """How much of its thinking had been sent."""


class SessionName(Struct, frozen=True):
    """What a session is called on the wire."""

    session_id: str
    epoch: str
    seq: int


class RecordedFact:
    """A recorded fact, or one that is about to be recorded."""

    __slots__ = (
        "ids",
        "is_edit",
        "messages",
        "payload",
        "sequence",
        "translated",
        "turn_id",
        "type",
    )

    def __init__(
        self,
        type_name: str,
        payload: JsonObject,
        ids: dict[str, Json],
        messages: list[AgentMessage] | None = None,
        turn_id: str | None = None,
    ) -> None:
        self.sequence = 0
        """Its place in the log; 0 until it has one."""
        self.type = type_name
        self.payload = payload
        """As the ledger has it, once it is recorded."""
        self.ids = ids
        """Correlation ids of the fact, by field name."""
        self.messages = messages or []
        """What shows it, for a renderer that shows everything."""
        self.translated: dict[Watcher, list[AgentMessage] | None] | None = None
        """What shows it for others, by whom they get it from; `None` there: a snapshot."""
        self.turn_id = turn_id
        """The turn that follows it; `None`: it is about none, or a recording plays."""
        self.is_edit = type_name == "queue.changed" and "input" in payload
        """It replaces an input that was sent before."""


class Text(Struct, eq=False, gc=False):
    """A recorded text."""

    sequence: int
    type: str
    turn_id: str
    text: str
    """Without secrets, and without half a surrogate pair."""
    json: str
    """The text as a JSON string, for its fact."""
    message: Delta
    """What shows it, for a renderer that shows everything."""
    thread_id: str | None = None
    """Of its turn; `None` is the session's first."""
    # What follows its place on the screen says: `TextAssembler.add`.
    part: str | None = None
    """The text part of the output that is open behind it."""
    characters: int = 0
    """How much that part holds then."""
    thinking: int = 0
    """How much the turn has thought then."""

    @property
    def cursor(self) -> Cursor:
        """The cursor of a renderer that has received everything up to it."""
        return Cursor(self.sequence, self.part, self.characters, self.turn_id, self.thinking)

    @property
    def messages(self) -> list[AgentMessage]:
        """What shows it, as of any fact."""
        return [self.message]

    def fact(self, writer: FactWriter, at: str) -> bytes:
        """Return the fact, encoded."""
        return writer.text(at, self.sequence, self.type, self.turn_id, self.json, self.thread_id)


def recorded_text(
    sequence: int,
    type_name: str,
    session_id: str,
    turn_id: str,
    text: str,
    thread_id: str | None = None,
) -> Text:
    """Return a text that has no place on the screen yet.

    Args:
        sequence: Of its fact.
        type_name: `SAYING` or `THINKING`.
        session_id: Of its session.
        turn_id: Of its turn.
        text: What may be output of what was recorded.
        thread_id: As in `Text`.
    """
    try:
        json = _to_json(text).decode()
    except UnicodeEncodeError:  # Half a surrogate pair must not stop a session's log.
        text = text.encode("utf-8", "replace").decode()
        json = _to_json(text).decode()
    payload = DeltaPayload(text, kind="thinking" if type_name == THINKING else None)
    message = Delta(session_id=session_id, seq=sequence, turn_id=turn_id, payload=payload)
    return Text(sequence, type_name, turn_id, text, json, message, thread_id)


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
        """The cursor of a renderer that has received all of it."""
        return self.text.cursor


class Batch(Struct, frozen=True):
    """What a session recorded since it was last drained."""

    facts: list[bytes]
    recorded: list[Recorded]
    cursor: Cursor
    """The cursor of a renderer that has received all of it."""
    sequence: int
    """Of the newest fact."""


class AppliedCommit(Struct, frozen=True):
    """A commit that was just applied to a surface."""

    at: At
    fact: RecordedFact
    """What the log has of it."""
    surface: str
    output: str
    """The list of the surface that its new components joined."""
    tree: Tree
    """The surface as the commit left it. The next commit changes it: read it at once."""
    changes: list[Change]
    """As they were applied; nobody changes them."""
    is_anew: bool
    """It uses an id again whose component left the memory; a renderer may still show that one."""


class Watcher(Protocol):
    """Those to whom a session shows what it does, as far as it matters to the session."""

    @property
    def resumes_queue(self) -> bool:
        """Whether a user there sees a paused queue, and can resume it."""
        ...

    def committed(self, commit: AppliedCommit) -> None:
        """Is called right after each commit."""

    def show_on(self, screen: Screen) -> None:
        """Is called when the session goes on with another screen."""
