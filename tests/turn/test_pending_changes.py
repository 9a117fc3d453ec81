"""A refused change is reported with the line of the call, however far below it is refused."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable
from typing import Any

import pytest

from arp import Component, SyncTurn, Turn, ui
from arp.protocol.errors import ArpError, InvalidComponent, InvalidPatch
from arp.turn.sync_turn import in_thread
from tests.hub.rig import played


def told(error: BaseException) -> str:
    """Return what a log says of an error, without its traceback."""
    return "".join(traceback.format_exception_only(error))


async def refused(wrong: Callable[[Turn], Any]) -> str:
    """Return what the author reads of changes that are refused at the next await."""
    errors: list[str] = []

    async def agent(turn: Turn) -> None:
        turn.show(ui.text("a", id="a"), ui.text("b", id="b"))
        wrong(turn)
        try:
            await turn.say("far below")
        except ArpError as error:
            errors.append(told(error))

    await played(agent)
    return errors[0]


def patch_what_is_not_there(turn: Turn) -> None:
    turn.patch("a", "props.content", "A")
    turn.patch("nobody", "props.content", "B")  # this one
    turn.patch("b", "props.content", "C")


def patch_between_others(turn: Turn) -> None:
    turn.patch("a", "props.content", "A")
    turn.show(ui.text("c", id="c"))
    turn.patch("a", "props.contnt", "B")  # this one
    turn.append("b", "props.content", "C")


def append_to_a_number(turn: Turn) -> None:
    turn.append("a", "props.content", 7)  # this one


def remove_twice(turn: Turn) -> None:
    turn.remove("a")
    turn.remove("a")  # this one


def show_what_does_not_fit(turn: Turn) -> None:
    turn.show(ui.text("c"))
    turn.show(ui.text("d"), Component("", "table", {"rows": 7}))  # this one
    turn.show(ui.text("e"))


def insert_into_nothing(turn: Turn) -> None:
    turn.insert(ui.text("c"), parent="nobody")  # this one


def change_another_surface(turn: Turn) -> None:
    details = turn.surface("details")
    turn.patch("a", "props.content", "A")
    details.patch("nobody", "props.content", "B")  # this one


@pytest.mark.parametrize(
    "wrong",
    [
        patch_what_is_not_there,
        patch_between_others,
        append_to_a_number,
        remove_twice,
        show_what_does_not_fit,
        insert_into_nothing,
        change_another_surface,
    ],
)
async def test_refused_change_names_the_line_of_its_call(wrong: Callable[[Turn], Any]) -> None:
    message = await refused(wrong)
    assert 'test_pending_changes.py", line' in message
    assert f"in {wrong.__name__}" in message
    assert message.rstrip().endswith("# this one")


async def test_refused_change_in_a_frame_names_its_call() -> None:
    errors: list[str] = []

    async def agent(turn: Turn) -> None:
        turn.show(ui.text("a", id="a"))
        try:
            async with turn.frame():
                turn.patch("a", "props.contnt", "A")  # this one
                turn.patch("a", "props.content", "A")
        except InvalidPatch as error:
            errors.append(told(error))

    await played(agent)
    assert errors[0].rstrip().endswith("# this one")


async def test_refused_change_of_a_thread_names_its_call() -> None:
    errors: list[str] = []

    def agent(turn: SyncTurn) -> None:
        turn.show(ui.text("a", id="a"))
        turn.patch("a", "props.contnt", "A")  # this one
        try:
            turn.say("below")
        except InvalidPatch as error:
            errors.append(told(error))

    await played(in_thread(agent))
    assert errors[0].rstrip().endswith("# this one")


async def test_refused_change_of_a_library_names_the_line_that_called_it() -> None:
    """A task that no line of an author's began names none."""
    errors: list[str] = []

    async def agent(turn: Turn) -> None:
        asyncio.get_running_loop().call_soon(turn.patch, "nobody", "props.content", "A")
        await asyncio.sleep(0)
        with pytest.raises(InvalidPatch) as error:
            await turn.say("below")
        errors.append(told(error.value))

    await played(agent)
    assert "this call" not in errors[0]


async def test_question_is_not_blamed_for_what_was_shown_before_it() -> None:
    errors: list[str] = []

    async def agent(turn: Turn) -> None:
        turn.show(Component("t", "table", {"rows": 7}))  # this one
        with pytest.raises(InvalidComponent) as error:
            await turn.ask(ui.confirm("Sure?"))
        errors.append(told(error.value))

    await played(agent)
    assert "turn.ask" not in errors[0]
    assert errors[0].rstrip().endswith("# this one")
