"""A fact in one line for a person: where, when, what, about what, and the gist of its payload."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from arp.commands.speaking import cut, printable
from arp.ledger.fact import Fact, decode

_SAID = ("error", "reason", "text", "message", "preview", "objective", "title", "decision")
"""What of a payload is told without its name, if it is there."""

_ABOUT = ("turn_id", "task_id", "run_id", "tool_call_id", "action_id", "process_id", "job_item_id")
"""Correlations that a line names, the first two that there are."""

_BAD = ("failed", "error", "blocked", "violation", "lost", "timed_out", "not_possible", "hit")
_GOOD = ("completed", "result", "exported")

_COLOURS = {
    "turn": "cyan",
    "tool": "blue",
    "process": "blue",
    "action": "yellow",
    "permission": "yellow",
    "task": "magenta",
    "job": "magenta",
    "model": "bright_black",
    "reasoning": "bright_black",
    "channel": "bright_black",
}


def fact_line(body: bytes, width: int) -> str:
    """Gives the line, in colour, for a terminal of `width` columns; what is no fact as it is.

    Args:
        body: As it is stored.
        width: At least 40.
    """
    try:
        fact = decode(body)
    except msgspec.DecodeError:
        return cut(printable(body.decode("utf-8", "replace")), width)
    place, time = f"{fact.sequence:>7}", fact.timestamp[11:23]
    about = " ".join(_about(fact))
    head = f"{place}  {time:12}  {fact.type:24} "
    told = cut(f"{about}  {gist(fact)}".strip(), max(width - len(head), 20))
    named = click.style(f"{printable(fact.type):24}", fg=_colour(fact.type))
    return f"{place}  {click.style(f'{printable(time):12}', dim=True)}  {named} {told}"


def _about(fact: Fact) -> list[str]:
    return [printable(getattr(fact, name)) for name in _ABOUT if getattr(fact, name)][:2]


def _colour(name: str) -> str | None:
    if name.endswith(_BAD):
        return "red"
    if name.endswith(_GOOD):
        return "green"
    return _COLOURS.get(name.partition(".")[0])


def gist(fact: Fact) -> str:
    """Gives what a payload says, in short."""
    payload: dict[str, Any] = fact.payload
    parts = [fact.status_reason or ""]
    asked = payload.get("input")
    if isinstance(asked, dict):
        parts.append(_short(asked.get("data")))
    for name, value in payload.items():
        if name in ("input", "component", "changes") or value in (None, "", [], {}):
            continue
        parts.append(_short(value) if name in _SAID else f"{name}={_short(value)}")
    return " ".join(part for part in parts if part)


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return cut(printable(text), 120)
