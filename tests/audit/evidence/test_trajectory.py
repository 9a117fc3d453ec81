"""Facts become an ATIF trajectory: version 1.8, nothing invented."""

from __future__ import annotations

import json
from typing import Any

from arp.audit.evidence.trajectory import Agent, Trajectory, required_field_status
from arp.protocol.json_value import JsonObject
from tests.ledger.historian import Historian

TURN = {"thread_id": "main", "turn_id": "t1"}


def call(name: str) -> dict[str, Any]:
    return {**TURN, "step_id": "s1", "tool_call_id": name}


def asked(told: Historian, **data: Any) -> None:
    told.add("turn.submitted", {"input": {"input_type": "text", "data": data}}, **TURN)


def made(told: Historian, extra: JsonObject | None = None) -> Any:
    trajectory = Trajectory("trial-1", Agent("counter", "2.1"))
    for fact in told.facts:
        trajectory.add(fact)
    return json.loads(json.dumps(trajectory.document(extra)))


def bare(steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Gives steps without their times and sequences."""
    return [
        {name: step[name] for name in step if name not in ("timestamp", "extra")} for step in steps
    ]


def test_a_request_a_call_and_a_result_are_one_step_with_what_it_cost() -> None:
    told = Historian()
    asked(told, text="How many?")
    request = {**TURN, "model_request_id": "m1"}
    told.add("model.requested", {"model": "large"}, **request)
    told.add("reasoning.delta", {"text": "let me "}, **TURN)
    told.add("reasoning.delta", {"text": "look"}, **TURN)
    told.add("model.delta", {"text": "I look."}, **TURN)
    told.add("tool.started", {"tool": "shell"}, **call("c1"))
    told.add("tool.args", {"tool": "shell", "args": '{"command":"ls"}'}, **call("c1"))
    spent = {"model": "large", "inputTokens": 800, "outputTokens": 64, "cachedInputTokens": 500}
    told.add("cost.recorded", {**spent, "amount": 0.25, "currency": "USD"}, **request)
    told.add("tool.result", {"tool": "shell", "preview": "a b c"}, output_ref="o1", **call("c1"))
    told.add("model.requested", {"model": "small"}, **TURN, model_request_id="m2")
    told.add("model.delta", {"text": "3"}, **TURN)
    spent = {"model": "small", "inputTokens": 900, "outputTokens": 1}
    told.add("cost.recorded", {**spent, "amount": 2.5, "currency": "EUR"}, **TURN)
    told.add("turn.completed", {"status": "completed"}, status="completed", **TURN)
    document = made(told)
    assert document["schema_version"] == "ATIF-v1.8"
    assert (document["session_id"], document["trajectory_id"]) == ("s", "trial-1")
    assert document["agent"] == {"name": "counter", "version": "2.1", "model_name": "large"}
    assert bare(document["steps"]) == [
        {"step_id": 1, "source": "user", "message": "How many?"},
        {
            "step_id": 2,
            "source": "agent",
            "message": "I look.",
            "model_name": "large",
            "reasoning_content": "let me look",
            "tool_calls": [
                {"tool_call_id": "c1", "function_name": "shell", "arguments": {"command": "ls"}}
            ],
            "observation": {
                "results": [
                    {
                        "source_call_id": "c1",
                        "content": "a b c",
                        "extra": {"sequence": 10, "ok": True, "outputRef": "o1"},
                    }
                ]
            },
            "metrics": {
                "prompt_tokens": 800,
                "completion_tokens": 64,
                "cached_tokens": 500,
                "cost_usd": 0.25,
            },
            "llm_call_count": 1,
        },
        {
            "step_id": 3,
            "source": "agent",
            "message": "3",
            "model_name": "small",
            "metrics": {
                "prompt_tokens": 900,
                "completion_tokens": 1,
                "extra": {"amounts": {"EUR": 2.5}},
            },
            "llm_call_count": 1,
        },
    ]
    assert document["steps"][1]["extra"] == {"sequence": 3, "turnId": "t1"}
    assert document["final_metrics"] == {
        "total_prompt_tokens": 1700,
        "total_completion_tokens": 65,
        "total_cached_tokens": 500,
        "total_cost_usd": 0.25,
        "extra": {"amounts": {"EUR": 2.5}},
        "total_steps": 3,
    }


def test_without_requests_a_step_ends_when_text_follows_a_result() -> None:
    told = Historian()
    asked(told, text="go")
    told.add("tool.started", {"tool": "shell"}, **call("c1"))
    told.add("tool.args", {"tool": "shell", "args": "[1, 2]"}, **call("c1"))
    told.add("tool.started", {"tool": "read"}, **call("c2"))
    told.add("tool.args", {"tool": "read", "args": "no json"}, **call("c2"))
    told.add("tool.failed", {"tool": "shell", "error": "no"}, **call("c1"))
    told.add("tool.result", {"tool": "read"}, **call("c2"))
    told.add("model.delta", {"text": "it failed"}, **TURN)
    told.add("reasoning.summary", {"text": "so"}, **TURN)
    steps = made(told)["steps"]
    assert [step["source"] for step in steps] == ["user", "agent", "agent"]
    assert [one["arguments"] for one in steps[1]["tool_calls"]] == [
        {"value": [1, 2]},
        {"value": "no json"},
    ]
    told_results = [
        (one["content"], one["extra"]["ok"]) for one in steps[1]["observation"]["results"]
    ]
    assert told_results == [("no", False), ("", True)]
    assert "llm_call_count" not in steps[1]
    assert "metrics" not in steps[1]
    assert (steps[2]["message"], steps[2]["reasoning_content"]) == ("it failed", "so")


def test_what_a_person_answers_is_a_step_of_theirs() -> None:
    told = Historian()
    asked(told, text="go", files=[])
    told.add("model.delta", {"text": "Sure?"}, **TURN)
    ask = {**TURN, "action_id": "a1"}
    told.add("action.resolved", {"decision": "answered", "resumes": True, "answer": True}, **ask)
    told.add("action.resolved", {"decision": "answered", "resumes": True}, **ask)
    told.add("action.resolved", {"decision": "cancelled", "resumes": False}, **ask)
    steps = [(step["source"], step["message"]) for step in made(told)["steps"]]
    assert steps == [
        ("user", '{"text":"go","files":[]}'),
        ("agent", "Sure?"),
        ("user", "true"),
        ("user", ""),
    ]


def test_tokens_that_are_not_known_are_no_metrics() -> None:
    told = Historian()
    asked(told, text="go")
    told.add("model.delta", {"text": "x"}, **TURN)
    told.add("cost.recorded", {"model": "m", "amount": 0.5, "currency": "USD"}, **TURN)
    told.add("cost.recorded", {"model": "m", "outputTokens": 0}, **TURN)
    told.add("turn.completed", {"status": "completed"}, status="completed", **TURN)
    document = made(told)
    assert document["steps"][1]["metrics"] == {"completion_tokens": 0, "cost_usd": 0.5}
    assert document["final_metrics"] == {
        "total_completion_tokens": 0,
        "total_cost_usd": 0.5,
        "total_steps": 2,
    }


def test_facts_that_anybody_may_have_written_still_give_a_trajectory() -> None:
    told = Historian()
    told.add("model.delta", {"text": 5}, **TURN)
    told.add("tool.result", {"tool": "shell", "preview": {"a": 1}}, **call("c9"))
    told.add("turn.failed", {"status": "failed"}, **TURN)
    told.add("cost.recorded", {"model": "m"}, **TURN)
    document = made(told, extra={"taskId": "count"})
    (step,) = document["steps"]
    assert step["message"] == ""
    assert step["observation"]["results"] == [
        {"content": '{"a":1}', "extra": {"sequence": 3, "ok": True}}
    ]
    assert document["final_metrics"] == {"total_steps": 1}
    assert document["extra"] == {"taskId": "count"}


def test_a_trajectory_of_nothing_says_so() -> None:
    (step,) = made(Historian())["steps"]
    assert step == {"step_id": 1, "source": "system", "message": "nothing happened"}


def test_the_status_of_the_fields_says_what_a_trajectory_lacks() -> None:
    step = {"step_id": 1, "tool_calls": [{"tool_call_id": "c"}]}
    whole = {
        "schema_version": "ATIF-v1.8",
        "session_id": "s",
        "agent": {"name": "agent", "version": "1"},
        "steps": [{**step, "observation": {"results": [{"source_call_id": "c"}]}}],
        "final_metrics": {},
    }
    assert all(required_field_status(whole).values())

    def lacks(**changes: Any) -> list[str]:
        return [
            name for name, has in required_field_status({**whole, **changes}).items() if not has
        ]

    assert lacks(steps=[step]) == ["steps[].observation"]
    assert lacks(steps=[{"step_id": 1, "observation": {"results": [{}]}}]) == ["steps[].tool_calls"]
    assert lacks(steps=[{"step_id": 2}]) == ["steps[].step_id"]
    assert lacks(session_id="unknown", agent={}) == ["session_id", "agent"]
