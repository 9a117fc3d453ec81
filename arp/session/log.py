"""What a session has recorded and not yet handed over: facts in order.

Theory of operation. Secrets are taken out before anything is recorded or shown; an
`output.redacted` right behind a fact says what was taken out of it. Of text the end may be *held*,
since it may be the beginning of a secret: it joins the text that follows, or stands before the next
fact of its turn. The time of a fact is known when it is drained: until then an input that was told
and a turn that ended have none.

Text is the hot path. `TextAssembler` puts it at the end of the turn's output: into the part that is
last there, or a new one. The part's node is remembered, so that going on with it costs nothing but
the text.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from arp.ledger.fact_writer import FactWriter
from arp.protocol.components import Component
from arp.protocol.errors import PermissionDenied
from arp.protocol.json_value import JsonObject
from arp.protocol.messages import AgentMessage, Commit, InputEcho
from arp.protocol.patch import Append
from arp.protocol.screen import Screen
from arp.protocol.tree import Node, Tree
from arp.redact.redactor import Found, Redactor
from arp.redact.stream import CONTEXT, SecretStream
from arp.session.projection import At, project
from arp.session.recorded import (
    THINKING,
    Batch,
    Cursor,
    Recorded,
    RecordedFact,
    Text,
    TextBatch,
    recorded_text,
)
from arp.session.redacted import (
    Growing,
    clean_into,
    cleaned_changes,
    cleaned_component,
    cleaned_fact,
    end_of,
)
from arp.session.threads import THREAD, Threads
from arp.surface.change import Change

TELLING = frozenset(
    ("turn.submitted", "queue.changed", "action.resolved", "turn.completed", "turn.failed")
)
"""Facts that may tell an input, or that a turn is over."""


class ReadOnly(PermissionDenied):
    """The session can be read and nothing more: behind its end stands what nobody can read."""


class TextAssembler:
    """The text side of one session."""

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
        """Looks through what the turn says, while that goes on with what may be a secret."""
        self.is_last = True
        """Nothing but text was recorded since the part was last looked at."""
        self._redactor = redactor
        self._screen = screen
        self._turn: str | None = None
        self._node: Node | None = None
        self._characters = 0
        self._thinking = 0

    def begin_turn(self, turn_id: str) -> None:
        """Forget the turn before."""
        self._turn = turn_id
        self.stream = None
        self._node = None
        self._characters = self._thinking = 0

    def show_on(self, screen: Screen) -> None:
        """Go on on another screen; nothing is being said."""
        self._screen, self._turn, self._node = screen, None, None
        self._characters = self._thinking = 0

    def cursor(self, sequence: int) -> Cursor:
        """Return how far a renderer is that has been told everything up to a sequence."""
        return Cursor(sequence, self._part(), self._characters, self._turn, self._thinking)

    def add(self, text: Text) -> None:
        """Show a text at the end of its turn's output, and write down where that is."""
        node = self._node
        if text.type == THINKING:
            self._screen.apply(text.message)
            self._thinking += len(text.text)
            text.part = self._part()
        else:
            if (
                node is None
                or node.turn != text.turn_id
                or not (self.is_last or self._goes_on(node))
            ):
                node = self._begin_part(text)
            else:
                node.tail.append(text.text)
                node.seq = text.sequence
                self._characters += len(text.text)
            text.part = node.id
        text.characters, text.thinking = self._characters, self._thinking

    def clean(self, turn_id: str, type_name: str, text: str) -> str:
        """Return what of a text may be output now, and hold the rest in `stream`."""
        if self.stream is None:
            self.stream = SecretStream(self._redactor)
        return self.stream.admit(text, self._before(turn_id, type_name))

    def finish(self, turn_id: str, type_name: str) -> str:
        """Return what is held of a text."""
        assert self.stream is not None
        return self.stream.finish(self._before(turn_id, type_name))

    def _before(self, turn_id: str, type_name: str) -> str:
        """Return what was said last in one kind."""
        if type_name == THINKING:
            return self._screen.turn(turn_id).thinking[-CONTEXT:]
        return end_of(self._node) if self._node is not None and self._part() else ""

    def calm(self) -> None:
        """Let go of what looks through the text, once nothing of that is left to follow."""
        if self.stream is not None and not self.stream.is_busy:
            self.stream = None

    def _part(self) -> str | None:
        """Return the text part that the next text would join."""
        node = self._node
        if node is None:
            return None
        if self._goes_on(node):
            return node.id
        self._node = None
        self._characters = 0
        return None

    def _begin_part(self, text: Text) -> Node:
        """Show a text the general way, and remember where it went."""
        self._screen.apply(text.message)
        main = self._screen.surfaces["main"]
        node = self._node = main.nodes[main.outputs[text.turn_id][-1]]
        self._characters = len(main.component(node.id).props["content"])
        self.is_last = True
        return node

    def _goes_on(self, node: Node) -> bool:
        """Return whether a part is still the last of its turn's output."""
        if self.is_last:
            return True
        self.is_last = True
        items = self._screen.surfaces["main"].outputs.get(node.turn)
        return bool(items) and items[-1] == node.id  # type: ignore[index]  # bool() says so


class Log:
    """Numbers facts, and shows them on the session's screen."""

    __slots__ = (
        "_ahead",
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
        """Of the newest fact."""
        self.sealed: ReadOnly | None = None
        """Why nothing is recorded any more."""
        self.assembler = TextAssembler(screen, redactor)
        self.growing = Growing(redactor)
        self._session_id = session_id
        self._screen = screen
        self._threads = threads or Threads()
        self._writer = FactWriter(runtime_id, session_id, THREAD)
        self._recorded: list[Recorded] = []
        self._holding: tuple[str, str] | None = None
        """Turn and type of the text whose end is held."""
        self._ahead: Found = {}
        """What was found in something that the next fact will hold."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to drain."""
        return not self._recorded

    @property
    def is_timed(self) -> bool:
        """Whether all on the screen that has a time has it."""
        return all(one.type not in TELLING for one in self._recorded)

    def add(self, facts: Sequence[RecordedFact]) -> None:
        """Record facts with the next sequences, without the secrets in them.

        The messages that show them are on no screen yet.

        Args:
            facts: Of the closed list of the profile, while the log is open. Nobody else changes
                their payloads from now on.
        """
        found: list[Found] = []
        for fact in facts:
            self.settle(fact.ids.get("turn_id"))
            in_fact, self._ahead = self._ahead, {}
            fact.payload = cleaned_fact(self.redactor, fact.type, fact.payload, fact.ids, in_fact)
            found.append(in_fact)
        for fact, in_fact in zip(facts, found, strict=True):
            self._append(fact, in_fact)
            at = At(self._session_id, fact.sequence, fact.ids.get("turn_id"))
            fact.messages = project(at, fact.type, fact.payload, fact.ids)

    def add_shown(self, fact: RecordedFact) -> None:
        """Record a fact that the screen shows already, cleaned by `clean_changes`.

        Raises:
            ReadOnly: The log is sealed; nothing is recorded.
        """
        self.check_open()
        self.settle(fact.ids.get("turn_id"))
        found, self._ahead = self._ahead, {}
        self._append(fact, found)

    def _append(self, fact: RecordedFact, found: Found) -> None:
        self.assembler.is_last = False
        self.sequence = fact.sequence = self.sequence + 1
        self._recorded.append(fact)
        if found:
            self._tell(found, fact.ids.get("turn_id"))

    def check_open(self) -> None:
        """Raise `ReadOnly` if nothing is recorded any more."""
        if self.sealed is not None:
            raise self.sealed

    def show_on(self, screen: Screen) -> None:
        """Go on on another screen; nothing is being said."""
        self._screen = screen
        self.assembler.show_on(screen)

    def clean_changes(
        self, changes: Sequence[Change], surface: str, turn_id: str | None, tree: Tree | None
    ) -> Sequence[Change]:
        """Return changes without secrets; what was found is told behind the next fact.

        Args:
            changes: Of a surface.
            surface: Its name.
            turn_id: The turn that makes them.
            tree: What they change.
        """
        changes = cleaned_changes(self.redactor, changes, self._ahead)
        return self.growing.admit(changes, surface, turn_id, tree, self._ahead)

    def let_go(self, turn_id: str, trees: dict[str, Tree]) -> list[tuple[str, Append]]:
        """Return what is held of texts that the turn appended to, by surface, without secrets."""
        return self.growing.let_go(turn_id, trees, self._ahead)

    def clean_component(self, component: Component) -> Component:
        """Return a component without secrets; what was found is told behind the next fact."""
        return cleaned_component(self.redactor, component, self._ahead)

    def clean_value(self, value: JsonObject) -> JsonObject:
        """Return an object without secrets; what was found is told behind the next fact."""
        cleaned: JsonObject = clean_into(self.redactor, value, self._ahead)
        return cleaned

    def forget_found(self) -> None:
        """Record that what was cleaned is not recorded after all."""
        self._ahead = {}
        self.growing.take_back()

    def settle(self, turn_id: str | None) -> None:
        """Record what is held of a turn's text: something else of it follows now."""
        if self._holding is not None and self._holding[0] == turn_id:
            self._release(*self._holding)

    def _release(self, turn_id: str, type_name: str) -> None:
        """Record what is held, for good: some text, or the mark that stands for it."""
        stream = self.assembler.stream
        assert stream is not None
        self._holding = None
        self._add_text(turn_id, type_name, self.assembler.finish(turn_id, type_name))
        self._tell(stream.take_found(), turn_id)

    def _tell(self, found: Found, turn_id: str | None) -> None:
        """Record what was taken out of the fact before."""
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
        """Record text as one fact, without the secrets in it; its end may be held for now."""
        assembler = self.assembler
        if self._holding is not None and self._holding[1] != type_name:
            self._release(*self._holding)
            assembler.stream = None  # what is thought does not go on in what is said
        if assembler.stream is None and self.redactor.has_sign(text) is None:
            self._add_text(turn_id, type_name, text)
            return
        self._add_text(turn_id, type_name, assembler.clean(turn_id, type_name, text))
        stream = assembler.stream
        assert stream is not None
        self._holding = (turn_id, type_name) if stream.held else None
        self._tell(stream.take_found(), turn_id)
        assembler.calm()

    def _add_text(self, turn_id: str, type_name: str, text: str) -> None:
        """Record a text that holds no secrets. An empty one, of which all is held, is no fact."""
        if not text:
            return
        sequence, thread_id = self.sequence + 1, self._threads.of(turn_id)
        recorded = recorded_text(sequence, type_name, self._session_id, turn_id, text, thread_id)
        self.assembler.add(recorded)
        self.sequence = sequence
        self._recorded.append(recorded)

    def cursor(self) -> Cursor:
        """Return how far a renderer is that has been told everything."""
        return self.assembler.cursor(self.sequence)

    def drain(self, at: str) -> TextBatch | Batch:
        """Take what was recorded since the last time, as facts of one moment.

        Args:
            at: RFC 3339.
        """
        recorded, self._recorded = self._recorded, []
        if len(recorded) == 1 and isinstance(text := recorded[0], Text):
            return TextBatch([text.fact(self._writer, at)], text, text.sequence)
        for one in recorded:
            if one.type in TELLING and isinstance(one, RecordedFact):
                one.messages = [self._timed(message, at) for message in one.messages]
        cursor, writer = self.cursor(), self._writer
        facts = [
            one.fact(writer, at)
            if isinstance(one, Text)
            else writer.fact(at, one.sequence, one.type, one.payload, one.ids)
            for one in recorded
        ]
        return Batch(facts, recorded, cursor, cursor.seq)

    def _timed(self, message: AgentMessage, at: str) -> AgentMessage:
        """Return what tells an input or an end with its time, which the screen gets too."""
        if not isinstance(message, InputEcho | Commit):
            return message
        turn = self._screen.turns.get(message.turn_id or "")
        if isinstance(message, Commit):
            if turn is not None:
                turn.ended = at
            return msgspec.structs.replace(message, at=at)
        for place, echo in enumerate(turn.inputs if turn is not None else ()):
            if echo.seq == message.seq and turn is not None:
                turn.inputs[place] = msgspec.structs.replace(echo, at=at)
        return msgspec.structs.replace(message, at=at)
