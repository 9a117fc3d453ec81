"""What waits for a person survives every way in which a server ends, for every kind of agent.

Each agent asks for a permission in one session, a question in another one, and both at the same
time in a third one, as far as it can. The server is stopped or killed, and started again; people
answer on screens of each kind. The tool runs once, with the approved arguments; an answer reaches
the agent once. The ledger and all screens say the same after each of them.

Most of the time of a case is the start of its server, so one server has several agents. Each runs
with each ending always, and the screens take turns; with `--soak` each question is answered on
each screen. The page answers in `web/e2e/tests/restart.test.ts`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from arp.client.client import ArpClient, connect
from arp.ledger.fact import Fact
from tests.runtime.answering import BLUE, SCREENS, answer, open_questions, seen, until
from tests.runtime.model_server import ModelServer
from tests.runtime.runtimes_under_test import NEEDS
from tests.runtime.stop_stories import IN_TURN, PERMISSION, STOPPED_ONCE, STORIES, Story
from tests.runtime.stopped_servers import ENDINGS, SOON, Life, Place, facts_of, remote_runtimes

ROUNDS = range(len(SCREENS))
"""In each of them another screen answers each question; in the last one the server ends twice, but
see `STOPPED_ONCE`."""
GROUPS = {
    "small": ("plain", "function", "grpc", "http"),
    "pydantic-ai": ("pydantic-ai", "model-agent", "model-agent-mcp", "ag-ui"),
    "langgraph": ("langgraph", "openai-agents"),
    "claude-code": ("claude-code",),
    "codex": ("codex",),
    "opencode": ("acp:opencode",),
}
"""Which agents one server has."""


class Case(NamedTuple):
    """A server with some agents, a way to end, and which screen answers what."""

    group: str
    ending: str
    round: int

    def __str__(self) -> str:
        return f"{self.group}-{self.ending}-{self.round}"

    @property
    def is_permission_first(self) -> bool:
        """Whether the permission is answered first where two questions are open."""
        return (self.round + ENDINGS.index(self.ending)) % 2 == 0

    def screens(self, number: int, story: Story) -> list[str]:
        """Return where the answers in a session are given, one after the other."""
        screen = SCREENS[(self.round + number) % len(SCREENS)]
        # A terminal asks one thing at a time, so it answers what is left.
        before = "control" if screen == "client" else "client"
        return [screen] if len(story.asks) == 1 else [before, screen]


def marks_of(agents: Sequence[str]) -> list[pytest.MarkDecorator]:
    """Return what agents need."""
    return [getattr(pytest.mark, NEEDS[one]) for one in agents if one in NEEDS]


def cases() -> list[Any]:
    """Return all cases; one of the rounds runs always, each with other agents and endings."""
    found = []
    for row, group in enumerate(GROUPS):
        for column, ending in enumerate(ENDINGS):
            for number in ROUNDS:
                is_always = (row + column) % len(ROUNDS) == number
                marks = [*marks_of(GROUPS[group]), *(() if is_always else (pytest.mark.soak,))]
                case = Case(group, ending, number)
                found.append(pytest.param(case, id=str(case), marks=marks))
    return found


class Session:
    """One session: its story, a screen that stays, and the screens that answer."""

    def __init__(self, place: Place, agent: str, story: Story, case: Case, number: int) -> None:
        self.place, self.agent, self.story = place, agent, story
        self.screens = case.screens(number, story)
        self.is_permission_first = case.is_permission_first
        self.id = f"{agent.replace(':', '-')}-{'-'.join(story.asks)}"
        self.answers: list[str] = []
        """What people have answered, besides yes."""

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[Session]:
        """Connect the screen that stays."""
        async with connect(
            self.place.http, session_id=self.id, workflow=self.agent, backoff=SOON
        ) as client:
            self.client: ArpClient = client
            yield self

    async def asked(self) -> None:
        """Say what the story begins with, and wait until all of its questions are open."""
        await self.client.send_text(self.story.says)
        await until(self.client, lambda: len(self.open) == len(self.story.asks))

    @property
    def open(self) -> list[Any]:
        """The questions that are open, in the order in which they are answered."""
        found = sorted(open_questions(self.client), key=lambda one: one.type != "confirm")
        return found if self.is_permission_first else found[::-1]

    async def left_open(self) -> None:
        """Check that the turn waits: nobody has answered, nothing has failed."""
        await until(self.client, lambda: self.client.screen.turns["t1"].final)
        assert len(self.open) == len(self.story.asks)
        facts = await facts_of(self.place.ledger, self.id)
        check_left_open(facts)

    async def answered(self) -> None:
        """Answer the next question on its screen, and wait until the agent has taken it."""
        question = self.open[0]
        if question.type != "confirm":
            given = BLUE[question.type]
            self.answers.append(given if isinstance(given, str) else "Blue")
        await answer(self.client, self.place, question, self.screens.pop(0))
        await self.at_rest()

    async def at_rest(self) -> None:
        """Wait until the newest turn is over, or waits for what has no answer yet."""
        await until(self.client, self._is_at_rest)

    def _is_at_rest(self) -> bool:
        turns = list(self.client.screen.turns.values())
        is_done = all(one.final or one.status == "waiting" for one in turns[1:])
        return is_done and len(turns) > 1 and len(self.open) == len(self.screens)

    async def over(self) -> None:
        """Check that all is answered, and that each screen shows the same."""
        client = self.client
        turns = client.screen.turns
        await until(client, lambda: all(turn.final for turn in turns.values()))
        assert [turn.errors for turn in turns.values()] == [[] for _ in turns]
        assert {str(turn.status) for turn in turns.values()} == {"completed"}
        said = "".join(client.screen.text(turn_id) for turn_id in turns)
        for given in self.answers:
            assert said.count(given) == 1
        async with connect(self.place.http, session_id=self.id) as other:
            await until(other, lambda: other.screen.turns.keys() == turns.keys())
            await until(other, lambda: all(turn.final for turn in other.screen.turns.values()))
            assert seen(other) == seen(client)


def types(facts: list[Fact], turn_id: str) -> set[str]:
    return {fact.type for fact in facts if fact.turn_id == turn_id}


def check_left_open(facts: list[Fact]) -> None:
    """The turn waits: nobody has answered, nothing has failed."""
    assert types(facts, "t1") & {
        "action.resolved", "permission.resolved", "tool.failed", "tool.result", "runtime.error",
    } == set()  # fmt: skip
    (end,) = [fact for fact in facts if fact.type in ("turn.completed", "turn.failed")]
    assert (end.turn_id, end.payload["status"], end.status_reason) == (
        "t1",
        "waiting",
        "interrupted",
    )


def check_answered(facts: list[Fact], story: Story, agent: str) -> None:
    """Each question has one answer; what the answer allows is what was shown."""
    assert [fact.sequence for fact in facts] == list(range(1, len(facts) + 1))
    resolved = [fact for fact in facts if fact.type == "action.resolved"]
    asked = [fact for fact in facts if fact.type == "action.required"]
    # With two open, what is not answered yet is asked again in the turn of the first answer.
    decided = sorted(str(one.payload["decision"]) for one in resolved)
    assert decided.count("answered") == len(story.asks)
    assert set(decided[len(story.asks) :]) <= {"expired"}
    if len(story.asks) == 1:
        assert [(one.turn_id, one.payload["ends"]) for one in resolved] == [("t1", "completed")]
        assert [one.turn_id for one in asked] == ["t1"]
    if agent != "plain":
        allowed = [
            one.payload["digest"]
            for one in facts
            if one.type in ("permission.evaluated", "permission.resolved")
            and one.payload["decision"] == "allow"
        ]
        shown = {one.payload["digest"] for one in asked if "digest" in one.payload}
        assert (set(allowed), len(shown)) == (shown, story.asks.count(PERMISSION))


@asynccontextmanager
async def sessions_of(place: Place, case: Case) -> AsyncIterator[Sequence[Session]]:
    """Connect to a session for each story of each agent."""
    numbers = count()
    async with AsyncExitStack() as stack:
        sessions = [
            Session(place, agent, story, case, next(numbers))
            for agent in place.agents
            for story in STORIES[agent]
        ]
        for session in sessions:
            await stack.enter_async_context(session.connected())
        yield sessions


async def each(sessions: Sequence[Session], does: Callable[[Session], Awaitable[None]]) -> None:
    """Do something in one session after the other; an error says in which.

    Frameworks block the loop for seconds when they run first, and clients of the others give up.
    """
    for session in sessions:
        try:
            await does(session)
        except Exception as error:
            error.add_note(f"in the session {session.id}: {seen(session.client)}")
            raise


@pytest.mark.timeout(600)
@pytest.mark.parametrize("case", cases())
async def test_what_waits_for_a_person_survives(
    case: Case, tmp_path: Path, model_server: ModelServer
) -> None:
    place = Place(GROUPS[case.group], tmp_path, model_server.address)
    async with remote_runtimes(place):
        life = await Life.begin(place, case.ending)
        try:
            async with sessions_of(place, case) as sessions:
                await each(sessions, Session.asked)
                life = await life.end(place)
                assert place.ran() == []
                await each(sessions, Session.left_open)
                await each(sessions, Session.answered)
                if case.round == ROUNDS[-1] and not STOPPED_ONCE.intersection(place.agents):
                    life = await life.end(place)
                    await each(sessions, Session.at_rest)
                await each([one for one in sessions if one.screens], Session.answered)
                await each(sessions, Session.over)
            await life.stop()
        finally:
            await life.kill()
    assert place.ran() == sorted((one.agent, word) for one in sessions for word in one.story.ran)
    for one in sessions:
        check_answered(await facts_of(place.ledger, one.id), one.story, one.agent)


# -- what agents cannot ask ------------------------------------------------------------------------


@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    "agent", [pytest.param(agent, marks=marks_of([agent])) for agent in IN_TURN]
)
async def test_agent_asks_one_thing_after_the_other(
    agent: str, tmp_path: Path, model_server: ModelServer
) -> None:
    """The model calls two tools at once, and the second one asks when the first has its answer.

    While the first question is open, another session goes through a whole turn with a question:
    the agent has had the time to ask.
    """
    place = Place([agent], tmp_path, model_server.address)
    life = await Life.begin(place)
    try:
        async with connect(place.http) as client, connect(place.http) as other:
            await client.send_text(IN_TURN[agent])
            await until(client, lambda: open_questions(client))
            await other.send_text("run: true")
            (between,) = await until(other, lambda: open_questions(other))
            await answer(other, place, between, "client")
            await until(other, lambda: other.screen.turns["t1"].final)
            (first,) = open_questions(client)
            await answer(client, place, first, "client")
            await until(client, lambda: [one for one in open_questions(client) if one != first])
            (second,) = open_questions(client)
            await answer(client, place, second, "client")
            await until(client, lambda: client.screen.turns["t1"].final)
            session = client.session_id
            assert session is not None
        await life.stop()
    finally:
        await life.kill()
    facts = await facts_of(place.ledger, session)
    wanted = ("action.required", "action.resolved")
    assert [fact.type for fact in facts if fact.type in wanted] == [*wanted, *wanted]
    if agent == "acp:opencode":  # and it offers the model no tool that asks the user
        assert not {"question", "ask"} & {
            tool for one in model_server.requests for tool in one.tools
        }
    assert (agent, "alone") in place.ran()


def test_interruptions_of_openai_agents_are_approvals() -> None:
    from agents.result import RunResultStreaming

    fields = RunResultStreaming.__dataclass_fields__
    assert fields["interruptions"].type == "list[ToolApprovalItem]"
