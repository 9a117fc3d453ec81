"""Renderers of the object dialect that know the draft alone, on every transport that carries it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path

import pytest

from arp.server.ports.grpc_port import GrpcPort, GrpcSettings
from arp.server.ports.unix_port import UnixPort, UnixSettings
from arp.server.serve import Port
from arp.server.state import ServerState
from tests.interop.plain_renderer import PlainRenderer, on_grpc, on_socket, on_stdio, on_unix
from tests.interop.table_agent import app
from tests.support.serving import Serving, serving

AGENT = Path(__file__).with_name("table_agent.py")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    path = str(tmp_path_factory.mktemp("sockets") / "objects")
    ports: list[Callable[[ServerState], Port]] = [
        lambda state: UnixPort(state, path, UnixSettings("msgpack", "object")),
        lambda state: GrpcPort(state, GrpcSettings()),
    ]
    with serving(app, ports=ports) as running:
        yield running


TRANSPORTS = ["json", "msgpack", "cbor", "unix", "grpc", "stdio"]


@pytest.fixture(params=TRANSPORTS)
async def renderer(request: pytest.FixtureRequest, server: Serving) -> AsyncIterator[PlainRenderer]:
    unix, grpc = server.addresses
    transports: dict[str, Callable[[], AbstractAsyncContextManager[PlainRenderer]]] = {
        "unix": lambda: on_unix(unix.removeprefix("unix:")),
        "grpc": lambda: on_grpc(grpc),
        "stdio": lambda: on_stdio(AGENT),
    }
    connect = transports.get(request.param, lambda: on_socket(server.ws, request.param))
    async with asyncio.timeout(40), connect() as made:
        await made.until(lambda: made.toplevel)
        yield made


def has_finals(renderer: PlainRenderer, count: int) -> bool:
    return renderer.finals >= count


def texts(renderer: PlainRenderer) -> str:
    return " ".join(str(one["props"].get("content")) for one in renderer.tree.values())


async def test_row_of_any_table_can_be_selected_again_and_again(renderer: PlainRenderer) -> None:
    """A table that asks for nothing, and a chart that shows as one; each begins a turn."""
    await renderer.act("text", {"text": "offers"})
    await renderer.until(lambda: renderer.finals)
    assert renderer.tree["c1"]["type"] == "table"
    for count, (source, row) in enumerate([("t1", 0), ("t1", 1), ("c1", 1)], 2):
        await renderer.act("selection", {"selected": [row]}, source_component=source)
        await renderer.until(partial(has_finals, renderer, count))
        assert f"selected [{row}] of {source}" in texts(renderer)
    assert "state" not in renderer.tree["t1"]["props"]
    assert renderer.ops("error") == []


async def test_refused_input_is_named_by_its_object_and_its_message(
    renderer: PlainRenderer,
) -> None:
    """Version 1 of `ArpInput` has no `refuse`. Spec: O8, O21."""
    number = await renderer.act("action", {"action": "confirm"}, source_component="nothing")
    await renderer.until(lambda: renderer.ops("ack"))
    (told,) = renderer.ops("error")
    assert (told["id"], told["payload"]["code"]) == (0, 1)
    assert told["payload"]["object_id"] == renderer.objects["ArpInput"]
    assert told["payload"]["refused_seq"] == number
    assert [one["payload"]["serial"] for one in renderer.ops("ack")] == [renderer.serial]
    await renderer.act("text", {"text": "offers"})  # the connection lives on
    await renderer.until(lambda: renderer.finals)


async def test_component_that_is_withdrawn_is_not_shown_any_more(renderer: PlainRenderer) -> None:
    """What is offered is what shows from then on. Spec: O31."""
    await renderer.act("text", {"text": "offers"})
    await renderer.until(lambda: renderer.finals)
    assert renderer.tree["t1"]["type"] == "table"
    table = renderer.names["component:table"]
    await renderer.say(renderer.registry, "global_remove", name=table)
    await renderer.until(lambda: renderer.tree["t1"]["type"] == "text")
    before, finals = len(renderer.got), renderer.finals
    await renderer.act("text", {"text": "offers"})
    await renderer.until(lambda: renderer.finals > finals)
    shown = [one for one in renderer.got[before:] if one["op"] in ("render", "patch")]
    assert "'t1', 'type': 'text'" in str(shown)
    assert "'table'" not in str(shown)
    offered = {"name": 99, "interface": "component:table", "version": 1}
    await renderer.say(renderer.registry, "global", **offered)
    await renderer.until(lambda: renderer.tree.get("t1", {}).get("type") == "table")
    assert renderer.ops("error") == []


async def test_suspended_surface_gets_its_final_commit_and_none_before(
    renderer: PlainRenderer,
) -> None:
    """Spec: O12, O16."""
    await renderer.act("text", {"text": "offers"})
    await renderer.until(lambda: renderer.finals)
    before = len(renderer.ops("commit"))
    await renderer.configure("suspended")
    await renderer.until(lambda: len(renderer.ops("commit")) > before)  # answers the configure
    before = len(renderer.ops("commit"))
    await renderer.act("text", {"text": "count"})
    await renderer.until(lambda: renderer.finals >= 2)
    commits = renderer.ops("commit")[before:]
    assert [one["payload"].get("final", False) for one in commits] == [True]
    assert renderer.tree["n"]["props"]["content"] == "39"
    await renderer.configure("activated")
    await renderer.act("text", {"text": "count"})
    await renderer.until(lambda: renderer.finals >= 3)


@pytest.mark.parametrize("op", ["closed", "close"])
async def test_closed_conversation_is_destroyed_and_the_connection_ends(
    renderer: PlainRenderer, op: str
) -> None:
    """`closed` of the surface, or `close` of its toplevel: the agent destroys it. Spec: O17."""
    await renderer.act("text", {"text": "offers"})
    await renderer.until(lambda: renderer.finals)
    await renderer.say(renderer.surface if op == "closed" else renderer.toplevel, op)
    await renderer.is_gone.wait()
    assert [one["id"] for one in renderer.ops("destroy")] == [renderer.surface]
    assert renderer.got[-1]["op"] == "destroy"
    assert renderer.ops("error") == []
