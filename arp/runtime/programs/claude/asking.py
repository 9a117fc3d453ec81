"""What Claude Code asks before a tool runs: by itself it runs commands and tools that only read.

A hook of the session makes it ask for those too. A rule that a person has allowed for the session
counts on: for calls that it covers as far as that can be seen here, Claude Code decides.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any, Final

import claude_agent_sdk as sdk
from claude_agent_sdk.types import PermissionRuleValue

ASKING_MODES: Final = frozenset(("default", "plan", "dontAsk"))
"""In the other modes a person has switched questions off, or a model answers them."""
INERT: Final = frozenset(
    (
        "Agent", "AskUserQuestion", "BashOutput", "EnterPlanMode", "ExitPlanMode", "KillShell",
        "Task", "TaskCreate", "TaskGet", "TaskList", "TaskOutput", "TaskStop", "TaskUpdate",
        "TodoWrite", "ToolSearch",
    )
)  # fmt: skip
"""Tools that reach nothing outside of the session, or ask by themselves. What a sub-agent does is
asked as what its agent does."""
READING: Final = ("Read", "Grep", "Glob", "LS", "NotebookRead")
"""Tools that only read: for the session they are offered as a whole."""
WHY: Final = "Nothing runs without an answer."
REFUSED: Final = "The mode dontAsk refuses what no rule allows."
_SEVERAL: Final = re.compile(r"[;&|<>$`\\\n(){}]")
"""In a command that may be several, or more than it seems."""


class AskFirst:
    """Decides which calls of tools Claude Code has to ask about."""

    def __init__(self) -> None:
        self._rules: list[tuple[str, str]] = []
        """Name of a tool and what of it, as people have allowed it for the session."""

    def hooks(self) -> dict[Any, list[sdk.HookMatcher]]:
        """Return the hooks of a session; a call is blocked if they fail."""
        return {"PreToolUse": [sdk.HookMatcher(hooks=[self._before_tool], on_failure="block")]}

    async def _before_tool(self, about: Any, tool_use_id: str | None, context: Any) -> Any:
        mode, name = about.get("permission_mode", "default"), about["tool_name"]
        if mode not in ASKING_MODES or name in INERT or self.covers(name, about["tool_input"]):
            return {}
        if mode == "dontAsk":
            decided = {"permissionDecision": "deny", "permissionDecisionReason": REFUSED}
        else:
            decided = {"permissionDecision": "ask", "permissionDecisionReason": WHY}
        return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **decided}}

    def allowed(self, update: sdk.PermissionUpdate) -> None:
        """Take note of a rule that a person has allowed."""
        for rule in update.rules or ():
            self._rules.append((rule.tool_name, rule.rule_content or ""))

    def covers(self, name: str, tool_input: Mapping[str, Any]) -> bool:
        """Return whether a rule that a person has allowed covers a call, as far as is seen here."""
        return any(tool == name and _fits(what, tool_input) for tool, what in self._rules)


def _fits(what: str, tool_input: Mapping[str, Any]) -> bool:
    """Return whether a call is what a rule allows; what is not understood is not."""
    if not what:
        return True
    command = tool_input.get("command")
    if isinstance(command, str):
        prefix = re.fullmatch(r"(.+?)(?::| )\*", what)
        if prefix is None or _SEVERAL.search(command):
            return command == what
        return command == prefix[1] or command.startswith(f"{prefix[1]} ")
    path = tool_input.get("file_path") or tool_input.get("path")
    if isinstance(path, str) and what.startswith("//") and what.endswith("/**"):
        return PurePath(os.path.realpath(path)).is_relative_to(what[1:-3])
    url = tool_input.get("url")
    if isinstance(url, str) and what.startswith("domain:"):
        return url.startswith(f"https://{what.removeprefix('domain:')}/")
    return False


def offered_rules(
    name: str, tool_input: Mapping[str, Any], suggested: Sequence[sdk.PermissionUpdate]
) -> Sequence[sdk.PermissionUpdate]:
    """Return what can be allowed for the session; Claude Code suggests none where it never asks."""
    if suggested:
        return suggested
    if name in READING:
        rule = PermissionRuleValue(name, None)
    elif name == "Bash" and isinstance(tool_input.get("command"), str):
        rule = PermissionRuleValue(name, tool_input["command"])
    else:
        return ()
    return [sdk.PermissionUpdate("addRules", [rule], "allow", destination="session")]
