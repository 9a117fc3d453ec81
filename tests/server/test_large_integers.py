"""An integer beyond 2^53 is the same on every screen, whatever carries it (protocol.md 1)."""

from __future__ import annotations

import asyncio
import json
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from arp.client.client import ArpClient
from arp.protocol.catalog import CATALOG
from arp.protocol.messages import ErrorMessage, RendererCapabilities, TurnMessage
from arp.server.ports.grpc_port import GrpcPort, GrpcSettings
from arp.server.ports.unix_port import UnixPort, UnixSettings
from arp.server.serve import Port
from arp.server.state import ServerState
from tests.server.large_integers import LARGE, LARGEST, app
from tests.support.serving import Serving, serving

WAIT_S = 30.0

TRANSPORTS = ["json", "msgpack", "cbor", "sse", "stdio", "unix", "grpc"]
TRANSPORTS += [f"object {one}" for one in TRANSPORTS if one != "sse"]

ALL = RendererCapabilities(components=[*CATALOG, "x-test-ids"])

SHOWN = {
    "made": {"headers": ["id"], "rows": [[str(LARGE)], [str(-LARGEST - 1)]], "sortable": True},
    "plain": {"headers": ["id"], "rows": [[str(LARGE)], [str(LARGEST)]]},
    "facts": {"items": [{"key": "id", "value": str(LARGEST)}]},
    "own": {"ids": [str(LARGE)]},
}


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ledger") / "ledger.db"


@pytest.fixture(scope="module")
def server(ledger: Path) -> Iterator[Serving]:
    folder = ledger.parent
    ports: list[Callable[[ServerState], Port]] = [
        lambda state: UnixPort(state, str(folder / "flat"), UnixSettings()),
        lambda state: GrpcPort(state, GrpcSettings()),
        lambda state: UnixPort(state, str(folder / "objects"), UnixSettings("msgpack", "object")),
    ]
    with serving(app, ledger=f"sqlite:{ledger}", ports=ports) as running:
        yield running


def address(server: Serving, transport: str) -> tuple[str, dict[str, Any]]:
    name = transport.removeprefix("object ")
    options: dict[str, Any] = {} if name == transport else {"dialect": "object"}
    unix, grpc, unix_objects = server.addresses
    if name == "stdio":
        agent = str(Path(__file__).with_name("large_integers.py"))
        command = [sys.executable, "-m", "arp.cli", "serve", agent, "--stdio"]
        return "stdio:", {"command": command + ["--dialect", "object"] * bool(options), **options}
    if name in ("sse", "unix", "grpc"):
        url = {"sse": f"http+sse://127.0.0.1:{server.port}", "grpc": grpc, "unix": unix}[name]
        return (unix_objects if options and name == "unix" else url), options
    return server.ws, {"encoding": name, **options}


async def waits(client: ArpClient, events: Any, component: str) -> None:
    """Wait until the turn waits for an answer to this component."""
    async for event in events:
        if isinstance(event, TurnMessage) and event.status == "waiting":
            shown = [one.id for one in client.screen.output(event.turn_id or "")]
            if component in shown:
                return


async def refusal(events: Any) -> str:
    """Return the next error."""
    async for event in events:
        if isinstance(event, ErrorMessage):
            return event.payload.error
    raise AssertionError("the client ended")


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_what_a_renderer_gets_has_no_number_that_a_double_would_round(
    server: Serving, transport: str
) -> None:
    """In tables, facts, own components, patches, choices and the state. Spec: W7."""
    url, options = address(server, transport)
    async with asyncio.timeout(WAIT_S), ArpClient(url, capabilities=ALL, **options) as client:
        events = client.events()
        await client.send_text("go")
        await waits(client, events, "which")
        shown = {one.id: one.props for one in client.screen.output("t1") if one.id in SHOWN}
        assert shown == SHOWN
        which = client.screen.output("t1")[-1].props
        assert [one["value"] for one in which["options"]] == [str(LARGE), str(LARGEST)]
        assert client.screen.shared_state == {"last_id": str(LARGEST), "all": [str(LARGE), 1]}
        # The agent gets the integer that it offered, whether text or a number comes back.
        taken: Any = str(LARGE) if "json" in transport else LARGE
        await client.send_selection([taken], source="which")
        await waits(client, events, "form")
        assert client.screen.output("t1")[-2].props["answer"] == str(LARGE)
        await client.send_form({"age": LARGE}, source="form")
        assert "fields.age: the number is too large to stay exact" in await refusal(events)
        await client.send_form({"age": "9007199254740991"}, source="form")
        await client.turn_done("t1")
        assert client.screen.text("t1").endswith(f"It is {LARGE - 1} and {2**53 - 1}.")


async def test_history_and_runs_are_exact_and_the_ledger_keeps_the_integers(
    server: Serving,
) -> None:
    """The facts are as they were recorded, with integers of 64 bits."""
    async with asyncio.timeout(WAIT_S), ArpClient(server.ws) as client:
        events = client.events()
        await client.send_text("go")
        await waits(client, events, "which")
        session = client.session_id

    def read(path: str) -> str:
        with urllib.request.urlopen(server.http + path) as answer:
            content: bytes = answer.read()
            return content.decode()

    for path in (f"/_api/chats/{session}", f"/_api/runs/{session}.t1"):
        body = await asyncio.to_thread(read, path)
        for value in (LARGE, LARGEST, -LARGEST - 1):
            assert f'"{value}"' in body
        assert _rounded(json.loads(body)) == []
    facts = await asyncio.to_thread(read, f"/_api/sessions/{session}/events?after=0&limit=500")
    assert LARGEST in _rounded(json.loads(facts))


def _rounded(value: Any) -> list[int]:
    """Return the integers in JSON that a double would round."""
    if isinstance(value, int):
        return [] if abs(value) < 2**53 else [value]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [found for one in items for found in _rounded(one)]
