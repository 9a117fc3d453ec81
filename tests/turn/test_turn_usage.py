"""What a turn took goes with its final commit, however it ends."""

from __future__ import annotations

import pytest

from arp import Turn
from arp.protocol.errors import ResourceLimit
from tests.hub.rig import Renderer, played, running


async def test_usage_of_several_calls_is_summed_in_the_final_commit() -> None:
    """protocol.md 2.1: `commit` has `usage`."""

    async def agent(turn: Turn) -> None:
        turn.usage(input_tokens=800, output_tokens=60, model="small")
        await turn.say("x")
        turn.usage(input_tokens=12, cost=0.5, model="large", cached=True)

    renderer = await played(agent)
    (final,) = [one for one in renderer.box.of("commit") if one["final"]]
    used = {"input_tokens": 812, "output_tokens": 60, "model": "large", "cost": 0.5, "cached": True}
    assert final["usage"] == used
    assert renderer.screen.turns["t1"].usage == used


async def test_usage_of_a_turn_that_fails_is_told_too() -> None:
    """It was spent."""

    async def agent(turn: Turn) -> None:
        turn.usage(input_tokens=7)
        raise RuntimeError

    renderer = await played(agent)
    (final,) = [one for one in renderer.box.of("commit") if one["final"]]
    assert final["usage"] == {"input_tokens": 7}


async def test_usage_below_nothing_changes_nothing() -> None:
    """A mistake of the caller: its other numbers are not added either."""

    async def agent(turn: Turn) -> None:
        turn.usage(input_tokens=7)
        with pytest.raises(ValueError, match="output_tokens: expected what was used"):
            turn.usage(input_tokens=1, output_tokens=-1)

    renderer = await played(agent)
    assert renderer.screen.turns["t1"].usage == {"input_tokens": 7}


async def test_turn_that_notes_nothing_has_no_usage() -> None:
    """The field is left out."""

    async def agent(turn: Turn) -> None:
        await turn.say("x")

    renderer = await played(agent)
    assert all("usage" not in one for one in renderer.box.of("commit"))


async def test_usage_is_there_for_who_comes_later() -> None:
    """A snapshot tells what one saw that never left."""

    async def agent(turn: Turn) -> None:
        turn.usage(input_tokens=7)

    async with running(agent) as hub:
        first = await Renderer(hub).join()
        await first.say("go")
        await first.ended("t1")
        second = await Renderer(hub).join()
        await second.box.has("commit", turn_id="t1")
    assert second.screen.turns["t1"].usage == {"input_tokens": 7}


async def test_too_much_usage_is_refused_and_changes_nothing() -> None:
    """It goes out with a commit."""

    async def agent(turn: Turn) -> None:
        turn.usage(tokens=1)
        with pytest.raises(ResourceLimit, match="usage: 5022 bytes; at most 4096"):
            turn.usage(note="x" * 5000)
        with pytest.raises(TypeError):
            turn.usage(note=object())

    renderer = await played(agent)
    assert renderer.screen.turns["t1"].usage == {"tokens": 1}


async def test_number_after_a_text_and_a_truth_value_take_the_place_of_it() -> None:
    """Only numbers add up."""

    async def agent(turn: Turn) -> None:
        turn.usage(a="one", b=True, c=1)
        turn.usage(a=2, b=3, c=1.5)

    renderer = await played(agent)
    assert renderer.screen.turns["t1"].usage == {"a": 2, "b": 3, "c": 2.5}
