"""One use of a tool, as its author sees it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Literal, NoReturn, Protocol

import msgspec
from msgspec import Struct

from arp.hub.author_call import must_await
from arp.hub.turn_host import TurnHost
from arp.protocol.components import Component
from arp.protocol.errors import AgentFailed, ArpError, SurfaceDestroyed
from arp.protocol.json_value import Json, JsonObject
from arp.record.wording import PREVIEW_CHARACTERS, encoded, well_formed
from arp.session.session import ToolUse
from arp.session.session_settings import Grant

ABANDONED = "stopped before it ended"
"""Of a call in a generator that nobody goes on with; one that its turn leaves open has another."""

MAX_COUNT = 2**53 - 1
"""Of `done` and `total`: what every renderer can count, in JavaScript too."""


class ToolSpec(Struct, frozen=True):
    """What whoever calls a tool has to know of it."""

    name: str
    description: str = ""
    """One sentence or more, for models and for people."""
    schema: JsonObject = {}
    """JSON Schema of its arguments; empty: any object."""


class ToolProvider(Protocol):
    """Where the tools of an app come from, which agents call by name: `App(tools=provider)`."""

    def tools(self) -> Sequence[ToolSpec]:
        """Return the tools that can be called now."""

    async def call(self, tool: ToolCall, args: JsonObject, /) -> Json:
        """Carry out a call, and return its result.

        Args:
            tool: The call, which is shown already: `tool.name` says which tool it is. It takes
                progress, asks for permission, and records what the tool does.
            args: What the agent gave. The provider checks that they fit the tool's schema.

        Raises:
            ToolFailed: It could not be done; the message is shown to everyone.
        """


class ToolFailed(AgentFailed):
    """A tool could not do what it was asked; the message is shown to everyone.

    An agent that lets it through ends its turn with the same message.
    """


class ToolCall:
    """A tool that runs; `async with turn.tool(name, args) as call` gives one, and `start_tool`.

    A call ends once: at the end of the `async with`, or by `done` or `failed`. One that is open
    when its turn ends is shown as failed then.
    """

    def __init__(self, host: TurnHost, name: str, runtime_id: str | None = None) -> None:
        self.name = name
        self.denial = ""
        """Why somebody said no, if they told."""
        self.call_id = f"{host.turn_id}.{host.next_tool()}"
        self._ids = {"step_id": self.call_id, "tool_call_id": self.call_id}
        self.record = host.recorder().within(**self._ids)
        """Records what the tool does; every fact carries the ids of this call."""
        self._host = host
        self._session = host.session
        self._result: JsonObject = {}
        self._whole: str | None = None
        self._output_ref: str | None = None
        """Where the whole result is kept, if it is longer than a preview."""
        self._began = time.monotonic()
        self._state: Literal["open", "ending", "over"] = "open"
        self._runtime_id = runtime_id
        """What a runtime outside calls this call; `None`: there is none."""

    def progress(
        self, text: str = "", *, done: int | None = None, total: int | None = None
    ) -> None:
        """Show how far the tool is; the newest replaces the one before.

        Args:
            text: What it is doing.
            done: How much is done, in the unit of `total`.
            total: How much there is to do.

        Raises:
            RuntimeError: The call has ended.
            SurfaceDestroyed: The turn is over.
            TypeError: `done` or `total` is no whole number.
            ValueError: One of them is below 0 or above `MAX_COUNT`, or `done` is more than `total`.
        """
        self._check_open()
        payload: JsonObject = {"text": well_formed(text)}
        if done is not None:
            payload["done"] = _count(done, "done")
        if total is not None:
            payload["total"] = _count(total, "total")
        if done is not None and total is not None and done > total:
            raise ValueError(f"done: {done} is more than the total of {total}")
        self._record("tool.progress", payload)
        self._host.changed()

    def result(self, value: Json) -> None:
        """Show what came of it: a preview, and where the whole is kept if it is longer.

        Args:
            value: Anything that can be written as JSON; what cannot is recorded by its `repr`.
        """
        try:
            text = value if isinstance(value, str) else encoded(value).decode()
        except (TypeError, ValueError):
            text = _repr(value)
        self._whole = well_formed(text)

    @must_await("tool.approve")
    async def approve(
        self, title: str, *, rule: str, reason: str | None = None, **props: Json
    ) -> bool:
        """Ask a person whether the tool may go on, and record who wanted that and what came of it.

        Args:
            title: What is asked.
            rule: The rule that wants a person asked.
            reason: Why permission is needed, for the ledger.
            props: Of the `confirm` that asks.

        Returns:
            Whether it may. Without an answer it may not. Who says yes may allow it for the whole
            session: then the same rule asks nobody for the same tool any more. Who says no may
            tell why: `denial`.

        Cancel: Safe; what nobody answered is no approval.
        """
        rule = well_formed(rule)
        permission, self.denial = self.record.permission(self.name), ""
        if Grant(self.name, rule) in self._session.settings.grants:
            permission.evaluated("allow", "person", "user")
            return True
        permission.evaluated("ask", "rule", rule)
        permission.requested(reason)
        request = {"request_id": permission.request_id} if permission.request_id else {}
        about = ToolUse(self.name, self._ids | request, rule)
        try:
            allowed = await self._host.ask(
                Component("", "confirm", {"title": title, **props}), about
            )
        except BaseException:
            with suppress(SurfaceDestroyed):
                permission.unanswered("cancelled")
            raise
        if allowed is True:
            permission.allowed()
        else:
            permission.denied("person", "user")
            self.denial = self._why_not()
        return allowed is True

    def _why_not(self) -> str:
        """Return what was said with the newest no to a question of this call."""
        turn = self._session.screen.turns[self._host.turn_id]
        asked = [name for name, one in turn.permissions.items() if one.call_id == self.call_id]
        for echo in reversed(turn.inputs):
            if echo.source_component in asked:
                payload = echo.data.get("payload")
                reason = payload.get("reason") if isinstance(payload, dict) else None
                return reason if isinstance(reason, str) else ""
        return ""

    async def _settle(self) -> None:
        """Keep a large result beside the ledger. Safe to cancel: the result is lost then."""
        if self._whole is None:
            return
        whole, self._whole = self._whole, None
        if len(whole) <= PREVIEW_CHARACTERS:
            self._result = {"preview": whole, "characters": len(whole)}
            return
        kept = await self.record.keep(whole)
        self._result = {"preview": kept.preview, "characters": len(whole)}
        self._output_ref = kept.output_ref

    @must_await("call.done")
    async def done(self, result: Json = None) -> None:
        """Show that the tool is done: for a call of `start_tool`.

        Args:
            result: What came of it, as `result` takes it; `None`: nothing more than that says.

        Raises:
            ArpError: A change before it is refused; the tool is shown as failed by that.
            RuntimeError: The call has ended.
            SurfaceDestroyed: The turn is over.

        Cancel: Safe; a large result may be lost, and the tool is shown as failed then.
        """
        self._check_open()
        if result is not None:
            self.result(result)
        with self._ending():
            await self._finish()

    def failed(self, error: str) -> None:
        """Show that the tool failed, and why: for a call of `start_tool`. The agent goes on.

        Args:
            error: What went wrong, for those who watch.

        Raises:
            RuntimeError: The call has ended.
            SurfaceDestroyed: The turn is over.
        """
        self._check_open()
        self._end(error)

    def fail(self, message: str) -> NoReturn:
        """End the tool of an `async with` as failed, and show why.

        Args:
            message: What went wrong, for those who watch.

        Raises:
            ToolFailed: Always, with the message; catch it around the `async with` to go on.
        """
        raise ToolFailed(well_formed(message))

    def _check_open(self) -> None:
        """Raise `RuntimeError` if the call has ended, `SurfaceDestroyed` if its turn has."""
        if self._state != "open":
            raise RuntimeError(f"tool {self.name!r:.60}: the call {self.call_id} has ended already")
        self._host.check_running()

    def _start(self, args: Json) -> None:
        self._host.settle()
        self._host.check_running()
        known = None if self._runtime_id is None else {"runtimeCallId": self._runtime_id}
        self._record("tool.started", {"tool": self.name}, correlation=known)
        self._record("tool.args", {"tool": self.name, "args": _as_json(args)})
        self._host.changed()

    @contextmanager
    def _ending(self) -> Iterator[None]:
        """End the call by what happens inside: as done, or as failed by what is raised."""
        error: str | None = None
        try:
            yield
        except asyncio.CancelledError:
            error = "cancelled"
            raise
        except GeneratorExit:
            # Nobody goes on with the generator that the call is in: no failure of the tool's own.
            error = ABANDONED
            raise
        except ArpError as failed:
            error = failed.message
            raise
        except BaseException as failed:
            error = type(failed).__name__
            raise
        finally:
            if self._state != "over" and self._session.running == self._host.turn_id:
                self._end(error)

    async def _finish(self) -> None:
        """Store the result and commit what is pending; raise what was refused."""
        self._state = "ending"
        await self._settle()
        self._host.settle()

    def _end(self, error: str | None) -> None:
        self._state = "over"
        took = {"durationMs": round((time.monotonic() - self._began) * 1000)}
        ref = None if error is not None else self._output_ref
        if error is not None:
            failure = {"tool": self.name, "error": well_formed(error)}
            self._record("tool.failed", {**failure, **took})
        else:
            result = {"tool": self.name, **self._result, **took}
            self._record("tool.result", result, output_ref=ref)
        if ref is not None:  # as when the session is made again from its facts
            self._session.input_log.remember_files([ref])
        self._host.changed()

    def _record(self, type_name: str, payload: JsonObject, **ids: Json) -> None:
        self._host.flush_text()
        named = {**self._ids, **{name: value for name, value in ids.items() if value is not None}}
        self._session.in_turn(type_name, self._host.turn_id, payload, **named)


def started_tool(host: TurnHost, name: str, args: Json, runtime_id: str | None) -> ToolCall:
    """Show that a tool runs; who called it says how it ends."""
    call = ToolCall(host, name, runtime_id)
    call._start(args)
    return call


@asynccontextmanager
async def running_tool(host: TurnHost, name: str, args: Json) -> AsyncIterator[ToolCall]:
    """Show that a tool runs, and how it ended: a tool that is seen to begin is seen to end."""
    call = started_tool(host, name, args, None)
    with call._ending():
        with host.services.spans.of_tool(host.session, host.turn_id, call.call_id):
            yield call
        if call._state != "over":
            await call._finish()


def _as_json(args: Json) -> str:
    """Return arguments as JSON; a string that is JSON already stays as it is."""
    if isinstance(args, str) and _is_json(text := well_formed(args)):
        return text
    try:
        return encoded(args).decode()
    except (TypeError, ValueError):
        return encoded(_repr(args)).decode()


def _repr(value: object) -> str:
    """Return the `repr` of a value; of one that has none, its type."""
    try:
        return well_formed(repr(value))
    except Exception:  # noqa: BLE001 - it is the code of whoever wrote the type
        return f"<{type(value).__name__}>"


def _count(number: int, name: str) -> int:
    """Return a count as a plain `int`."""
    if isinstance(number, bool) or not isinstance(number, int):
        raise TypeError(f"{name}: expected a whole number, got {type(number).__name__}")
    if not 0 <= number <= MAX_COUNT:
        raise ValueError(f"{name}: expected a number from 0 to {MAX_COUNT}")
    return int(number)


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return False
    return True
