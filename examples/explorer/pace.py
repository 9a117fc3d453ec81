"""The pace of what the explorer says by itself: word by word, and charts point by point.

A language model streams by itself. The rules have their whole answer at once; they stream it too,
so that both look alike on every screen. A cancel ends it between two words.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Mapping

import msgspec

from arp import Component, Turn
from arp.protocol.json_value import Json

WORD_MS = 30.0
"""Between two words; about the speed of a fast model, and faster than anyone reads."""

MAX_PAUSES = 40
"""A text of more words takes no longer than one of so many: its words come faster."""

CHART_STEPS = 12
"""Parts in which a chart comes; each takes as long as two words."""

GROWING = ("line", "bar", "area")
"""Kinds of chart that look right with only the first of their points."""


async def say(turn: Turn, text: str) -> None:
    """Says a text as `Turn.say` does, word by word at the pace of `EXPLORER_PACE_MS`."""
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
    """Shows a chart that grows from its first points to all of them.

    A cancel leaves the whole chart, not a part of it that could be taken for all.
    """
    pause_s = 2 * word_pause_s(os.environ)
    series = [list(each["data"]) for each in chart.props["datasets"]]
    count = max(map(len, series), default=0)
    if not pause_s or count < 3 or chart.props["type"] not in GROWING:
        turn.show(chart)
        return
    step = -(-count // CHART_STEPS)
    chart_id = turn.show(_beginning(chart, step))
    shown = step
    try:
        while shown < count:
            await asyncio.sleep(pause_s)
            _append(turn, chart_id, [data[shown : shown + step] for data in series])
            shown += step
    finally:
        _append(turn, chart_id, [data[shown:] for data in series])


def _beginning(chart: Component, count: int) -> Component:
    """Returns the chart with all its labels, and the first points of each series."""
    datasets = [{**each, "data": each["data"][:count]} for each in chart.props["datasets"]]
    return msgspec.structs.replace(chart, props={**chart.props, "datasets": datasets})


def _append(turn: Turn, chart_id: str, points: list[list[Json]]) -> None:
    for number, data in enumerate(points):
        if data:
            turn.append(chart_id, f"props.datasets.{number}.data", data)


def word_pause_s(environ: Mapping[str, str]) -> float:
    """Returns the seconds between two words: `EXPLORER_PACE_MS`, 0 = everything at once."""
    try:
        return max(float(environ.get("EXPLORER_PACE_MS") or WORD_MS), 0.0) / 1000
    except ValueError:
        return WORD_MS / 1000
