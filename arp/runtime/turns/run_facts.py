"""Records the events of a runtime in the ledger, as the table in `docs/ari.md` describes.

`record_event` records a lifecycle event that needs no context; it works without a turn. `RunFacts`
keeps the context of one turn for the rest: requests to models, their cost, and the end of the turn.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from arp.protocol.json_value import Json, JsonObject
from arp.runtime.contract import types as ari
from arp.runtime.contract.errors import ErrorStatus
from arp.turn.foreign_names import MAX_STEP, shortened

if TYPE_CHECKING:
    from arp.record.recorder import Recorder
    from arp.record.work import ModelRequest

MAX_TEXT_CHARACTERS = 2_000
"""Largest length of a text of the runtime, such as a warning or a sub-agent's result."""
MAX_OPEN_REQUESTS = 1_000
"""Number of open requests to models of one turn."""
MAX_PARAMETER_BYTES = 16 << 10
MAX_MESSAGE_BYTES = 256 << 10
"""Largest size of the messages of one request, as JSON; the newest are kept."""
MAX_TOOLS, MAX_NAME = 500, 200
"""Number of tool names of one request, and the length of a name."""
MAX_PLAN = 100
"""Number of entries of an agent's list that become tasks."""
LAST_SECOND = 253_402_300_799
"""Last second of the year 9999; `datetime` has no later times."""
TOO_MANY_REQUESTS = 429
"""HTTP status of a provider that refuses requests for now."""


def record_event(record: Recorder, event: ari.Event) -> None:
    """Record a lifecycle event, if it needs no context."""
    recorded = _RECORDERS.get(event.lifecycle) if event.lifecycle is not None else None
    if recorded is not None:
        recorded(record, event)


def record_warning(record: Recorder, message: str) -> None:
    """Record a problem that is not an error."""
    if message.strip():
        record("runtime.warning", {"message": message[:MAX_TEXT_CHARACTERS]})


def record_mode(record: Recorder, mode: str) -> None:
    """Record the mode, which determines what the agent asks."""
    if mode:
        record("policy.changed", {"policy": "permissionMode", "value": mode})


def _warning(record: Recorder, event: ari.Event) -> None:
    record_warning(record, event.content)


def _mode(record: Recorder, event: ari.Event) -> None:
    record_mode(record, event.content)


def _model(record: Recorder, event: ari.Event) -> None:
    if event.content:
        record("routing.decided", {"model": event.content, "reason": "the runtime has taken it"})


def _compaction(record: Recorder, event: ari.Event) -> None:
    details = event.details
    begun = record.compaction(_text(details, "trigger"), _count(details, "tokens_before"))
    begun.completed(_count(details, "tokens_after"))


def _rate_limit(record: Recorder, event: ari.Event) -> None:
    details = event.details
    limit = _text(details, "limit") or "requests"
    resets_at = rfc3339(_number(details, "resets_at_s"))
    if details.get("status") != "warning":
        wait = _number(details, "retry_after_s")
        record("rate_limit.hit", {"limit": limit, "retryAfterS": wait, "resetsAt": resets_at})
        return
    used = _number(details, "used")
    if used is None:
        record("limit.changed", {"limit": limit, "value": "nearly reached"})
        return
    left: JsonObject = {"remaining": round(max(100.0 - 100.0 * used, 0.0), 1), "total": 100}
    record("quota.low", {"quota": limit, **left, "unit": "%", "resetsAt": resets_at})


def _subagent(record: Recorder, event: ari.Event) -> None:
    details, text = event.details, event.content[:MAX_TEXT_CHARACTERS]
    subagent_id = _text(details, "subagent_id")
    if subagent_id is None:
        return
    scoped = record.within(subagent_id=subagent_id)
    match details.get("status"):
        case "started":
            named = {"name": _text(details, "name"), "objective": _text(details, "objective")}
            scoped("subagent.spawned", dict(named))
        case "input":
            scoped("subagent.input", {"text": text})
        case "completed":
            scoped("subagent.completed", {"outputs": [text] if text else None})
        case "failed":
            scoped("subagent.failed", {"reason": text or "failed"})
        case "closed":
            scoped("subagent.closed", {"reason": text or None})
        case status:
            scoped("subagent.status", {"message": text or None}, status=str(status or "running"))


def _hook(record: Recorder, event: ari.Event) -> None:
    details = event.details
    name = _text(details, "name") or "hook"
    scoped = record.within(request_id=_text(details, "hook_id") or name)
    took = _number(details, "duration_ms")
    match details.get("status"):
        case "started":
            scoped("hook.started", {"hook": name, "event": _text(details, "event")})
        case "failed":
            reason = event.content[:MAX_TEXT_CHARACTERS] or "failed"
            scoped("hook.failed", {"hook": name, "reason": reason, "durationMs": took})
        case _:
            word = _text(details, "decision")
            decision = word if word in ("allow", "deny", "ask") else None
            scoped("hook.completed", {"hook": name, "decision": decision, "durationMs": took})


_RECORDERS: dict[ari.Lifecycle, Callable[[Recorder, ari.Event], None]] = {
    ari.Lifecycle.WARNING: _warning,
    ari.Lifecycle.STDERR: _warning,
    ari.Lifecycle.MODE: _mode,
    ari.Lifecycle.MODEL: _model,
    ari.Lifecycle.COMPACTION: _compaction,
    ari.Lifecycle.RATE_LIMIT: _rate_limit,
    ari.Lifecycle.SUBAGENT: _subagent,
    ari.Lifecycle.HOOK: _hook,
}


class RunFacts:
    """Records a turn of a runtime.

    Args:
        record: Recorder of the turn.
        model: Model in use; empty if the runtime has not reported it.
        keeps_messages: Whether the messages to models are recorded.
    """

    def __init__(self, record: Recorder, model: str, *, keeps_messages: bool = False) -> None:
        self.model = model
        self._record = record
        self._keeps_messages = keeps_messages
        self._open: dict[str, ModelRequest] = {}
        """Open requests to models, by the runtime's id."""
        self._requests = 0
        """Number of requests to models that were recorded."""
        self._failed_open = False
        """Whether the newest request has failed, so that it is the cause of the turn's error."""
        self._amount = 0.0
        """Sum of the costs that the runtime reported for single requests."""

    def requested(self, event: ari.Event) -> None:
        """Record the start or the failure of a request to a model."""
        details, request_id = event.details, _text(event.details, "request_id") or ""
        if details.get("status") == "failed":
            request = self._open.pop(request_id, None)
            if request is not None:
                request.failed(event.content[:MAX_TEXT_CHARACTERS] or "failed")
                self._failed_open = True
            return
        if request_id in self._open or len(self._open) >= MAX_OPEN_REQUESTS:
            return
        self._failed_open = False
        self.model = _text(details, "model") or self.model
        record = self._record.within(subagent_id=_text(details, "subagent_id"))
        self._requests += 1
        self._open[request_id] = record.model(
            self._model_name(), _text(details, "provider"), **self._request_details(details)
        )

    def _request_details(self, details: JsonObject) -> JsonObject:
        """Return the parameters, tools and messages of a request, each limited in size."""
        asked: JsonObject = {}
        parameters, tools = details.get("parameters"), details.get("tools")
        if isinstance(parameters, dict):
            size = len(msgspec.json.encode(parameters))
            too_large: JsonObject = {"leftOut": f"{size} bytes; at most {MAX_PARAMETER_BYTES}"}
            asked["parameters"] = parameters if size <= MAX_PARAMETER_BYTES else too_large
        if isinstance(tools, list):
            asked["tools"] = [str(tool)[:MAX_NAME] for tool in tools[:MAX_TOOLS] if tool]
        messages = details.get("messages")
        if self._keeps_messages and isinstance(messages, list):
            kept = newest_within(messages, MAX_MESSAGE_BYTES)
            asked["messages"] = kept
            asked["messagesLeftOut"] = len(messages) - len(kept) or None
        return asked

    def usage(self, details: JsonObject) -> None:
        """Record a request to a model, its usage, and how full the context is."""
        self.model = _text(details, "model") or self.model
        tokens, most = _count(details, "context_tokens"), _count(details, "context_max")
        if tokens is not None:
            self._record("context.resolved", {"tokens": tokens, "maxTokens": most or None})
        used = msgspec.convert(
            {key: value for key, value in details.items() if key in _USED}, ari.Usage, strict=False
        )
        if used.input_tokens is not None or used.output_tokens is not None:
            self._record_request(used, details)
        elif begun := self._open.pop(_text(details, "request_id") or "", None):
            begun.completed()

    def _record_request(self, used: ari.Usage, details: JsonObject) -> None:
        begun = self._open.pop(_text(details, "request_id") or "", None)
        record = self._record.within(subagent_id=_text(details, "subagent_id"))
        self._requests += begun is None
        with begun or record.model(_text(details, "model") or self._model_name()) as request:
            amount = used.cost if used.currency else None
            self._amount += amount or 0.0
            request.cost(
                input_tokens=used.input_tokens,
                output_tokens=used.output_tokens,
                cached_input_tokens=used.cached_tokens,
                amount=amount,
                currency=used.currency if amount is not None else None,
            )

    def _model_name(self) -> str:
        return self.model or "unknown"

    def retried(self, event: ari.Event, message: str) -> None:
        """Record a request to the model that failed and will be repeated."""
        details = event.details
        with self._record.model(self._model_name()) as request:
            request.failed(message[:MAX_TEXT_CHARACTERS], retryable=True)
        if details.get("http_status") == TOO_MANY_REQUESTS:
            delay_ms = _number(details, "delay_ms")
            wait = delay_ms / 1000 if delay_ms is not None else None
            self._record("rate_limit.hit", {"limit": "requests", "retryAfterS": wait})

    def ended(self, event: ari.Event) -> None:
        """Record what is known only at the end of the turn."""
        used = event.usage
        self._end_open_requests(event.error)
        # The usage of a turn is the sum of its requests. If a request was recorded, recording the
        # sum too would count it twice.
        if used is not None and not self._requests and used.is_known:
            self._record_request(used, {})
        elif used is not None and used.cost and used.currency and not self._amount:
            # The requests had tokens but no price.
            cost: JsonObject = {"amount": used.cost, "currency": used.currency}
            self._record("cost.recorded", {"model": self._model_name(), **cost})
        if event.error is not None:
            self._record_failure(event.error)

    def _end_open_requests(self, error: ErrorStatus | None) -> None:
        """End the requests that are still open at the end of the turn."""
        self._failed_open = error is not None and (self._failed_open or bool(self._open))
        for request in self._open.values():
            if error is None:
                request.completed()
            else:
                request.failed(error.message[:MAX_TEXT_CHARACTERS], retryable=error.retryable)
        self._open.clear()

    def _record_failure(self, error: ErrorStatus) -> None:
        details = error.details
        limit, status = _text(details, "limit"), details.get("http_status")
        # A status means that a request to the model failed. If the runtime has not reported that
        # request, it is recorded here; otherwise it would be counted twice.
        if isinstance(status, int) and not self._failed_open:
            with self._record.model(self._model_name()) as request:
                request.failed(error.message[:MAX_TEXT_CHARACTERS], retryable=error.retryable)
        if limit is not None:
            resets_at = rfc3339(_number(details, "resets_at_s"))
            self._record("quota.blocked", {"quota": limit, "remaining": 0, "resetsAt": resets_at})
        elif status == TOO_MANY_REQUESTS:
            self._record("rate_limit.hit", {"limit": "requests"})


def record_plan(record: Recorder, todos: Json, known: dict[str, Json], of: str) -> None:
    """Record the changes of an agent's list as tasks: new, changed and removed entries.

    Args:
        record: Recorder of the session.
        todos: The complete list: `[{text, status}]`.
        known: Status of each known task by id; this function updates it.
        of: Prefix of the ids of the tasks.
    """
    now: dict[str, Json] = {}
    for todo in todos[:MAX_PLAN] if isinstance(todos, list) else ():
        text = _text(todo, "text") if isinstance(todo, dict) else None
        if text is None:
            continue
        task_id = f"{of}-{sha256(text.encode()).hexdigest()[:12]}"
        status = now[task_id] = str(todo.get("status"))
        if task_id not in known:
            record("task.created", {"objective": shortened(text, MAX_STEP)}, task_id=task_id)
        if known.get(task_id) != status and status in _TASK_FACTS:
            record(_TASK_FACTS[status], task_id=task_id)
    for task_id, status in known.items():
        if task_id not in now and status != "done":
            record("task.cancelled", {"reason": "it is no longer in the plan"}, task_id=task_id)
    known.clear()
    known.update(now)


def newest_within(messages: list[Json], most: int) -> list[Json]:
    """Return the newest messages with a total size of at most `most` bytes as JSON."""
    size = 0
    for kept, message in enumerate(reversed(messages)):
        size += len(msgspec.json.encode(message)) + 1
        if size > most:
            return messages[len(messages) - kept :]
    return messages


_TASK_FACTS = {"active": "task.started", "done": "task.completed"}
_USED = frozenset(ari.Usage.__struct_fields__)


class Notice(NamedTuple):
    """Text for people about a limit."""

    is_reached: bool
    title: str
    message: str


def notice_of(details: Mapping[str, Json]) -> Notice:
    """Return the text for people when a limit is reached or nearly reached."""
    limit = (_text(details, "limit") or "requests").replace("_", " ")
    used, moment = _number(details, "used"), _moment(_number(details, "resets_at_s"))
    is_reached = details.get("status") != "warning"
    parts = [f"Limit: {limit}."]
    if used is not None:
        parts.append(f"{round(100 * used)} % are used.")
    if moment is not None:
        parts.append(f"It resets on {moment:%Y-%m-%d} at {moment:%H:%M} UTC.")
    title = "Usage limit reached" if is_reached else "Usage limit nearly reached"
    return Notice(is_reached, title, " ".join(parts))


def rfc3339(seconds: float | None) -> str | None:
    """Return seconds since 1970 in the format of facts; `None` for an invalid or unknown time."""
    moment = _moment(seconds)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ") if moment is not None else None


def _moment(seconds: float | None) -> datetime | None:
    return datetime.fromtimestamp(seconds, UTC) if seconds and seconds <= LAST_SECOND else None


def _text(details: Mapping[str, Json], name: str) -> str | None:
    value = details.get(name)
    return value if isinstance(value, str) and value else None


def _count(details: Mapping[str, Json], name: str) -> int | None:
    value = details.get(name)
    return value if type(value) is int and value >= 0 else None


def _number(details: Mapping[str, Json], name: str) -> float | None:
    value = details.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < sys.float_info.max else None
