"""What may happen in a history: each action writes one fact or a few that belong together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tests.ledger.historian import Historian

SHA: Final = "0" * 63

ACTIONS: Final[dict[str, Callable[[Historian], None]]] = {}
"""Name of an action → what it writes."""


def action(function: Callable[[Historian], None]) -> Callable[[Historian], None]:
    """Puts an action into the table."""
    ACTIONS[function.__name__] = function
    return function


# -- the session, threads and turns ----------------------------------------------------------------


@action
def session(h: Historian) -> None:
    h.add("session.updated", h.maybe(title=h.word()))


@action
def thread(h: Historian) -> None:
    name = h.chance.choice(["main", "side", h.name("thread")])
    if h.chance.random() < 0.5:
        h.add("thread.started", h.maybe(title=h.word()), thread_id=name)
    else:
        status = h.chance.choice(["idle", "stale", "blocked", "odd"])
        h.add("thread.updated", h.maybe(reason=h.word()), thread_id=name, status=status)


@action
def submit(h: Historian) -> None:
    turn_id = h.name("t")
    said = {"input_type": "text", "data": {"text": h.word()}}
    h.add("turn.submitted", {"input": said}, thread_id="main", turn_id=turn_id)
    h.turns.append(turn_id)
    h.queue.append(turn_id)
    if h.running is None:
        _begin_next(h)
    else:
        h.add("queue.changed", {"queued": list(h.queue)}, thread_id="main")


def _begin_next(h: Historian) -> None:
    h.running = h.queue.pop(0)
    h.in_turn("turn.started")


@action
def end_turn(h: Historian) -> None:
    if h.running is None:
        return
    how = h.chance.choice(["completed", "failed", "cancelled", "interrupted"])
    if how == "cancelled":
        h.in_turn("run.status", h.maybe(inputId="i"), status="cancelling")
    if how == "completed":
        h.in_turn("turn.completed", {"status": how}, status=how)
    else:
        status = "cancelled" if how == "cancelled" else "failed"
        h.in_turn("turn.failed", {"status": status}, status=status, status_reason=how)
    h.running = None
    if h.queue:
        _begin_next(h)


@action
def model(h: Historian) -> None:
    ids = {"model_request_id": h.name("m")}
    h.in_turn("model.requested", {"model": "small"} | h.maybe(provider="house"), **ids)
    if h.chance.random() < 0.3:
        h.in_turn("model.failed", {"model": "small", "error": h.word()}, **ids)
        return
    for _ in range(h.number(3)):
        h.in_turn("model.delta", {"text": h.word()})
    h.in_turn("model.completed", {"model": "small", "usage": {"input": 3}}, **ids)


@action
def think(h: Historian) -> None:
    h.in_turn("reasoning.delta", {"text": h.word()})
    if h.chance.random() < 0.3:
        h.in_turn("reasoning.summary", {"text": h.word()})


# -- tools, processes, output ----------------------------------------------------------------------


@action
def tool(h: Historian) -> None:
    if h.chance.random() < 0.2:
        h.in_turn("tool.catalog.resolved", {"tools": ["query", "shell"]}, **_call(h))
    ids, named = h.begin("call", **_call(h)), {"tool": h.chance.choice(["query", "shell"])}
    h.in_turn("tool.started", named, **ids)
    h.in_turn("tool.args", {**named, "args": "{}"}, **ids)
    if h.chance.random() < 0.5:
        h.in_turn("tool.progress", {"text": h.word()}, **ids)


def _call(h: Historian) -> dict[str, str]:
    name = h.name("c")
    return {"step_id": name, "tool_call_id": name}


@action
def tool_end(h: Historian) -> None:
    ids = h.end("call")
    if ids is None:
        return
    if h.chance.random() < 0.6:
        told = h.maybe(preview=h.word(), characters=h.number())
        h.in_turn("tool.result", {"tool": "query", **told}, **ids)
    else:
        h.in_turn("tool.failed", {"tool": "query", "error": h.word()}, **ids)


@action
def process(h: Historian) -> None:
    ids = h.begin("process", process_id=h.name("p"))
    h.in_turn("process.started", {"command": ["ls", "-l"], **h.maybe(cwd="/tmp", pid=7)}, **ids)
    told = {"stream": "stdout", "preview": h.word(), "bytes": h.number()}
    h.in_turn("process.output", told, **ids)
    if h.chance.random() < 0.3:
        h.in_turn("process.input", {"bytes": h.number()}, **ids)


@action
def process_end(h: Historian) -> None:
    ids = h.end("process")
    if ids is None:
        return
    how = h.chance.choice(["completed", "failed", "terminated"])
    told: dict[str, dict[str, Any]] = {
        "completed": {"exitCode": 0},
        "failed": {"reason": h.word(), "exitCode": 2},
        "terminated": {"signal": "KILL"},
    }
    h.in_turn(f"process.{how}", told[how], **ids)


@action
def output(h: Historian) -> None:
    ref, ids = h.name("blob"), h.some("call") or {}
    told = {"bytes": h.number(), "sha256": SHA + "1", "preview": h.word()}
    h.in_turn("output.spilled", told, output_ref=ref, **ids)
    which = h.chance.randrange(4)
    if which == 1:
        told = {"bytes": 9, "keptBytes": 3, "reason": "too long"}
        h.in_turn("output.truncated", told, **ids)
    elif which == 2:
        findings = [{"rule": "token", "count": h.number(3)}]
        h.in_turn("output.redacted", {"findings": findings}, **ids)
    elif which == 3:
        h.in_turn("output.expired", {"reason": "old"}, output_ref=ref)


# -- what people and policies decide ---------------------------------------------------------------


@action
def ask(h: Historian) -> None:
    ids = h.begin("question", action_id=h.name("a"))
    component = {"id": "q", "type": "confirm", "props": {"title": h.word()}}
    told = {"component": component, "surface": "main"}
    h.in_turn("action.required", told | h.maybe(tool="shell", prompt=h.word()), **ids)


@action
def answer(h: Historian) -> None:
    ids = h.end("question")
    if ids is not None:
        decision = h.chance.choice(["answered", "cancelled", "expired"])
        h.in_turn("action.resolved", {"decision": decision, "resumes": True}, **ids)


@action
def permission(h: Historian) -> None:
    ids = {"request_id": h.name("r")}
    decision = h.chance.choice(["allow", "deny", "ask"])
    kind = h.chance.choice(["rule", "mode", "hook", "hostPolicy"])
    by = {"kind": kind, "name": h.word()}
    h.in_turn("permission.evaluated", {"tool": "x", "decision": decision, "decidedBy": by}, **ids)
    if decision == "ask":
        h.begin("permission", **ids)
        h.in_turn("permission.requested", {"tool": "x"} | h.maybe(reason=h.word()), **ids)
        if h.chance.random() < 0.3:
            told = {"tool": "x", "to": "phone"}
            h.add("channel.permission_forwarded", told, channel_id="ch", **ids)


@action
def permission_end(h: Historian) -> None:
    ids = h.end("permission")
    if ids is None:
        return
    decision = h.chance.choice(["allow", "deny", "cancelled", "expired"])
    told: dict[str, Any] = {"tool": "x", "decision": decision}
    if h.chance.random() < 0.3:
        h.add("channel.permission_returned", told, channel_id="ch", **ids)
    if decision == "deny":
        told["deniedBy"] = {"kind": "person", "name": "user"}
    h.in_turn("permission.resolved", told, **ids)


@action
def governance(h: Historian) -> None:
    match h.chance.randrange(4):
        case 0:
            told = h.maybe(mode="strict", network=False, readable=["/"], writable=[])
            h.in_turn("sandbox.applied", {"sandbox": "box", **told})
        case 1:
            h.in_turn("sandbox.violation", {"sandbox": "box", "operation": "write"})
        case 2:
            value = h.chance.choice(["ask", "plan", None, {"deep": [1]}])
            h.add("policy.changed", {"policy": "permissionMode", "value": value})
        case _:
            ids, how = {"request_id": h.name("r")}, h.chance.choice(["completed", "failed"])
            h.in_turn("hook.started", {"hook": "lint"}, **ids)
            more = {"reason": h.word()} if how == "failed" else {}
            h.in_turn(f"hook.{how}", {"hook": "lint", **more}, **ids)


@action
def context(h: Historian) -> None:
    h.in_turn("context.resolved", h.maybe(tokens=h.number(), maxTokens=9_000))
    if h.chance.random() < 0.5:
        ids, how = {"request_id": h.name("r")}, h.chance.choice(["completed", "failed"])
        h.in_turn("context.compaction.started", h.maybe(tokensBefore=h.number()), **ids)
        more = {"reason": h.word()} if how == "failed" else h.maybe(tokensAfter=h.number())
        h.in_turn(f"context.compaction.{how}", more, **ids)


@action
def rewrite(h: Historian) -> None:
    last = len(h.facts)
    match h.chance.randrange(4):
        case 0:
            h.add("history.window.loaded", {"fromSequence": 1, "throughSequence": last})
        case 1:
            h.add("history.reconstructed", {"throughSequence": last, "source": "log"})
        case 2:
            ids = {"request_id": h.name("r"), "thread_id": "main"}
            h.add("history.rollback.started", {"toSequence": 1}, **ids)
            told = {"toSequence": 1, "removedTurns": h.turns[-2:]}
            h.add("history.rollback.completed", told, **ids)
        case _:
            told = {"readModel": "session", "throughSequence": last}
            h.add("snapshot.updated", told | h.maybe(bytes=h.number()))
            h.add("snapshot.repaired", told | {"reason": h.word()})


# -- routing, cost, limits -------------------------------------------------------------------------


@action
def route(h: Historian) -> None:
    found = [{"model": "big"}, {"model": "old", "excluded": "too slow"}][: h.number(2)]
    h.in_turn("routing.candidates.resolved", {"candidates": found})
    match h.chance.randrange(4):
        case 0:
            h.in_turn("routing.decided", {"model": "big", "reason": h.word()})
        case 1:
            h.in_turn("routing.single_candidate", {"model": "big"})
        case 2:
            told = {"failedModel": "big", "model": "small", "reason": h.word()}
            h.in_turn("routing.fallback.applied", told)
        case _:
            h.in_turn("routing.not_possible", {"reason": h.word()})


@action
def cost(h: Historian) -> None:
    money = {"amount": h.number() / 1_000, "currency": h.chance.choice(["EUR", "USD"])}
    tokens = {"inputTokens": h.number(), "outputTokens": h.number()}
    h.in_turn("cost.estimated", money | h.maybe(model="big"))
    h.in_turn("cost.recorded", {"model": "big", **tokens} | (money if h.number(2) == 1 else {}))


@action
def limit(h: Historian) -> None:
    match h.chance.randrange(4):
        case 0:
            h.in_turn("rate_limit.hit", {"limit": "rpm", **h.maybe(retryAfterS=1.5)})
        case 1:
            h.in_turn("quota.low", {"quota": "tokens", "remaining": h.number()})
        case 2:
            h.in_turn("quota.blocked", {"quota": "tokens", "remaining": 0})
        case _:
            h.add("limit.changed", {"limit": "tokens", "value": h.number()})


# -- what lasts ------------------------------------------------------------------------------------


@action
def artifact(h: Historian) -> None:
    name = h.chance.choice(["main", h.name("file")])
    told = h.maybe(surface="main", name=h.word(), bytes=h.number(), sha256=SHA + "2")
    h.in_turn("artifact.changed", told, artifact_id=name)


@action
def evidence(h: Historian) -> None:
    told: dict[str, Any] = {
        "kind": h.chance.choice(["evidence", "replay", "review", "benchmark"]),
        "state": h.chance.choice(["exported", "not_applicable", "unsupported"]),
    }
    checked = {"outcome": "failed", "firstBad": 3}
    told |= h.maybe(gaps=["no trace"], verification=checked, throughSequence=len(h.facts))
    h.add("evidence.changed", told, evidence_id=h.name("ev"), refs={"pack": "packs/1"})


@action
def runtime(h: Historian) -> None:
    if h.chance.random() < 0.5:
        h.add("runtime.warning", {"message": h.word()}, trace_id=h.name("trace"))
    else:
        told = {"error": h.word(), "code": 18, "retryable": False}
        h.in_turn("runtime.error", told, trace_id="trace")
