"""The permission requests and questions of Codex, and the answers in its format.

`question_of` has one function for each kind of request that a user can answer. `tool_input_raw`
contains everything that runs after an approval, and the label of a rule names everything that the
rule allows.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from arp.protocol.json_value import Json, JsonObject
from arp.runtime.contract import types as ari
from arp.runtime.programs.codex.messages import CodexItem, object_of, script_of, tool_of
from arp.runtime.programs.json_rpc_peer import RequestId

CodexAnswer: TypeAlias = JsonObject
"""Result for a request of Codex."""


class CodexQuestion(NamedTuple):
    """A request of Codex that waits for an answer, with the possible answers."""

    request_id: RequestId
    thread_id: str
    about: ari.PermissionRequest
    allow: CodexAnswer
    deny: CodexAnswer
    interrupt: CodexAnswer | None = None
    """Answer that denies and ends the turn. If it is `None`, `deny` is sent and the turn is
    interrupted."""
    rules: Mapping[str, CodexAnswer] = {}
    has_item: bool = False
    """Whether the request is about an item of the turn; Codex then reports the end of the call."""
    input_as: str = ""
    """Field of the answer for `updated_input`: `answers` to questions, or `content` of a form."""

    def answer(self, response: ari.PermissionResponse) -> CodexAnswer:
        """Return the answer for Codex."""
        if response.decision == "deny":
            return self.interrupt if response.interrupt and self.interrupt else self.deny
        if response.rule_id:
            return self.rules[response.rule_id]
        if response.updated_input is not None and self.input_as == "content":
            return self.allow | {"content": response.updated_input}
        if response.updated_input is not None and self.input_as == "answers":
            return {"answers": _answers(self.about.tool_input_raw, response.updated_input)}
        return self.allow


def question_of(
    request_id: RequestId,
    method: str,
    params: JsonObject,
    items: Mapping[str, CodexItem],
) -> CodexQuestion | None:
    """Return the question of a request; `None` if a user cannot answer it.

    Args:
        request_id: Id of the request.
        method: Method of the request.
        params: Parameters of the request.
        items: Incomplete tool calls of the turn, by id. A request about a change of files does not
            contain the change; the item does.
    """
    thread_id = str(params.get("threadId", ""))
    item = items.get(str(params.get("itemId", "")))
    match method:
        case "item/commandExecution/requestApproval":
            return _command_question(request_id, thread_id, params, item)
        case "item/fileChange/requestApproval":
            return _file_question(request_id, thread_id, params, item)
        case "item/permissions/requestApproval":
            return _permissions_question(request_id, thread_id, params)
        case "item/tool/requestUserInput":
            return _user_question(request_id, thread_id, params)
        case "mcpServer/elicitation/request":
            return _elicitation(request_id, thread_id, params, items)
    return None


def _decision(decision: Json) -> CodexAnswer:
    return {"decision": decision}


def _command_question(
    request_id: RequestId, thread_id: str, params: JsonObject, item: CodexItem | None
) -> CodexQuestion:
    command = params.get("command") or (item.command if item is not None else "") or ""
    cwd = params.get("cwd") or (item.cwd if item is not None else "") or ""
    raw: JsonObject = {"command": command, "cwd": cwd}
    # Further permissions for the command are part of what is approved.
    extras = ("networkApprovalContext", "additionalPermissions")
    raw |= {name: params[name] for name in extras if params.get(name)}
    offered = params.get("availableDecisions")
    rules: list[ari.PermissionRule] = []
    answers: dict[str, CodexAnswer] = {}
    network = params.get("networkApprovalContext")
    if isinstance(network, dict):
        summary = f"{network.get('protocol')} to {network.get('host')}"
        kind = ari.PermissionKind.NETWORK
        if isinstance(offered, list) and "acceptForSession" in offered:
            label = f"Connections to {network.get('host')} ({network.get('protocol')})"
            rules.append(ari.PermissionRule("session", label))
            answers["session"] = _decision("acceptForSession")
    else:
        summary, kind = script_of(command), ari.PermissionKind.COMMAND
        if params.get("kind", "command") == "command":
            label = f"Exactly this command again, in {cwd}"
            rules.append(ari.PermissionRule("session", label))
            answers["session"] = _decision("acceptForSession")
            prefix = params.get("proposedExecpolicyAmendment")
        else:
            prefix = None
        if isinstance(prefix, list) and prefix and not raw.keys() & set(extras):
            words = shlex.join(str(word) for word in prefix)
            label = f"Every command that begins with: {words} (also outside the sandbox)"
            rules.append(ari.PermissionRule("prefix", label, "always"))
            amendment = {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": prefix}}
            answers["prefix"] = _decision(amendment)
    about = ari.PermissionRequest(
        "shell",
        tool_call_id=str(params.get("itemId", "")),
        kind=kind,
        tool_input_summary=summary,
        tool_input_raw=raw,
        message=params.get("reason") or "",
        takes_message=True,
        rules=tuple(rules),
    )
    return CodexQuestion(
        request_id,
        thread_id,
        about,
        _decision("accept"),
        _decision("decline"),
        _decision("cancel"),
        answers,
        has_item=True,
    )


def _file_question(
    request_id: RequestId, thread_id: str, params: JsonObject, item: CodexItem | None
) -> CodexQuestion:
    tool = tool_of(item) if item is not None else None
    raw: JsonObject = dict(tool.input) if tool is not None else {}
    root = params.get("grantRoot")
    if root:
        raw["grantRoot"] = root
        label = f"All changes below {root}"
    else:
        paths = ", ".join(change.path for change in item.changes) if item is not None else ""
        label = f"All changes of: {paths}"
    # Without the item, a person could not see what a rule allows.
    is_known = tool is not None
    about = ari.PermissionRequest(
        "apply_patch",
        tool_call_id=str(params.get("itemId", "")),
        kind=ari.PermissionKind.EDIT,
        tool_input_summary=tool.summary if tool is not None else "",
        tool_input_raw=raw,
        message=params.get("reason") or "",
        takes_message=True,
        rules=(ari.PermissionRule("session", label),) if is_known else (),
    )
    return CodexQuestion(
        request_id,
        thread_id,
        about,
        _decision("accept"),
        _decision("decline"),
        _decision("cancel"),
        {"session": _decision("acceptForSession")} if is_known else {},
        has_item=True,
    )


def _permissions_question(
    request_id: RequestId, thread_id: str, params: JsonObject
) -> CodexQuestion:
    wanted = params.get("permissions") or {}
    granted = {name: value for name, value in wanted.items() if value is not None}
    about = ari.PermissionRequest(
        "request_permissions",
        tool_call_id=str(params.get("itemId", "")),
        kind=ari.PermissionKind.OTHER,
        tool_input_summary=", ".join(granted) + " for the rest of the turn",
        tool_input_raw={"permissions": granted, "cwd": params.get("cwd") or ""},
        message=params.get("reason") or "",
        takes_message=True,
        rules=(ari.PermissionRule("session", "These permissions until the session ends"),),
    )
    return CodexQuestion(
        request_id,
        thread_id,
        about,
        {"permissions": granted, "scope": "turn"},
        {"permissions": {}},
        rules={"session": {"permissions": granted, "scope": "session"}},
    )


def _user_question(request_id: RequestId, thread_id: str, params: JsonObject) -> CodexQuestion:
    questions = [one for one in params.get("questions") or () if isinstance(one, dict)]
    about = ari.PermissionRequest(
        "request_user_input",
        tool_call_id=str(params.get("itemId", "")),
        kind=ari.PermissionKind.QUESTION,
        tool_input_summary=" ".join(str(one.get("question", "")) for one in questions),
        tool_input_raw={"questions": questions},
        takes_updated_input=True,
        takes_message=True,
    )
    nothing: CodexAnswer = {"answers": {}}
    return CodexQuestion(request_id, thread_id, about, nothing, nothing, input_as="answers")


def _answers(asked: JsonObject, given: JsonObject) -> JsonObject:
    """Return answers by the ids of their questions.

    Args:
        asked: Input with the questions.
        given: Input with `answers`: a text or a list of texts, by the id or the text of the
            question.
    """
    by_name = given.get("answers")
    if not isinstance(by_name, dict):
        return {}
    answers: JsonObject = {}
    for question in asked["questions"]:
        answer = by_name.get(question.get("id"), by_name.get(question.get("question")))
        if answer is not None:
            texts = answer if isinstance(answer, list) else [answer]
            answers[str(question.get("id"))] = {"answers": [str(text) for text in texts]}
    return answers


def _elicitation(
    request_id: RequestId, thread_id: str, params: JsonObject, items: Mapping[str, CodexItem]
) -> CodexQuestion | None:
    server, meta = str(params.get("serverName", "")), object_of(params.get("_meta") or {})
    message = str(params.get("message", ""))
    deny: CodexAnswer = {"action": "decline"}
    interrupt: CodexAnswer = {"action": "cancel"}
    if meta.get("codex_approval_kind") == "mcp_tool_call":
        return _mcp_question(request_id, thread_id, server, message, meta, items)
    if params.get("mode") == "url":
        raw = {"message": message, "url": params.get("url")}
        about = ari.PermissionRequest(
            server,
            kind=ari.PermissionKind.QUESTION,
            tool_input_summary=f"{message} {params.get('url')}",
            tool_input_raw=raw,
            takes_message=True,
        )
        return CodexQuestion(request_id, thread_id, about, {"action": "accept"}, deny, interrupt)
    if params.get("mode") != "form":
        return None
    about = ari.PermissionRequest(
        server,
        kind=ari.PermissionKind.QUESTION,
        tool_input_summary=message,
        tool_input_raw={"message": message, "schema": params.get("requestedSchema")},
        takes_updated_input=True,
        takes_message=True,
    )
    allow: CodexAnswer = {"action": "accept", "content": {}}
    return CodexQuestion(request_id, thread_id, about, allow, deny, interrupt, input_as="content")


def _mcp_question(
    request_id: RequestId,
    thread_id: str,
    server: str,
    message: str,
    meta: JsonObject,
    items: Mapping[str, CodexItem],
) -> CodexQuestion:
    """Return the question about a call of an MCP tool; the request does not name its item."""
    called = meta.get("tool_params") or {}
    fitting = [
        item
        for item in items.values()
        if item.type == "mcpToolCall" and item.server == server and item.arguments == called
    ]
    # Two tools can be called with equal arguments. The message contains the tool's name.
    named = [item for item in fitting if f'"{item.tool}"' in message] or fitting
    item = named[0] if named else None
    rules: tuple[ari.PermissionRule, ...] = ()
    answers: dict[str, CodexAnswer] = {}
    if item is not None and "session" in (meta.get("persist") or ()):
        label = f'Every call of the tool "{item.tool}" of the MCP server "{server}"'
        rules = (ari.PermissionRule("session", label),)
        answers["session"] = {"action": "accept", "_meta": {"persist": "session"}}
    about = ari.PermissionRequest(
        f"{server}.{item.tool}" if item is not None else server,
        tool_call_id=item.id if item is not None else "",
        kind=ari.PermissionKind.TOOL,
        tool_input_summary=message,
        tool_input_raw=called,
        message=str(meta.get("tool_description") or ""),
        takes_message=True,
        rules=rules,
    )
    return CodexQuestion(
        request_id,
        thread_id,
        about,
        {"action": "accept"},
        {"action": "decline"},
        {"action": "cancel"},
        answers,
        has_item=True,
    )
