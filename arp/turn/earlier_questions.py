"""`EarlierQuestions`: questions that earlier turns left open, and the answers to them.

Theory of operation. A restart leaves the questions of a turn open. The answer to one of them begins
a turn: the agent continues there and asks the other questions again. Each of these may have been
answered meanwhile, by an input that waits in the queue. Otherwise it is still open, and the new
question replaces it.
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
from arp.session.asking import replace_question
from arp.session.questions import Question
from arp.turn.host import TurnHost

_ANSWERED_BY = frozenset(("state", "answer"))
"""Props of an input component that the answer adds."""


class LateAnswer(NamedTuple):
    """Input that answers, or may answer, a question of an ended turn."""

    turn_id: str
    """Id of the turn that the input began."""
    input: InputEcho


class EarlierQuestions:
    """Open questions of earlier turns, and the late answers to them, for one later turn.

    Args:
        host: The later turn, which asks these questions again or uses the answers.
    """

    def __init__(self, host: TurnHost) -> None:
        self._host = host
        self._session = host.session
        self._used: set[str] = set()
        """Turns with an input that was used as an answer; each is used once."""

    def left_open(self) -> list[Question]:
        """Return the questions of this thread that are still open, oldest first."""
        threads, turn_id = self._session.threads, self._host.turn_id
        thread = threads.of(turn_id)
        return [
            one
            for one in self._session.questions.values()
            if one.turn_id != turn_id and threads.of(one.turn_id) == thread
        ]

    def answers(self, lost: Sequence[str] = ()) -> Iterator[LateAnswer]:
        """Yield the unused answers: the turn's own input and those in the queue.

        Args:
            lost: Earlier turns that ended with their process; their inputs may be unused answers.
        """
        session, own = self._session, self._host.turn_id
        for turn_id in (own, *session.queue, *lost):
            is_answer = turn_id in session.input_log.answers
            same_thread = session.threads.of(turn_id) == session.threads.of(own)
            turn = session.turn(turn_id)
            if turn is None or not turn.inputs or turn_id in self._used or not same_thread:
                continue
            if turn_id == own or is_answer or turn_id in lost:
                yield LateAnswer(turn_id, self._echo(turn_id, turn.inputs[0]))

    def _echo(self, turn_id: str, echo: InputEcho) -> InputEcho:
        """Return an input with its original data, which may be redacted on screens."""
        typed = self._session.input_log.typed.get(turn_id)
        return echo if typed is None else msgspec.structs.replace(echo, data=typed)

    def mark_used(self, answer: LateAnswer) -> str:
        """Mark an answer as used; return the queued turn that it began, or "" for its own turn."""
        self._used.add(answer.turn_id)
        return answer.turn_id if answer.turn_id != self._host.turn_id else ""

    def component(self, component_id: str, surface: str = "main") -> Component | None:
        """Return a component as it is shown now; `None` if it is not shown."""
        tree = self._session.tree(surface)
        if tree is None or component_id not in tree.nodes:
            return None
        return tree.component(component_id)

    def permission(self, component_id: str) -> Permission | None:
        """Return the permission that a component asked for; `None` for another question."""
        turns = self._session.screen.turns.values()
        found = (turn.permissions.get(component_id) for turn in turns)
        return next((one for one in found if one is not None), None)

    def is_about(self, component_id: str, tool: str, digest: str) -> bool:
        """Return whether a component asked for permission to run a tool with an input."""
        known = self.permission(component_id)
        return known is not None and (known.tool, known.digest) == (tool, digest)

    def asks_same(self, component_id: str, asked: Component, mark: str = "") -> bool:
        """Return whether a component asked the same question.

        Args:
            component_id: Id of the earlier component.
            asked: The new component.
            mark: Id prefix of all components of this question. If empty, the components are
                compared by what they show.
        """
        if mark:
            return component_id.startswith(mark)
        shown = self.component(component_id)
        return shown is not None and (shown.type, _shown_props(shown.props)) == (
            asked.type,
            _shown_props(self._session.log.clean_component(asked).props),
        )

    def replace(self, question: Question) -> None:
        """Close a question that the turn asks again, so that late answers to it are refused."""
        self._host.settle()
        replace_question(self._session, question)
        self._host.changed()

    def has_secret(self, text: str) -> bool:
        """Return whether a text holds a secret, which a state must not."""
        return bool(self._session.redactor.clean(text)[1])

    def save_state(self) -> bool:
        """Record `turn.state` now; return whether that succeeded."""
        with suppress(ArpError, TypeError, ValueError):
            self._host.save_state()
            return True
        return False


def _shown_props(props: JsonObject) -> JsonObject:
    return {name: value for name, value in props.items() if name not in _ANSWERED_BY}
