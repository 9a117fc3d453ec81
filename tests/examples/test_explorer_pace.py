"""The pace of the explorer's own words and charts."""

from __future__ import annotations

import asyncio
from typing import Any, Literal, TypeAlias

import pytest
from pace import CHART_STEPS, MAX_PAUSES, say, show_chart, word_pause_s

from arp import Component, ui
from tests.examples.recorder import Recorder

ChartType: TypeAlias = Literal["line", "pie", "scatter"]

TEXT = "**fruit** has 4 rows,\n\nof *three* kinds. "


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that does not wait: how long each sleep would have been."""
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr("pace.asyncio.sleep", sleep)
    return slept


def line(count: int, kind: ChartType = "line") -> Component:
    labels = [f"l{number}" for number in range(count)]
    values = [float(number) for number in range(count)]
    only_first = [7.0, *[None] * (count - 1)]
    datasets = [ui.dataset("a", values), ui.dataset("b", only_first)]
    return ui.chart(kind, labels=labels, datasets=datasets)


def appended(turn: Recorder, series: int) -> list[Any]:
    """Return what was appended to the data of a series."""
    place = f"props.datasets.{series}.data"
    return [value for path, data in turn.appended if path == place for value in data]


@pytest.mark.parametrize(
    ("value", "pause_s"),
    [(None, 0.03), ("", 0.03), ("40", 0.04), ("0", 0.0), ("-1", 0.0), ("fast", 0.03)],
)
def test_the_pace_is_read_from_the_environment(value: str | None, pause_s: float) -> None:
    """`EXPLORER_PACE_MS`: milliseconds between two words."""
    assert word_pause_s({} if value is None else {"EXPLORER_PACE_MS": value}) == pause_s


async def test_a_text_comes_word_by_word(
    waits: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXPLORER_PACE_MS", "30")
    turn = Recorder()
    await say(turn.turn, TEXT)
    assert turn.said == TEXT
    assert turn.pieces == [
        "**fruit** ",
        "has ",
        "4 ",
        "rows,\n\n",
        "of ",
        "*three* ",
        "kinds. ",
    ]
    assert waits == [0.03] * 7


async def test_without_a_pace_a_text_comes_in_one_piece(waits: list[float]) -> None:
    turn = Recorder()
    await say(turn.turn, TEXT)
    assert (turn.pieces, waits) == ([TEXT], [])


async def test_a_long_text_takes_no_longer_than_the_bound(
    waits: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("EXPLORER_PACE_MS")
    await say(Recorder().turn, "word " * 1000)
    assert sum(waits) == pytest.approx(MAX_PAUSES * 0.03)


async def test_a_chart_grows_to_all_its_points(
    waits: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All labels stand from the start, so the axis does not move."""
    monkeypatch.setenv("EXPLORER_PACE_MS", "25")
    turn = Recorder()
    await show_chart(turn.turn, line(30))
    shown = turn.only("chart")
    assert len(shown["labels"]) == 30
    assert [each["data"] for each in shown["datasets"]] == [[0.0, 1.0, 2.0], [7.0, None, None]]
    assert appended(turn, 0) == list(range(3, 30))
    assert appended(turn, 1) == [None] * 27
    assert waits == [0.05] * 9
    assert len(waits) <= CHART_STEPS


@pytest.mark.parametrize(("count", "kind"), [(2, "line"), (30, "pie"), (30, "scatter")])
async def test_a_chart_that_would_look_wrong_in_part_comes_at_once(
    monkeypatch: pytest.MonkeyPatch, count: int, kind: ChartType
) -> None:
    monkeypatch.setenv("EXPLORER_PACE_MS", "25")
    turn = Recorder()
    await show_chart(turn.turn, line(count, kind))
    assert len(turn.only("chart")["datasets"][0]["data"]) == count
    assert turn.appended == []


async def test_a_cancel_ends_a_text_between_two_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXPLORER_PACE_MS", "10000")
    turn = Recorder()
    saying = asyncio.ensure_future(say(turn.turn, TEXT))
    await asyncio.sleep(0)
    saying.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(saying, 5)
    assert turn.pieces == ["**fruit** "]


async def test_a_cancel_leaves_the_complete_chart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXPLORER_PACE_MS", "10000")
    turn = Recorder()
    showing = asyncio.ensure_future(show_chart(turn.turn, line(30)))
    await asyncio.sleep(0)
    showing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(showing, 5)
    assert appended(turn, 0) == list(range(3, 30))
