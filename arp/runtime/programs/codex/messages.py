"""The messages of `codex app-server` as values, and their meaning in ARI.

All functions are pure. Only fields that are read are defined here. All other fields are ignored, so
that a newer Codex does not break a session. `codex app-server generate-json-schema` writes the
complete definitions.
"""

from __future__ import annotations

import base64
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple, TypeVar

import msgspec

from arp.protocol.json_value import Json, JsonObject
from arp.runtime.contract import types as ari
from arp.runtime.contract.cut_off import CUT_OFF_WORDS, CutOffReason
from arp.runtime.contract.errors import (
    AriCode,
    AriError,
    ErrorStatus,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    RuntimeInternal,
    Unavailable,
    Unimplemented,
)
from arp.runtime.contract.feed import one_line
from arp.runtime.programs.json_rpc_peer import METHOD_NOT_FOUND, JsonRpcError


class FileChange(msgspec.Struct, frozen=True, rename="camel"):
    """A file that a patch changes."""

    path: str
    diff: str = ""
    """Text of a new or deleted file; for a changed file, a unified diff without file names."""
    kind: JsonObject = msgspec.field(default_factory=dict)


class CodexItem(msgspec.Struct, frozen=True, rename="camel"):
    """An item of a turn: a message, a thought, a command, a change of files."""

    type: str
    id: str
    status: str | None = None
    text: str | None = None
    command: str | None = None
    cwd: str | None = None
    aggregated_output: str | None = None
    exit_code: int | None = None
    duration_ms: int | None = None
    changes: tuple[FileChange, ...] = ()
    server: str | None = None
    tool: str | None = None
    arguments: Json = None
    query: str | None = None
    path: str | None = None
    prompt: str | None = None
    receiver_thread_ids: tuple[str, ...] = ()
    summary: Json = None
    content: Json = None
    result: Json = None
    error: Json = None


class TurnFailure(msgspec.Struct, frozen=True, rename="camel"):
    """Reason why a turn failed, or why a request to the model is repeated."""

    message: str
    codex_error_info: Json = None
    additional_details: str | None = None


class CodexTurn(msgspec.Struct, frozen=True, rename="camel"):
    """A turn, as Codex reports it."""

    id: str
    status: str = "inProgress"
    items: tuple[CodexItem, ...] = ()
    error: TurnFailure | None = None
    started_at: int | None = None


class StoredThread(msgspec.Struct, frozen=True, rename="camel"):
    """A thread that Codex stores."""

    id: str
    cwd: str = ""
    preview: str = ""
    name: str | None = None
    model: str | None = None
    model_provider: str = ""
    created_at: int = 0
    updated_at: int = 0
    parent_thread_id: str | None = None
    agent_nickname: str | None = None
    agent_role: str | None = None
    turns: tuple[CodexTurn, ...] = ()


class OpenThread(msgspec.Struct, frozen=True, rename="camel"):
    """The answer to `thread/start` and `thread/resume`: the settings that Codex uses."""

    thread: StoredThread
    model: str
    model_provider: str
    approval_policy: Json
    sandbox: JsonObject
    cwd: str = ""
    instruction_sources: tuple[str, ...] = ()


class TokenCounts(msgspec.Struct, frozen=True, rename="camel"):
    """Tokens of one request to the model, or of all requests."""

    input_tokens: int | None = None
    cached_input_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_output_tokens: int | None = None
    total_tokens: int | None = None

    def usage(self) -> ari.Usage:
        """Return the counts as a value of ARI."""
        return ari.Usage(
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
            cached_tokens=self.cached_input_tokens,
            reasoning_tokens=self.reasoning_output_tokens,
        )


class TokenUsage(msgspec.Struct, frozen=True, rename="camel"):
    """Tokens of the newest request, and of the whole thread."""

    last: TokenCounts
    total: TokenCounts
    model_context_window: int | None = None


class LimitWindow(msgspec.Struct, frozen=True, rename="camel"):
    """Usage of a limit in its time window."""

    used_percent: float
    window_duration_mins: int | None = None
    resets_at: int | None = None


class AccountLimits(msgspec.Struct, frozen=True, rename="camel"):
    """Limits of an account, as far as Codex knows them."""

    limit_id: str | None = None
    limit_name: str | None = None
    primary: LimitWindow | None = None
    secondary: LimitWindow | None = None
    rate_limit_reached_type: str | None = None


NEARLY_REACHED = (80, 90, 95)
"""Percentages of a limit at which people get a warning."""


class LimitState(NamedTuple):
    """How near a limit is."""

    name: str
    step: int
    """Highest step that was reached: one of `NEARLY_REACHED`, or 100; 0 means that there is no
    warning."""
    details: JsonObject
    """Details of the event."""


def limits_of(limits: AccountLimits) -> list[LimitState]:
    """Return how near the limits of an account are."""
    found: list[LimitState] = []
    of = limits.limit_name or limits.limit_id or "codex"
    for window in filter(None, (limits.primary, limits.secondary)):
        name = f"{of}, {_duration(window.window_duration_mins)}"
        step = max((one for one in (*NEARLY_REACHED, 100) if window.used_percent >= one), default=0)
        details: JsonObject = {
            "limit": name,
            "status": "reached" if step == 100 else "warning",
            "used": window.used_percent / 100,
        }
        if window.resets_at is not None:
            details["resets_at_s"] = window.resets_at
        found.append(LimitState(name, step, details))
    if limits.rate_limit_reached_type and not any(one.step == 100 for one in found):
        name = limits.rate_limit_reached_type
        found.append(LimitState(name, 100, {"limit": name, "status": "reached"}))
    return found


def _duration(minutes: int | None) -> str:
    """Return the length of a limit's time window: `5 hours`, `7 days`."""
    if not minutes:
        return "in all"
    units = ((1_440, "day"), (60, "hour"), (1, "minute"))
    size, unit = next(one for one in units if minutes % one[0] == 0)
    return f"{minutes // size} {unit}{'s' * (minutes != size)}"


T = TypeVar("T")


def parse_answer(answer: Json, kind: type[T]) -> T:
    """Return an answer of Codex as a value.

    Raises:
        RuntimeInternal: It has another form.
    """
    try:
        return msgspec.convert(answer, kind)
    except msgspec.ValidationError as unknown:
        raise RuntimeInternal(f"this version of Codex answers otherwise: {unknown}") from unknown


class HookRun(msgspec.Struct, frozen=True, rename="camel"):
    """A hook that runs or has run."""

    id: str
    event_name: str = ""
    status: str = "running"
    status_message: str | None = None
    duration_ms: int | None = None
    entries: tuple[JsonObject, ...] = ()

    def details(self) -> JsonObject:
        """Return the details of the hook's event."""
        ends = {"running": "started", "failed": "failed"}
        known: JsonObject = {
            "hook_id": self.id,
            "name": self.status_message or self.event_name,
            "event": self.event_name,
            "status": ends.get(self.status, "completed"),
        }
        if self.status in ("blocked", "stopped"):
            known["decision"] = "deny"
        if self.duration_ms is not None:
            known["duration_ms"] = self.duration_ms
        return known

    def text(self) -> str:
        """Return the output of the hook."""
        return "\n".join(str(entry.get("text", "")) for entry in self.entries)


# -- modes ---------------------------------------------------------------------------------------


class CodexMode(NamedTuple):
    """A combination of approval policy and sandbox."""

    approval_policy: str
    sandbox: str
    """Sandbox in the form of `thread/start`."""
    policy_type: str
    """The same sandbox in the form of `turn/start` and of answers."""
    choice: ari.Choice


DEFAULT_MODE = "default"

MODES: dict[str, CodexMode] = {
    mode.choice.id: mode
    for mode in (
        CodexMode(
            "on-request",
            "workspace-write",
            "workspaceWrite",
            ari.Choice(
                DEFAULT_MODE,
                "Workspace",
                "Works in its directory, in a sandbox without network; asks before it leaves it.",
            ),
        ),
        CodexMode(
            "on-request",
            "read-only",
            "readOnly",
            ari.Choice(
                "read-only",
                "Read only",
                "Reads files and runs commands in a sandbox that cannot write; asks before more.",
            ),
        ),
        CodexMode(
            "untrusted",
            "read-only",
            "readOnly",
            ari.Choice("ask", "Ask always", "Asks before every command and every change."),
        ),
        CodexMode(
            "never",
            "workspace-write",
            "workspaceWrite",
            ari.Choice(
                "auto",
                "Workspace, never ask",
                "Works in its directory, in a sandbox without network; what leaves it fails.",
                asks=False,
            ),
        ),
        CodexMode(
            "never",
            "danger-full-access",
            "dangerFullAccess",
            ari.Choice(
                "full-access",
                "Full access",
                "No sandbox, no questions: for containers that are a sandbox themselves.",
                asks=False,
            ),
        ),
    )
}


def mode_of(approval_policy: Json, sandbox: Mapping[str, Json]) -> str:
    """Return the id of the mode that Codex reports; an unknown combination is `policy/sandbox`."""
    kind = sandbox.get("type")
    for mode_id, mode in MODES.items():
        if (mode.approval_policy, mode.policy_type) == (approval_policy, kind):
            return mode_id
    policy = approval_policy if isinstance(approval_policy, str) else "granular"
    return f"{policy}/{kind}"


def thread_params(*, mode: str) -> JsonObject:
    """Return the parameters that give a thread a mode; without a mode, only the reviewer.

    Raises:
        InvalidArgument: The mode does not exist.
    """
    if not mode:
        return {"approvalsReviewer": "user"}
    check_mode(mode)
    pair = MODES[mode]
    return {
        "approvalPolicy": pair.approval_policy,
        "approvalsReviewer": "user",
        "sandbox": pair.sandbox,
    }


def check_mode(mode: str) -> None:
    """Raise if a mode does not exist.

    Raises:
        InvalidArgument: The mode does not exist.
    """
    if mode not in MODES:
        raise InvalidArgument(f"mode: expected one of {', '.join(MODES)}, got {mode!r:.80}")


# -- items ---------------------------------------------------------------------------------------


class ItemTool(NamedTuple):
    """A tool call of Codex in the terms of ARI."""

    name: str
    kind: ari.PermissionKind
    input: JsonObject
    summary: str
    details: JsonObject


def tool_of(item: CodexItem) -> ItemTool | None:
    """Return the tool call of an item; `None` if the item is not a tool call."""
    kinds = ari.PermissionKind
    match item.type:
        case "commandExecution":
            command = item.command or ""
            called = {"command": command, "cwd": item.cwd or ""}
            return ItemTool("shell", kinds.COMMAND, called, script_of(command), {})
        case "fileChange":
            return ItemTool(
                "apply_patch",
                kinds.EDIT,
                {"changes": msgspec.to_builtins(item.changes)},
                ", ".join(change.path for change in item.changes),
                {"diffs": diffs_of(item.changes)},
            )
        case "mcpToolCall":
            name = f"{item.server}.{item.tool}"
            return ItemTool(name, kinds.TOOL, object_of(item.arguments), name, {})
        case "dynamicToolCall":
            name = item.tool or "tool"
            return ItemTool(name, kinds.TOOL, object_of(item.arguments), name, {})
        case "webSearch":
            query = item.query or ""
            return ItemTool("web_search", kinds.NETWORK, {"query": query}, query, {})
        case "imageView":
            path = item.path or ""
            return ItemTool("view_image", kinds.READ, {"path": path}, path, {})
        case "imageGeneration":
            return ItemTool("generate_image", kinds.TOOL, {}, "", {})
        case "collabAgentToolCall":
            called = {"prompt": item.prompt} if item.prompt else {}
            return ItemTool(item.tool or "agent", kinds.TOOL, called, item.prompt or "", {})
    return None


def script_of(command: str) -> str:
    """Return the command that a shell runs: `touch f` for `/bin/bash -lc 'touch f'`."""
    try:
        words = shlex.split(command)
    except ValueError:
        return command
    if len(words) == 3 and words[1] in ("-c", "-lc") and words[0].endswith(("sh", "zsh")):
        return words[2]
    return command


class ItemResult(NamedTuple):
    """Result of a tool call."""

    content: str
    is_error: bool
    details: JsonObject


def result_of(item: CodexItem) -> ItemResult:
    """Return the result of a complete tool call."""
    details: JsonObject = {}
    if item.exit_code is not None:
        details["exit_code"] = item.exit_code
    if item.duration_ms is not None:
        details["duration_ms"] = item.duration_ms
    if item.status == "declined":
        details["denied"] = True
    is_error = item.status in ("failed", "declined")
    if item.type == "fileChange":
        details["diffs"] = diffs_of(item.changes)
        content = "\n".join(change.path for change in item.changes)
    elif item.type == "commandExecution":
        content = item.aggregated_output or ""
    else:
        content = _text_of_result(item.result)
    if isinstance(item.error, dict) and item.error.get("message"):
        content = str(item.error["message"])
    if item.status == "declined" and not content:
        content = "denied"
    return ItemResult(content, is_error, details)


def _text_of_result(result: Json) -> str:
    """Return the texts of an MCP tool's result; any other result as JSON."""
    if isinstance(result, dict) and isinstance(result.get("content"), list):
        texts = [
            str(part["text"]) if "text" in part else f"[{part.get('type', 'part')}]"
            for part in result["content"]
            if isinstance(part, dict)
        ]
        return "\n".join(texts)
    if result is None or isinstance(result, str):
        return result or ""
    return msgspec.json.encode(result).decode()


def diffs_of(changes: Iterable[FileChange]) -> list[Json]:
    """Return changes of files as `[{path, before, after}]`, without the unchanged parts.

    Codex sends the lines around a change, not the whole file. From the second part of a file on,
    the line `@@ … @@` marks the omitted lines on both sides.
    """
    diffs: list[Json] = []
    for change in changes:
        kind = change.kind.get("type")
        if kind == "add":
            before, after = "", change.diff
        elif kind == "delete":
            before, after = change.diff, ""
        else:
            before, after = _sides(change.diff)
        diffs.append({"path": change.path, "before": before, "after": after})
        if moved := change.kind.get("move_path"):
            diffs[-1]["moved_to"] = moved
    return diffs


def _sides(diff: str) -> tuple[str, str]:
    before: list[str] = []
    after: list[str] = []
    for line in diff.splitlines(keepends=True):
        if line.startswith("@@"):
            if before or after:
                before.append(line)
                after.append(line)
        elif line.startswith("-"):
            before.append(line[1:])
        elif line.startswith("+"):
            after.append(line[1:])
        elif not line.startswith("\\"):
            before.append(line[1:])
            after.append(line[1:])
    return "".join(before), "".join(after)


def todos_of(plan: Json) -> list[Json]:
    """Return the steps of a plan as `[{text, status}]`."""
    states = {"pending": "pending", "inProgress": "active", "completed": "done"}
    return [
        {
            "text": str(step.get("step", "")),
            "status": states.get(str(step.get("status")), "pending"),
        }
        for step in (plan if isinstance(plan, list) else ())
        if isinstance(step, dict)
    ]


def object_of(value: Json) -> JsonObject:
    """Return the arguments of a tool as an object; other values are wrapped."""
    return value if isinstance(value, dict) else {"arguments": value}


# -- parameters of calls -------------------------------------------------------------------------

NO_OWN_TOOLS: JsonObject = {
    "web_search": "disabled",
    "tools.view_image": False,
    **{
        f"features.{name}": False
        for name in (
            *(
                "shell_tool",
                "unified_exec",
                "multi_agent",
                "goals",
                "image_generation",
                "sleep_tool",
            ),
            *("apps", "plugins", "browser_use", "computer_use", "hooks"),
        )
    },
}
"""Overrides of a thread's configuration that leave models only the tools of MCP servers.

`apply_patch` belongs to the model and remains.
"""
_MCP_NAME = re.compile(r"[A-Za-z0-9_-]+")


def mcp_config(servers: Sequence[ari.McpServer]) -> JsonObject:
    """Return MCP servers as overrides of a thread's configuration.

    Raises:
        InvalidArgument: A name or a server has an unsupported form.
    """
    config: JsonObject = {}
    for number, server in enumerate(servers):
        place = f"mcp_servers[{number}]"
        if not _MCP_NAME.fullmatch(server.name):
            raise InvalidArgument(f"{place}.name: expected letters, digits, _ or -")
        if bool(server.command) == bool(server.url):
            raise InvalidArgument(f"{place}: expected either a command or a url")
        one: JsonObject = {"url": server.url, "http_headers": server.headers}
        if server.command:
            one = {"command": server.command, "args": list(server.args), "env": server.env}
        config[f"mcp_servers.{server.name}"] = {key: value for key, value in one.items() if value}
    return config


def input_of(message: ari.RuntimeMessage) -> list[Json]:
    """Return a message as the input of a turn.

    Raises:
        InvalidArgument: An image is neither data nor at an address of http or https.
    """
    taken: list[Json] = []
    if message.content.strip():
        taken.append({"type": "text", "text": message.content})
    for number, part in enumerate(message.parts):
        if part.type == "text":
            taken.append({"type": "text", "text": part.text})
            continue
        url = part.uri
        if part.data:
            data = base64.b64encode(part.data).decode()
            url = f"data:{part.mime_type or 'image/png'};base64,{data}"
        elif not url.startswith(("https://", "http://", "data:image/")):
            # No `file:` address: a caller must not read files of this machine through the model.
            raise InvalidArgument(f"message.parts[{number}].uri: expected http or https, or data")
        taken.append({"type": "image", "url": url})
    return taken


# -- errors --------------------------------------------------------------------------------------

_CODES = {
    "badRequest": AriCode.INVALID_ARGUMENT,
    "contextWindowExceeded": AriCode.FAILED_PRECONDITION,
    "sessionBudgetExceeded": AriCode.FAILED_PRECONDITION,
    "unauthorized": AriCode.PERMISSION_DENIED,
    "cyberPolicy": AriCode.PERMISSION_DENIED,
    "misalignmentPolicyViolation": AriCode.PERMISSION_DENIED,
    "usageLimitExceeded": AriCode.UNAVAILABLE,
    "rateLimitExceeded": AriCode.UNAVAILABLE,
    "flexUnavailable": AriCode.UNAVAILABLE,
    "serverOverloaded": AriCode.UNAVAILABLE,
    "internalServerError": AriCode.UNAVAILABLE,
    "httpConnectionFailed": AriCode.UNAVAILABLE,
    "responseStreamConnectionFailed": AriCode.UNAVAILABLE,
    "responseStreamDisconnected": AriCode.UNAVAILABLE,
    "responseTooManyFailedAttempts": AriCode.UNAVAILABLE,
}


_LIMITS = {
    "contextWindowExceeded": "context",
    "sessionBudgetExceeded": "budget",
    "usageLimitExceeded": "usage",
}
"""Name of the limit, by the name of the failure that it causes."""


def http_status_of(failure: TurnFailure) -> int | None:
    """Return the HTTP status of the model's provider; `None` if Codex does not report it."""
    info = failure.codex_error_info
    if isinstance(info, dict):
        for value in info.values():
            if isinstance(value, dict) and isinstance(value.get("httpStatusCode"), int):
                return int(value["httpStatusCode"])
    return None


def status_of_failure(failure: TurnFailure) -> ErrorStatus:
    """Return the error of a failed turn."""
    info = failure.codex_error_info
    name = info if isinstance(info, str) else next(iter(info), "") if info else ""
    code, message, http_status = _CODES.get(name), failure.message, http_status_of(failure)
    details: JsonObject = {"codex_error": name} if name else {}
    if name in _LIMITS:
        details["limit"] = _LIMITS[name]
    if http_status is not None:
        details["http_status"] = http_status
        code = _code_of_http(http_status)
    if code is None:
        # Codex reports a 400 as `other`, with the complete response of the provider as message.
        with suppress(msgspec.DecodeError):
            body = msgspec.json.decode(message)
            error = body.get("error") if isinstance(body, dict) else None
            if isinstance(error, dict):
                message = str(error.get("message") or message)
                if error.get("type") == "invalid_request_error":
                    code = AriCode.INVALID_ARGUMENT
    if "max_output_tokens" in message:
        details["limit"] = "tokens"
        message = f"{message}. {CUT_OFF_WORDS[CutOffReason.LENGTH]}"
    code = code or AriCode.INTERNAL
    return ErrorStatus(code, message, code is AriCode.UNAVAILABLE, details)


def _code_of_http(status: int) -> AriCode:
    if status in (401, 403):
        return AriCode.PERMISSION_DENIED
    if status in (408, 429) or status >= 500:
        return AriCode.UNAVAILABLE
    return AriCode.INVALID_ARGUMENT


_NOT_FOUND = (
    "no rollout found",
    "thread not found",
    "thread not loaded",
    "invalid thread id",
    "invalid session id",
)
_ATTEMPT = re.compile(r"(\d+)/(\d+)")


def error_of_call(error: JsonRpcError) -> AriError:
    """Return the error for a call that Codex refused.

    Codex uses the same code for most errors, so the text decides.
    """
    text = error.message
    if text.startswith(_NOT_FOUND):
        return NotFound(text)
    if error.code == METHOD_NOT_FOUND or text.startswith("Invalid request: unknown variant"):
        return Unimplemented(f"this version of Codex cannot do it: {text:.200}")
    if text.startswith("failed to load configuration"):
        is_ours = "Model provider" in text
        return InvalidArgument(f"provider: {text}") if is_ours else Unavailable(text)
    if "active turn" in text:
        return FailedPrecondition(text)
    return RuntimeInternal(text)


def retry_details(failure: TurnFailure) -> JsonObject:
    """Return the details of a request to the model that is repeated."""
    details: JsonObject = {}
    if attempt := _ATTEMPT.search(failure.message):
        details |= {"attempt": int(attempt[1]), "attempts": int(attempt[2])}
    if (status := http_status_of(failure)) is not None:
        details["http_status"] = status
    return details


# -- stored threads ------------------------------------------------------------------------------


def session_of(thread: StoredThread, runtime: str) -> ari.RuntimeSession:
    """Return a stored thread as a session."""
    return ari.RuntimeSession(
        session_id=thread.id,
        state=ari.SessionState.CLOSED,
        runtime=runtime,
        cwd=thread.cwd,
        title=one_line(thread.name or thread.preview),
        created_at_ns=thread.created_at * 1_000_000_000,
        updated_at_ns=thread.updated_at * 1_000_000_000,
        model=thread.model or "",
        provider=thread.model_provider,
    )


def messages_of(turns: Iterable[CodexTurn]) -> list[ari.RuntimeMessage]:
    """Return the messages in the turns of a thread, oldest first."""
    messages: list[ari.RuntimeMessage] = []
    for turn in turns:
        started_ns = (turn.started_at or 0) * 1_000_000_000
        answer = empty = ari.RuntimeMessage("assistant", timestamp_ns=started_ns)
        for item in turn.items:
            if item.type == "userMessage":
                if answer != empty:
                    messages.append(answer)
                    answer = empty
                messages.append(_user_message(item, empty.timestamp_ns))
            elif item.type in ("agentMessage", "plan"):
                if answer.content or answer.tool_calls:
                    messages.append(answer)
                    answer = empty
                answer = msgspec.structs.replace(answer, content=item.text or "")
            elif item.type == "reasoning":
                if answer.content or answer.tool_calls:
                    messages.append(answer)
                    answer = empty
                thought = "\n\n".join(filter(None, (answer.thinking, thought_of(item))))
                answer = msgspec.structs.replace(answer, thinking=thought)
            elif (call := _past_call(item)) is not None:
                answer = msgspec.structs.replace(answer, tool_calls=(*answer.tool_calls, call))
        if answer != empty:
            messages.append(answer)
    return messages


def thought_of(item: CodexItem) -> str:
    """Return the model's thoughts: their summary, or the thoughts themselves if there is none."""
    for parts in (item.summary, item.content):
        if isinstance(parts, list) and parts:
            return "\n\n".join(str(part) for part in parts)
    return ""


def _past_call(item: CodexItem) -> ari.PastToolCall | None:
    tool = tool_of(item)
    if tool is None:
        return None
    result = result_of(item)
    return ari.PastToolCall(item.id, tool.name, tool.input, result.content, result.is_error)


def _user_message(item: CodexItem, timestamp_ns: int) -> ari.RuntimeMessage:
    texts: list[str] = []
    parts: list[ari.ContentPart] = []
    for part in item.content if isinstance(item.content, list) else ():
        if not isinstance(part, dict):
            continue
        if part.get("type") == "text":
            texts.append(str(part.get("text", "")))
        elif part.get("type") in ("image", "localImage"):
            parts.append(_image_part(str(part.get("url") or part.get("path") or "")))
    return ari.RuntimeMessage(
        content="\n".join(texts), parts=tuple(parts), timestamp_ns=timestamp_ns
    )


def _image_part(url: str) -> ari.ContentPart:
    head, _, data = url.partition(";base64,")
    if head.startswith("data:") and data:
        with suppress(ValueError):
            return ari.ContentPart("image", data=base64.b64decode(data), mime_type=head[5:])
    return ari.ContentPart("image", uri=url)
