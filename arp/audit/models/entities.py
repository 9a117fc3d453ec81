"""All kinds of records: id, fields and limits of each kind, and the rules that need logic.

Most facts change their records by steps that are listed in their rows (`arp.ledger.families`);
`effect_rule` turns such steps into a rule. For effects that steps cannot express, the tables here
have a function by fact type.
"""

from __future__ import annotations

from typing import Final

from arp.audit.models.reading import LIST_ITEMS, brief, number, part, text, texts, whole
from arp.audit.models.records import (
    EntityKind,
    JsonWindow,
    Records,
    RecordUpdate,
    RecordWindow,
    Rule,
)
from arp.ledger.benchmark_names import EXPORT_REFS, NOT_KNOWN, renamed, renamed_object
from arp.ledger.fact import Fact
from arp.ledger.families.benchmarks import CRITERIA
from arp.ledger.families.context import (
    FROM_SEQUENCE,
    SOURCE,
    SUMMARY,
    TO_SEQUENCE,
    TOKENS_AFTER,
    TOKENS_BEFORE,
)
from arp.ledger.families.decisions import (
    MODE,
    NETWORK,
    OPERATION,
    READABLE,
    SANDBOX,
    TARGET,
    WRITABLE,
)
from arp.ledger.families.limits import (
    FAILED_MODEL,
    LIMIT,
    QUOTA,
    REMAINING,
    RESETS_AT,
    RETRY_AFTER_S,
    UNIT,
)
from arp.ledger.families.results import CODE
from arp.ledger.families.sessions import TITLE
from arp.ledger.families.tools import PREVIEW, SIGNAL
from arp.ledger.payload_fields import (
    ATTEMPT,
    BYTES,
    DECISION,
    DETAIL,
    ERROR,
    MESSAGE,
    MIME,
    MODEL,
    PROVIDER,
    REASON,
    SHA256,
    SURFACE,
    THROUGH_SEQUENCE,
    TOOL,
    TOTAL,
    VALUE,
)
from arp.ledger.record_steps import (
    AddRecord,
    AddTo,
    ChangeRecord,
    Copy,
    CopyFactField,
    End,
    RecordKind,
    RecordStep,
    Reopen,
    SetTime,
    SetTypeWord,
    SetWord,
    copies,
    fact_fields,
)
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

_TURN_IDS: Final = fact_fields("thread_id", "turn_id")
"""Steps that copy these fields from the fact."""

# -- tools, processes, large output ----------------------------------------------------------------

TOOL_CALLS: Final = EntityKind(
    "toolCalls",
    f"toolCallId stepId {_IN_TURN} taskId runId tool status args progress preview error outputRef"
    " startedAt endedAt",
    (100, 50),
    key="toolCallId",
    begin=[
        SetWord("status", "running"),
        *fact_fields("step_id", "thread_id", "turn_id", "task_id", "run_id"),
    ],
)

PROCESSES: Final = EntityKind(
    "processes",
    "processId status command cwd pid exitCode signal reason outputBytes inputBytes outputRef"
    f" {_IN_TURN} toolCallId startedAt endedAt",
    (20, 20),
    key="processId",
    begin=[SetWord("status", "running"), *_TURN_IDS, CopyFactField("tool_call_id")],
)

OUTPUTS: Final = EntityKind(
    "outputs",
    f"outputRef status bytes sha256 mime preview {_IN_TURN} toolCallId processId",
    (1, 50),
    begin=[
        *fact_fields("thread_id", "turn_id", "tool_call_id", "process_id"),
        *copies(SHA256, MIME, PREVIEW),
        SetTypeWord("status"),
        Copy(BYTES),
    ],
)

_tool_ended: Final = TOOL_CALLS.fold(
    *copies(TOOL, PREVIEW, ERROR, keep_old="if_empty"),
    CopyFactField("output_ref", keep_old="if_empty"),
    SetTime("endedAt"),
)


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


TOOL_RULES: Final[dict[str, Rule]] = {
    "tool.catalog.resolved": _catalog,
    "tool.result": _tool_ended_by,
    "tool.failed": _tool_ended_by,
    "turn.completed": _turn_ended,
    "turn.failed": _turn_ended,
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
    begin=[
        *fact_fields("type", "request_id", "action_id", "thread_id", "turn_id", "tool_call_id"),
        SetTime("at"),
        Copy(TOOL),
        Copy(DECISION, read="text_or_unknown"),
    ],
)

VIOLATIONS: Final = EntityKind(
    "violations",
    "sandbox operation target turnId toolCallId",
    (1, 20),
    begin=[
        *fact_fields("turn_id", "tool_call_id"),
        *copies(SANDBOX, TARGET),
        Copy(OPERATION, read="text_or_unknown"),
    ],
)

_ASKS: Final = RecordUpdate(
    *_TURN_IDS,
    *copies(TOOL, SURFACE, keep_old="if_empty"),
    *fact_fields("action_id", "request_id", "tool_call_id", keep_old="if_empty"),
)
_TITLE: Final = RecordUpdate(Copy("title", to="prompt", or_else=("label",), keep_old="if_empty"))
_PROMPT: Final = RecordUpdate(Copy("prompt", or_else=(REASON,), keep_old="if_empty"))
_COMPONENT: Final = RecordUpdate(
    Copy("type", to="component", keep_old="if_empty"),
    Copy("id", to="componentId", keep_old="if_empty"),
)
_SANDBOX: Final = RecordUpdate(
    *fact_fields("turn_id", "sequence"),
    Copy(MODE),
    Copy(SANDBOX, read="text_or_unknown"),
    *copies(NETWORK, READABLE, WRITABLE),
)
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


REQUEST_RULES: Final[dict[str, Rule]] = {
    "action.required": _requested,
    "action.resolved": _question_closed,
    "permission.requested": _requested,
    "permission.evaluated": _decide,
    "permission.resolved": _resolved,
    "channel.permission_forwarded": _forwarded,
    "sandbox.applied": _sandbox,
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
    begin=[*_TURN_IDS, *copies(MODEL, PROVIDER, REASON, FAILED_MODEL)],
)
"""Choices of a model. The kind is decided, single_candidate, fallback or not_possible; a single
candidate is a kind of its own, not an error. Only fallbacks are kept in the window."""

LIMITS: Final = EntityKind(
    "limits",
    f"type name at remaining total unit retryAfterS resetsAt provider {_IN_TURN} taskId",
    (1, 50),
    begin=[
        CopyFactField("type"),
        SetTime("at"),
        *fact_fields("thread_id", "turn_id", "task_id"),
        *copies(UNIT, RESETS_AT, PROVIDER),
        Copy(QUOTA, to="name", or_else=(LIMIT,), read="text_or_unknown"),
        Copy(REMAINING),
        Copy(TOTAL, read="number"),
        Copy(RETRY_AFTER_S),
    ],
)

_QUOTA: Final = RecordUpdate(
    *copies(UNIT, RESETS_AT),
    SetTypeWord("state"),
    Copy(REMAINING),
    Copy(TOTAL, read="number"),
    CopyFactField("sequence"),
)
_CHANGED: Final = RecordUpdate(SetTypeWord("state"), Copy(VALUE), CopyFactField("sequence"))


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


ROUTING_RULES: Final[dict[str, Rule]] = {
    "task.profile.resolved": _profile,
    "routing.candidates.resolved": _candidates,
    "routing.decided": _chosen,
    "routing.single_candidate": _chosen,
    "routing.fallback.applied": _chosen,
    "routing.not_possible": _not_possible,
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
    begin=[SetWord("status", "running"), *fact_fields("thread_id", "turn_id", "task_id")],
)

JOBS: Final = EntityKind(
    "jobs",
    "jobId status name done total failed message reason items taskId",
    (20, 20),
    key="jobId",
    begin=[SetWord("status", "created"), CopyFactField("task_id")],
)

ITEMS: Final = EntityKind(
    "items",
    "jobItemId status attempt failures reason",
    (20, 20),
    key="jobItemId",
    begin=[SetWord("status", "running")],
)
"""Items of one job. A failed item is retried on its own, under the same id."""

CHANNELS: Final = EntityKind(
    "channels",
    "channelId status encoding reason messages",
    (50, 50),
    key="channelId",
    begin=[SetWord("status", "connected")],
)
"""Channels of a session: renderers, and other programs that show it."""

_ITEM_STATE: Final = (Copy(REASON), Copy(ATTEMPT, keep_old="if_empty"))

_ITEM_FOLDS: Final = {
    "started": ITEMS.fold(Reopen("running"), *_ITEM_STATE),
    "completed": ITEMS.fold(End(), *_ITEM_STATE),
    "failed": ITEMS.fold(End(), *_ITEM_STATE, AddTo("failures")),
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


DELEGATION_RULES: Final[dict[str, Rule]] = {
    "job.item.started": _item,
    "job.item.completed": _item,
    "job.item.failed": _item,
}

# -- exports and artifacts -------------------------------------------------------------------------

EXPORTS: Final = EntityKind(
    "exports",
    "evidenceId kind state reason sha256 throughSequence gaps verification refs"
    f" {_IN_TURN} taskId runId at",
    (50, 50),
    key="evidenceId",
    begin=[SetWord("kind", "unknown"), SetWord("state", "unknown")],
)

ARTIFACTS: Final = EntityKind(
    "artifacts",
    f"artifactId name mime bytes sha256 outputRef changes {_IN_TURN} taskId",
    (50, 50),
    key="artifactId",
)
"""Artifacts: surfaces that the session shows, and files that it created."""

# -- incidents and diagnostics ---------------------------------------------------------------------

_INCIDENT_FIELDS: Final = (
    f"type at message code by {_IN_TURN} taskId runId toolCallId processId subagentId jobId"
    " jobItemId"
)

_INCIDENT_STEPS: Final[tuple[RecordStep, ...]] = (
    CopyFactField("type"),
    SetTime("at"),
    *fact_fields("thread_id", "turn_id", "task_id", "run_id", "tool_call_id", "process_id"),
    *fact_fields("subagent_id", "job_id", "job_item_id"),
    Copy(
        ERROR,
        to="message",
        or_else=(MESSAGE, REASON, LIMIT, QUOTA, OPERATION, SIGNAL, TITLE, TOOL),
    ),
    Copy(CODE),
)

INCIDENTS: Final = EntityKind("incidents", _INCIDENT_FIELDS, (1, 50), begin=_INCIDENT_STEPS)
"""Failures and denials. A cancelled turn and a single candidate model are not incidents."""

DIAGNOSTICS: Final = EntityKind("diagnostics", _INCIDENT_FIELDS, (1, 30), begin=_INCIDENT_STEPS)
"""Other events that help to diagnose a session."""


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


INCIDENT_RULES: Final[dict[str, Rule]] = {
    "turn.failed": _turn_failed,
    "permission.evaluated": _denied,
    "permission.resolved": _denied,
}

# -- benchmarks ------------------------------------------------------------------------------------

TRIALS: Final = EntityKind(
    "trials",
    "trialId status datasetId datasetVersion datasetRef configurationId role singleChangedVariable"
    f" taskId runId {_IN_TURN} reward rewardDetail criteria p0QcGateRegressionCount reason refs",
    (100, 50),
    key="trialId",
    begin=[SetWord("status", "running")],
)

COMPARISONS: Final = EntityKind(
    "comparisons",
    "baseline candidate meanRewardDelta timeoutRateDelta evidenceCompletenessRate"
    " p0QcGateRegressionCount decision reason refs",
    (1, 10),
    begin=[
        *copies("baseline", "candidate", "decision"),
        Copy("meanRewardDelta", read="number"),
        Copy("timeoutRateDelta", read="number"),
        Copy("evidenceCompletenessRate", read="number"),
        Copy("p0QcGateRegressionCount", read="count"),
    ],
)

_TRIAL: Final = RecordUpdate(
    *fact_fields("task_id", "run_id"),
    *copies("datasetId", "datasetVersion", "datasetRef", keep_old="if_empty"),
    *copies("configurationId", "role", "singleChangedVariable", keep_old="if_empty"),
    Copy("p0QcGateRegressionCount", read="count", keep_old="if_absent"),
    *fact_fields("thread_id", "turn_id", keep_old="if_empty"),
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


_END: Final = RecordUpdate(SetTypeWord("status"), Copy(REASON))
_REASON: Final = RecordUpdate(Copy(REASON))
_DETAIL: Final = RecordUpdate(
    Copy(DETAIL, to="rewardDetail", read="json"), Copy(CRITERIA, keep_old="if_empty")
)


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


BENCHMARK_RULES: Final[dict[str, Rule]] = {
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

_COMPACTION: Final = RecordUpdate(
    *fact_fields("sequence", "turn_id"),
    *copies(SUMMARY, REASON),
    SetTypeWord("status"),
    *copies(TOKENS_BEFORE, TOKENS_AFTER, THROUGH_SEQUENCE),
)

_BOUNDARY: Final = RecordUpdate(
    *fact_fields("type", "sequence"),
    *copies(SOURCE, REASON, FROM_SEQUENCE),
    Copy(THROUGH_SEQUENCE, or_else=(TO_SEQUENCE,)),
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
    """Record the newest rollback, load or reconstruction of the history."""
    records.newest["boundary"] = _BOUNDARY.made(fact)
    if fact.type == "history.rollback.completed":
        records.count("history", "rollbacks")


def _stored(records: Records, fact: Fact) -> None:
    name, through = text(fact.payload, "readModel"), whole(fact.payload, "throughSequence")
    if name and through is not None:
        records.put("storedModels", name, through, MOST_STORED_MODELS)


HISTORY_RULES: Final[dict[str, Rule]] = {
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

# -- effects ---------------------------------------------------------------------------------------

RECORD_KINDS: Final[dict[RecordKind, EntityKind]] = {
    "toolCalls": TOOL_CALLS,
    "processes": PROCESSES,
    "violations": VIOLATIONS,
    "limits": LIMITS,
    "subagents": SUBAGENTS,
    "jobs": JOBS,
    "channels": CHANNELS,
    "exports": EXPORTS,
    "artifacts": ARTIFACTS,
    "incidents": INCIDENTS,
    "diagnostics": DIAGNOSTICS,
}
"""Kind of record that an effect names → its definition."""


def effect_rule(effect: ChangeRecord | AddRecord) -> Rule:
    """Return the rule of an effect that is written as data."""
    kind = RECORD_KINDS[effect.kind]
    if isinstance(effect, ChangeRecord):
        return kind.rule(*effect.steps, if_open=effect.if_open)
    return _event_rule(kind) if kind in (INCIDENTS, DIAGNOSTICS) else kind.added
