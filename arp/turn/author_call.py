"""Detection of calls that an author forgot to await or to enter.

A coroutine is true, so `if turn.confirm("Delete?"):` would delete without asking; an `AuthorCall`
raises instead. Python warns about a coroutine that was never awaited; this module adds the name of
the agent to that warning.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Coroutine, Generator
from contextlib import AbstractAsyncContextManager
from functools import wraps
from typing import Any, NoReturn, ParamSpec, TextIO, TypeVar

from arp.live.turn_name import CURRENT_TURN, TurnName

P = ParamSpec("P")
T = TypeVar("T")


class AuthorCall(Coroutine[Any, Any, T]):
    """Awaitable result of a call; using it as a truth value raises."""

    __slots__ = ("_coroutine", "_name")

    def __init__(self, coroutine: Coroutine[Any, Any, T], name: str) -> None:
        self._coroutine = coroutine
        self._name = name

    def __bool__(self) -> NoReturn:
        """Raise `TypeError`, because there is no result before the call is awaited."""
        # Closed, so that Python does not also warn that it was never awaited.
        self._coroutine.close()
        raise TypeError(
            f"{self._name}(…) was not awaited, so there is no answer yet; "
            f"write: await {self._name}(…)"
        )

    def __await__(self) -> Generator[Any, Any, T]:
        """Run the call and return its result."""
        return self._coroutine.__await__()

    def send(self, value: Any, /) -> Any:
        """Send a value into the coroutine."""
        return self._coroutine.send(value)

    def throw(self, *error: Any) -> Any:
        """Raise an exception in the coroutine."""
        return self._coroutine.throw(*error)

    def close(self) -> None:
        """Close the coroutine."""
        self._coroutine.close()


def must_await(
    name: str,
) -> Callable[[Callable[P, Coroutine[Any, Any, T]]], Callable[P, Coroutine[Any, Any, T]]]:
    """Mark a method that must be awaited; it returns an `AuthorCall`.

    Args:
        name: The call as authors write it.
    """

    def mark(method: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T]]:
        @wraps(method)
        def call(*args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, T]:
            return AuthorCall(method(*args, **kwargs), name)

        return call

    return mark


class AuthorBlock(AbstractAsyncContextManager[T]):
    """Result of a call that has to be entered: `async with turn.tool(…)`."""

    __slots__ = ("_block", "_entered", "_name", "_place", "_turn")

    def __init__(
        self, block: AbstractAsyncContextManager[T], name: str, place: tuple[str, int]
    ) -> None:
        self._block = block
        self._name = name
        self._place = place
        self._turn = CURRENT_TURN.get()
        self._entered = False

    async def __aenter__(self) -> T:
        """Enter the block."""
        self._entered = True
        return await self._block.__aenter__()

    async def __aexit__(self, *raised: Any) -> bool | None:
        """Leave the block."""
        return await self._block.__aexit__(*raised)

    def __enter__(self) -> NoReturn:
        """Raise `TypeError` with the correct syntax."""
        self._entered = True
        raise TypeError(f"write: async with {self._name}(…)")

    def __exit__(self, *raised: object) -> None:
        """Do nothing; `__enter__` always raises."""

    def __await__(self) -> NoReturn:
        """Raise `TypeError` with the correct syntax."""
        self.__enter__()

    def __del__(self) -> None:
        """Log that the block was never entered, so the call had no effect."""
        turn = self._turn
        if self._entered or turn is None:
            return
        path, number = self._place
        mistake = f"{turn.agent!r} called {self._name} and never entered it: {path}:{number}"
        _report(turn, mistake, f"Write: async with {self._name}(…):")


def must_enter(
    name: str,
) -> Callable[[Callable[P, AbstractAsyncContextManager[T]]], Callable[P, AuthorBlock[T]]]:
    """Mark a method that returns a block; a block that is never entered is logged.

    Args:
        name: The call as authors write it.
    """

    def mark(method: Callable[P, AbstractAsyncContextManager[T]]) -> Callable[P, AuthorBlock[T]]:
        @wraps(method)
        def call(*args: P.args, **kwargs: P.kwargs) -> AuthorBlock[T]:
            frame = sys._getframe(1)
            place = (frame.f_code.co_filename, frame.f_lineno)
            return AuthorBlock(method(*args, **kwargs), name, place)

        return call

    return mark


# -- coroutines that were never awaited ------------------------------------------------------------

_NEVER_AWAITED = r"coroutine '(?P<name>[^']+)' was never awaited"
_CREATED = re.compile(r'^  File "(?P<file>.+)", line (?P<line>\d+), in ', re.MULTILINE)

_ORIGIN_FRAMES = 2
"""Tracked frames: the creator of a coroutine and its caller, since `must_await` wraps it."""


def name_unawaited_calls(track: bool = False) -> None:
    """Log Python's warning of a coroutine that was never awaited, with the name of the agent.

    Args:
        track: Whether Python records where each coroutine of this thread is created, which costs
            time, and warns each time. Otherwise it warns once per line, and the line is unknown if
            the coroutine was kept in a variable.
    """
    global _show_others
    if warnings.showwarning is not _log_unawaited:
        _show_others, warnings.showwarning = warnings.showwarning, _log_unawaited
    if track:
        sys.set_coroutine_origin_tracking_depth(_ORIGIN_FRAMES)
        warnings.filterwarnings("always", _NEVER_AWAITED, RuntimeWarning)


_show_others = warnings.showwarning


def _log_unawaited(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Log the warning of an unawaited coroutine with its agent; pass other warnings on."""
    found = re.match(_NEVER_AWAITED, str(message)) if category is RuntimeWarning else None
    turn = CURRENT_TURN.get()
    if found is None or turn is None:
        _show_others(message, category, filename, lineno, file, line)
        return
    from arp.live.loop_watch import is_authors  # loads asyncio, which a server has loaded

    mistake = f"{turn.agent!r} called {found['name']} and never awaited it"
    created = [(one["file"], int(one["line"])) for one in _CREATED.finditer(str(message))]
    for path, number in [*reversed(created), (filename, lineno)]:
        if is_authors(path):
            mistake = f"{mistake}: {path}:{number}"
            break
    _report(turn, mistake, "Write await in front of the call.")


def _report(turn: TurnName, mistake: str, advice: str) -> None:
    """Log a mistake of an agent, once per turn, and show it to those who may see details."""
    if not turn.is_new(mistake):
        return
    import logging  # only mistakes need it, and every agent's file imports this module

    logger = logging.getLogger(__name__)
    logger.warning("agent %s (turn %s of session %r)", mistake, turn.turn_id, turn.session_id)
    turn.show_details(f"agent {mistake}", advice)
