"""A surface goes from one agent to another, which are two servers, by way of a renderer.

Source: docs/protocol.md 8, O23 to O26, O30.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from arp import App
from arp.client.client import ArpClient
from arp.hub.transfer_id import TransferEnds, new_transfer_id
from arp.ledger.fact import Fact, decode
from arp.live.live_session import LiveSession
from arp.protocol.components import Component
from arp.server.ports.grpc_port import GrpcPort, GrpcSettings
from arp.server.ports.unix_port import UnixPort, UnixSettings
from arp.server.serve import Port
from arp.server.state import ServerState
from tests.server.two_agents import APPS, KEY, Way, one_renderer, take
from tests.support.serving import Serving, serving
from tests.support.waiting import becomes

TRANSPORTS = ("ws json", "ws msgpack", "unix json", "unix msgpack", "grpc json")


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Serving]]:
    folder = tmp_path_factory.mktemp("sockets")
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(serving(app, ports=_ports(folder, name)))
            for name, app in APPS.items()
        }


def _ports(folder: Path, name: str) -> list[Callable[[ServerState], Port]]:
    return [
        lambda state: UnixPort(state, str(folder / f"{name}-j"), UnixSettings("json", "object")),
        lambda state: UnixPort(state, str(folder / f"{name}-m"), UnixSettings("msgpack", "object")),
        lambda state: GrpcPort(state, GrpcSettings()),
    ]


def ways(servers: dict[str, Serving], transport: str = "ws json") -> dict[str, Way]:
    """Return how a renderer reaches each agent."""
    _, _, encoding = transport.partition(" ")
    place = {"unix json": 0, "unix msgpack": 1, "grpc json": 2}.get(transport)
    return {
        name: Way(one.ws if place is None else one.addresses[place], encoding)  # type: ignore[arg-type]
        for name, one in servers.items()
    }


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


@pytest.mark.parametrize(
    ("transport", "how"), [*((one, "whole") for one in TRANSPORTS), ("ws json", "empty")]
)
async def test_the_other_agent_has_the_surface_that_a_renderer_hands_to_it(
    servers: dict[str, Serving], transport: str, how: str
) -> None:
    """With its content or without, whatever carries it: in the state, the ledger and the author's
    hands. Spec: O23."""
    name = f"{how}-{transport.replace(' ', '-')}"
    async with one_renderer(ways(servers, transport), name) as renderer:
        told = await renderer.say("giver", f"{name}-taker {how}", "transferred")
        assert told.endswith("transferred; []")
        (handed,) = renderer.handed
        session = live(servers["taker"], f"{name}-taker").session
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
            action = {"action": "confirm"}
            await renderer.use("taker", handed.new_id, "action", action, source="q")
            await renderer.until(lambda: "acquired {'action': 'confirm'}" in renderer.said("taker"))
        async with ArpClient(servers["taker"].ws, session_id=f"{name}-taker") as other:
            await other.ready()
            assert [one.id for one in other.screen.output("", "acquired")] == [*expected, "added"]
        there = [
            fact.payload["surface"]
            for fact in await facts(servers["taker"], f"{name}-taker")
            if fact.type == "artifact.changed" and fact.payload["surface"] != "main"
        ]
        assert set(there) == {"acquired"}
        given = live(servers["giver"], f"{name}-giver").session
        assert set(given.screen.surfaces) == {"main"}
        assert "from the taker" not in str(await facts(servers["giver"], f"{name}-giver"))
        assert handed.surface_id not in renderer.end("giver").objects.surfaces


async def test_a_surface_that_is_not_handed_over_stays_and_nobody_learns_why(
    servers: dict[str, Serving],
) -> None:
    """The same words whether the session exists or not. Spec: O24."""
    async with one_renderer(ways(servers), "no", lambda giver, taker: False) as renderer:
        first = await renderer.say("giver", "no-taker", "denied")
        assert first.endswith("denied: to_session: not transferred; ['side']")
        second = await renderer.say("giver", "nobody", "> nobody")
        await renderer.until(lambda: renderer.said("giver").count("denied") == 2)
        second = renderer.said("giver")
        assert second.endswith("denied: to_session: not transferred; ['side']")
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
    async with one_renderer(ways(servers), prefix) as renderer:
        end = renderer.end("taker")
        ends = TransferEnds("any", f"{prefix}-taker", "")
        new_id = end.acquire(content, None, new_transfer_id(ends, KEY))
        await renderer.flush()
        await renderer.until(lambda: renderer.refused)
        (refused,) = renderer.refused
        assert (refused.object_id, refused.code) == (new_id, code)
        await renderer.until(lambda: new_id not in end.objects.surfaces)
        session: Any = live(servers["taker"], f"{prefix}-taker").session
        assert set(session.screen.surfaces) == {"main"}


def _id(source: str, target: str, owner: str = "", key: str | None = KEY) -> str:
    return new_transfer_id(TransferEnds(source, target, owner), key)


FORGED: dict[str, Callable[[], str | None]] = {
    "no id": lambda: None,
    "its own": lambda: "made-up",
    "parts of its own": lambda: "made.up.by-it",
    "no base64": lambda: "made.!.by-it",
    "of another session": lambda: _id("forged-giver", "forged-other"),
    "of another user": lambda: _id("forged-giver", "forged-taker", owner="ada"),
    "of another key": lambda: _id("forged-giver", "forged-taker", key="a key of somebody else"),
    "not signed": lambda: _id("forged-giver", "forged-taker", key=None),
    "changed": lambda: _id("forged-giver", "forged-taker").replace(".", "x.", 1),
}


@pytest.mark.parametrize("name", FORGED)
async def test_surface_that_no_session_gives_away_is_on_no_screen_and_in_no_ledger(
    servers: dict[str, Serving], name: str
) -> None:
    """Of a renderer that makes one up: without an id, with its own, with another's. Spec: O30."""
    async with one_renderer(ways(servers), "forged") as renderer:
        end, session = renderer.end("taker"), live(servers["taker"], "forged-taker").session
        before = session.head
        end.acquire(
            [Component("a", "text", {"text": "Enter your password"})], "Bank", FORGED[name]()
        )
        await renderer.flush()
        await renderer.until(lambda: renderer.refused)
        (refused,) = renderer.refused
        wanted = "transfer_id: no transfer to this session is open"
        assert (refused.code, refused.message) == (9, wanted)
        assert set(session.screen.surfaces) == {"main"}
        assert session.head == before


async def test_ledger_says_from_which_session_a_surface_came(servers: dict[str, Serving]) -> None:
    """Spec: O30."""
    async with one_renderer(ways(servers), "origin") as renderer:
        await renderer.say("giver", "origin-taker whole", "transferred")
        taken = live(servers["taker"], "origin-taker")
        await becomes(lambda: set(taken.session.screen.surfaces) == {"main", "acquired"})
    found = await facts(servers["taker"], "origin-taker")
    origins = [one.payload["fromSession"] for one in found if "fromSession" in one.payload]
    assert origins == ["origin-giver"]


async def test_without_a_key_a_surface_comes_from_no_other_server() -> None:
    """The author is told that it was not handed over, and still has it. Spec: O30."""
    bare = App(title="Taker")
    bare.agent(take)
    with serving(APPS["giver"]) as one, serving(bare) as other:
        async with one_renderer(ways({"giver": one, "taker": other}), "bare") as renderer:
            told = await renderer.say("giver", "bare-taker whole", "denied")
            assert told.endswith("denied: to_session: not transferred; ['side']")
        assert set(live(other, "bare-taker").session.screen.surfaces) == {"main"}
