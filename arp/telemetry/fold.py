"""Spans and metrics of one session, computed from its facts in order. Pure.

Theory of operation. A turn, a request to a model, a tool call or a process is kept open under its
id until a fact ends it; then it is returned as a span. The end of a turn closes everything that is
still open in it, as interrupted. Attributes contain names, ids, numbers and types of errors. They
never contain a text: no inputs or outputs, no arguments or results of tools.

The read model of the session is not used, for two reasons. The ids of spans are made from traces
and event ids, which it does not have. And it must see every fact, whereas most facts (text deltas)
need not even be decoded here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct, field

from arp.ledger.fact import Fact
from arp.ledger.tracing import Trace, hex_id, tool_span_id, trace_of
from arp.telemetry import conventions as c

MOST_OPEN: Final = 1000
"""Maximum number of open entries of each kind. The oldest one is dropped and never sent."""

MOST_OVER: Final = 64
"""Number of ended turns with a trace that is kept, for facts that come later."""

Attributes: TypeAlias = dict[str, str | int | float | bool | Sequence[str]]

SpanKind: TypeAlias = Literal["internal", "client", "server"]


class MeasuredSpan(Struct, frozen=True, kw_only=True):
    """A complete span."""

    name: str
    kind: SpanKind = "internal"
    trace: Trace
    """Trace of the turn; `trace.span_id` is the id of the turn's span."""
    span_id: str
    parent_id: str | None
    """Id of the parent span; `None` means the span of `trace.caller`, if there is one."""
    start_ns: int
    """Start in nanoseconds since 1970, UTC."""
    end_ns: int
    attributes: Attributes
    error: str | None = None
    """Type of the failure; `None` if there was none."""


class Figure(Struct, frozen=True):
    """One measurement of a metric."""

    metric: str
    """Name of the metric in `conventions.METRICS`."""
    value: float
    attributes: Attributes


Measured: TypeAlias = MeasuredSpan | Figure


class OpenTurn(Struct):
    """A turn that was submitted and has not ended."""

    trace: Trace
    submitted_ns: int
    attributes: Attributes
    started_ns: int | None = None
    has_text: bool = False
    used: dict[str, int] = field(default_factory=dict)
    """Number of tokens by attribute."""

    @property
    def start_ns(self) -> int:
        """Start of its span: the start of the turn, or its submission if it never started."""
        return self.submitted_ns if self.started_ns is None else self.started_ns


class Open(Struct, frozen=True):
    """A request to a model, a tool call or a process that has not ended."""

    name: str
    span_id: str
    parent_id: str
    start_ns: int
    attributes: Attributes
    turn_id: str
    used: dict[str, int] = field(default_factory=dict)
    """Number of tokens by attribute."""


class Family(Struct, frozen=True):
    """Definition of the spans of one family of facts: `model.*`, `tool.*` or `process.*`."""

    id_of: Callable[[Fact], str | None]
    """Returns the id that joins the facts about one span."""
    named: Callable[[Fact], tuple[str, Attributes]]
    """Returns the name and the attributes of the span."""
    metric: str
    """Name of the metric for the duration."""
    labels: tuple[str, ...]
    """Attributes of the metric; each has few values."""
    kind: SpanKind = "internal"


class SpanFold:
    """Computes spans and figures from the facts of one session, in order.

    Args:
        session_id: Id of the session.
        epoch: Epoch of its log.
        agent: Name of its agent; empty if it has none.
    """

    def __init__(self, session_id: str, epoch: str, agent: str) -> None:
        self._epoch = epoch
        self._common: Attributes = {c.CONVERSATION: session_id}
        self._agent: Attributes = {c.OPERATION: "invoke_agent", c.AGENT: agent or c.UNKNOWN}
        self._turns: dict[str, OpenTurn] = {}
        self._over: dict[str, Trace] = {}
        self._open: dict[str, dict[str, Open]] = {name: {} for name in _FAMILIES}
        self._waits: dict[tuple[str, str], tuple[int, Attributes]] = {}

    def wants_text(self, turn_id: str | None) -> bool:
        """Return whether a text of a turn must be folded. Only the first text is measured."""
        turn = self._turns.get(turn_id or "")
        return turn is not None and not turn.has_text

    def fold(self, fact: Fact) -> Iterator[Measured]:
        """Apply the next fact; yield the spans and figures that are complete with it."""
        rule = _RULES.get(fact.type)
        at = nanoseconds(fact.timestamp) if rule is not None else None
        if rule is not None and at is not None:
            yield from rule(self, fact, at) or ()

    # -- turns -----------------------------------------------------------------------------------

    def _submitted(self, fact: Fact, at: int) -> None:
        attributes = self._agent | self._common | _ids(fact) | {c.SEQUENCE: fact.sequence}
        turn = OpenTurn(trace_of(fact, self._epoch), at, attributes)
        _keep(self._turns, fact.turn_id or c.UNKNOWN, turn, MOST_OPEN)

    def _started(self, fact: Fact, at: int) -> Iterator[Measured]:
        turn = self._turns.get(fact.turn_id or "")
        if turn is not None and turn.started_ns is None:
            turn.started_ns = at
            wait = turn.attributes[c.QUEUE_WAIT] = seconds(turn.submitted_ns, at)
            yield Figure("arp.turn.queue_wait", wait, self._agent)

    def _said(self, fact: Fact, at: int) -> Iterator[Measured]:
        turn = self._turns.get(fact.turn_id or "")
        if turn is None or turn.has_text:
            return
        turn.has_text = True
        took = turn.attributes[c.FIRST_TEXT] = seconds(turn.start_ns, at)
        yield Figure("arp.turn.time_to_first_text", took, self._agent)
        for request in self._open["model"].values():
            if request.turn_id == fact.turn_id:
                name = "gen_ai.client.operation.time_to_first_chunk"
                yield Figure(name, seconds(request.start_ns, at), _labels("model", request))

    def _ended(self, fact: Fact, at: int) -> Iterator[Measured]:
        """End a turn, and everything that is still open in it."""
        turn_id = fact.turn_id or c.UNKNOWN
        turn = self._turns.pop(turn_id, None)
        if turn is None:
            return
        for family, opened in self._open.items():
            for key in [key for key, one in opened.items() if one.turn_id == turn_id]:
                yield from _closed(family, opened.pop(key), turn.trace, at, {}, "interrupted")
        failed = fact.status_reason or "failed" if fact.type == "turn.failed" else None
        error = None if failed == "cancelled" else failed
        status = str(fact.payload.get("status") or fact.status or "completed")
        yield MeasuredSpan(
            name=f"invoke_agent {self._agent[c.AGENT]}",
            kind="server" if turn.trace.caller else "internal",
            trace=turn.trace,
            span_id=turn.trace.span_id,
            parent_id=None,
            start_ns=turn.start_ns,
            end_ns=max(turn.start_ns, at),
            attributes=turn.attributes | turn.used | {c.STATUS: status} | _failure(error),
            error=error,
        )
        if turn.started_ns is not None:
            took = seconds(turn.started_ns, at)
            yield Figure("gen_ai.invoke_agent.duration", took, self._agent | _failure(error))
        _keep(self._over, turn_id, turn.trace, MOST_OVER)

    def _trace(self, turn_id: str | None) -> Trace | None:
        turn = self._turns.get(turn_id or "")
        return turn.trace if turn is not None else self._over.get(turn_id or "")

    # -- models, tools, processes ----------------------------------------------------------------

    def _began(self, fact: Fact, at: int) -> None:
        name = fact.type.partition(".")[0]
        family, trace = _FAMILIES[name], self._trace(fact.turn_id)
        if trace is None:
            return
        key = family.id_of(fact) or c.UNKNOWN
        span_id, parent_id = hex_id(16, trace.trace_id, fact.event_id), trace.span_id
        # An author's own span names the span of its tool call as its parent before the fact exists,
        # so that id cannot come from the fact.
        if name == "tool":
            span_id = tool_span_id(trace.trace_id, self._epoch, key)
        if name == "process" and fact.tool_call_id in self._open["tool"]:
            parent_id = self._open["tool"][fact.tool_call_id].span_id
        title, attributes = family.named(fact)
        attributes |= self._common | _ids(fact) | {c.SEQUENCE: fact.sequence}
        one = Open(title, span_id, parent_id, at, attributes, fact.turn_id or "")
        _keep(self._open[name], key, one, MOST_OPEN)

    def _finished(self, fact: Fact, at: int) -> Iterator[Measured]:
        family = fact.type.partition(".")[0]
        one = self._open[family].pop(_FAMILIES[family].id_of(fact) or c.UNKNOWN, None)
        trace = self._trace(one.turn_id) if one is not None else None
        if one is not None and trace is not None:
            yield from _closed(family, one, trace, at, *_outcome(fact))

    def _cost(self, fact: Fact, at: int) -> Iterator[Measured]:
        payload, request = fact.payload, self._open["model"].get(fact.model_request_id or "")
        model: Attributes = {c.REQUEST_MODEL: str(payload.get("model", c.UNKNOWN))}
        provider = request.attributes[c.PROVIDER] if request is not None else c.UNKNOWN
        labels: Attributes = {c.OPERATION: "chat", c.PROVIDER: provider, **model}
        for name, kind, attribute in _USED:
            count = payload.get(name)
            if isinstance(count, int) and not isinstance(count, bool):
                yield Figure("gen_ai.client.token.usage", count, labels | {c.TOKEN_TYPE: kind})
                for one in (self._turns.get(fact.turn_id or ""), request):
                    if one is not None:
                        one.used[attribute] = one.used.get(attribute, 0) + count
        amount, currency = payload.get("amount"), payload.get("currency")
        if isinstance(amount, int | float) and isinstance(currency, str):
            yield Figure("arp.cost", amount, {c.CURRENCY: currency, **model})

    # -- waits and exports -----------------------------------------------------------------------

    def _asked(self, fact: Fact, at: int) -> None:
        key, tool = _waiting(fact), fact.payload.get("tool")
        if key is not None:
            _keep(self._waits, key, (at, {c.TOOL: str(tool)} if tool else {}), MOST_OPEN)

    def _answered(self, fact: Fact, at: int) -> Iterator[Measured]:
        key = _waiting(fact)
        began = self._waits.pop(key, None) if key is not None else None
        if key is not None and began is not None:
            decision = str(fact.payload.get("decision", c.UNKNOWN))
            labels = began[1] | {c.DECISION: decision}
            yield Figure(f"arp.{key[0]}.wait", seconds(began[0], at), labels)

    def _exported(self, fact: Fact, at: int) -> Iterator[Measured]:
        payload = fact.payload
        kind, state = (str(payload.get(name, c.UNKNOWN)) for name in ("kind", "state"))
        labels: Attributes = {c.KIND: kind, c.STATE: state}
        yield Figure("arp.exports", 1, labels)
        known = self._trace(fact.turn_id)
        trace = known or self._own_trace(fact)
        took = payload.get("durationMs")
        error = None if state in ("exported", "not_applicable") else state
        names: Attributes = {c.SEQUENCE: fact.sequence, c.EVIDENCE: fact.evidence_id or c.UNKNOWN}
        yield MeasuredSpan(
            name=f"export {kind}",
            trace=trace,
            span_id=hex_id(16, trace.trace_id, fact.event_id),
            parent_id=trace.span_id if known else None,
            start_ns=at - (int(took * 1e6) if isinstance(took, int | float) else 0),
            end_ns=at,
            attributes=labels | self._common | _ids(fact) | names | _failure(error),
            error=error,
        )

    def _own_trace(self, fact: Fact) -> Trace:
        """Return a trace for an export that belongs to no known turn."""
        if fact.turn_id:
            return trace_of(fact, self._epoch)
        trace_id = hex_id(32, fact.session_id, self._epoch, fact.event_id)
        return Trace(trace_id, hex_id(16, trace_id, fact.event_id))


def _model(fact: Fact) -> tuple[str, Attributes]:
    model = str(fact.payload.get("model", c.UNKNOWN))
    provider = str(fact.payload.get("provider") or c.UNKNOWN)
    return f"chat {model}", {c.OPERATION: "chat", c.REQUEST_MODEL: model, c.PROVIDER: provider}


def _tool(fact: Fact) -> tuple[str, Attributes]:
    tool, call = str(fact.payload.get("tool", c.UNKNOWN)), fact.tool_call_id or c.UNKNOWN
    return f"execute_tool {tool}", {c.OPERATION: "execute_tool", c.TOOL: tool, c.TOOL_CALL: call}


def _process(fact: Fact) -> tuple[str, Attributes]:
    command, pid = fact.payload.get("command"), fact.payload.get("pid")
    words = command if isinstance(command, list) else str(command or "").split()
    path = str(words[0]) if words else ""
    name = path.replace("\\", "/").rpartition("/")[2] or c.UNKNOWN
    return f"process {name}", {c.EXECUTABLE: name} | ({c.PID: pid} if pid else {})


_FAMILIES: Final = {
    "model": Family(
        lambda fact: fact.model_request_id,
        _model,
        "gen_ai.client.operation.duration",
        (c.OPERATION, c.PROVIDER, c.REQUEST_MODEL),
        "client",
    ),
    "tool": Family(
        lambda fact: fact.tool_call_id,
        _tool,
        "gen_ai.execute_tool.duration",
        (c.OPERATION, c.TOOL),
    ),
    "process": Family(
        lambda fact: fact.process_id, _process, "arp.process.duration", (c.EXECUTABLE,)
    ),
}

_USED: Final = (
    ("inputTokens", "input", c.INPUT_TOKENS),
    ("outputTokens", "output", c.OUTPUT_TOKENS),
)


def _closed(
    family: str, one: Open, trace: Trace, at: int, more: Attributes, error: str | None
) -> Iterator[Measured]:
    yield MeasuredSpan(
        name=one.name,
        kind=_FAMILIES[family].kind,
        trace=trace,
        span_id=one.span_id,
        parent_id=one.parent_id,
        start_ns=one.start_ns,
        end_ns=max(one.start_ns, at),
        attributes=one.attributes | one.used | more | _failure(error),
        error=error,
    )
    labels = _labels(family, one) | _failure(error)
    yield Figure(_FAMILIES[family].metric, seconds(one.start_ns, at), labels)


def _outcome(fact: Fact) -> tuple[Attributes, str | None]:
    """Return the attributes that the end of a span adds, and the type of its failure.

    The text of an error is never returned.
    """
    payload, more = fact.payload, Attributes()
    code = payload.get("exitCode")
    if isinstance(code, int):
        more[c.EXIT_CODE] = code
    if isinstance(payload.get("finishReason"), str):
        more[c.FINISH_REASONS] = [payload["finishReason"]]
    if fact.type.endswith((".failed", ".terminated")):
        return more, fact.type
    return more, "exit_code" if fact.type == "process.completed" and code else None


def _labels(family: str, one: Open) -> Attributes:
    return {name: one.attributes[name] for name in _FAMILIES[family].labels}


def _failure(error: str | None) -> Attributes:
    return {c.ERROR: error} if error else {}


def _ids(fact: Fact) -> Attributes:
    ids = {
        c.THREAD: fact.thread_id, c.TURN: fact.turn_id, c.TASK: fact.task_id, c.RUN: fact.run_id,
    }  # fmt: skip
    return {name: value for name, value in ids.items() if value}


def _waiting(fact: Fact) -> tuple[str, str] | None:
    is_question = fact.type.startswith("action.")
    key = fact.action_id if is_question else fact.request_id
    return ("question" if is_question else "permission", key) if key else None


def _keep(kept: dict[Any, Any], key: Any, value: Any, most: int) -> None:
    kept[key] = value
    if len(kept) > most:
        del kept[next(iter(kept))]


_F = SpanFold

_RULES: Final[dict[str, Callable[[SpanFold, Fact, int], Iterator[Measured] | None]]] = {
    "turn.submitted": _F._submitted,
    "turn.started": _F._started,
    "turn.completed": _F._ended,
    "turn.failed": _F._ended,
    "model.delta": _F._said,
    **dict.fromkeys(("model.requested", "tool.started", "process.started"), _F._began),
    **dict.fromkeys(
        (
            *("model.completed", "model.failed", "tool.result", "tool.failed"),
            *("process.completed", "process.failed", "process.terminated"),
        ),
        _F._finished,
    ),
    "cost.recorded": _F._cost,
    **dict.fromkeys(("action.required", "permission.requested"), _F._asked),
    **dict.fromkeys(("action.resolved", "permission.resolved"), _F._answered),
    "evidence.changed": _F._exported,
}
"""Type of a fact → method that applies it; other facts change nothing."""

TYPES: Final = frozenset(_RULES)
"""Types of the facts that `SpanFold.fold` applies."""

# -- times -----------------------------------------------------------------------------------------

_BEGAN = datetime(1970, 1, 1, tzinfo=UTC)


def nanoseconds(timestamp: str) -> int | None:
    """Return an RFC 3339 time in nanoseconds since 1970; `None` for any other text."""
    try:
        moment = datetime.fromisoformat(timestamp)
    except ValueError:
        return None
    if moment.tzinfo is None:
        return None
    return (moment - _BEGAN) // timedelta(microseconds=1) * 1000


def seconds(start_ns: int, end_ns: int) -> float:
    """Return the seconds between two times; 0 if the clock was set back."""
    return max(0, end_ns - start_ns) / 1e9
