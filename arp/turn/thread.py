"""Functions of authors that are no `async def`: each runs in a thread, and the loop works for it.

Theory of operation. A turn belongs to the loop, so its calls are carried out there: the thread puts
a call into a queue and waits, and the task of the turn, which has nothing else to do meanwhile,
carries out one after the other. So the calls run in the same task and the same context as those of
an `async def`, whichever thread they come from. A cancel is raised in the thread as
`CancelledError` by the call that waits, or by the next one, once: afterwards the function may clean
up. A function that calls nothing cannot be stopped; its turn is ended without it.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import queue
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

from msgspec import Struct

from arp.turn.pending_changes import CALLED_FROM, call_place

T = TypeVar("T")

_IN_LOOP = ("arp.turn.turn", "arp.turn.tool", "arp.turn.open_question", "arp.record.")
"""Where the classes are defined whose methods only the loop may call."""


class _Call:
    """Something that the loop is to do for a thread."""

    __slots__ = ("function", "outcome", "place")

    def __init__(self, function: Callable[[], Any]) -> None:
        self.function = function
        self.place = call_place()
        self.outcome: Future[Any] = Future()

    async def carry_out(self) -> None:
        """Do it; what it raises is raised in the thread."""
        CALLED_FROM.set(self.place)
        try:
            result = self.function()
            if isinstance(result, Coroutine):
                result = await result
        except BaseException as error:
            self.outcome.set_exception(error)
            if isinstance(error, asyncio.CancelledError):
                raise
        else:
            self.outcome.set_result(result)


class TurnThread:
    """A thread that runs a function of an author's, and the loop that works for it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._calls: queue.SimpleQueue[_Call] = queue.SimpleQueue()
        self._came = asyncio.Event()
        self._is_cancelled = False
        """A cancel has come that no call has raised yet."""
        self._is_over = False
        self._lock = threading.Lock()

    async def run(self, function: Callable[[], Any]) -> Any:
        """Run a function in a thread, and return or raise what it does."""
        ended: Future[Any] = Future()
        context = contextvars.copy_context()

        def work() -> None:
            try:
                ended.set_result(context.run(function))
            except BaseException as error:  # noqa: BLE001 - it is raised in the loop
                ended.set_exception(error)
            self._wake()

        # One for each turn: one of a pool would be missing to others while somebody is asked.
        threading.Thread(target=work, name=self._name, daemon=True).start()
        was_cancelled = False
        try:
            while not ended.done():
                try:
                    await self._carry_out()
                except asyncio.CancelledError:
                    if was_cancelled:
                        raise  # for the second time: nobody waits any more
                    was_cancelled = True
        finally:
            self._finish()
        if was_cancelled:
            ended.exception()
            raise asyncio.CancelledError
        return ended.result()

    async def _carry_out(self) -> None:
        """Carry out what has come, and wait for more."""
        while not self._calls.empty():
            await self._calls.get_nowait().carry_out()
        self._came.clear()
        if self._calls.empty():
            try:
                await self._came.wait()
            except asyncio.CancelledError:
                self._is_cancelled = True
                raise

    def _finish(self) -> None:
        """Let no call wait for ever."""
        with self._lock:
            self._is_over = True
        while not self._calls.empty():
            self._calls.get_nowait().outcome.set_exception(asyncio.CancelledError())

    def _wake(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._came.set)
        except RuntimeError:  # the loop is closed: the process ends
            self._finish()

    def call(self, function: Callable[[], Any]) -> Any:
        """Let the loop do something, and return or raise what it does.

        Raises:
            CancelledError: The turn was cancelled, or is over.
            RuntimeError: It is called in the loop, which would wait for itself.
        """
        if threading.get_ident() == self._loop_thread:
            raise RuntimeError("this turn is for threads; in async code take an async def agent")
        call = _Call(function)
        with self._lock:
            if self._is_over or self._is_cancelled:
                self._is_cancelled = False
                raise asyncio.CancelledError
            self._calls.put(call)
        self._wake()
        return call.outcome.result()


class InLoop(Generic[T]):
    """An object whose methods are carried out in the loop: `tool.progress(…)`, without `await`.

    It is a context manager where the object is one, also an `async with`.
    """

    __slots__ = ("_entered", "_of", "_thread")

    def __init__(self, of: T, thread: TurnThread) -> None:
        self._of = of
        self._thread = thread

    def __getattr__(self, name: str) -> Any:
        """Return an attribute; a method is carried out in the loop."""
        if name.startswith("_"):
            raise AttributeError(f"{type(self._of).__name__!r} object has no attribute {name!r}")
        found = self._thread.call(lambda: getattr(self._of, name))
        return self._method(found) if inspect.ismethod(found) else self._own(found)

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Call the object in the loop, as `turn.record(…)`."""
        return self._method(self._of)(*args, **named)

    def __repr__(self) -> str:
        return f"InLoop({self._of!r})"

    def __enter__(self) -> Any:
        """Enter the object's context in the loop."""
        is_async = hasattr(type(self._of), "__aenter__")
        return self._method(getattr(self._of, "__aenter__" if is_async else "__enter__"))()

    def __exit__(self, *raised: Any) -> Any:
        """Leave it in the loop."""
        is_async = hasattr(type(self._of), "__aexit__")
        return self._method(getattr(self._of, "__aexit__" if is_async else "__exit__"))(*raised)

    def _method(self, function: Any) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            return self._own(self._thread.call(lambda: function(*args, **named)))

        return call

    def _own(self, value: Any) -> Any:
        """Return a value for the thread: what only the loop may touch is an `InLoop`."""
        kind = type(value)
        lives_there = kind.__module__.startswith(_IN_LOOP) or hasattr(kind, "__aenter__")
        if lives_there and not isinstance(value, Struct | BaseException | str | int | tuple):
            return InLoop(value, self._thread)
        return value


def is_plain(function: Any) -> bool:
    """Return whether a function is no `async def`, so that it runs in a thread."""
    call = function
    if not inspect.isroutine(function) and callable(function):
        call = type(function).__call__
    return not any(map(inspect.iscoroutinefunction, (function, call, inspect.unwrap(call))))


async def call_in_thread(name: str, function: Callable[..., Any], of: Any, *args: Any) -> Any:
    """Run a plain function in a thread, and return what it does.

    Args:
        name: Of the thread.
        function: Gets `of` as an `InLoop`, and the arguments.
        of: What it works with.
        args: What it is called with besides.
    """
    thread = TurnThread(name)
    made = await thread.run(lambda: function(InLoop(of, thread), *args))
    return await made if inspect.isawaitable(made) else made
