"""Facts that a session has recorded and not yet drained, in order.

Theory of operation. Secrets are removed before anything is recorded or shown. An `output.redacted`
directly after a fact reports what was removed from it. The end of a text may be the beginning of a
secret, so it may be *held*: it is joined with the text that follows, or recorded before the next
fact of its turn. A fact gets its time when it is drained. Until then, inputs and ends of turns on
the screen have no time.

Text is the hot path. `TextAssembler` appends it to the last text part of the turn's output, or
begins a new part. It remembers the node of that part, so that more text costs one append.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from arp.ledger.fact_writer import FactWriter
from arp.protocol.components import Component
from arp.protocol.connection.screen import Screen
from arp.protocol.errors import PermissionDenied
from arp.protocol.json_value import JsonObject
from arp.protocol.messages import AgentMessage, Commit, InputEcho
from arp.protocol.patch import Append
from arp.protocol.tree import Node, Tree
from arp.redact.redactor import Found, Redactor
from arp.redact.stream import CONTEXT, SecretStream
from arp.session.recording.projection import At, project
from arp.session.recording.recorded import (
    REASONING_TEXT,
    Batch,
    Cursor,
    Recorded,
    RecordedFact,
    Text,
    TextBatch,
    recorded_text,
)
from arp.session.recording.redacted import (
    GrowingTexts,
    clean_into,
    cleaned_changes,
    cleaned_component,
    cleaned_fact,
    end_of,
)
from arp.session.tracking.threads import THREAD, Threads
from arp.surface.change import Change

TIMED = frozenset(
    ("turn.submitted", "queue.changed", "action.resolved", "turn.completed", "turn.failed")
)
"""Fact types whose messages carry a time: the time of an input, or of the end of a turn."""


class ReadOnly(PermissionDenied):
    """The session can only be read, because the log continues with facts that cannot be read."""


class TextAssembler:
    """Appends streamed text to the output of the running turn."""

    __slots__ = (
        "_characters",
        "_node",
        "_redactor",
        "_screen",
        "_thinking",
        "_turn",
        "is_last",
        "stream",
    )

    def __init__(self, screen: Screen, redactor: Redactor) -> None:
        self.stream: SecretStream | None = None
        """Redactor of the turn's text while it may be inside a secret; `None` otherwise."""
        self.is_last = True
        """Whether the last result of `_is_last_part` is still valid, because only text followed."""
        self._redactor = redactor
        self._screen = screen
        self._turn: str | None = None
        self._node: Node | None = None
        self._characters = 0
        self._thinking = 0

    def begin_turn(self, turn_id: str) -> None:
        """Begin the output of a turn; drop the state of the previous one."""
        self._turn = turn_id
        self.stream = None
        self._node = None
        self._characters = self._thinking = 0

    def show_on(self, screen: Screen) -> None:
        """Continue on another screen, while no turn outputs text."""
        self._screen, self._turn, self._node = screen, None, None
        self._characters = self._thinking = 0

    def cursor(self, sequence: int) -> Cursor:
        """Return the cursor of a renderer that has received everything up to `sequence`."""
        return Cursor(sequence, self._part(), self._characters, self._turn, self._thinking)

    def add(self, text: Text) -> None:
        """Append a text to the output or the reasoning of its turn.

        The resulting position is stored in `text.part`, `text.characters` and `text.thinking`.
        """
        node = self._node
        if text.type == REASONING_TEXT:
            self._screen.apply(text.message)
            self._thinking += len(text.text)
            text.part = self._part()
        else:
            # Fast path: the node of the last part is known, so the text is appended to it without
            # a look at the tree. Anything else that was recorded may have added a component after
            # the part; more text in the old part would then appear above that component.
            if (
                node is None
                or node.turn != text.turn_id
                or not (self.is_last or self._is_last_part(node))
            ):
                node = self._begin_part(text)
            else:
                node.tail.append(text.text)
                node.seq = text.sequence
                self._characters += len(text.text)
            text.part = node.id
        text.characters, text.thinking = self._characters, self._thinking

    def clean(self, turn_id: str, type_name: str, text: str) -> str:
        """Return the part of a text that may be output now; hold the rest in `stream`."""
        if self.stream is None:
            self.stream = SecretStream(self._redactor)
        return self.stream.admit(text, self._before(turn_id, type_name))

    def finish(self, turn_id: str, type_name: str) -> str:
        """Return the held text, because no more text follows it."""
        assert self.stream is not None
        return self.stream.finish(self._before(turn_id, type_name))

    def _before(self, turn_id: str, type_name: str) -> str:
        """Return the end of the turn's output, or of its reasoning, by the type of the text."""
        if type_name == REASONING_TEXT:
            return self._screen.turn(turn_id).thinking[-CONTEXT:]
        return end_of(self._node) if self._node is not None and self._part() else ""

    def calm(self) -> None:
        """Drop the stream redactor when it holds no text and expects no rest of a secret."""
        if self.stream is not None and not self.stream.is_busy:
            self.stream = None

    def _part(self) -> str | None:
        """Return the id of the text part that the next text would join; `None` for a new part."""
        node = self._node
        if node is None:
            return None
        if self._is_last_part(node):
            return node.id
        self._node = None
        self._characters = 0
        return None

    def _begin_part(self, text: Text) -> Node:
        """Show a text through the screen, which may begin a part; remember the node it is in."""
        self._screen.apply(text.message)
        main = self._screen.surfaces["main"]
        node = self._node = main.nodes[main.outputs[text.turn_id][-1]]
        self._characters = len(main.component(node.id).props["content"])
        self.is_last = True
        return node

    def _is_last_part(self, node: Node) -> bool:
        """Return whether a part is still the last component of its turn's output."""
        if self.is_last:
            return True
        self.is_last = True  # the answer stays valid until something besides text is recorded
        items = self._screen.surfaces["main"].outputs.get(node.turn)
        return bool(items) and items[-1] == node.id  # type: ignore[index]  # bool() says so


class Log:
    """Facts and texts of one session with their sequence numbers, until they are drained."""

    __slots__ = (
        "_found_ahead",
        "_holding",
        "_recorded",
        "_screen",
        "_session_id",
        "_threads",
        "_writer",
        "assembler",
        "growing",
        "redactor",
        "sealed",
        "sequence",
    )

    def __init__(
        self,
        runtime_id: str,
        session_id: str,
        screen: Screen,
        redactor: Redactor,
        threads: Threads | None = None,
    ) -> None:
        self.redactor = redactor
        self.sequence = 0
        """Sequence number of the newest fact."""
        self.sealed: ReadOnly | None = None
        """Error of every further recording, once the log is sealed."""
        self.assembler = TextAssembler(screen, redactor)
        self.growing = GrowingTexts(redactor)
        self._session_id = session_id
        self._screen = screen
        self._threads = threads or Threads()
        self._writer = FactWriter(runtime_id, session_id, THREAD)
        self._recorded: list[Recorded] = []
        self._holding: tuple[str, str] | None = None
        """Turn and type of the text that is held."""
        self._found_ahead: Found = {}
        """Counts of the secrets that were already removed from the content of the next fact."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to drain."""
        return not self._recorded

    @property
    def is_timed(self) -> bool:
        """Whether every input and every ended turn on the screen has its time."""
        return all(one.type not in TIMED for one in self._recorded)

    def add(self, facts: Sequence[RecordedFact]) -> None:
        """Redact facts and record them with the next sequence numbers.

        The caller applies their messages to the screen.

        Args:
            facts: Facts of types that the ledger profile defines. The log must be open. The caller
                must not change their payloads afterwards.
        """
        # All facts are redacted before the first one gets a sequence number: if redaction fails,
        # the log must not contain a part of the step.
        found: list[Found] = []
        for fact in facts:
            if self._holding is not None:
                self.settle(fact.ids.get("turn_id"))
            in_fact, self._found_ahead = self._found_ahead, {}
            fact.payload = cleaned_fact(self.redactor, fact.type, fact.payload, fact.ids, in_fact)
            found.append(in_fact)
        for fact, in_fact in zip(facts, found, strict=True):
            self._append(fact, in_fact)
            at = At(self._session_id, fact.sequence, fact.ids.get("turn_id"))
            fact.messages = project(at, fact.type, fact.payload, fact.ids)

    def add_shown(self, fact: RecordedFact) -> None:
        """Record a fact that is already on the screen and was redacted by `clean_changes`.

        Raises:
            ReadOnly: The log is sealed; nothing is recorded.
        """
        self.check_open()
        self.settle(fact.ids.get("turn_id"))
        found, self._found_ahead = self._found_ahead, {}
        self._append(fact, found)

    def _append(self, fact: RecordedFact, found: Found) -> None:
        self.assembler.is_last = False
        self.sequence = fact.sequence = self.sequence + 1
        self._recorded.append(fact)
        if found:
            self._record_redaction(found, fact.ids.get("turn_id"))

    def check_open(self) -> None:
        """Raise `ReadOnly` if the log is sealed."""
        if self.sealed is not None:
            raise self.sealed

    def show_on(self, screen: Screen) -> None:
        """Continue on another screen, while no turn outputs text."""
        self._screen = screen
        self.assembler.show_on(screen)

    def clean_changes(
        self, changes: Sequence[Change], surface: str, turn_id: str | None, tree: Tree | None
    ) -> Sequence[Change]:
        """Return changes without secrets; the findings are reported after the next fact.

        Args:
            changes: Changes of one surface.
            surface: Name of the surface.
            turn_id: Turn that makes the changes.
            tree: Current components of the surface; `None` if the surface is new.
        """
        changes = cleaned_changes(self.redactor, changes, self._found_ahead)
        return self.growing.admit(changes, surface, turn_id, tree, self._found_ahead)

    def flush(self, turn_id: str, trees: dict[str, Tree]) -> list[tuple[str, Append]]:
        """Return and release the held ends of texts in components, each with its surface."""
        return self.growing.flush(turn_id, trees, self._found_ahead)

    def clean_component(self, component: Component) -> Component:
        """Return a component without secrets; the findings are reported after the next fact."""
        return cleaned_component(self.redactor, component, self._found_ahead)

    def clean_value(self, value: JsonObject) -> JsonObject:
        """Return an object without secrets; the findings are reported after the next fact."""
        cleaned: JsonObject = clean_into(self.redactor, value, self._found_ahead)
        return cleaned

    def forget_found(self) -> None:
        """Drop the findings of changes that were refused, and restore the held texts."""
        self._found_ahead = {}
        self.growing.take_back()

    def settle(self, turn_id: str | None) -> None:
        """Record the held text of a turn, because another fact of the turn follows.

        Otherwise text that came before a component would appear after it.
        """
        if self._holding is not None and self._holding[0] == turn_id:
            self._release(*self._holding)

    def _release(self, turn_id: str, type_name: str) -> None:
        """Record the held text, or the mark that replaces it if it is a secret."""
        stream = self.assembler.stream
        assert stream is not None
        self._holding = None
        self._add_text(turn_id, type_name, self.assembler.finish(turn_id, type_name))
        self._record_redaction(stream.take_found(), turn_id)

    def _record_redaction(self, found: Found, turn_id: str | None) -> None:
        """Record an `output.redacted` that reports what was removed from the previous fact."""
        if not found:
            return
        self.sequence += 1
        findings = [{"rule": rule, "count": found[rule]} for rule in sorted(found)]
        ids = {"thread_id": self._threads.of(turn_id), "turn_id": turn_id} if turn_id else {}
        payload = {"findings": findings}
        fact = RecordedFact("output.redacted", payload, ids)
        fact.sequence = self.sequence
        self._recorded.append(fact)

    def say(self, turn_id: str, text: str, type_name: str) -> None:
        """Record text without its secrets. An end that may begin a secret is held."""
        assembler = self.assembler
        # A secret does not continue from reasoning into output, and held reasoning must not be
        # output as text of the other kind.
        if self._holding is not None and self._holding[1] != type_name:
            self._release(*self._holding)
            assembler.stream = None
        # Fast path for nearly all text: no stream is open and nothing looks like a secret.
        if assembler.stream is None and self.redactor.has_sign(text) is None:
            self._add_text(turn_id, type_name, text)
            return
        self._add_text(turn_id, type_name, assembler.clean(turn_id, type_name, text))
        stream = assembler.stream
        assert stream is not None
        self._holding = (turn_id, type_name) if stream.held else None
        self._record_redaction(stream.take_found(), turn_id)
        assembler.calm()

    def _add_text(self, turn_id: str, type_name: str, text: str) -> None:
        """Record a text without secrets; record nothing if it is empty because all is held."""
        if not text:
            return
        # `None` for the first thread, which nearly all turns are in.
        sequence, thread_id = self.sequence + 1, self._threads.turns.get(turn_id)
        recorded = recorded_text(sequence, type_name, self._session_id, turn_id, text, thread_id)
        self.assembler.add(recorded)
        self.sequence = sequence
        self._recorded.append(recorded)

    def cursor(self) -> Cursor:
        """Return the cursor of a renderer that has received everything."""
        return self.assembler.cursor(self.sequence)

    def drain(self, at: str) -> TextBatch | Batch:
        """Return and remove what was recorded since the last call.

        Args:
            at: Time of all these facts (RFC 3339).
        """
        recorded, self._recorded = self._recorded, []
        # A single text needs no times, no messages of other facts and no cursor of its own.
        if len(recorded) == 1 and isinstance(text := recorded[0], Text):
            return TextBatch([self._writer.text(at, text)], text, text.sequence)
        for one in recorded:
            if one.type in TIMED and isinstance(one, RecordedFact):
                one.messages = [self._timed(message, at) for message in one.messages]
        cursor, writer = self.assembler.cursor(self.sequence), self._writer
        facts = [
            writer.text(at, one)
            if isinstance(one, Text)
            else writer.fact(at, one.sequence, one.type, one.payload, one.ids)
            for one in recorded
        ]
        return Batch(facts, recorded, cursor, cursor.seq)

    def _timed(self, message: AgentMessage, at: str) -> AgentMessage:
        """Return a message with its time, if it shows an input or ends a turn.

        The time is set on the screen too. Any other message is returned unchanged.
        """
        if not isinstance(message, InputEcho | Commit):
            return message
        turn = self._screen.turns.get(message.turn_id or "")
        if isinstance(message, Commit):
            if turn is not None:
                turn.ended = at
            return msgspec.structs.replace(message, at=at)
        for index, echo in enumerate(turn.inputs if turn is not None else ()):
            if echo.seq == message.seq and turn is not None:
                turn.inputs[index] = msgspec.structs.replace(echo, at=at)
        return msgspec.structs.replace(message, at=at)
