"""The scripted session ends in equal screens, whatever carries it (style.md, protocol.md 6)."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from arp.client.client import ArpClient
from arp.client.events import Event
from arp.protocol.messages import InputEcho, ToolEnd, ToolStart, TurnMessage
from arp.server.ports.grpc_port import GrpcPort, GrpcSettings
from arp.server.ports.unix_port import UnixPort, UnixSettings
from arp.server.serve import Port
from arp.server.state import ServerState
from tests.server.scripted import EVERYTHING, app
from tests.support.serving import Serving, serving

WAIT_S = 30.0


def _unix(name: str, settings: UnixSettings, folder: Path, state: ServerState) -> Port:
    return UnixPort(state, str(folder / name), settings)


PORTS: dict[str, Callable[[Path, ServerState], Port]] = {
    "unix json": partial(_unix, "json", UnixSettings("json")),
    "unix msgpack": partial(_unix, "msgpack", UnixSettings()),
    "object unix msgpack": partial(_unix, "objects", UnixSettings("msgpack", "object")),
    "grpc": lambda folder, state: GrpcPort(state, GrpcSettings()),
}
"""Ports besides HTTP, by their names in `TRANSPORTS`; `grpc` is also the port of `object grpc`."""

ENCODINGS: dict[str, dict[str, Any]] = {"unix json": {"encoding": "json"}}
"""Options of the client that name the encoding of a port, if it is not the default."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    folder = tmp_path_factory.mktemp("ledger")
    ports = [partial(make, folder) for make in PORTS.values()]
    with serving(app, ledger=f"sqlite:{folder / 'ledger.db'}", ports=ports) as running:
        yield running


def address(server: Serving, transport: str) -> tuple[str, dict[str, Any]]:
    if transport == "sse":
        return f"http+sse://127.0.0.1:{server.port}", {}
    dialect: dict[str, Any] = {"dialect": "object"} if transport.startswith("object ") else {}
    name = transport.removeprefix("object ")
    if name == "stdio":
        agent = str(Path(__file__).with_name("scripted.py"))
        command = [sys.executable, "-m", "arp.cli", "serve", agent, "--stdio"]
        return "stdio:", {"command": command + ["--dialect", "object"] * bool(dialect), **dialect}
    addresses = dict(zip(PORTS, server.addresses, strict=True))
    url = addresses.get(transport) or addresses.get(name)
    if url is not None:
        return url, {**ENCODINGS.get(name, {}), **dialect}
    return server.ws, {"encoding": name, **dialect}


ORDER = [
    *("input text", "running", "tool_start", "tool_end", "waiting"),
    *("running", "input action", "waiting", "running", "input form_submit", "completed"),
]
"""What happens, one after the other; text and commits are merged as the network allows."""


def named(event: Event) -> list[str]:
    match event:
        case InputEcho():
            return [f"input {event.input_type}"]
        case TurnMessage():
            return [event.status]
        case ToolStart() | ToolEnd():
            return ["tool_start" if isinstance(event, ToolStart) else "tool_end"]
        case _:
            return []


async def play(client: ArpClient, seen: list[str]) -> None:
    """Does what a user does: asks, confirms, fills the form; then a cancel and a failure."""
    events = client.events()
    await client.send_text("everything")
    async for event in events:
        seen += named(event)
        if not isinstance(event, TurnMessage) or event.status != "waiting":
            if isinstance(event, TurnMessage) and event.status == "completed":
                break
            continue
        shown = client.screen.output(event.turn_id or "")[-1]
        if shown.id == "sure":
            await client.send_action("confirm", source="sure")
        else:
            await client.send_form({"name": "Ada", "age": 36}, source="form")


TRANSPORTS = [
    *("json", "msgpack", "cbor", "sse", "stdio", "unix json", "unix msgpack", "grpc"),
    *("object json", "object msgpack", "object cbor"),
    *("object stdio", "object unix msgpack", "object grpc"),
]


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_scripted_session_ends_in_the_same_screen(server: Serving, transport: str) -> None:
    """One semantics, whatever carries it. Spec: W6."""
    url, options = address(server, transport)
    async with asyncio.timeout(WAIT_S), ArpClient(url, **options) as client:
        seen: list[str] = []
        await play(client, seen)
        await client.turn_done("t1")  # also its last commit has come
        shown = client.screen.canonical()["turns"]["t1"]
    assert {key: shown[key] for key in EVERYTHING} == EVERYTHING
    assert [kind for kind, _ in shown["inputs"]] == ["text", "action", "form_submit"]
    assert seen == ORDER


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_cancel_and_failure_end_turns_the_same_way(server: Serving, transport: str) -> None:
    """A cancel is no failure, and a failure shows no internals. Spec: S5, E2."""
    url, options = address(server, transport)
    async with asyncio.timeout(WAIT_S), ArpClient(url, **options) as client:
        await client.send_text("wait")
        async for event in client.events():
            if isinstance(event, TurnMessage) and event.status == "waiting":
                await client.cancel()
            if isinstance(event, TurnMessage) and event.status == "cancelled":
                break
        failed = await client.ask("fail")
        shown = client.screen.canonical()["turns"]
    assert shown["t1"]["status"] == "cancelled"
    assert shown["t1"]["final"] is True
    assert shown["t1"]["output"][-1]["props"]["state"] == "cancelled"
    assert failed.status == "failed"
    assert [payload.code for payload in failed.errors] == [18]
    assert "secret" not in repr(shown)
