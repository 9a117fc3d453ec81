"""Turns that left the memory are told as they were when they left (protocol.md 2.3)."""

from __future__ import annotations

from collections.abc import Iterator
from unittest.mock import patch

import pytest

from arp import Turn, ui
from arp.access.principal import Principal
from arp.control.turns import TurnInput
from arp.hub.hub import Hub
from arp.live.live_session import LiveSession
from arp.protocol.messages import Input
from arp.session.input.receive import NewTurnOptions, submit
from arp.session.tracking import window
from tests.hub.rig import AT, HeldStore, Renderer, running, settled

NOBODY = Principal()


@pytest.fixture(autouse=True)
def _three_are_recent() -> Iterator[None]:
    with patch.object(window, "RECENT_TURNS", 3):
        yield


async def agent(turn: Turn) -> None:
    """Says and shows its own number; `table` is filled by all."""
    await turn.say(f"re {turn.text}")
    turn.show(ui.text(turn.text, id=f"shown-{turn.id}"))
    if turn.text == "table":
        turn.show(ui.table(["n"], [], id="table"))


async def talked(hub: Hub, *texts: str) -> LiveSession:
    user = await Renderer(hub).join()
    for number, text in enumerate(texts, 1):
        await user.say(text)
        await user.ended(f"t{number}")
    user.leave()
    await settled(hub)
    return hub.sessions["s"]


TEXTS = [f"m{number}" for number in range(1, 9)]


async def numbers(hub: Hub, live: LiveSession, before: str | None, limit: int) -> list[int]:
    return [past.number for past in await hub.history.page(live, before, limit)]


async def test_page_is_the_same_wherever_its_turns_are() -> None:
    """In memory, in the log alone, or here and there."""
    async with running(agent) as hub:
        live = await talked(hub, *TEXTS)
        assert list(live.session.screen.turns) == ["t6", "t7", "t8"]
        page = await hub.history.page(live, None, 50)
    told = [(past.number, past.turn.id, past.turn.status, past.text) for past in page]
    assert told == [(n, f"t{n}", "completed", f"re m{n}") for n in range(1, 9)]
    assert [past.turn.inputs[0].data for past in page] == [{"text": text} for text in TEXTS]
    assert [past.output[-1].id for past in page] == [f"shown-t{n}" for n in range(1, 9)]


async def test_pages_go_back_turn_by_turn() -> None:
    async with running(agent) as hub:
        live = await talked(hub, *TEXTS)
        assert await numbers(hub, live, None, 2) == [7, 8]
        assert await numbers(hub, live, "t7", 3) == [4, 5, 6]
        assert await numbers(hub, live, "t4", 2) == [2, 3]
        assert await numbers(hub, live, "t1", 2) == []
        assert await numbers(hub, live, "t99", 1) == [8]
        assert await numbers(hub, live, "nonsense", 1) == [8]


async def test_recent_turns_are_told_without_the_log() -> None:
    store = HeldStore()
    async with running(agent, store=store) as hub:
        live = await talked(hub, *TEXTS)
        with patch.object(store, "read", side_effect=AssertionError("read")):
            assert await numbers(hub, live, None, 3) == [6, 7, 8]


async def test_turn_is_found_by_its_id() -> None:
    async with running(agent) as hub:
        live = await talked(hub, *TEXTS)
        for number in (2, 8):
            past = await hub.history.turn(live, f"t{number}")
            assert past is not None
            assert (past.number, past.text) == (number, f"re m{number}")
        for nothing in ("t0", "t9", "t", "other", "t1x", ""):
            assert await hub.history.turn(live, nothing) is None


async def test_turn_of_another_name_is_found_too() -> None:
    """Callers of the control plane may name turns; they count like others."""
    async with running(agent) as hub:
        live = await talked(hub, "m1")
        said = Input(input_type="text", data=TurnInput("mine").content())
        hub.carry_out(live, submit(live.session, said, NewTurnOptions("mine")))
        user = await Renderer(hub).join()
        for number in range(3, 9):
            await user.say(f"m{number}")
            await user.ended(f"t{number}")
        assert "mine" not in live.session.screen.turns
        past = await hub.history.turn(live, "mine")
        assert past is not None
        assert (past.number, past.text) == (2, "re mine")
        assert await numbers(hub, live, "mine", 9) == [1]
        assert await hub.history.turn(live, "other") is None
        assert await hub.history.turn(live, "t2") is None


async def test_turn_that_stayed_longer_is_told_with_what_changed() -> None:
    """The turn of a table that others fill is told as it was when it left, and where it came."""

    async def filling(turn: Turn) -> None:
        await agent(turn)
        if turn.text == "fill":
            turn.append("table", "props.rows", [[turn.id]])

    async with running(filling) as hub:
        live = await talked(hub, "table", *["fill"] * 4, *["x"] * 5)
        assert list(live.session.screen.turns) == ["t8", "t9", "t10"]
        page = await hub.history.page(live, "t3", 9)
    assert [past.number for past in page] == [1, 2]
    assert page[0].output[-1].props["rows"] == [["t2"], ["t3"], ["t4"], ["t5"]]


async def test_times_are_those_of_the_facts() -> None:
    async with running(agent) as hub:
        live = await talked(hub, *TEXTS)
        page = await hub.history.page(live, None, 8)
        times = await hub.history.times("s", page)
    assert times == dict.fromkeys(range(1, 9), (AT, AT))


async def test_times_of_what_is_not_durable_are_not_known_yet() -> None:
    store = HeldStore()
    async with running(agent, store=store) as hub:
        live = await talked(hub, "m1")
        store.hold()
        said = Input(input_type="text", data={"text": "m2"})
        hub.carry_out(live, submit(live.session, said))
        page = await hub.history.page(live, None, 8)
        assert await hub.history.times("s", page) == {1: (AT, AT), 2: ("", "")}
        store.release()
