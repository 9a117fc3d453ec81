"""`App`: what may be an agent, and what is refused where it is written."""

from __future__ import annotations

import functools
import re
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from arp import App, SyncTurn, Turn
from arp.protocol.messages import Workflow
from arp.surface.schema_form import NoForm


async def works(turn: Turn) -> None:
    """Says something."""
    await turn.say("hi")


def traced(function: Callable[..., Any]) -> Any:
    """A decorator that gives a plain function, as many do."""

    @functools.wraps(function)
    def call(*args: Any) -> Any:
        return function(*args)

    return call


class Worker:
    """An agent that is an object."""

    async def __call__(self, turn: Turn) -> None:
        await turn.say("hi")

    async def method(self, turn: Turn) -> None:
        await turn.say("hi")


@pytest.mark.parametrize(
    ("handler", "name"),
    [
        (works, "works"),
        (traced(works), "works"),
        (Worker(), "Worker"),
        (Worker().method, "method"),
        (functools.partial(works), "partial"),
    ],
)
def test_coroutine_function_of_any_kind_is_an_agent(handler: Any, name: str) -> None:
    """Functions, methods, objects, and what decorators make of them."""
    app = App()
    assert app.agent(handler) is handler
    assert app.handlers == {name: handler}


def plain(turn: SyncTurn) -> None:
    """Runs in a thread."""


def yields(turn: Turn) -> Iterator[str]:
    """Yields what it should say."""
    yield "hi"


async def generator(turn: Turn) -> AsyncIterator[str]:
    """Yields what it should say."""
    yield "hi"


@pytest.mark.parametrize(
    ("handler", "says"),
    [
        (yields, "agent 'yields' is a generator; say what it yields: await turn.say"),
        (generator, "agent 'generator' is an async generator; say what it yields: await turn.say"),
        (Worker, "agent 'Worker' is a class; give an object of it: app.agent(Worker())"),
    ],
)
def test_what_is_no_coroutine_function_is_refused_where_it_is_written(
    handler: Any, says: str
) -> None:
    """Not first when somebody asks something."""
    app = App()
    with pytest.raises(TypeError, match=re.escape(says)):
        app.agent(handler)
    assert app.handlers == {}


async def takes_nothing() -> None:
    """An agent of somebody who forgot the turn."""


async def takes_two(turn: Turn, model: str) -> None:
    """One that wants more than there is."""


@pytest.mark.parametrize(
    ("handler", "takes"), [(takes_nothing, "()"), (takes_two, "(turn: 'Turn', model: 'str')")]
)
def test_function_that_cannot_be_called_with_a_turn_is_refused_where_it_is_written(
    handler: Any, takes: str
) -> None:
    """Else each turn would fail."""
    app = App()
    name = handler.__name__
    says = f"agent {name!r} takes {takes}"
    with pytest.raises(TypeError, match=re.escape(says)):
        app.agent(handler)
    with pytest.raises(TypeError, match="but is given the turn alone"):
        app.command(name.replace("_", "-"))(handler)
    assert (app.handlers, app.commands()) == ({}, ())


async def more_than_it_needs(turn: Turn, model: str = "small", *more: Any, **named: Any) -> None:
    """An agent with defaults."""


def test_function_that_takes_more_by_default_is_an_agent() -> None:
    app = App()
    app.agent(more_than_it_needs)
    assert list(app.handlers) == ["more_than_it_needs"]


async def sells(turn: Turn) -> None:
    """Knows cars.

    And more.
    """


def test_one_agent_is_called_as_the_app_and_several_by_what_is_said_of_each() -> None:
    app = App("Shop", description="Sells things.", suggestions=["hello"])
    app.agent("cars")(sells)
    assert app.workflows() == [Workflow("cars", "Shop", "Sells things.", ("hello",))]
    app.agent("boats", title="Boats", description="Knows boats.", suggestions=["sail"])(sells)
    assert app.workflows() == [
        Workflow("cars", "cars", "Knows cars.", ("hello",)),
        Workflow("boats", "Boats", "Knows boats.", ("sail",)),
    ]
    assert app.served().about().title == "Shop"


def test_suggestions_of_an_agent_are_a_list() -> None:
    app = App()
    with pytest.raises(TypeError, match="suggestions: expected a list of str, got 'one'"):
        app.agent("cars", suggestions="one")
    assert app.handlers == {}


def test_decorator_may_be_called_without_a_name() -> None:
    """`@app.agent()`, as other frameworks have it."""
    app = App()
    app.agent()(works)
    assert app.handlers == {"works": works}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"suggestions": "Compare"}, "suggestions: expected a list of str, got 'Compare'"),
        ({"suggestions": [3]}, "expected str, got int"),
        ({"title": None}, "expected str, got NoneType"),
    ],
)
def test_what_lists_could_not_show_is_refused_where_it_is_written(
    given: dict[str, Any], says: str
) -> None:
    with pytest.raises(TypeError, match=re.escape(says)):
        App(**given)


def test_value_that_is_no_function_is_refused_under_a_name_too() -> None:
    """`@app.agent("name")`."""
    wrong: Any = 5
    with pytest.raises(TypeError, match="agent 'five' is no function, but int"):
        App().agent("five")(wrong)


def waits_nowhere(turn: Turn) -> None:
    """A plain function that takes a turn whose calls have to be awaited."""


def test_type_checkers_refuse_a_plain_function_with_a_turn_for_the_loop() -> None:
    """mypy reads this file: an ignore that is not needed would be an error there."""
    app = App()
    app.agent(waits_nowhere)  # type: ignore[type-var]
    app.agent(plain)
    assert list(app.handlers) == ["waits_nowhere", "plain"]


# -- answers ---------------------------------------------------------------------------------------


async def takes_an_answer(turn: Turn, answer: str) -> None:
    """What `on_answer` wants."""


@pytest.mark.parametrize(
    ("handler", "says"),
    [
        (takes_nothing, "but is given (turn, answer); write: async def trip(turn, answer)"),
        (plain, "but is given (turn, answer); write: async def trip(turn, answer)"),
    ],
)
def test_what_cannot_take_an_answer_is_refused_where_it_is_written(handler: Any, says: str) -> None:
    app = App()
    with pytest.raises(TypeError, match=re.escape(says)):
        app.on_answer("trip")(handler)
    assert dict(app.served().answer_handlers) == {}


def test_name_of_a_question_has_one_function() -> None:
    app = App()
    assert app.on_answer("trip")(takes_an_answer) is takes_an_answer
    assert list(app.served().answer_handlers) == ["trip"]
    with pytest.raises(ValueError, match="on_answer 'trip': give this one another name"):
        app.on_answer("trip")
    with pytest.raises(ValueError, match="on_answer '': take a name"):
        app.on_answer("")


def test_type_of_an_answer_has_a_form() -> None:
    with pytest.raises(NoForm):
        App().on_answer("odd", dict)


def test_attributes_of_an_app_may_be_set_before_it_is_served() -> None:
    app = App()
    app.title, app.suggestions, app.ledger = "Cars", ("Compare",), "sqlite:cars.db"
    app.agent(works)
    served = app.served()
    assert (served.title, served.ledger) == ("Cars", "sqlite:cars.db")
    assert served.workflows()[0].suggestions == ("Compare",)


def test_class_of_an_author_may_have_attributes_of_its_own() -> None:
    """Nothing of it is passed over in silence: its own code reads them."""

    class Garage(App):
        def __init__(self) -> None:
            super().__init__("Garage")
            self.cars = ["red"]

    assert Garage().cars == ["red"]
