"""A renderer of the object dialect gets the session of the hub as every other renderer."""

from __future__ import annotations

import asyncio
import json

import pytest

from arp import Turn, ui
from arp.access.principal import Principal
from arp.protocol.components import Component
from arp.protocol.objects.messages import InputAckRequest, InputRefuseRequest
from arp.protocol.objects.renderer import Offer
from tests.hub.object_rig import Display
from tests.hub.rig import Renderer, running


async def everything(turn: Turn) -> None:
    """Text, components, and every kind of change."""
    await turn.say("One. ")
    turn.show(ui.text("a", id="a"), ui.group([ui.text("x", id="x")], id="g"))
    await turn.say("Two. ")
    turn.show(ui.table(["n"], [[1]], id="t"))
    await turn.say("Three. ")
    turn.append("t", "props.rows", [[2]])
    turn.insert(ui.text("y", id="y"), after=None, parent="g")
    turn.insert(ui.text("first", id="first"), after=None)
    await turn.say("Four. ")
    turn.reorder("t", after="first")
    turn.replace("a", ui.text("new", id="a"))
    turn.show(ui.text("gone", id="gone"))
    await turn.say("Five.")
    turn.remove("gone")


def flat(renderer: Renderer) -> list[tuple[str, object]]:
    """What the session's screen has on `main`, as a renderer without turns shows it."""
    shown: list[Component] = []
    for turn_id, turn in renderer.screen.turns.items():
        said = Component(f"{turn_id}/input", "text", {})
        shown += [said, *renderer.screen.output(turn_id)]
        shown += [
            Component(f"{turn_id}/error/{number}", "text", {})
            for number in range(1, len(turn.errors) + 1)
        ]
    kept = [(one.id, one.props) for one in shown]
    return [(key, None if key.endswith("input") or "error" in key else is_) for key, is_ in kept]


def shown(display: Display) -> list[tuple[str, object]]:
    kept = [(one.id, one.props) for one in display.content()]
    return [(key, None if key.endswith("input") or "error" in key else is_) for key, is_ in kept]


@pytest.mark.parametrize("features", [("patch-append",), ()])
async def test_surface_shows_what_the_session_shows(features: tuple[str, ...]) -> None:
    """The same components in the same order, with and without appending."""
    async with running(everything) as hub, Display(hub, features=features) as display:
        await display.open()
        await display.say("go")
        await display.until(lambda: display.finals)
        other = await Renderer(hub, hub_session(hub)).join()
        await display.say("again")
        await display.until(lambda: display.finals > 1)
        await other.ended("t2")
        assert shown(display) == flat(other)
    assert display.most_pending <= 2
    answers = [one for one in display.answers if isinstance(one, InputAckRequest)]
    assert [(one.serial, one.turn_id) for one in answers] == [(1, "t1"), (2, "t2")]


def hub_session(hub: object) -> str:
    (session_id,) = hub.sessions  # type: ignore[attr-defined]
    return str(session_id)


async def test_failed_turn_shows_its_error_as_text() -> None:
    async def agent(turn: Turn) -> None:
        await turn.say("Before.")
        raise RuntimeError("secret")

    async with running(agent) as hub, Display(hub) as display:
        await display.open()
        await display.say("go")
        await display.until(lambda: display.finals)
        content = [(one.id, one.props["content"]) for one in display.content()]
    assert content[:2] == [("t1/input", "> go"), ("t1/1", "Before.")]
    assert content[2][0] == "t1/error/1"
    assert content[2][1].startswith("Error: ")
    assert "secret" not in content[2][1]


async def test_commits_that_are_not_displayed_are_waited_for_and_merged() -> None:
    """docs/protocol.md, "Commits": at most `max_pending_commits` are under way. Spec: O13."""
    going = asyncio.Event()

    async def agent(turn: Turn) -> None:
        for number in range(40):
            await turn.say(f"{number} ")
            turn.show(ui.text(str(number), id="n"))
        going.set()

    async with running(agent) as hub, Display(hub) as display:
        await display.open()
        display.displays = False
        await display.say("go")
        await going.wait()
        await display.until(lambda: len(display.end.objects.surface(display.names["main"]).pending))
        assert display.most_pending <= 2
        commits = len(display.shown)
        display.displays = True
        display.end.displayed(display.names["main"])
        await display.flush()
        await display.until(lambda: display.finals)
        number = {one.id: one.props["content"] for one in display.content()}["n"]
    assert number == "39"
    assert len(display.shown) < commits + 40
    assert display.most_pending <= 2


async def test_suspended_surface_gets_one_commit_when_it_shows_again() -> None:
    """docs/protocol.md, "Surfaces": `suspended` means that no animation is sent. Spec: O16."""
    done = asyncio.Event()

    async def agent(turn: Turn) -> None:
        for number in range(20):
            await turn.say(f"{number} ")
        done.set()

    async with running(agent) as hub, Display(hub) as display:
        await display.open()
        main = display.names["main"]
        display.end.configure(main, 80, 24, ["suspended"])
        await display.flush()
        await display.say("go")
        await done.wait()
        await display.until(lambda: display.answers)
        before = len(display.shown)
        display.end.configure(main, 80, 24, ["activated"])
        await display.flush()
        await display.until(lambda: display.finals)
        text = {one.id: one.props["content"] for one in display.content()}["t1/1"]
    assert text.split() == [str(number) for number in range(20)]
    assert len(display.shown) - before <= 4


async def test_every_configure_is_answered_by_a_commit() -> None:
    """Spec: O12."""
    async with running() as hub, Display(hub) as display:
        await display.open()
        main = display.names["main"]
        await display.until(lambda: display.end.objects.surface(main).life == "shown")
        display.end.configure(main, 100, 30, ["resizing"])
        await display.flush()
        assert display.end.objects.surface(main).life == "reconfigured"
        await display.until(lambda: display.end.objects.surface(main).life == "shown")


async def test_renderer_chooses_the_session_that_it_was_on() -> None:
    """docs/protocol.md, "Sessions": `resumed` names another session than was proposed.

    Spec: O22.
    """

    async def agent(turn: Turn) -> None:
        await turn.say("Hello.")

    async with running(agent) as hub:
        other = await Renderer(hub, "mine").join()
        await other.say("go")
        await other.ended("t1")
        async with Display(hub, resumes=("mine", None)) as display:
            await display.open()
            await display.until(lambda: len(display.content()) == 2)
            assert list(hub.sessions) == ["mine"]
            assert shown(display) == flat(other)


@pytest.mark.parametrize(("token", "is_let_in"), [("ada", True), ("eve", False), (None, False)])
async def test_token_may_come_with_resumed(token: str | None, is_let_in: bool) -> None:
    async with running() as hub, Display(hub, principal=None, resumes=("s", token)) as display:
        if is_let_in:
            await display.open()
            assert hub.sessions["s"].session.head.owner == "ada"
        else:
            await display.until(lambda: display.told)
            assert [one.code for one in display.told] == [14]
            assert not hub.sessions


async def test_renderer_without_what_is_needed_is_told_so() -> None:
    async with running() as hub, Display(hub, globals=[Offer("ArpCompositor")]) as display:
        await display.until(lambda: display.told)
        assert display.box.closed is not None
        assert display.box.closed[0] == 1002
    (told,) = display.told
    assert told.code == 1
    assert "ArpShell, ArpInput, ArpSession" in told.message


async def test_input_that_is_refused_is_answered_with_its_serial() -> None:
    async with running() as hub, Display(hub) as display:
        await display.open()
        serial = await display.use("action", {"action": "confirm"}, source="nothing")
        await display.until(lambda: display.answers)
    (answer,) = display.answers
    assert isinstance(answer, InputRefuseRequest)
    assert (answer.serial, answer.code) == (serial, 1)


async def test_renderer_with_the_first_version_of_input_gets_an_ack_and_an_error() -> None:
    """`refuse` is there since version 2. Spec: O21."""
    offered = [Offer(f"Arp{name}") for name in ("Compositor", "Shell", "Input", "Session")]
    async with running() as hub, Display(hub, globals=offered) as display:
        await display.open()
        serial = await display.use("action", {"action": "confirm"}, source="nothing")
        await display.until(lambda: display.answers)
    assert display.answers == [InputAckRequest(serial)]
    assert [one.code for one in display.told] == [1]


async def test_question_is_answered_on_a_surface() -> None:
    async def agent(turn: Turn) -> None:
        await turn.say("yes" if await turn.confirm("Sure?", id="sure") else "no")

    async with running(agent) as hub, Display(hub) as display:
        await display.open()
        await display.say("go")
        await display.until(lambda: any(one.id == "sure" for one in display.content()))
        await display.use("action", {"action": "confirm"}, source="sure")
        await display.until(lambda: display.finals)
        assert display.texts().endswith("yes")


async def test_shared_state_is_a_state_update() -> None:
    async def agent(turn: Turn) -> None:
        turn.shared_state = {"zoom": 3}
        await turn.say("Done.")

    async with running(agent) as hub, Display(hub) as display:
        await display.open()
        await display.say("go")
        await display.until(lambda: display.finals)
        assert display.state == {"zoom": 3}
        async with Display(hub, resumes=(hub_session(hub), None)) as late:
            await late.until(lambda: late.state == {"zoom": 3})


async def test_popup_opens_by_the_serial_of_the_click_and_is_closed_by_the_user() -> None:
    """The author's popup has the role `popup` here, and what the user does reaches the author."""
    closed: list[str] = []

    async def agent(turn: Turn) -> None:
        turn.show(ui.table(["n"], [[1], [2]], id="t", selectable="one"))
        if turn.text == "popup":
            popup = turn.popup(ui.text("Inside", id="in"), over="t", row=1)
            closed.append(str(await popup.done))

    async with running(agent) as hub, Display(hub) as display:
        await display.open()
        await display.say("popup")
        await display.until(lambda: "popup" in display.roles.values())
        (name,) = [name for name, role in display.roles.items() if role == "popup"]
        await display.until(lambda: display.content(name))
        assert [one.props["content"] for one in display.content(name)] == ["Inside"]
        surface = display.names[name]
        display.end.close(surface)
        await display.flush()
        await display.until(lambda: surface not in display.end.objects.entries)
        await display.until(lambda: display.finals)
    assert closed == ["user"]


async def test_surface_beside_main_has_its_title_and_is_destroyed_with_the_authors() -> None:
    async def agent(turn: Turn) -> None:
        side = turn.surface("side", title="Beside")
        side.show(ui.text("There", id="there"))
        await turn.say("Shown. ")
        if turn.text == "close":
            side.close()
        await turn.say("Done.")

    async with running(agent) as hub, Display(hub) as display:
        await display.open()
        await display.say("go")
        await display.until(lambda: display.finals)
        assert display.roles["side"] == "toplevel"
        assert display.titles["side"] == "Beside"
        assert [one.id for one in display.content("side")] == ["there"]
        side = display.names["side"]
        await display.say("close")
        await display.until(lambda: display.finals > 1)
        await display.until(lambda: side not in display.end.objects.entries)


async def test_large_frame_is_read_in_a_thread_and_in_order() -> None:
    async with running(everything) as hub, Display(hub) as display:
        await display.open()
        await display.say("x" * 60_000)
        await display.until(lambda: display.finals)
        first = display.content()[0]
    assert first.id == "t1/input"
    assert len(first.props["content"]) == 60_002


async def test_bad_frame_is_answered_and_the_connection_lives() -> None:
    async with running(everything) as hub, Display(hub) as display:
        await display.open()
        number = display.end._sent_no = display.end._sent_no + 1
        raw = {"v": 1, "id": 99, "op": "closed", "seq": number, "payload": {}}
        await display.peer.receive(json.dumps(raw))
        await display.until(lambda: display.told)
        assert [(one.object_id, one.code, one.refused_seq) for one in display.told] == [
            (99, 1, number)
        ]
        await display.say("go")
        await display.until(lambda: display.finals)


async def test_connection_that_is_gone_leaves_the_session_alone() -> None:
    async with running(everything) as hub:
        async with Display(hub, principal=Principal("ada")) as display:
            await display.open()
            await display.say("go")
            await display.until(lambda: display.finals)
        (live,) = hub.sessions.values()
        assert live.viewers == {}
        assert live.session.turn_count == 1


async def test_renderer_that_shows_something_else_gets_a_snapshot() -> None:
    """What its agent side does not know any more was changed: everything is shown again."""
    async with running(everything) as hub, Display(hub) as display:
        await display.open()
        await display.say("go")
        await display.until(lambda: display.finals)
        before, expected = len(display.shown), shown(display)
        display.peer.desynchronised()
        await display.until(lambda: len(display.shown) > before)
        assert shown(display) == expected
        await display.say("again")
        await display.until(lambda: display.finals > 1)
