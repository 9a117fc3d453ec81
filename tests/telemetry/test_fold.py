"""Spans and figures are what the facts say, and nothing that anybody said."""

from __future__ import annotations

from arp.telemetry import conventions as c
from tests.telemetry.story import BEGAN_NS, IN_TOOL, IN_TURN, Story

S = 10**9


def test_turn_is_a_span_from_start_to_end_with_its_waits() -> None:
    story = Story()
    story.start()
    story.tell("model.delta", IN_TURN, text="Hello")
    story.tell("model.delta", IN_TURN, text=" again")
    story.end()
    (turn,) = story.spans
    assert (turn.name, turn.kind, turn.parent_id, turn.error) == (
        *("invoke_agent sales", "internal", None, None),
    )
    assert (turn.start_ns, turn.end_ns) == (BEGAN_NS + 1 * S, BEGAN_NS + 4 * S)
    assert turn.attributes == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "sales",
        "gen_ai.conversation.id": "s",
        "arp.thread.id": "main",
        "arp.turn.id": "t1",
        "arp.turn.status": "completed",
        "arp.sequence": 1,
        "arp.queue_wait_s": 1.0,
        "arp.time_to_first_text_s": 1.0,
    }
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "sales"}
    assert story.figures("arp.turn.queue_wait") == [(1.0, agent)]
    assert story.figures("arp.turn.time_to_first_text") == [(1.0, agent)]
    assert story.figures("gen_ai.invoke_agent.duration") == [(3.0, agent)]


def test_tool_is_a_span_in_its_turn_and_a_process_in_its_tool() -> None:
    story = Story()
    story.start()
    story.tell("tool.started", IN_TOOL, tool="shell")
    story.tell("tool.args", IN_TOOL, tool="shell", args='{"command": "cat /secret"}')
    process = IN_TOOL | {"process_id": "p1"}
    story.tell("process.started", process, command=["/bin/cat", "/secret"], pid=7)
    story.tell("process.completed", process, exitCode=2)
    story.tell("tool.failed", IN_TOOL, tool="shell", error="cat: /secret: no such file")
    story.end()
    turn, tool, cat = (
        story.span(name) for name in ("invoke_agent sales", "execute_tool shell", "process cat")
    )
    assert tool.parent_id == turn.span_id
    assert cat.parent_id == tool.span_id
    assert {tool.trace.trace_id, cat.trace.trace_id} == {turn.trace.trace_id}
    assert (tool.start_ns, tool.end_ns) == (BEGAN_NS + 2 * S, BEGAN_NS + 6 * S)
    assert (tool.error, cat.error) == ("tool.failed", "exit_code")
    assert (tool.attributes[c.TOOL], tool.attributes[c.TOOL_CALL]) == ("shell", "t1.1")
    assert (cat.attributes[c.EXECUTABLE], cat.attributes[c.PID]) == ("cat", 7)
    assert cat.attributes[c.EXIT_CODE] == 2
    assert story.figures("gen_ai.execute_tool.duration") == [
        (
            4.0,
            {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": "shell",
                "error.type": "tool.failed",
            },
        )
    ]
    assert story.figures("arp.process.duration") == [
        (1.0, {"process.executable.name": "cat", "error.type": "exit_code"})
    ]
    assert "secret" not in str(story.given)


def test_model_request_is_a_client_span_with_tokens_and_cost() -> None:
    story = Story()
    story.start()
    request = IN_TURN | {"model_request_id": "m1"}
    story.tell("model.requested", request, model="large", provider="example")
    story.tell("model.delta", IN_TURN, text="Hi")
    story.tell(
        *("cost.recorded", request),
        **{"model": "large", "inputTokens": 12, "outputTokens": 5, "amount": 0.25},
        currency="USD",
    )
    story.tell("model.completed", request, model="large", finishReason="stop")
    story.end()
    model = story.span("chat large")
    assert model.kind == "client"
    assert model.attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "large",
        "gen_ai.provider.name": "example",
        "gen_ai.conversation.id": "s",
        "gen_ai.usage.input_tokens": 12,
        "gen_ai.usage.output_tokens": 5,
        "gen_ai.response.finish_reasons": ["stop"],
        "arp.thread.id": "main",
        "arp.turn.id": "t1",
        "arp.sequence": 3,
    }
    assert story.span("invoke_agent sales").attributes[c.INPUT_TOKENS] == 12
    common = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "example",
        "gen_ai.request.model": "large",
    }
    assert story.figures("gen_ai.client.operation.time_to_first_chunk") == [(1.0, common)]
    assert story.figures("gen_ai.client.operation.duration") == [(3.0, common)]
    assert story.figures("gen_ai.client.token.usage") == [
        (12, common | {"gen_ai.token.type": "input"}),
        (5, common | {"gen_ai.token.type": "output"}),
    ]
    assert story.figures("arp.cost") == [
        (0.25, {"arp.currency": "USD", "gen_ai.request.model": "large"})
    ]


def test_waits_for_leave_and_for_answers_are_measured() -> None:
    story = Story()
    story.start()
    leave = IN_TOOL | {"request_id": "r1"}
    question = IN_TURN | {"action_id": "t1.a1"}
    story.tell("permission.requested", leave, tool="deploy")
    story.tell("action.required", question, component={}, surface="main", tool="deploy")
    story.tell("action.resolved", question, decision="answered", resumes=True)
    denied = {"kind": "person", "name": "user"}
    story.tell("permission.resolved", leave, tool="deploy", decision="deny", deniedBy=denied)
    assert story.figures("arp.question.wait") == [
        (1.0, {"arp.decision": "answered", "gen_ai.tool.name": "deploy"})
    ]
    assert story.figures("arp.permission.wait") == [
        (3.0, {"arp.decision": "deny", "gen_ai.tool.name": "deploy"})
    ]


def test_turn_that_ends_closes_what_is_open_in_it() -> None:
    story = Story()
    story.start()
    story.tell("tool.started", IN_TOOL, tool="query")
    story.end("interrupted")
    tool, turn = story.spans
    assert (tool.name, tool.error, tool.attributes[c.ERROR]) == (
        *("execute_tool query", "interrupted", "interrupted"),
    )
    assert (turn.error, turn.attributes[c.STATUS]) == ("interrupted", "failed")
    story.tell("tool.failed", IN_TOOL, tool="query", error="late")
    assert len(story.spans) == 2


def test_cancelled_turn_is_no_error_and_one_that_never_ran_has_no_duration() -> None:
    story = Story()
    story.tell("turn.submitted", IN_TURN, input={})
    story.end("cancelled")
    (turn,) = story.spans
    assert (turn.error, turn.attributes[c.STATUS]) == (None, "cancelled")
    assert (turn.start_ns, turn.end_ns) == (BEGAN_NS, BEGAN_NS + 1 * S)
    assert story.figures("gen_ai.invoke_agent.duration") == []


def test_export_is_told_in_the_trace_of_its_turn_also_when_that_is_over() -> None:
    story = Story()
    story.start()
    story.end()
    evidence = IN_TURN | {"evidence_id": "ev1"}
    story.tell("evidence.changed", evidence, kind="evidence", state="exported")
    story.tell("evidence.changed", {"evidence_id": "ev2"}, kind="replay", state="unsupported")
    turn, export, other = story.spans
    assert (export.name, export.parent_id) == ("export evidence", turn.span_id)
    assert export.trace == turn.trace
    assert (other.name, other.parent_id, other.error) == ("export replay", None, "unsupported")
    assert other.trace.trace_id != turn.trace.trace_id
    assert story.figures("arp.exports") == [
        (1, {"arp.export.kind": "evidence", "arp.export.state": "exported"}),
        (1, {"arp.export.kind": "replay", "arp.export.state": "unsupported"}),
    ]


def test_the_callers_trace_goes_on() -> None:
    story = Story()
    trace_id, span_id, caller = "ab" * 16, "cd" * 8, "12" * 8
    traceparent = f"00-{trace_id}-{caller}-01"
    telemetry = {"traceparent": traceparent}
    story.start(trace_id=trace_id, span_id=span_id, telemetry=telemetry)
    story.end()
    (turn,) = story.spans
    assert (turn.kind, turn.trace.trace_id, turn.span_id) == ("server", trace_id, span_id)
    assert turn.trace.caller is not None
    assert (turn.trace.caller.span_id, turn.trace.caller.sampled) == (caller, True)


def test_the_same_facts_give_the_same_ids() -> None:
    def told() -> list[tuple[str, str]]:
        story = Story()
        story.start()
        story.tell("tool.started", IN_TOOL, tool="query")
        story.tell("tool.result", IN_TOOL, tool="query")
        story.end()
        return [(one.trace.trace_id, one.span_id) for one in story.spans]

    assert told() == told()
    assert len({span_id for _, span_id in told()}) == 2


def test_only_the_first_text_of_a_turn_is_wanted() -> None:
    story = Story()
    assert not story.fold.wants_text("t1")
    story.start()
    assert story.fold.wants_text("t1")
    story.tell("model.delta", IN_TURN, text="Hi")
    assert not story.fold.wants_text("t1")


def test_what_began_before_the_fold_did_is_not_made_up() -> None:
    story = Story()
    story.tell("tool.started", IN_TOOL, tool="query")
    story.tell("tool.result", IN_TOOL, tool="query")
    story.tell("turn.started", IN_TURN)
    story.end()
    assert story.given == []
