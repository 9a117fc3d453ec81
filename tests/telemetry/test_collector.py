"""A real server tells a real collector, over OTLP and HTTP, what the facts say."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from arp.telemetry.exporting import open_sink
from tests.server.processes import Process
from tests.server.rpc import rpc
from tests.telemetry.receiver import receiving

pytestmark = pytest.mark.timeout(120)

AGENT = Path(__file__).with_name("working.py")
START_S = 40.0
STOP_S = 20.0
TRACEPARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


async def serve(ledger: Path, environment: dict[str, str], *options: str) -> Process:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "arp.cli", "serve", str(AGENT), "--port", "0", *options),
        *("--ledger", f"sqlite:{ledger}"),
        stdout=asyncio.subprocess.PIPE,
        env=clean | environment,
    )
    assert child.stdout is not None
    async with asyncio.timeout(START_S):
        line = (await child.stdout.readline()).decode()
    return Process(child, int(line.rpartition(":")[2]))


async def ask(server: Process) -> dict[str, Any]:
    """Runs a turn by POST, as a traced program does; gives its first fact."""
    async with httpx.AsyncClient(base_url=server.http) as http:
        body = {"message": "my secret plan", "session_id": "s"}
        answer = await http.post("/working", json=body, headers={"traceparent": TRACEPARENT})
        assert answer.json()["status"] == "completed"
        page = (await http.get("/_api/sessions/s/events?type=turn.submitted")).json()
    first: dict[str, Any] = page["events"][0]
    return first


def attributes(span: Any) -> dict[str, Any]:
    return {one.key: one.value for one in span.attributes}


async def test_collector_gets_the_spans_of_a_turn_in_the_callers_trace(tmp_path: Path) -> None:
    with receiving() as collector:
        environment = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector.port}",
            "OTEL_EXPORTER_OTLP_HEADERS": "x-tenant=sales",
            "OTEL_SERVICE_NAME": "sales-agent",
            "OTEL_BSP_SCHEDULE_DELAY": "100",
        }
        server = await serve(tmp_path / "ledger.db", environment)
        try:
            first = await ask(server)
            turn = await asyncio.to_thread(collector.span, "invoke_agent working")
            assert await server.stop(STOP_S) == 0
        finally:
            await server.aclose()
    assert first["traceId"] == "4bf92f3577b34da6a3ce929d0e0e4736"
    named = {span.name: span for span in collector.spans}
    assert set(named) == {
        *("invoke_agent working", "chat example-large", "execute_tool shell", "process ls"),
    }
    assert {span.trace_id.hex() for span in collector.spans} == {first["traceId"]}
    assert (turn.span_id.hex(), turn.parent_span_id.hex()) == (first["spanId"], "00f067aa0ba902b7")
    tool = named["execute_tool shell"]
    assert named["chat example-large"].parent_span_id == turn.span_id == tool.parent_span_id
    assert named["process ls"].parent_span_id == tool.span_id
    assert attributes(turn)["gen_ai.conversation.id"].string_value == "s"
    assert collector.services == {"sales-agent"}
    assert collector.headers[0]["x-tenant"] == "sales"
    assert {"gen_ai.client.token.usage", "arp.cost", "arp.turn.queue_wait"} <= set(
        collector.metrics
    ), "the last metrics leave when the server stops"
    everything = str(collector.spans) + str(collector.metrics)
    assert "secret" not in everything
    assert "private" not in everything


async def test_a_turn_that_a_kill_cut_off_is_told_whole_by_the_next_server(tmp_path: Path) -> None:
    with receiving() as collector:
        address = f"http://127.0.0.1:{collector.port}"
        environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": address, "OTEL_BSP_SCHEDULE_DELAY": "100"}
        server = await serve(tmp_path / "ledger.db", environment)
        try:
            async with rpc(server.port) as client:
                await client.say("s", "wait")
                await client.follow("s")
                submitted = await client.until("turn.submitted")
                await client.until("tool.started")
            await server.kill()
            assert collector.spans == []
            again = await serve(tmp_path / "ledger.db", environment)
            try:
                turn = await asyncio.to_thread(collector.span, "invoke_agent working")
                tool = await asyncio.to_thread(collector.span, "execute_tool sleep")
                assert await again.stop(STOP_S) == 0
            finally:
                await again.aclose()
        finally:
            await server.aclose()
    assert len(collector.spans) == 2
    assert (turn.trace_id.hex(), turn.span_id.hex()) == (
        submitted["traceId"],
        submitted["spanId"],
    )
    assert tool.parent_span_id == turn.span_id
    assert [span.status.message for span in (turn, tool)] == ["interrupted", "interrupted"]
    assert turn.end_time_unix_nano > turn.start_time_unix_nano


async def test_without_a_word_about_it_nothing_is_exported(tmp_path: Path) -> None:
    server = await serve(tmp_path / "ledger.db", {"OTEL_SERVICE_NAME": "sales-agent"})
    try:
        async with rpc(server.port) as client:
            await client.follow(
                (await client.say("s", "hello", traceparent=TRACEPARENT))["sessionId"]
            )
            await client.until("turn.completed")
        assert await server.stop(STOP_S) == 0
    finally:
        await server.aclose()
    (submitted,) = client.of("turn.submitted")
    assert submitted["traceId"] == "4bf92f3577b34da6a3ce929d0e0e4736", "what came is kept"


async def test_a_collector_that_is_not_there_holds_nothing_up(tmp_path: Path) -> None:
    dead = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}
    server = await serve(tmp_path / "ledger.db", dead, "--otel")
    try:
        assert (await ask(server))["turnId"] == "t1"
        assert await server.stop(STOP_S) == 0
    finally:
        await server.aclose()


def test_no_exporter_is_made_where_none_is_wanted() -> None:
    sink = open_sink({"OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none"})
    sink.close()
    open_sink({"OTEL_SDK_DISABLED": "true"}).close()


def test_exporter_that_there_is_not_is_named() -> None:
    with pytest.raises(ValueError, match=r"OTEL_TRACES_EXPORTER: no exporter 'zipkin' here"):
        open_sink({"OTEL_TRACES_EXPORTER": "zipkin"})


def test_console_is_an_exporter_too(
    capsys: pytest.CaptureFixture[str],
) -> None:
    from tests.telemetry.test_exporting import span

    sink = open_sink({"OTEL_TRACES_EXPORTER": "console", "OTEL_METRICS_EXPORTER": "none"})
    sink.receive([span()])
    sink.close()
    told = json.loads(capsys.readouterr().err)
    assert told["name"] == "work"
    assert told["resource"]["attributes"]["service.name"] == "arp"
