"""Two screens answer at the same time: the first counts, the other one gets an error."""

from __future__ import annotations

from typing import Any

import pytest

from arp import Turn, ui
from arp.protocol.messages import ErrorMessage, Input, RendererAck
from arp.protocol.objects.messages import InputRefuseRequest
from tests.hub.object_rig import Display
from tests.hub.rig import FEATURES, HeldStore, Renderer, running

TEXT = ["text"]
"""Of a renderer whose user types answers."""


class Agent:
    """Asks one thing and says what was answered."""

    def __init__(self, component: Any = None) -> None:
        self.component = component or ui.confirm("Delete?", id="q")
        self.turns = 0

    async def __call__(self, turn: Turn) -> None:
        self.turns += 1
        await turn.say(f"got {await turn.ask(self.component)}")


async def test_typed_answer_before_the_first_one_is_shown_gets_an_error() -> None:
    """The other screen cannot know yet that the question is closed."""
    agent, store = Agent(), HeldStore()
    async with running(agent, store=store) as hub:
        one = await Renderer(hub, components=TEXT).join()
        two = await Renderer(hub, components=TEXT).join()
        await one.say("go")
        await two.box.has("turn", status="waiting")
        store.hold()
        await one.say("yes", id="one")
        await two.say("no", id="two")
        (error,) = [error["payload"] for error in two.box.of("error")]
        assert error["id"] == "two"
        assert 'confirm "q" is already answered' in error["error"]
        store.release()
        assert await one.ended("t1") == "completed"
    assert one.box.said() == "got True"
    assert (agent.turns, one.box.of("error")) == (1, [])


async def test_typed_answer_of_a_screen_that_has_not_drawn_the_first_one_gets_an_error() -> None:
    """What a renderer says that it has drawn counts, not what was sent to it."""
    agent = Agent(ui.text_input("Name?", id="q"))
    async with running(agent) as hub:
        one = await Renderer(hub).join()
        two = await Renderer(hub, components=TEXT, features=[*FEATURES, "frame-ack"]).join()
        await one.say("go")
        waiting = await two.box.has("turn", status="waiting")
        two.viewer.acknowledge(waiting["seq"])
        await one.send("text", {"text": "Ada"}, source_component="q", id="one")
        assert await two.ended("t1") == "completed"
        await two.say("Bob", id="two")
        (error,) = [error["payload"] for error in two.box.of("error")]
        assert "is already answered" in error["error"]
        drawn = [commit["seq"] for commit in two.box.of("commit")][-1]
        two.viewer.acknowledge(RendererAck(seq=drawn).seq)
        await two.say("What next?", id="three")
        await two.box.has("ack", id="three")
    assert agent.turns == 2


async def test_who_has_answered_may_go_on_writing_at_once() -> None:
    agent, store = Agent(ui.text_input("Name?", id="q")), HeldStore()
    async with running(agent, store=store) as hub:
        one = await Renderer(hub, components=TEXT).join()
        await one.say("go")
        await one.box.has("turn", status="waiting")
        store.hold()
        await one.say("Ada", id="one")
        await one.say("What next?", id="two")
        store.release()
        await one.box.has("ack", id="two")
        assert one.box.of("error") == []


async def test_action_of_the_draft_that_is_late_begins_no_turn() -> None:
    agent, store = Agent(), HeldStore()
    async with running(agent, store=store) as hub:
        one, two = await Renderer(hub).join(), await Renderer(hub).join()
        await one.say("go")
        await two.box.has("turn", status="waiting")
        store.hold()
        await one.send("action", {"action": "confirm"}, source_component="q", id="one")
        await two.send("action", {"action": "deny"}, id="two")
        assert [error["payload"]["id"] for error in two.box.of("error")] == ["two"]
        store.release()
        assert await one.ended("t1") == "completed"
    assert agent.turns == 1


async def test_answer_by_post_that_is_late_gets_an_error() -> None:
    """It comes beside the connection of its screen."""
    agent, store = Agent(), HeldStore()
    async with running(agent, store=store) as hub:
        one = await Renderer(hub, components=TEXT).join()
        await one.say("go")
        await one.box.has("turn", status="waiting")
        store.hold()
        await one.say("yes", id="one")
        message = Input(input_type="text", data={"text": "no"}, session_id="s", id="two")
        answer = await hub.submit(message, one.principal, "agent")
        assert isinstance(answer, ErrorMessage)
        assert "is already answered" in answer.payload.error
        store.release()
        assert await one.ended("t1") == "completed"
    assert agent.turns == 1


@pytest.mark.parametrize("first", ["session", "object"])
async def test_late_answer_is_refused_in_both_dialects(first: str) -> None:
    agent, store = Agent(), HeldStore()
    async with running(agent, store=store) as hub:
        one = await Renderer(hub).join()
        await one.say("go")
        await one.box.has("turn", status="waiting")
        async with Display(hub, resumes=("s", None)) as display:
            await display.until(lambda: "q" in [one.id for one in display.content()])
            await answer_at_once(first, one, display, store)
    assert agent.turns == 1


async def answer_at_once(first: str, one: Renderer, display: Display, store: HeldStore) -> None:
    """Let both answer before either is shown, and look at what the later one gets."""
    store.hold()
    yes = {"action": "confirm"}
    if first == "session":
        await one.send("action", yes, source_component="q", id="one")
    serial = await display.use("action", yes, source="q")
    if first == "object":
        await one.send("action", yes, source_component="q", id="one")
    store.release()
    assert await one.ended("t1") == "completed"
    await display.until(lambda: display.answers)
    (answer,) = display.answers
    assert answer.serial == serial  # type: ignore[attr-defined]
    errors = [error["payload"]["error"] for error in one.box.of("error")]
    if isinstance(answer, InputRefuseRequest):
        errors.append(answer.message)
    assert isinstance(answer, InputRefuseRequest) == (first == "session")
    assert [error for error in errors if "is already answered" in error] == errors != []
