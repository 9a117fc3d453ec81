"""What a server is asked to say: one order, understood by the agent and by the bare application."""

from __future__ import annotations

import msgspec
from msgspec import Struct

TOKEN = "token "
"""What is said again and again: 6 characters."""

END = "|done|"
"""The last token, as long as the others; no message has it elsewhere."""

RECEIPT = "receipt"
"""Asks `acked.py` for commits that say when they were made, instead of waiting for each."""

MARK_WIDTH = 6
_TICK_NS = 100_000
_TICKS = 100_000


class Plan(Struct, frozen=True, omit_defaults=True):
    """An order. It travels as JSON, as the text of an input."""

    deltas: int = 0
    """Tokens for each session, `END` included."""
    interval_s: float = 0.0
    """Slept after each token; 0 = as fast as it goes."""
    yields: bool = False
    """With no interval: lets the loop run after each token."""
    begin_ns: int = 0
    """When to begin, on the monotonic clock that all processes of a machine share."""
    mark_every: int = 100
    """Every which token is a mark. The bare application sends none."""
    hold_s: float = 0.0
    """How long the turn goes on in silence after `END`, so that its end is not measured."""
    to_all: bool = False
    """The bare application sends every token to all connections; a session does so anyway."""
    patches: bool = False
    """Changes one property of a component in the place of each token but the last."""
    prose: bool = False
    """Says Markdown in the place of tokens, each piece when it is due."""
    collect: bool = False
    """Collects garbage and says `END`, nothing else."""


def mark(now_ns: int) -> str:
    """Return a token that tells when it was said, as long as the others."""
    return f"@{now_ns // _TICK_NS % _TICKS:05d}"


def age_ms(token: str, now_ns: int) -> float:
    """Return how old a mark is; right for ages below 10 s, to a tenth of a millisecond."""
    ticks = (now_ns // _TICK_NS - int(token[1:])) % _TICKS
    return ticks * _TICK_NS / 1e6


class _Data(Struct, frozen=True):
    text: str = ""


class _Said(Struct, frozen=True):
    type: str
    data: _Data = _Data()


def order(plan: Plan) -> str:
    """Return the `input` that asks for a plan."""
    text = msgspec.json.encode(plan).decode()
    said = {"v": 1, "type": "input", "input_type": "text", "data": {"text": text}}
    return msgspec.json.encode(said).decode()


def ordered(message: str) -> Plan | None:
    """Reads a message as the bare application gets it; `None` if it is no order."""
    said = msgspec.json.decode(message, type=_Said)
    return read(said.data.text) if said.type == "input" else None


def read(text: str) -> Plan:
    """Reads a plan as the agent gets it."""
    return msgspec.json.decode(text, type=Plan)
