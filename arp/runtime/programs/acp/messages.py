"""The messages of the Agent Client Protocol as values, and their meaning in ARI.

`AcpToolCall` collects the messages about one call; everything else is without state.

Agents leave out different fields, so any field except an id may be missing.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any, TypeVar

import msgspec

from arp.protocol.json_value import Json, JsonObject
from arp.runtime.contract import types as ari
from arp.runtime.contract.errors import (
    AlreadyExists,
    AriError,
    Canceled,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    RuntimeInternal,
    Unimplemented,
)
from arp.runtime.programs.json_rpc_peer import METHOD_NOT_FOUND, JsonRpcError

PROTOCOL_VERSION = 1

AUTH_REQUIRED = -32000
RESOURCE_NOT_FOUND = -32002
INVALID_PARAMS = -32602
REQUEST_CANCELLED = -32800
"""Error codes of the protocol, in addition to those of JSON-RPC."""

ASKING_MODES = ("default", "ask", "build", "read-only", "plan")
"""Modes that are known to ask, the preferred one first. In other modes a model may decide, or
nothing is asked: `auto`, `agent`, `yolo`, `acceptEdits`, `bypassPermissions`, `full-access`."""

T = TypeVar("T")


def parse_answer(answer: Json, kind: type[T]) -> T:
    """Return an answer as a value.

    Raises:
        RuntimeInternal: It has another form.
    """
    try:
        return msgspec.convert(answer, kind)
    except msgspec.ValidationError as unknown:
        raise RuntimeInternal(f"the agent does not answer as ACP says: {unknown}") from unknown


# -- capabilities --------------------------------------------------------------------------------


class PromptTypes(msgspec.Struct, frozen=True, rename="camel"):
    """Content that a prompt may have in addition to text and links."""

    image: bool | None = False
    audio: bool | None = False
    embedded_context: bool | None = False


class AgentAbilities(msgspec.Struct, frozen=True, rename="camel"):
    """Capabilities of the agent (`agentCapabilities`)."""

    load_session: bool | None = False
    prompt_capabilities: PromptTypes = PromptTypes()
    mcp_capabilities: JsonObject = msgspec.field(default_factory=dict)
    session_capabilities: JsonObject = msgspec.field(default_factory=dict)

    def has(self, method: str) -> bool:
        """Return whether sessions have a method: `list`, `resume`, `close` or `delete`."""
        return self.session_capabilities.get(method) not in (None, False)

    @property
    def part_types(self) -> frozenset[str]:
        """Types of message parts that the agent accepts."""
        prompt = self.prompt_capabilities
        found = {"text", "file"}  # every agent accepts links to files
        if prompt.image:
            found.add("image")
        if prompt.audio:
            found.add("audio")
        return frozenset(found)


class AgentIntroduction(msgspec.Struct, frozen=True, rename="camel"):
    """The answer to `initialize`."""

    protocol_version: int
    agent_capabilities: AgentAbilities | None = None
    agent_info: JsonObject | None = None
    auth_methods: list[JsonObject] | None = None

    def how_to_log_in(self) -> str:
        """Return the agent's instructions for logging in."""
        methods = [
            str(method.get("description") or method.get("name") or method.get("id"))
            for method in self.auth_methods or ()
        ]
        return "; or: ".join(methods) or "see the documentation of the agent"


class AcpListedSession(msgspec.Struct, frozen=True, rename="camel"):
    """A session in a list."""

    session_id: str
    cwd: str = ""
    title: str | None = None
    updated_at: str | None = None

    def value(self, runtime: str) -> ari.RuntimeSession:
        """Return the session as a value of ARI."""
        return ari.RuntimeSession(
            self.session_id,
            ari.SessionState.CLOSED,
            runtime,
            self.cwd,
            self.title or "",
            updated_at_ns=nanoseconds(self.updated_at),
        )


class AcpSessionPage(msgspec.Struct, frozen=True, rename="camel"):
    """One page of a list."""

    sessions: list[AcpListedSession]
    next_cursor: str | None = None


def nanoseconds(text: str | None) -> int:
    """Return a time in ISO 8601 as nanoseconds since 1970; 0 if it is not a valid time."""
    try:
        moment = datetime.fromisoformat(text or "")
    except ValueError:
        return 0
    return int(moment.timestamp() * 1e9) if moment.tzinfo else 0


# -- choices: models and modes -------------------------------------------------------------------


class SessionChoices(msgspec.Struct, frozen=True):
    """The choices of a session for one setting, and how to switch it."""

    current: str
    all: tuple[ari.Choice, ...]
    option_id: str = ""
    """Id of the configuration option; empty if the agent has the older methods."""

    def has(self, choice_id: str) -> bool:
        """Return whether a choice is available."""
        return any(choice.id == choice_id for choice in self.all)

    def with_current(self, choice_id: str) -> SessionChoices:
        """Return the choices with another current one."""
        return msgspec.structs.replace(self, current=choice_id)


def option_choices(options: Json, category: str) -> SessionChoices | None:
    """Return the choices of a configuration option; `None` if there is none of this category."""
    for option in objects_in(options):
        if option.get("category") != category or option.get("type", "select") != "select":
            continue
        listed: list[JsonObject] = []
        for one in objects_in(option.get("options")):
            listed += objects_in(one.get("options")) if "group" in one else [one]
        found = _choices(listed, "value", category)
        current = str(option.get("currentValue") or "")
        return SessionChoices(current, found, str(option.get("id") or ""))
    return None


def mode_choices(setup: JsonObject) -> SessionChoices | None:
    """Return the modes of a session, from the answer that opened it."""
    found = option_choices(setup.get("configOptions"), "mode")
    if found is not None or not (modes := object_in(setup.get("modes"))):
        return found
    listed = _choices(objects_in(modes.get("availableModes")), "id", "mode")
    return SessionChoices(str(modes.get("currentModeId") or ""), listed)


def model_choices(setup: JsonObject) -> SessionChoices | None:
    """Return the models of a session, from the answer that opened it."""
    found = option_choices(setup.get("configOptions"), "model")
    if found is not None or not (models := object_in(setup.get("models"))):
        return found
    listed = _choices(objects_in(models.get("availableModels")), "modelId", "model")
    return SessionChoices(str(models.get("currentModelId") or ""), listed)


def _choices(listed: Sequence[JsonObject], id_field: str, category: str) -> tuple[ari.Choice, ...]:
    """Return the choices that have an id; the others cannot be chosen."""
    return tuple(_choice(one, id_field, category) for one in listed if one.get(id_field))


def _choice(one: JsonObject, id_field: str, category: str) -> ari.Choice:
    choice_id = str(one[id_field])
    asks = category != "mode" or choice_id in ASKING_MODES
    return ari.Choice(
        choice_id, str(one.get("name") or ""), str(one.get("description") or ""), asks
    )


# -- tool calls ----------------------------------------------------------------------------------

_KINDS = {
    "execute": ari.PermissionKind.COMMAND,
    "edit": ari.PermissionKind.EDIT,
    "delete": ari.PermissionKind.EDIT,
    "move": ari.PermissionKind.EDIT,
    "read": ari.PermissionKind.READ,
    "search": ari.PermissionKind.READ,
    "fetch": ari.PermissionKind.NETWORK,
    "think": ari.PermissionKind.OTHER,
    "switch_mode": ari.PermissionKind.OTHER,
}
_NAME = re.compile(r"[A-Za-z_][\w.:/-]{0,63}")
_SUMMARY_FIELDS = ("command", "url", "query", "pattern", "path", "filePath", "file_path")


class AcpToolCall:
    """A tool call, as far as the agent has reported it."""

    def __init__(self, call_id: str) -> None:
        self.id = call_id
        self.name = ""
        self.title = ""
        self.kind = ""
        self.status = ""
        self.input: JsonObject = {}
        self.output = ""
        """Text of the newest content; each update replaces it."""
        self.streamed = ""
        """Output of the call's terminal so far."""
        self.raw_output: Json = None
        self.exit_code: int | None = None
        self.diffs: dict[str, JsonObject] = {}
        """Diffs, by path."""
        self.is_emitted = False
        """Whether the event `tool_call` was emitted."""
        self.parent_id = ""
        """Id of the call that started the sub-agent, if a sub-agent makes this call."""

    def update(self, fields: JsonObject, *, is_first: bool = False) -> str:
        """Update the call from a message, and return the new output."""
        self.title = fields.get("title") or self.title
        self.kind = fields.get("kind") or self.kind
        self.status = fields.get("status") or self.status
        raw_input = fields.get("rawInput")
        if isinstance(raw_input, dict):
            self.input = {**self.input, **raw_input}
        elif raw_input is not None:
            self.input = {**self.input, "input": raw_input}
        if fields.get("rawOutput") is not None:
            self.raw_output = fields["rawOutput"]
        self.name = named_tool(fields) or self.name
        claude = (fields.get("_meta") or {}).get("claudeCode") or {}
        self.parent_id = str(claude.get("parentToolUseId") or self.parent_id)
        if is_first and not self.name and self._is_title_a_name():
            self.name = self.title
        return self._update_content(fields)

    def _is_title_a_name(self) -> bool:
        """Return whether the title is the name of the tool, and not its input, such as `ls`."""
        return bool(_NAME.fullmatch(self.title)) and self.title not in self.input.values()

    def _update_content(self, fields: JsonObject) -> str:
        meta = fields.get("_meta") or {}
        new = str((meta.get("terminal_output") or {}).get("data") or "")
        self.streamed += new
        code = (meta.get("terminal_exit") or {}).get("exit_code")
        self.exit_code = code if isinstance(code, int) else self.exit_code
        if not isinstance(fields.get("content"), list):
            return new
        texts = []
        for item in fields["content"]:
            if item.get("type") == "diff":
                self.diffs[item["path"]] = {
                    "path": item["path"],
                    "before": item.get("oldText") or "",
                    "after": item.get("newText") or "",
                }
            elif item.get("type") == "content":
                texts.append(text_of(item.get("content")))
        # Each update has the complete content; the text after the known part is new.
        before, self.output = self.output, "\n".join(texts)
        return new or self.output[len(before) :] * self.output.startswith(before)

    @property
    def permission_kind(self) -> ari.PermissionKind:
        """Kind of the tool."""
        return _KINDS.get(self.kind, ari.PermissionKind.TOOL)

    @property
    def subagent(self) -> str:
        """Name of the sub-agent that the call starts; empty if it starts none."""
        kind = self.input.get("subagent_type")
        return kind if isinstance(kind, str) else ""

    @property
    def objective(self) -> str:
        """Task of the sub-agent that the call starts."""
        return str(self.input.get("prompt") or self.input.get("description") or "")

    @property
    def shown_name(self) -> str:
        """Name of the tool, or its kind if the agent gives no name."""
        return self.name or self.kind or "tool"

    @property
    def summary(self) -> str:
        """One line for people."""
        command = self.input.get("command")
        if self.kind == "execute" and isinstance(command, str):
            return command
        if self.title and self.title != self.name:
            return self.title
        return next((str(self.input[name]) for name in _SUMMARY_FIELDS if name in self.input), "")

    @property
    def has_failed(self) -> bool:
        """Whether the call failed; some agents report a command as completed with any exit code."""
        return self.status == "failed" or self._known_exit_code not in (None, 0)

    @property
    def _known_exit_code(self) -> int | None:
        return self.exit_code if self.exit_code is not None else exit_code_of(self.raw_output)

    @property
    def result(self) -> str:
        """Result of the call, as text."""
        if self.output or self.streamed or self.raw_output is None:
            return self.output or self.streamed
        if isinstance(self.raw_output, str):
            return self.raw_output
        return msgspec.json.encode(self.raw_output).decode()

    def result_details(self) -> JsonObject:
        """Return the details of the result."""
        details: JsonObject = {}
        if self._known_exit_code is not None:
            details["exit_code"] = self._known_exit_code
        if self.diffs:
            details["diffs"] = list(self.diffs.values())
        return details


def named_tool(fields: JsonObject) -> str:
    """Return the name of the tool; some agents send it outside of the protocol."""
    meta = fields.get("_meta") or {}
    claude = meta.get("claudeCode") or {}
    return str(fields.get("name") or meta.get("toolName") or claude.get("toolName") or "")


def exit_code_of(raw_output: Json) -> int | None:
    """Return the exit code of a command; agents send it in different fields."""
    if not isinstance(raw_output, dict):
        return None
    metadata = raw_output.get("metadata")
    places = (raw_output, metadata if isinstance(metadata, dict) else {})
    for place in places:
        for name in ("exit_code", "exitCode", "exit"):
            if type(place.get(name)) is int:
                return int(place[name])
    return None


def text_of(block: Json) -> str:
    """Return the text of a content block; for other blocks, their type in brackets."""
    if not isinstance(block, dict):
        return ""
    match block.get("type"):
        case "text":
            return str(block.get("text") or "")
        case "resource":
            return str((block.get("resource") or {}).get("text") or "[resource]")
        case "resource_link":
            return str(block.get("uri") or "")
    return f"[{block.get('mimeType') or block.get('type')}]"


def todos_of(entries: Json) -> list[JsonObject]:
    """Return the entries of a plan as `[{text, status}]`."""
    states = {"in_progress": "active", "completed": "done"}
    return [
        {
            "text": str(one.get("content") or ""),
            "status": states.get(str(one.get("status")), "pending"),
        }
        for one in objects_in(entries)
    ]


def commands_of(listed: Json) -> tuple[ari.ListedItem, ...]:
    """Return the commands of a session."""
    return tuple(
        ari.ListedItem(
            str(one["name"]),
            str(one.get("description") or ""),
            hint=str(object_in(one.get("input")).get("hint") or ""),
        )
        for one in objects_in(listed)
        if one.get("name")
    )


def objects_in(listed: Json) -> list[JsonObject]:
    """Return the objects of a list; other values are left out."""
    return [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []


def object_in(value: Json) -> JsonObject:
    """Return a value if it is an object, otherwise an empty object."""
    return value if isinstance(value, dict) else {}


def usage_of(used: Json) -> ari.Usage:
    """Return the usage of a turn, as far as the agent reports it."""
    counts: dict[str, Any] = used if isinstance(used, dict) else {}

    def count(name: str) -> int | None:
        value = counts.get(name)
        return value if type(value) is int else None

    input_tokens, output_tokens, total = map(count, ("inputTokens", "outputTokens", "totalTokens"))
    cached = (count("cachedReadTokens") or 0) + (count("cachedWriteTokens") or 0)
    if input_tokens is not None and input_tokens + cached + (output_tokens or 0) <= (total or 0):
        # This agent counts cached tokens separately; in ARI they are part of the input.
        input_tokens += cached
    return ari.Usage(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cached_tokens=count("cachedReadTokens"),
        reasoning_tokens=count("thoughtTokens"),
    )


# -- permissions ---------------------------------------------------------------------------------


class AcpQuestion(msgspec.Struct, frozen=True):
    """A permission request of an agent."""

    request_id: int | str
    call_id: str
    options: tuple[JsonObject, ...]

    def option(self, kind: str) -> str:
        """Return the id of the first option of a kind; empty if there is none."""
        found = (one for one in self.options if one.get("kind") == kind)
        return next((str(one["optionId"]) for one in found), "")

    def rules(self) -> tuple[ari.PermissionRule, ...]:
        """Return the options that allow more than this call."""
        return tuple(
            ari.PermissionRule(
                str(one["optionId"]),
                f"{one.get('name') or 'Always allow'} (the agent decides what this covers)",
                "always",
            )
            for one in self.options
            if one.get("kind") == "allow_always"
        )

    def ways(self) -> tuple[ari.Choice, ...]:
        """Return the options that allow only this call, if there are several."""
        found = [one for one in self.options if one.get("kind") == "allow_once"]
        ways = (ari.Choice(str(one["optionId"]), str(one.get("name") or "")) for one in found)
        return tuple(ways) if len(found) > 1 else ()

    def check(self, response: ari.PermissionResponse) -> None:
        """Raise for an answer that the agent does not offer.

        Raises:
            InvalidArgument: The agent does not offer it.
        """
        allows_once = response.decision == "allow" and not response.rule_id
        if allows_once and not self.option("allow_once"):
            raise InvalidArgument(
                "response.rule_id: the agent offers no permission for this call alone; "
                "name one of the rules, or deny"
            )

    def answer(self, response: ari.PermissionResponse) -> JsonObject:
        """Return the answer for the agent."""
        if response.decision == "allow":
            chosen = response.rule_id or self.option("allow_once")
        else:
            # Not `reject_always`: the person has denied only this call.
            chosen = self.option("reject_once")
        return {"outcome": {"outcome": "selected", "optionId": chosen}} if chosen else CANCELLED


CANCELLED: JsonObject = {"outcome": {"outcome": "cancelled"}}
"""Answer to a request that no person sees, or that is no longer open."""


# -- messages to an agent ------------------------------------------------------------------------


def prompt_of(message: ari.RuntimeMessage, abilities: AgentAbilities) -> list[JsonObject]:
    """Return a message as a prompt.

    Raises:
        InvalidArgument: A part is not supported; the message names it.
    """
    blocks: list[JsonObject] = []
    if message.content.strip():
        blocks.append({"type": "text", "text": message.content})
    for number, part in enumerate(message.parts):
        blocks.append(_block(part, f"message.parts[{number}]", abilities))
    return blocks


def _block(part: ari.ContentPart, place: str, abilities: AgentAbilities) -> JsonObject:
    if part.type == "text":
        return {"type": "text", "text": part.text}
    if part.type in ("image", "audio"):
        if not part.data:
            raise InvalidArgument(f"{place}: {part.type} parts need data, a uri is not fetched")
        data, kind = base64.b64encode(part.data).decode(), part.mime_type
        return {"type": part.type, "data": data, "mimeType": kind or _USUAL_TYPES[part.type]}
    if not part.data:
        if not part.uri.startswith(("https://", "http://")):
            # No `file:` address: a caller must not name files of this machine.
            raise InvalidArgument(f"{place}.uri: expected http or https, or data")
        return {"type": "resource_link", "uri": part.uri, "name": part.name or part.uri}
    if not abilities.prompt_capabilities.embedded_context:
        raise InvalidArgument(f"{place}: this agent takes links to files, not their data")
    mime_type = part.mime_type or "application/octet-stream"
    resource: JsonObject = {"uri": f"attachment:///{part.name or 'file'}", "mimeType": mime_type}
    try:
        resource["text"] = part.data.decode()
    except UnicodeDecodeError:
        resource["blob"] = base64.b64encode(part.data).decode()
    return {"type": "resource", "resource": resource}


_USUAL_TYPES = {"image": "image/png", "audio": "audio/wav"}


def mcp_servers_of(servers: Sequence[ari.McpServer], abilities: AgentAbilities) -> list[JsonObject]:
    """Return MCP servers in the form of the protocol.

    Raises:
        InvalidArgument: A server has an unsupported form.
    """
    taken_servers: list[JsonObject] = []
    for number, one in enumerate(servers):
        place = f"mcp_servers[{number}]"
        if not one.name:
            raise InvalidArgument(f"{place}.name: it is empty")
        if bool(one.command) == bool(one.url):
            raise InvalidArgument(f"{place}: expected either a command or a url")
        if one.url and not abilities.mcp_capabilities.get("http"):
            raise InvalidArgument(f"{place}.url: this agent takes commands only")
        server: JsonObject = {"name": one.name}
        if one.url:
            server |= {"type": "http", "url": one.url, "headers": _pairs(one.headers)}
        else:
            server |= {"command": one.command, "args": list(one.args), "env": _pairs(one.env)}
        taken_servers.append(server)
    return taken_servers


def _pairs(values: ari.Details) -> list[JsonObject]:
    return [{"name": name, "value": value} for name, value in values.items()]


# -- errors --------------------------------------------------------------------------------------

_ERRORS: dict[int, type[AriError]] = {
    RESOURCE_NOT_FOUND: NotFound,
    METHOD_NOT_FOUND: Unimplemented,
    INVALID_PARAMS: InvalidArgument,
    REQUEST_CANCELLED: Canceled,
    400: InvalidArgument,
    409: AlreadyExists,
}


def error_of_call(error: JsonRpcError, agent: str, how_to_log_in: str) -> AriError:
    """Return the error for a call that an agent refused."""
    if error.code == AUTH_REQUIRED:
        return FailedPrecondition(f"{agent} is not logged in: {how_to_log_in}")
    message = f"{agent}: {error.message}"
    data = error.data
    detail = data.get("details") or data.get("message") if isinstance(data, dict) else data
    if isinstance(detail, str) and detail not in message:
        message += f" ({detail[:500]})"
    return _ERRORS.get(error.code, RuntimeInternal)(message, rpc_code=error.code)
