"""Tool calls of a turn, and the providers of tools.

Theory of operation. A call is open until it ends once, by `tool.result` or `tool.failed`; every
fact of it carries its ids. The block of `running_tool` begins when `tool.started` is durable;
`started_tool` does not wait. A person approves a call by `ask_permission` (`arp/turn/approval`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Literal, NamedTuple, NoReturn, Protocol, TypeVar, Unpack

import msgspec
from msgspec import Struct

from arp.protocol.blob_path import blob_path
from arp.protocol.components import Component
from arp.protocol.errors import AgentFailed, ArpError
from arp.protocol.json_value import Json, JsonObject
from arp.record.wording import (
    PREVIEW_CHARACTERS,
    encoded,
    json_text,
    refuse_unknown,
    repr_text,
    well_formed,
)
from arp.surface.change import RenderChange
from arp.turn.approval.approval import Approval, PermissionOptions
from arp.turn.approval.approver import Approver
from arp.turn.author_call import must_await
from arp.turn.author_values import plain_object, text_of
from arp.turn.foreign_components import fitting_component
from arp.turn.host import TurnHost
from arp.turn.open_question import OpenQuestion
from arp.turn.open_surface import named_for
from arp.turn.question_outcome import Declined
from arp.turn.thread import call_in_thread, is_plain

ABANDONED = "stopped before it ended"
"""Error of a call in a generator that was closed before it ended.

A call that is still open when its turn ends gets another error."""

MAX_COUNT = 2**53 - 1
"""Upper bound of `done` and `total`: the largest integer that JavaScript counts exactly."""


F = TypeVar("F", bound=Callable[..., Any])

_ASKS = "__arp_needs_approval__"


def tool(*, needs_approval: bool = False) -> Callable[[F], F]:
    """Mark a function that a model may call: `@tool(needs_approval=True)`.

    Args:
        needs_approval: Whether a person has to allow each call, with its arguments.
    """

    def marked(function: F) -> F:
        setattr(function, _ASKS, needs_approval)
        return function

    return marked


def asks_first(function: Callable[..., Any]) -> bool:
    """Return whether a person has to allow each call of a function."""
    return bool(getattr(function, _ASKS, False))


class ToolSpec(Struct, frozen=True):
    """Description of a tool for its callers."""

    name: str
    description: str = ""
    """One or more sentences, for models and for people."""
    schema: JsonObject = {}
    """JSON Schema of the arguments; empty allows any object."""


class ToolProvider(Protocol):
    """Source of an app's tools, which agents call by name: `App(tools=provider)`."""

    def tools(self) -> Sequence[ToolSpec]:
        """Return the tools that can be called now."""

    async def call(self, tool: ToolCall, args: JsonObject, /) -> Json:
        """Run a call and return its result.

        A `call` that is not `async def` runs in a thread; it calls the methods of `tool` without
        `await`.

        Args:
            tool: The call, which renderers already show; `tool.name` is the name of the tool.
                Use it to show progress, ask for permission and record what the tool does.
            args: Arguments from the agent. The provider checks them against the tool's schema.

        Raises:
            ToolFailed: The tool failed; its message is shown to everyone.
        """


class ToolCaller(Protocol):
    """Caller of a tool: shows its progress and asks the user for what it needs."""

    session_id: str
    """Session of the call; questions of the tool are asked only there."""
    turn_id: str
    """Turn of the call; the number of questions in one turn is bounded."""

    def progress(self, text: str, done: float, total: float | None) -> None:
        """Show the progress of the tool."""

    async def ask(self, message: str, schema: JsonObject) -> JsonObject | None:
        """Ask the user to fill in a form of this schema; `None` if the user declines."""


class ToolFile(NamedTuple):
    """File that a tool returned, for people to download."""

    name: str
    content: bytes
    mime: str


class ToolLink(NamedTuple):
    """Link that a tool returned."""

    title: str
    uri: str


class ToolOutput(NamedTuple):
    """Result of a call of `ModelTools`."""

    text: str
    """Result as text, for the model."""
    value: Json
    """Result as JSON, or the text if there is none."""
    images: Sequence[tuple[bytes, str]] = ()
    """Images as pairs of bytes and MIME type."""
    files: Sequence[ToolFile] = ()
    """Audio, documents and other binary content."""
    links: Sequence[ToolLink] = ()
    failed: bool = False
    shown: Component | None = None
    """Component that shows the result to people; `None` shows `value`."""


class ModelTools(Protocol):
    """Tools that models may call: `app.model_agent(…, tools=…)`."""

    async def open(self) -> None:
        """Prepare the tools; called before each turn, also if they are open already."""

    async def aclose(self) -> None:
        """Release the tools; called when the runtime closes."""

    def tools(self) -> Sequence[ToolSpec]:
        """Return the tools that can be called now."""

    async def run(self, name: str, args: JsonObject, caller: ToolCaller) -> ToolOutput:
        """Call a tool.

        Raises:
            ToolFailed: The tool does not exist or failed.
        """


class ToolProviders:
    """Several providers as one; for a duplicate name the first provider is called."""

    def __init__(self, providers: Sequence[ToolProvider]) -> None:
        self._providers = providers

    def tools(self) -> Sequence[ToolSpec]:
        """Return the tools of all providers."""
        found = {one.name: one for part in self._providers[::-1] for one in part.tools()}
        return list(found.values())

    async def call(self, tool: ToolCall, args: JsonObject, /) -> Json:
        """Run a call with the first provider that has the tool."""
        for provider in self._providers:
            if any(one.name == tool.name for one in provider.tools()):
                if is_plain(provider.call):
                    thread = f"arp-tool-{tool.call_id}"
                    return await call_in_thread(thread, provider.call, tool, args)
                return await provider.call(tool, args)
        raise ToolFailed(f"there is no tool {tool.name!r:.60}")


class ToolFailed(AgentFailed):
    """Failure of a tool; the message is shown to everyone.

    If an agent does not catch it, its turn ends with the same message.
    """


class ToolCall:
    """Running tool call, from `async with turn.tool(name, args) as call` or `start_tool`.

    A call ends once: at the end of the `async with`, or by `done` or `failed`. A call that is open
    when its turn ends is shown as failed.
    """

    def __init__(
        self,
        host: TurnHost,
        name: str,
        runtime_id: str | None = None,
        subagent_id: str | None = None,
    ) -> None:
        self.name = name
        self.denial = ""
        """Reason of the newest refusal, if it is known."""
        self.approval: Approval | None = None
        """The newest approval; `None` if the newest question was refused or is unanswered."""
        self.session_id = host.session.id
        self.turn_id = host.turn_id
        self.call_id = f"{host.turn_id}.{host.next_tool()}"
        self._ids = {"step_id": self.call_id, "tool_call_id": self.call_id}
        if subagent_id is not None:
            self._ids["subagent_id"] = subagent_id
        self.record = host.recorder().within(**self._ids)
        """Recorder of what the tool does; every fact carries the ids of this call."""
        self._approver = Approver(host, name, self._ids, self.record)
        self._host = host
        self._session = host.session
        self._result: JsonObject = {}
        self._whole: str | None = None
        self._output_ref: str | None = None
        """Reference of the stored result, if it is longer than a preview."""
        self._began = time.monotonic()
        self._state: Literal["open", "ending", "over"] = "open"
        self._runtime_id = runtime_id
        """Id of this call in an external runtime; `None` if there is none."""
        self._input = "null"
        """The arguments as JSON, secrets included."""

    def progress(
        self, text: str = "", *, done: int | None = None, total: int | None = None
    ) -> None:
        """Show the progress of the tool; this replaces the previous progress.

        Args:
            text: Current activity.
            done: Amount done, in the unit of `total`.
            total: Total amount.

        Raises:
            RuntimeError: The call has ended.
            SurfaceDestroyed: The turn is over.
            TypeError: `done` or `total` is not an integer.
            ValueError: One of them is below 0 or above `MAX_COUNT`, or `done` is above `total`.
        """
        self._check_open()
        payload: JsonObject = {"text": text_of(text, "text")}
        if done is not None:
            payload["done"] = _check_count(done, "done")
        if total is not None:
            payload["total"] = _check_count(total, "total")
        if done is not None and total is not None and done > total:
            raise ValueError(f"done: {done} is more than the total of {total}")
        self._record("tool.progress", payload)
        self._host.changed()

    def result(self, value: Json) -> None:
        """Set the result: it is shown as a preview, and a longer result is stored as a whole.

        Args:
            value: A JSON value; any other value is recorded by its `repr`.
        """
        try:
            text = value if isinstance(value, str) else encoded(value).decode()
        except (TypeError, ValueError):
            text = repr_text(value)
        self._whole = well_formed(text)

    def show(self, *components: Any) -> None:
        """Show components, texts, data or figures that the tool made; see `Turn.show`."""
        self._check_open()
        named = named_for(self._host, components, "tool.show")
        self._host.gather("main", RenderChange(named, self.name))

    def show_foreign(self, component: Json) -> None:
        """Show a component that a foreign tool made, as far as it is valid.

        Parts that are left out are named in a text and recorded.
        """
        self._check_open()
        found = fitting_component(component, self._session.rules.limits.max_message_bytes)
        if found.component is not None:
            self.show(found.component)
        if found.warning:
            self.record("runtime.warning", {"message": f"{self.name}: {found.warning}"})
            self.show(Component("", "text", {"content": f"Not all is shown: {found.warning}."}))

    async def show_image(self, content: bytes, mime: str, *, alt: str) -> None:
        """Show an image that the tool made, from its bytes.

        Raises:
            ResourceLimit: It is larger than the limit of uploads; nothing is shown.
        """
        src = await self._store_file("image", content, mime)
        self.show(Component("", "image", {"src": src, "alt": alt}))

    async def show_file(self, name: str, content: bytes, mime: str) -> None:
        """Show a file that the tool made, for people to download.

        Raises:
            ResourceLimit: It is larger than the limit of uploads; nothing is shown.
        """
        name, mime = text_of(name, "name"), text_of(mime, "mime")
        url = await self._store_file(name, content, mime)
        about = f"{mime}, {len(content):,} bytes"
        self.show(
            Component("", "product-cards", {"cards": [{"name": name, "badge": about, "url": url}]})
        )

    async def _store_file(self, name: str, content: bytes, mime: str) -> str:
        """Store a file of the tool and return its address."""
        self._check_open()
        ref = await self._host.files.save(name, content, mime)
        # The call may have ended while the file was stored; nothing may be recorded for it then.
        self._check_open()
        payload = {
            "bytes": ref.size,
            "sha256": ref.sha256,
            "mime": ref.mime,
            "file": plain_object(ref),
        }
        self._record("output.spilled", payload, output_ref=ref.sha256)
        return blob_path(self._session.id, ref.sha256, ref.name)

    @must_await("tool.ask")
    async def ask(
        self, component: Component, *, check: Callable[[Json], object] | None = None
    ) -> Json | Declined:
        """Show an input component and wait for its answer; see `Turn.ask`.

        Args:
            component: The question; if its props include `can_decline`, the result may be
                `DECLINED`.
            check: Additional validation of the answer; raises `InvalidAnswer`, and the question
                stays open.
        """
        self._check_open()
        question: OpenQuestion[Json | Declined] = OpenQuestion(
            self._host, self._host.ask(component, check=check), lambda answer: answer
        )
        return question.taken(await self._host.outcome_of(question.asked, withdraws=True))

    @property
    def args(self) -> Json:
        """Arguments as a new copy: those that were approved last, else those of the call."""
        return msgspec.json.decode(self.approval.input if self.approval else self._input)

    @must_await("tool.approve")
    async def approve(self, title: str, *, rule: str, **options: Unpack[PermissionOptions]) -> bool:
        """Ask a person whether the tool may run with its arguments; return whether it may.

        See `ask_permission`. With `editable`, run the tool with `args` afterwards.
        """
        return (await self.ask_permission(title, rule=rule, **options)).allowed

    @must_await("tool.ask_permission")
    async def ask_permission(
        self,
        title: str,
        *,
        rule: str,
        input: JsonObject | None = None,
        **options: Unpack[PermissionOptions],
    ) -> Approval:
        """Ask a person whether the tool may run; record the rule and the decision.

        One turn may ask several questions at once, each through its own `turn.tool`.

        Args:
            title: Text of the question.
            rule: Name of the rule that requires a person's approval.
            input: Input to approve; it is shown whole, with secrets masked. `None` means the
                arguments of the call.
            options: See `PermissionOptions`.

        Returns:
            The decision. An unanswered question allows nothing. A refusal may have a reason.

        Raises:
            ResourceLimit: The input is too large to be shown whole; no question is asked.
            RuntimeError: The call has ended.
            TypeError, ValueError: An argument is invalid; no question is asked.

        Cancel: Safe; a cancelled question is not an approval.
        """
        self._check_open()
        refuse_unknown("tool.approve", options, PermissionOptions.__optional_keys__)
        if not text_of(title, "title").strip():
            raise ValueError("title: empty; write what a person allows")
        approver = self._approver
        shown = Approval.undecided(self._input if input is None else json_text(input), self.hides)
        self.check_size(shown.input)
        question = approver.question_for(shown, text_of(rule, "rule"), self._input, options)
        # A refusal must not leave an earlier approval in place: `args` would return its input.
        self.denial, self.approval = "", None
        approval = await approver.ask(title, shown, question, options)
        self.denial = approval.reason
        self.approval = approval if approval.allowed else None
        return approval

    def check_size(self, value: Json) -> None:
        """Check that an input fits into a message; a person cannot approve what is not shown.

        Raises:
            ResourceLimit: It is too large.
        """
        self._approver.check_size(value)

    def hides(self, text: str) -> bool:
        """Return whether a text holds a secret, which facts and screens only show as a mark."""
        return self._approver.hides(text)

    async def _store_result(self) -> None:
        """Store a large result beside the ledger.

        Cancel: Safe; the result is lost.
        """
        if self._whole is None:
            return
        text, self._whole = self._whole, None
        if len(text) <= PREVIEW_CHARACTERS:
            self._result = {"preview": text, "characters": len(text)}
            return
        stored = await self.record.keep(text)
        self._result = {"preview": stored.preview, "characters": len(text)}
        self._output_ref = stored.output_ref

    @must_await("call.done")
    async def done(self, result: Json = None) -> None:
        """Show that the tool is done. For a call from `start_tool`.

        Args:
            result: Its result; see `result`. `None` keeps a result that was set before.

        Raises:
            ArpError: An earlier change was refused; the tool is shown as failed.
            RuntimeError: The call has ended.
            SurfaceDestroyed: The turn is over.

        Cancel: Safe; a large result may be lost, and the tool is then shown as failed.
        """
        self._check_open()
        if result is not None:
            self.result(result)
        with self._ending():
            await self._finish()

    def failed(self, error: str) -> None:
        """Show that the tool failed, and why. For a call from `start_tool`; the agent continues.

        Args:
            error: What went wrong, for users.

        Raises:
            RuntimeError: The call has ended.
            SurfaceDestroyed: The turn is over.
        """
        self._check_open()
        self._end(error)

    def fail(self, message: str) -> NoReturn:
        """End the tool of an `async with` as failed, and show why.

        Args:
            message: What went wrong, for users.

        Raises:
            ToolFailed: Always, with the message; catch it around the `async with` to continue.
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
        self._input = json_text(args)
        known = None if self._runtime_id is None else {"runtimeCallId": self._runtime_id}
        self._record("tool.started", {"tool": self.name}, correlation=known)
        self._record("tool.args", {"tool": self.name, "args": self._input})
        self._host.changed()

    @contextmanager
    def _ending(self) -> Iterator[None]:
        """End the call when the block ends: as done, or as failed if the block raises."""
        error: str | None = None
        is_left_open = False
        try:
            yield
        except asyncio.CancelledError:
            error = "cancelled"
            # If the server stops, the call stays open as after a crash: readers show it as
            # interrupted, or as waiting with its question.
            is_left_open = self._host.is_left_open
            raise
        except GeneratorExit:
            # The generator that contains the call was closed. The tool itself did not fail.
            error = ABANDONED
            raise
        except ArpError as failed:
            error = failed.message
            raise
        except BaseException as failed:
            error = type(failed).__name__
            raise
        finally:
            # After the end of the turn no fact may be recorded in it: the end closed all calls.
            is_over = self._state == "over" or self._session.running != self._host.turn_id
            if not (is_over or is_left_open):
                self._end(error)

    async def _finish(self) -> None:
        """Store the result and commit pending changes; raise the error of a refused change."""
        self._state = "ending"
        await self._store_result()
        self._host.settle()

    def _end(self, error: str | None) -> None:
        """Record the result of the call, or its error."""
        self._state = "over"
        took = {"durationMs": round((time.monotonic() - self._began) * 1000)}
        ref = None if error is not None else self._output_ref
        if error is not None:
            failure = {"tool": self.name, "error": well_formed(error)}
            self._record("tool.failed", {**failure, **took})
        else:
            result = {"tool": self.name, **self._result, **took}
            self._record("tool.result", result, output_ref=ref)
        self._host.changed()

    def _record(self, type_name: str, payload: JsonObject, **ids: Json) -> None:
        self._host.flush_text()
        named = {**self._ids, **{name: value for name, value in ids.items() if value is not None}}
        self._session.in_turn(type_name, self._host.turn_id, payload, **named)


def started_tool(
    host: TurnHost,
    name: str,
    args: Json,
    runtime_id: str | None = None,
    subagent_id: str | None = None,
) -> ToolCall:
    """Start a call and show it; the caller has to end it."""
    call = ToolCall(host, name, runtime_id, subagent_id)
    call._start(args)
    return call


@asynccontextmanager
async def running_tool(host: TurnHost, name: str, args: Json) -> AsyncIterator[ToolCall]:
    """Run a block as a tool call: show its start, and at the end of the block its result.

    The block begins when the start is durable.
    """
    call = started_tool(host, name, args)
    with call._ending():
        # The effects of a tool cannot be undone. So it must not run if its start cannot be stored,
        # or if another process owns the session. After a crash, the ledger must show every tool
        # that may have run.
        await host.live.written()
        call._began = time.monotonic()
        with host.services.spans.of_tool(host.session, host.turn_id, call.call_id):
            yield call
        if call._state != "over":
            await call._finish()


def _check_count(number: int, name: str) -> int:
    """Check a count and return it as a plain `int`.

    Raises:
        TypeError: It is not a whole number.
        ValueError: It is below 0 or above `MAX_COUNT`.
    """
    if isinstance(number, bool) or not isinstance(number, int):
        raise TypeError(f"{name}: expected a whole number, got {type(number).__name__}")
    if not 0 <= number <= MAX_COUNT:
        raise ValueError(f"{name}: expected a number from 0 to {MAX_COUNT}")
    return int(number)
