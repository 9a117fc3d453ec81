"""Surfaces, popups and overlays as an author uses them, and what a user does with them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from arp import Turn, ui
from arp.hub.hub import Hub
from arp.live.settings import HubSettings
from arp.protocol.errors import (
    ArpError,
    InvalidComponent,
    InvalidSerial,
    ResourceLimit,
    RoleConflict,
    SurfaceDestroyed,
    TransferDenied,
)
from arp.protocol.limits import Limits
from arp.protocol.messages import Viewport
from arp.session.input.receive import push
from arp.store.memory import MemoryStore
from arp.turn.question_outcome import DECLINED, QuestionWithdrawn
from tests.hub.rig import FEATURES, HeldStore, Renderer, running, settled, started
from tests.support.waiting import becomes

WINDOWS = [*FEATURES, "overlays"]


async def joined(hub: Hub, session_id: str = "s", **options: Any) -> Renderer:
    return await Renderer(hub, session_id, features=WINDOWS, **options).join()


async def close(renderer: Renderer, surface: str, **more: Any) -> None:
    """A user closes a surface."""
    await renderer.send("action", {"action": "arp.close"}, surface=surface, **more)


def texts(renderer: Renderer, surface: str) -> list[Any]:
    return [one.props["content"] for one in renderer.screen.surfaces[surface].output()]


async def test_surface_shows_beside_the_chat_and_its_agent_hears_that_a_user_closed_it() -> None:
    heard: list[Any] = []

    async def agent(turn: Turn) -> None:
        side = turn.surface("side", title="Details")

        @side.on_close
        async def closed(reason: str) -> None:
            heard.append(("callback", reason))

        side.show(ui.text("one", id="a"))
        side.patch("a", "props.content", "two")
        heard.append(("closed", await side.closed, side.is_open))
        with pytest.raises(SurfaceDestroyed, match="'side' is closed"):
            side.show(ui.text("late"))
        await turn.say("bye")

    async with running(agent) as hub:
        renderer = await joined(hub)
        await renderer.say("go")
        await renderer.box.has("surface")
        await becomes(lambda: "a" in renderer.screen.surfaces["side"].nodes)
        assert renderer.screen.info("side").title == "Details"
        assert texts(renderer, "side") == ["two"]
        await close(renderer, "side", id="c1")
        assert await renderer.ended("t1") == "completed"
        assert (await renderer.box.has("surface", closed="user"))["surface"] == "side"
        assert "side" not in renderer.screen.surfaces
        await close(renderer, "side", id="c2")  # somebody else closed it first: that is no error
        await renderer.box.has("ack", id="c2")
    assert heard == [("closed", "user", False), ("callback", "user")] or heard == [
        ("callback", "user"),
        ("closed", "user", False),
    ]


async def test_popup_over_a_row_names_the_input_that_opened_it() -> None:
    """The serial is the place of the fact of the click, which its acknowledgement names too."""
    done: list[Any] = []

    async def agent(turn: Turn) -> None:
        if turn.text == "orders":
            turn.show(ui.table(["No"], [["1"], ["2"]], selectable="one", id="orders"))
            return
        (row,) = turn.input.data["selected"]
        popup = turn.popup(ui.text(f"row {row}"), over="orders", row=row, title="Order")
        done.append((popup.name, await popup.done))

    async with running(agent) as hub:
        renderer = await joined(hub)
        await renderer.say("orders")
        await renderer.ended("t1")
        await renderer.send("selection", {"selected": [1]}, source_component="orders", id="click")
        ack = await renderer.box.has("ack", id="click")
        opened = await renderer.box.has("surface", surface="t2-popup-1")
        assert opened["payload"] == {
            "role": "popup",
            "title": "Order",
            "parent": "main",
            "component": "orders",
            "row": 1,
            "serial": ack["serial"],
        }
        (click,) = [one for one in renderer.box.of("input") if one["turn_id"] == "t2"]
        assert ack["serial"] == click["seq"]
        await becomes(lambda: texts(renderer, "t2-popup-1") == ["row 1"])
        await close(renderer, "t2-popup-1")
        assert await renderer.ended("t2") == "completed"
        assert renderer.screen.output("t2") == []
    assert done == [("t2-popup-1", "user")]


@pytest.mark.parametrize("role", ["popup", "overlay", "fullscreen"])
async def test_old_input_and_a_program_open_nothing(role: str) -> None:
    refused: list[ArpError] = []

    async def agent(turn: Turn) -> None:
        side = turn.surface("side")
        try:
            match role:
                case "popup":
                    turn.popup(ui.text("x"))
                case "overlay":
                    turn.overlay(ui.text("x"))
                case _:
                    side.set_fullscreen()
        except InvalidSerial as error:
            refused.append(error)
            side.set_fullscreen(False)

    settings = HubSettings(serial_max_age_s=1e-9)
    async with running(agent, settings=settings) as hub:
        renderer = await joined(hub)
        await renderer.say("go")
        await renderer.ended("t1")
        live = hub.sessions["s"]
        _, effects = push(live.session, "now", {}, "cron")
        hub.carry_out(live, effects)
        await renderer.ended("t2")
        assert set(renderer.screen.surfaces) == {"main", "side"}
    old, none = refused
    assert int(old.code) == int(none.code) == 3
    wanted = "last input on surface" if role != "fullscreen" else "nobody has done anything"
    assert wanted in str(old)


async def test_fullscreen_needs_an_input_on_that_surface() -> None:
    async def agent(turn: Turn) -> None:
        side = turn.surface("side")
        if turn.text == "one":
            side.show(ui.choices(["a", "b"], id="c"))
        else:
            side.set_fullscreen()

    async with running(agent) as hub:
        renderer = await joined(hub)
        await renderer.say("one")
        await renderer.ended("t1")
        await renderer.send("selection", {"selected": ["a"]}, source_component="c", surface="side")
        assert await renderer.ended("t2") == "completed"
        assert renderer.screen.info("side").fullscreen


async def test_overlay_closes_when_its_time_is_over_also_when_its_turn_is() -> None:
    done: list[str] = []

    async def agent(turn: Turn) -> None:
        toast = turn.overlay(ui.text("sent"), anchor="bottom-right", timeout_ms=100)
        if turn.text == "wait":
            done.append(await toast.done)

    async with running(agent) as hub:
        renderer = await joined(hub)
        await renderer.say("wait")
        assert await renderer.ended("t1") == "completed"
        await renderer.say("go")
        await renderer.ended("t2")
        gone = await renderer.box.has("surface", surface="t2-overlay-1", closed="timeout")
        assert (gone["payload"]["anchor"], gone["payload"]["timeout_ms"]) == ("bottom-right", 100)
        assert set(renderer.screen.surfaces) == {"main"}
    assert done == ["timeout"]


async def test_overlay_closes_after_a_restart() -> None:
    store = HeldStore()

    async def agent(turn: Turn) -> None:
        turn.overlay(ui.text("sent"), timeout_ms=150)

    first = await started(agent, store=store)
    renderer = await joined(first)
    await renderer.say("go")
    await renderer.ended("t1")
    await first.aclose()
    assert "t1-overlay-1" in renderer.screen.surfaces
    store.release()
    second = await started(agent, store=store)
    again = await joined(second)
    await becomes(lambda: "t1-overlay-1" not in again.screen.surfaces)
    assert again.screen.output("t1") == []
    await second.aclose()


async def test_what_is_placed_on_a_surface_closes_with_it() -> None:
    async def agent(turn: Turn) -> None:
        if turn.text == "go":
            turn.surface("side").show(ui.choices(["a"], id="c"))
            return
        popup = turn.popup(ui.text("x"), over="c", surface="side")
        turn.surface("side").close()
        assert await popup.done == "parent"

    async with running(agent) as hub:
        renderer = await joined(hub)
        await renderer.say("go")
        await renderer.ended("t1")
        await renderer.send("selection", {"selected": ["a"]}, source_component="c", surface="side")
        assert await renderer.ended("t2") == "completed"
        closed = [(one["surface"], one["closed"]) for one in renderer.box.of("surface")[-2:]]
        assert closed == [("t2-popup-1", "parent"), ("side", "agent")]


async def test_agent_hears_of_focus_and_of_sizes() -> None:
    heard: list[Any] = []

    async def agent(turn: Turn) -> None:
        side = turn.surface("side")

        async def focus(is_focused: bool) -> None:
            heard.append(is_focused)

        async def size(size: Viewport, states: tuple[str, ...]) -> None:
            heard.append((size.width, size.height, states))

        side.on_focus(focus)
        side.on_configure(size)
        await side.closed

    async with running(agent) as hub:
        renderer = await joined(hub)
        await renderer.say("go")
        await renderer.box.has("surface")
        await renderer.send("focus", {}, surface="side")
        data = {"width": 300, "height": 200, "states": ["activated"]}
        await renderer.send("resize", data, surface="side")
        await renderer.send("unfocus", {}, surface="side")
        await renderer.send("focus", {})  # of the conversation
        await close(renderer, "side")
        await renderer.ended("t1")
        assert renderer.viewer.info.viewport is None, "the size of a surface is not the renderer's"
    assert heard == [True, (300, 200, ("activated",)), False]


async def test_function_that_raises_fails_the_turn_and_another_one_is_waited_for() -> None:
    late = asyncio.Event()
    heard: list[str] = []

    async def agent(turn: Turn) -> None:
        side = turn.surface("side")

        @side.on_close
        async def slow(reason: str) -> None:
            await late.wait()
            heard.append(reason)
            if turn.text == "raise":
                raise ZeroDivisionError

        await side.closed

    async with running(agent) as hub:
        renderer = await joined(hub)
        await renderer.say("raise")
        await renderer.say("fine")
        await renderer.box.has("surface")
        await close(renderer, "side")
        await renderer.box.has("surface", closed="user")
        late.set()
        assert await renderer.ended("t1") == "failed"
        await renderer.box.has("surface", turn_id="t2", surface="side")
        await close(renderer, "side")
        assert await renderer.ended("t2") == "completed"
    assert heard == ["user", "user"]


async def test_question_on_a_popup_that_is_dismissed_is_withdrawn() -> None:
    async def agent(turn: Turn) -> None:
        popup = turn.popup(ui.text("Sure?"))
        with pytest.raises(QuestionWithdrawn):
            await turn.ask(ui.confirm("Sure?", id="q"), surface=popup.name)
        assert await popup.done == "user"
        await turn.say("not deleted")

    async with running(agent) as hub:
        renderer = await joined(hub)
        await renderer.say("go")
        await renderer.box.has("turn", status="waiting")
        await close(renderer, "t1-popup-1")
        assert await renderer.ended("t1") == "completed"
        assert renderer.screen.text("t1") == "not deleted"
        assert hub.sessions["s"].session.questions == {}


async def test_question_that_can_be_declined_is_declined_by_closing_its_popup() -> None:
    answers: list[object] = []

    async def agent(turn: Turn) -> None:
        popup = turn.popup(ui.text("Sure?"))
        question = ui.confirm("Sure?", id="q")
        answers.append(await turn.ask(question, can_decline=True, surface=popup.name))

    async with running(agent) as hub:
        renderer = await joined(hub)
        await renderer.say("go")
        await renderer.box.has("turn", status="waiting")
        await close(renderer, "t1-popup-1")
        assert await renderer.ended("t1") == "completed"
    assert answers == [DECLINED]


async def test_renderer_without_overlays_has_a_popup_in_the_output_and_answers_there() -> None:
    async def agent(turn: Turn) -> None:
        await turn.say("before ")
        popup = turn.popup(ui.text("Delete 3 rows"), title="Delete")
        await turn.say("after")
        answer = await turn.ask(ui.confirm("Sure?", id="q"), surface=popup.name)
        popup.show(ui.text(f"answer {answer}", id="answer"))
        if turn.text == "keep":
            return
        popup.close()

    async with running(agent) as hub:
        rich = await joined(hub)
        plain = await Renderer(hub, features=["streaming", "input"]).join()
        await plain.say("keep")
        await plain.box.has("turn", status="waiting")
        before, group, after = plain.screen.output("t1")
        assert (before.props["content"], after.props["content"]) == ("before ", "after")
        assert (group.type, group.id) == ("group", "t1-popup-1")
        shown = [(one["id"], one["type"]) for one in group.props["children"]]
        assert shown == [("t1-popup-1/t1-1", "text"), ("t1-popup-1/q", "confirm")]
        assert set(plain.screen.surfaces) == {"main"}
        assert plain.box.of("surface") == []
        yes = {"action": "confirm"}
        await plain.send("action", yes, source_component="t1-popup-1/q", id="yes")
        await plain.box.has("ack", id="yes")
        assert await plain.ended("t1") == "completed"
        _, group, _ = plain.screen.output("t1")
        assert group.props["children"][-1]["props"]["content"] == "answer True"
        late = await Renderer(hub, features=["streaming", "input"]).join()
        assert late.screen.output("t1") == plain.screen.output("t1")
        assert [one.type for one in rich.screen.output("t1")] == ["text", "group", "text"]
        await close(rich, "t1-popup-1")
        await becomes(lambda: len(plain.screen.output("t1")) == 2)
        assert plain.screen.text("t1") == "before after"


async def test_popup_says_what_is_wrong_with_it_and_then_there_is_none() -> None:
    raised: list[str] = []

    async def agent(turn: Turn) -> None:
        deep = ui.group([ui.group([ui.text("x")])])
        wrong: list[Callable[[], object]] = [
            lambda: turn.popup(ui.text("x"), over="nothing"),
            lambda: turn.popup(ui.text("x"), row=1),
            lambda: turn.popup(deep),
            lambda: turn.overlay(ui.text("x"), anchor="middle"),  # type: ignore[arg-type]
            lambda: turn.overlay(ui.text("x"), timeout_ms=0),
            lambda: turn.popup(ui.text("x"), surface="nothing"),
        ]
        for make in wrong:
            with pytest.raises((ArpError, ValueError)) as error:
                make()
            raised.append(type(error.value).__name__)

    async with running(agent) as hub:
        renderer = await joined(hub)
        await renderer.say("go")
        assert await renderer.ended("t1") == "completed"
        assert set(hub.sessions["s"].session.screen.surfaces) == {"main"}
    assert raised == [
        InvalidComponent.__name__,
        "ValueError",
        ResourceLimit.__name__,
        "ValueError",
        "ValueError",
        InvalidSerial.__name__,
    ]


async def test_surfaces_are_bounded_and_their_roles_do_not_change() -> None:
    settings = HubSettings(limits=Limits(max_surfaces=2), stop_grace_s=0.05)

    async def agent(turn: Turn) -> None:
        popup = turn.popup(ui.text("x"))
        with pytest.raises(RoleConflict):
            turn.surface(popup.name)
        with pytest.raises(ResourceLimit, match="one more than 2"):
            turn.surface("side")
        popup.close()
        turn.surface("side", title="Now")
        assert turn.surfaces == ("side",)
        with pytest.raises(SurfaceDestroyed, match="'main' is always there"):
            turn.surface("main").set_title("No")

    async with running(agent, settings=settings) as hub:
        renderer = await joined(hub)
        await renderer.say("go")
        assert await renderer.ended("t1") == "completed"


async def test_whoever_waits_for_a_surface_hears_that_the_turn_is_over() -> None:
    errors: list[BaseException] = []
    waiting = asyncio.Event()

    async def agent(turn: Turn) -> None:
        side = turn.surface("side")

        async def wait() -> None:
            waiting.set()
            try:
                await side.closed
            except SurfaceDestroyed as error:
                errors.append(error)

        tasks.append(asyncio.create_task(wait()))
        await waiting.wait()

    tasks: list[asyncio.Task[None]] = []
    async with running(agent) as hub:
        renderer = await joined(hub)
        await renderer.say("go")
        await renderer.ended("t1")
        await asyncio.wait(tasks)
        assert "side" in renderer.screen.surfaces, "a surface outlives its turn"
    assert "t1 is over" in str(errors)


@pytest.mark.parametrize("retain_content", [True, False])
async def test_surface_goes_to_another_session_of_the_user(retain_content: bool) -> None:
    known: list[tuple[str, ...]] = []

    async def agent(turn: Turn) -> None:
        if turn.session_id == "b":
            known.append(turn.surfaces)
            turn.show(ui.text("old", id="own"), surface="side")
            return
        side = turn.surface("side", title="Report")
        side.show(ui.text("one", id="a"), ui.confirm("Sure?", id="q"))
        await side.transfer(to_session="b", retain_content=retain_content)
        assert await side.closed == "transferred"

    async with running(agent) as hub:
        one, two = await joined(hub, "a", owner="ada"), await joined(hub, "b", owner="ada")
        await two.say("first")
        await two.ended("t1")
        await one.say("go")
        assert await one.ended("t1") == "completed"
        assert set(one.screen.surfaces) == {"main"}
        await two.box.has("surface", surface="side-2")
        shown = [component.id for component in two.screen.surfaces["side-2"].output()]
        assert shown == (["a", "q"] if retain_content else [])
        assert two.screen.info("side-2").title == "Report"
        await two.say("second")
        await two.ended("t2")
        if retain_content:
            answer = {"action": "confirm"}
            await two.send("action", answer, source_component="q", surface="side-2", id="yes")
            assert (await two.box.has("ack", id="yes"))["turn_id"] == "t3"
            await two.ended("t3")
    assert known[:2] == [(), ("side", "side-2")]


async def test_a_surface_takes_what_the_turn_takes() -> None:
    """Values that are no components, in every place where the turn takes them; and its mistakes."""

    async def agent(turn: Turn) -> None:
        side = turn.surface("side")
        side.show(ui.text("one", id="a"))
        inserted = side.insert({"name": "Ada"}, after=None)
        side.replace("a", "two")
        with pytest.raises(TypeError, match="target: expected the id of a component, got Compon"):
            side.patch(ui.text("x", id="a"), "props.content", "x")  # type: ignore[arg-type]
        await turn.say(inserted)

    async with running(agent) as hub:
        renderer = await joined(hub)
        await renderer.say("go")
        assert await renderer.ended("t1") == "completed"
        shown = renderer.screen.surfaces["side"].output()
        assert [(one.type, one.id == renderer.box.said()) for one in shown] == [
            ("key-value", True),
            ("text", False),
        ]


async def test_surface_goes_to_nobody_else() -> None:
    """A session that does not exist and one of another user are refused with the same words."""
    refused: list[str] = []

    async def agent(turn: Turn) -> None:
        if turn.session_id != "a":
            return
        side = turn.surface("side")
        for name in ("other", "nothing", "a"):
            with pytest.raises(TransferDenied) as error:
                await side.transfer(to_session=name)
            refused.append(str(error.value).replace(repr(name), "'…'"))
        popup = turn.popup(ui.text("x"))
        with pytest.raises(TransferDenied, match="only a toplevel"):
            await popup.transfer(to_session="b")
        assert side.is_open

    async with running(agent) as hub:
        other = await joined(hub, "other", owner="bob")
        await joined(hub, "b", owner="ada")
        renderer = await joined(hub, "a", owner="ada")
        await renderer.say("go")
        assert await renderer.ended("t1") == "completed"
        assert set(other.screen.surfaces) == {"main"}
    assert refused[0] == refused[1] == "there is no session '…' of this user"
    assert refused[2] == "the surface is in this session already"


async def test_shared_state_goes_to_renderers_and_state_does_not() -> None:
    seen: list[Any] = []

    async def agent(turn: Turn) -> None:
        turn.state["mine"] = 1
        if turn.text == "first":
            turn.shared_state["step"] = 1
            async with turn.tool("step"):
                turn.shared_state = {"step": 2}
        else:
            seen.append(turn.shared_state)
            turn.shared_state["token"] = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
            await turn.say("two")

    async with running(agent) as hub:
        renderer = await joined(hub)
        await renderer.say("first")
        await renderer.ended("t1")
        assert [one["state"] for one in renderer.box.of("state")] == [{"step": 1}, {"step": 2}]
        late = await joined(hub)
        (ready,) = late.box.of("session")
        assert ready["state"] == late.screen.shared_state == {"step": 2}
        await renderer.say("second")
        assert await renderer.ended("t2") == "failed", "a secret is not shared"
        assert renderer.screen.shared_state == {"step": 2}
        assert "mine" not in str(renderer.box.messages)
    assert seen == [{"step": 2, "token": "ghp_abcdefghijklmnopqrstuvwxyz0123456789"}]


async def test_surfaces_come_back_from_the_store_as_they_were() -> None:
    store = MemoryStore()

    async def agent(turn: Turn) -> None:
        turn.surface("side", title="Details").show(ui.text("one"))
        turn.popup(ui.text("two"), title="Popup")
        gone = turn.surface("gone")
        gone.show(ui.text("three"))
        gone.close()

    first = await started(agent, store=store)
    renderer = await joined(first)
    await renderer.say("go")
    await renderer.ended("t1")
    await settled(first)
    before = renderer.screen.canonical()
    assert first.lifetimes.evict(float("inf")) == 0, "somebody watches"
    renderer.leave()
    await settled(first)
    assert first.lifetimes.evict(float("inf")) == 1
    again = await joined(first)
    assert again.screen.canonical() == before
    assert set(before["windows"]) == {"side", "t1-popup-1"}
    await first.aclose()


async def test_only_surfaces_that_are_there_can_be_closed_by_a_user() -> None:
    async with running() as hub:
        renderer = await joined(hub)
        for name in ("main", "nothing"):
            await close(renderer, name, id=f"close {name}")
            error = await renderer.box.has("error")
            assert error["payload"]["code"] == 1
        assert hub.sessions["s"].session.screen.closings == {}


async def test_agent_hears_of_its_own_closing_also_as_the_last_thing_it_does() -> None:
    heard: list[str] = []

    async def agent(turn: Turn) -> None:
        side = turn.surface("side")

        @side.on_close
        async def closed(reason: str) -> None:
            heard.append(reason)
            await turn.say("closed")

        side.close()

    async with running(agent) as hub:
        renderer = await joined(hub)
        await renderer.say("go")
        assert await renderer.ended("t1") == "completed"
        assert renderer.screen.text("t1") == "closed"
    assert heard == ["agent"]
