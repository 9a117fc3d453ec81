"""Parser of Claude Code's messages: turns each message into events.

Theory of operation. A turn lasts from a message of ours to its `result`. Claude Code also begins
turns by itself when background work has ended: such a turn begins with `system/init` while no turn
is active, and its `result` names an origin. A `result` ends the active turn only if it answers our
message, or if no message of ours is unanswered.

Claude Code sends each text twice: as deltas and as a complete block. A block is ignored if its
deltas were received.
"""

from __future__ import annotations

import functools
import json
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

import msgspec

from arp.protocol.json_value import Json, JsonObject
from arp.runtime.contract.cut_off import cut_off_of
from arp.runtime.contract.errors import AriCode, ErrorStatus, FailedPrecondition
from arp.runtime.contract.feed import SessionFeed
from arp.runtime.contract.types import Lifecycle, ListedItem, PermissionKind, Usage

Line: TypeAlias = dict[str, Any]
"""One message of Claude Code: a JSON object."""

KINDS: dict[str, PermissionKind] = {
    "Bash": PermissionKind.COMMAND,
    "PowerShell": PermissionKind.COMMAND,
    "Edit": PermissionKind.EDIT,
    "MultiEdit": PermissionKind.EDIT,
    "Write": PermissionKind.EDIT,
    "NotebookEdit": PermissionKind.EDIT,
    "Read": PermissionKind.READ,
    "Glob": PermissionKind.READ,
    "Grep": PermissionKind.READ,
    "WebFetch": PermissionKind.NETWORK,
    "WebSearch": PermissionKind.NETWORK,
    "AskUserQuestion": PermissionKind.QUESTION,
    "ExitPlanMode": PermissionKind.QUESTION,
}
"""Kinds of Claude Code's tools; all other tools have the kind `tool`."""

_SUMMARY_FIELDS = (
    "command", "file_path", "notebook_path", "url", "query", "pattern", "plan", "description",
)  # fmt: skip
_TODO_STATES = {"pending": "pending", "in_progress": "active", "completed": "done"}
_CODES = {
    400: AriCode.INVALID_ARGUMENT,
    401: AriCode.PERMISSION_DENIED,
    403: AriCode.PERMISSION_DENIED,
    404: AriCode.INVALID_ARGUMENT,
    408: AriCode.DEADLINE_EXCEEDED,
    413: AriCode.INVALID_ARGUMENT,
    422: AriCode.INVALID_ARGUMENT,
    429: AriCode.UNAVAILABLE,
    504: AriCode.DEADLINE_EXCEEDED,
}
"""Error codes by HTTP status of the model's provider; all other statuses are `Unavailable`."""


NEW_SESSION_COMMANDS = frozenset({"/clear", "/new", "/reset"})
"""Commands that make Claude Code switch to another session. They are refused, because the turns
would then belong to a session that has another id."""

_LIMITS = {"error_max_turns": "turns", "error_max_budget_usd": "budget"}
"""Name of the limit that ended a turn, by the subtype of the `result`."""


_ENDED = frozenset(("completed", "failed", "killed", "stopped"))
"""States of a task that has ended."""


class MessageReader:
    """Reports the messages of one Claude Code process to the feed of its session.

    Args:
        feed: Feed of the session.
        turn_ended: Called after the end of each turn.
    """

    def __init__(self, feed: SessionFeed, turn_ended: Callable[[], None]) -> None:
        self.model = ""
        self.mode = ""
        self.is_busy = False
        """Whether Claude Code works on a turn, ours or one of its own."""
        self.background_agents: set[str] = set()
        """Ids of the running sub-agents."""
        self._feed = feed
        self._turn_ended = turn_ended
        self._message_id = ""
        """Id of our message that has no result yet; empty if there is none."""
        self._is_command = False
        self._streamed: set[tuple[str, str]] = set()
        """Message id and block type of each block that was received as deltas."""
        self._names: dict[str, str] = {}
        """Names of tool calls by id. A call of a sub-agent can outlive the turn that it was made
        in."""
        self._agents: dict[str, tuple[str, str]] = {}
        """Id and name of each sub-agent, by the id of the call that started it."""
        self._awaited_agents: dict[str | None, Line] = {}
        """`task_started` messages of the sub-agents that the agent waits for, by the id of the
        call."""
        self._reported = Usage()
        """Usage of all requests to models that events have already reported."""
        self._context = 0
        """Tokens of the newest request to the model, including its answer."""
        self._todos: dict[str, JsonObject] = {}
        """The agent's list, by task id."""
        self._request_id = ""
        """Id of the request to the model that is being answered."""
        self._request_model = ""
        self._request_usage: Line = {}
        self._cost = 0.0

    def sent(self, message_id: str, content: str) -> None:
        """Record that our message was sent."""
        self._message_id, self.is_busy = message_id, True
        self._is_command = content.startswith("/")

    def read(self, line: Line) -> None:
        """Parse one message and report its events.

        Raises:
            LookupError, TypeError, ValueError, AttributeError: The message has an unexpected form.
        """
        handle = _HANDLERS.get(line.get("type", ""))
        if handle is not None:
            handle(self, line)

    def begin_own_turn(self) -> None:
        """Begin a turn that no message of ours began, unless a turn is active."""
        with suppress(FailedPrecondition):
            self._feed.begin(origin="runtime")

    # -- the session -----------------------------------------------------------------------------

    def _system(self, line: Line) -> None:
        handle = _SYSTEM_HANDLERS.get(line.get("subtype", ""))
        if handle is not None:
            handle(self, line)

    def _init(self, line: Line) -> None:
        self.is_busy = True
        self.begin_own_turn()
        self.reported(line.get("model"), line.get("permissionMode"))

    def _status(self, line: Line) -> None:
        self.reported(None, line.get("permissionMode"))

    def reported(self, model: object, mode: object) -> None:
        """Record the model and the mode that Claude Code reports; emit changes."""
        if isinstance(model, str) and model and model != self.model:
            before, self.model = self.model, model
            if before:
                self._feed.tell(Lifecycle.MODEL, model)
        if isinstance(mode, str) and mode and mode != self.mode:
            before, self.mode = self.mode, mode
            if before:
                self._feed.tell(Lifecycle.MODE, mode)

    def _control_response(self, line: Line) -> None:
        """Record the response to a switch; the model may differ from the requested one."""
        answer = line["response"].get("response") or {}
        self.reported(answer.get("model"), answer.get("mode"))

    def _retry(self, line: Line) -> None:
        known = {
            "attempt": line.get("attempt"),
            "delay_ms": line.get("retry_delay_ms"),
            "http_status": line.get("error_status"),
        }
        self._feed.tell(Lifecycle.RETRYING, str(line.get("error") or ""), **_without_none(known))

    def _compacted(self, line: Line) -> None:
        about = line.get("compact_metadata") or {}
        known = {
            "trigger": about.get("trigger"),
            "tokens_before": about.get("pre_tokens"),
            "tokens_after": about.get("post_tokens"),
        }
        self._feed.tell(Lifecycle.COMPACTION, **_without_none(known))

    def _rate_limit(self, line: Line) -> None:
        about = line["rate_limit_info"]
        if about["status"] == "allowed":
            return
        resets = about.get("resetsAt")
        wait = max(0, int(resets - time.time())) if isinstance(resets, int | float) else None
        known = {
            "status": "reached" if about["status"] == "rejected" else "warning",
            "limit": about.get("rateLimitType"),
            "used": about.get("utilization"),
            "resets_at_s": resets,
            "retry_after_s": wait,
        }
        self._feed.tell(Lifecycle.RATE_LIMIT, **_without_none(known))

    def _task_started(self, line: Line) -> None:
        if line.get("task_type") == "local_agent":
            self.background_agents.add(line["task_id"])
            if line.get("is_backgrounded") is False:
                self._awaited_agents[line.get("tool_use_id")] = line
            name = line.get("subagent_type") or line.get("description") or ""
            call_id = line.get("tool_use_id") or ""
            self._agents[call_id] = line["task_id"], name
            objective = line.get("prompt") or line.get("description") or ""
            known = {"name": name, "objective": objective, "tool_call_id": call_id}
            self._subagent(line, "started", **known)

    def _task_progress(self, line: Line) -> None:
        if line["task_id"] in self.background_agents:
            self._subagent(line, "running")

    def _task_updated(self, line: Line) -> None:
        patch = line.get("patch") or {}
        awaited_ids = {one["task_id"] for one in self._awaited_agents.values()}
        # If the agent waits for the task, the tool result follows and also has the task's text.
        if patch.get("status") in _ENDED and line["task_id"] not in awaited_ids:
            self._task_ended(line, str(patch["status"]))

    def _task_notification(self, line: Line) -> None:
        self._task_ended(line, str(line.get("status")))

    def _task_ended(self, line: Line, status: str) -> None:
        """Report the end of a task once, because Claude Code may send it twice."""
        if line["task_id"] in self.background_agents:
            self.background_agents.discard(line["task_id"])
            self._subagent(line, "completed" if status == "completed" else "failed")

    def _subagent(self, line: Line, status: str, **details: Json) -> None:
        content = str(line.get("summary") or line.get("description") or "")
        subagent: JsonObject = {"subagent_id": line["task_id"], "status": status, **details}
        self._feed.tell(Lifecycle.SUBAGENT, content, **subagent)

    def _hook_started(self, line: Line) -> None:
        self._hook(line, "started")

    def _hook_ended(self, line: Line) -> None:
        failed = line.get("outcome") == "error"
        reason = str(line.get("stderr") or line.get("output") or "") if failed else ""
        self._hook(line, "failed" if failed else "completed", reason.strip())

    def _hook(self, line: Line, status: str, content: str = "") -> None:
        name, event = str(line.get("hook_name") or ""), str(line.get("hook_event") or "")
        hook_id = str(line.get("hook_id") or line.get("uuid") or "")
        hook = {"hook_id": hook_id, "name": name or event, "event": event}
        self._feed.tell(Lifecycle.HOOK, content, **hook, status=status)

    # -- output of the model ---------------------------------------------------------------------

    def _stream_event(self, line: Line) -> None:
        if line.get("parent_tool_use_id"):
            return
        event = line["event"]
        kind = event["type"]
        if kind == "message_start":
            self._request_id = event["message"].get("id", "")
            self._request_model = event["message"].get("model", "")
            self._request_usage = event["message"].get("usage") or {}
            self._feed.tell(
                Lifecycle.MODEL_REQUEST,
                status="started",
                request_id=self._request_id,
                model=self._request_model,
            )
        elif kind == "content_block_delta":
            self._delta(event["delta"])
        elif kind == "message_delta" and event.get("usage"):
            # Some providers report the input tokens only at the start.
            used = usage_of(self._request_usage | _without_none(event["usage"]))
            if used.input_tokens is not None:
                self._context = used.input_tokens + (used.output_tokens or 0)
            self._reported = self._reported.plus(used)
            fields = msgspec.to_builtins(used) | {"request_id": self._request_id}
            self._feed.tell(Lifecycle.USAGE, model=self._request_model, **fields)

    def _delta(self, delta: Line) -> None:
        if delta["type"] == "text_delta":
            self._streamed.add((self._request_id, "text"))
            self._feed.text(delta["text"])
        elif delta["type"] == "thinking_delta":
            self._streamed.add((self._request_id, "thinking"))
            self._feed.thinking(delta["thinking"])

    def _assistant(self, line: Line) -> None:
        message = line["message"]
        is_subagent = bool(line.get("parent_tool_use_id"))
        # The text of an error becomes the message of the turn's terminal event.
        is_error = bool(line.get("is_api_error_message") or line.get("error"))
        for block in message["content"]:
            kind = block["type"]
            if kind in ("tool_use", "server_tool_use"):
                self._tool_use(block, line)
            elif is_subagent or is_error or (message.get("id"), kind) in self._streamed:
                continue
            elif kind == "text":
                self._feed.text(block["text"])
            elif kind == "thinking":
                self._feed.thinking(block["thinking"])

    def _tool_use(self, block: Line, line: Line) -> None:
        call_id, name, tool_input = block["id"], block["name"], block["input"]
        self._names[call_id] = name
        details: JsonObject = {}
        if diffs := list(intended_diffs(name, tool_input)):
            details["diffs"] = diffs
        if parent := line.get("parent_tool_use_id"):
            details["parent_tool_call_id"] = parent
            details["subagent_id"], details["subagent"] = self._agents.get(parent, (parent, ""))
        self._feed.tool_call(
            call_id, name, tool_input, summary=summary_of(name, tool_input), kind=kind_of(name),
            **details,
        )  # fmt: skip

    # -- tool results ----------------------------------------------------------------------------

    def _user(self, line: Line) -> None:
        content = line["message"]["content"]
        if isinstance(content, str):
            self._command_output(content)
            return
        results = [block for block in content if block["type"] == "tool_result"]
        # A line has one `tool_use_result`. With several results it is not known which of them it
        # belongs to, and details of one call must not appear on another.
        if len(results) > 1:
            line = {**line, "tool_use_result": None}
        for block in results:
            self._tool_result(block, line)

    def _command_output(self, content: str) -> None:
        """Emit the output of a command such as /compact, which is not an answer of the model."""
        found = re.fullmatch(
            r"<local-command-(?:stdout|stderr)>(.*)</local-command-\w+>", content, re.DOTALL
        )
        if found and self._is_command:
            self._feed.text(found[1].strip())

    def _tool_result(self, block: Line, line: Line) -> None:
        call_id = block["tool_use_id"]
        name = self._names.pop(call_id, "")
        content, is_error = text_of(block.get("content")), bool(block.get("is_error"))
        details: JsonObject = {}
        returned = line.get("tool_use_result")
        if kind_of(name) is PermissionKind.COMMAND:
            code = exit_code(content, is_error, returned)
            if code is not None:
                details["exit_code"] = code
            if (
                isinstance(returned, dict)
                and returned.get("stdout") == returned.get("stderr") == ""
            ):
                details["no_output"] = True  # the content is then a sentence that says so
        if isinstance(returned, dict) and (diffs := list(made_diffs(returned))):
            details["diffs"] = diffs
        if _is_denied(call_id, line.get("tool_result_meta") or ()):
            details["denied"] = True
        self._feed.tool_result(call_id, content, name=name, is_error=is_error, **details)
        if task := self._awaited_agents.pop(call_id, None):
            self._task_ended({**task, "summary": content}, "failed" if is_error else "completed")
        if isinstance(returned, dict) and not line.get("parent_tool_use_id"):
            self._plan(name, returned)

    def _plan(self, tool_name: str, returned: Line) -> None:
        """Update the agent's list from a tool result: the complete list, or one task."""
        if tool_name == "TodoWrite" and isinstance(returned.get("newTodos"), list):
            self._todos = {
                str(number): _todo(todo.get("content"), todo.get("status"))
                for number, todo in enumerate(returned["newTodos"])
            }
        elif tool_name == "TaskCreate" and isinstance(returned.get("task"), dict):
            task = returned["task"]
            self._todos[str(task["id"])] = _todo(task.get("subject"), "pending")
        elif tool_name == "TaskUpdate" and returned.get("success"):
            task_id = str(returned["taskId"])
            status = (returned.get("statusChange") or {}).get("to")
            known = self._todos.pop(task_id, _todo(f"Task {task_id}", "pending"))
            if status != "deleted":
                self._todos[task_id] = _todo(known["text"], status) if status else known
        else:
            return
        self._feed.tell(Lifecycle.PLAN, todos=list(self._todos.values()))

    # -- the end of a turn -----------------------------------------------------------------------

    def _result(self, line: Line) -> None:
        cost = self._cost_of(line)
        self.is_busy = False
        if self._message_id and not self._is_for_our_message(line):
            return
        self._message_id = ""
        self._streamed.clear()
        error = error_of_result(line)
        usage = usage_of(line.get("usage") or {})
        if error is not None and not (usage.input_tokens or usage.output_tokens):
            # For an interrupted turn, Claude Code reports 0 even if the model has read tokens.
            usage = Usage()
        if cost is not None:
            usage = msgspec.structs.replace(usage, cost=cost, currency="USD")
        self._report_rest(line)
        for task in self._awaited_agents.values():
            self._task_ended({**task, "summary": "stopped"}, "stopped")
        self._awaited_agents.clear()
        if error is not None:
            self._feed.error(error, usage)
        else:
            known = {
                "duration_ms": line.get("duration_ms"),
                "model_turns": line.get("num_turns"),
                "stop_reason": line.get("stop_reason"),
            }
            if (cut := cut_off_of(line.get("stop_reason"))) is not None:
                self._feed.cut_off(cut)
            self._feed.result(line.get("result") or None, usage, **_without_none(known))
        self._turn_ended()

    def _report_rest(self, line: Line) -> None:
        """Report usage that is known only at the end of a turn.

        It consists of the usage of sub-agents and compactions, and of the size of the context.
        """
        of_models: Line = line.get("modelUsage") or {}
        used = functools.reduce(Usage.plus, map(_usage_of_model, of_models.values()), Usage())
        rest = _unreported_usage(used, self._reported)
        if rest is not None:
            self._reported = used
            fields = msgspec.to_builtins(rest)
            self._feed.tell(Lifecycle.USAGE, model=self.model, **fields)
        most = (of_models.get(self.model) or {}).get("contextWindow")
        if self._context:
            known = {"context_tokens": self._context, "context_max": most}
            self._feed.tell(Lifecycle.USAGE, **_without_none(known))

    def _is_for_our_message(self, line: Line) -> bool:
        named = line.get("user_message_uuids") or [line.get("user_message_uuid")]
        if self._message_id in named:
            return True
        # The result of an interrupted turn names no message. The result of a turn that Claude Code
        # began itself names an origin; it must not end a turn that our message began.
        origin = line.get("origin") or {}
        return named == [None] and origin.get("kind", "human") == "human"

    def _cost_of(self, line: Line) -> float | None:
        """Return the cost of the turn; Claude Code reports the sum since its process began."""
        total = line.get("total_cost_usd")
        if total is None:
            return None
        since, self._cost = float(total) - self._cost, float(total)
        return round(max(since, 0.0), 9)


_HANDLERS: dict[str, Callable[[MessageReader, Line], None]] = {
    "system": MessageReader._system,
    "stream_event": MessageReader._stream_event,
    "assistant": MessageReader._assistant,
    "user": MessageReader._user,
    "result": MessageReader._result,
    "rate_limit_event": MessageReader._rate_limit,
    "control_response": MessageReader._control_response,
}
_SYSTEM_HANDLERS: dict[str, Callable[[MessageReader, Line], None]] = {
    "init": MessageReader._init,
    "status": MessageReader._status,
    "api_retry": MessageReader._retry,
    "compact_boundary": MessageReader._compacted,
    "task_started": MessageReader._task_started,
    "task_progress": MessageReader._task_progress,
    "task_updated": MessageReader._task_updated,
    "task_notification": MessageReader._task_notification,
    "hook_started": MessageReader._hook_started,
    "hook_response": MessageReader._hook_ended,
}


# -- values --------------------------------------------------------------------------------------


def kind_of(tool_name: str) -> PermissionKind:
    """Return the kind of a tool."""
    return KINDS.get(tool_name, PermissionKind.TOOL)


def summary_of(tool_name: str, tool_input: JsonObject) -> str:
    """Return one line about a tool call for people, such as the command."""
    if tool_name == "AskUserQuestion" and isinstance(tool_input.get("questions"), list):
        questions = tool_input["questions"]
        assert isinstance(questions, list)
        return " ".join(str(one.get("question", "")) for one in questions if isinstance(one, dict))
    for name in _SUMMARY_FIELDS:
        value = tool_input.get(name)
        if isinstance(value, str) and value:
            return value
    return json.dumps(tool_input, ensure_ascii=False) if tool_input else ""


def _todo(text: Json, status: object) -> JsonObject:
    return {"text": str(text), "status": _TODO_STATES.get(str(status), "pending")}


def intended_diffs(tool_name: str, tool_input: JsonObject) -> Iterator[JsonObject]:
    """Yield the changes that a call is about to make, as far as its input shows them."""
    path = tool_input.get("file_path")
    if tool_name == "Write":
        yield {"path": path, "before": "", "after": tool_input.get("content", "")}
    elif tool_name == "Edit":
        before, after = tool_input.get("old_string", ""), tool_input.get("new_string", "")
        yield {"path": path, "before": before, "after": after}


def made_diffs(returned: Line) -> Iterator[JsonObject]:
    """Yield the changes that a call has made, each with the lines around it."""
    path = returned.get("filePath")
    if returned.get("type") == "create":
        yield {"path": path, "before": "", "after": returned.get("content", "")}
    for hunk in returned.get("structuredPatch") or ():
        lines = hunk["lines"]
        yield {
            "path": path,
            "before": "\n".join(line[1:] for line in lines if line[:1] in ("-", " ")),
            "after": "\n".join(line[1:] for line in lines if line[:1] in ("+", " ")),
            "line": hunk.get("oldStart", 1),
        }


def exit_code(content: str, is_error: bool, returned: object) -> int | None:
    """Return the exit code of a command; `None` if it is unknown.

    Claude Code interprets some codes, such as 1 of grep, and does not report them as numbers.
    """
    if found := re.match(r"Exit code (\d+)", content):
        return int(found[1])
    if is_error or not isinstance(returned, dict):
        return None
    is_known = not any(
        returned.get(name)
        for name in ("interrupted", "backgroundTaskId", "returnCodeInterpretation")
    )
    return 0 if is_known else None


def _is_denied(call_id: str, about: Sequence[Line]) -> bool:
    for one in about:
        if one.get("id") == call_id:
            decision = (one.get("permission_decision") or {}).get("decision", "accept")
            return decision != "accept" or one.get("non_execution_kind") == "user-rejected"
    return False


def text_of(content: object) -> str:
    """Return the text of a content, which is a text or a list of blocks."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = [
        block["text"] if block.get("type") == "text" else f"[{block.get('type')}]"
        for block in content
    ]
    return "\n".join(texts)


def usage_of(usage: Line) -> Usage:
    """Return the usage of a turn or a request; cached tokens are added to the input."""
    cached = usage.get("cache_read_input_tokens")
    details = usage.get("output_tokens_details") or {}
    return Usage(
        _input_tokens(usage.get("input_tokens"), cached, usage.get("cache_creation_input_tokens")),
        usage.get("output_tokens"),
        cached,
        details.get("thinking_tokens"),
    )


def _input_tokens(beside: int | None, *cached: int | None) -> int | None:
    """Return the number of input tokens including cached ones; `None` if it is unknown."""
    return None if beside is None else beside + sum(one or 0 for one in cached)


def _usage_of_model(used: Line) -> Usage:
    """Return the usage of all requests to a model since the process began."""
    cached = used.get("cacheReadInputTokens")
    return Usage(
        _input_tokens(used.get("inputTokens"), cached, used.get("cacheCreationInputTokens")),
        used.get("outputTokens"),
        cached,
    )


def _unreported_usage(used: Usage, reported: Usage) -> Usage | None:
    """Return the usage that no event has reported; `None` if there is none."""
    read = (used.input_tokens or 0) - (reported.input_tokens or 0)
    written = (used.output_tokens or 0) - (reported.output_tokens or 0)
    if read < 0 or written <= 0:
        return None
    cached = used.cached_tokens
    rest = None if cached is None else max(cached - (reported.cached_tokens or 0), 0)
    return Usage(None if used.input_tokens is None else read, written, rest)


def error_of_result(line: Line) -> ErrorStatus | None:
    """Return the error that ended a turn; `None` if it completed.

    The subtype alone does not decide: a `success` can have `is_error` or an error status.
    """
    subtype, status = line.get("subtype"), line.get("api_error_status")
    reason = str(line.get("terminal_reason") or "")
    if not line.get("is_error") and subtype == "success" and status is None:
        return None
    errors = line.get("errors") or ()
    message = "; ".join(map(str, errors)) or str(line.get("result") or "") or str(subtype)
    details: JsonObject = {"reason": reason} if reason else {}
    if reason.startswith("aborted"):
        return ErrorStatus(AriCode.CANCELED, "the turn was interrupted", details=details)
    if isinstance(status, int):
        code = _CODES.get(status, AriCode.UNAVAILABLE)
        is_retryable = code in (AriCode.UNAVAILABLE, AriCode.DEADLINE_EXCEEDED)
        return ErrorStatus(code, message, is_retryable, {**details, "http_status": status})
    if subtype in _LIMITS:
        limited = {**details, "limit": _LIMITS[subtype]}
        return ErrorStatus(AriCode.FAILED_PRECONDITION, message, details=limited)
    if reason == "api_error":
        return ErrorStatus(AriCode.UNAVAILABLE, message, True, details)
    return ErrorStatus(AriCode.INTERNAL, message, details=details)


def commands_of(info: Line) -> list[ListedItem]:
    """Return the commands that Claude Code has listed, except `NEW_SESSION_COMMANDS`."""
    return [
        ListedItem(one["name"], one.get("description", ""), hint=one.get("argumentHint", ""))
        for one in info.get("commands") or ()
        if f"/{one['name']}" not in NEW_SESSION_COMMANDS
    ]


def _without_none(known: dict[str, Any]) -> JsonObject:
    return {name: value for name, value in known.items() if value is not None}
