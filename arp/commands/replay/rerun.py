"""`arp replay CASE --agent`: run a recorded case again, and print the first difference.

Theory of operation. The turns of a case run one after another in a new session. Each turn gets its
recorded input, and its questions get their recorded answers. A turn that was stopped in the
recording is stopped again at the same point: after the facts that were recorded before the stop.
The new facts are reduced in the same way as those of the case, and compared turn by turn.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, suppress
from pathlib import Path

import click
import msgspec

from arp.app import App
from arp.audit.evidence.replay_case import (
    Case,
    Difference,
    ExpectedFact,
    Reducer,
    Response,
    TurnCase,
    decode_case,
    first_difference,
)
from arp.commands.output import fail, json_text, printable
from arp.commands.target import TargetError, find
from arp.control.control import Control
from arp.control.sessions import StartThread
from arp.control.turns import CancelTurn, StartTurn, TurnInput
from arp.ledger.fact import Fact, decode
from arp.protocol.errors import ArpError
from arp.server.application import Application

DIFFERENT = 1
"""Exit code if the new facts differ from the recorded ones."""

TURN_S = 60.0
"""Time limit of a turn, in seconds. A turn that reaches it counts as a difference."""

_ENDS = frozenset(("turn.completed", "turn.failed"))


class Rerun:
    """A case that is run again.

    Args:
        control: Control plane of the agent that runs the case again.
        case: The recorded case.
        turn_s: Time limit of a turn, in seconds.
    """

    def __init__(self, control: Control, case: Case, turn_s: float = TURN_S) -> None:
        self.session_id: str | None = None
        """Id of the new session; `None` before its first turn."""
        self._control = control
        self._case = case
        self._turn_s = turn_s
        self._reducer = Reducer()

    async def first_difference(
        self, advance: Callable[[TurnCase], object] = lambda _: None
    ) -> Difference | None:
        """Run the turns of the case until one differs.

        Args:
            advance: Called with each turn that does not differ.

        Returns:
            The first difference, or `None`.

        Raises:
            ArpError: An input that was accepted before is refused.
        """
        for turn in self._case.turns:
            facts = await self._run(turn)
            difference = first_difference(turn, facts)
            if difference is not None:
                return difference
            advance(turn)
        return None

    async def _run(self, turn: TurnCase) -> list[ExpectedFact]:
        """Run one turn and return its reduced facts, until its end or the time limit."""
        turn_input = TurnInput(
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
                input=turn_input,
                session_id=self.session_id,
                thread_id=turn.thread_id,
                workflow=workflow,
            )
        )
        self.session_id = state.session_id
        reduced: list[ExpectedFact] = []
        try:
            async with asyncio.timeout(self._turn_s):
                async with aclosing(self._facts(state.turn_id)) as facts:
                    await self._follow(turn, state.turn_id, facts, reduced)
        except TimeoutError:
            await self._stop(state.turn_id)
        return reduced

    async def _facts(self, turn_id: str) -> AsyncGenerator[Fact, None]:
        """Yield the facts of a turn until it ends."""
        assert self.session_id is not None
        async with aclosing(self._control.sessions.follow(self.session_id)) as entries:
            async for _, body in entries:
                fact = decode(body)
                if fact.turn_id == turn_id:
                    yield fact
                    if fact.type in _ENDS:
                        return

    async def _follow(
        self, turn: TurnCase, turn_id: str, facts: AsyncIterator[Fact], reduced: list[ExpectedFact]
    ) -> None:
        """Reduce the facts of a turn, answer its questions, and stop it at the recorded point."""
        responses = list(turn.responses)
        action_ids: dict[str, str] = {}  # new id of each action, by its reduced id
        is_stopped = False
        async for fact in facts:
            if is_stopped and turn.is_unfinished:
                # The rest is not compared. Reducing it would number further ids, and the ids of
                # the next turn would differ from those of the case.
                continue
            self._reducer.add(reduced, fact)
            if fact.type == "action.required" and fact.action_id is not None:
                action_ids[reduced[-1].ids["action_id"]] = fact.action_id
            while responses and not is_stopped and turn.is_due(responses[0], reduced):
                response = responses.pop(0)
                await self._answer(action_ids.get(response.action, "none"), response)
            if not is_stopped and (turn.is_to_be_stopped(reduced) or turn.has_left(reduced)):
                is_stopped = True
                await self._stop(turn_id)

    async def _answer(self, action_id: str, response: Response) -> None:
        assert self.session_id is not None
        answer = response.input
        with suppress(ArpError):  # if the answer is refused, the facts will differ
            await self._control.actions.answer(
                self.session_id, action_id, answer["input_type"], answer["data"]
            )

    async def _stop(self, turn_id: str) -> None:
        assert self.session_id is not None
        request = CancelTurn(session_id=self.session_id, turn_id=turn_id)
        with suppress(ArpError):  # the turn has ended meanwhile
            await self._control.turns.cancel(request)


def rerun(path: Path, agent: str, turn_s: float, *, as_json: bool) -> int:
    """Run a case again and print the first difference; return the exit code.

    Args:
        path: Path of the case.
        agent: Target of the app that runs the case.
        turn_s: Time limit of a turn, in seconds.
        as_json: Whether to print the result as JSON.

    Raises:
        NoCase: The file is not a case.
        ArpError: An input that was accepted before is refused.
    """
    case = _read_case(path)
    try:
        app = find(agent, App)
    except TargetError as error:
        fail(str(error))
    application = Application(app.served(ledger="memory:"))
    with click.progressbar(length=len(case.turns), label="turns", file=sys.stderr) as bar:
        difference = asyncio.run(
            _first_difference(application, case, turn_s, lambda _: bar.update(1))
        )
    if as_json:
        document = {"difference": difference, "turns": len(case.turns)}
        click.echo(json_text(msgspec.json.encode(document)))
    else:
        _print_result(case, difference)
    return 0 if difference is None else DIFFERENT


async def _first_difference(
    application: Application, case: Case, turn_s: float, advance: Callable[[TurnCase], object]
) -> Difference | None:
    try:
        again = Rerun(await application.control(), case, turn_s)
        return await again.first_difference(advance)
    finally:
        await application.aclose()


def _read_case(path: Path) -> Case:
    try:
        return decode_case(path.read_bytes())
    except OSError as error:
        fail(f"{path}: {error.strerror}")


def _print_result(case: Case, difference: Difference | None) -> None:
    if difference is None:
        click.echo(click.style("same  ", fg="green") + f"{len(case.turns)} turns")
        return
    click.echo(
        click.style("differs ", fg="red")
        + f"turn {printable(difference.turn_id)}, fact {difference.sequence}: "
        + printable(difference.where)
    )
    for name, value in (("expected", difference.expected), ("found", difference.found)):
        click.echo(f"  {name:9}{printable(msgspec.json.encode(value).decode())[:400]}")
