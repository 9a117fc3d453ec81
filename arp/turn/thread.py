"""Threads for plain functions of authors; their calls to a turn run in the event loop.

Theory of operation. A turn belongs to the event loop, so its methods must run there. The thread
puts a call into a queue and waits. The task of the turn, which is idle meanwhile, runs the calls
one after another. So they run in the same task and context as those of an async agent, whichever
thread they come from. A cancel is raised in the thread as `CancelledError`, once, by the waiting
call or the next one; after that the function may clean up. A function that makes no calls cannot
be stopped; its turn is ended without it.
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
"""Modules with classes that may be used in the event loop only."""


class _Call:
    """Call that the loop runs for a thread."""

    __slots__ = ("function", "outcome", "place")

    def __init__(self, function: Callable[[], Any]) -> None:
        self.function = function
        self.place = call_place()
        self.outcome: Future[Any] = Future()

    async def carry_out(self) -> None:
        """Run the call; set its result, or its exception, for the thread."""
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
    """Thread that runs an author's function, with the loop that runs its calls."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._calls: queue.SimpleQueue[_Call] = queue.SimpleQueue()
        self._has_call = asyncio.Event()
        self._is_cancelled = False
        """Whether a cancel arrived that no call has raised yet."""
        self._is_over = False
        self._lock = threading.Lock()

    async def run(self, function: Callable[[], Any]) -> Any:
        """Run a function in a thread; return its result or raise its exception."""
        ended: Future[Any] = Future()
        context = contextvars.copy_context()

        def work() -> None:
            try:
                ended.set_result(context.run(function))
            except BaseException as error:  # noqa: BLE001 - it is raised in the loop
                ended.set_exception(error)
            self._wake()

        # A thread per turn: a pool would run out of threads while functions wait for users.
        threading.Thread(target=work, name=self._name, daemon=True).start()
        was_cancelled = False
        try:
            while not ended.done():
                try:
                    await self._carry_out()
                except asyncio.CancelledError:
                    if was_cancelled:
                        # The second cancel ends the wait for a function that makes no calls.
                        raise
                    was_cancelled = True
        finally:
            self._finish()
        if was_cancelled:
            # Retrieved, so that asyncio does not log it.
            ended.exception()
            raise asyncio.CancelledError
        return ended.result()

    async def _carry_out(self) -> None:
        """Run the queued calls, then wait for more."""
        while not self._calls.empty():
            await self._calls.get_nowait().carry_out()
        self._has_call.clear()
        # A call that arrived before `clear` would not wake this task any more.
        if self._calls.empty():
            try:
                await self._has_call.wait()
            except asyncio.CancelledError:
                self._is_cancelled = True
                raise

    def _finish(self) -> None:
        """Cancel the remaining calls, so that none waits for ever."""
        with self._lock:
            self._is_over = True
        while not self._calls.empty():
            self._calls.get_nowait().outcome.set_exception(asyncio.CancelledError())

    def _wake(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._has_call.set)
        except RuntimeError:
            # The loop is closed and the process ends. No call will be run any more.
            self._finish()

    def call(self, function: Callable[[], Any]) -> Any:
        """Run a function in the loop; return its result or raise its exception.

        Raises:
            CancelledError: The turn was cancelled or is over.
            RuntimeError: The caller runs in the loop, which would wait for itself.
        """
        if threading.get_ident() == self._loop_thread:
            raise RuntimeError("this turn is for threads; in async code use an async def agent")
        call = _Call(function)
        with self._lock:
            if self._is_over or self._is_cancelled:
                self._is_cancelled = False
                raise asyncio.CancelledError
            self._calls.put(call)
        self._wake()
        return call.outcome.result()


class LoopProxy(Generic[T]):
    """Proxy for use in a thread: calls an object of the event loop without `await`.

    The object's methods run in the loop, and the thread waits for their results. An object that
    needs `with` or `async with` is entered with `with`.
    """

    __slots__ = ("_entered", "_object", "_thread")

    def __init__(self, of: T, thread: TurnThread) -> None:
        self._object = of
        self._thread = thread

    def __getattr__(self, name: str) -> Any:
        """Return an attribute; a method runs in the loop."""
        if name.startswith("_"):
            raise AttributeError(
                f"{type(self._object).__name__!r} object has no attribute {name!r}"
            )
        found = self._thread.call(lambda: getattr(self._object, name))
        return self._method(found) if inspect.ismethod(found) else self._wrap(found)

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Call the object in the loop, like `turn.record(…)`."""
        return self._method(self._object)(*args, **named)

    def __repr__(self) -> str:
        return f"LoopProxy({self._object!r})"

    def __enter__(self) -> Any:
        """Enter the object's context in the loop."""
        is_async = hasattr(type(self._object), "__aenter__")
        return self._method(getattr(self._object, "__aenter__" if is_async else "__enter__"))()

    def __exit__(self, *raised: Any) -> Any:
        """Leave the object's context in the loop."""
        is_async = hasattr(type(self._object), "__aexit__")
        return self._method(getattr(self._object, "__aexit__" if is_async else "__exit__"))(*raised)

    def _method(self, function: Any) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            return self._wrap(self._thread.call(lambda: function(*args, **named)))

        return call

    def _wrap(self, value: Any) -> Any:
        """Return a value for the thread: as a proxy if only the loop may use it."""
        kind = type(value)
        lives_there = kind.__module__.startswith(_IN_LOOP) or hasattr(kind, "__aenter__")
        if lives_there and not isinstance(value, Struct | BaseException | str | int | tuple):
            return LoopProxy(value, self._thread)
        return value


def is_plain(function: Any) -> bool:
    """Return whether a function is not async, so that it runs in a thread."""
    call = function
    if not inspect.isroutine(function) and callable(function):
        call = type(function).__call__
    return not any(map(inspect.iscoroutinefunction, (function, call, inspect.unwrap(call))))


async def call_in_thread(name: str, function: Callable[..., Any], of: Any, *args: Any) -> Any:
    """Run a plain function in a thread and return its result.

    Args:
        name: Name of the thread.
        function: The function; its first argument is the proxy of `of`.
        of: Object that the function works with.
        args: Further arguments of the function.
    """
    thread = TurnThread(name)
    made = await thread.run(lambda: function(LoopProxy(of, thread), *args))
    return await made if inspect.isawaitable(made) else made
