"""What may be an agent: looked at where it is written, before anybody asks it anything."""

from __future__ import annotations

import inspect


def check_handler(name: str, handler: object) -> None:
    """Refuse what is no agent, as far as that can be seen without calling it.

    A function that a decorator has wrapped passes if what it wraps is a coroutine function.

    Raises:
        TypeError: It says what was given, and what to write.
    """
    _check_kind(name, handler)
    assert callable(handler)
    try:
        takes = inspect.signature(handler)
    except ValueError:  # it tells none
        return
    try:
        takes.bind(object())
    except TypeError:
        what = f"takes {takes}, but is given the turn alone"
        raise TypeError(f"agent {name!r} {what}; write: async def {name}(turn)") from None


def _check_kind(name: str, handler: object) -> None:
    call: object = handler
    if not inspect.isroutine(handler) and callable(handler):
        call = type(handler).__call__
    wrapped = inspect.unwrap(call) if callable(call) else call
    if any(map(inspect.iscoroutinefunction, (handler, call, wrapped))):
        return
    if inspect.isasyncgenfunction(call):
        what = "an async generator; say what it yields: await turn.say(…)"
    elif callable(handler):
        what = f"a plain function; write: async def {name}(turn)"
    else:
        what = f"no function, but {type(handler).__name__}"
    raise TypeError(f"agent {name!r} is {what}")
