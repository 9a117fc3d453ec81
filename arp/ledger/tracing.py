"""The trace of a turn: trace and span ids, and the external span that requested the turn.

The ids are computed from what the log contains, so the same facts always give the same trace. Spans
that are created twice, by two readers or after a crash, are the same spans.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Final

from msgspec import Struct

from arp.ledger.fact import Fact
from arp.protocol.json_value import Json

_TRACEPARENT: Final = re.compile(
    r"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?",
    re.ASCII,
)

_TRACE_ID: Final = re.compile(r"(?!0{32})[0-9a-f]{32}", re.ASCII)
_SPAN_ID: Final = re.compile(r"(?!0{16})[0-9a-f]{16}", re.ASCII)

SAMPLED: Final = 1
"""Bit of the trace flags that is set if the caller records the trace."""


class Caller(Struct, frozen=True):
    """The external span that is the parent of a turn."""

    trace_id: str
    """Trace id, 32 lower-case hex digits."""
    span_id: str
    """Span id, 16 lower-case hex digits."""
    sampled: bool
    """Whether the caller records the trace."""


class Trace(Struct, frozen=True):
    """The trace of a turn, and the turn's span in it."""

    trace_id: str
    span_id: str
    caller: Caller | None = None


def read_traceparent(text: str | None) -> Caller | None:
    """Parse a `traceparent`; return `None` if it is missing or invalid.

    Source: W3C Trace Context, 3.2: the known fields of a later version are used.
    """
    match = _TRACEPARENT.fullmatch(text) if text else None
    if match is None or (match[1] == "00" and match[5] is not None):
        return None
    return Caller(match[2], match[3], bool(int(match[4], 16) & SAMPLED))


def turn_trace(session_id: str, epoch: str, turn_id: str, traceparent: str | None) -> Trace:
    """Return the trace of a turn.

    Args:
        session_id: Id of the session.
        epoch: Id of its log, which no other log has.
        turn_id: Id of the turn.
        traceparent: `traceparent` of the input; if it is missing or invalid, the turn gets a trace
            of its own.
    """
    caller = read_traceparent(traceparent)
    trace_id = caller.trace_id if caller else hex_id(32, session_id, epoch, turn_id)
    return Trace(trace_id, hex_id(16, trace_id, epoch, turn_id), caller)


def turn_ids(session_id: str, epoch: str, turn_id: str, traceparent: str | None) -> dict[str, Json]:
    """Return the fields of `turn.submitted` that name its trace; see `turn_trace`."""
    trace = turn_trace(session_id, epoch, turn_id, traceparent)
    ids: dict[str, Json] = {"trace_id": trace.trace_id, "span_id": trace.span_id}
    return ids | ({"telemetry": {"traceparent": traceparent}} if trace.caller else {})


def tool_span_id(trace_id: str, epoch: str, call_id: str) -> str:
    """Return the span id of a tool call; it is known before the call's first fact is recorded."""
    return hex_id(16, trace_id, epoch, call_id)


def traceparent_of(submitted: Fact) -> str | None:
    """Return the `traceparent` in the first fact of a turn; `None` if it has no valid one."""
    telemetry = submitted.telemetry
    text = telemetry.get("traceparent") if isinstance(telemetry, dict) else None
    return text if isinstance(text, str) and read_traceparent(text) is not None else None


def trace_of(submitted: Fact, epoch: str) -> Trace:
    """Return the trace of a turn from its first fact; computed if the fact has no valid ids."""
    caller = read_traceparent(traceparent_of(submitted))
    turn_id = submitted.turn_id or "unknown"
    trace_id, span_id = submitted.trace_id or "", submitted.span_id or ""
    if not (_TRACE_ID.fullmatch(trace_id) and _SPAN_ID.fullmatch(span_id)):
        return turn_trace(submitted.session_id, epoch, turn_id, None)
    return Trace(trace_id, span_id, caller)


def hex_id(digits: int, *parts: str) -> str:
    """Return an id in hex digits that is computed from names; it is never all zeros.

    Args:
        digits: Number of digits.
        parts: The names; the same names give the same id.
    """
    text = "\0".join(parts)
    return sha256(text.encode()).hexdigest()[:digits]
