"""Whatever an author hands over, at any call: an error at their line, or shown rightly.

Each test throws objects at calls of a turn and then asks what is left: the turn ends, what is
stored can be read and makes the session that there is, renderers show the same, and the next turn
runs.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct

from arp import App, ArpError, Component, Turn, ui
from arp.ledger.fact import Fact, decode
from arp.protocol.capabilities import hello_frame
from arp.protocol.components import AUTHOR, SOURCES
from arp.protocol.json_value import JsonObject
from arp.protocol.limits import Limits as WireLimits
from arp.turn.user_settings import UserSettings
from tests.hub.odd_objects import EXACT, ODD, Rude, odd
from tests.hub.rig import ALL, FEATURES, HeldStore, Renderer, running, settled
from tests.support.examples import examples
from tests.support.restoring import restore
from tests.support.waiting import becomes
from tests.turn.author_calls import MAKERS, Call, calls, classes_with_methods, holding

CALLS = calls()


class Chosen(Struct):
    """What users set for a session; `update_settings` is called with `changes` here."""

    changes: str = ""


MISTAKES = (TypeError, ValueError, ArpError, OSError, Rude)
"""What an author may get for an object that cannot be used, or a path where nothing is."""

BY_NAME = pytest.mark.parametrize("call", CALLS, ids=[call.told for call in CALLS])

Thrown = tuple[Call, dict[str, Any]]


async def done(turn: Turn, made: Any) -> None:
    """Does what an author does with what a call gives."""
    if hasattr(type(made), "__aenter__"):
        async with made:
            pass
    elif inspect.isawaitable(made):
        task = asyncio.ensure_future(made)
        await becomes(lambda: task.done() or turn._host.is_waiting)
        if not task.done():  # a question, which nobody answers
            task.cancel()
            await asyncio.wait([task])
        if not task.cancelled():
            task.result()


async def throw(turn: Turn, call: Call, given: dict[str, Any]) -> BaseException | None:
    """Makes a call as an author would, and gives what it raised."""
    async with holding(turn, call.of) as held:
        args, named = call.arguments(given)
        try:
            await done(turn, getattr(held, call.name)(*args, **named))
            await turn.say("")  # lets a commit go out
        except MISTAKES as error:
            return error
    return None


async def outcome(
    thrown: Callable[[], Sequence[Thrown]],
) -> tuple[list[BaseException | None], list[Fact]]:
    """Makes calls in one turn, asks what every session owes, and gives errors and facts."""
    raised: list[BaseException | None] = []
    store = HeldStore()

    async def agent(turn: Turn) -> None:
        if turn.text == "throw":
            turn.show(ui.text("x", id="there"))
            for call, arguments in thrown():
                raised.append(await throw(turn, call, arguments))
        await turn.say("fine")

    async with running(agent, store=store, user_settings=UserSettings(Chosen)) as hub:
        features = [*FEATURES, "overlays", "thinking", "tool-detail"]
        # Not every value of JSON goes into the other encodings; what does not must not get here.
        kinds = [*ALL, AUTHOR]
        others = [
            Renderer(hub, features=features, encoding=one, components=kinds)
            for one in ("msgpack", "cbor")
        ]
        for other in others:
            await hub.hello(other.viewer, other.hello, other.principal, other.workflow)
        renderer = await Renderer(hub, features=features, components=kinds).join()
        await renderer.say("throw")
        assert await renderer.ended("t1") == "completed"
        await renderer.say("next")
        assert await renderer.ended("t2") == "completed"
        await settled(hub)
        stored = hub.sessions["s"]
        live = stored.session
        await becomes(lambda: stored.stored == live.sequence)
        facts = [decode(body) for _, body in await store.read("s", 0, 100_000)]
        again = restore(live.head, facts, WireLimits())
        assert len(facts) == live.sequence
        assert again.screen.canonical() == live.screen.canonical()
        assert renderer.screen.canonical() == live.screen.canonical()
        assert renderer.screen.text("t2") == "fine"
        assert {one.box.closed for one in (renderer, *others)} == {None}
        assert {one.viewer.state for one in (renderer, *others)} == {"current"}
    return raised, facts


def told(facts: Sequence[Fact]) -> list[tuple[Any, ...]]:
    """Return what facts say, without the renderer's channel, the log's epoch and durations."""
    return [
        (
            fact.type,
            untimed(fact.payload),
            fact.task_id,
            fact.run_id,
            fact.artifact_id,
            fact.request_id,
        )
        for fact in facts
        if fact.type not in ("session.created", "channel.connected", "channel.disconnected")
    ]


TIMES = ("durationMs", "expiresAt")


def untimed(payload: JsonObject) -> JsonObject:
    """Return a payload without what differs between two runs of the same."""
    return {name: value for name, value in payload.items() if name not in TIMES}


def test_every_class_that_an_author_gets_in_hand_is_known_here() -> None:
    assert classes_with_methods() <= set(MAKERS)


@BY_NAME
def test_samples_are_taken(call: Call) -> None:
    """Else the other tests would see nothing but refusals."""
    raised, _ = asyncio.run(outcome(lambda: [(call, {})]))
    assert raised == [None] or call.told in REFUSED


REFUSED = {
    *("Turn.read_file", "Recorder.read", "ToolCall.fail"),
    "Turn.use",
}
"""There is no such file, no such tool; one whose work it is to raise."""


@pytest.mark.slow
@BY_NAME
def test_any_object_in_any_place_is_refused_or_shown_rightly(call: Call) -> None:
    """One odd argument at a time, all of them in one turn."""
    every = [{name: make} for name in call.parameters for make in ODD]

    def thrown() -> list[Thrown]:
        return [(call, {name: make() for name, make in one.items()}) for one in every]

    raised, _ = asyncio.run(outcome(thrown))
    assert len(raised) == len(every)


@pytest.mark.slow
@BY_NAME
def test_what_holds_a_plain_value_is_recorded_as_that_value(call: Call) -> None:
    """A subclass is taken exactly where the plain value is, and is not told from it."""

    def thrown(which: int) -> Callable[[], list[Thrown]]:
        return lambda: [
            (call, {name: pair[0]() if which == 0 else pair[1]})
            for name in call.parameters
            for pair in EXACT
        ]

    odd_raised, odd_facts = asyncio.run(outcome(thrown(0)))
    raised, facts = asyncio.run(outcome(thrown(1)))
    assert [type(one) for one in odd_raised] == [type(one) for one in raised]
    assert told(odd_facts) == told(facts)


@settings(max_examples=examples(60))
@given(st.data())
def test_any_objects_in_any_places_are_refused_or_shown_rightly(data: st.DataObject) -> None:
    """Several odd arguments at once, and lists and dicts of them, over several calls.

    The slow tests try each odd object alone, in each place.
    """
    chosen: list[tuple[Call, dict[str, Callable[[], Any]]]] = []
    for call in data.draw(st.lists(st.sampled_from(CALLS), min_size=1, max_size=6)):
        names = list(call.parameters)
        if names:
            places = data.draw(st.lists(st.sampled_from(names), unique=True, min_size=1))
            chosen.append((call, {name: data.draw(odd) for name in places}))

    def thrown() -> list[Thrown]:
        return [(call, {name: make() for name, make in made.items()}) for call, made in chosen]

    asyncio.run(outcome(thrown))


BUILDERS = [
    builder
    for name, builder in inspect.getmembers(ui, inspect.isfunction)
    if builder.__module__ == ui.__name__ and not name.startswith("_")
]


@pytest.mark.parametrize("builder", BUILDERS, ids=[one.__name__ for one in BUILDERS])
def test_what_a_builder_makes_of_any_object_can_be_shown(builder: Callable[..., Any]) -> None:
    """It is refused by the builder, or shown as it is."""
    made: list[Component] = []
    for name in inspect.signature(builder).parameters:
        for make in ODD:
            try:
                component = builder(**{**needed(builder), name: make()})
            except MISTAKES:
                continue
            if isinstance(component, Component):
                made.append(component)
    asyncio.run(shows(made))


def needed(builder: Callable[..., Any]) -> dict[str, Any]:
    """Gives samples for what a builder needs."""
    samples = {
        "component": ui.text("x"),
        "left": ui.text("x"),
        "right": ui.text("x"),
        "fallback": ui.text("x"),
        "children": [ui.text("x")],
        "tabs": [ui.tab("x", ui.text("x"))],
        "items": {"a": 1},
        "steps": [ui.step("x", "done")],
        "cards": [ui.card("x")],
        "fields": [ui.field("x")],
        "sources": [ui.source("x")],
        "datasets": [ui.dataset("x", [1])],
        "props": {"a": 1},
        "status": "done" if builder is ui.step else "info",
        "src": "https://example.org/x.png",
        "type": "x-a-b" if builder is ui.custom else "bar",
    }
    lists = ("labels", "options", "headers", "rows", "data")
    return {
        name: samples.get(name, ["x"] if name in lists else "x")
        for name, one in inspect.signature(builder).parameters.items()
        if one.default is one.empty
    }


async def shows(made: list[Component]) -> None:
    """Shows components one by one and asks what every session owes."""
    errors: list[BaseException] = []
    store = HeldStore()

    async def agent(turn: Turn) -> None:
        for component in made:
            try:
                turn.show(component)
                await turn.say("")
            except MISTAKES as error:
                errors.append(error)
        await turn.say("fine")

    async with running(agent, store=store) as hub:
        renderer = await Renderer(hub, components=[*ALL, AUTHOR, SOURCES, "x-a-b"]).join()
        await renderer.say("go")
        assert await renderer.ended("t1") == "completed"
        stored = hub.sessions["s"]
        live = stored.session
        await becomes(lambda: stored.stored == live.sequence)
        facts = [decode(body) for _, body in await store.read("s", 0, 100_000)]
        again = restore(live.head, facts, WireLimits())
        assert again.screen.canonical() == live.screen.canonical()
        assert renderer.screen.canonical() == live.screen.canonical()


@pytest.mark.parametrize("name", ["title", "description", "suggestions", "ledger"])
def test_an_app_made_of_any_object_can_be_listed(name: str) -> None:
    for make in ODD:
        try:
            app = App(**{name: make()})
            app.agent(speaks)
        except MISTAKES:
            continue
        lists(app)


@pytest.mark.parametrize("name", ["name", "description", "hint"])
def test_a_command_made_of_any_object_can_be_listed(name: str) -> None:
    for make in ODD:
        app = App()
        try:
            register: Any = app.agent
            register(make())(speaks)
            app.command(**{"name": "x", name: make()})(speaks)
        except MISTAKES:
            continue
        lists(app)


async def speaks(turn: Turn) -> None:
    await turn.say("fine")


def lists(app: App) -> None:
    """Makes what the server makes of an app."""
    hello_frame(WireLimits(), "json", app.commands(), takes_input=True)
    for workflow in app.workflows():
        for text in (workflow.name, workflow.title, workflow.description, *workflow.suggestions):
            assert type(text) is str
            text.encode()
