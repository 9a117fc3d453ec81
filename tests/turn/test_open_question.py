"""Questions with a time, a name or a type; several at once; and what becomes of them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import date
from typing import Annotated, Any, assert_type

import msgspec
import pydantic
import pytest

from arp import DECLINED, QuestionExpired, Turn, ui
from arp.hub.pushed import PushRequest, push_turn
from arp.hub.runner import AnswerHandler
from arp.protocol.components import Component
from arp.protocol.errors import InvalidComponent, SurfaceDestroyed
from arp.protocol.json_value import Json
from arp.surface.answer_type import AnswerType
from arp.surface.schema_form import NoForm
from arp.turn.open_question import OpenQuestion
from arp.turn.question_outcome import MAX_TIMEOUT_S, Declined, QuestionWithdrawn
from tests.hub.rig import HeldStore, Renderer, played, quiet, running, settled

YES = {"action": "confirm"}
DECLINE = {"action": "decline"}


class Trip(msgspec.Struct):
    """Where somebody goes."""

    to: Annotated[str, msgspec.Meta(description="Where to?")]
    start: date
    seats: Annotated[int, msgspec.Meta(ge=1, le=9)] = 1


class Guest(pydantic.BaseModel):
    """Somebody who comes."""

    name: str

    @pydantic.field_validator("name")
    @classmethod
    def _is_known(cls, name: str) -> str:
        if name == "Bob":
            raise ValueError("Bob is not invited")
        if name == "Eve":
            raise LookupError("the list is gone")
        return name


def shown(renderer: Renderer, name: str, turn: str = "t1") -> Any:
    """Return the props of a question as a renderer shows them."""
    (component,) = [one for one in renderer.screen.output(turn) if one.id == name]
    return component.props


def status_of(renderer: Renderer, turn: str = "t1") -> str | None:
    """Return the status of a turn as a renderer shows it."""
    return renderer.screen.turns[turn].status


async def asked(renderer: Renderer, count: int = 1) -> Renderer:
    """Waits until a renderer has been told of so many questions."""
    await renderer.box.until(
        lambda: [one["status"] for one in renderer.box.of("turn")].count("waiting") >= count
    )
    return renderer


# -- a time ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["ask", "confirm", "question"])
async def test_question_expires_on_every_renderer_and_the_agent_gets_a_timeout(way: str) -> None:
    store, errors = HeldStore(), list[TimeoutError]()

    async def agent(turn: Turn) -> None:
        component = ui.confirm("Sure?", id="q")
        try:
            if way == "confirm":
                await turn.confirm("Sure?", id="q", timeout_s=0.01)
            elif way == "ask":
                await turn.ask(component, timeout_s=0.01)
            else:
                await turn.question(component, timeout_s=0.01)
        except TimeoutError as error:
            errors.append(error)
        await turn.say("Nobody.")

    async with running(agent, store=store) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        assert await renderer.ended("t1") == "completed"
        facts = await store.facts()
    assert [type(error) for error in errors] == [QuestionExpired]
    assert shown(renderer, "q")["state"] == "expired"
    (required,) = [fact.payload for fact in facts if fact.type == "action.required"]
    assert required["expiresAt"].endswith("Z")
    resolved = [fact.payload for fact in facts if fact.type == "action.resolved"]
    assert resolved == [{"decision": "expired", "resumes": True}]


async def test_expiry_that_nobody_catches_ends_the_turn_with_words_that_people_may_read() -> None:
    async def agent(turn: Turn) -> None:
        await turn.confirm("Sure?", timeout_s=0.01)

    renderer = await played(agent)
    assert renderer.screen.turns["t1"].status == "failed"
    (error,) = renderer.screen.turns["t1"].errors
    assert (error.code, error.error) == (18, "Nobody answered in time.")


@pytest.mark.parametrize(
    ("timeout_s", "error"),
    [
        (0, ValueError),
        (-1, ValueError),
        (MAX_TIMEOUT_S + 1, ValueError),
        ("1", TypeError),
        (True, TypeError),
    ],
)
async def test_time_that_is_none_is_refused_and_nobody_is_asked(
    timeout_s: Any, error: type[Exception]
) -> None:
    errors: list[Exception] = []

    async def agent(turn: Turn) -> None:
        try:
            await turn.ask(ui.confirm("Sure?"), timeout_s=timeout_s)
        except (TypeError, ValueError) as wrong:
            errors.append(wrong)

    renderer = await played(agent)
    assert [type(one) for one in errors] == [error]
    assert renderer.screen.output("t1") == []


async def test_answer_in_time_is_the_answer() -> None:
    answers: list[bool] = []

    async def agent(turn: Turn) -> None:
        answers.append(await turn.confirm("Sure?", id="q", timeout_s=60))

    async with running(agent) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        await asked(renderer)
        await renderer.send("action", YES, source_component="q")
        assert await renderer.ended("t1") == "completed"
        assert hub.sessions["s"].deadlines == {}
    assert answers == [True]


# -- a question in hand ----------------------------------------------------------------------------


async def test_several_questions_are_open_at_once_and_each_gets_its_answer() -> None:
    answers: dict[str, Any] = {}

    async def agent(turn: Turn) -> None:
        one = turn.question(ui.text_input("Name?", id="one"))
        two = turn.question(ui.choices(["a", "b"], id="two"))
        assert_type(one, OpenQuestion[str])
        await turn.say("Both, please.")
        answers["two"], answers["one"] = await two, await one.answer()
        answers["again"] = await one
        answers["open"] = (one.is_open, two.is_open, one.withdraw())

    async with running(agent) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        await asked(renderer, 2)
        await renderer.send("text", {"text": "Ada"}, source_component="one")
        await renderer.send("selection", {"selected": ["b"]}, source_component="two")
        assert await renderer.ended("t1") == "completed"
    assert answers == {"one": "Ada", "two": "b", "again": "Ada", "open": (False, False, False)}


async def test_withdrawn_question_is_closed_on_every_renderer_and_the_turn_runs_on() -> None:
    store, ends = HeldStore(), list[Any]()

    async def agent(turn: Turn) -> None:
        question = turn.question(ui.confirm("Sure?", id="q"))
        waiting = asyncio.ensure_future(question)
        await turn.say("Never mind.")
        ends.extend([question.id, question.is_open, question.withdraw(), question.withdraw()])
        with pytest.raises(QuestionWithdrawn):
            await waiting

    async with running(agent, store=store) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        assert await renderer.ended("t1") == "completed"
        facts = await store.facts()
    assert ends == ["q", True, True, False]
    assert shown(renderer, "q")["state"] == "cancelled"
    resolved = [fact.payload for fact in facts if fact.type == "action.resolved"]
    assert resolved == [{"decision": "cancelled", "resumes": True}]


async def test_cancel_of_one_who_waits_leaves_the_question_open() -> None:
    """It can be awaited again; only `turn.ask`, whose question nobody else has, withdraws it."""
    answers: list[Any] = []

    async def agent(turn: Turn) -> None:
        question = turn.question(ui.confirm("Sure?", id="q"))
        try:
            async with asyncio.timeout(0.01):
                await question
        except TimeoutError:
            await turn.say("Take your time.")
        answers.append(await question)

    async with running(agent) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        await renderer.box.has("delta")
        assert shown(renderer, "q")["state"] == "open"
        await renderer.send("action", YES, source_component="q")
        assert await renderer.ended("t1") == "completed"
    assert answers == [True]


async def test_question_that_is_open_when_its_turn_ends_is_withdrawn() -> None:
    waiting: list[asyncio.Future[bool]] = []

    async def agent(turn: Turn) -> None:
        question = turn.question(ui.confirm("Sure?", id="q"))
        waiting.append(asyncio.ensure_future(question.answer()))
        await asyncio.sleep(0)

    renderer = await played(agent)
    assert shown(renderer, "q")["state"] == "cancelled"
    with pytest.raises(SurfaceDestroyed):
        await waiting[0]


async def test_what_cannot_be_asked_is_said_at_once() -> None:
    errors: list[str] = []

    async def agent(turn: Turn) -> None:
        odd: list[Any] = [
            ("text", {}, InvalidComponent),
            (ui.confirm("Sure?"), {"title": "Trip"}, TypeError),
            (Trip, {"colour": "red"}, TypeError),
            (dict, {}, NoForm),
        ]
        for component, options, error in odd:
            with pytest.raises(error) as refused:
                turn.question(component, **options)
            errors.append(str(refused.value))

    renderer = await played(agent)
    assert renderer.screen.turns["t1"].status == "completed"
    assert errors[0] == (
        "turn.ask: expected a question, got a text; write: turn.ask(ui.text_input('text'))"
    )
    assert errors[1] == "turn.ask: title: not for what is asked here"
    assert errors[2] == "turn.ask: colour: not for what is asked here"


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda turn: turn.ask("Name?"), "write: turn.ask(ui.text_input('Name?'))"),
        (lambda turn: turn.question("Name?"), "write: turn.ask(ui.text_input('Name?'))"),
        (lambda turn: turn.ask(["a", "b"]), "turn.ask(ui.choices([…]))"),
        (lambda turn: turn.ask(7), "a component that asks or a type, got int"),
        (lambda turn: turn.confirm("Sure?", timeout=3), "did you mean timeout_s?"),
        (lambda turn: turn.confirm("Sure?", label="Go"), "turn.confirm: label is unknown"),
        (lambda turn: turn.ask(ui.confirm("Sure?"), timeout=3), "did you mean timeout_s?"),
    ],
)
async def test_wrong_question_says_what_to_write(call: Callable[[Turn], Any], said: str) -> None:
    errors: list[str] = []

    async def agent(turn: Turn) -> None:
        with pytest.raises((InvalidComponent, TypeError)) as refused:
            await call(turn)
        errors.append(str(refused.value))

    await played(agent)
    assert said in errors[0]


async def test_wrong_option_of_a_permission_says_what_to_write() -> None:
    """Nothing is recorded of a permission that cannot be asked."""
    errors: list[str] = []

    async def agent(turn: Turn) -> None:
        async with turn.tool("rm") as tool:
            with pytest.raises(TypeError) as refused:
                await tool.approve("Delete?", rule="delete", timeout=3)  # type: ignore[call-arg]
        errors.append(str(refused.value))

    renderer = await played(agent)
    assert errors == ["tool.approve: timeout is unknown; did you mean timeout_s?"]
    assert renderer.screen.turns["t1"].status == "completed"


# -- declining -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "component",
    [
        ui.form([ui.field("n")], id="q"),
        ui.confirm("Sure?", id="q"),
        ui.choices(["a"], id="q"),
        ui.text_input("Why?", id="q"),
        ui.table(["a"], [[1]], selectable="one", id="q"),
    ],
)
async def test_declined_question_gives_no_answer(component: Component) -> None:
    """It cannot be mistaken for an answer, nor for a yes."""
    store, answers = HeldStore(), list[Any]()

    async def agent(turn: Turn) -> None:
        answers.append(await turn.ask(component, can_decline=True))

    async with running(agent, store=store) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        await asked(renderer)
        assert shown(renderer, "q")["can_decline"] is True
        await renderer.send("action", DECLINE, source_component="q")
        assert await renderer.ended("t1") == "completed"
        facts = await store.facts()
    assert answers == [DECLINED]
    assert not answers[0]
    assert shown(renderer, "q")["state"] == "declined"
    (resolved,) = [fact.payload for fact in facts if fact.type == "action.resolved"]
    assert (resolved["decision"], resolved["input"]["data"]) == ("declined", DECLINE)


async def test_renderer_that_shows_text_alone_declines_by_a_word() -> None:
    answers: list[Any] = []

    async def agent(turn: Turn) -> None:
        answers.append(await turn.ask(ui.text_input("Why?", id="q"), can_decline=True))

    async with running(agent) as hub:
        renderer = await Renderer(hub, components=["text"]).join()
        await renderer.say("go")
        await asked(renderer)
        assert 'Reply "decline" to decline.' in shown(renderer, "q")["content"]
        await renderer.say("Decline.")
        assert await renderer.ended("t1") == "completed"
        assert shown(renderer, "q")["content"].endswith("Declined.")
    assert answers == [DECLINED]


# -- a type ----------------------------------------------------------------------------------------


async def test_type_is_asked_for_by_a_form_and_comes_back() -> None:
    trips: list[Trip] = []

    async def agent(turn: Turn) -> None:
        trip = await turn.ask(Trip, title="Your trip", id="q", values={"to": "Oslo"})
        assert_type(trip, Trip)
        trips.append(trip)

    async with running(agent) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        await asked(renderer)
        props = shown(renderer, "q")
        assert (props["title"], [one["name"] for one in props["fields"]]) == (
            "Your trip",
            ["to", "start", "seats"],
        )
        assert props["fields"][0]["value"] == "Oslo"
        fields = {"to": "Rome", "start": "2026-05-01", "seats": "2"}
        await renderer.send("form_submit", {"fields": fields}, source_component="q")
        assert await renderer.ended("t1") == "completed"
    assert trips == [Trip("Rome", date(2026, 5, 1), 2)]


async def test_value_that_the_type_refuses_is_told_at_its_field_and_the_form_stays_open() -> None:
    """Nothing is lost: the question is the same, and what was typed is still in its fields."""
    guests: list[Guest | Declined] = []

    async def agent(turn: Turn) -> None:
        guests.append(await turn.ask(Guest, id="q", can_decline=True))

    async with running(agent) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        await asked(renderer)
        await renderer.send("form_submit", {"fields": {"name": "Bob"}}, source_component="q")
        error = (await renderer.box.has("error"))["payload"]
        assert (error["code"], error["detail"]) == (11, "fields.name")
        assert error["error"] == "fields.name: Value error, Bob is not invited"
        assert shown(renderer, "q")["state"] == "open"
        await renderer.send("form_submit", {"fields": {"name": "Ann"}}, source_component="q")
        assert await renderer.ended("t1") == "completed"
    assert guests == [Guest(name="Ann")]


async def test_validator_that_fails_by_itself_is_the_agents_failure(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def agent(turn: Turn) -> None:
        await turn.ask(Guest, id="q")

    async with running(agent) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        await asked(renderer)
        with caplog.at_level(logging.ERROR):
            await renderer.send("form_submit", {"fields": {"name": "Eve"}}, source_component="q")
            assert await renderer.ended("t1") == "failed"
    assert "the list is gone" in caplog.text


async def test_answers_keep_their_types() -> None:
    """For type checkers; nothing of it runs."""

    async def agent(turn: Turn) -> None:
        assert_type(await turn.ask(ui.confirm("?")), bool)
        assert_type(await turn.ask(ui.confirm("?"), can_decline=True), bool | Declined)
        assert_type(await turn.ask(ui.form([])), dict[str, Json])
        assert_type(await turn.ask(ui.text_input("?")), str)
        assert_type(await turn.ask(ui.choices(["a"])), str | int | float)
        several = await turn.ask(ui.choices(["a"], multi_select=True))
        assert_type(several, list[str | int | float])
        assert_type(await turn.ask(Trip), Trip)
        trip = await turn.ask(Trip, can_decline=True)
        if trip is not DECLINED:
            assert_type(trip, Trip)
        assert_type(await turn.question(Trip), Trip)

    assert asyncio.iscoroutinefunction(agent)


# -- a restart -------------------------------------------------------------------------------------


async def left_open(store: HeldStore, component: Any, **options: Any) -> None:
    """Asks in a process that ends before anybody has answered."""

    async def agent(turn: Turn) -> None:
        await turn.ask(component, **options)

    async with running(agent, store=store) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        await asked(renderer)
        await settled(hub)
    await store.open()


async def test_turn_whose_question_is_open_reads_as_waiting_after_a_restart() -> None:
    """It is over and nothing waits behind it; with the answer it reads as completed."""
    store = HeldStore()
    await left_open(store, ui.confirm("Sure?", id="q"))

    async def agent(turn: Turn) -> None:
        await turn.say(f"got {turn.input.data}")

    async with running(agent, store=store) as hub:
        renderer = await Renderer(hub).join()
        turn = renderer.screen.turns["t1"]
        assert (turn.status, turn.final, turn.errors) == ("waiting", True, [])
        assert shown(renderer, "q")["state"] == "open"
        await renderer.say("something else")
        assert await renderer.ended("t2") == "completed"
        assert status_of(renderer) == "waiting"
        await renderer.send("action", YES, source_component="q")
        assert await renderer.ended("t3") == "completed"
        assert status_of(renderer) == "completed"
        late = await Renderer(hub).join()
        assert late.screen.canonical() == renderer.screen.canonical()
    assert renderer.screen.text("t3") == "got {'action': 'confirm'}"


@pytest.mark.parametrize("says", ["answer", "decline"])
async def test_answer_to_a_named_question_of_a_turn_that_is_gone_goes_to_its_function(
    says: str,
) -> None:
    store, given = HeldStore(), list[Any]()
    await left_open(store, Trip, name="trip", id="q", can_decline=True)

    async def booked(turn: Turn, trip: Trip | Declined) -> None:
        given.append((turn.id, trip))
        await turn.say("Booked.")

    answers = {"trip": AnswerHandler(booked, AnswerType(Trip))}
    async with running(quiet, store=store, answers=answers) as hub:
        renderer = await Renderer(hub).join()
        fields = {"to": "Rome", "start": "2026-05-01"}
        if says == "answer":
            await renderer.send("form_submit", {"fields": fields}, source_component="q")
        else:
            await renderer.send("action", DECLINE, source_component="q")
        assert await renderer.ended("t2") == "completed"
        assert renderer.screen.text("t2") == "Booked."
    assert given == [("t2", DECLINED if says == "decline" else Trip("Rome", date(2026, 5, 1)))]


async def test_type_judges_an_answer_after_a_restart_too() -> None:
    store, given = HeldStore(), list[Any]()
    await left_open(store, Guest, name="guest", id="q")

    async def came(_: Turn, guest: Guest) -> None:
        given.append(guest)

    answers = {"guest": AnswerHandler(came, AnswerType(Guest))}
    async with running(quiet, store=store, answers=answers) as hub:
        renderer = await Renderer(hub).join()
        await renderer.send("form_submit", {"fields": {"name": "Bob"}}, source_component="q")
        error = (await renderer.box.has("error"))["payload"]
        assert error["detail"] == "fields.name"
        await renderer.send("form_submit", {"fields": {"name": "Ann"}}, source_component="q")
        assert await renderer.ended("t2") == "completed"
    assert given == [Guest(name="Ann")]


async def test_question_of_a_turn_that_nobody_typed_has_its_function_too() -> None:
    store, given = HeldStore(), list[Any]()

    async def agent(turn: Turn) -> None:
        if turn.origin is not None:
            await turn.confirm("Restart it?", id="q", name="restart")

    async def restarts(turn: Turn, answer: Any) -> None:
        given.append((turn.id, answer))

    async with running(agent, store=store) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("hi")
        await renderer.ended("t1")
        await push_turn(hub, "s", PushRequest("It is down", None, "monitor", None, None))
        await asked(renderer)
        await settled(hub)
    await store.open()
    async with running(agent, store=store, answers={"restart": AnswerHandler(restarts)}) as hub:
        renderer = await Renderer(hub).join()
        assert status_of(renderer, "t2") == "waiting"
        await renderer.send("action", YES, source_component="q")
        assert await renderer.ended("t3") == "completed"
    assert given == [("t3", True)]


async def test_password_reaches_the_function_though_the_ledger_has_none() -> None:
    store, given = HeldStore(), list[Any]()
    login = ui.form([ui.field("pin", field_type="password")], id="q")
    await left_open(store, login, name="login")

    async def logged_in(_: Turn, answer: Any) -> None:
        given.append(answer)

    async with running(quiet, store=store, answers={"login": AnswerHandler(logged_in)}) as hub:
        renderer = await Renderer(hub).join()
        answer = {"fields": {"pin": "sesame-9731"}}
        await renderer.send("form_submit", answer, source_component="q")
        assert await renderer.ended("t2") == "completed"
        facts = await store.facts()
    assert given == [{"pin": "sesame-9731"}]
    assert "sesame" not in "".join(str(fact.payload) for fact in facts)


async def test_named_question_that_its_agent_waits_for_is_answered_to_the_agent() -> None:
    """And one whose name no function has begins a turn of the agent, as any other."""
    given: list[Any] = []

    async def agent(turn: Turn) -> None:
        given.append(await turn.confirm("Sure?", id="q", name="sure"))

    async def never(_: Turn, answer: Any) -> None:
        given.append(("never", answer))

    async with running(agent, answers={"sure": AnswerHandler(never)}) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        await asked(renderer)
        await renderer.send("action", YES, source_component="q")
        assert await renderer.ended("t1") == "completed"
    assert given == [True]
    store = HeldStore()
    await left_open(store, ui.confirm("Sure?", id="q"), name="other")
    async with running(quiet, store=store, answers={"sure": AnswerHandler(never)}) as hub:
        renderer = await Renderer(hub).join()
        await renderer.send("action", YES, source_component="q")
        assert await renderer.ended("t2") == "completed"
    assert given == [True]


async def test_question_expires_after_a_restart_too() -> None:
    """In time while its session is in memory, and else before anybody can answer it."""
    store = HeldStore()
    await left_open(store, ui.confirm("Sure?", id="q"), timeout_s=0.3)
    async with running(quiet, store=store) as hub:
        renderer = await Renderer(hub).join()
        await renderer.box.until(lambda: shown(renderer, "q")["state"] == "expired")
        assert renderer.screen.turns["t1"].status == "cancelled"
        await renderer.send("action", YES, source_component="q")
        error = (await renderer.box.has("error"))["payload"]
        assert error["error"] == 'confirm "q" has expired and takes no more answers'
