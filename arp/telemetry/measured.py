"""What facts give: spans that are over, and figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from arp.ledger.tracing import Trace

Value: TypeAlias = str | int | float | bool | Sequence[str]
Attributes: TypeAlias = dict[str, Value]


class Span(Struct, frozen=True, kw_only=True):
    """Something that took a while and is over."""

    name: str
    kind: Literal["internal", "client", "server"] = "internal"
    trace: Trace
    """Of the turn; `trace.span_id` is the turn's span."""
    span_id: str
    parent_id: str | None
    """`None`: nothing is above it but `trace.caller`."""
    start_ns: int
    """Since 1970, UTC."""
    end_ns: int
    attributes: Attributes
    error: str | None = None
    """Why it failed; `None`: it did not."""


class Figure(Struct, frozen=True):
    """One measurement of a metric."""

    metric: str
    """A name in `conventions.METRICS`."""
    value: float
    attributes: Attributes
    at_ns: int


Measured: TypeAlias = Span | Figure
