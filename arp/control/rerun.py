"""Run a replay case again, over the control plane, and find the first difference.

Theory of operation. The turns of a case run one after another in a new session: each gets its
recorded input, its questions get their recorded answers, and a turn that was stopped is stopped
when everything that it had done before has happened again. The new facts are reduced as those of
the case were, and compared turn by turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, suppress

from arp.control.actions import Respond
from arp.control.control import Control
from arp.control.sessions import StartThread
from arp.control.turns import CancelTurn, StartTurn, TurnInput
from arp.ledger.exports.replay_case import (
    Case,
    Difference,
    Expected,
    Reducer,
    TurnCase,
    first_difference,
)
from arp.ledger.fact import Fact, decode
from arp.protocol.errors import ArpError
from arp.protocol.json_value import Json

TURN_S = 60.0
"""How long a turn may take, in seconds; one that hangs differs from one that ended."""

_ENDS = frozenset(("turn.completed", "turn.failed"))


class Rerun:
    """A case that is run again.

    Args:
        control: Of the agent that runs the case again.
        case: What was recorded.
        turn_s: How long a turn may take, in seconds.
    """

    def __init__(self, control: Control, case: Case, turn_s: float = TURN_S) -> None:
        self.session_id: str | None = None
        """Of the new session; `None` before its first turn."""
        self._control = control
        self._case = case
        self._turn_s = turn_s
        self._reducer = Reducer()

    async def first_difference(
        self, advance: Callable[[TurnCase], object] = lambda _: None
    ) -> Difference | None:
        """Run turn after turn until one differs.

        Args:
            advance: Is called with each turn that was the same.

        Raises:
            ArpError: An input is refused that was accepted before.
        """
        for turn in self._case.turns:
            found = await self._run(turn)
            difference = first_difference(turn, found)
            if difference is not None:
                return difference
            advance(turn)
        return None

    async def _run(self, turn: TurnCase) -> list[Expected]:
        request = TurnInput(
            input_type=turn.input.get("input_type", "text"), data=turn.input.get("data", {})
        )
        workflow = self._case.workflow or None
        if self._case.workflow not in self._control.context.plane.workflows:
            workflow = None
        if turn.thread_id is not None:
            thread = StartThread(
                session_id=self.session_id, thread_id=turn.thread_id, workflow=workflow
            )
            self.session_id = (await self._control.sessions.start_thread(thread)).session_id
        state = await self._control.turns.start(
            StartTurn(
                input=request,
                session_id=self.session_id,
                thread_id=turn.thread_id,
                workflow=workflow,
            )
        )
        self.session_id = state.session_id
        found: list[Expected] = []
        try:
            async with asyncio.timeout(self._turn_s):
                async with aclosing(self._facts(state.turn_id)) as facts:
                    await self._follow(turn, state.turn_id, facts, found)
        except TimeoutError:
            await self._stop(state.turn_id)
        return found

    async def _facts(self, turn_id: str) -> AsyncGenerator[Fact, None]:
        """Yield the facts of a turn, to its end."""
        assert self.session_id is not None
        async with aclosing(self._control.sessions.follow(self.session_id)) as entries:
            async for _, body in entries:
                fact = decode(body)
                if fact.turn_id == turn_id:
                    yield fact
                    if fact.type in _ENDS:
                        return

    async def _follow(
        self, turn: TurnCase, turn_id: str, facts: AsyncIterator[Fact], found: list[Expected]
    ) -> None:
        answers = list(turn.answers)
        is_stopped = False
        async for fact in facts:
            if is_stopped and turn.is_unfinished:
                continue  # the rest is not compared, and must not count ids
            self._reducer.add(found, fact)
            if fact.type == "action.required" and fact.action_id is not None and answers:
                await self._answer(fact.action_id, answers.pop(0))
            if not is_stopped and turn.is_to_be_stopped(found):
                is_stopped = True
                await self._stop(turn_id)

    async def _answer(self, action_id: str, answer: Json) -> None:
        assert self.session_id is not None
        request = Respond(session_id=self.session_id, action_id=action_id, response=answer)
        with suppress(ArpError):  # an answer that no longer fits shows as a difference
            await self._control.actions.respond(request)

    async def _stop(self, turn_id: str) -> None:
        assert self.session_id is not None
        request = CancelTurn(session_id=self.session_id, turn_id=turn_id)
        with suppress(ArpError):  # it has ended meanwhile
            await self._control.turns.cancel(request)
