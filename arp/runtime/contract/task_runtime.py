"""`TaskRuntime`: what runtimes have in common whose agents run in this process.

Theory of operation. A turn is a coroutine (`TaskRuntime.run_turn`) in a task of its own. It tells
what happens through a `TaskTurn`, and waits there for permissions and answers. The messages of the
turn are kept, and beside them what the agent's framework needs to go on (`saved`, bytes that only
the adapter reads). Where a framework can take up a turn again that asked something when its process
ended, the adapter says so (`is_interrupted`): resuming the session then begins a turn of the
runtime's own, which asks again.
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
from arp.runtime.contract.cut_off import CUT_OFF_WORDS, CutOff, mark_of
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
from arp.values.shown import text_of

logger = logging.getLogger(__name__)

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")
"""A session's id is the name of its files."""
QUESTION_NAMES = ("message", "task", "instruction", "prompt", "description", "text", "title")
"""Where an object without a `question` has what it asks, the first that it has."""
MAX_UNSENT = 200
"""Deltas that one event joins."""


class _KeptMessage(msgspec.Struct, frozen=True):
    """What a line of the file has besides the message."""

    cwd: str = ""


class TaskTurn:
    """One turn, as the coroutine that runs it sees it: the message, and what to tell of it."""

    def __init__(self, session: TaskSession, request: ari.SendMessageRequest) -> None:
        self.session = session
        self.session_id = session.session_id
        self.turn_id = session.feed.turn.id if session.feed.turn is not None else ""
        self.cwd = session.cwd
        """The directory of the session; absolute."""
        self.message = request.message
        self.metadata = request.metadata
        self.key = request.idempotency_key
        """What the caller calls the turn; empty if it has no name for it."""
        self.history: Sequence[ari.RuntimeMessage] = tuple(session.messages)
        """What was said before, oldest first."""
        self.used: ari.Usage | None = None
        """What the turn used, if the agent says so."""
        self.calls: list[ari.PastToolCall] = []
        self.said: list[str] = []
        self.mark = ""
        """What tells the model that what was said is not complete; empty: it is."""
        self.open_calls: dict[str, tuple[str, JsonObject]] = {}
        """Name and input of the tool calls without a result, by their id."""
        self.denied: set[str] = set()
        """The calls that a person did not allow; their result says so."""
        self._asked: set[str] = set()
        """The questions that have their answer: some frameworks begin such a call again then."""
        self.is_saved = False
        """Whether what is saved of the session has the message."""
        self._unsent: list[str] = []
        """What was said since the loop ran: neighbouring deltas are one event."""
        self._feed = session.feed

    @property
    def text(self) -> str:
        """What the user said, text parts included."""
        texts = [self.message.content, *(part.text for part in self.message.parts)]
        return "\n".join(text for text in texts if text)

    @property
    def content(self) -> Sequence[ari.ContentPart]:
        """The message as parts only: what was typed is the first text."""
        typed = self.message.content
        return (*([ari.ContentPart("text", typed)] if typed else ()), *self.message.parts)

    @property
    def has_message(self) -> bool:
        """Whether a message began it; else a turn is taken up again."""
        return bool(self.message.content or self.message.parts)

    def say(self, text: str) -> None:
        """Say something."""
        self.said.append(text)
        self._unsent.append(text)
        if len(self._unsent) == 1:
            asyncio.get_running_loop().call_soon(self.flush)
        elif len(self._unsent) >= MAX_UNSENT:
            self.flush()

    def flush(self) -> None:
        """Tell what was said: before anything else, and when the loop runs."""
        if self._unsent:
            text = "".join(self._unsent)
            self._unsent.clear()
            self._feed.text(text)

    def mark_cut_off(self, reason: CutOff) -> None:
        """Mark what was said as cut off: on every screen, and for the model that reads it again."""
        self.flush()
        self.break_off(mark_of(CUT_OFF_WORDS[reason]), even_if_silent=True)
        self._feed.cut_off(reason)

    def break_off(self, mark: str, *, even_if_silent: bool = False) -> None:
        """Mark what was said as cut off, for the model alone: how the turn ends says it to people.

        Without the mark, the model takes half an answer for all that it wanted to say.
        """
        self.mark = mark
        if "".join(self.said).strip():
            self.said.append(f"\n\n{mark}")
        elif even_if_silent:
            self.said.append(mark)

    def think(self, text: str) -> None:
        """Show what the agent thinks."""
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
        """Show that a tool runs; a call that runs, or a question with its answer, changes nothing.

        Without `summary` and `kind` they are taken from the input.
        """
        self.flush()
        if call_id not in self.open_calls and call_id not in self._asked:
            self.open_calls[call_id] = (name, tool_input)
            shown = summary or summary_of(tool_input)
            self._feed.tool_call(
                call_id, name, tool_input, summary=shown, kind=kind or kind_of(tool_input)
            )

    def call_progress(self, call_id: str, content: str) -> None:
        """Show output of a tool that runs."""
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
        """Show how a tool ended, and then a component of its result.

        `denied` in `details`: it was not allowed to run.
        """
        self.flush()
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
        """Show a component of ARP, as JSON."""
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
        """Tell that a request to a model begins; `use` or `fail_request` with its id ends it.

        Args:
            request_id: No other request of the turn has it.
            model: Its name.
            provider: Who runs it.
            parameters: Of the request; headers are left out, since they may hold keys.
            tools: Names of the tools that the model may call.
            messages: Returns what the model gets; is called only if the app records it.
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
        """Tell that a request to a model has failed."""
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
        """Tell the tokens of a request to a model, and add them to those of the turn.

        A number that is not known is `None`; if none is known, nothing but the end of the request.
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
        """Ask a question, and return the answer; `None` if it is declined.

        Args:
            question_id: The same for the same question, also after a restart.
            about: What is asked: a text, or an object with the question and what belongs to it.
            schema: The JSON Schema of the answer; `None`: any text.
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
        """Ask whether a tool may run; `end_call` then shows a call that was denied as that."""
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
        """Ask for a permission or an answer, and return it; without one it is a denial.

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
    """A session whose turns are tasks: its messages, and the task of the turn that runs."""

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
        """Whether resuming it takes up a turn again."""
        self.failure: Exception | None = None
        """What the author's own code raised in the newest turn, whose text is in no event."""
        self._runtime = runtime
        self._task: asyncio.Task[None] | None = None
        self._is_closing = False

    async def send(self, request: ari.SendMessageRequest) -> None:
        """Run the turn beside."""
        self.run(self._runtime.turn_type(self, request))

    def run(self, task_turn: TaskTurn) -> None:
        """Run a turn that the feed has begun."""
        turn = self.feed.turn
        self._task = asyncio.get_running_loop().create_task(self._run(task_turn))
        self._task.add_done_callback(lambda _: self._never_ran(turn))

    async def respond(self, pending: PendingPermission, response: ari.PermissionResponse) -> None:
        """Let the turn that asked go on."""
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
        """Cancel the turn's task, and wait until it is over; what is saved stays as it is."""
        self._is_closing = True
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def abandon(self) -> None:
        """As `aclose`: what is saved has the question."""
        await self.aclose()

    async def _run(self, turn: TaskTurn) -> None:
        try:
            if turn.has_message:
                self._keep(turn.message)
            await self._runtime.run_turn(turn)
        except asyncio.CancelledError:
            if not self._is_closing:
                turn.break_off(STOPPED)
            self._keep_answer(turn)
            if not self._is_closing:
                await self._bring_in_order(turn)
            self.feed.error(Canceled("the turn was cancelled").status(), turn.used)
        except Exception as failed:
            logger.exception("a turn of %s failed", self._runtime.name)
            known = known_error(failed)
            self.failure = None if is_explained(failed, known) else failed
            turn.break_off(BROKEN)
            self._keep_answer(turn)
            await self._bring_in_order(turn)
            self.feed.error(status_of(known or failed), turn.used)
        else:
            self._keep_answer(turn)
            self.feed.result(usage=turn.used)

    async def _bring_in_order(self, turn: TaskTurn) -> None:
        """Bring what is saved in order; if that fails, the turn still says why it failed."""
        try:
            await self._runtime.cut_off(turn)
        except Exception:
            logger.exception("%s cannot bring a session in order", self._runtime.name)

    def _never_ran(self, turn: ActiveTurn | None) -> None:
        """End a turn that was cancelled before its task began: nothing of it has run then."""
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


def _message_in(line: bytes, number: int) -> ari.RuntimeMessage | None:
    """Return the message in a line; `None` if it cannot be read, as after a loss of power."""
    try:
        return msgspec.json.decode(line, type=ari.RuntimeMessage)
    except msgspec.DecodeError as error:
        logger.warning("message %d of a session cannot be read, and is left out: %s", number, error)
        return None


def _ends_whole(path: Path) -> bool:
    """Return whether a file of lines is empty or missing, or its last line is whole."""
    with suppress(FileNotFoundError), path.open("rb") as file:
        if file.seek(0, os.SEEK_END):
            file.seek(-1, os.SEEK_END)
            return file.read(1) == b"\n"
    return True


def check_loop_of(part: object) -> None:
    """Refuse a part of a framework that belongs to another event loop; its `loop` says to which.

    Raises:
        FailedPrecondition: It does; the message says what to do.
    """
    bound_to = getattr(part, "loop", None)
    if bound_to is not None and bound_to is not asyncio.get_running_loop():
        raise FailedPrecondition(
            f"{type(part).__name__} belongs to another event loop: leave it out, then each start "
            "of the app makes one"
        )


def conversation_of(history: Sequence[ari.RuntimeMessage]) -> PastMessages:
    """Return the messages of a session with their forms for models and frameworks."""
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
    """Return what is asked as an object with a `question`, or a `component` that asks by itself.

    Of an object without either, one of the names under which agents write what they want to know
    is the question, and the rest belongs to it.
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
    """Return what a tool does, as far as its input says: one with a `command` runs that."""
    is_command = isinstance(tool_input.get("command"), str)
    return ari.PermissionKind.COMMAND if is_command else ari.PermissionKind.TOOL


def summary_of(tool_input: JsonObject) -> str:
    """Return the input of a tool in one line: its command, or its values."""
    command = tool_input.get("command")
    if isinstance(command, str):
        return command
    return ", ".join(f"{name}: {text_of(value)}" for name, value in tool_input.items())


class TaskRuntime(DrivenRuntime):
    """A runtime whose turns are coroutines of this process.

    Args:
        cwd: As for every runtime.
        directory: Where sessions are kept, so that other processes find them; `None`: in memory.
    """

    permission: ClassVar[Literal["enforced", "advisory", "none"]] = "enforced"
    takes: ClassVar[frozenset[str]] = frozenset({"session_id", "history"})
    runs_commands: bool = False
    more_capabilities: ClassVar[tuple[str, ...]] = ()
    """What the adapter does besides, by name."""
    saves_state: ClassVar[bool] = True
    """Whether each session has a state, a JSON object."""
    turn_type: ClassVar[type[TaskTurn]] = TaskTurn
    """What `run_turn` gets."""

    def __init__(self, *, cwd: str | Path = ".", directory: str | Path | None = None) -> None:
        super().__init__(cwd=cwd)
        self.directory = Path(directory) if directory is not None else None
        self._is_placed = directory is not None
        """Whether its author has said where sessions are kept."""
        self._messages: dict[str, list[ari.RuntimeMessage]] = {}
        self._saved: dict[str, bytes] = {}

    # -- what an adapter says --------------------------------------------------------------------

    @abstractmethod
    async def run_turn(self, turn: TaskTurn) -> None:
        """Run a turn to its end; an exception is its error.

        A turn that is taken up again has no message.
        """

    async def is_interrupted(self, session_id: str) -> bool:
        """Return whether the last turn asked something, and can be taken up again."""
        return False

    async def fork(self, session_id: str, request: ari.CreateSessionRequest) -> None:
        """Begin as another session was after a turn; only if `takes` has `fork_session_id`.

        Raises:
            NotFound: There is no such session, or turn.
        """
        raise NotFound("nothing is known of earlier turns")

    async def begin_with(self, session_id: str, past: PastMessages) -> None:
        """Let a new session begin with what was said before; it is in `turn.history` anyway."""
        return

    async def remembers(self, session_id: str) -> bool:
        """Return whether what the framework needs to go on is there and can be read."""
        if not self.saves_state:
            return True
        try:
            return isinstance(msgspec.json.decode(self.saved(session_id)), dict)
        except msgspec.DecodeError:
            return False

    async def cut_off(self, turn: TaskTurn) -> None:
        """Bring what is saved in order after a turn that failed, or that a person cancelled.

        The next message must be possible, and what the turn asked is not asked again.
        """
        return

    # -- what is kept ----------------------------------------------------------------------------

    def keep_in(self, directory: Path | None) -> None:
        """Keep sessions in a directory, or in memory, unless the author has given a directory.

        A runtime with sessions in memory keeps them there until it is closed.
        """
        has_sessions = bool(self._sessions or self._messages) and not self._is_closed
        if self._is_placed or has_sessions or directory == self.directory:
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
        return [one for number, line in enumerate(lines, 1) if (one := _message_in(line, number))]

    def kept_directory(self, session_id: str) -> str:
        """Return where a session worked; empty for one in memory, which is open still."""
        if self.directory is None:
            return ""
        for line in reversed(self._file(session_id, "jsonl").read_bytes().splitlines()):
            with suppress(msgspec.DecodeError):
                return msgspec.json.decode(line, type=_KeptMessage).cwd
        return ""

    def keep(self, session_id: str, cwd: str, message: ari.RuntimeMessage) -> None:
        """Keep a message of a session, and where it works."""
        if self.directory is None:
            self._messages.setdefault(session_id, []).append(message)
            return
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._file(session_id, "jsonl")
        torn = b"" if _ends_whole(path) else b"\n"
        with path.open("ab") as file:
            line: JsonObject = msgspec.to_builtins(message) | {"cwd": cwd}
            file.write(torn + msgspec.json.encode(line) + b"\n")

    def saved(self, session_id: str) -> bytes:
        """Return what the framework needs to go on; empty if there is nothing."""
        if self.directory is None:
            return self._saved.get(session_id, b"")
        try:
            return self._file(session_id, "state").read_bytes()
        except FileNotFoundError:
            return b""

    def save(self, session_id: str, state: bytes) -> None:
        """Keep what the framework needs to go on, in the place of what was kept before."""
        if self.directory is None:
            self._saved[session_id] = state
            return
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        written = self._file(session_id, "state-written")
        with written.open("wb") as file:
            file.write(state)
            file.flush()
            os.fsync(file.fileno())  # or a loss of power leaves an empty file under the name
        written.replace(self._file(session_id, "state"))

    def failure_of(self, session_id: str) -> Exception | None:
        """Return what the author's own code raised in the newest turn of a session, and forget it.

        Its text may hold what nobody is to see, so no event has it; the author's own screen may.
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
        if _ID.fullmatch(session_id) is None:
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
            logger.warning("%s: its state is lost; it goes on with its messages", name)
            await self.begin_with(request.session_id, conversation_of(session.messages))
        session.was_interrupted = await self.is_interrupted(request.session_id)
        return session

    def _opened(self, session: OpenSession) -> None:
        """Take up again a turn that was cut off while it asked something."""
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
        if _ID.fullmatch(session_id) is None or not self.kept(session_id):
            return None
        return self._stored_session(session_id)

    def is_inside(self, stored: ari.RuntimeSession) -> bool:
        """Return `True`: no other program keeps sessions in the directory of this runtime.

        They stay its own where the app moves to another directory, as with each release.
        """
        return True

    async def _forget(self, session_id: str) -> None:
        self._messages.pop(session_id, None)
        self._saved.pop(session_id, None)
        if self.directory is not None and _ID.fullmatch(session_id):
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
