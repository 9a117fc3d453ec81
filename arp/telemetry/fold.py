"""Spans and figures of one session, from its facts in order. Pure.

Theory of operation. What begins is kept open under its id until a fact ends it; then it is given
out as a span. A turn that ends closes what is still open in it, as interrupted. Nothing that
anybody said, called a tool with or got back is in any attribute: names, ids, numbers and kinds of
errors alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, Literal

from msgspec import Struct, field

from arp.ledger.fact import Fact
from arp.ledger.tracing import Trace, hex_id, tool_span_id, trace_of
from arp.telemetry import conventions as c
from arp.telemetry.measured import Attributes, Figure, Measured, Span
from arp.telemetry.timing import nanoseconds, seconds

MOST_OPEN: Final = 1000
"""Of each kind; the oldest is let go, and never told."""

MOST_OVER: Final = 64
"""Turns that are over and whose trace is still known, for what comes late."""


class OpenTurn(Struct):
    """A turn that was submitted."""

    trace: Trace
    submitted_ns: int
    sequence: int
    attributes: Attributes
    started_ns: int | None = None
    first_ns: int | None = None
    used: dict[str, int] = field(default_factory=dict)
    """Tokens by attribute."""


class Open(Struct, frozen=True):
    """Something in a turn that has begun."""

    name: str
    span_id: str
    parent_id: str
    start_ns: int
    attributes: Attributes
    turn_id: str
    kind: Literal["internal", "client"] = "internal"
    used: dict[str, int] = field(default_factory=dict)
    """Tokens by attribute."""


class SpanFold:
    """Takes the facts of one session.

    Args:
        session_id: Of the session.
        epoch: Of its log.
        agent: Which agent works in it.
    """

    def __init__(self, session_id: str, epoch: str, agent: str) -> None:
        self._epoch = epoch
        self._common: Attributes = {c.CONVERSATION: session_id}
        self._agent = agent
        self._turns: dict[str, OpenTurn] = {}
        self._over: dict[str, Trace] = {}
        self._open: dict[str, dict[str, Open]] = {"model": {}, "tool": {}, "process": {}}
        self._waits: dict[tuple[str, str], tuple[int, str]] = {}

    def wants_text(self, turn_id: str | None) -> bool:
        """Tells whether a text of a turn says anything new: only its first does."""
        turn = self._turns.get(turn_id or "")
        return turn is not None and turn.first_ns is None

    def fold(self, fact: Fact) -> Iterator[Measured]:
        """Takes the next fact, and gives what is over with it."""
        rule = _RULES.get(fact.type)
        at = nanoseconds(fact.timestamp) if rule is not None else None
        if rule is not None and at is not None:
            yield from rule(self, fact, at)

    # -- turns -----------------------------------------------------------------------------------

    def submitted(self, fact: Fact, at: int) -> Iterator[Measured]:
        """A turn is there."""
        attributes: Attributes = {
            c.OPERATION: "invoke_agent",
            c.AGENT: self._agent or c.UNKNOWN,
            **self._common,
            **_ids(fact),
        }
        turn = OpenTurn(trace_of(fact, self._epoch), at, fact.sequence, attributes)
        _keep(self._turns, fact.turn_id or c.UNKNOWN, turn, MOST_OPEN)
        return iter(())

    def started(self, fact: Fact, at: int) -> Iterator[Measured]:
        """A turn runs."""
        turn = self._turns.get(fact.turn_id or "")
        if turn is not None and turn.started_ns is None:
            turn.started_ns = at
            wait = seconds(turn.submitted_ns, at)
            turn.attributes[c.QUEUE_WAIT] = wait
            yield Figure("arp.turn.queue_wait", wait, self._of_agent(), at)

    def said(self, fact: Fact, at: int) -> Iterator[Measured]:
        """A turn said something."""
        turn = self._turns.get(fact.turn_id or "")
        if turn is None or turn.first_ns is not None:
            return
        turn.first_ns = at
        since = turn.started_ns if turn.started_ns is not None else turn.submitted_ns
        took = seconds(since, at)
        turn.attributes[c.FIRST_TEXT] = took
        yield Figure("arp.turn.time_to_first_text", took, self._of_agent(), at)
        for request in self._open["model"].values():
            if request.turn_id == fact.turn_id:
                name = "gen_ai.client.operation.time_to_first_chunk"
                yield Figure(name, seconds(request.start_ns, at), _of_model(request), at)

    def ended(self, fact: Fact, at: int) -> Iterator[Measured]:
        """A turn is over, and with it what is open in it."""
        turn_id = fact.turn_id or c.UNKNOWN
        turn = self._turns.pop(turn_id, None)
        if turn is None:
            return
        yield from self._interrupt(turn_id, turn, at)
        failed = fact.status_reason or "failed" if fact.type == "turn.failed" else None
        error = None if failed == "cancelled" else failed
        status = str(fact.payload.get("status") or fact.status or "completed")
        attributes = turn.attributes | turn.used | {c.STATUS: status, c.SEQUENCE: turn.sequence}
        start = turn.started_ns if turn.started_ns is not None else turn.submitted_ns
        caller = turn.trace.caller
        yield Span(
            name=f"invoke_agent {self._agent or c.UNKNOWN}",
            kind="server" if caller else "internal",
            trace=turn.trace,
            span_id=turn.trace.span_id,
            parent_id=None,
            start_ns=start,
            end_ns=max(start, at),
            attributes=attributes | _failure(error),
            error=error,
        )
        if turn.started_ns is not None:
            took, what = seconds(start, at), self._of_agent() | _failure(error)
            yield Figure("gen_ai.invoke_agent.duration", took, what, at)
        _keep(self._over, turn_id, turn.trace, MOST_OVER)

    def _interrupt(self, turn_id: str, turn: OpenTurn, at: int) -> Iterator[Measured]:
        for family, kept in self._open.items():
            for key in [key for key, one in kept.items() if one.turn_id == turn_id]:
                yield from _closed(family, kept.pop(key), turn.trace, at, {}, "interrupted")

    def _of_agent(self) -> Attributes:
        return {c.OPERATION: "invoke_agent", c.AGENT: self._agent or c.UNKNOWN}

    def _trace(self, turn_id: str) -> Trace | None:
        turn = self._turns.get(turn_id)
        return turn.trace if turn is not None else self._over.get(turn_id)

    # -- models, tools, processes ----------------------------------------------------------------

    def began(self, fact: Fact, at: int) -> Iterator[Measured]:
        """A request to a model, a tool call or a process has begun."""
        family, turn_id = fact.type.partition(".")[0], fact.turn_id or ""
        trace = self._trace(turn_id)
        if trace is None:
            return
        key, name, attributes = _NAMES[family](fact)
        kind: Literal["internal", "client"] = "client" if family == "model" else "internal"
        span_id = hex_id(16, trace.trace_id, fact.event_id)
        if family == "tool":  # whose author's own spans name it before there is a fact
            span_id = tool_span_id(trace.trace_id, self._epoch, key)
        common = self._common | _ids(fact) | {c.SEQUENCE: fact.sequence}
        call = self._open["tool"].get(fact.tool_call_id or "") if family == "process" else None
        above = call.span_id if call is not None else trace.span_id
        made = Open(name, span_id, above, at, attributes | common, turn_id, kind)
        _keep(self._open[family], key, made, MOST_OPEN)
        yield from ()

    def finished(self, fact: Fact, at: int) -> Iterator[Measured]:
        """It is over."""
        family = fact.type.partition(".")[0]
        one = self._open[family].pop(_key(family, fact), None)
        trace = self._trace(one.turn_id) if one is not None else None
        if one is not None and trace is not None:
            more, error = _outcome(fact)
            yield from _closed(family, one, trace, at, more, error)

    def cost(self, fact: Fact, at: int) -> Iterator[Measured]:
        """Tokens were used, and money."""
        payload = fact.payload
        model = {c.REQUEST_MODEL: str(payload.get("model", c.UNKNOWN))}
        request = self._open["model"].get(fact.model_request_id or "")
        provider = request.attributes.get(c.PROVIDER) if request is not None else None
        common: Attributes = {c.OPERATION: "chat", c.PROVIDER: provider or c.UNKNOWN, **model}
        turn = self._turns.get(fact.turn_id or "")
        for name, kind, attribute in _USED:
            count = payload.get(name)
            if isinstance(count, int) and not isinstance(count, bool):
                told = common | {c.TOKEN_TYPE: kind}
                yield Figure("gen_ai.client.token.usage", count, told, at)
                for one in (turn, request):
                    if one is not None:
                        one.used[attribute] = one.used.get(attribute, 0) + count
        amount, currency = payload.get("amount"), payload.get("currency")
        if isinstance(amount, int | float) and isinstance(currency, str):
            yield Figure("arp.cost", amount, {c.CURRENCY: currency, **model}, at)

    # -- waits and exports -----------------------------------------------------------------------

    def asked(self, fact: Fact, at: int) -> Iterator[Measured]:
        """Somebody is asked."""
        key = _waiting(fact)
        if key is not None:
            _keep(self._waits, key, (at, str(fact.payload.get("tool") or "")), MOST_OPEN)
        return iter(())

    def answered(self, fact: Fact, at: int) -> Iterator[Measured]:
        """There is an answer, or there will be none."""
        key = _waiting(fact)
        began = self._waits.pop(key, None) if key is not None else None
        if key is not None and began is not None:
            what: Attributes = {c.DECISION: str(fact.payload.get("decision", c.UNKNOWN))}
            what |= {c.TOOL: began[1]} if began[1] else {}
            yield Figure(f"arp.{key[0]}.wait", seconds(began[0], at), what, at)

    def exported(self, fact: Fact, at: int) -> Iterator[Measured]:
        """Something was exported from the facts."""
        payload = fact.payload
        kind, state = (str(payload.get(name, c.UNKNOWN)) for name in ("kind", "state"))
        what: Attributes = {c.KIND: kind, c.STATE: state}
        yield Figure("arp.exports", 1, what, at)
        known = self._trace(fact.turn_id or "")
        trace = known or self._own_trace(fact)
        took = payload.get("durationMs")
        length = int(took * 1e6) if isinstance(took, int | float) else 0
        error = None if state in ("exported", "not_applicable") else state
        names: Attributes = {c.SEQUENCE: fact.sequence, c.EVIDENCE: fact.evidence_id or c.UNKNOWN}
        yield Span(
            name=f"export {kind}",
            trace=trace,
            span_id=hex_id(16, trace.trace_id, fact.event_id),
            parent_id=trace.span_id if known else None,
            start_ns=at - length,
            end_ns=at,
            attributes=what | self._common | _ids(fact) | names | _failure(error),
            error=error,
        )

    def _own_trace(self, fact: Fact) -> Trace:
        """Gives a trace for what belongs to no turn that is known."""
        if fact.turn_id:
            return trace_of(fact, self._epoch)
        trace_id = hex_id(32, fact.session_id, self._epoch, fact.event_id)
        return Trace(trace_id, hex_id(16, trace_id, fact.event_id))


_USED: Final = (
    ("inputTokens", "input", c.INPUT_TOKENS),
    ("outputTokens", "output", c.OUTPUT_TOKENS),
)


def _keep(kept: dict[Any, Any], key: Any, value: Any, most: int) -> None:
    kept[key] = value
    if len(kept) > most:
        del kept[next(iter(kept))]


def _ids(fact: Fact) -> Attributes:
    ids = {
        c.THREAD: fact.thread_id, c.TURN: fact.turn_id, c.TASK: fact.task_id, c.RUN: fact.run_id,
    }  # fmt: skip
    return {name: value for name, value in ids.items() if value}


def _failure(error: str | None) -> Attributes:
    return {c.ERROR: error} if error else {}


def _of_model(request: Open) -> Attributes:
    names = (c.OPERATION, c.PROVIDER, c.REQUEST_MODEL)
    return {name: request.attributes[name] for name in names}


def _key(family: str, fact: Fact) -> str:
    ids = {
        "model": fact.model_request_id, "tool": fact.tool_call_id, "process": fact.process_id,
    }  # fmt: skip
    return ids[family] or c.UNKNOWN


def _model(fact: Fact) -> tuple[str, str, Attributes]:
    model = str(fact.payload.get("model", c.UNKNOWN))
    provider = str(fact.payload.get("provider") or c.UNKNOWN)
    told: Attributes = {c.OPERATION: "chat", c.REQUEST_MODEL: model, c.PROVIDER: provider}
    return _key("model", fact), f"chat {model}", told


def _tool(fact: Fact) -> tuple[str, str, Attributes]:
    tool, key = str(fact.payload.get("tool", c.UNKNOWN)), _key("tool", fact)
    told: Attributes = {c.OPERATION: "execute_tool", c.TOOL: tool, c.TOOL_CALL: key}
    return key, f"execute_tool {tool}", told


def _process(fact: Fact) -> tuple[str, str, Attributes]:
    command = fact.payload.get("command")
    words = command if isinstance(command, list) else str(command or "").split()
    path = str(words[0]) if words else c.UNKNOWN
    name = path.replace("\\", "/").rpartition("/")[2] or c.UNKNOWN
    told: Attributes = {c.EXECUTABLE: name}
    pid = fact.payload.get("pid")
    return _key("process", fact), f"process {name}", told | ({c.PID: pid} if pid else {})


_NAMES: Final[dict[str, Callable[[Fact], tuple[str, str, Attributes]]]] = {
    "model": _model,
    "tool": _tool,
    "process": _process,
}
"""Family → the id under which it is open, the name of its span, its attributes."""


def _outcome(fact: Fact) -> tuple[Attributes, str | None]:
    """Gives what the end of something adds, and what kind of failure it was; never its text."""
    payload, more = fact.payload, Attributes()
    code = payload.get("exitCode")
    if isinstance(code, int):
        more[c.EXIT_CODE] = code
    if isinstance(payload.get("finishReason"), str):
        more[c.FINISH_REASONS] = [payload["finishReason"]]
    if fact.type.endswith((".failed", ".terminated")):
        return more, fact.type
    return more, "exit_code" if fact.type == "process.completed" and code else None


_DURATIONS: Final = {
    "model": ("gen_ai.client.operation.duration", (c.OPERATION, c.PROVIDER, c.REQUEST_MODEL)),
    "tool": ("gen_ai.execute_tool.duration", (c.OPERATION, c.TOOL)),
    "process": ("arp.process.duration", (c.EXECUTABLE,)),
}
"""Family → its metric, and the attributes by which that is told apart: few values each."""


def _closed(
    family: str, one: Open, trace: Trace, at: int, more: Attributes, error: str | None
) -> Iterator[Measured]:
    failure = _failure(error)
    end = max(one.start_ns, at)
    yield Span(
        name=one.name,
        kind=one.kind,
        trace=trace,
        span_id=one.span_id,
        parent_id=one.parent_id,
        start_ns=one.start_ns,
        end_ns=end,
        attributes=one.attributes | one.used | more | failure,
        error=error,
    )
    metric, names = _DURATIONS[family]
    what = {name: one.attributes[name] for name in names}
    yield Figure(metric, seconds(one.start_ns, at), what | failure, at)


def _waiting(fact: Fact) -> tuple[str, str] | None:
    is_question = fact.type.startswith("action.")
    key = fact.action_id if is_question else fact.request_id
    return ("question" if is_question else "permission", key) if key else None


_F = SpanFold

_RULES: Final[dict[str, Callable[[SpanFold, Fact, int], Iterator[Measured]]]] = {
    "turn.submitted": _F.submitted,
    "turn.started": _F.started,
    "turn.completed": _F.ended,
    "turn.failed": _F.ended,
    "model.delta": _F.said,
    **dict.fromkeys(("model.requested", "tool.started", "process.started"), _F.began),
    **dict.fromkeys(
        (
            *("model.completed", "model.failed", "tool.result", "tool.failed"),
            *("process.completed", "process.failed", "process.terminated"),
        ),
        _F.finished,
    ),
    "cost.recorded": _F.cost,
    **dict.fromkeys(("action.required", "permission.requested"), _F.asked),
    **dict.fromkeys(("action.resolved", "permission.resolved"), _F.answered),
    "evidence.changed": _F.exported,
}
"""Type of a fact → what it does; others do nothing here."""

TYPES: Final = frozenset(_RULES)
"""Types that matter here."""
