"""Tool calls, the processes that they run, and the output that was too large for the log."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct, field

from arp.ledger.fact import Fact
from arp.ledger.models.reading import added, brief, number, text, texts, whole
from arp.ledger.models.span import Spans
from arp.ledger.models.window import Record, Window, keep
from arp.protocol.json_value import Json

MOST_OPEN: Final = 100
MOST_CALLS: Final = 50
MOST_PROCESSES: Final = 20
MOST_OUTPUTS: Final = 50


class ToolCall(Record, rename="camel", omit_defaults=True, kw_only=True):
    """One call of a tool."""

    tool_call_id: str
    step_id: str | None = None
    thread_id: str | None = None
    turn_id: str | None = None
    task_id: str | None = None
    run_id: str | None = None
    tool: str | None = None
    status: str
    """running, completed, failed, or interrupted: its turn ended before it did."""
    args: str | None = None
    progress: str | None = None
    preview: str | None = None
    error: str | None = None
    output_ref: str | None = None
    started_at: str | None = None
    ended_at: str | None = None


class Process(Record, rename="camel", omit_defaults=True, kw_only=True):
    """One process that was started."""

    process_id: str
    status: str
    """running, completed, failed or terminated."""
    command: Json = None
    cwd: str | None = None
    pid: int | None = None
    exit_code: int | float | None = None
    signal: str | None = None
    reason: str | None = None
    output_bytes: int = 0
    input_bytes: int = 0
    output_ref: str | None = None
    thread_id: str | None = None
    turn_id: str | None = None
    tool_call_id: str | None = None
    started_at: str | None = None
    ended_at: str | None = None


class Output(Record, rename="camel", omit_defaults=True, kw_only=True):
    """Output of which the log has a preview."""

    output_ref: str
    status: str
    """spilled, or expired: the bytes are gone."""
    bytes: int | None = None
    sha256: str | None = None
    mime: str | None = None
    preview: str | None = None
    thread_id: str | None = None
    turn_id: str | None = None
    tool_call_id: str | None = None
    process_id: str | None = None


class Calls(Struct, rename="camel", omit_defaults=True):
    """What tools and processes did in a session."""

    tools: Window[ToolCall] = field(default_factory=lambda: Window[ToolCall]())
    processes: Window[Process] = field(default_factory=lambda: Window[Process]())
    outputs: list[Output] = []
    older_outputs: int = 0
    catalog: list[str] = []
    """Tools that the agent could last use."""
    tool_time: Spans = field(default_factory=Spans)
    redacted: int = 0
    """Secrets that were taken out before a fact was written."""
    truncated: int = 0


# -- tools -----------------------------------------------------------------------------------------


def _call(calls: Calls, fact: Fact) -> ToolCall:
    """Return the call that a fact is about, new if nothing is kept of it."""
    name = fact.tool_call_id or "unknown"
    call = calls.tools.get(name)
    if call is None:
        call = ToolCall(
            tool_call_id=name,
            status="running",
            first_sequence=fact.sequence,
            step_id=fact.step_id,
            thread_id=fact.thread_id,
            turn_id=fact.turn_id,
            task_id=fact.task_id,
            run_id=fact.run_id,
        )
        calls.tools.begin(name, call, MOST_OPEN)
    call.tool = text(fact.payload, "tool") or call.tool
    call.last_sequence = fact.sequence
    return call


def _tool_started(calls: Calls, fact: Fact) -> None:
    _call(calls, fact).started_at = fact.timestamp


def _tool_args(calls: Calls, fact: Fact) -> None:
    _call(calls, fact).args = text(fact.payload, "args")


def _tool_progress(calls: Calls, fact: Fact) -> None:
    call = _call(calls, fact)
    call.progress = text(fact.payload, "text", "message") or call.progress


def _tool_ended(calls: Calls, fact: Fact) -> None:
    call = _call(calls, fact)
    call.status = "completed" if fact.type == "tool.result" else "failed"
    call.preview = text(fact.payload, "preview") or call.preview
    call.error = text(fact.payload, "error") or call.error
    call.output_ref = fact.output_ref or call.output_ref
    call.ended_at = fact.timestamp
    calls.tool_time.add(call.started_at, fact.timestamp)
    calls.tools.end(call.tool_call_id, MOST_CALLS)


def _turn_ended(calls: Calls, fact: Fact) -> None:
    """A call that is open when its turn ends will not end any more."""
    for call in list(calls.tools.open.values()):
        if call.turn_id == fact.turn_id and call.thread_id == fact.thread_id:
            call.status = "interrupted"
            call.ended_at, call.last_sequence = fact.timestamp, fact.sequence
            calls.tools.end(call.tool_call_id, MOST_CALLS)


def _catalog(calls: Calls, fact: Fact) -> None:
    calls.catalog = texts(fact.payload, "tools")


# -- processes -------------------------------------------------------------------------------------


def _process(calls: Calls, fact: Fact) -> Process:
    name = fact.process_id or "unknown"
    process = calls.processes.get(name)
    if process is None:
        process = Process(
            process_id=name,
            status="running",
            first_sequence=fact.sequence,
            thread_id=fact.thread_id,
            turn_id=fact.turn_id,
            tool_call_id=fact.tool_call_id,
        )
        calls.processes.begin(name, process, MOST_PROCESSES)
    process.last_sequence = fact.sequence
    return process


def _process_started(calls: Calls, fact: Fact) -> None:
    process = _process(calls, fact)
    process.command = brief(fact.payload.get("command"))
    process.cwd = text(fact.payload, "cwd")
    process.pid = whole(fact.payload, "pid")
    process.started_at = fact.timestamp


def _process_output(calls: Calls, fact: Fact) -> None:
    process = _process(calls, fact)
    process.output_bytes = added(process.output_bytes, whole(fact.payload, "bytes"))
    process.output_ref = fact.output_ref or process.output_ref


def _process_input(calls: Calls, fact: Fact) -> None:
    process = _process(calls, fact)
    process.input_bytes = added(process.input_bytes, whole(fact.payload, "bytes"))


def _process_ended(calls: Calls, fact: Fact) -> None:
    process = _process(calls, fact)
    process.status = fact.type.removeprefix("process.")
    process.exit_code = number(fact.payload, "exitCode")
    process.signal = text(fact.payload, "signal")
    process.reason = text(fact.payload, "reason")
    process.ended_at = fact.timestamp
    calls.processes.end(process.process_id, MOST_PROCESSES)


# -- output ----------------------------------------------------------------------------------------


def _spilled(calls: Calls, fact: Fact) -> None:
    output = Output(
        output_ref=fact.output_ref or text(fact.payload, "outputRef") or "unknown",
        status="spilled",
        bytes=whole(fact.payload, "bytes"),
        sha256=text(fact.payload, "sha256"),
        mime=text(fact.payload, "mime"),
        preview=text(fact.payload, "preview"),
        thread_id=fact.thread_id,
        turn_id=fact.turn_id,
        tool_call_id=fact.tool_call_id,
        process_id=fact.process_id,
        first_sequence=fact.sequence,
        last_sequence=fact.sequence,
    )
    calls.older_outputs += keep(calls.outputs, output, MOST_OUTPUTS)
    call = calls.tools.get(fact.tool_call_id)
    if call is not None:
        call.output_ref = output.output_ref
    process = calls.processes.get(fact.process_id)
    if process is not None:
        process.output_ref = output.output_ref


def _expired(calls: Calls, fact: Fact) -> None:
    for output in calls.outputs:
        if output.output_ref == fact.output_ref:
            output.status, output.last_sequence = "expired", fact.sequence


def _redacted(calls: Calls, fact: Fact) -> None:
    findings = fact.payload.get("findings")
    for finding in findings if isinstance(findings, list) else ():
        more = whole(finding, "count") if isinstance(finding, dict) else None
        calls.redacted = added(calls.redacted, more)


def _truncated(calls: Calls, _: Fact) -> None:
    calls.truncated += 1


RULES: Final[dict[str, Callable[[Calls, Fact], None]]] = {
    "tool.catalog.resolved": _catalog,
    "tool.started": _tool_started,
    "tool.args": _tool_args,
    "tool.progress": _tool_progress,
    "tool.result": _tool_ended,
    "tool.failed": _tool_ended,
    "turn.completed": _turn_ended,
    "turn.failed": _turn_ended,
    "process.started": _process_started,
    "process.output": _process_output,
    "process.input": _process_input,
    "process.completed": _process_ended,
    "process.failed": _process_ended,
    "process.terminated": _process_ended,
    "output.spilled": _spilled,
    "output.expired": _expired,
    "output.redacted": _redacted,
    "output.truncated": _truncated,
}
"""Type of a fact → what it changes here."""
