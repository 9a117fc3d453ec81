"""A surface goes from one agent to another, which are two servers, by way of a renderer.

Source: docs/protocol.md 8, O23 to O26.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Subprotocol

from arp import App, Turn, ui
from arp.client.client import ArpClient
from arp.hub.live import LiveSession
from arp.ledger.fact import Fact, decode
from arp.protocol.catalog import VERSIONS
from arp.protocol.components import Component
from arp.protocol.errors import TransferDenied
from arp.protocol.limits import Limits
from arp.protocol.object_display import HandedOver, ObjectDisplay
from arp.protocol.object_messages import (
    CompositorCreateSurfaceRequest,
    DisplayErrorRequest,
    SessionCreateRequest,
    ShellGetToplevelRequest,
    SurfaceCommitRequest,
)
from arp.protocol.object_renderer import ObjectRendererConnection, offers
from arp.protocol.object_wire import ObjectMessage
from tests.serving import Serving, serving
from tests.waiting import becomes

WAIT_S = 20.0

giver, taker = App(title="Giver"), App(title="Taker")


@giver.agent
async def give(turn: Turn) -> None:
    """Shows a surface and hands it to the session that the user names."""
    to_session, _, how = turn.text.partition(" ")
    side = turn.surface("side", title="Report")
    side.show(
        ui.table(["n"], [[1], [2]], id="t"), ui.confirm("Sure?", id="q"), ui.text("x", id="own")
    )
    try:
        await side.transfer(to_session=to_session, retain_content=how != "empty")
    except TransferDenied as error:
        await turn.say(f"denied: {error.message}; {sorted(turn.surfaces)}")
    else:
        await turn.say(f"{await side.closed}; {sorted(turn.surfaces)}")


@taker.agent
async def take(turn: Turn) -> None:
    """Changes what it was given."""
    if turn.text == "change":
        turn.surface("acquired").show(ui.text("from the taker", id="added"))
    await turn.say(f"{turn.surfaces} {turn.input.surface} {turn.input.data}")


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, Serving]]:
    with serving(giver) as one, serving(taker) as two:
        yield {"giver": one, "taker": two}


class OneRenderer:
    """A renderer with a connection to each agent, and nothing that one may know of the other."""

    def __init__(self, may_transfer: Callable[[str, str], bool]) -> None:
        self.display = ObjectDisplay(may_transfer)
        self.sockets: dict[str, ClientConnection] = {}
        self.names: dict[tuple[str, str], int] = {}
        """The surfaces of each agent, by its name for them."""
        self.handed: list[HandedOver] = []
        self.refused: list[DisplayErrorRequest] = []
        self._came = asyncio.Event()

    def end(self, agent: str) -> ObjectRendererConnection:
        return self.display.agents[agent]

    async def run(self, agent: str, session_id: str) -> None:
        """Show what one agent sends, until the connection ends."""
        socket = self.sockets[agent]
        async for frame in socket:
            for event in self.display.receive(agent, frame, _now()):
                if isinstance(event, HandedOver):
                    self.handed.append(event)
                elif isinstance(event, ObjectMessage):
                    self._answer(agent, session_id, event)
                else:
                    raise AssertionError(event)
            await self.flush()
            self._came.set()

    def _answer(self, agent: str, session_id: str, event: ObjectMessage) -> None:
        end = self.end(agent)
        match event.payload:
            case SessionCreateRequest():
                end.resume(session_id, 0)
            case CompositorCreateSurfaceRequest(new_id, name):
                self.names[agent, name or ""] = new_id
            case ShellGetToplevelRequest(surface_id):
                end.configure(surface_id, 80, 24)
            case SurfaceCommitRequest():
                end.displayed(event.object_id)
            case DisplayErrorRequest() as refused:
                self.refused.append(refused)
            case _:
                pass

    async def flush(self) -> None:
        for agent, socket in self.sockets.items():
            for out in self.end(agent).data_to_send():
                await socket.send(out, text=True)

    async def until(self, ready: Callable[[], object]) -> None:
        async with asyncio.timeout(WAIT_S):
            while not ready():
                self._came.clear()
                await self._came.wait()

    def shown(self, agent: str, surface_id: int) -> dict[str, Component]:
        return {one.id: one for one in self.end(agent).content(surface_id)}

    async def say(self, agent: str, text: str, waits_for: str) -> str:
        """Say something on `main`, and return the text of `main` when it has certain words."""
        self.end(agent).input(self.names[agent, "main"], "text", {"text": text}, _now())
        await self.flush()
        await self.until(lambda: waits_for in self.said(agent))
        return self.said(agent)

    def said(self, agent: str) -> str:
        main = self.names.get((agent, "main"))
        content = self.shown(agent, main) if main is not None else {}
        return "\n".join(str(one.props.get("content")) for one in content.values())


def _now() -> float:
    return asyncio.get_running_loop().time()


@asynccontextmanager
async def one_renderer(
    servers: dict[str, Serving],
    prefix: str,
    may_transfer: Callable[[str, str], bool] = lambda giver, taker: True,
) -> AsyncIterator[OneRenderer]:
    made = OneRenderer(may_transfer)
    async with contextlib.AsyncExitStack() as stack, asyncio.timeout(WAIT_S):
        tasks: list[asyncio.Task[None]] = []
        for agent, server in servers.items():
            features = ["patch-append", "multi-surface", "overlays"]
            end = ObjectRendererConnection("json", Limits(), offers(dict(VERSIONS), features))
            made.display.attach(agent, end)
            socket = connect(server.ws, subprotocols=[Subprotocol("arp.v1.json")])
            made.sockets[agent] = await stack.enter_async_context(socket)
            tasks.append(asyncio.create_task(made.run(agent, f"{prefix}-{agent}")))
        await made.until(lambda: len(made.names) == len(servers))
        yield made
        for task in tasks:
            task.cancel()
        for outcome in await asyncio.gather(*tasks, return_exceptions=True):
            assert isinstance(outcome, asyncio.CancelledError), outcome


def live(server: Serving, session_id: str) -> LiveSession:
    hub = server.application.state.running
    assert hub is not None
    return hub.sessions[session_id]


async def facts(server: Serving, session_id: str) -> list[Fact]:
    """Return what the ledger of a server holds of a session."""
    hub = server.application.state.running
    assert hub is not None
    store = hub.store
    reading = asyncio.run_coroutine_threadsafe(store.read(session_id, 0, 500), server.loop)
    return [decode(body) for _, body in await asyncio.wrap_future(reading)]


@pytest.mark.parametrize("how", ["whole", "empty"])
async def test_the_other_agent_has_the_surface_that_a_renderer_hands_to_it(
    servers: dict[str, Serving], how: str
) -> None:
    """With its content or without: in the state, the ledger and the author's hands. Spec: O23."""
    async with one_renderer(servers, how) as renderer:
        told = await renderer.say("giver", f"{how}-taker {how}", "transferred")
        assert told.endswith("transferred; []")
        (handed,) = renderer.handed
        session = live(servers["taker"], f"{how}-taker").session
        await becomes(lambda: "acquired" in session.screen.surfaces)
        assert session.screen.info("acquired").title == "Report"
        expected = ["t", "q", "own"] if how == "whole" else []
        shown = [one.id for one in session.screen.surfaces["acquired"].output()]
        assert shown == expected
        # The author finds it and changes it, and the renderer shows that where it shows the rest.
        told = await renderer.say("taker", "change", "('acquired',)")
        await renderer.until(lambda: "added" in renderer.shown("taker", handed.new_id))
        assert [*renderer.shown("taker", handed.new_id)] == [*expected, "added"]
        # What the user does on it comes to the new agent alone.
        if how == "whole":
            renderer.end("taker").input(
                handed.new_id, "action", {"action": "confirm"}, _now(), source="q"
            )
            await renderer.flush()
            await renderer.until(lambda: "acquired {'action': 'confirm'}" in renderer.said("taker"))
        async with ArpClient(servers["taker"].ws, session_id=f"{how}-taker") as other:
            await other.ready()
            assert [one.id for one in other.screen.output("", "acquired")] == [*expected, "added"]
        there = [
            fact.payload["surface"]
            for fact in await facts(servers["taker"], f"{how}-taker")
            if fact.type == "artifact.changed" and fact.payload["surface"] != "main"
        ]
        assert set(there) == {"acquired"}
        given = live(servers["giver"], f"{how}-giver").session
        assert set(given.screen.surfaces) == {"main"}
        assert "from the taker" not in str(await facts(servers["giver"], f"{how}-giver"))
        assert handed.surface_id not in renderer.end("giver").objects.surfaces


async def test_a_surface_that_is_not_handed_over_stays_and_nobody_learns_why(
    servers: dict[str, Serving],
) -> None:
    """The same words whether the session exists or not. Spec: O24."""
    async with one_renderer(servers, "no", lambda giver, taker: False) as renderer:
        first = await renderer.say("giver", "no-taker", "denied")
        assert first.endswith("denied: to_session: not handed over; ['side']")
        second = await renderer.say("giver", "nobody", "> nobody")
        await renderer.until(lambda: renderer.said("giver").count("denied") == 2)
        second = renderer.said("giver")
        assert second.endswith("denied: to_session: not handed over; ['side']")
        assert not renderer.handed
        assert renderer.shown("giver", renderer.names["giver", "side"]).keys() == {"t", "q", "own"}
        session = live(servers["taker"], "no-taker").session
        assert set(session.screen.surfaces) == {"main"}


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ([Component("a", "confirm", {})], 12),
        ([Component("a", "x-made-up", {"a": 1})], 10),
    ],
)
async def test_what_does_not_fit_is_not_taken_over(
    servers: dict[str, Serving], content: list[Component], code: int
) -> None:
    """A renderer is not trusted: its components are checked as those of an author. Spec: O26."""
    prefix = f"odd-{code}"
    async with one_renderer(servers, prefix) as renderer:
        end = renderer.end("taker")
        new_id = end.acquire(content)
        await renderer.flush()
        await renderer.until(lambda: renderer.refused)
        (refused,) = renderer.refused
        assert (refused.object_id, refused.code) == (new_id, code)
        await renderer.until(lambda: new_id not in end.objects.surfaces)
        session: Any = live(servers["taker"], f"{prefix}-taker").session
        assert set(session.screen.surfaces) == {"main"}
