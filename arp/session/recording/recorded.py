"""Recorded facts and texts of a session, and the cursor of a renderer that receives them.

Theory of operation. Each recorded fact has a sequence number and the messages that show it.
`arp/view` translates these messages for each renderer. Text has a class of its own, because most of
what is recorded is text: everything that delivery needs is computed once, when it is recorded.
"""

from __future__ import annotations

from typing import Protocol, TypeAlias

import msgspec
from msgspec import Struct

from arp.ledger.fact_writer import TextFact
from arp.protocol.connection.screen import Screen
from arp.protocol.json_value import Json, JsonObject
from arp.protocol.messages import AgentMessage, Delta, DeltaPayload
from arp.protocol.tree import Tree
from arp.session.recording.projection import At
from arp.surface.change import Change

_to_json = msgspec.json.Encoder().encode

REASONING_TEXT = "reasoning.delta"
"""Fact type of the text of a turn's reasoning."""

OUTPUT_TEXT = "model.delta"
"""Fact type of the text of a turn's output."""


class Cursor(Struct, frozen=True):
    """Position of a renderer in the log, and in the text that was being streamed there."""

    seq: int = 0
    part: str | None = None
    """Id of the text part that ends the output; `None` if something else ends it."""
    characters: int = 0
    """Length of that part at the cursor, in characters."""
    turn: str | None = None
    """Id of the turn that started last; `None` if none has since the session was loaded or changed
    its branch."""
    thinking: int = 0
    """Length of that turn's reasoning at the cursor, in characters."""


class SessionName(Struct, frozen=True):
    """Id, epoch and newest sequence number of a session, as its messages contain them."""

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
        """Sequence number; 0 until the fact is recorded."""
        self.type = type_name
        self.payload = payload
        """Payload; after recording, exactly as in the ledger."""
        self.ids = ids
        """Correlation ids of the fact, by field name."""
        self.messages = messages or []
        """Messages that show the fact to a renderer with all features."""
        self.translated: dict[Watcher, list[AgentMessage] | None] | None = None
        """Messages for other renderers, by the watcher that serves them; `None` as a value means
        that these renderers need a snapshot."""
        self.turn_id = turn_id
        """Turn that the fact is about; `None` if there is none. Also `None` while a recording is
        played: its facts must not change the states of turns."""
        self.is_edit = type_name == "queue.changed" and "input" in payload
        """Whether the fact replaces the input of a queued turn."""


class Text(TextFact, eq=False, gc=False):
    """A recorded piece of a turn's text."""

    text: str
    """The text, without secrets and without lone surrogates."""
    message: Delta
    """Message that shows the text to a renderer with all features."""
    # `TextAssembler.add` sets the fields below when the text has a position on the screen.
    part: str | None = None
    """Id of the text part that is last in the output after this text."""
    characters: int = 0
    """Number of characters of that part after this text."""
    thinking: int = 0
    """Number of characters of the turn's reasoning after this text."""

    @property
    def cursor(self) -> Cursor:
        """Cursor of a renderer that has received everything up to this text."""
        return Cursor(self.sequence, self.part, self.characters, self.turn_id, self.thinking)

    @property
    def messages(self) -> list[AgentMessage]:
        """Messages that show the text, as in `RecordedFact.messages`."""
        return [self.message]


def recorded_text(
    sequence: int,
    type_name: str,
    session_id: str,
    turn_id: str,
    text: str,
    thread_id: str | None = None,
) -> Text:
    """Return a text that has no position on the screen yet.

    Args:
        sequence: Sequence number of its fact.
        type_name: `OUTPUT_TEXT` or `REASONING_TEXT`.
        session_id: Id of the session.
        turn_id: Id of the turn.
        text: The text, without secrets.
        thread_id: Thread of the turn; `None` means the session's first thread.
    """
    try:
        json = _to_json(text).decode()
    except UnicodeEncodeError:
        # A model may stream a lone surrogate, which UTF-8 cannot express. It becomes `?`, because
        # an exception here would lose the text around it.
        text = text.encode("utf-8", "replace").decode()
        json = _to_json(text).decode()
    payload = DeltaPayload(text, kind="thinking" if type_name == REASONING_TEXT else None)
    message = Delta(session_id=session_id, seq=sequence, turn_id=turn_id, payload=payload)
    return Text(sequence, type_name, turn_id, thread_id, json, text, message)


Recorded: TypeAlias = RecordedFact | Text


class TextBatch(Struct, frozen=True, gc=False):
    """A drained batch with one text and nothing else.

    It contains no commit and nothing that a list of sessions shows. Most batches are of this kind.
    """

    facts: list[bytes]
    text: Text
    sequence: int
    """Sequence number of the newest fact."""

    @property
    def recorded(self) -> list[Recorded]:
        """Recorded facts and texts, in order."""
        return [self.text]

    @property
    def cursor(self) -> Cursor:
        """Cursor of a renderer that has received the whole batch."""
        return self.text.cursor


class Batch(Struct, frozen=True):
    """Everything that a session recorded between two drains."""

    facts: list[bytes]
    recorded: list[Recorded]
    cursor: Cursor
    """Cursor of a renderer that has received the whole batch."""
    sequence: int
    """Sequence number of the newest fact."""


class AppliedCommit(Struct, frozen=True):
    """A commit that was just applied to a surface."""

    at: At
    fact: RecordedFact
    """Fact that records the commit."""
    surface: str
    output: str
    """Name of the output list of the surface that its new components joined."""
    tree: Tree
    """Components of the surface after the commit. Read it at once; the next commit changes it."""
    changes: list[Change]
    """Changes as they were applied. Read-only."""
    is_anew: bool
    """Whether the commit reuses the id of an evicted component, which renderers may still show."""


class Watcher(Protocol):
    """Observer of a session: the part of delivery that the session knows."""

    @property
    def resumes_queue(self) -> bool:
        """Whether a connected user sees a paused queue and can resume it."""
        ...

    def committed(self, commit: AppliedCommit) -> None:
        """Receive a commit, directly after it was applied."""

    def show_on(self, screen: Screen) -> None:
        """Continue with another screen of the session."""
