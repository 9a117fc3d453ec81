"""An app lives several times in a process: every part of it, in one event loop and in another."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.testclient import TestClient

from arp import App, Turn
from arp.access.principal import Principal
from arp.protocol.messages import Input
from arp.runtime.contract.services import RuntimeService
from arp.runtime.contract.types import McpServer
from arp.runtime.plain.fake import FakeRuntime, Says, Step, Uses
from arp.runtime.remote.grpc_runtime import GrpcRuntime
from arp.runtime.remote.http_runtime import HttpRuntime
from arp.server.application import Application
from arp.store.errors import StoreError
from arp.testing import VirtualRenderer, session
from arp.tools.app.agent import ToolAgent
from arp.tools.service import ToolService
from tests.runtime import mcp_server, test_grpc, test_http
from tests.runtime.model_server import ModelServer
from tests.runtime.runtimes_under_test import NEEDS, RUNTIMES
from tests.support.asgi_serving import serving_asgi
from tests.tools.local_tools import SERVER, active, local, settings_in

SUMS = f"{sys.executable} {mcp_server.__file__}"

WAIT_S = 60.0


@dataclass
class Tried:
    """An app, and a use of one of its parts, which fails if the part does not work."""

    app: App
    use: Callable[[VirtualRenderer], Awaitable[None]]
    stack: ExitStack = field(default_factory=ExitStack)


Part = Callable[[Path], Tried]


@contextmanager
def kept_alive(address: str) -> Iterator[str]:
    """Serve what is at an address over connections that stay open, as providers do."""

    async def forward(request: Request) -> Response:
        async with httpx.AsyncClient(timeout=WAIT_S) as client:
            url = f"{address}{request.url.path}"
            answer = await client.post(url, content=await request.body())
        kind = answer.headers["content-type"]
        return Response(answer.content, answer.status_code, media_type=kind)

    with serving_asgi(Starlette(routes=[Route("/{path:path}", forward, methods=["POST"])])) as url:
        yield url


def with_runtime(name: str) -> Part:
    def make(place: Path) -> Tried:
        under_test = RUNTIMES[name](place)
        app = App()
        app.runtime(under_test.make())
        tried = Tried(app, echo)
        tried.stack.callback(under_test.end)
        return tried

    return make


@contextmanager
def elsewhere(serve: Callable[[RuntimeService], AbstractAsyncContextManager[str]]) -> Iterator[str]:
    """Serve a runtime in a loop of its own, as another process does; return its address."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    served = serve(FakeRuntime({"echo: still here": [Says("still here")]}))
    try:
        yield asyncio.run_coroutine_threadsafe(served.__aenter__(), loop).result(WAIT_S)
        asyncio.run_coroutine_threadsafe(served.__aexit__(None, None, None), loop).result(WAIT_S)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


REMOTES: dict[str, tuple[Any, Callable[[str], RuntimeService]]] = {
    "grpc": (test_grpc.served, GrpcRuntime),
    "http": (test_http.served, HttpRuntime),
}


def with_remote(name: str) -> Part:
    served, kind = REMOTES[name]

    def make(place: Path) -> Tried:
        stack = ExitStack()
        app = App()
        app.runtime(kind(stack.enter_context(elsewhere(served))))
        return Tried(app, echo, stack)

    return make


async def echo(user: VirtualRenderer) -> None:
    turn = await user.say("echo: still here")
    assert (turn.status, turn.text.strip(), turn.error) == ("completed", "still here", "")


def with_lifespan(place: Path) -> Tried:
    @asynccontextmanager
    async def lifespan(app: App) -> AsyncIterator[asyncio.Queue[str]]:
        yield asyncio.Queue()

    app = App(lifespan=lifespan)

    @app.agent
    async def agent(turn: Turn) -> str:
        turn.app_state.put_nowait("fine")
        return str(await turn.app_state.get())

    async def use(user: VirtualRenderer) -> None:
        assert (await user.say("go")).text == "fine"

    return Tried(app, use)


def with_mcp(place: Path) -> Tried:
    app = App(mcp=[SUMS])

    @app.agent
    async def agent(turn: Turn) -> str:
        return str(await turn.use("add", {"a": 2, "b": 3}))

    async def use(user: VirtualRenderer) -> None:
        turn = await user.say("go")
        assert (turn.text, turn.error) == ("5", "")

    return Tried(app, use)


def with_model_agent(place: Path) -> Tried:
    stack = ExitStack()
    model = stack.enter_context(ModelServer())
    address = stack.enter_context(kept_alive(model.openai_address))
    app = App()
    server = McpServer("sums", sys.executable, (mcp_server.__file__,))
    app.model_agent("openai:fake-1", base_url=address, mcp=[server, server])

    async def use(user: VirtualRenderer) -> None:
        turn = await user.say('mcp: sums add {"a": 2, "b": 3}')
        assert (turn.status, turn.tool_names, turn.error) == ("completed", ["sums_add"], "")

    return Tried(app, use, stack)


def with_question(place: Path) -> Tried:
    """Deadlines and timers."""
    app = App()

    @app.agent
    async def agent(turn: Turn) -> str:
        return str(await turn.confirm("Go on?", timeout_s=60))

    async def use(user: VirtualRenderer) -> None:
        turn = await user.say("go")
        await user.advance(61)
        assert "Nobody answered in time" in (await turn.over()).error

    return Tried(app, use)


def with_permission(place: Path) -> Tried:
    app = App()
    steps: list[Step] = [Uses("shell", {"command": "ls"}, "README", asks=True), Says("Done.")]
    app.runtime(FakeRuntime({"list": steps}, cwd=place))

    async def use(user: VirtualRenderer) -> None:
        turn = await user.say("list")
        assert (await turn.allow()).text == "Done."

    return Tried(app, use)


def with_tool_agent(place: Path) -> Tried:
    """A tool that is a server, and a task, which goes over the message bus to the coder."""
    service = ToolService(settings_in(place))
    asyncio.run(service.projects.create("demo"))
    service.projects.write_file("demo/server.py", SERVER)
    active(service, local(service))
    smith = ToolAgent(FakeRuntime(cwd=place), service=service)
    app = App(tools=smith)

    @app.agent
    async def agent(turn: Turn) -> str:
        if turn.text == "build":
            await smith.build(turn, "A tool that compresses images")
        return str((await turn.use("double", {"n": 4}))["double"])

    async def use(user: VirtualRenderer) -> None:
        turn = await user.say("go")
        assert (turn.text, turn.error) == ("8", "")
        assert "no tool was registered: You said:" in (await user.say("build")).error

    return Tried(app, use)


PARTS: dict[str, Part] = {
    "lifespan": with_lifespan,
    "mcp": with_mcp,
    "model-agent": with_model_agent,
    "question": with_question,
    "permission": with_permission,
    "tool-agent": with_tool_agent,
    **{f"runtime-{name}": with_runtime(name) for name in RUNTIMES if name not in REMOTES},
    **{f"runtime-{name}": with_remote(name) for name in REMOTES},
}


def parts() -> list[Any]:
    """Return each part, with the mark of what it needs."""
    found = []
    for name, part in PARTS.items():
        needed = NEEDS.get(name.removeprefix("runtime-"))
        marks = [getattr(pytest.mark, needed)] if needed else []
        found.append(pytest.param(part, id=name, marks=marks))
    return found


@pytest.fixture
def tried(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Tried]:
    made = request.param(tmp_path)
    with made.stack:
        yield made


@pytest.mark.timeout(180)
@pytest.mark.parametrize("tried", parts(), indirect=True)
def test_part_works_in_a_second_life_and_in_a_third_in_another_loop(tried: Tried) -> None:
    async def life() -> None:
        async with session(tried.app, timeout_s=WAIT_S) as user:
            await tried.use(user)

    with asyncio.Runner() as runner:
        runner.run(life())
        runner.run(life())
    asyncio.run(life())


@pytest.mark.timeout(180)
@pytest.mark.parametrize("tried", parts(), indirect=True)
async def test_part_works_after_a_restart_and_after_a_crash(tried: Tried) -> None:
    async with session(tried.app, timeout_s=WAIT_S) as user:
        await tried.use(user)
        await user.restart()
        await tried.use(user)
        await user.restart(crash=True)
        await tried.use(user)


# -- mounted, and lifespans ------------------------------------------------------------------------


def answering(**more: Any) -> App:
    """Return an app whose agent asks when it is told to, and has all that needs a loop."""
    app = App(**more)

    @app.agent
    async def agent(turn: Turn) -> str:
        """Answers."""
        if turn.text == "ask":
            await turn.confirm("Go on?")
        return f"{turn.app_state} {turn.text}"

    return app


def mounted_in(kind: str, app: App) -> Any:
    """Return an application that does not run the lifespan of what it mounts."""
    parent: Any = {"starlette": Starlette, "fastapi": FastAPI}[kind]()
    parent.mount("/agent", app.asgi)
    return parent


@pytest.mark.timeout(180)
@pytest.mark.parametrize("kind", ["starlette", "fastapi"])
@pytest.mark.parametrize("is_entered", [True, False], ids=["with", "without"])
def test_mounted_app_answers_under_a_second_test_client(kind: str, is_entered: bool) -> None:
    """A client that is not entered has an event loop for each request."""
    entered, left = list[str](), list[str]()

    @asynccontextmanager
    async def lifespan(app: App) -> AsyncIterator[str]:
        entered.append("")
        yield "open"
        left.append("")

    app = answering(lifespan=lifespan, mcp=[SUMS])
    parent = mounted_in(kind, app)
    for life in range(1, 4):
        with ExitStack() as stack:
            client = TestClient(parent, base_url="http://127.0.0.1")
            if is_entered:
                stack.enter_context(client)
            for _ in range(2):
                answer = client.post("/agent/agent", json={"message": "hi"})
                assert answer.json()["text"] == "open hi", answer.text
            with client.websocket_connect("ws://127.0.0.1/agent/_arp/v1") as socket:
                assert socket.receive_json()["type"] == "hello"
        assert app.asgi.state.running is None
        assert len(entered) == len(left) == (life if is_entered else 3 * life)


@pytest.mark.timeout(180)
def test_end_of_a_loop_interrupts_a_turn_and_the_next_life_has_its_question(tmp_path: Path) -> None:
    """The end of the loop cancels all tasks; that is no cancel by the user."""
    app = answering(ledger=f"sqlite:{tmp_path / 'l.db'}")
    parent = mounted_in("starlette", app)

    async def ask() -> None:
        hub = await app.asgi.hub()
        live = await hub.open("s", Principal(), "agent")
        await hub.submit(
            Input(input_type="text", data={"text": "ask"}, session_id="s"), Principal(), "agent"
        )
        while not live.session.questions:
            await live.written()

    asyncio.run(ask())
    assert app.asgi.state.running is None
    with TestClient(parent, base_url="http://127.0.0.1") as client:
        page = client.get("/agent/_api/sessions/s/events").json()
    types = [one["type"] for one in page["events"]]
    assert "turn.cancelled" not in types
    assert "action.resolved" not in types


async def asked(application: Any, *events: str) -> list[Any]:
    """Run a lifespan as a server does; return what it answers."""
    waiting, answers = list(events), list[Any]()

    async def receive() -> dict[str, str]:
        return {"type": f"lifespan.{waiting.pop(0)}"}

    async def send(message: Any) -> None:
        answers.append(message["type"].removeprefix("lifespan."))

    await application({"type": "lifespan"}, receive, send)
    return answers


def test_lifespans_follow_each_other_and_one_that_failed_is_tried_again(tmp_path: Path) -> None:
    attempts = list[int]()

    @asynccontextmanager
    async def lifespan(app: App) -> AsyncIterator[str]:
        attempts.append(len(attempts))
        if len(attempts) == 1:
            raise ConnectionError("no database")
        yield "open"

    app = answering(lifespan=lifespan)
    app.runtime(FakeRuntime(cwd=tmp_path), name="fake")
    whole = ["startup.complete", "shutdown.complete"]

    async def in_sequence() -> None:
        assert await asked(app.asgi, "startup") == ["startup.failed"]
        assert await asked(app.asgi, "startup", "shutdown") == whole
        assert await asked(app.mounted("/a", inside=Starlette()), "startup", "shutdown") == whole

    asyncio.run(in_sequence())
    asyncio.run(in_sequence_again(app, whole))
    assert attempts == [0, 1, 2, 3]


async def in_sequence_again(app: App, whole: list[str]) -> None:
    assert await asked(app.asgi, "startup", "shutdown") == whole


async def test_ledger_that_could_not_be_opened_is_tried_again_with_runtimes(tmp_path: Path) -> None:
    place = tmp_path / "l.db"
    place.mkdir()
    app = App(ledger=f"sqlite:{place}")
    app.runtime(FakeRuntime(cwd=tmp_path))
    with pytest.raises(StoreError):
        await app.asgi.hub()
    place.rmdir()
    with TestClient(app.asgi, base_url="http://127.0.0.1") as client:
        assert client.post("/fake", json={"message": "hi"}).json()["text"] == "You said: hi"


# -- two at once -----------------------------------------------------------------------------------


async def test_servers_of_one_app_in_one_loop_share_its_parts(tmp_path: Path) -> None:
    app = answering()
    app.runtime(FakeRuntime(cwd=tmp_path), name="fake")
    async with session(app, workflow="fake") as first:
        async with session(app, workflow="fake") as second:
            assert (await second.say("two")).text == "You said: two"
        assert (await first.say("one")).text == "You said: one"


async def test_app_that_is_served_in_another_loop_says_so() -> None:
    app = answering(mcp=[SUMS])
    await app.asgi.hub()
    for use in (app.asgi.hub, app.asgi.aclose, Application(app.served()).hub):
        with pytest.raises(RuntimeError, match="served in another event loop: end that"):
            await asyncio.to_thread(asyncio.run, awaited(use))
    await app.asgi.aclose()


async def awaited(use: Callable[[], Awaitable[object]]) -> None:
    await use()


def test_loop_that_was_closed_under_an_app_says_what_to_do() -> None:
    app = answering()
    loop = asyncio.new_event_loop()
    loop.run_until_complete(app.asgi.hub())
    for task in asyncio.all_tasks(loop):
        task._log_destroy_pending = False  # type: ignore[attr-defined]  # on purpose
    loop.close()
    with pytest.raises(RuntimeError, match=r"closed before the app: run it with asyncio\.run"):
        asyncio.run(awaited(app.asgi.hub))


async def test_runtime_that_cannot_be_opened_again_says_what_to_do(tmp_path: Path) -> None:
    class Once(FakeRuntime):
        open = None  # type: ignore[assignment]  # as a runtime of somebody else

    app = App()
    app.runtime(Once(cwd=tmp_path))
    async with session(app) as user:
        assert (await user.say("hi")).text == "You said: hi"
        with pytest.raises(RuntimeError, match=r"fake was closed with the app .* make a new App"):
            await user.restart()
