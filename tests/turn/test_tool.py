"""Every tool that is seen to begin is seen to end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from arp import ToolFailed, Turn, ui
from arp.protocol.errors import (
    InvalidComponent,
    InvalidPatch,
    SurfaceDestroyed,
)
from arp.record.outputs import KeptOutput
from arp.record.recorder import Recorder
from arp.record.wording import PREVIEW_CHARACTERS
from arp.turn.tool import ToolCall
from tests.hub.rig import BROKEN, HeldStore, Renderer, played, running
from tests.support.waiting import becomes

ENDED = "tool 'query': the call t1.1 has ended already"


async def test_tool_shows_that_it_runs_and_how_it_ended() -> None:
    """protocol.md 2.1: `args` is a JSON string; what is shown after it names it."""

    async def agent(turn: Turn) -> None:
        async with turn.tool("query", {"sql": "select 1"}) as tool:
            tool.progress("half")
            tool.result([1])
        turn.show(ui.text("x", id="x"))

    renderer = await played(agent)
    start, end = renderer.box.of("tool_start")[0], renderer.box.of("tool_end")[0]
    assert start["payload"] == {"tool": "query", "args": '{"sql":"select 1"}', "call_id": "t1.1"}
    assert end["payload"] == {"tool": "query", "ok": True, "call_id": "t1.1"}
    assert renderer.box.of("render")[0]["tool_name"] == "query"


async def test_tool_runs_only_when_its_start_is_durable() -> None:
    """After a crash the ledger names every tool that may have run."""
    store, steps = HeldStore(), list[str]()

    async def agent(turn: Turn) -> None:
        steps.append("agent")
        store.hold()
        async with turn.tool("mail", {"to": "ann"}):
            steps.append("tool")
            types = [fact.type for fact in await store.facts()]
            assert types[-2:] == ["tool.started", "tool.args"]

    async with running(agent, store=store) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        await store.waiting.wait()
        await asyncio.sleep(0.05)
        assert steps == ["agent"]
        store.release()
        assert await renderer.ended("t1") == "completed"
    assert steps == ["agent", "tool"]


async def test_tool_whose_start_cannot_be_stored_does_not_run() -> None:
    """The session leaves the memory, and with it the agent."""
    store, steps = HeldStore(), list[str]()

    async def agent(turn: Turn) -> None:
        store.error = BROKEN
        steps.append("agent")
        async with turn.tool("mail", {"to": "ann"}):
            steps.append("tool")

    async with running(agent, store=store) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        await renderer.box.until(lambda: renderer.box.closed is not None)
        await becomes(lambda: not hub.runner.tasks)
        store.error = None
        stored = [fact.type for fact in await store.facts()]
    assert steps == ["agent"]
    assert "tool.started" not in stored


async def test_tool_that_raises_is_shown_as_failed_and_the_error_goes_up() -> None:
    """The kind of the error is told; its text is the agent's own."""

    async def agent(turn: Turn) -> None:
        with pytest.raises(KeyError):
            async with turn.tool("lookup", None):
                raise KeyError("secret")
        with pytest.raises(InvalidComponent):
            async with turn.tool("draw", "raw"):
                raise InvalidComponent("no such colour")

    renderer = await played(agent)
    ends = [one["payload"] for one in renderer.box.of("tool_end")]
    assert [(one["ok"], one["error"]) for one in ends] == [
        (False, "KeyError"),
        (False, "no such colour"),
    ]
    assert [one["payload"]["args"] for one in renderer.box.of("tool_start")] == ["{}", '"raw"']
    assert "secret" not in str(renderer.box.messages)


async def test_tool_that_fails_by_its_authors_word_shows_the_word() -> None:
    """`ToolCall.fail`: caught, the agent goes on."""

    async def agent(turn: Turn) -> None:
        try:
            async with turn.tool("query") as tool:
                tool.fail("no table of that name\ud800")
        except ToolFailed as error:
            await turn.say(f"Sorry: {error.message}")

    renderer = await played(agent)
    end = renderer.box.of("tool_end")[0]["payload"]
    assert (end["ok"], end["error"]) == (False, "no table of that name\ufffd")
    assert renderer.box.of("turn")[-1]["status"] == "completed"
    assert renderer.screen.text("t1") == "Sorry: no table of that name\ufffd"


async def test_failed_tool_that_nobody_catches_ends_the_turn_with_its_message() -> None:
    """The author has said it for everyone; every other exception stays in the log."""

    async def agent(turn: Turn) -> None:
        async with turn.tool("query") as tool:
            tool.fail("no table of that name")

    renderer = await played(agent)
    error = renderer.box.of("error")[0]["payload"]
    assert error == {"error": "no table of that name", "code": 18}
    assert renderer.box.of("turn")[-1]["status"] == "failed"


async def test_tool_that_is_cancelled_ends_as_such() -> None:
    """Every tool that began has an end."""

    async def agent(turn: Turn) -> None:
        async with turn.tool("slow"):
            await asyncio.Event().wait()

    async with running(agent) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        await renderer.box.has("tool_start")
        await renderer.cancel()
        await renderer.ended("t1")
    assert renderer.box.of("tool_end")[0]["payload"]["error"] == "cancelled"


async def test_tool_whose_last_change_is_refused_is_failed() -> None:
    """What it showed was refused: it did not do what it says."""

    async def agent(turn: Turn) -> None:
        with pytest.raises(InvalidPatch):
            async with turn.tool("draw"):
                turn.patch("nobody", "props.content", "?")

    renderer = await played(agent)
    assert renderer.box.of("tool_end")[0]["payload"]["ok"] is False


async def test_confirm_shows_what_it_was_given_and_nothing_more() -> None:
    """Left out, or `None`: the renderer's own words."""

    async def agent(turn: Turn) -> None:
        await turn.confirm("Delete?", "12 rows", id="q", destructive=True, deny_label=None)

    async with running(agent) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        await renderer.box.has("turn", status="waiting")
    (shown,) = renderer.box.of("render")[0]["components"]
    assert shown["props"] == {
        "title": "Delete?",
        "message": "12 rows",
        "destructive": True,
        "state": "open",
    }


async def test_preview_is_looked_through_before_it_is_cut() -> None:
    """Half a secret at the end of a preview would not look like one."""
    token = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"

    async def agent(turn: Turn) -> None:
        async with turn.tool("read", {"api_key": "k"}) as tool:
            tool.result("x" * (PREVIEW_CHARACTERS - 21) + f" {token} " + "y" * 10_000)

    store = HeldStore()
    async with running(agent, store=store) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        await renderer.ended("t1")
        facts = await store.facts()
    kept = {fact.type: fact.payload for fact in facts}
    assert kept["tool.args"] == {"tool": "read", "args": '{"api_key":"[redacted]"}'}
    preview = kept["tool.result"]["preview"]
    assert preview.endswith("x ghp_[redacted] yyyyy")
    assert len(preview) == PREVIEW_CHARACTERS
    assert kept["tool.result"]["characters"] == PREVIEW_CHARACTERS - 21 + 42 + 10_000
    told = [fact.payload for fact in facts if fact.type == "output.redacted"]
    assert told == [
        {"findings": [{"rule": "secret-field", "count": 1}]},
        {"findings": [{"rule": "github-token", "count": 1}]},
    ]


# -- tools as events -------------------------------------------------------------------------------


def ends(renderer: Renderer) -> list[Any]:
    """Return the payloads of what ended, in order, without how long each took."""
    told = [one["payload"] for one in renderer.box.of("tool_end")]
    return [{name: one[name] for name in one if name != "duration_ms"} for one in told]


async def test_started_tool_is_shown_as_one_of_a_block_and_ends_when_its_author_says_so() -> None:
    """A tool of a runtime outside begins and ends by events; two may run at once."""
    detail = ["streaming", "input", "tool-detail"]

    async def agent(turn: Turn) -> None:
        first = turn.start_tool("query", {"sql": "select 1"}, id="toolu_1")
        second = turn.start_tool("shell")
        second.progress("half", done=1, total=2)
        await first.done([1])
        turn.show(ui.text("x", id="x"))
        second.failed("exit code 1\ud800")

    renderer = await played(agent, features=detail)
    starts = [one["payload"] for one in renderer.box.of("tool_start")]
    assert starts == [
        {"tool": "query", "args": '{"sql":"select 1"}', "call_id": "t1.1"},
        {"tool": "shell", "args": "{}", "call_id": "t1.2"},
    ]
    assert renderer.box.of("tool_progress")[0]["payload"]["text"] == "half"
    assert ends(renderer) == [
        {"tool": "query", "ok": True, "call_id": "t1.1", "result": "[1]"},
        {"tool": "shell", "ok": False, "call_id": "t1.2", "error": "exit code 1\ufffd"},
    ]
    assert all(one["payload"]["duration_ms"] >= 0 for one in renderer.box.of("tool_end"))
    assert renderer.box.of("render")[0]["tool_name"] == "shell"
    assert renderer.box.of("turn")[-1]["status"] == "completed"


async def test_what_a_runtime_calls_a_call_is_in_the_ledger_without_secrets() -> None:
    """The ledger's own id of the call is ours: runtimes may use one twice in a session."""

    async def agent(turn: Turn) -> None:
        await turn.start_tool("read", id="toolu_1").done()
        await turn.start_tool("read", id="ghp_abcdefghijklmnopqrstuvwxyz0123456789").done()
        await turn.start_tool("read").done()
        with pytest.raises(ValueError, match="id: expected a name"):
            turn.start_tool("read", id="")

    store = HeldStore()
    async with running(agent, store=store) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        await renderer.ended("t1")
        facts = [fact for fact in await store.facts() if fact.type == "tool.started"]
    assert [(fact.tool_call_id, fact.correlation) for fact in facts] == [
        ("t1.1", {"runtimeCallId": "toolu_1"}),
        ("t1.2", {"runtimeCallId": "ghp_[redacted]"}),
        ("t1.3", None),
    ]


async def test_started_tool_without_a_result_is_done_and_a_long_result_is_stored() -> None:
    async def agent(turn: Turn) -> None:
        await turn.start_tool("one").done()
        two = turn.start_tool("two")
        two.result("said before")
        await two.done()
        await turn.start_tool("three").done("x" * (PREVIEW_CHARACTERS + 1))

    renderer = await played(agent, features=["streaming", "input", "tool-detail"])
    one, two, three = ends(renderer)
    assert (one["ok"], "result" in one, two["result"]) == (True, False, "said before")
    assert three["result"] == "x" * PREVIEW_CHARACTERS + "…"
    assert three["result_ref"].startswith("/_api/blobs/")


@pytest.mark.parametrize("first", ["done", "failed", "block"])
async def test_a_call_ends_once_and_nothing_of_it_comes_after(first: str) -> None:
    """A second end would say something else than what everybody has seen."""
    wrong: list[str] = []

    async def refused(call: ToolCall) -> None:
        with pytest.raises(RuntimeError) as caught:
            await call.done()
        wrong.append(str(caught.value))
        with pytest.raises(RuntimeError) as caught:
            call.failed("again")
        wrong.append(str(caught.value))
        with pytest.raises(RuntimeError) as caught:
            call.progress("more")
        wrong.append(str(caught.value))

    async def agent(turn: Turn) -> None:
        if first == "block":
            async with turn.tool("query") as call:
                pass
        else:
            call = turn.start_tool("query")
            if first == "done":
                await call.done(1)
            else:
                call.failed("broke")
        await refused(call)

    renderer = await played(agent)
    assert wrong == [ENDED] * 3
    assert [one["ok"] for one in ends(renderer)] == [first != "failed"]
    assert renderer.box.of("turn")[-1]["status"] == "completed"


@pytest.fixture
def storing(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Holds long results back until it is set."""
    free, keep = asyncio.Event(), Recorder.keep

    async def slow(self: Recorder, data: bytes | str, mime: str | None = None) -> KeptOutput:
        await free.wait()
        return await keep(self, data, mime)

    monkeypatch.setattr(Recorder, "keep", slow)
    return free


async def test_a_call_that_is_being_ended_is_not_ended_by_another_task(
    storing: asyncio.Event,
) -> None:
    """A long result is stored first; who comes meanwhile is refused."""

    async def agent(turn: Turn) -> None:
        call = turn.start_tool("query")
        ending = asyncio.ensure_future(call.done("x" * 10_000))
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="has ended already"):
            call.failed("too late")
        storing.set()
        await ending

    renderer = await played(agent)
    assert [one["ok"] for one in ends(renderer)] == [True]


@pytest.mark.usefixtures("storing")
async def test_call_that_is_cancelled_while_its_result_is_stored_has_failed() -> None:
    async def agent(turn: Turn) -> None:
        call = turn.start_tool("query")
        ending = asyncio.ensure_future(call.done("x" * 10_000))
        await asyncio.sleep(0)
        ending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await ending
        await turn.say("on")

    renderer = await played(agent)
    assert ends(renderer) == [
        {"tool": "query", "ok": False, "call_id": "t1.1", "error": "cancelled"}
    ]
    assert renderer.screen.text("t1") == "on"


async def test_started_tool_whose_last_change_is_refused_is_failed() -> None:
    async def agent(turn: Turn) -> None:
        call = turn.start_tool("draw")
        turn.patch("nobody", "props.content", "?")
        with pytest.raises(InvalidPatch):
            await call.done("drawn")

    renderer = await played(agent)
    assert [one["ok"] for one in ends(renderer)] == [False]


async def test_block_whose_call_ended_inside_is_not_ended_again() -> None:
    """Its author may know before the block ends; what the block raises still goes up."""

    async def agent(turn: Turn) -> None:
        async with turn.tool("one") as call:
            call.failed("no such table")
        try:
            async with turn.tool("two") as call:
                await call.done("rows")
                raise KeyError
        except KeyError:
            await turn.say("caught")

    renderer = await played(agent)
    assert [(one["ok"], one.get("error")) for one in ends(renderer)] == [
        (False, "no such table"),
        (True, None),
    ]
    assert renderer.screen.text("t1") == "caught"


def completes(_: ToolCall) -> None:
    """Does nothing."""


def raises(_: ToolCall) -> None:
    """Raises what nobody catches."""
    raise KeyError


@pytest.mark.parametrize(
    ("after", "status"), [(completes, "completed"), (raises, "failed")], ids=["returns", "raises"]
)
async def test_call_left_open_fails_with_its_turn(
    after: Callable[[ToolCall], None], status: str
) -> None:
    """A tool that is seen to begin is seen to end, before its turn."""
    left: list[ToolCall] = []

    async def agent(turn: Turn) -> None:
        await turn.start_tool("one").done()
        left.append(turn.start_tool("two"))
        after(left[0])

    async with running(agent) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        assert await renderer.ended("t1") == status
        with pytest.raises(SurfaceDestroyed):
            left[0].failed("late")
        with pytest.raises(SurfaceDestroyed):
            await left[0].done("late")
        with pytest.raises(SurfaceDestroyed):
            left[0].progress("late")
    assert [(one["ok"], one.get("error")) for one in ends(renderer)] == [
        (True, None),
        (False, "the turn ended first"),
    ]
    kinds = [one["type"] for one in renderer.box.messages]
    assert kinds.index("tool_end") < kinds.index("commit")


async def test_call_left_open_in_a_turn_that_is_closed_by_force_fails_with_it() -> None:
    """The agent goes on after its cancel; its late end is refused, and the block ends silently."""
    late: list[str] = []

    async def agent(turn: Turn) -> None:
        call = turn.start_tool("deaf")
        try:
            async with turn.tool("block"):
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    await asyncio.sleep(0.2)  # longer than the grace of a cancel
        finally:
            try:
                call.failed("late")
            except SurfaceDestroyed as error:
                late.append(error.message)

    async with running(agent) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        await renderer.box.until(lambda: len(renderer.box.of("tool_start")) == 2)
        await renderer.cancel()
        assert await renderer.ended("t1") == "cancelled"
        await becomes(lambda: bool(late))
    assert [one["error"] for one in ends(renderer)] == ["the turn ended first"] * 2


async def test_a_tool_in_a_generator_that_nobody_goes_on_with_is_not_shown_as_a_class() -> None:
    """Python closes such a generator with `GeneratorExit`, which says nothing to people."""

    async def rows(turn: Turn) -> AsyncIterator[int]:
        async with turn.tool("query"):
            yield 1
            yield 2

    async def agent(turn: Turn) -> None:
        left = rows(turn)
        await anext(left)
        await left.aclose()  # type: ignore[attr-defined]  # it is a generator
        async for _ in rows(turn):
            break

    renderer = await played(agent)
    assert [one["error"] for one in ends(renderer)] == [
        "stopped before it ended",
        "the turn ended first",
    ]


async def test_started_tool_says_at_once_what_was_refused_before_it() -> None:
    async def agent(turn: Turn) -> None:
        turn.patch("nobody", "props.content", "?")
        with pytest.raises(InvalidPatch):
            turn.start_tool("query")
        with pytest.raises(ValueError, match="name: expected a name"):
            turn.start_tool("")

    renderer = await played(agent)
    assert renderer.box.of("tool_start") == []
