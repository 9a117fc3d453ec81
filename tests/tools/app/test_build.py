"""A tool is built, used and repaired: a real project, real packages, a real server.

Each step that runs generated code waits for a person, who answers by the control plane.
"""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import httpx
import msgspec
import pytest
from mcp import Client

from arp.protocol.json_value import JsonObject
from arp.tools.registry.models import ToolState
from arp.tools.tasks.task_book import TaskRecord, TaskStatus
from tests.tools.app.smithy import WAIT_S, Smithy, data_url, noise, smithy

pytestmark = pytest.mark.timeout(180)

TOOL = "compresses_images"
TIMESTAMP = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Smithy, str]]:
    """The Tool Agent with the tool that was built in it, and the session of its task."""
    with smithy(tmp_path_factory.mktemp("data")) as made:
        task_id = made.ask_for("I need a tool that compresses images")
        waiting = made.becomes(task_id, "waiting_approval", "failed")
        assert waiting["waiting_for"] == f"Add the package pillow to {TOOL}?"
        asked = made.answer(waiting["session_id"], allow=True, scope="session")
        assert asked
        done = made.becomes(task_id, "completed", "failed")
        assert done["status"] == "completed", done
        yield made, waiting["session_id"]


def invoke(made: Smithy, **params: object) -> httpx.Response:
    body = {"params": {"image": data_url(noise()), **params}}
    return httpx.post(f"{made.url}/tools/{TOOL}/invoke", json=body, timeout=WAIT_S)


def test_tool_answers_over_http_with_what_it_says(built: tuple[Smithy, str]) -> None:
    made, _ = built
    answer = invoke(made, quality=20).json()
    assert answer["status"] == "success", answer
    result = answer["result"]
    assert result["original_size"] == len(noise())
    assert 0 < result["compressed_size"] < result["original_size"]
    assert result["compression_ratio"] == round(
        result["compressed_size"] / result["original_size"], 4
    )
    assert result["image"].startswith("data:image/jpeg;base64,")


def test_params_are_checked_before_the_tool_sees_them(built: tuple[Smithy, str]) -> None:
    answer = invoke(built[0], quality=700)
    assert answer.status_code == 422
    assert "params.quality: 700 is greater than the maximum of 100" in answer.json()["error"]


def test_tool_is_one_of_the_mcp_server(built: tuple[Smithy, str]) -> None:
    made, _ = built

    async def work() -> tuple[list[str], JsonObject]:
        async with Client(f"{made.url}/mcp") as client:
            listed = (await client.list_tools()).tools
            got = await client.call_tool(TOOL, {"image": data_url(noise()), "quality": 20})
            assert [part.type for part in got.content] == ["text", "image"]
            return [tool.name for tool in listed], dict(got.structured_content or {})

    names, result = made.run(work)
    assert names == [TOOL]
    assert 0 < result["compressed_size"] < result["original_size"]


def test_registry_and_task_have_the_formats_of_the_document(built: tuple[Smithy, str]) -> None:
    made, _ = built
    service = made.agent.service
    (task,) = [one for one in made.agent.backend.book.tasks() if one.tool_id == TOOL][:1]
    tool = service.registry.get(TOOL)
    port = tool.runtime.host_port
    assert 9001 <= port < 65536
    assert made.task(task.task_id) == {
        "task_id": task.task_id,
        "status": "completed",
        "result": {"tool_id": TOOL, "url": f"http://localhost:{port}/api/compress"},
    }
    assert service.registry.get_endpoint(TOOL) == {
        "type": "local",
        "host_dir": str(service.projects.root / TOOL),
        "http_method": "POST",
        "endpoint_path": "/api/compress",
    }


def test_log_has_the_exact_lines(built: tuple[Smithy, str]) -> None:
    made, _ = built
    lines = made.log[: next(n for n, line in enumerate(made.log) if "[COST]" in line) + 1]
    assert_lines(
        lines,
        r"\[CodingAgent\] Starting task: I need a tool that compresses images\.\.\.",
        r"\[TEXT\] I write a server that makes pictures smaller, with Pillow\.",
        r'\[TOOL_USE\] create_uv_project \| \{"name":"compresses_images"\}',
        r'\[TOOL_USE\] write_file \| \{"path":".*/main\.py","content":".*\.\.\."\}',
        r'\[TOOL_USE\] uv_add_dependency \| \{"project_dir":".*","package":"pillow"\}',
        r"\[TEXT\] First I try whether it can be loaded\.",
        r'\[TOOL_USE\] run_in_uv \| \{"project_dir":".*","command":"python .*"\}',
        r'\[TOOL_USE\] register_tool \| \{"tool_id":"compresses_images",.*\}',
        r"\[TEXT\] It is registered, and answers\.",
        r"\[DONE\] duration=\d+ms",
        r"\[COST\] \$0\.02",
    )


def assert_lines(lines: list[str], *patterns: str) -> None:
    """Compare lines of the log with those of section 10."""
    start = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \[tool_agent\.tool\.agent\] INFO: "
    assert len(lines) == len(patterns), lines
    for line, pattern in zip(lines, patterns, strict=True):
        assert re.fullmatch(start + pattern, line), line


def test_last_run_log_is_as_the_document_says(built: tuple[Smithy, str]) -> None:
    project = built[0].agent.service.projects.root / TOOL
    log = (project / "last_run.log").read_text()
    assert log == (
        'Command: python -c "import main; print(main.MAX_BODY)"\nExit Code: 0\n'
        "--- STDOUT ---\n16777216\n--- STDERR ---\n"
    )


def test_session_of_the_task_has_its_facts(built: tuple[Smithy, str]) -> None:
    made, session_id = built
    facts = made.facts(session_id)
    types = [fact["type"] for fact in facts]
    for wanted in (
        "tool.started", "tool.result", "process.started", "process.output", "process.completed",
        "permission.requested", "permission.resolved",
    ):  # fmt: skip
        assert wanted in types, wanted
    asked = next(fact for fact in facts if fact["type"] == "permission.requested")
    files = {one["path"] for one in asked["payload"]["files"]}
    assert {"main.py", "pyproject.toml"} <= files
    assert types.count("permission.requested") == 1  # the rest of the task was allowed with it


def test_killed_tool_is_noticed_by_the_monitor_repaired_and_healthy_again(
    built: tuple[Smithy, str],
) -> None:
    """Nobody calls the tool, and nobody checks it by hand."""
    made, _ = built
    service = made.agent.service
    assert invoke(made).status_code == 200
    before = service.registry.get(TOOL)
    begun, logged = len(made.sent), len(made.log)
    with watched(made):
        pid = made.run(lambda: _pid(made))
        os.kill(pid, signal.SIGKILL)
        repair = repaired(made, begun)
    alert, request, ready = messages(made, begun)
    assert alert == {
        "type": "health_alert",
        "payload": {
            "tool_id": TOOL,
            "container_id": "",
            "error": alert["payload"]["error"],
            "last_healthy": alert["payload"]["last_healthy"],
        },
    }
    assert TOOL in alert["payload"]["error"]
    assert re.fullmatch(TIMESTAMP, alert["payload"]["last_healthy"])
    assert json.loads(request["payload"].pop("task_spec")) == {
        "type": "repair_tool",
        "tool_id": TOOL,
        "error": alert["payload"]["error"],
        "container_id": "",
        "description": "The tool failed its health check: find out why, and repair it.",
    }
    assert request == {"type": "tool_request", "payload": {"task_id": repair.task_id}}
    tool = service.registry.get(TOOL)
    url = f"http://localhost:{tool.runtime.host_port}/api/compress"
    assert ready == {
        "type": "tool_ready",
        "payload": {
            "tool_id": TOOL,
            "result": "it was started again, and answers",
            "url": url,
            "task_id": repair.task_id,
        },
    }
    assert_lines(
        made.log[logged:],
        rf"\[CodingAgent\] Starting task: Repair {TOOL}: .{{1,80}}\.\.\.",
        rf'\[TOOL_USE\] restart \| \{{"tool_id":"{TOOL}"\}}',
        r"\[TEXT\] it was started again, and answers",
        r"\[DONE\] duration=\d+ms",
    )
    assert tool.scheduling.state is ToolState.RUNNING
    assert made.run(lambda: _pid(made)) != pid
    assert tool.stats == before.stats  # neither the check nor the repair is a call
    assert_next_calls_count(made)


def assert_next_calls_count(made: Smithy) -> None:
    """One call that works and one that fails are in the stats right away."""
    registry = made.agent.service.registry
    before, since = registry.get(TOOL).stats, datetime.now(UTC)
    assert invoke(made, quality=20).status_code == 200
    once = registry.get(TOOL).stats
    assert once.call_count == before.call_count + 1
    failures = round(before.error_rate * before.call_count)
    assert once.error_rate == pytest.approx(failures / once.call_count)
    assert once.last_used_time is not None
    assert since <= once.last_used_time <= datetime.now(UTC)
    latency_ms = once.avg_latency_ms * once.call_count - before.avg_latency_ms * before.call_count
    assert 0 < latency_ms < WAIT_S * 1000
    body = {"params": {"image": "bm8gcGljdHVyZQ=="}}  # the tool answers 400
    assert httpx.post(f"{made.url}/tools/{TOOL}/invoke", json=body).json()["status"] == "error"
    twice = registry.get(TOOL).stats
    assert twice.call_count == once.call_count + 1
    assert twice.error_rate == pytest.approx((failures + 1) / twice.call_count)


def test_tool_whose_code_is_broken_is_repaired_by_the_coding_agent(
    built: tuple[Smithy, str],
) -> None:
    """A restart does not help; the agent writes the file again, and a person allows its start."""
    made, _ = built
    service = made.agent.service
    main = service.projects.root / TOOL / "main.py"
    stats = service.registry.get(TOOL).stats
    begun, logged = len(made.sent), len(made.log)
    with watched(made):
        os.truncate(main, 0)
        os.kill(made.run(lambda: _pid(made)), signal.SIGKILL)
        until = time.monotonic() + WAIT_S
        while not (
            open_tasks := [one for one in made.agent.backend.book.tasks() if not one.is_over]
        ):
            assert time.monotonic() < until
            time.sleep(0.05)
        waiting = made.becomes(open_tasks[0].task_id, "waiting_approval", "failed")
        assert waiting["waiting_for"] == f"Start the tool {TOOL}?"
        made.answer(waiting["session_id"], allow=True)
        repair = repaired(made, begun)
    assert repair.result == "the tool is registered, and answers"
    assert [message["type"] for message in messages(made, begun)] == [
        "health_alert",
        "tool_request",
        "tool_ready",
    ]
    assert_lines(
        made.log[logged:],
        rf"\[CodingAgent\] Starting task: Repair {TOOL}: .{{1,80}}\.\.\.",
        rf'\[TOOL_USE\] restart \| \{{"tool_id":"{TOOL}"\}}',
        rf"\[TEXT\] .*{TOOL}.*",
        r"\[TEXT\] I write the server again, and start it\.",
        r'\[TOOL_USE\] write_file \| \{"path":"main\.py","content":".*\.\.\."\}',
        rf'\[TOOL_USE\] register_tool \| \{{"tool_id":"{TOOL}",.*\}}',
        r"\[TEXT\] It is repaired, and answers\.",
        r"\[DONE\] duration=\d+ms",
        r"\[COST\] \$0\.02",
    )
    assert main.stat().st_size > 1_000
    assert service.registry.get(TOOL).stats == stats
    assert service.registry.get(TOOL).scheduling.state is ToolState.RUNNING
    assert_next_calls_count(made)


@contextmanager
def watched(made: Smithy) -> Iterator[None]:
    """Check the tools each second within a block."""
    config = made.agent.service.settings.data_dir / "config.json"
    config.write_text('{"health_check_interval_s": 1}')
    try:
        yield
    finally:
        config.unlink()


def repaired(made: Smithy, begun: int) -> TaskRecord:
    """Wait for the outcome of a repair; return its task, completed."""
    until = time.monotonic() + WAIT_S
    ends = ("tool_ready", "tool_error")
    while not (outcomes := [one for one in messages(made, begun) if one["type"] in ends]):
        assert time.monotonic() < until, made.sent[begun:]
        time.sleep(0.05)
    task_id = outcomes[0]["payload"]["task_id"]
    done = made.becomes(task_id, "completed", "failed")
    assert done["status"] == "completed", done
    return made.agent.backend.book.get(task_id)


def messages(made: Smithy, begun: int) -> list[JsonObject]:
    """Return the messages between the router and the coding agent, as JSON."""
    return [msgspec.to_builtins(message) for message in made.sent[begun:]]


async def _pid(made: Smithy) -> int:
    from arp.tools.registry.models import RuntimeType

    runtime = made.agent.service.runtimes.of(made.agent.service.registry.get(TOOL))
    assert made.agent.service.registry.get(TOOL).runtime.type is RuntimeType.LOCAL
    pid = runtime.pid_of(TOOL)  # type: ignore[attr-defined]  # of local tools
    assert isinstance(pid, int)
    return pid


def test_build_that_a_person_refuses_runs_nothing(tmp_path: Path) -> None:
    with smithy(tmp_path) as made:
        task_id = made.ask_for("I need a tool that compresses images")
        waiting = made.becomes(task_id, "waiting_approval", "failed")
        made.answer(waiting["session_id"], allow=False)
        done = made.becomes(task_id, "completed", "failed")
        assert done["status"] == "failed"
        assert "not allowed" in done["error"]
        assert made.agent.service.registry.tools() == []
        types = [fact["type"] for fact in made.facts(waiting["session_id"])]
        assert "process.started" not in types
        task = made.agent.backend.book.get(task_id)
        assert task.status is TaskStatus.FAILED
        # Its name is free: the same request is built in a project of the same name.
        projects = made.agent.service.projects
        assert projects.projects() == []
        assert not (projects.root / TOOL).exists()
        again = made.ask_for("I need a tool that compresses images")
        waiting = made.becomes(again, "waiting_approval", "failed")
        assert waiting["waiting_for"] == f"Add the package pillow to {TOOL}?"
        assert [one.name for one in projects.projects()] == [TOOL]
