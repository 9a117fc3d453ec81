"""`FunctionRuntime`: any async function, or async generator of texts, as an agent runtime.

```python
async def reply(turn: FunctionTurn) -> AsyncIterator[str]:
    async for token in model.stream(turn.text):
        yield token

runtime = FunctionRuntime(reply)
```
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import ClassVar, Literal, TypeAlias

import msgspec

from arp.protocol.json_value import Json, JsonObject
from arp.runtime import types as ari
from arp.runtime.driven import DrivenRuntime, no_session
from arp.runtime.errors import Canceled, InvalidArgument, status_of
from arp.runtime.feed import ActiveTurn, PendingPermission, SessionFeed

logger = logging.getLogger(__name__)

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")
"""A session's id is the name of its file."""


class _KeptMessage(msgspec.Struct, frozen=True):
    """What a line of the file has besides the message."""

    cwd: str = ""


class FunctionTurn:
    """One turn, as the function sees it: the message, and what can be done about it."""

    def __init__(self, session: FunctionSession, request: ari.SendMessageRequest) -> None:
        self.session_id = session.session_id
        self.cwd = session.cwd
        """The directory of the session; absolute."""
        self.message = request.message
        self.metadata = request.metadata
        self.history: Sequence[ari.RuntimeMessage] = tuple(session.messages)
        """What was said before, oldest first."""
        self.used: ari.Usage | None = None
        """What the turn used, if the function says so."""
        self.calls: list[ari.PastToolCall] = []
        self.said: list[str] = []
        self._feed = session.feed
        self._runtime_id = session.new_id

    @property
    def text(self) -> str:
        """What the user said, text parts included."""
        texts = [self.message.content, *(part.text for part in self.message.parts)]
        return "\n".join(text for text in texts if text)

    def say(self, text: str) -> None:
        """Say something."""
        self.said.append(text)
        self._feed.text(text)

    def think(self, text: str) -> None:
        """Show what the agent thinks."""
        self._feed.thinking(text)

    def tell(self, lifecycle: ari.Lifecycle, content: str = "", **details: Json) -> None:
        """Emit a lifecycle event, such as a plan."""
        self._feed.tell(lifecycle, content, **details)

    @contextmanager
    def tool(
        self,
        name: str,
        tool_input: JsonObject,
        *,
        summary: str = "",
        kind: ari.PermissionKind = ari.PermissionKind.TOOL,
    ) -> Iterator[FunctionToolCall]:
        """Show that a tool runs; an exception inside is its error, and goes on."""
        call = FunctionToolCall(self._runtime_id("call"), name, tool_input, kind, self._feed)
        self._feed.tool_call(call.id, name, tool_input, summary=summary, kind=kind)
        try:
            yield call
        except BaseException as failed:
            self._end_call(call, type(failed).__name__, True)
            raise
        self._end_call(call, call.output, call.failed)

    def _end_call(self, call: FunctionToolCall, output: str, failed: bool) -> None:
        self.calls.append(ari.PastToolCall(call.id, call.name, call.input, output, failed))
        self._feed.tool_result(call.id, output, is_error=failed, denied=call.denied)


class FunctionToolCall:
    """A tool call that a function makes."""

    def __init__(
        self,
        call_id: str,
        name: str,
        tool_input: JsonObject,
        kind: ari.PermissionKind,
        feed: SessionFeed,
    ) -> None:
        self.id, self.name, self.input = call_id, name, tool_input
        self.kind = kind
        self.output = ""
        self.failed = False
        self.denied = False
        self._feed = feed

    def progress(self, content: str) -> None:
        """Show output of the tool while it runs."""
        self._feed.tool_progress(self.id, content)

    def result(self, output: str) -> None:
        """Say what the tool returned."""
        self.output = output

    def fail(self, output: str) -> None:
        """Say that the tool failed, and why."""
        self.output, self.failed = output, True

    async def allowed(
        self,
        *,
        summary: str = "",
        message: str = "",
        rules: Sequence[ari.PermissionRule] = (),
        takes_message: bool = True,
    ) -> ari.PermissionResponse:
        """Ask whether the tool may run, and return the answer.

        What may run is `updated_input` of the answer, or else the input of the call. Without an
        answer it is a denial.

        Cancel: Safe; the request is withdrawn.
        """
        answer: asyncio.Future[ari.PermissionResponse] = asyncio.get_running_loop().create_future()
        about = ari.PermissionRequest(
            self.name,
            tool_call_id=self.id,
            kind=self.kind,
            tool_input_summary=summary,
            tool_input_raw=self.input,
            message=message,
            takes_updated_input=True,
            takes_message=takes_message,
            rules=tuple(rules),
        )
        if self._feed.ask(answer, about) is None:
            return ari.PermissionResponse("deny")
        try:
            response = await answer
        finally:
            self._feed.withdraw(answer)
        if response.decision == "deny":
            self.fail(response.message or "denied")
            self.denied = True
        return response


AgentFunction: TypeAlias = Callable[[FunctionTurn], Awaitable[str | None] | AsyncIterator[str]]


class FunctionSession:
    """A session of a function: the messages, and the task of the turn that runs."""

    def __init__(
        self,
        session_id: str,
        feed: SessionFeed,
        runtime: FunctionRuntime,
        request: ari.CreateSessionRequest | ari.ResumeSessionRequest,
    ) -> None:
        self.session_id = session_id
        self.model, self.mode, self.provider = request.model, "", ""
        self.cwd = request.cwd
        self.feed = feed
        self.new_id = runtime.new_id
        self.messages: list[ari.RuntimeMessage] = runtime.kept(session_id)
        self._runtime = runtime
        self._task: asyncio.Task[None] | None = None

    async def send(self, request: ari.SendMessageRequest) -> None:
        """Run the function beside."""
        turn = self.feed.turn
        self._task = asyncio.get_running_loop().create_task(self._run(request))
        self._task.add_done_callback(lambda _: self._never_ran(turn))

    async def respond(self, pending: PendingPermission, response: ari.PermissionResponse) -> None:
        """Let the function that asked go on."""
        answer = pending.native
        if isinstance(answer, asyncio.Future) and not answer.done():
            answer.set_result(response)
        if response.interrupt and self._task is not None:
            self._task.cancel()

    async def cancel(self, open_requests: Sequence[PendingPermission]) -> None:
        """Cancel the function."""
        if self._task is not None:
            self._task.cancel()

    async def aclose(self) -> None:
        """Cancel the function, and wait until it is over."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _run(self, request: ari.SendMessageRequest) -> None:
        turn = FunctionTurn(self, request)
        try:
            returned = self._runtime.function(turn)
            if inspect.isawaitable(returned):
                said = await returned
                if said:
                    turn.say(said)
            else:
                async for delta in returned:
                    turn.say(delta)
        except asyncio.CancelledError:
            self._keep(turn)
            self.feed.error(Canceled("the turn was cancelled").status(), turn.used)
        except Exception as failed:
            logger.exception("the agent's function failed")
            self._keep(turn)
            self.feed.error(status_of(failed), turn.used)
        else:
            self._keep(turn)
            self.feed.result(usage=turn.used)

    def _never_ran(self, turn: ActiveTurn | None) -> None:
        """End a turn that was cancelled before the function began: nothing of it has run then."""
        if turn is not None and self.feed.turn is turn:
            self.feed.error(Canceled("the turn was cancelled").status())

    def _keep(self, turn: FunctionTurn) -> None:
        now = self._runtime.clock()
        answer = ari.RuntimeMessage(
            "assistant", "".join(turn.said), tool_calls=tuple(turn.calls), timestamp_ns=now
        )
        asked = msgspec.structs.replace(turn.message, timestamp_ns=now)
        self.messages += [asked, answer]
        self._runtime.keep(self.session_id, self.cwd, [asked, answer])


class FunctionRuntime(DrivenRuntime):
    """A runtime whose agent is a function.

    Args:
        function: Gets a `FunctionTurn`; returns a text, or yields texts, or says all by itself.
        name: What the runtime is called.
        cwd: As for every runtime.
        directory: Where sessions are kept, so that other processes find them; `None`: in memory.
    """

    name = "function"
    permission: ClassVar[Literal["enforced", "advisory", "none"]] = "enforced"
    part_types: ClassVar[frozenset[str]] = frozenset({"text", "image", "audio", "file"})
    takes: ClassVar[frozenset[str]] = frozenset({"session_id", "model"})

    def __init__(
        self,
        function: AgentFunction,
        *,
        name: str = "",
        cwd: str | Path = ".",
        directory: str | Path | None = None,
    ) -> None:
        super().__init__(cwd=cwd)
        self.function = function
        if name:
            self.name = name  # type: ignore[misc]  # of this object, not of the class
        self.directory = Path(directory) if directory is not None else None
        self._memory: dict[str, list[ari.RuntimeMessage]] = {}

    def kept(self, session_id: str) -> list[ari.RuntimeMessage]:
        """Return the messages of a session."""
        if self.directory is None:
            return list(self._memory.get(session_id, ()))
        try:
            lines = self._file(session_id).read_bytes().splitlines()
        except FileNotFoundError:
            return []
        return [msgspec.json.decode(line, type=ari.RuntimeMessage) for line in lines]

    def kept_directory(self, session_id: str) -> str:
        """Return where a session worked; empty for one in memory, which is open still."""
        if self.directory is None:
            return ""
        lines = self._file(session_id).read_bytes().splitlines()
        return msgspec.json.decode(lines[-1], type=_KeptMessage).cwd

    def keep(self, session_id: str, cwd: str, messages: Sequence[ari.RuntimeMessage]) -> None:
        """Keep the messages of a turn, and where it worked."""
        if self.directory is None:
            self._memory.setdefault(session_id, []).extend(messages)
            return
        self.directory.mkdir(parents=True, exist_ok=True)
        lines = [msgspec.to_builtins(message) | {"cwd": cwd} for message in messages]
        with self._file(session_id).open("ab") as file:
            file.write(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))

    async def get_session_history(
        self, request: ari.GetSessionHistoryRequest
    ) -> ari.GetSessionHistoryResponse:
        """Return the messages of a session, oldest first."""
        self._check_open()
        known = self._sessions.get(request.session_id)
        messages = self.kept(request.session_id)
        if known is None and not messages:
            raise no_session(request.session_id)
        if not 1 <= request.limit <= 10_000:
            raise InvalidArgument(f"limit: expected 1 to 10000, got {request.limit}")
        return ari.GetSessionHistoryResponse(tuple(messages[-request.limit :]))

    async def _create(
        self, request: ari.CreateSessionRequest, feed: SessionFeed
    ) -> FunctionSession:
        session_id = request.session_id or self.new_id("session")
        if _ID.fullmatch(session_id) is None:
            allowed = "1 to 128 of A-Z a-z 0-9 _ . -"
            raise InvalidArgument(f"session_id: {allowed}, got {session_id!r:.80}")
        return FunctionSession(session_id, feed, self, request)

    async def _resume(
        self, request: ari.ResumeSessionRequest, feed: SessionFeed
    ) -> FunctionSession:
        if await self._find(request.session_id) is None:
            raise no_session(request.session_id)
        return FunctionSession(request.session_id, feed, self, request)

    async def _stored(self, cwd: str) -> Sequence[ari.RuntimeSession]:
        if self.directory is None:
            ids = list(self._memory)
        else:
            ids = [file.stem for file in self.directory.glob("*.jsonl")]
        return [self._stored_session(session_id) for session_id in ids]

    async def _find(self, session_id: str) -> ari.RuntimeSession | None:
        if _ID.fullmatch(session_id) is None or not self.kept(session_id):
            return None
        return self._stored_session(session_id)

    async def _forget(self, session_id: str) -> None:
        self._memory.pop(session_id, None)
        if self.directory is not None and _ID.fullmatch(session_id):
            self._file(session_id).unlink(missing_ok=True)

    def _capabilities(self) -> Sequence[ari.Capability]:
        return (
            ari.Capability("session_id"),
            ari.Capability("parts", details={"types": ", ".join(sorted(self.part_types))}),
            ari.Capability("resume_session"),
            ari.Capability("list_sessions"),
            ari.Capability("delete_session"),
            ari.Capability("cancel_turn"),
            ari.Capability("history"),
            ari.Capability("permission_rules", details={"rules": "those of the function"}),
            ari.Capability("updated_input"),
            ari.Capability("deny_message"),
            ari.Capability("deny_interrupt", details={"deny_continues": "yes"}),
        )

    def _stored_session(self, session_id: str) -> ari.RuntimeSession:
        messages = self.kept(session_id)
        return ari.RuntimeSession(
            session_id,
            ari.SessionState.CLOSED,
            self.name,
            self.kept_directory(session_id),
            created_at_ns=messages[0].timestamp_ns,
            updated_at_ns=messages[-1].timestamp_ns,
            turn_count=sum(message.role == "user" for message in messages),
        )

    def _file(self, session_id: str) -> Path:
        assert self.directory is not None
        return self.directory / f"{session_id}.jsonl"
