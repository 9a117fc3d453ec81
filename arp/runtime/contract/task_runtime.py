"""`TaskRuntime`: base class of runtimes with agents that run in this process.

Theory of operation. A turn is a coroutine (`TaskRuntime.run_turn`) in a task of its own. It reports
its output through a `TaskTurn`, and awaits permissions and answers there. The runtime stores the
messages of the turn and, beside them, the state that the agent's framework needs to continue
(`saved`: bytes in the adapter's own format). If a process ends while a question is open, some
frameworks can continue the turn. The adapter reports this with `is_interrupted`; resuming the
session then begins a turn without a message, which asks the question again.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, Literal

import msgspec

from arp.protocol.json_value import Json, JsonObject
from arp.runtime.contract import types as ari
from arp.runtime.contract.cut_off import CUT_OFF_WORDS, CutOffReason, mark_of
from arp.runtime.contract.driven import DrivenRuntime, OpenSession, no_session
from arp.runtime.contract.errors import (
    Canceled,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    status_of,
)
from arp.runtime.contract.feed import ActiveTurn, PendingPermission, SessionFeed
from arp.runtime.contract.model_errors import is_explained, known_error
from arp.turn.past_messages import BROKEN, STOPPED, CalledTool, PastMessage, PastMessages
from arp.values.cell import as_json
from arp.values.display import text_of

logger = logging.getLogger(__name__)

_SESSION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")
"""Valid session ids; an id is part of the names of the session's files."""
QUESTION_NAMES = ("message", "task", "instruction", "prompt", "description", "text", "title")
"""Fields that may hold the question of an object without a `question`, most likely first."""
MAX_UNSENT = 200
"""Number of text deltas that are joined to one event.

Frameworks yield one token at a time without letting the event loop run. One event for many tokens
costs a twentieth of one event for each.
"""


class _KeptMessage(msgspec.Struct, frozen=True):
    """Fields of a stored line in addition to those of the message."""

    cwd: str = ""


class TaskTurn:
    """One turn, for the coroutine that runs it: the message, and methods to report what happens."""

    def __init__(self, session: TaskSession, request: ari.SendMessageRequest) -> None:
        self.session = session
        self.session_id = session.session_id
        self.turn_id = session.feed.turn.id if session.feed.turn is not None else ""
        self.cwd = session.cwd
        """Absolute path of the session's directory."""
        self.message = request.message
        self.metadata = request.metadata
        self.key = request.idempotency_key
        """Idempotency key of the turn; empty if the caller gave none."""
        self.history: Sequence[ari.RuntimeMessage] = tuple(session.messages)
        """Earlier messages of the session, oldest first."""
        self.used: ari.Usage | None = None
        """Usage of the turn, if the agent reports it."""
        self.calls: list[ari.PastToolCall] = []
        self.said: list[str] = []
        self.mark = ""
        """Note for the model that the answer is incomplete; empty if it is complete."""
        self.open_calls: dict[str, tuple[str, JsonObject]] = {}
        """Name and input of each tool call without a result, by call id."""
        self.denied: set[str] = set()
        """Ids of the calls that a person denied; their results say so."""
        self._asked: set[str] = set()
        """Ids of the questions that have been answered. Some frameworks start such a call again
        after the answer."""
        self.is_saved = False
        """Whether the stored state of the session already includes the message."""
        self._unsent: list[str] = []
        """Text that has not been emitted yet; `flush` emits it as one event."""
        self._feed = session.feed

    @property
    def text(self) -> str:
        """Text of the user's message, with its text parts."""
        texts = [self.message.content, *(part.text for part in self.message.parts)]
        return "\n".join(text for text in texts if text)

    @property
    def content(self) -> Sequence[ari.ContentPart]:
        """The message as parts only; the typed text comes first."""
        typed = self.message.content
        return (*([ari.ContentPart("text", typed)] if typed else ()), *self.message.parts)

    @property
    def has_message(self) -> bool:
        """Whether a message began the turn; otherwise the turn continues an interrupted one."""
        return bool(self.message.content or self.message.parts)

    def say(self, text: str) -> None:
        """Add text to the agent's answer."""
        self.said.append(text)
        self._unsent.append(text)
        # One event per iteration of the event loop: an event costs more than a delta.
        if len(self._unsent) == 1:
            asyncio.get_running_loop().call_soon(self.flush)
        elif len(self._unsent) >= MAX_UNSENT:
            self.flush()

    def flush(self) -> None:
        """Emit the text that was collected.

        Called before every other event of the turn, in the next iteration of the event loop, and
        when `MAX_UNSENT` pieces are collected.
        """
        if self._unsent:
            text = "".join(self._unsent)
            self._unsent.clear()
            self._feed.text(text)

    def mark_cut_off(self, reason: CutOffReason) -> None:
        """Mark the answer as incomplete, on every screen and for the model that reads it later."""
        self.flush()
        self.break_off(mark_of(CUT_OFF_WORDS[reason]), even_if_silent=True)
        self._feed.cut_off(reason)

    def break_off(self, mark: str, *, even_if_silent: bool = False) -> None:
        """Mark the answer as incomplete for the model only.

        People see the reason at the end of the turn. Without the mark, the model would take a
        partial answer for a complete one.

        Args:
            mark: Text that is appended to the stored answer.
            even_if_silent: Whether an answer without any text gets the mark too.
        """
        self.mark = mark
        if "".join(self.said).strip():
            self.said.append(f"\n\n{mark}")
        elif even_if_silent:
            self.said.append(mark)

    def think(self, text: str) -> None:
        """Emit thoughts of the agent."""
        self.flush()
        self._feed.thinking(text)

    def tell(self, lifecycle: ari.Lifecycle, content: str = "", **details: Json) -> None:
        """Emit a lifecycle event, such as a plan."""
        self.flush()
        self._feed.tell(lifecycle, content, **details)

    def start_call(
        self,
        call_id: str,
        name: str,
        tool_input: JsonObject,
        *,
        summary: str = "",
        kind: ari.PermissionKind | None = None,
    ) -> None:
        """Emit a tool call; a running call and a question that was answered are ignored.

        If `summary` or `kind` is missing, it is derived from the input.
        """
        self.flush()
        if call_id not in self.open_calls and call_id not in self._asked:
            self.open_calls[call_id] = (name, tool_input)
            shown = summary or summary_of(tool_input)
            self._feed.tool_call(
                call_id, name, tool_input, summary=shown, kind=kind or kind_of(tool_input)
            )

    def call_progress(self, call_id: str, content: str) -> None:
        """Emit output of a running tool."""
        self.flush()
        self._feed.tool_progress(call_id, content)

    def end_call(
        self,
        call_id: str,
        output: str = "",
        *,
        failed: bool = False,
        shown: JsonObject | None = None,
        **details: Json,
    ) -> None:
        """Emit the result of a tool call, then the component `shown`.

        `denied` in `details` means that the call was not allowed to run.
        """
        self.flush()
        # The framework reports the answered question as a tool result, but `answered` has already
        # ended the call.
        if call_id in self._asked:
            return
        name, tool_input = self.open_calls.pop(call_id, ("", {}))
        if call_id in self.denied:
            failed = details["denied"] = True
        self.calls.append(ari.PastToolCall(call_id, name, tool_input, output, failed))
        self._feed.tool_result(call_id, output, name=name, is_error=failed, **details)
        if shown is not None:
            self.show(shown)

    def show(self, component: JsonObject) -> None:
        """Show a component of ARP, given as JSON."""
        self.flush()
        self._feed.tell(ari.Lifecycle.COMPONENT, component=component)

    def begin_request(
        self,
        request_id: str,
        model: str,
        *,
        provider: str = "",
        parameters: Mapping[str, Any] | None = None,
        tools: Sequence[str] = (),
        messages: Callable[[], Any] = list,
    ) -> None:
        """Emit the start of a request to a model; `use` or `fail_request` with its id ends it.

        Args:
            request_id: Id that is unique within the turn.
            model: Name of the model.
            provider: Provider that runs the model.
            parameters: Parameters of the request. Headers are left out because they may hold keys.
            tools: Names of the tools that the model may call.
            messages: Returns the messages that the model receives; called only if the app records
                them.
        """
        asked = {name: value for name, value in (parameters or {}).items() if "header" not in name}
        details: JsonObject = {"parameters": as_json(asked), "tools": list(tools)}
        if self.metadata.get(ari.RECORD_MESSAGES) == "true":
            details["messages"] = as_json(messages())
        self.tell(
            ari.Lifecycle.MODEL_REQUEST,
            status="started",
            request_id=request_id,
            model=model,
            provider=provider,
            **details,
        )

    def fail_request(self, request_id: str, error: BaseException) -> None:
        """Emit the failure of a request to a model."""
        self.tell(
            ari.Lifecycle.MODEL_REQUEST,
            str(error) or type(error).__name__,
            status="failed",
            request_id=request_id,
        )

    def use(
        self,
        tokens_in: int | None,
        tokens_out: int | None,
        cached: int | None = None,
        reasoning: int | None = None,
        model: str = "",
        *,
        request_id: str = "",
    ) -> None:
        """Emit the tokens of a request to a model, and add them to the usage of the turn.

        A number that is not known is `None`. If no number is known, only the end of the request is
        emitted.
        """
        used = ari.Usage(tokens_in, tokens_out, cached, reasoning)
        if not used.is_known and not request_id:
            return
        details: JsonObject = msgspec.to_builtins(used)
        self.flush()
        if request_id:
            details["request_id"] = request_id
        self._feed.tell(ari.Lifecycle.USAGE, model=model, **details)
        self.used = (self.used or ari.Usage()).plus(used)

    async def answered(
        self, question_id: str, about: Json, schema: Json = None, *, can_decline: bool = False
    ) -> Json:
        """Ask a question and return the answer; `None` if it is declined.

        Args:
            question_id: Id that stays the same for the same question, also after a restart.
            about: The question: a text, or an object with the question and its context.
            schema: JSON Schema of the answer; `None` means any text.
            can_decline: Whether people may decline to answer.
        """
        question = question_of(about)
        if schema is not None:
            question["schema"] = schema
        if can_decline:
            question["can_decline"] = True
        response = await self.asked(
            ari.PermissionRequest(
                "question",
                tool_call_id=question_id,
                kind=ari.PermissionKind.QUESTION,
                tool_input_summary=str(question.get("question") or ""),
                tool_input_raw=question,
                takes_updated_input=True,
                takes_message=True,
            )
        )
        declined = response.decision == "deny"
        self.end_call(question_id, "declined" if declined else "answered", denied=declined)
        self._asked.add(question_id)
        return None if declined else (response.updated_input or {}).get("answer")

    async def allowed(
        self,
        call_id: str,
        name: str,
        tool_input: JsonObject,
        *,
        message: str = "",
        takes_updated_input: bool = True,
        rules: Sequence[ari.PermissionRule] = (),
    ) -> ari.PermissionResponse:
        """Ask for permission to run a tool; `end_call` later emits a denied call as denied."""
        response = await self.asked(
            ari.PermissionRequest(
                name,
                tool_call_id=call_id,
                kind=kind_of(tool_input),
                tool_input_summary=summary_of(tool_input),
                tool_input_raw=tool_input,
                message=message,
                takes_updated_input=takes_updated_input,
                takes_message=True,
                rules=tuple(rules),
            )
        )
        if response.decision == "deny":
            self.denied.add(call_id)
        return response

    async def asked(self, about: ari.PermissionRequest) -> ari.PermissionResponse:
        """Emit a permission request and return the answer; a denial if the request cannot be made.

        Cancel: Safe; the request is withdrawn.
        """
        answer: asyncio.Future[ari.PermissionResponse] = asyncio.get_running_loop().create_future()
        self.flush()
        if self._feed.ask(answer, about) is None:
            return ari.PermissionResponse("deny")
        self.open_calls.setdefault(about.tool_call_id, (about.tool_name, about.tool_input_raw))
        try:
            return await answer
        finally:
            self._feed.withdraw(answer)


class TaskSession:
    """A session with turns that run as tasks: its messages, and the task of the active turn."""

    def __init__(
        self,
        session_id: str,
        feed: SessionFeed,
        runtime: TaskRuntime,
        request: ari.CreateSessionRequest | ari.ResumeSessionRequest,
    ) -> None:
        self.session_id = session_id
        self.model, self.mode, self.provider = request.model, "", ""
        self.cwd = request.cwd
        self.feed = feed
        self.new_id = runtime.new_id
        self.messages: list[ari.RuntimeMessage] = runtime.kept(session_id)
        self.was_interrupted = False
        """Whether resuming the session continues an interrupted turn."""
        self.failure: Exception | None = None
        """Exception of the author's code in the newest turn. Its text is in no event."""
        self._runtime = runtime
        self._task: asyncio.Task[None] | None = None
        self._is_closing = False

    async def send(self, request: ari.SendMessageRequest) -> None:
        """Run the turn in a task."""
        self.run(self._runtime.turn_type(self, request))

    def run(self, task_turn: TaskTurn) -> None:
        """Run a turn that the feed has begun."""
        turn = self.feed.turn
        self._task = asyncio.get_running_loop().create_task(self._run(task_turn))
        # A task that is cancelled before its first step never enters `_run`, so nothing else would
        # end the turn.
        self._task.add_done_callback(lambda _: self._end_if_never_run(turn))

    async def respond(self, pending: PendingPermission, response: ari.PermissionResponse) -> None:
        """Give the answer to the waiting turn; a denial with `interrupt` also cancels the turn."""
        answer = pending.native
        if isinstance(answer, asyncio.Future) and not answer.done():
            answer.set_result(response)
        if response.interrupt and self._task is not None:
            self._task.cancel()

    async def cancel(self, open_requests: Sequence[PendingPermission]) -> None:
        """Cancel the turn's task."""
        if self._task is not None:
            self._task.cancel()

    async def aclose(self) -> None:
        """Cancel the turn's task and wait for its end; the stored state does not change."""
        self._is_closing = True
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def abandon(self) -> None:
        """Close the session like `aclose`, because the open question is already stored."""
        await self.aclose()

    async def _run(self, turn: TaskTurn) -> None:
        try:
            if turn.has_message:  # stored first: a crash during the turn must not lose it
                self._keep(turn.message)
            await self._runtime.run_turn(turn)
        except asyncio.CancelledError:
            # A closing session was not stopped by a person: its stored state keeps the open
            # question, so that the next process can continue the turn.
            if not self._is_closing:
                turn.break_off(STOPPED)
            self._keep_answer(turn)
            if not self._is_closing:
                await self._repair_state(turn)
            self.feed.error(Canceled("the turn was cancelled").status(), turn.used)
        except Exception as failed:
            logger.exception("a turn of %s failed", self._runtime.name)
            known = known_error(failed)
            self.failure = None if is_explained(failed, known) else failed
            turn.break_off(BROKEN)
            self._keep_answer(turn)
            await self._repair_state(turn)
            self.feed.error(status_of(known or failed), turn.used)
        else:
            self._keep_answer(turn)
            self.feed.result(usage=turn.used)

    async def _repair_state(self, turn: TaskTurn) -> None:
        """Repair the stored state; a failure here must not hide the error of the turn."""
        try:
            await self._runtime.cut_off(turn)
        except Exception:
            logger.exception("%s cannot bring a session in order", self._runtime.name)

    def _end_if_never_run(self, turn: ActiveTurn | None) -> None:
        """End a turn that was cancelled before its task began to run."""
        if turn is not None and self.feed.turn is turn:
            self.feed.error(Canceled("the turn was cancelled").status())

    def _keep_answer(self, turn: TaskTurn) -> None:
        turn.flush()
        text, calls = "".join(turn.said), tuple(turn.calls)
        self._keep(ari.RuntimeMessage("assistant", text, tool_calls=calls))

    def _keep(self, message: ari.RuntimeMessage) -> None:
        dated = msgspec.structs.replace(message, timestamp_ns=self._runtime.clock())
        self.messages.append(dated)
        self._runtime.keep(self.session_id, self.cwd, dated)


def _parse_message(line: bytes, number: int) -> ari.RuntimeMessage | None:
    """Return the message in a line; `None` if it is unreadable, as after a loss of power."""
    try:
        return msgspec.json.decode(line, type=ari.RuntimeMessage)
    except msgspec.DecodeError as error:
        logger.warning("message %d of a session cannot be read, and is left out: %s", number, error)
        return None


def _is_last_line_complete(path: Path) -> bool:
    """Return whether the last line of a file is complete, or the file is empty or missing."""
    with suppress(FileNotFoundError), path.open("rb") as file:
        if file.seek(0, os.SEEK_END):
            file.seek(-1, os.SEEK_END)
            return file.read(1) == b"\n"
    return True


def check_loop_of(part: object) -> None:
    """Raise if a framework's object has a `loop` that is not the running event loop.

    Raises:
        FailedPrecondition: It belongs to another loop; the message says what to do.
    """
    bound_to = getattr(part, "loop", None)
    if bound_to is not None and bound_to is not asyncio.get_running_loop():
        raise FailedPrecondition(
            f"{type(part).__name__} belongs to another event loop: leave it out, then each start "
            "of the app makes one"
        )


def conversation_of(history: Sequence[ari.RuntimeMessage]) -> PastMessages:
    """Return the messages of a session as `PastMessages`, which converts them for frameworks."""
    return PastMessages(
        PastMessage(
            "user" if message.role == "user" else "assistant",
            "",
            message.content,
            calls=tuple(
                CalledTool(call.tool_call_id, call.name, call.input, call.result, not call.is_error)
                for call in message.tool_calls
            ),
        )
        for message in history
    )


def question_of(about: Json) -> JsonObject:
    """Return a question as an object with a `question`, or with a `component` that asks it.

    If the object has neither, the first of the names in `QUESTION_NAMES` that it has is the
    question, and the other fields are its context.
    """
    if isinstance(about, str):
        return {"question": about}
    asked: JsonObject = dict(about) if isinstance(about, dict) else {"value": about}
    if isinstance(asked.get("question"), str) or isinstance(asked.get("component"), dict):
        return asked
    named = next((name for name in QUESTION_NAMES if isinstance(asked.get(name), str)), None)
    question = asked.pop(named) if named is not None else "The agent asks:"
    return {**asked, "question": question}


def kind_of(tool_input: JsonObject) -> ari.PermissionKind:
    """Return `COMMAND` for an input with a text in `command`, otherwise `TOOL`."""
    is_command = isinstance(tool_input.get("command"), str)
    return ari.PermissionKind.COMMAND if is_command else ari.PermissionKind.TOOL


def summary_of(tool_input: JsonObject) -> str:
    """Return the input of a tool in one line: its command, or its values."""
    command = tool_input.get("command")
    if isinstance(command, str):
        return command
    return ", ".join(f"{name}: {text_of(value)}" for name, value in tool_input.items())


class TaskRuntime(DrivenRuntime):
    """A runtime with turns that are coroutines of this process.

    Args:
        cwd: Directory of the runtime, as in `DrivenRuntime`.
        directory: Directory that stores the sessions so that other processes find them; `None`
            means in memory.
    """

    permission: ClassVar[Literal["enforced", "advisory", "none"]] = "enforced"
    takes: ClassVar[frozenset[str]] = frozenset({"session_id", "history"})
    runs_commands: bool = False
    more_capabilities: ClassVar[tuple[str, ...]] = ()
    """Names of further capabilities of the adapter."""
    saves_state: ClassVar[bool] = True
    """Whether each session has a stored state. Unless `remembers` is overridden, it must be a JSON
    object."""
    turn_type: ClassVar[type[TaskTurn]] = TaskTurn
    """Class of the argument of `run_turn`."""

    def __init__(self, *, cwd: str | Path = ".", directory: str | Path | None = None) -> None:
        super().__init__(cwd=cwd)
        self.directory = Path(directory) if directory is not None else None
        self._is_directory_chosen = directory is not None
        """Whether the author has chosen the directory that stores sessions."""
        self._messages: dict[str, list[ari.RuntimeMessage]] = {}
        self._saved: dict[str, bytes] = {}

    # -- implemented by adapters -----------------------------------------------------------------

    @abstractmethod
    async def run_turn(self, turn: TaskTurn) -> None:
        """Run a turn to its end; an exception becomes the error of the turn.

        A turn that continues an interrupted one has no message.
        """

    async def is_interrupted(self, session_id: str) -> bool:
        """Return whether the last turn ended while a question was open, and can be continued."""
        return False

    async def fork(self, session_id: str, request: ari.CreateSessionRequest) -> None:
        """Create the state of a session as a copy of the state that another one had after a turn.

        `request` names the other session and the turn. Called only if `takes` has
        `fork_session_id`.

        Raises:
            NotFound: The session or the turn does not exist.
        """
        raise NotFound("nothing is known of earlier turns")

    async def begin_with(self, session_id: str, past: PastMessages) -> None:
        """Write earlier messages into the state of a session that is new or has lost its state.

        An adapter without a state need not override this: `turn.history` has the messages anyway.
        """
        return

    async def remembers(self, session_id: str) -> bool:
        """Return whether the state that the framework needs to continue exists and is readable."""
        if not self.saves_state:
            return True
        try:
            return isinstance(msgspec.json.decode(self.saved(session_id)), dict)
        except msgspec.DecodeError:
            return False

    async def cut_off(self, turn: TaskTurn) -> None:
        """Repair the stored state after a turn that failed or that a person cancelled.

        Afterwards the next message must be possible, and the questions of the turn are not asked
        again.
        """
        return

    # -- storage ---------------------------------------------------------------------------------

    def keep_in(self, directory: Path | None) -> None:
        """Store sessions in a directory, or in memory, unless the author has chosen a directory.

        A runtime that has sessions in memory keeps them there until it is closed.
        """
        has_sessions = bool(self._sessions or self._messages) and not self._is_closed
        if self._is_directory_chosen or has_sessions or directory == self.directory:
            return
        self.directory = directory
        self._messages, self._saved = {}, {}

    def kept(self, session_id: str) -> list[ari.RuntimeMessage]:
        """Return the messages of a session."""
        if self.directory is None:
            return list(self._messages.get(session_id, ()))
        try:
            lines = self._file(session_id, "jsonl").read_bytes().splitlines()
        except FileNotFoundError:
            return []
        messages = (_parse_message(line, number) for number, line in enumerate(lines, 1))
        return [message for message in messages if message is not None]

    def kept_directory(self, session_id: str) -> str:
        """Return the directory of a stored session; empty if sessions are in memory."""
        if self.directory is None:
            return ""
        for line in reversed(self._file(session_id, "jsonl").read_bytes().splitlines()):
            with suppress(msgspec.DecodeError):
                return msgspec.json.decode(line, type=_KeptMessage).cwd
        return ""

    def keep(self, session_id: str, cwd: str, message: ari.RuntimeMessage) -> None:
        """Store a message of a session, and the directory that the session works in."""
        if self.directory is None:
            self._messages.setdefault(session_id, []).append(message)
            return
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._file(session_id, "jsonl")
        # After a crash the last line may be incomplete. Without a line break, the new message would
        # continue it, and both would be unreadable.
        line_break = b"" if _is_last_line_complete(path) else b"\n"
        with path.open("ab") as file:
            line: JsonObject = msgspec.to_builtins(message) | {"cwd": cwd}
            file.write(line_break + msgspec.json.encode(line) + b"\n")

    def saved(self, session_id: str) -> bytes:
        """Return the state that the framework needs to continue; empty if there is none."""
        if self.directory is None:
            return self._saved.get(session_id, b"")
        try:
            return self._file(session_id, "state").read_bytes()
        except FileNotFoundError:
            return b""

    def save(self, session_id: str, state: bytes) -> None:
        """Replace the state that the framework needs to continue."""
        if self.directory is None:
            self._saved[session_id] = state
            return
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        written = self._file(session_id, "state-written")
        with written.open("wb") as file:
            file.write(state)
            file.flush()
            os.fsync(file.fileno())  # otherwise a loss of power could leave an empty file
        written.replace(self._file(session_id, "state"))

    def failure_of(self, session_id: str) -> Exception | None:
        """Return and forget the exception that the author's code raised in a session's newest turn.

        Its text may be confidential, so events do not contain it. Renderers receive it only under
        `arp serve --debug`.
        """
        session = self._sessions.get(session_id)
        if session is None or not isinstance(session.native, TaskSession):
            return None
        failure, session.native.failure = session.native.failure, None
        return failure

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

    # -- sessions --------------------------------------------------------------------------------

    async def _create(self, request: ari.CreateSessionRequest, feed: SessionFeed) -> TaskSession:
        session_id = request.session_id or self.new_id("session")
        if _SESSION_ID.fullmatch(session_id) is None:
            allowed = "1 to 128 of A-Z a-z 0-9 _ . -"
            raise InvalidArgument(f"session_id: {allowed}, got {session_id!r:.80}")
        if request.fork_session_id:
            await self.fork(session_id, request)
        for message in request.history:
            self.keep(session_id, request.cwd, message)
        if request.history and not request.fork_session_id:
            await self.begin_with(session_id, conversation_of(request.history))
        return TaskSession(session_id, feed, self, request)

    async def _resume(self, request: ari.ResumeSessionRequest, feed: SessionFeed) -> TaskSession:
        if await self._find(request.session_id) is None:
            raise no_session(request.session_id)
        session = TaskSession(request.session_id, feed, self, request)
        if session.messages and not await self.remembers(request.session_id):
            name = f"session {request.session_id} of {self.name}"
            logger.warning("%s: its state is lost; it continues with its messages", name)
            await self.begin_with(request.session_id, conversation_of(session.messages))
        session.was_interrupted = await self.is_interrupted(request.session_id)
        return session

    def _opened(self, session: OpenSession) -> None:
        """Continue a turn that was interrupted while a question was open."""
        native = session.native
        if isinstance(native, TaskSession) and native.was_interrupted:
            session.feed.begin(origin="runtime")
            again = ari.SendMessageRequest(native.session_id, ari.RuntimeMessage())
            native.run(self.turn_type(native, again))

    def _capabilities(self) -> Sequence[ari.Capability]:
        parts = ari.Capability("parts", details={"types": ", ".join(sorted(self.part_types))})
        names = (
            "session_id", "history_seed", "resume_session", "list_sessions", "delete_session",
            "cancel_turn", "history", "deny_message", *self.more_capabilities,
        )  # fmt: skip
        stops = ari.Capability("deny_interrupt", details={"deny_continues": "yes"})
        return (*(ari.Capability(name) for name in names), parts, stops)

    async def _stored(self, cwd: str) -> Sequence[ari.RuntimeSession]:
        if self.directory is None:
            ids = list(self._messages)
        else:
            ids = [file.stem for file in self.directory.glob("*.jsonl")]
        return [self._stored_session(session_id) for session_id in ids]

    async def _find(self, session_id: str) -> ari.RuntimeSession | None:
        if _SESSION_ID.fullmatch(session_id) is None or not self.kept(session_id):
            return None
        return self._stored_session(session_id)

    def is_inside(self, stored: ari.RuntimeSession) -> bool:
        """Return `True`: no other program stores sessions in the `directory` of this runtime.

        So the sessions remain reachable if the app gets another working directory, as with each
        release.
        """
        return True

    async def _forget(self, session_id: str) -> None:
        self._messages.pop(session_id, None)
        self._saved.pop(session_id, None)
        if self.directory is not None and _SESSION_ID.fullmatch(session_id):
            for kind in ("jsonl", "state", "state-written"):
                self._file(session_id, kind).unlink(missing_ok=True)

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

    def _file(self, session_id: str, kind: str) -> Path:
        assert self.directory is not None
        return self.directory / f"{session_id}.{kind}"
