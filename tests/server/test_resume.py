"""Cut the connection after any message, come back by epoch and seq: the screen is as if never left.

Over real sockets, for every message of the scripted session in turn (architecture.md, invariant 2).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import msgspec
import pytest
from websockets.asyncio.client import connect

from arp.client.links.sse_link import stream_headers, stream_url
from arp.protocol.catalog import VERSIONS
from arp.protocol.connection.renderer_connection import RendererConnection
from arp.protocol.framing.event_stream import SseParser
from arp.protocol.json_value import Json
from arp.protocol.messages import RendererCapabilities, RendererHello
from tests.server.scripted import EVERYTHING, app
from tests.server.sockets import raw
from tests.support.serving import Serving, serving

WAIT_S = 30.0
AT_ONCE = 8
"""Sessions that run at the same time: the cuts are many."""

FEATURES = [
    "streaming",
    "input",
    "resume",
    "patch-append",
    "thinking",
    "tool-detail",
    "multi-surface",
]

PROFILES: dict[str, RendererCapabilities] = {
    "everything": RendererCapabilities(dict(VERSIONS), FEATURES),
    "batch": RendererCapabilities(dict(VERSIONS), [*FEATURES, "batch"]),
    "tables": RendererCapabilities(["text", "table", "form", "confirm", "group"], FEATURES),
    "text": RendererCapabilities(["text"], ["streaming", "input"]),
}

ANSWERS: dict[str, dict[str, Any]] = {
    "sure": {"input_type": "action", "data": {"action": "confirm"}},
    "form": {"input_type": "form_submit", "data": {"fields": {"name": "Ada", "age": 36}}},
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    path = tmp_path_factory.mktemp("ledger") / "ledger.db"
    with serving(app, ledger=f"sqlite:{path}") as running:
        yield running


def renderer(session_id: str, profile: str) -> RendererConnection:
    return RendererConnection(RendererHello(session_id=session_id, capabilities=PROFILES[profile]))


@asynccontextmanager
async def by_websocket(server: Serving, shown: RendererConnection) -> AsyncIterator[Any]:
    """Return the frames of one connection; it ends as if the network had gone."""
    async with connect(server.ws, compression=None, max_size=None) as socket:
        await socket.send(shown.hello(), text=True)
        yield aiter(socket)
        socket.transport.abort()


@asynccontextmanager
async def by_stream(server: Serving, shown: RendererConnection) -> AsyncIterator[Any]:
    """Return the frames of one event stream."""
    hello = msgspec.json.decode(shown.hello(), type=RendererHello)
    url = stream_url(f"{server.http}/_arp/v1/events", hello)
    async with (
        httpx.AsyncClient(verify=False) as client,
        client.stream("GET", url, headers=stream_headers(hello)) as response,
    ):
        assert response.status_code == 200
        yield frames(response)


async def frames(response: httpx.Response) -> AsyncIterator[str]:
    parser = SseParser()
    async for chunk in response.aiter_bytes():
        for event in parser.feed(chunk):
            yield event.data


WAYS = {"websocket": by_websocket, "stream": by_stream}


async def watch(way: str, server: Serving, shown: RendererConnection, cut: int | None) -> int:
    """Reads frames up to a number of them, or to the end of the turn; gives how many there were.

    What comes while nobody has time to send it goes in one frame, so there may be fewer this time.
    """
    count = 0
    async with WAYS[way](server, shown) as coming:
        async for frame in coming:
            shown.receive(frame)
            count += 1
            turn = shown.screen.turns.get("t1")
            if count == cut or (turn is not None and turn.final):
                break
    return count


async def play(server: Serving, session_id: str) -> None:
    """Asks, and answers what the agent asks back."""
    async with raw(server) as client:
        await client.hello(session_id, ["text", "confirm", "form"], "input")
        await client.say(session_id, "everything")
        for component, answer in ANSWERS.items():
            await client.until("turn", status="waiting")
            said = {"v": 1, "type": "input", "session_id": session_id}
            await client.send({**said, "source_component": component, **answer})
        await client.until_final("t1")


async def session(
    way: str, server: Serving, profile: str, cut: int | None
) -> tuple[int, Json, Json]:
    """Plays one session for a renderer that is cut off, and one that never leaves.

    Returns:
        How many frames the first saw before the cut, and both screens at the end.
    """
    session_id = f"{way}-{profile}-{cut}"
    leaving, staying = renderer(session_id, profile), renderer(session_id, profile)
    ready = asyncio.Event()
    stays = asyncio.ensure_future(stay(way, server, staying, ready))
    await ready.wait()
    playing = asyncio.ensure_future(play(server, session_id))
    count = await watch(way, server, leaving, cut)
    if cut is not None:
        await watch(way, server, leaving, None)
    await asyncio.gather(stays, playing)
    return count, leaving.screen.canonical(), staying.screen.canonical()


async def stay(way: str, server: Serving, shown: RendererConnection, ready: asyncio.Event) -> None:
    async with WAYS[way](server, shown) as coming:
        async for frame in coming:
            shown.receive(frame)
            if shown.epoch is not None:
                ready.set()
            turn = shown.screen.turns.get("t1")
            if turn is not None and turn.final:
                return


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("way", WAYS)
async def test_screen_after_a_cut_at_any_message_equals_one_that_never_left(
    server: Serving, way: str, profile: str
) -> None:
    """protocol.md 2.3: replay or snapshot, and either way the same. Spec: S3."""
    places = asyncio.Semaphore(AT_ONCE)

    async def one(cut: int) -> None:
        async with places:
            _, left, stayed = await session(way, server, profile, cut)
        assert left == stayed, f"cut after frame {cut}"

    async with asyncio.timeout(WAIT_S):
        count, _, stayed = await session(way, server, profile, None)
        await asyncio.gather(*[one(cut) for cut in range(1, count)])
    assert count > (5 if profile == "batch" else 25)
    if profile in ("everything", "batch"):
        assert isinstance(stayed, dict)
        shown = stayed["turns"]["t1"]
        assert {key: shown[key] for key in EVERYTHING} == EVERYTHING


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("place", ["wrong epoch", "seq too high", "other session"])
async def test_place_that_is_none_of_the_session_gets_a_snapshot(
    server: Serving, way: str, place: str
) -> None:
    """T31: an explicit snapshot; never silence, never other data. Spec: S18."""
    session_id = f"place-{way}-{place}"
    async with asyncio.timeout(WAIT_S):
        await play(server, session_id)
        await play(server, f"{session_id}-other")
        shown, other = renderer(session_id, "text"), renderer(f"{session_id}-other", "text")
        for one in (shown, other):
            await watch(way, server, one, None)
        before = shown.screen.canonical()
        if place == "wrong epoch":
            shown.epoch = "0123456789abcdef"
        elif place == "seq too high":
            shown.seq = 10**9
        else:
            shown.epoch, shown.seq = other.epoch, other.seq
        kinds = []
        async with WAYS[way](server, shown) as coming:
            async for frame in coming:
                kinds += [getattr(one, "resume", None) for one in shown.receive(frame)]
                if shown.epoch is not None and "snapshot" in kinds:
                    break
    assert shown.screen.canonical() == before
