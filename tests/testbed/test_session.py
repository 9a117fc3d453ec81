"""`arp.testing.session`: one renderer, what it shows, and what its user does."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest

from arp import App, Turn, ui
from arp.protocol.errors import InvalidMessage, SessionBusy
from arp.testing import session
from tests.testbed.shop import shop


@dataclass
class Order:
    name: str
    count: int


async def test_a_turn_has_text_tools_and_nested_components() -> None:
    async with session(shop()) as user:
        turn = await user.say("sales")
    assert (turn.status, turn.text, turn.error) == ("completed", "Let me look.", "")
    assert [(run.tool, run.args, run.ok, run.result) for run in turn.tools] == [
        ("query", '{"table":"sales"}', True, "2 rows")
    ]
    assert turn.tool_names == ["query"]
    assert [one.type for one in turn.components()] == ["group", "chart"]
    assert turn.component("chart").props["labels"] == ["Jan", "Feb"]
    assert turn.components("table") == []


async def test_one_component_of_a_type_is_demanded_with_what_shows() -> None:
    async with session(shop()) as user:
        turn = await user.say("sales")
        with pytest.raises(AssertionError, match=r"expected one table, there are 0:\n> sales"):
            turn.component("table")


@pytest.mark.parametrize(("answer", "said"), [(True, "Deleted."), (False, "Kept.")])
async def test_say_returns_when_something_is_asked_and_answer_when_the_turn_is_over(
    answer: bool, said: str
) -> None:
    async with session(shop()) as user:
        turn = await user.say("delete")
        assert turn.status == "waiting"
        assert turn.question is not None
        assert (turn.question.type, turn.question.title) == ("confirm", "Delete all?")
        await turn.answer(answer)
        assert (turn.status, turn.text) == ("completed", said)
        assert turn.questions == []


@pytest.mark.parametrize("order", [{"name": "Ann", "count": 2}, Order("Ann", 2)])
async def test_forms_choices_and_texts_are_answered_one_after_the_other(order: object) -> None:
    async with session(shop()) as user:
        turn = await user.say("order")
        assert turn.question is not None
        assert turn.question.fields == ["name", "count"]
        await turn.answer(order)
        assert turn.question is not None
        assert turn.question.options == ["small", "large"]
        await turn.answer("large")
        await turn.answer("no hurry")
        assert turn.text == "2 large for Ann: no hurry"


async def test_an_answer_that_is_none_says_what_one_is() -> None:
    async with session(shop()) as user:
        turn = await user.say("delete")
        with pytest.raises(TypeError, match="expected True or False; got 'yes'"):
            await turn.answer("yes")
        turn = await turn.answer(False)
        with pytest.raises(
            LookupError, match="this turn has no open question; it shows:\n> delete"
        ):
            await turn.answer(True)


async def test_an_answer_that_the_server_refuses_raises_its_error() -> None:
    async with session(shop()) as user:
        turn = await user.say("order")
        with pytest.raises(InvalidMessage, match="name"):
            await turn.answer({"count": 2})


@pytest.mark.parametrize(("allows", "result"), [(True, "paid"), (False, "not paid: too much")])
async def test_a_permission_is_allowed_or_denied(allows: bool, result: str) -> None:
    async with session(shop()) as user:
        turn = await user.say("pay")
        assert turn.permission is not None
        assert (turn.permission.tool, turn.tools[0].args) == ("pay", '{"amount":3}')
        await (turn.allow() if allows else turn.deny("too much"))
        assert turn.tools[0].result == result


async def test_a_failed_turn_has_the_traceback_of_the_agent() -> None:
    async with session(shop()) as user:
        turn = await user.say("fail")
    assert turn.status == "failed"
    assert turn.error.endswith("ValueError: no stock")
    assert "shop.py" in repr(turn)


async def test_files_are_uploaded() -> None:
    async with session(shop()) as user:
        turn = await user.upload(("note.txt", b"two apples"))
    assert turn.text == "note.txt: two apples"
    assert [one["name"] for one in turn.files] == ["note.txt"]


async def test_a_conversation_goes_on() -> None:
    async with session(shop()) as user:
        await user.say("one")
        await user.say("two")
        assert user.last_turn.text == "You have said 2 things before."
        assert [turn.status for turn in user.turns] == ["completed", "completed"]


async def test_a_turn_that_runs_is_cancelled() -> None:
    app = App()

    @app.agent
    async def sleeper(turn: Turn) -> None:
        await turn.say("Zzz")
        await asyncio.Event().wait()

    async with session(app) as user:
        turn = await user.say("sleep", wait=False)
        await user.until(lambda: turn.text or None, "text")
        await user.cancel()
        assert (await turn.over()).status == "cancelled"


async def test_a_wait_in_vain_says_what_shows() -> None:
    app = App()

    @app.agent
    async def hangs(turn: Turn) -> None:
        await turn.say("Almost")
        await asyncio.Event().wait()

    async with session(app, timeout_s=0.2) as user:
        with pytest.raises(AssertionError, match=r"no end of turn t1.*\n> go\nAlmost\n= running"):
            await user.say("go")


async def test_actions_and_selections_begin_turns() -> None:
    app = App()

    @app.agent
    async def rows(turn: Turn) -> None:
        if turn.input.input_type == "text":
            turn.show(ui.table(["x"], [[1], [2]], id="rows", selectable="many"))
        else:
            await turn.say(f"{turn.input.input_type} {turn.input.data}")

    async with session(app) as user:
        await user.say("show")
        turn = await user.select([1], source="rows")
        assert turn.text == "selection {'selected': [1]}"


async def test_who_begins_a_turn_and_with_what_is_as_the_test_says() -> None:
    async with session(shop(), locale="de-CH", user="ann") as user:
        assert (await user.say("who")).text == "ann () de-CH"


async def test_what_is_no_app_is_refused() -> None:
    with pytest.raises(TypeError, match=r"expected an App, got function; .*inside="):
        async with session(shop):  # type: ignore[arg-type]
            pass


def counting() -> App:
    """An app whose agent counts the turns of a branch."""
    app = App()

    @app.agent
    async def agent(turn: Turn) -> None:
        turn.state["count"] = count = turn.state.get("count", 0) + 1
        if turn.text == "wait":
            await turn.confirm("Go on?")
        await turn.say(f"{count} {turn.text}")

    return app


async def test_edit_and_regenerate_give_other_versions_of_a_turn() -> None:
    async with session(counting()) as user:
        first = await user.say("one")
        await user.say("two")
        edited = await user.edit(first, "other")
        assert (edited.text, edited.id == first.id) == ("1 other", False)
        again = await user.regenerate(edited.id)
        assert (again.text, [turn.id for turn in user.turns]) == ("1 other", [again.id])
        assert again.screen.inputs[0].versions == [first.id, edited.id, again.id]


async def test_edit_is_refused_while_a_turn_runs_and_counts_after_a_restart() -> None:
    async with session(counting()) as user:
        first = await user.say("one")
        waiting = await user.say("wait")
        with pytest.raises(SessionBusy):
            await user.edit(first, "other")
        assert (await user.turn(waiting.id).answer(True)).text == "2 wait"
        await user.restart()
        assert (await user.edit(first, "other")).text == "1 other"
