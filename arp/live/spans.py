"""The tracing span that an agent's code runs in: the parent of the spans of the author's own code.

Theory of operation. Our spans are made from facts, some time after they happened (`arp/telemetry`),
but their ids are known before. So the code of a turn or a tool runs in an OpenTelemetry context
that names its span, and spans that the author's instrumentation begins there become its children.
Without our telemetry, the parent is the external span that requested the turn, if there is one.

OpenTelemetry is optional: this module does nothing unless OpenTelemetry is already loaded.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from arp.ledger.tracing import Trace, tool_span_id
from arp.session.session import Session


class Spans:
    """Makes the span of a turn or a tool call current while its code runs."""

    def __init__(self) -> None:
        self.is_sampled: Callable[[Trace], bool] | None = None
        """Whether the spans of a turn are exported; `None` without our telemetry."""

    def of_turn(self, session: Session, turn_id: str) -> AbstractContextManager[None]:
        """Return a context in which the span of a turn is current."""
        if not _is_loaded():
            return nullcontext()
        trace = session.trace(turn_id)
        if self.is_sampled is not None:
            return _current(trace.trace_id, trace.span_id, self.is_sampled(trace))
        if trace.caller is not None:
            return _current(trace.trace_id, trace.caller.span_id, trace.caller.sampled, remote=True)
        return nullcontext()

    def of_tool(self, session: Session, turn_id: str, call_id: str) -> AbstractContextManager[None]:
        """Return a context in which the span of a tool call is current."""
        if self.is_sampled is None or not _is_loaded():
            return nullcontext()
        trace = session.trace(turn_id)
        span_id = tool_span_id(trace.trace_id, session.epoch, call_id)
        return _current(trace.trace_id, span_id, self.is_sampled(trace))


def _is_loaded() -> bool:
    return "opentelemetry.trace" in sys.modules


@contextmanager
def _current(trace_id: str, span_id: str, sampled: bool, remote: bool = False) -> Iterator[None]:
    from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, use_span

    flags = TraceFlags(TraceFlags.SAMPLED if sampled else TraceFlags.DEFAULT)
    named = SpanContext(int(trace_id, 16), int(span_id, 16), remote, flags)
    with use_span(NonRecordingSpan(named), record_exception=False, set_status_on_exception=False):
        yield
