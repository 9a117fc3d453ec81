"""Agents and tools that are no `async def`."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

import pytest

from arp import App, SyncTurn, ToolFailed, ToolSpec, Turn, ui
from arp.live.settings import HubSettings
from arp.turn.sync_turn import in_thread
from arp.turn.thread import TurnThread
from tests.hub.rig import Renderer, played, running
from tests.support.waiting import becomes

YES = {"action": "confirm"}

NAME: ContextVar[str] = ContextVar("name", default="nobody")


async def test_plain_function_runs_in_a_thread_and_its_calls_in_the_loop() -> None:
    seen: list[Any] = []
    loop_thread = threading.get_ident()

    def agent(turn: SyncTurn) -> str:
        seen.append(threading.get_ident() != loop_thread)
        turn.say("Let me look. ")
        with turn.tool("query", {"sql": "x"}) as tool:
            tool.progress("reading", done=1, total=2)
            tool.result([1, 2])
        with turn.frame():
            turn.show(ui.table(["a"], [[1]], id="t"))
            turn.patch("t", "props.title", "T")
        turn.record.task("Read it").completed()
        turn.usage(tokens=3)
        turn.state["count"] = 1
        seen.extend([turn.text, turn.id, turn.session_id, len(turn.messages()), turn.user.name])
        return "Done."

    renderer = await played(in_thread(agent))
    assert seen == [True, "go", "t1", "s", 0, ""]
    assert renderer.screen.text("t1") == "Let me look. Done."
    (table,) = [one for one in renderer.screen.output("t1") if one.type == "table"]
    assert table.props["title"] == "T"
    (tool,) = renderer.screen.turns["t1"].tools
    assert (tool.tool, tool.ok) == ("query", True)


async def test_app_takes_plain_functions_as_agents_commands_and_for_answers() -> None:
    app = App()

    @app.agent
    def agent(turn: SyncTurn) -> None:
        turn.say("hi")

    @app.command("export")
    def export(turn: SyncTurn) -> str:
        return f"exported {turn.arguments}"

    @app.on_answer("trip")
    def booked(turn: SyncTurn, answer: Any) -> None:
        turn.say(str(answer))

    handlers: Any = dict(app.handlers)
    assert (await played(handlers["agent"])).screen.text("t1") == "hi"
    commands: Any = app.served().command_handlers
    assert (await played(commands["export"], "/export csv")).screen.text("t1") == "exported csv"
    assert agent.__name__ == "agent"  # what authors call themselves stays as it is


async def test_question_waits_in_the_thread_while_other_sessions_run() -> None:
    def agent(turn: SyncTurn) -> None:
        if turn.confirm("Sure?"):
            turn.say(f"yes, {turn.ask(ui.text_input('Name'))}")

    async with running(in_thread(agent)) as hub:
        first = await Renderer(hub, "s").join()
        others = [await Renderer(hub, f"s{number}").join() for number in range(40)]
        for one in (first, *others):
            await one.say("go")
        await first.box.has("render")
        question = first.screen.output("t1")[0]
        await first.send("action", YES, source_component=question.id)
        await becomes(lambda: len(first.screen.output("t1")) == 2)
        name = first.screen.output("t1")[1]
        await first.send("text", {"text": "Ann"}, source_component=name.id)
        assert await first.ended("t1") == "completed"
        assert first.screen.text("t1") == "yes, Ann"
        for one in others:
            await one.cancel()
            assert await one.ended("t1") == "cancelled"


async def test_cancel_is_raised_by_the_call_that_waits_and_the_function_may_clean_up() -> None:
    seen: list[str] = []

    def agent(turn: SyncTurn) -> None:
        try:
            turn.confirm("Sure?")
        except asyncio.CancelledError:
            seen.append("cancelled")
            turn.say("stopped")
            raise

    async with running(in_thread(agent)) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        await renderer.box.has("render")
        await renderer.cancel()
        assert await renderer.ended("t1") == "cancelled"
        assert seen == ["cancelled"]
        assert renderer.screen.text("t1") == "stopped"


async def test_cancel_is_raised_by_the_next_call_of_a_function_that_computes() -> None:
    go, begun, seen = threading.Event(), threading.Event(), []

    def agent(turn: SyncTurn) -> None:
        begun.set()
        go.wait(20)
        try:
            turn.say("never")
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    settings = HubSettings(cancel_grace_s=20)
    async with running(in_thread(agent), settings=settings) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        await becomes(begun.is_set)
        await renderer.cancel()
        await becomes(lambda: all(one.end_cause is not None for one in hub.runner.tasks.values()))
        go.set()
        assert await renderer.ended("t1") == "cancelled"
        assert (seen, renderer.screen.text("t1")) == (["cancelled"], "")


async def test_function_that_cannot_be_stopped_does_not_keep_its_session_waiting() -> None:
    go, begun = threading.Event(), threading.Event()

    def agent(turn: SyncTurn) -> None:
        if turn.text == "go":
            begun.set()
            go.wait(20)
        else:
            turn.say("fine")

    async with running(in_thread(agent)) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        await becomes(begun.is_set)
        await renderer.cancel()
        assert await renderer.ended("t1") == "cancelled"
        await renderer.say("next")
        assert await renderer.ended("t2") == "completed"
        assert renderer.screen.text("t2") == "fine"
        go.set()


async def test_what_it_raises_ends_its_turn_and_errors_of_calls_are_its_own(
    caplog: pytest.LogCaptureFixture,
) -> None:
    seen: list[str] = []

    def agent(turn: SyncTurn) -> None:
        try:
            turn.show(3)
        except Exception as error:  # noqa: BLE001 - which one is asked below
            seen.append(f"{type(error).__name__}: {error}")
        with turn.tool("x"):
            raise ToolFailed("no such row")

    renderer = await played(in_thread(agent))
    assert seen == ["InvalidComponent: turn.show: expected a component, got int; ui.text(…) is one"]
    (tool,) = renderer.screen.turns["t1"].tools
    assert (tool.ok, tool.error) == (False, "no such row")
    assert renderer.screen.turns["t1"].status == "failed"


async def test_context_variables_are_those_of_the_turn() -> None:
    def agent(turn: SyncTurn) -> None:
        turn.say(NAME.get())

    async def outer(turn: Turn) -> None:
        NAME.set("Ann")
        await in_thread(agent)(turn)

    assert (await played(outer)).screen.text("t1") == "Ann"


async def test_calls_from_several_threads_of_one_agent_are_carried_out_one_after_another() -> None:
    def agent(turn: SyncTurn) -> None:
        each = [threading.Thread(target=turn.say, args=("x",)) for _ in range(20)]
        for one in each:
            one.start()
        for one in each:
            one.join()

    assert (await played(in_thread(agent))).screen.text("t1") == "x" * 20


async def test_question_stays_open_while_the_function_goes_on() -> None:
    def agent(turn: SyncTurn) -> None:
        question = turn.question(ui.confirm("Sure?"))
        turn.say(f"open: {question.is_open}")
        turn.say(f", withdrawn: {question.withdraw()}")

    assert (await played(in_thread(agent))).screen.text("t1") == "open: True, withdrawn: True"


async def test_turn_for_threads_is_refused_in_the_loop() -> None:
    """It would wait for itself."""

    async def agent(turn: Turn) -> None:
        sync = SyncTurn(turn, TurnThread("x"))
        with pytest.raises(RuntimeError, match="this turn is for threads; in async code use"):
            sync.say("x")
        with pytest.raises(AttributeError, match="'Turn' object has no attribute '_host'"):
            _ = sync._host
        await turn.say("fine")

    assert (await played(agent)).screen.text("t1") == "fine"


async def test_call_after_the_turn_is_cancelled_instead_of_waiting() -> None:
    late: list[SyncTurn] = []

    def agent(turn: SyncTurn) -> None:
        late.append(turn)

    await played(in_thread(agent))
    with pytest.raises(asyncio.CancelledError):
        await asyncio.to_thread(late[0].say, "x")


class Shop:
    """A provider that is no `async def`."""

    def tools(self) -> list[ToolSpec]:
        return [ToolSpec("price")]

    def call(self, tool: Any, args: Mapping[str, Any], /) -> Any:
        assert threading.current_thread().name == f"arp-tool-{tool.call_id}"
        tool.progress("asking")
        if not tool.approve("Really?", rule="buys"):
            tool.fail("nobody allowed it")
        return {"price": args["n"] * 2}


async def test_tools_of_an_app_may_be_plain_functions() -> None:
    def plain(turn: SyncTurn) -> str:
        return str(turn.use("price", {"n": 2}))

    async def usual(turn: Turn) -> str:
        return str(await turn.use("price", {"n": 3}))

    tools: Any = Shop()
    for agent, says in ((in_thread(plain), "{'price': 4}"), (usual, "{'price': 6}")):
        async with running(agent, tools=tools) as hub:
            renderer = await Renderer(hub).join()
            await renderer.say("go")
            await renderer.box.has("render")
            question = renderer.screen.output("t1")[0]
            await renderer.send("action", YES, source_component=question.id)
            assert await renderer.ended("t1") == "completed"
            assert renderer.screen.text("t1") == says
