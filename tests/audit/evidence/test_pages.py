"""What a pack tells of a session, fact by fact (evidence.md 1)."""

from __future__ import annotations

from typing import Any

import msgspec

from arp.audit.evidence.derived import Evidence
from arp.audit.evidence.manifest import Gap, Output, Scope
from arp.audit.evidence.scope import FactRange
from arp.audit.evidence.sections import CorrelationIds
from arp.ledger.fact import Fact, encode
from tests.ledger.historian import Historian

TURN = {"thread_id": "main", "turn_id": "t1"}


def story() -> Historian:
    """A turn with a tool that failed, a permission denied, a large output and a second attempt."""
    told = Historian()  # fact 1
    told.add("turn.submitted", {"input": {"input_type": "text"}}, task_id="k1", **TURN)
    told.add("turn.started", {}, **TURN)
    told.add("task.created", {"objective": "count"}, task_id="k1")
    told.add("task.attempt.started", {"attempt": 1}, task_id="k1", run_id="r1")
    call = {**TURN, "step_id": "s1", "tool_call_id": "c1"}
    told.add("tool.started", {"tool": "shell"}, **call)
    ask = {**TURN, "request_id": "p1", "tool_call_id": "c1"}
    rule = {"kind": "rule", "name": "no-net"}
    told.add("permission.requested", {"tool": "shell"}, **ask)
    told.add("permission.resolved", {"tool": "shell", "decision": "deny", "deniedBy": rule}, **ask)
    told.add("tool.failed", {"tool": "shell", "error": "denied by no-net"}, **call)  # 9
    told.add(
        "output.spilled", {"bytes": 9, "sha256": "a" * 64, "preview": "x"}, output_ref="o1", **TURN
    )
    told.add("task.attempt.failed", {"attempt": 1, "reason": "denied"}, task_id="k1", run_id="r1")
    told.add("task.attempt.started", {"attempt": 2}, task_id="k1", run_id="r2")
    told.add("model.delta", {"text": "a"}, **TURN)
    told.add("model.delta", {"text": "b"}, **TURN)
    cost = {"model": "m", "inputTokens": 3, "outputTokens": 4, "amount": 0.5, "currency": "EUR"}
    told.add("cost.recorded", cost, **TURN)
    told.add("cost.recorded", cost, thread_id="main", turn_id="unavailable")  # 16
    told.add("turn.failed", {"status": "cancelled"}, status_reason="cancelled", **TURN)
    return told


def told_of(scope: Scope | None = None, first: int = 1, through: int | None = None) -> Evidence:
    evidence = Evidence("s", "e1", scope, FactRange(first, through))
    evidence.add_page([encode(fact) for fact in story().facts])
    evidence.finish()
    return evidence


def section(evidence: Evidence, part: str) -> Any:
    return msgspec.json.decode(evidence.documents()[part])


def test_a_failed_tool_stands_there_with_its_error_and_its_ids() -> None:
    tools = section(told_of(), "tool_calls.json")
    (call,) = tools["items"]
    assert tools["state"] == "exported"
    assert (call["toolCallId"], call["outcome"]) == ("c1", "tool.failed")
    assert (call["firstSequence"], call["lastSequence"]) == (6, 9)
    assert call["facts"][1]["payload"]["error"] == "denied by no-net"
    assert call["facts"][1]["turnId"] == "t1"


def test_a_denial_says_which_rule_denied() -> None:
    (permission,) = section(told_of(), "permissions.json")["items"]
    assert permission["requestId"] == "p1"
    assert permission["facts"][1]["payload"]["deniedBy"] == {"kind": "rule", "name": "no-net"}
    assert permission["facts"][1]["toolCallId"] == "c1"


def test_a_second_attempt_keeps_the_task_and_the_attempt_that_failed() -> None:
    (task,) = section(told_of(), "tasks.json")["items"]
    assert task["taskId"] == "k1"
    runs = [(fact["type"], fact.get("runId")) for fact in task["facts"]]
    assert runs == [
        ("task.created", None),
        ("task.attempt.started", "r1"),
        ("task.attempt.failed", "r1"),
        ("task.attempt.started", "r2"),
    ]


def test_costs_are_added_up_also_those_that_no_turn_is_known_of() -> None:
    cost = section(told_of(), "cost.json")
    assert cost["totals"] == {"amounts": {"EUR": 1.0}, "inputTokens": 6, "outputTokens": 8}
    assert [one["sequence"] for one in cost["unjoined"]] == [16]
    assert cost["state"] == "missing_correlation"


def test_costs_without_tokens_are_added_up() -> None:
    told = Historian()
    told.add("turn.started", {}, **TURN)
    told.add("cost.recorded", {"model": "m", "amount": 0.5, "currency": "EUR"}, **TURN)
    evidence = Evidence("s", "e1", None, FactRange(1, None))
    evidence.add_page([encode(fact) for fact in told.facts])
    evidence.finish()
    assert section(evidence, "cost.json")["totals"] == {"amounts": {"EUR": 0.5}}


def test_only_gaps_that_apply_are_told() -> None:
    reason = "no turnId is known of these facts"
    assert told_of().gaps() == [Gap("cost.json", "missing_correlation", reason, 1, (16,))]


def test_what_a_session_has_nothing_of_is_not_applicable_and_no_part() -> None:
    evidence = told_of()
    assert evidence.states()["jobs.json"] == "not_applicable"
    assert "jobs.json" not in evidence.documents()


def test_a_turn_that_goes_on_and_a_type_that_is_not_known_are_gaps() -> None:
    told = story()
    told.facts.pop()
    evidence = Evidence("s", "e1")
    future = msgspec.structs.replace(told.facts[-1], sequence=17, type="cost.divined")
    evidence.add_page([encode(fact) for fact in [*told.facts, future]])
    states = [(gap.part, gap.state, gap.sequences) for gap in evidence.gaps()]
    assert states == [
        ("facts.jsonl", "unsupported", (17,)),
        ("facts.jsonl", "exported", (2,)),
        ("cost.json", "missing_correlation", (16, 17)),
    ]


def test_the_spine_names_one_id_or_all_and_says_what_is_not_known() -> None:
    spine = told_of().spine
    assert spine.document() == {
        "runtimeId": "arp",
        "sessionId": "s",
        "threadId": "main",
        "turnId": "t1",
        "taskId": "k1",
        "runIds": ["r1", "r2"],
    }
    assert spine.states()["traceId"] == "not_applicable"
    assert spine.states()["runId"] == "exported"


def test_a_correlation_that_is_only_said_to_be_unknown_is_missing() -> None:
    told = Historian()
    told.add("turn.started", {}, thread_id="main", turn_id="unknown")
    evidence = Evidence("s", "e1")
    evidence.add_page([encode(fact) for fact in told.facts])
    assert evidence.spine.states()["turnId"] == "missing_correlation"
    assert "turnId" not in evidence.spine.document()


def test_neighbouring_deltas_share_a_line_of_the_timeline() -> None:
    evidence = Evidence("s", "e1")
    lines = evidence.add_page([encode(fact) for fact in story().facts]).timeline
    lines += evidence.finish().timeline
    timeline = [msgspec.json.decode(line) for line in lines.splitlines()]
    assert len(timeline) == 16
    assert timeline[12]["sequence"] == 13
    assert timeline[12]["throughSequence"] == 14
    assert timeline[12]["count"] == 2
    assert timeline[8]["said"] == "denied by no-net"


def test_a_large_output_is_named_until_it_is_taken_in() -> None:
    reason = "it is named here, and lies beside the ledger"
    assert told_of().outputs == [Output("o1", "unsupported", bytes=9, reason=reason)]


def test_a_part_of_a_session_has_the_hash_before_it() -> None:
    whole, part = told_of(), told_of(Scope(task_id="k1"), 4, 12)
    assert (part.chain.first, part.chain.through) == (4, 12)
    assert part.chain.previous != whole.chain.previous
    assert "cost.json" not in part.documents()
    assert [item["taskId"] for item in section(part, "tasks.json")["items"]] == ["k1"]


def test_the_same_facts_give_the_same_documents() -> None:
    assert told_of().documents() == told_of().documents()


def test_facts_behind_the_range_are_not_in_the_pack() -> None:
    evidence = told_of(None, 1, 5)
    assert (evidence.chain.first, evidence.chain.through) == (1, 5)
    assert evidence.states()["tool_calls.json"] == "not_applicable"


def test_an_output_that_has_expired_and_an_export_are_no_missing_outputs() -> None:
    told = story()
    told.add("output.expired", {"reason": "old"}, output_ref="o1", **TURN)
    for _ in range(2):
        told.add("output.spilled", {"bytes": 1}, output_ref="o2", **TURN)
    payload = {"kind": "evidence", "state": "exported"}
    told.add("evidence.changed", payload, evidence_id="e", output_ref="o3", **TURN)
    evidence = Evidence("s", "e1")
    evidence.add_page([encode(fact) for fact in told.facts])
    evidence.add_page([])
    states = [(one.output_ref, one.state, one.reason) for one in evidence.outputs]
    assert states[0] == ("o1", "not_applicable", "it has expired")
    assert [one[0] for one in states] == ["o1", "o2"]


def test_what_a_fact_says_of_itself_is_a_gap_that_counts() -> None:
    told = story()
    for _ in range(25):
        told.add("output.truncated", {"bytes": 9, "keptBytes": 1}, **TURN)
    gap = next(gap for gap in _gaps(told) if gap.part == "outputs")
    assert (gap.reason, gap.count) == ("only a part of these outputs was kept", 25)
    assert gap.sequences == tuple(range(18, 38))


def _gaps(told: Historian) -> list[Gap]:
    evidence = Evidence("s", "e1")
    evidence.add_page([encode(fact) for fact in told.facts])
    return evidence.gaps()


def test_of_what_is_told_a_thousand_times_the_rest_is_counted() -> None:
    told = Historian()
    for number in range(1001):
        told.add("hook.started", {"hook": "h"}, request_id="h1", **TURN)
        told.add("hook.started", {"hook": "h"}, **TURN)
        told.add("process.output", {"stream": "stdout", "preview": "a"}, process_id="unknown")
        told.add("process.output", {"stream": "stdout", "preview": str(number)}, process_id="p1")
    evidence = Evidence("s", "e1")
    evidence.add_page([encode(fact) for fact in told.facts])
    hooks = section(evidence, "hooks.json")
    assert hooks["items"][0]["counts"] == {"hook.started": 1001}
    assert len(hooks["items"][0]["facts"]) == 1000
    assert len(hooks["unjoined"]) == 1000
    (process,) = section(evidence, "processes.json")["items"]
    assert (process["counts"], process["facts"]) == ({"process.output": 1001}, [])
    assert "unjoined" not in section(evidence, "processes.json")


def test_costs_that_are_no_money_or_no_numbers_are_not_added_up() -> None:
    told = Historian()
    told.add("cost.recorded", {"model": "m", "amount": "much", "currency": "EUR"}, **TURN)
    told.add("cost.estimated", {"amount": 1, "currency": "EUR"}, **TURN)
    evidence = Evidence("s", "e1")
    evidence.add_page([encode(fact) for fact in told.facts])
    assert "totals" not in section(evidence, "cost.json")


def test_of_many_ids_a_thousand_are_listed() -> None:
    told = Historian()
    for number in range(1003):
        told.add("task.created", {"objective": "o"}, task_id=f"k{number}")
    evidence = Evidence("s", "e1")
    evidence.add_page([encode(fact) for fact in told.facts])
    assert len(evidence.spine.document()["taskIds"]) == 1000


def test_others_may_make_further_parts_of_the_facts_of_the_scope() -> None:
    class Counter:
        seen = 0

        def add(self, fact: Fact) -> None:
            self.seen += 1

        def documents(self) -> dict[str, bytes]:
            return {"count.txt": str(self.seen).encode()}

    evidence = Evidence("s", "e1", Scope(task_id="k1"), FactRange(2, 12), (Counter(),))
    evidence.add_page([encode(fact) for fact in story().facts])
    assert evidence.documents()["count.txt"] == b"5"


def test_of_several_runtimes_that_wrote_a_session_the_newest_names_it() -> None:
    spine = CorrelationIds()
    for fact, name in zip(story().facts, ("arp", "arp-1", "arp"), strict=False):
        spine.add(msgspec.structs.replace(fact, runtime_id=name))
    assert spine.document()["runtimeIds"] == ["arp", "arp-1"]
    assert spine.document()["runtimeId"] == "arp"
