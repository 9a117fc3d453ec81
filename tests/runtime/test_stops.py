"""What waits for a person survives every way in which a server ends, for every kind of agent.

A server asks for a permission, or a question. It is stopped or killed, and started again; somebody
answers on one of the screens. The tool runs once, with the approved arguments; an answer reaches
the agent once. The ledger and the screens say the same after each of them.

Some of these run always: each kind of agent with SIGTERM, and all endings with two kinds. All of
them run with `--soak`.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from arp.client.client import ArpClient, connect
from arp.ledger.fact import Fact, decode
from arp.protocol.screen import TurnScreen
from arp.store.sqlite import SqliteStore
from tests.renderers.terminal.pseudo_terminal import PseudoTerminal
from tests.renderers.terminal.test_connect import command as terminal_command
from tests.runtime.model_server import ModelServer
from tests.runtime.runtimes_under_test import NEEDS
from tests.runtime.stopped_agents import ANSWER, QUESTION
from tests.server.rpc import rpc

ROOT = Path(__file__).parents[2]
START_S = 90.0
"""A framework takes seconds of a processor to import."""
STOP_S = 30.0
WAIT_S = 60.0
COMMAND = "echo approved >> ran.txt"
SAYS = {
    "permission": f"run: {COMMAND}",
    "question": f'tool: ask_user {{"question": "{QUESTION}"}}',
}


COLOURS = [{"label": name, "description": name} for name in ("Red", "Blue")]
OPTIONS = {"question": QUESTION, "header": "Colour", "options": COLOURS}
SAYS_OF = {
    "model-agent": 'tool: order {"item": "tea"}',  # a server of MCP asks where it is to go
    "claude-code": f"tool: AskUserQuestion {json.dumps({'questions': [OPTIONS]})}",
    "codex": f"tool: request_user_input {json.dumps({'questions': [{'id': 'c', **OPTIONS}]})}",
}
"""What the user says for a question, where the agent has another tool than `ask_user`."""


class Case(NamedTuple):
    """One way through."""

    agent: str
    """As `app_of` has it; `grpc` and `http` are remote runtimes."""
    asks: str
    ending: str
    screen: str

    def __str__(self) -> str:
        return "-".join(self)


ENDINGS = ("sigterm", "sigterm-twice", "sigkill", "reload")
SCREENS = ("client", "terminal", "control")
BOTH = ("permission", "question")
AGENTS: dict[str, tuple[str, ...]] = {
    "plain": BOTH,
    "langgraph": BOTH,
    "pydantic-ai": BOTH,
    "function": BOTH,
    "openai-agents": ("permission",),  # it asks nothing else
    "model-agent": BOTH,
    "ag-ui": ("permission",),
    "grpc": BOTH,
    "http": BOTH,
    "claude-code": BOTH,
    "codex": BOTH,
    "acp:opencode": ("permission",),
}
"""What each kind of agent can ask."""
SLOW = {"acp:opencode"}


def cases() -> list[Any]:
    """Return all cases; the screens take turns."""
    screens = cycle(SCREENS)
    found = []
    for agent, kinds in AGENTS.items():
        for ending in ENDINGS:
            for kind in kinds:
                screen = next(screens)
                if kind == "question" and agent in SAYS_OF:
                    screen = "client"
                case = Case(agent, kind, ending, screen)
                found.append(pytest.param(case, id=str(case), marks=marks_of(case)))
    return found


def marks_of(case: Case) -> list[pytest.MarkDecorator]:
    """Return what a case needs, and whether it runs with `--soak` only."""
    marks = [getattr(pytest.mark, NEEDS[case.agent])] if case.agent in NEEDS else []
    is_main = case.ending == "sigterm" and case.asks == "permission" and case.agent not in SLOW
    is_whole = case.agent == "plain"
    return marks if is_main or is_whole else [*marks, pytest.mark.soak]


class Place:
    """Where the lives of one server are: a directory, a port, a ledger."""

    def __init__(self, case: Case, directory: Path, model: ModelServer) -> None:
        self.case, self.directory, self.model = case, directory, model
        (directory / "agent" / "cwd").mkdir(parents=True)
        self.ledger = directory / "ledger.db"
        self.port = free_port()
        self.remote = ""
        """The address of the runtime, where another process has it."""
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "OPENAI_API_KEY": "none",
            "ASKING": f"function|{directory / 'agent'}|{model.address}",
        }

    @property
    def http(self) -> str:
        """The address of the server, the same in each of its lives."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def app(self) -> Path:
        """The file of the app, in a directory of its own: `--reload` watches that."""
        path = self.directory / "app" / "app.py"
        if not path.exists():
            path.parent.mkdir()
            agent = self.remote or self.case.agent
            place = self.directory / "agent"
            path.write_text(
                "from pathlib import Path\n"
                "from tests.runtime.stopped_agents import app_of\n"
                f"app = app_of({agent!r}, Path({str(place)!r}), {self.model.address!r})\n"
            )
        return path

    def ran(self) -> list[str]:
        """Return what the tool has written, a line for each time that it ran."""
        file = self.directory / "agent" / "cwd" / "ran.txt"
        return file.read_text().split() if file.exists() else []


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


class Life:
    """One life of the server, or with `--reload` several."""

    def __init__(self, child: asyncio.subprocess.Process) -> None:
        self.child = child

    @classmethod
    async def begin(cls, place: Place) -> Life:
        """Start the server, and wait until it is ready."""
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "arp.cli", "serve", str(place.app)),
            *("--port", str(place.port), "--ledger", f"sqlite:{place.ledger}", "--no-token"),
            *(("--reload",) if place.case.ending == "reload" else ()),
            env=place.environment,
            cwd=place.directory,
            stdout=asyncio.subprocess.PIPE,
        )
        life = cls(child)
        try:
            await life.ready()
        except BaseException:
            await life.kill()
            raise
        return life

    async def ready(self) -> None:
        """Wait until it says where it is."""
        assert self.child.stdout is not None
        async with asyncio.timeout(START_S):
            while not (line := (await self.child.stdout.readline()).decode()).startswith("ARP on"):
                assert line, "the server did not start"

    async def kill(self) -> None:
        if self.child.returncode is None:
            with suppress(ProcessLookupError):
                self.child.kill()
        await self.child.wait()

    async def end(self, place: Place) -> Life:
        """End the server as the case says, and start it again."""
        child = self.child
        match place.case.ending:
            case "reload":
                stamp = place.app.stat().st_mtime_ns + 1_000_000_000
                os.utime(place.app, ns=(stamp, stamp))
                await self.ready()
                return self
            case "sigkill":
                child.kill()
            case _:
                child.send_signal(signal.SIGTERM)
                if place.case.ending == "sigterm-twice":
                    child.send_signal(signal.SIGTERM)
        async with asyncio.timeout(STOP_S):
            code = await child.wait()
        assert code == (-signal.SIGKILL if place.case.ending == "sigkill" else 0)
        return await Life.begin(place)

    async def stop(self) -> None:
        """Stop it at the end of the test: its ledger is whole then."""
        if self.child.returncode is None:
            self.child.terminate()
            try:
                async with asyncio.timeout(STOP_S):
                    await self.child.wait()
            finally:
                await self.kill()


@asynccontextmanager
async def remote_runtime(place: Place) -> AsyncIterator[None]:
    """Serve the runtime in a process of its own, where the case wants that; it outlives servers."""
    if place.case.agent not in ("grpc", "http"):
        yield
        return
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "arp.cli", "ari", "serve", f"--{place.case.agent}", ":0"),
        *("--runtime", "tests.runtime.stopped_agents:served_runtime"),
        env=place.environment,
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert child.stdout is not None
        async with asyncio.timeout(START_S):
            line = (await child.stdout.readline()).decode()
        assert line.startswith("ARI on "), line
        place.remote = line.removeprefix("ARI on ").strip()
        yield
    finally:
        child.terminate()
        await child.wait()


# -- what people see and do ----------------------------------------------------------------------


async def until(client: ArpClient, found: Callable[[], Any]) -> Any:
    """Return what `found` returns as soon as it is something."""
    events = client.events()
    async with asyncio.timeout(WAIT_S):
        while not (value := found()):
            await anext(events)
    return value


def open_questions(client: ArpClient) -> list[Any]:
    """Return the questions that stand open on a screen."""
    return [
        one
        for turn_id in list(client.screen.turns)
        for one in client.screen.output(turn_id)
        if one.props.get("state") == "open"
    ]


def permission_of(client: ArpClient, component_id: str) -> Any:
    """Return the permission that a question asks."""
    found = (turn.permissions.get(component_id) for turn in client.screen.turns.values())
    return next(one for one in found if one is not None)


def seen(client: ArpClient) -> Any:
    """Return what a person sees on a screen."""
    return [
        (
            turn.id,
            turn.status,
            client.screen.text(turn.id),
            [(tool.tool, tool.ok, tool.error) for tool in turn.tools],
            [(one.id, one.type, one.props) for one in client.screen.output(turn.id)],
        )
        for turn in client.screen.turns.values()
    ]


async def reply(client: ArpClient, question: Any) -> None:
    """Answer a question by what its component takes: in all of them, something blue."""
    if question.type == "choices":
        await client.send_selection(["Blue"], source=question.id)
    elif question.type == "form":
        await client.send_form({"city": "Blue", "express": False}, source=question.id)
    else:
        await client.send_text(ANSWER, source=question.id)


async def answer(client: ArpClient, place: Place) -> None:
    """Answer what is open, on the screen that the case names."""
    (question,) = await until(client, lambda: open_questions(client))
    session = client.session_id
    assert session is not None
    is_permission = place.case.asks == "permission"
    if place.case.screen == "client":
        if is_permission:
            await client.send_permission(permission_of(client, question.id), True)
        else:
            await reply(client, question)
    elif place.case.screen == "terminal":
        await asyncio.to_thread(answer_at_a_terminal, place, session, is_permission)
    else:
        async with rpc(place.port) as program:
            await program.follow(session)
            asked = await program.until("action.required")
            more = {"digest": asked["payload"]["digest"]} if is_permission else {}
            await program.call(
                "agentSession/action/respond",
                sessionId=session,
                actionId=asked["actionId"],
                response=True if is_permission else ANSWER,
                **more,
            )


def answer_at_a_terminal(place: Place, session: str, is_permission: bool) -> None:
    command = terminal_command(place.http, session)
    with PseudoTerminal(command, place.directory, size=(60, 100)) as terminal:
        terminal.until_shown("/n]" if is_permission else QUESTION)
        terminal.type("y\r" if is_permission else f"{ANSWER}\r")
        terminal.until_at_rest(wait_s=WAIT_S)


def late_turn(client: ArpClient) -> TurnScreen | None:
    """Return the turn that the answer has begun, once it is over."""
    turn = list(client.screen.turns.values())[-1]
    return turn if turn.final and turn.id != "t1" else None


async def facts_of(ledger: Path, session_id: str) -> list[Fact]:
    store = SqliteStore(ledger, read_only=True)
    await store.open()
    try:
        return [decode(body) for _, body in await store.read(session_id, 0, 10_000)]
    finally:
        await store.aclose()


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


def check_answered(facts: list[Fact], case: Case) -> None:
    """One answer, which the turn behind it takes; what it allows is what was shown."""
    assert [fact.sequence for fact in facts] == list(range(1, len(facts) + 1))
    (resolved,) = [fact for fact in facts if fact.type == "action.resolved"]
    assert (resolved.turn_id, resolved.payload["decision"]) == ("t1", "answered")
    assert resolved.payload["ends"] == "completed"
    (asked,) = [fact for fact in facts if fact.type == "action.required"]
    assert asked.turn_id == "t1"
    if case.asks == "permission" and case.agent != "plain":
        allowed = [
            one for one in facts if one.turn_id == "t2" and one.type == "permission.evaluated"
        ]
        assert [(one.payload["decision"], one.payload["digest"]) for one in allowed] == [
            ("allow", asked.payload["digest"])
        ]


@pytest.mark.timeout(420)
@pytest.mark.parametrize("case", cases())
async def test_what_waits_for_a_person_survives(
    case: Case, tmp_path: Path, model_server: ModelServer
) -> None:
    place = Place(case, tmp_path, model_server)
    async with remote_runtime(place):
        life = await Life.begin(place)
        try:
            async with connect(place.http) as client:
                says = SAYS_OF.get(case.agent) if case.asks == "question" else None
                await client.send_text(says or SAYS[case.asks])
                await until(client, lambda: open_questions(client))
                session = client.session_id
                assert session is not None
                life = await life.end(place)
                assert place.ran() == []
                await until(client, lambda: client.screen.turns["t1"].final)
                check_left_open(await facts_of(place.ledger, session))
                await answer(client, place)
                turn = await until(client, lambda: late_turn(client))
                assert (turn.status, turn.errors) == ("completed", [])
                assert open_questions(client) == []
                assert client.screen.turns["t1"].status == "completed"
                async with connect(place.http, session_id=session) as other:
                    await until(other, lambda: late_turn(other))
                    assert seen(other) == seen(client)
                if case.asks == "question":
                    given = "blue" if says else ANSWER
                    assert given.lower() in client.screen.text(turn.id).lower()
            await life.stop()
        finally:
            await life.kill()
    assert place.ran() == (["approved"] if case.asks == "permission" else [])
    check_answered(await facts_of(place.ledger, session), case)


# -- two at once -----------------------------------------------------------------------------------

SECOND = "echo second >> ran.txt"


def calls(*named: tuple[str, str, str]) -> str:
    """Return what the user says for the model to call tools at once: name, argument, value."""
    texts = [f"{name} {json.dumps({argument: value})}" for name, argument, value in named]
    return f"tools: {' @@ '.join(texts)}"


ASKS_USER = ("ask_user", "question", QUESTION)
TWO_COMMANDS = f"two: {COMMAND} @@ {SECOND}"
AT_ONCE: dict[str, str] = {
    "plain": f"both: {COMMAND}",
    "langgraph": calls(("careful_bash", "command", COMMAND), ASKS_USER),
    "pydantic-ai": calls(("bash", "command", COMMAND), ASKS_USER),
    "function": f"both: {COMMAND}",
    "openai-agents": TWO_COMMANDS,
    "model-agent": TWO_COMMANDS,
    "ag-ui": TWO_COMMANDS,
    "grpc": f"both: {COMMAND}",
    "http": f"both: {COMMAND}",
}
"""What the user says for an agent to ask two things at once: a permission and a question where it
can ask both at the same time, else two permissions."""
ORDERS = ("permission-first", "permission-last")


def cases_at_once() -> list[Any]:
    """Return the cases: `asks` is which one is answered first, and a `+` another restart."""
    screens = cycle(("client", "control"))
    found = []
    for agent in AT_ONCE:
        for ending in ENDINGS:
            has_more = ending in ("sigterm", "sigkill")
            for order in (*ORDERS, *(f"{order}+" for order in ORDERS if has_more)):
                case = Case(agent, order, ending, next(screens))
                marks = [getattr(pytest.mark, NEEDS[agent])] if agent in NEEDS else []
                is_main = agent in ("plain", "pydantic-ai", "langgraph") and ending == "sigterm"
                if not is_main or order != ORDERS[1]:
                    marks.append(pytest.mark.soak)
                found.append(pytest.param(case, id=str(case), marks=marks))
    return found


def next_open(client: ArpClient, case: Case) -> Any:
    """Return what is answered next, in the order of the case."""
    found = sorted(open_questions(client), key=lambda one: one.type != "confirm")
    return found[0 if case.asks.startswith(ORDERS[0]) else -1]


async def answer_one(client: ArpClient, place: Place, screen: str) -> None:
    """Answer one of several, and wait until the others alone are open, in a turn that waits."""
    question, session = next_open(client, place.case), client.session_id
    is_permission = question.type == "confirm"
    assert session is not None
    if screen == "client":
        if is_permission:
            await client.send_permission(permission_of(client, question.id), True)
        else:
            await client.send_text(ANSWER, source=question.id)
        return
    async with rpc(place.port) as program:
        await program.follow(session)
        await program.until("action.required")
        asked = await required(program, question.id)
        more = {"digest": asked["payload"]["digest"]} if is_permission else {}
        await program.call(
            "agentSession/action/respond",
            sessionId=session,
            actionId=asked["actionId"],
            response=True if is_permission else ANSWER,
            **more,
        )


async def required(program: Any, component_id: str) -> Any:
    """Return the fact by which a component was asked."""
    while True:
        for fact in program.facts:
            component = fact["payload"].get("component") or {}
            if fact["type"] == "action.required" and component.get("id") == component_id:
                return fact
        await program.next()


def at_rest(client: ArpClient, number: int) -> bool:
    """Return whether so many are open, and the newest turn is over or waits for them."""
    turn = list(client.screen.turns.values())[-1]
    is_done = turn.final or turn.status == "waiting"
    return is_done and turn.id != "t1" and len(open_questions(client)) == number


def answered_parts(facts: list[Fact]) -> list[str]:
    """Return what was asked and answered, each answer once."""
    resolved = [one for one in facts if one.type == "action.resolved"]
    return sorted(str(one.payload["decision"]) for one in resolved)


@pytest.mark.timeout(420)
@pytest.mark.parametrize("case", cases_at_once())
async def test_two_that_wait_for_a_person_survive(
    case: Case, tmp_path: Path, model_server: ModelServer
) -> None:
    """Each shows once, and an answer to either goes to the call that asked, once."""
    place = Place(case, tmp_path, model_server)
    async with remote_runtime(place):
        life = await Life.begin(place)
        try:
            async with connect(place.http) as client:
                await client.send_text(AT_ONCE[case.agent])
                await until(client, lambda: len(open_questions(client)) == 2)
                session = client.session_id
                assert session is not None
                life = await life.end(place)
                await until(client, lambda: client.screen.turns["t1"].final)
                assert place.ran() == []
                check_left_open(await facts_of(place.ledger, session))
                assert len(open_questions(client)) == 2
                await answer_one(client, place, case.screen)
                await until(client, lambda: at_rest(client, 1))
                if case.asks.endswith("+"):
                    life = await life.end(place)
                    await until(client, lambda: at_rest(client, 1))
                await answer_one(client, place, "client")
                await until(client, lambda: at_rest(client, 0))
                turns = client.screen.turns
                await until(client, lambda: all(turn.final for turn in turns.values()))
                assert [turn.errors for turn in turns.values()] == [[] for _ in turns]
                assert {str(turn.status) for turn in turns.values()} == {"completed"}
                said = "".join(client.screen.text(turn_id) for turn_id in turns)
            await life.stop()
        finally:
            await life.kill()
    has_question = AT_ONCE[case.agent] != TWO_COMMANDS
    assert sorted(place.ran()) == (["approved"] if has_question else ["approved", "second"])
    assert said.count(ANSWER) == (1 if has_question else 0)
    decided = answered_parts(await facts_of(place.ledger, session))
    assert decided.count("answered") == 2
    assert set(decided) <= {"answered", "expired"}
