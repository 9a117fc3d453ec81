"""A policy that makes Claude Code ask before each tool call.

By default, Claude Code runs tools and commands that only read without asking. A hook of the session
makes it ask for those too. Rules that a person has allowed for the session remain valid: if this
module recognises that a rule covers a call, the hook leaves the decision to Claude Code.
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
"""Modes that the hook applies to: it makes Claude Code ask, or refuse in `dontAsk`. In the other
modes, a person has switched questions off, or a model answers them."""
INERT: Final = frozenset(
    (
        "Agent", "AskUserQuestion", "BashOutput", "EnterPlanMode", "ExitPlanMode", "KillShell",
        "Task", "TaskCreate", "TaskGet", "TaskList", "TaskOutput", "TaskStop", "TaskUpdate",
        "TodoWrite", "ToolSearch",
    )
)  # fmt: skip
"""Tools that affect nothing outside of the session, or that ask by themselves. Starting a sub-agent
needs no question, because the hook also covers the sub-agent's own calls."""
READING: Final = ("Read", "Grep", "Glob", "LS", "NotebookRead")
"""Tools that only read; for each, a rule that allows all its calls is offered for the session."""
WHY: Final = "Nothing runs without an answer."
REFUSED: Final = "The mode dontAsk refuses what no rule allows."
_SHELL_SYNTAX: Final = re.compile(r"[;&|<>$`\\\n(){}]")
"""Characters of a command that may be several commands, or do more than is visible."""


class AskPolicy:
    """Rules about which tool calls Claude Code must ask for, in one session."""

    def __init__(self) -> None:
        self._rules: list[tuple[str, str]] = []
        """Tool name and scope of each rule that a person has allowed for the session."""

    def hooks(self) -> dict[Any, list[sdk.HookMatcher]]:
        """Return the hooks of a session; a call is blocked if its hook fails."""
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
        """Record the rules that a person has approved for the session."""
        for rule in update.rules or ():
            self._rules.append((rule.tool_name, rule.rule_content or ""))

    def covers(self, name: str, tool_input: Mapping[str, Any]) -> bool:
        """Return whether an allowed rule is known to cover a call."""
        return any(tool == name and _rule_covers(what, tool_input) for tool, what in self._rules)


def _rule_covers(what: str, tool_input: Mapping[str, Any]) -> bool:
    """Return whether a rule covers a call; a rule of an unknown form covers nothing."""
    if not what:
        return True
    command = tool_input.get("command")
    if isinstance(command, str):
        # A rule for `git log` must not cover `git log; rm x`: if a command has shell syntax, only a
        # rule with exactly the same text covers it.
        prefix = re.fullmatch(r"(.+?)(?::| )\*", what)
        if prefix is None or _SHELL_SYNTAX.search(command):
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
    """Return the rules to offer for the session.

    Claude Code suggests no rules for a call that it would run without asking. For those calls, the
    rules are made here.
    """
    if suggested:
        return suggested
    if name in READING:
        rule = PermissionRuleValue(name, None)
    elif name == "Bash" and isinstance(tool_input.get("command"), str):
        rule = PermissionRuleValue(name, tool_input["command"])
    else:
        return ()
    return [sdk.PermissionUpdate("addRules", [rule], "allow", destination="session")]
