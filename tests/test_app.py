"""`App`: what may be an agent, and what is refused where it is written."""

from __future__ import annotations

import functools
import re
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from arp import App, Turn


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


def plain(turn: Turn) -> None:
    """Not async."""


async def generator(turn: Turn) -> AsyncIterator[str]:
    """Yields what it should say."""
    yield "hi"


@pytest.mark.parametrize(
    ("handler", "says"),
    [
        (plain, "agent 'plain' is a plain function; write: async def plain(turn)"),
        (traced(plain), "agent 'plain' is a plain function; write: async def plain(turn)"),
        (generator, "agent 'generator' is an async generator; say what it yields: await turn.say"),
        (Worker, "agent 'Worker' is a plain function"),
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


def test_value_that_is_no_function_is_refused_under_a_name_too() -> None:
    """`@app.agent("name")`."""
    wrong: Any = 5
    with pytest.raises(TypeError, match="agent 'five' is no function, but int"):
        App().agent("five")(wrong)


def test_type_checkers_refuse_a_plain_function() -> None:
    """mypy reads this file: an ignore that is not needed would be an error there."""
    app = App()
    with pytest.raises(TypeError):
        app.agent(plain)  # type: ignore[arg-type]
