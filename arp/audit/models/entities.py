"""The tables of all kinds of records: id, fields and limits of each kind, and the facts about it.

A change that a row cannot express is a function next to it. `TABLES` lists the rules by fact type.
"""

from __future__ import annotations

from typing import Final

from arp.audit.models.reading import LIST_ITEMS, brief, number, part, text, texts, whole
from arp.audit.models.records import EntityKind, FieldRow, JsonWindow, Records, RecordWindow, Rule
from arp.ledger.benchmark_names import EXPORT_REFS, NOT_KNOWN, renamed, renamed_object
from arp.ledger.fact import Fact
from arp.protocol.json_value import Json, JsonObject

MOST_POLICIES: Final = 20
"""Number of policies that are kept."""

MOST_QUOTAS: Final = 20
"""Number of quotas and limits that are kept."""

MOST_STORED_MODELS: Final = 20
"""Number of stored read models that are kept."""

MOST_CONFIGURATIONS: Final = 20
"""Number of benchmark configurations that are kept."""

_IN_TURN: Final = "threadId turnId"
"""Fields of a record that name its turn."""

_OF_TURN: Final = "^threadId ^turnId"
"""Words of a row that read these fields from the fact."""

# -- tools, processes, large output ----------------------------------------------------------------

TOOL_CALLS: Final = EntityKind(
    "toolCalls",
    f"toolCallId stepId {_IN_TURN} taskId runId tool status args progress preview error outputRef"
    " startedAt endedAt",
    (100, 50),
    key="toolCallId",
    begin=f"status=running ^stepId {_OF_TURN} ^taskId ^runId",
)

PROCESSES: Final = EntityKind(
    "processes",
    "processId status command cwd pid exitCode signal reason outputBytes inputBytes outputRef"
    f" {_IN_TURN} toolCallId startedAt endedAt",
    (20, 20),
    key="processId",
    begin=f"status=running {_OF_TURN} ^toolCallId",
)

OUTPUTS: Final = EntityKind(
    "outputs",
    f"outputRef status bytes sha256 mime preview {_IN_TURN} toolCallId processId",
    (1, 50),
    begin=f"{_OF_TURN} ^toolCallId ^processId sha256 mime preview status=* bytes",
)

_tool_ended: Final = TOOL_CALLS.fold("tool? preview? error? ^outputRef? endedAt@")


def _tool_ended_by(records: Records, fact: Fact) -> None:
    """End a tool call by its result or its failure."""
    window = records.window("toolCalls")
    call = _tool_ended(window, fact)
    records.took("tool", call.get("startedAt"), fact.timestamp)
    _end_call(window, call, "completed" if fact.type == "tool.result" else "failed")


def _end_call(window: JsonWindow, call: JsonObject, status: str) -> None:
    call["status"] = status
    window.end(call["toolCallId"], TOOL_CALLS.most[1])


def _turn_ended(records: Records, fact: Fact) -> None:
    """Mark the open tool calls of an ended turn as interrupted; keep its requests pending.

    Without this, such a call would stay open for ever, because no fact will end it. A request can
    still be answered after the turn.
    """
    calls = records.window("toolCalls")
    for call in [one for one in calls.open.values() if _is_of_turn(one, fact)]:
        call["endedAt"], call["lastSequence"] = fact.timestamp, fact.sequence
        _end_call(calls, call, "interrupted")
    for request in records.window("requests").open.values():
        if _is_of_turn(request, fact):
            request["turnEnded"] = True


def _is_of_turn(record: JsonObject, fact: Fact) -> bool:
    return record.get("turnId") == fact.turn_id and record.get("threadId") == fact.thread_id


def _catalog(records: Records, fact: Fact) -> None:
    records.values["catalog"] = texts(fact.payload, "tools")


def _spilled(records: Records, fact: Fact) -> None:
    """Add an output, and reference it from the tool call or process that has its preview."""
    ref = fact.output_ref or text(fact.payload, "outputRef") or "unknown"
    output = OUTPUTS.made(fact)
    output["outputRef"] = ref
    OUTPUTS.add(records, output)
    for name, key in (("toolCalls", fact.tool_call_id), ("processes", fact.process_id)):
        record = records.window(name).get(key)
        if record is not None:
            record["outputRef"] = ref


def _expired(records: Records, fact: Fact) -> None:
    for output in records.window("outputs").closed.values():
        if output["outputRef"] == fact.output_ref:
            output["status"], output["lastSequence"] = "expired", fact.sequence


def _redacted(records: Records, fact: Fact) -> None:
    findings = fact.payload.get("findings")
    for finding in findings if isinstance(findings, list) else ():
        more = whole(finding, "count") if isinstance(finding, dict) else None
        records.count("outputs", "redacted", more)


def _truncated(records: Records, _: Fact) -> None:
    records.count("outputs", "truncated")


_TOOLS: Final[dict[str, Rule]] = {
    "tool.catalog.resolved": _catalog,
    **TOOL_CALLS.rows(
        {
            "tool.started": "tool? startedAt@",
            "tool.args": "tool? args",
            "tool.progress": "tool? progress(text,message)?",
        }
    ),
    "tool.result": _tool_ended_by,
    "tool.failed": _tool_ended_by,
    "turn.completed": _turn_ended,
    "turn.failed": _turn_ended,
    **PROCESSES.rows(
        {
            "process.started": "cwd command:json pid startedAt@",
            "process.output": "outputBytes+bytes ^outputRef?",
            "process.input": "inputBytes+bytes",
            "process.completed process.failed process.terminated": (
                "signal reason > exitCode endedAt@"
            ),
        }
    ),
    "output.spilled": _spilled,
    "output.expired": _expired,
    "output.redacted": _redacted,
    "output.truncated": _truncated,
}

# -- requests, decisions, sandbox, policies, hooks -------------------------------------------------

REQUESTS: Final = EntityKind(
    "requests",
    f"kind actionId requestId {_IN_TURN} toolCallId tool prompt component componentId surface"
    " requestedAt turnEnded forwardedTo",
    (100, 0),
)
"""Requests that wait for a decision of a person, or of another authority. A request stays pending
until a fact resolves it: an unresolved request never counts as approved, and after a crash it is
still pending under the same id."""

DECISIONS: Final = EntityKind(
    "decisions",
    f"type decision tool deniedBy decidedBy requestId actionId {_IN_TURN} toolCallId at",
    (1, 50),
    begin=f"^type ^requestId ^actionId {_OF_TURN} ^toolCallId at@ tool decision:named",
)

VIOLATIONS: Final = EntityKind(
    "violations",
    "sandbox operation target turnId toolCallId",
    (1, 20),
    begin="^turnId ^toolCallId sandbox target operation:named",
)

_ASKS: Final = FieldRow(f"{_OF_TURN} tool? surface? ^actionId? ^requestId? ^toolCallId?")
_TITLE: Final = FieldRow("prompt:text(title,label)?")
_PROMPT: Final = FieldRow("prompt(prompt,reason)?")
_COMPONENT: Final = FieldRow("component:text(type)? componentId:text(id)?")
_SANDBOX: Final = FieldRow("^turnId ^sequence mode sandbox:named network readable writable")
_KNOWN: Final = frozenset(("allow", "deny", "ask", "cancelled", "expired"))


def _pending(records: Records, fact: Fact) -> tuple[str, JsonObject] | None:
    """Return the pending request that a fact is about, with its key."""
    action_id, request_id = fact.action_id, fact.request_id
    for key, request in records.window("requests").open.items():
        if action_id and request.get("actionId") == action_id:
            return key, request
        if request_id and request.get("requestId") == request_id:
            return key, request
    return None


def _requested(records: Records, fact: Fact) -> None:
    """Add a request, or extend the pending one with the same action id or request id."""
    found = _pending(records, fact)
    if found is None:
        kind = fact.type.partition(".")[0]
        key = f"{kind}:{fact.action_id or fact.request_id or fact.tool_call_id or fact.turn_id}"
        request: JsonObject = {
            "firstSequence": fact.sequence,
            "kind": kind,
            "requestedAt": fact.timestamp,
        }
        records.window("requests").begin(key, request, REQUESTS.most[0])
    else:
        request = found[1]
    request["lastSequence"] = fact.sequence
    payload, component = fact.payload, part(fact.payload, "component")
    _ASKS.change(request, fact, payload)
    _TITLE.change(request, fact, part(component, "props"))
    _PROMPT.change(request, fact, payload)
    _COMPONENT.change(request, fact, component)


def _forwarded(records: Records, fact: Fact) -> None:
    found, to = _pending(records, fact), text(fact.payload, "to") or fact.channel_id
    if found is not None:
        request = found[1]
        request.pop("forwardedTo", None)
        request |= {"forwardedTo": to} if to is not None else {}


def _question_closed(records: Records, fact: Fact) -> None:
    is_answer = fact.payload.get("decision") == "answered"
    records.count("questions", "answered" if is_answer else "unanswered")
    _close(records, fact)


def _close(records: Records, fact: Fact) -> None:
    found = _pending(records, fact)
    if found is not None:
        key, request = found
        records.took("requestWait", request.get("requestedAt"), fact.timestamp)
        del records.window("requests").open[key]


def _decide(records: Records, fact: Fact) -> None:
    decision = DECISIONS.made(fact)
    name, decider = decision["decision"], brief(fact.payload.get("decidedBy"))
    if name == "deny":
        # A denial always names an authority, even if the fact does not.
        decision["deniedBy"] = brief(fact.payload.get("deniedBy")) or decider or "unknown"
    elif decider is not None:
        decision["decidedBy"] = decider
    DECISIONS.add(records, decision)
    records.count("decisions", name if name in _KNOWN else "unknown")


def _resolved(records: Records, fact: Fact) -> None:
    _decide(records, fact)
    _close(records, fact)


def _sandbox(records: Records, fact: Fact) -> None:
    records.newest["sandbox"] = _SANDBOX.made(fact)


def _policy(records: Records, fact: Fact) -> None:
    name = text(fact.payload, "policy")
    if name is not None:
        records.put("policies", name, brief(fact.payload.get("value")), MOST_POLICIES)


def _hook(records: Records, fact: Fact) -> None:
    records.count("hooks", fact.type.removeprefix("hook."))


_DECIDED: Final[dict[str, Rule]] = {
    "action.required": _requested,
    "action.resolved": _question_closed,
    "permission.requested": _requested,
    "permission.evaluated": _decide,
    "permission.resolved": _resolved,
    "channel.permission_forwarded": _forwarded,
    "sandbox.applied": _sandbox,
    "sandbox.violation": VIOLATIONS.added,
    "policy.changed": _policy,
    "hook.started": _hook,
    "hook.completed": _hook,
    "hook.failed": _hook,
}

# -- routing, limits, quotas -----------------------------------------------------------------------

CHOICES: Final = EntityKind(
    "fallbacks",
    f"kind model provider reason failedModel candidateCount {_IN_TURN}",
    (1, 20),
    begin=f"{_OF_TURN} model provider reason failedModel",
)
"""Choices of a model. The kind is decided, single_candidate, fallback or not_possible; a single
candidate is a kind of its own, not an error. Only fallbacks are kept in the window."""

LIMITS: Final = EntityKind(
    "limits",
    f"type name at remaining total unit retryAfterS resetsAt provider {_IN_TURN} taskId",
    (1, 50),
    begin=(
        f"^type at@ {_OF_TURN} ^taskId unit resetsAt provider name:named(quota,limit) remaining"
        " total:number retryAfterS"
    ),
)

_QUOTA: Final = FieldRow("unit resetsAt state=* remaining total:number ^sequence")
_CHANGED: Final = FieldRow("state=* value ^sequence")


def _profile(records: Records, fact: Fact) -> None:
    records.values["profile"] = brief(part(fact.payload, "profile"))
    records.values["profileTaskId"] = fact.task_id


def _candidates(records: Records, fact: Fact) -> None:
    found = fact.payload.get("candidates")
    if isinstance(found, list):
        records.values["candidates"] = [brief(one) for one in found[:LIST_ITEMS]]
        records.values["candidateCount"] = sum(1 for one in found if not _is_excluded(one))


def _is_excluded(candidate: Json) -> bool:
    return isinstance(candidate, dict) and bool(candidate.get("excluded"))


def _chosen(records: Records, fact: Fact) -> None:
    kind = fact.type.removeprefix("routing.").removesuffix(".applied")
    if kind == "single_candidate":
        records.values["candidateCount"] = 1
    selected = records.newest["selected"] = _choice(records, fact, kind)
    records.newest.pop("failed", None)
    if kind == "fallback":
        CHOICES.add(records, selected.copy())


def _not_possible(records: Records, fact: Fact) -> None:
    _candidates(records, fact)
    records.newest["failed"] = _choice(records, fact, "not_possible")


def _choice(records: Records, fact: Fact, kind: str) -> JsonObject:
    choice = CHOICES.made(fact)
    choice["kind"] = kind
    if "candidateCount" in records.values:
        choice["candidateCount"] = records.values["candidateCount"]
    return choice


def _quota(records: Records, fact: Fact) -> None:
    limit = LIMITS.made(fact)
    LIMITS.add(records, limit)
    records.put("quotas", limit["name"], _QUOTA.made(fact), MOST_QUOTAS)


def _limit_changed(records: Records, fact: Fact) -> None:
    name = text(fact.payload, "limit") or "unknown"
    records.put("quotas", name, _CHANGED.made(fact), MOST_QUOTAS)


_ROUTING: Final[dict[str, Rule]] = {
    "task.profile.resolved": _profile,
    "routing.candidates.resolved": _candidates,
    "routing.decided": _chosen,
    "routing.single_candidate": _chosen,
    "routing.fallback.applied": _chosen,
    "routing.not_possible": _not_possible,
    "rate_limit.hit": LIMITS.added,
    "quota.low": _quota,
    "quota.blocked": _quota,
    "limit.changed": _limit_changed,
}

# -- subagents, jobs, channels ---------------------------------------------------------------------

SUBAGENTS: Final = EntityKind(
    "subagents",
    f"subagentId status name objective message reason inputs outputs {_IN_TURN} taskId",
    (50, 50),
    key="subagentId",
    begin=f"status=running {_OF_TURN} ^taskId",
)

JOBS: Final = EntityKind(
    "jobs",
    "jobId status name done total failed message reason items taskId",
    (20, 20),
    key="jobId",
    begin="status=created ^taskId",
)

ITEMS: Final = EntityKind(
    "items",
    "jobItemId status attempt failures reason",
    (20, 20),
    key="jobItemId",
    begin="status=running",
)
"""Items of one job. A failed item is retried on its own, under the same id."""

CHANNELS: Final = EntityKind(
    "channels",
    "channelId status encoding reason messages",
    (50, 50),
    key="channelId",
    begin="status=connected",
)
"""Channels of a session: renderers, and other programs that show it."""

_ITEM_FOLDS: Final = {
    "started": ITEMS.fold("<running reason attempt?"),
    "completed": ITEMS.fold("> reason attempt?"),
    "failed": ITEMS.fold("> reason attempt? failures+"),
}


def items_of(job: JsonObject) -> JsonWindow:
    """Return the items of a job."""
    items: JsonObject | None = job.get("items")
    if items is None:
        items = job["items"] = {"open": {}, "closed": {}}
    return RecordWindow(items["open"], items["closed"])


def _item(records: Records, fact: Fact) -> None:
    job = JOBS.of(records.window("jobs"), fact)
    _ITEM_FOLDS[fact.type.removeprefix("job.item.")](items_of(job), fact)


_JOB: Final = "name? message? reason? done?? total?? failed??"

_DELEGATED: Final[dict[str, Rule]] = {
    **SUBAGENTS.rows(
        {
            "subagent.spawned": "name objective",
            "subagent.status": "message? if_open ^status?",
            "subagent.input": "inputs+",
            # `closed` after `completed` or `failed` must not replace that outcome.
            "subagent.completed subagent.failed subagent.closed": "if_open > reason outputs",
        }
    ),
    **JOBS.rows(
        {
            "job.created job.progress": _JOB,
            "job.started": "<running",
            "job.completed job.failed job.cancelled": f"> {_JOB}",
        }
    ),
    "job.item.started": _item,
    "job.item.completed": _item,
    "job.item.failed": _item,
    **CHANNELS.rows(
        {
            "channel.connected channel.resumed": "<connected encoding reason:never",
            "channel.disconnected": ">disconnected reason",
            "channel.message channel.permission_forwarded channel.permission_returned": "messages+",
        }
    ),
}

# -- exports and artifacts -------------------------------------------------------------------------

EXPORTS: Final = EntityKind(
    "exports",
    "evidenceId kind state reason sha256 throughSequence gaps verification refs"
    f" {_IN_TURN} taskId runId at",
    (50, 50),
    key="evidenceId",
    begin="kind=unknown state=unknown",
)

ARTIFACTS: Final = EntityKind(
    "artifacts",
    f"artifactId name mime bytes sha256 outputRef changes {_IN_TURN} taskId",
    (50, 50),
    key="artifactId",
)
"""Artifacts: surfaces that the session shows, and files that it created."""

_PRODUCED: Final[dict[str, Rule]] = {
    "evidence.changed": EXPORTS.rule(
        f"{_OF_TURN} ^taskId ^runId at@ kind? state? reason sha256? throughSequence? gaps?"
        " verification:object? ^refs??"
    ),
    "artifact.changed": ARTIFACTS.rule(
        f"{_OF_TURN} name? mime? sha256? changes+ bytes? ^outputRef? ^taskId?"
    ),
}

# -- incidents and diagnostics ---------------------------------------------------------------------

_INCIDENT_FIELDS: Final = (
    f"type at message code by {_IN_TURN} taskId runId toolCallId processId subagentId jobId"
    " jobItemId"
)

_INCIDENT_ROW: Final = (
    f"^type at@ {_OF_TURN} ^taskId ^runId ^toolCallId ^processId ^subagentId ^jobId ^jobItemId"
    " message(error,message,reason,limit,quota,operation,signal,title,tool) code"
)

INCIDENTS: Final = EntityKind("incidents", _INCIDENT_FIELDS, (1, 50), begin=_INCIDENT_ROW)
"""Failures and denials. A cancelled turn and a single candidate model are not incidents."""

DIAGNOSTICS: Final = EntityKind("diagnostics", _INCIDENT_FIELDS, (1, 30), begin=_INCIDENT_ROW)
"""Other events that help to diagnose a session."""

_INCIDENT_TYPES: Final = """
runtime.error model.failed tool.failed process.failed sandbox.violation hook.failed
context.compaction.failed routing.not_possible rate_limit.hit quota.blocked
task.failed task.lost task.timed_out task.attempt.failed subagent.failed
job.failed job.item.failed benchmark.trial.failed
"""

_DIAGNOSTIC_TYPES: Final = """
runtime.warning snapshot.repaired history.reconstructed history.rollback.completed
quota.low output.truncated output.redacted output.expired routing.fallback.applied
task.retrying process.terminated
"""


def _event_rule(entity: EntityKind) -> Rule:
    """Return the rule of a fact that becomes an incident or a diagnostic."""

    def rule(records: Records, fact: Fact) -> None:
        record, payload = entity.made(fact), fact.payload
        by = brief(payload.get("deniedBy") or payload.get("decidedBy"))
        if by is not None:
            record["by"] = by
        if "message" not in record and fact.status_reason is not None:
            record["message"] = fact.status_reason
        entity.add(records, record)

    return rule


_incident: Final = _event_rule(INCIDENTS)


def _turn_failed(records: Records, fact: Fact) -> None:
    # A crash ended this turn while a question was open. Its answer may still complete the turn.
    waits = fact.payload.get("status") == "waiting"
    if fact.status_reason != "cancelled" and not waits:
        _incident(records, fact)


def _denied(records: Records, fact: Fact) -> None:
    if fact.payload.get("decision") == "deny":
        _incident(records, fact)


_INCIDENTS: Final[dict[str, Rule]] = {
    "turn.failed": _turn_failed,
    "permission.evaluated": _denied,
    "permission.resolved": _denied,
    **dict.fromkeys(_INCIDENT_TYPES.split(), _incident),
    **dict.fromkeys(_DIAGNOSTIC_TYPES.split(), _event_rule(DIAGNOSTICS)),
}

# -- benchmarks ------------------------------------------------------------------------------------

TRIALS: Final = EntityKind(
    "trials",
    "trialId status datasetId datasetVersion datasetRef configurationId role singleChangedVariable"
    f" taskId runId {_IN_TURN} reward rewardDetail criteria p0QcGateRegressionCount reason refs",
    (100, 50),
    key="trialId",
    begin="status=running",
)

COMPARISONS: Final = EntityKind(
    "comparisons",
    "baseline candidate meanRewardDelta timeoutRateDelta evidenceCompletenessRate"
    " p0QcGateRegressionCount decision reason refs",
    (1, 10),
    begin="baseline candidate decision meanRewardDelta:number timeoutRateDelta:number"
    " evidenceCompletenessRate:number p0QcGateRegressionCount:count",
)

_TRIAL: Final = FieldRow(
    "^taskId ^runId datasetId? datasetVersion? datasetRef? configurationId? role?"
    " singleChangedVariable? p0QcGateRegressionCount:count?? ^threadId? ^turnId?"
)


def _dataset(records: Records, fact: Fact) -> None:
    benchmark = renamed_object(fact.benchmark)
    values = {
        "datasetId": text(benchmark, "datasetId"),
        "datasetVersion": text(benchmark, "datasetVersion"),
        "datasetTasks": texts(fact.payload, "tasks"),
    }
    records.values |= {name: value for name, value in values.items() if value}


def _configuration(records: Records, fact: Fact) -> None:
    name = text(renamed_object(fact.benchmark), "configurationId") or "unknown"
    value = brief(part(fact.payload, "configuration"))
    records.put("configurations", name, value, MOST_CONFIGURATIONS)


def _trial(records: Records, fact: Fact) -> JsonObject:
    """Return the trial of a fact by its trial id, or else its run id; begin a record if needed."""
    benchmark = renamed_object(fact.benchmark)
    name = text(benchmark, "trialId") or fact.run_id or "unknown"
    trial = TRIALS.of(records.window("trials"), fact, name)
    _TRIAL.change(trial, fact, benchmark)
    before, refs = trial.get("refs"), renamed(fact.refs)
    # Each fact of a trial names only some of its references, so they are merged.
    if isinstance(before, dict) and isinstance(refs, dict):
        refs = {**before, **refs}
    if refs is not None:
        trial["refs"] = brief(refs)
    if trial.get("refs", 0) is None:
        del trial["refs"]
    return trial


def _trial_started(records: Records, fact: Fact) -> None:
    _trial(records, fact)["status"] = "running"
    records.count("trials", "started")


_END: Final = FieldRow("status=* reason")
_REASON: Final = FieldRow("reason")
_DETAIL: Final = FieldRow("rewardDetail:json(detail) criteria?")


def _trial_ended(records: Records, fact: Fact) -> None:
    trial = _trial(records, fact)
    _END.change(trial, fact, fact.payload)
    records.count("trials", trial["status"])
    records.window("trials").end(trial["trialId"], TRIALS.most[1])


def _rewarded(records: Records, fact: Fact) -> None:
    trial, reward = _trial(records, fact), number(fact.payload, "reward")
    if reward is not None:
        records.count("trials", "rewards")
        records.values["rewardTotal"] = records.values.get("rewardTotal", 0.0) + reward
        trial["reward"] = reward
    _DETAIL.change(trial, fact, fact.payload)


def _trial_exported(records: Records, fact: Fact) -> None:
    """Add the references that an export created, unless the trial has its own."""
    name = text(renamed_object(fact.benchmark), "trialId")
    trial, refs = records.window("trials").get(name), renamed_object(fact.refs)
    made = {one: refs[one] for one in EXPORT_REFS if isinstance(refs.get(one), str)}
    if trial is None or not made:
        return
    known = trial.get("refs")
    named = known if isinstance(known, dict) else {}
    trial["refs"] = brief({**made, **{k: v for k, v in named.items() if v != NOT_KNOWN}})
    trial["lastSequence"] = fact.sequence


def _compared(records: Records, fact: Fact) -> None:
    comparison, refs = (
        COMPARISONS.made(fact, renamed_object(fact.comparison)),
        brief(renamed(fact.refs)),
    )
    _REASON.change(comparison, fact, fact.payload)
    if refs is not None:
        comparison["refs"] = refs
    COMPARISONS.add(records, comparison)


_BENCHMARKS: Final[dict[str, Rule]] = {
    "benchmark.dataset.resolved": _dataset,
    "benchmark.configuration.resolved": _configuration,
    "benchmark.trial.started": _trial_started,
    "benchmark.trial.completed": _trial_ended,
    "benchmark.trial.failed": _trial_ended,
    "benchmark.reward.recorded": _rewarded,
    "benchmark.comparison.completed": _compared,
    "evidence.changed": _trial_exported,
}

# -- context and history ---------------------------------------------------------------------------

_COMPACTION: Final = FieldRow(
    "^sequence ^turnId summary reason status=* tokensBefore tokensAfter throughSequence"
)

_BOUNDARY: Final = FieldRow(
    "^type ^sequence source reason fromSequence throughSequence(throughSequence,toSequence)"
)


def _context(records: Records, fact: Fact) -> None:
    records.values["tokens"] = whole(fact.payload, "tokens")
    most = whole(fact.payload, "maxTokens")
    if most:
        records.values["maxTokens"] = most


def _compaction(records: Records, fact: Fact) -> None:
    before = records.newest.get("compaction", {})
    newest = records.newest["compaction"] = _COMPACTION.made(fact)
    if newest["status"] == "started":
        newest["status"] = "running"
    elif "tokensBefore" in before:
        newest.setdefault("tokensBefore", before["tokensBefore"])
    if newest["status"] == "completed":
        records.count("history", "compactions")
        if newest.get("tokensAfter"):
            records.values["tokens"] = newest["tokensAfter"]


def _boundary(records: Records, fact: Fact) -> None:
    """Record the newest point of a rollback, of loading, or of reconstructing a history."""
    records.newest["boundary"] = _BOUNDARY.made(fact)
    if fact.type == "history.rollback.completed":
        records.count("history", "rollbacks")


def _stored(records: Records, fact: Fact) -> None:
    name, through = text(fact.payload, "readModel"), whole(fact.payload, "throughSequence")
    if name and through is not None:
        records.put("storedModels", name, through, MOST_STORED_MODELS)


_HISTORY: Final[dict[str, Rule]] = {
    "context.resolved": _context,
    "context.compaction.started": _compaction,
    "context.compaction.completed": _compaction,
    "context.compaction.failed": _compaction,
    "history.window.loaded": _boundary,
    "history.reconstructed": _boundary,
    "history.rollback.started": _boundary,
    "history.rollback.completed": _boundary,
    "snapshot.updated": _stored,
    "snapshot.repaired": _stored,
}

TABLES: Final = (
    _TOOLS, _DECIDED, _ROUTING, _DELEGATED, _PRODUCED, _INCIDENTS, _BENCHMARKS, _HISTORY,
)  # fmt: skip
"""Tables of rules that change `Records`: fact type → rule."""
