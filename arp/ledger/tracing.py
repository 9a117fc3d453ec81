"""Which trace a turn belongs to: the ids that its first fact carries, and what came from outside.

Ids are made from what the log holds anyway, so the same facts always give the same trace: spans
that are made twice, by two readers or after a crash, are the same spans.
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
"""The bit of the flags that says that the caller keeps the trace."""


class Caller(Struct, frozen=True):
    """The span outside that something is a part of."""

    trace_id: str
    """32 lower-case hex digits."""
    span_id: str
    """16 lower-case hex digits."""
    sampled: bool
    """Whether the caller keeps the trace."""


class Trace(Struct, frozen=True):
    """The trace of a turn, and the turn's span in it."""

    trace_id: str
    span_id: str
    caller: Caller | None = None


def read_traceparent(text: str | None) -> Caller | None:
    """Read a `traceparent`; `None` if it is missing or not one, which is passed over.

    Source: W3C Trace Context, 3.2: of a later version what is known is read.
    """
    match = _TRACEPARENT.fullmatch(text) if text else None
    if match is None or (match[1] == "00" and match[5] is not None):
        return None
    return Caller(match[2], match[3], bool(int(match[4], 16) & SAMPLED))


def turn_trace(session_id: str, epoch: str, turn_id: str, traceparent: str | None) -> Trace:
    """Return the trace of a turn.

    Args:
        session_id: Of the session.
        epoch: Of its log, which no other log has.
        turn_id: Of the turn.
        traceparent: What came with the input; one that is none makes a trace of its own.
    """
    caller = read_traceparent(traceparent)
    trace_id = caller.trace_id if caller else hex_id(32, session_id, epoch, turn_id)
    return Trace(trace_id, hex_id(16, trace_id, epoch, turn_id), caller)


def turn_ids(session_id: str, epoch: str, turn_id: str, traceparent: str | None) -> dict[str, Json]:
    """Return what `turn.submitted` carries of its trace, by field name; see `turn_trace`."""
    trace = turn_trace(session_id, epoch, turn_id, traceparent)
    ids: dict[str, Json] = {"trace_id": trace.trace_id, "span_id": trace.span_id}
    return ids | ({"telemetry": {"traceparent": traceparent}} if trace.caller else {})


def tool_span_id(trace_id: str, epoch: str, call_id: str) -> str:
    """Return the span of a tool call, which is known before its first fact is recorded."""
    return hex_id(16, trace_id, epoch, call_id)


def traceparent_of(submitted: Fact) -> str | None:
    """Return what the first fact of a turn has of the span outside that asked for it."""
    telemetry = submitted.telemetry
    text = telemetry.get("traceparent") if isinstance(telemetry, dict) else None
    return text if isinstance(text, str) and read_traceparent(text) is not None else None


def trace_of(submitted: Fact, epoch: str) -> Trace:
    """Return the trace of a turn from its first fact, whether or not that carries one."""
    caller = read_traceparent(traceparent_of(submitted))
    turn_id = submitted.turn_id or "unknown"
    trace_id, span_id = submitted.trace_id or "", submitted.span_id or ""
    if not (_TRACE_ID.fullmatch(trace_id) and _SPAN_ID.fullmatch(span_id)):
        return turn_trace(submitted.session_id, epoch, turn_id, None)
    return Trace(trace_id, span_id, caller)


def hex_id(digits: int, *parts: str) -> str:
    """Return an id for what has these names; never all zeros."""
    text = "\0".join(parts)
    return sha256(text.encode()).hexdigest()[:digits]
