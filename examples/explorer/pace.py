"""The pace of the explorer's own answers: word by word, and charts point by point.

A language model streams its answer. The rules have the complete answer at once and stream it too,
so that both look the same in every renderer. A cancel ends it between two words.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Mapping

import msgspec

from arp import Component, Turn

WORD_MS = 30.0
"""Milliseconds between two words; the speed of a fast model, and faster than people read."""

MAX_PAUSES = 40
"""A longer text takes as long as one with this number of words: its words come faster."""

CHART_STEPS = 12
"""Steps in which a chart grows; each takes as long as two words."""

GROWING = ("line", "bar", "area")
"""Kinds of charts that can be shown with only their first points."""


async def say(turn: Turn, text: str) -> None:
    """Send a text as `Turn.say` does, word by word at the pace of `EXPLORER_PACE_MS`."""
    pause_s = word_pause_s(os.environ)
    words = re.findall(r"\s*\S+\s*", text)
    if not pause_s or len(words) < 2:
        await turn.say(text)
        return
    pause_s *= min(1, MAX_PAUSES / len(words))
    for word in words:
        await turn.say(word)
        await asyncio.sleep(pause_s)


async def show_chart(turn: Turn, chart: Component) -> None:
    """Show a chart that grows from its first points to all of them.

    A cancel leaves the complete chart, because a part of it would be misleading.
    """
    pause_s = 2 * word_pause_s(os.environ)
    series = [list(each["data"]) for each in chart.props["datasets"]]
    count = max(map(len, series), default=0)
    if not pause_s or count < 3 or chart.props["type"] not in GROWING:
        turn.show(chart)
        return
    step = -(-count // CHART_STEPS)
    chart_id = turn.show(_first_points(chart, step))
    shown = step
    try:
        while shown < count:
            await asyncio.sleep(pause_s)
            _append(turn, chart_id, [data[shown : shown + step] for data in series])
            shown += step
    finally:
        _append(turn, chart_id, [data[shown:] for data in series])


def _first_points(chart: Component, count: int) -> Component:
    """Return the chart with all its labels, and the first points of each series."""
    datasets = [{**each, "data": each["data"][:count]} for each in chart.props["datasets"]]
    return msgspec.structs.replace(chart, props={**chart.props, "datasets": datasets})


def _append(turn: Turn, chart_id: str, points: list[list[float | None]]) -> None:
    for number, data in enumerate(points):
        if data:
            turn.append(chart_id, f"props.datasets.{number}.data", data)


def word_pause_s(environ: Mapping[str, str]) -> float:
    """Return the seconds between two words from `EXPLORER_PACE_MS`; 0 sends everything at once."""
    try:
        return max(float(environ.get("EXPLORER_PACE_MS") or WORD_MS), 0.0) / 1000
    except ValueError:
        return WORD_MS / 1000
