"""The order of a benchmark: what the agent or the bare application is to send."""

from __future__ import annotations

import msgspec
from msgspec import Struct

TOKEN = "token "
"""The token that is sent repeatedly: 6 characters."""

END = "|done|"
"""The last token, as long as the others; it is nowhere else in a message."""

RECEIPT = "receipt"
"""Makes `acked.py` send commits with their times, instead of waiting for each."""

MARK_WIDTH = 6
_TICK_NS = 100_000
_TICKS = 100_000


class Plan(Struct, frozen=True, omit_defaults=True):
    """An order, sent as JSON in the text of an input."""

    deltas: int = 0
    """Tokens for each session, including `END`."""
    interval_s: float = 0.0
    """Time to sleep after each token; 0: as fast as possible."""
    yields: bool = False
    """Without an interval: let the loop run after each token."""
    begin_ns: int = 0
    """When to start, on the monotonic clock that all processes of a machine share."""
    mark_every: int = 100
    """Send a mark instead of every n-th token. The bare application sends none."""
    hold_s: float = 0.0
    """How long the turn continues silently after `END`, so that its end is not measured."""
    to_all: bool = False
    """Let the bare application send every token to all connections, as a session always does."""
    patches: bool = False
    """Change one property of a component instead of sending each token but the last."""
    prose: bool = False
    """Send Markdown instead of tokens, each piece at its time."""
    collect: bool = False
    """Collect garbage and send only `END`."""


def mark(now_ns: int) -> str:
    """Return a token that contains the time, as long as the others."""
    return f"@{now_ns // _TICK_NS % _TICKS:05d}"


def age_ms(token: str, now_ns: int) -> float:
    """Return the age of a mark, to a tenth of a millisecond; it must be below 10 s."""
    ticks = (now_ns // _TICK_NS - int(token[1:])) % _TICKS
    return ticks * _TICK_NS / 1e6


class _Data(Struct, frozen=True):
    text: str = ""


class _Message(Struct, frozen=True):
    type: str
    data: _Data = _Data()


def order(plan: Plan) -> str:
    """Return the `input` message with a plan."""
    text = msgspec.json.encode(plan).decode()
    message = {"v": 1, "type": "input", "input_type": "text", "data": {"text": text}}
    return msgspec.json.encode(message).decode()


def ordered(message: str) -> Plan | None:
    """Return the plan in a message to the bare application; `None` if it is no input."""
    decoded = msgspec.json.decode(message, type=_Message)
    return read(decoded.data.text) if decoded.type == "input" else None


def read(text: str) -> Plan:
    """Return the plan in the text of an input."""
    return msgspec.json.decode(text, type=Plan)
