"""A call that an author forgot to await is no yes, and is named in the log."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Callable
from typing import Any, assert_type

import pytest

from arp import Turn, ui
from arp.protocol.messages import FileRef
from arp.turn.tool import ToolCall
from tests.hub.rig import Renderer, played, running
from tests.support.waiting import becomes

REF = FileRef("0" * 64, "x", 1, "text/plain", "0" * 64)

Call = Callable[[Turn, ToolCall], object]

CALLS: list[tuple[str, Call]] = [
    ("turn.confirm", lambda turn, _: turn.confirm("Delete?")),
    ("turn.ask", lambda turn, _: turn.ask(ui.confirm("Delete?"))),
    ("tool.approve", lambda _, tool: tool.approve("Delete?", rule="all")),
    ("tool.ask_permission", lambda _, tool: tool.ask_permission("Delete?", rule="all")),
    ("turn.read_file", lambda turn, _: turn.read_file(REF)),
    ("turn.save_file", lambda turn, _: turn.save_file("x", b"x")),
]


@pytest.mark.parametrize(("name", "call"), CALLS, ids=[name for name, _ in CALLS])
async def test_call_that_is_not_awaited_is_neither_yes_nor_no(name: str, call: Call) -> None:
    """A coroutine is true: `if turn.confirm("Delete?"):` would delete without asking."""
    told: list[str] = []

    async def agent(turn: Turn) -> None:
        async with turn.tool("x") as tool:
            for mistake in (bool, operator.not_):
                with pytest.raises(TypeError) as raised:
                    mistake(call(turn, tool))
                told.append(str(raised.value))

    renderer = await played(agent)
    assert (
        told
        == [f"{name}(…) was not awaited, so there is no answer yet; write: await {name}(…)"] * 2
    )
    assert renderer.box.of("render") == []


async def test_mistake_in_an_agent_fails_its_turn_at_its_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Nothing was asked, and nothing was done."""

    async def agent(turn: Turn) -> None:
        if turn.confirm("Delete?"):  # type: ignore[truthy-bool]  # the mistake
            await turn.say("deleted")

    renderer = await played(agent)
    assert renderer.screen.turns["t1"].status == "failed"
    assert renderer.box.said() == ""
    assert "turn.confirm(…) was not awaited" in caplog.text
    assert 'if turn.confirm("Delete?"):' in caplog.text


async def test_answers_keep_their_types() -> None:
    """For type checkers a call is the coroutine that it was."""

    async def agent(turn: Turn) -> None:
        assert_type(await turn.confirm("Sure?", id="q"), bool)
        assert_type(await turn.ask(ui.confirm("Sure?", id="r")), bool)

    await answered(agent, 2)


async def test_call_may_run_as_a_task_and_in_a_group() -> None:
    """As any coroutine; a cancel reaches it."""
    got: list[Any] = []

    async def agent(turn: Turn) -> None:
        task = asyncio.create_task(turn.confirm("One?", id="one"))
        async with asyncio.TaskGroup() as group:
            other = group.create_task(turn.confirm("Two?", id="two"))
        got.extend([await task, other.result()])
        given_up = asyncio.create_task(turn.confirm("Three?", id="three"))
        await asyncio.sleep(0)
        given_up.cancel()
        await asyncio.wait([given_up])
        got.append(given_up.cancelled())

    await answered(agent, 2)
    assert got == [True, True, True]


async def answered(agent: Callable[[Turn], Any], questions: int) -> None:
    """Runs a turn, and says yes to so many questions."""
    async with running(agent) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        for _ in range(questions):
            await becomes(lambda: bool(hub.sessions["s"].session.questions))
            (question, *_) = hub.sessions["s"].session.questions.values()
            name = question.component_id
            await renderer.send("action", {"action": "confirm"}, source_component=name)
        assert await renderer.ended("t1") == "completed"


async def helper() -> None:
    """Is never awaited."""


def forgetting(what: str) -> Callable[[Turn], Any]:
    """Return an agent that forgets to await something."""

    async def agent(turn: Turn) -> None:
        match what:
            case "say":
                turn.say("x")  # type: ignore[unused-coroutine]  # the mistake
            case "confirm":
                turn.confirm("Sure?")  # type: ignore[unused-coroutine]  # the mistake
            case "output":
                turn.record.process(["ls"]).output("x")  # type: ignore[unused-coroutine]  # as above
            case "helper":
                helper()  # type: ignore[unused-coroutine]  # the mistake

    return agent


@pytest.mark.filterwarnings("default::RuntimeWarning")
@pytest.mark.parametrize(
    ("what", "name"),
    [
        ("say", "Turn.say"),
        ("confirm", "Turn.confirm"),
        ("output", "RecordedProcess.output"),
        ("helper", "helper"),
    ],
)
async def test_call_that_nobody_awaited_is_named_in_the_log(
    what: str, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The method, the agent, the file and the line; also an author's own coroutine."""
    await played(forgetting(what))
    (told,) = caplog.messages
    assert told.startswith(f"agent 'agent' called {name} and never awaited it: {__file__}:")
    assert told.endswith(" (turn t1 of session 's')")
    with open(__file__, encoding="utf-8") as source:  # noqa: ASYNC230 # a small file
        line = source.readlines()[int(told.partition(f"{__file__}:")[2].partition(" ")[0]) - 1]
    assert name.rpartition(".")[2] in line
    assert "the mistake" in line or "as above" in line


@pytest.mark.filterwarnings("default::RuntimeWarning")
async def test_warnings_of_others_go_their_own_way(caplog: pytest.LogCaptureFixture) -> None:
    """What is no agent's is shown as Python shows it."""
    async with running():
        with pytest.warns(RuntimeWarning, match="helper"):
            helper()  # type: ignore[unused-coroutine]  # the mistake
    assert caplog.messages == []
