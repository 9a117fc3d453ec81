"""The scripted session ends in equal screens, whatever carries it (style.md, protocol.md 6)."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
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


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    folder = tmp_path_factory.mktemp("ledger")
    ports: list[Callable[[ServerState], Port]] = [
        lambda state: UnixPort(state, str(folder / "json"), UnixSettings("json")),
        lambda state: UnixPort(state, str(folder / "msgpack"), UnixSettings()),
        lambda state: GrpcPort(state, GrpcSettings()),
        lambda state: UnixPort(state, str(folder / "objects"), UnixSettings("msgpack", "object")),
    ]
    with serving(app, ledger=f"sqlite:{folder / 'ledger.db'}", ports=ports) as running:
        yield running


def address(server: Serving, transport: str) -> tuple[str, dict[str, Any]]:
    if transport == "sse":
        return f"http+sse://127.0.0.1:{server.port}", {}
    dialect: dict[str, Any] = {"dialect": "object"} if transport.startswith("object ") else {}
    transport = transport.removeprefix("object ")
    if transport == "stdio":
        agent = str(Path(__file__).with_name("scripted.py"))
        command = [sys.executable, "-m", "arp.cli", "serve", agent, "--stdio"]
        return "stdio:", {"command": command + ["--dialect", "object"] * bool(dialect), **dialect}
    unix_json, unix_msgpack, grpc, unix_objects = server.addresses
    if dialect and transport == "unix msgpack":
        return unix_objects, dialect
    if transport == "unix json":
        return unix_json, {"encoding": "json"}
    if transport == "unix msgpack":
        return unix_msgpack, {}
    if transport == "grpc":
        return grpc, dialect
    return server.ws, {"encoding": transport, **dialect}


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
