"""`EarlierQuestions`: what turns before this one asked and left open, and the answers to it.

Theory of operation. A restart leaves the questions of a turn open. The answer to one of them begins
a turn, in which the agent goes on: it asks the others again. Each of these is either answered by
now, by an input that waits in the queue, or open still: then the new question takes its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

import msgspec

from arp.protocol.components import Component
from arp.protocol.errors import ArpError
from arp.protocol.json_value import JsonObject
from arp.protocol.messages import InputEcho, Permission
from arp.session.session import Question
from arp.turn.host import TurnHost

_ANSWERED_BY = frozenset(("state", "answer"))
"""Props of an input component that come after the question."""


class LateAnswer(NamedTuple):
    """An input that answers, or may answer, a question of a turn that is over."""

    turn_id: str
    """The turn that it began."""
    input: InputEcho


class EarlierQuestions:
    """The questions of the turns before a turn, as the turn that goes on with them sees them.

    Args:
        host: The turn.
    """

    def __init__(self, host: TurnHost) -> None:
        self._host = host
        self._session = host.session
        self._used: set[str] = set()
        """The turns whose input was taken for an answer: each counts once."""

    def left_open(self) -> list[Question]:
        """Return the questions that are open still, of the thread of the turn, oldest first."""
        threads, turn_id = self._session.threads, self._host.turn_id
        thread = threads.of(turn_id)
        return [
            one
            for one in self._session.questions.values()
            if one.turn_id != turn_id and threads.of(one.turn_id) == thread
        ]

    def answers(self, lost: Sequence[str] = ()) -> Iterator[LateAnswer]:
        """Yield the answers that nobody has taken: the turn's own input, and those behind it.

        Args:
            lost: Turns before this one whose input may be an answer that nobody has taken: their
                process ended before.
        """
        session, own = self._session, self._host.turn_id
        for turn_id in (own, *session.queue, *lost):
            is_answer = turn_id in session.input_log.answers
            same_thread = session.threads.of(turn_id) == session.threads.of(own)
            turn = session.screen.turns.get(turn_id)
            if turn is None or not turn.inputs or turn_id in self._used or not same_thread:
                continue
            if turn_id == own or is_answer or turn_id in lost:
                yield LateAnswer(turn_id, self._echo(turn_id, turn.inputs[0]))

    def _echo(self, turn_id: str, echo: InputEcho) -> InputEcho:
        """Return an input with its data as they came."""
        typed = self._session.input_log.typed.get(turn_id)
        return echo if typed is None else msgspec.structs.replace(echo, data=typed)

    def take(self, answer: LateAnswer) -> str:
        """Take an answer; return the queued turn that it began, or an empty text for its own."""
        self._used.add(answer.turn_id)
        return answer.turn_id if answer.turn_id != self._host.turn_id else ""

    def component(self, component_id: str, surface: str = "main") -> Component | None:
        """Return a component as it shows; `None` if it does not."""
        tree = self._session.tree(surface)
        if tree is None or component_id not in tree.nodes:
            return None
        return tree.component(component_id)

    def permission(self, component_id: str) -> Permission | None:
        """Return the permission that a component asks, or asked; `None`: it is no such question."""
        turns = self._session.screen.turns.values()
        found = (turn.permissions.get(component_id) for turn in turns)
        return next((one for one in found if one is not None), None)

    def is_about(self, component_id: str, tool: str, digest: str) -> bool:
        """Return whether a component asks, or asked, to run a tool with an input."""
        known = self.permission(component_id)
        return known is not None and (known.tool, known.digest) == (tool, digest)

    def asks_same(self, component_id: str, asked: Component, mark: str = "") -> bool:
        """Return whether a component asks, or asked, the same.

        Args:
            component_id: Of the earlier one.
            asked: What is asked now.
            mark: What the ids of all components begin with that ask it; empty: nothing is known of
                them, and what they show decides.
        """
        if mark:
            return component_id.startswith(mark)
        shown = self.component(component_id)
        return shown is not None and (shown.type, _shown_props(shown.props)) == (
            asked.type,
            _shown_props(self._session.log.clean_component(asked).props),
        )

    def replace(self, question: Question) -> None:
        """Close a question that the turn asks again now: late answers to it are refused."""
        self._host.settle()
        self._session.replace_question(question)
        self._host.changed()

    def has_secret(self, text: str) -> bool:
        """Return whether a text has a secret, which no state may have."""
        return bool(self._session.log.redactor.clean(text)[1])

    def save_state(self) -> bool:
        """Record `turn.state` now; return whether that was possible."""
        with suppress(ArpError, TypeError, ValueError):
            self._host.save_state()
            return True
        return False


def _shown_props(props: JsonObject) -> JsonObject:
    return {name: value for name, value in props.items() if name not in _ANSWERED_BY}
