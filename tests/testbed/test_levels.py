"""Renderers of each level, and what they show as text."""

from __future__ import annotations

import pytest

from arp import App, Turn, ui
from arp.testing import as_seen, session
from tests.testbed.shop import shop

MINIMAL = """\
> sales
* query {"table":"sales"}: done
Let me look.
     Sold
---  ----
Jan     3
Feb     5
= completed"""

FULL = """\
> sales
* query {"table":"sales"}: done
Let me look.
[group]
       Sold
  ---  ----
  Jan     3
  Feb     5
= completed"""


async def test_each_level_gets_what_it_knows() -> None:
    async with session(shop()) as user:
        turn = await user.say("sales")
        types: dict[str, list[str]] = {}
        for level in ("minimal", "basic", "standard", "full"):
            async with user.join(level=level) as other:
                types[level] = [one.type for one in other.turn(turn.id).components()]
    assert types == {
        "minimal": ["text"],
        "basic": ["group", "table"],
        "standard": ["group", "chart"],
        "full": ["group", "chart"],
    }


async def test_a_snapshot_is_what_a_renderer_of_that_level_shows() -> None:
    async with session(shop()) as user:
        turn = await user.say("sales")
        assert await user.snapshot(turn, "minimal") == MINIMAL
        assert turn.snapshot() == FULL


async def test_a_renderer_of_texts_types_its_answer() -> None:
    async with session(shop(), level="minimal") as user:
        turn = await user.say("delete")
        assert turn.question is not None
        assert turn.question.type == "text"
        with pytest.raises(TypeError, match="a str, which this renderer's user types"):
            await turn.answer(True)
        assert (await turn.answer("yes")).text == "Deleted."


async def test_a_question_is_answered_on_one_renderer_and_closes_on_all() -> None:
    async with session(shop()) as page, page.join(level="basic") as terminal:
        turn = await page.say("delete")
        there = await terminal.turn(turn.id).settled()
        assert there.question is not None
        await there.answer(True)
        assert (await turn.over()).text == "Deleted."
        assert turn.component("confirm").props["answer"] is True


def test_one_component_is_seen_by_a_level_without_an_app() -> None:
    chart = ui.chart("bar", labels=["a"], datasets=[ui.dataset("S", [1])])
    assert as_seen(chart) == "   S\n-  -\na  1"
    assert as_seen(chart, "basic").startswith("[table]")
    with pytest.raises(ValueError, match="one of minimal, basic, standard; got 'full'"):
        as_seen(chart, "full")


async def test_a_level_that_there_is_not_is_refused() -> None:
    app = App()

    @app.agent
    async def agent(turn: Turn) -> None: ...

    with pytest.raises(ValueError, match="one of minimal, basic, standard, full; got 'huge'"):
        async with session(app, level="huge"):  # type: ignore[arg-type]
            pass
