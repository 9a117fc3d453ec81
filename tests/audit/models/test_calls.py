"""Tool calls, processes and large output."""

from __future__ import annotations

from arp.audit.models import entities
from tests.audit.models.story import IN_TURN, Story

MOST_CALLS = entities.TOOL_CALLS.most[1]
MOST_OUTPUTS = entities.OUTPUTS.most[1]

CALL = {"step_id": "c1", "tool_call_id": "c1"}
SHA = "a" * 64


def called() -> Story:
    story = Story()
    story.start()
    story.in_turn("tool.started", CALL, tool="query")
    story.in_turn("tool.args", CALL, tool="query", args='{"sql":"…"}')
    return story


def test_a_tool_call_is_told_from_its_start_to_its_result() -> None:
    story = called()
    story.in_turn("tool.progress", CALL, text="half")
    (call,) = story.thread["toolCalls"]
    assert (call["tool"], call["status"], call["progress"]) == ("query", "running", "half")
    story.in_turn("tool.result", CALL, tool="query", preview="[1,2]", characters=5)
    (call,) = story.thread["toolCalls"]
    assert call == {
        "toolCallId": "c1",
        "stepId": "c1",
        "threadId": "main",
        "turnId": "t1",
        "tool": "query",
        "status": "completed",
        "args": '{"sql":"…"}',
        "progress": "half",
        "preview": "[1,2]",
        "startedAt": "2026-01-02T03:00:03.000000Z",
        "endedAt": "2026-01-02T03:00:06.000000Z",
        "firstSequence": 4,
        "lastSequence": 7,
    }
    times = story.snapshot["telemetrySummary"]["times"]
    assert times["tool"] == {"count": 1, "totalMs": 3000, "maxMs": 3000}


def test_a_failed_call_says_why_and_is_an_incident() -> None:
    story = called()
    story.in_turn("tool.failed", CALL, tool="query", error="no such table")
    (call,) = story.thread["toolCalls"]
    assert (call["status"], call["error"]) == ("failed", "no such table")
    (incident,) = story.thread["incidents"]
    assert (incident["toolCallId"], incident["message"]) == ("c1", "no such table")


def test_a_call_that_is_open_when_its_turn_ends_is_interrupted() -> None:
    story = called()
    story.tell("tool.started", IN_TURN | CALL | {"turn_id": "t2", "tool_call_id": "c2"}, tool="x")
    story.end(reason="interrupted")
    calls = {call["toolCallId"]: call["status"] for call in story.thread["toolCalls"]}
    assert calls == {"c1": "interrupted", "c2": "running"}


def test_a_result_without_a_beginning_is_kept_as_far_as_it_is_known() -> None:
    story = Story()
    story.in_turn("tool.result", CALL, tool="query")
    (call,) = story.thread["toolCalls"]
    assert (call["status"], call["tool"]) == ("completed", "query")
    assert "startedAt" not in call


def test_a_large_result_has_a_preview_and_a_ref() -> None:
    """ledger.md 6: a large tool result leaves a preview and an `outputRef`."""
    story = called()
    ids = CALL | {"output_ref": "blob1"}
    told = {"bytes": 10_485_760, "sha256": SHA, "preview": "line 1", "mime": "text/plain"}
    story.in_turn("output.spilled", ids, **told)
    story.in_turn("tool.result", CALL, tool="query", preview="line 1")
    assert story.thread["toolCalls"][0]["outputRef"] == "blob1"
    (output,) = story.thread["outputs"]
    assert output == {
        "outputRef": "blob1",
        "status": "spilled",
        "bytes": 10_485_760,
        "sha256": SHA,
        "mime": "text/plain",
        "preview": "line 1",
        "threadId": "main",
        "turnId": "t1",
        "toolCallId": "c1",
        "firstSequence": 6,
        "lastSequence": 6,
    }
    story.in_turn("output.expired", {"output_ref": "blob1"}, reason="old")
    story.in_turn("output.expired", {"output_ref": "blob2"}, reason="old")
    assert story.thread["outputs"][0]["status"] == "expired"


def test_a_process_is_told_from_its_start_to_its_end() -> None:
    story = Story()
    story.start()
    ids = {"process_id": "p1", "tool_call_id": "c1"}
    story.in_turn("process.started", ids, command=["make", "all"], cwd="/src", pid=42)
    story.in_turn("process.output", ids, stream="stdout", preview="…", bytes=700)
    story.in_turn("process.output", ids, stream="stderr", preview="…", bytes=300)
    story.in_turn("process.input", ids, bytes=5)
    story.in_turn("output.spilled", ids | {"output_ref": "b1"}, bytes=9, sha256=SHA, preview="…")
    story.in_turn("process.failed", ids, reason="exit 2", exitCode=2)
    (process,) = story.thread["processes"]
    assert process == {
        "processId": "p1",
        "status": "failed",
        "command": ["make", "all"],
        "cwd": "/src",
        "pid": 42,
        "exitCode": 2,
        "reason": "exit 2",
        "outputBytes": 1000,
        "inputBytes": 5,
        "outputRef": "b1",
        "threadId": "main",
        "turnId": "t1",
        "toolCallId": "c1",
        "startedAt": "2026-01-02T03:00:03.000000Z",
        "endedAt": "2026-01-02T03:00:08.000000Z",
        "firstSequence": 4,
        "lastSequence": 9,
    }
    assert [one["type"] for one in story.thread["incidents"]] == ["process.failed"]


def test_a_process_outlives_its_turn() -> None:
    story = Story()
    story.start()
    story.in_turn("process.started", {"process_id": "p1"}, command="serve")
    story.end()
    assert story.thread["processes"][0]["status"] == "running"
    story.tell("process.terminated", {"process_id": "p1"}, signal="KILL")
    (process,) = story.thread["processes"]
    assert (process["status"], process["signal"]) == ("terminated", "KILL")


def test_what_was_taken_out_or_cut_is_counted() -> None:
    story = Story()
    findings = [{"rule": "token", "count": 2}, {"rule": "key", "count": 1}, "nonsense"]
    story.in_turn("output.redacted", findings=findings)
    story.in_turn("output.redacted", findings="nonsense")
    story.in_turn("output.truncated", bytes=9, keptBytes=3, reason="too long")
    telemetry = story.snapshot["telemetrySummary"]
    assert (telemetry["secretsRedacted"], telemetry["outputsTruncated"]) == (3, 1)


def test_the_catalog_is_the_last_that_was_told() -> None:
    story = Story()
    story.in_turn("tool.catalog.resolved", CALL, tools=["query"])
    story.in_turn("tool.catalog.resolved", CALL, tools=["query", "shell"])
    assert story.state.records.values["catalog"] == ["query", "shell"]
    assert story.thread["toolCalls"] == []


def test_calls_and_outputs_that_are_kept_are_bounded() -> None:
    story = Story()
    for number in range(70):
        ids = {"step_id": f"c{number}", "tool_call_id": f"c{number}"}
        story.in_turn("tool.started", ids, tool="query")
        story.in_turn("output.spilled", {"output_ref": f"b{number}"}, bytes=1, preview="…")
        story.in_turn("tool.result", ids, tool="query")
    assert (len(story.thread["toolCalls"]), len(story.thread["outputs"])) == (
        MOST_CALLS,
        MOST_OUTPUTS,
    )
    assert story.state.records.older("toolCalls") == 70 - MOST_CALLS
    assert story.state.records.older("outputs") == 70 - MOST_OUTPUTS
