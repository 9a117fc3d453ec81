"""Which calls a rule covers that a person has allowed for the session; all others are asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import claude_agent_sdk as sdk
import pytest
from claude_agent_sdk.types import PermissionRuleValue

from arp.runtime.programs.claude.asking import AskPolicy, offered_rules


def ask_first(*rules: tuple[str, str | None]) -> AskPolicy:
    made = AskPolicy()
    values = [PermissionRuleValue(tool, what) for tool, what in rules]
    made.allowed(sdk.PermissionUpdate("addRules", values, "allow"))
    return made


@pytest.mark.parametrize(
    ("what", "command", "covered"),
    [
        ("git diff", "git diff", True),
        ("git diff", "git diff HEAD", False),
        ("git diff *", "git diff HEAD", True),
        ("git diff:*", "git diff HEAD", True),
        ("git diff *", "git difftool", False),
        ("git diff *", "git diff; cat .env", False),
        ("git diff *", "git diff $(cat .env)", False),
        ("git diff *", "git diff > x", False),
        ("git diff *", "git diff\ncat .env", False),
        ("cat a; cat b", "cat a; cat b", True),
    ],
)
def test_rule_for_a_command_covers_that_command(what: str, command: str, covered: bool) -> None:
    assert ask_first(("Bash", what)).covers("Bash", {"command": command}) is covered
    assert not ask_first(("Bash", what)).covers("Monitor", {"command": command})


def test_rule_for_a_tool_covers_the_whole_tool() -> None:
    assert ask_first(("Read", None)).covers("Read", {"file_path": "/etc/passwd"})
    assert not ask_first(("Read", None)).covers("Bash", {"command": "cat /etc/passwd"})


def test_rule_for_a_directory_covers_what_is_really_below_it(tmp_path: Path) -> None:
    rule = ask_first(("Read", f"/{tmp_path}/**"))
    (tmp_path / "out").symlink_to("/etc")
    assert rule.covers("Read", {"file_path": str(tmp_path / "a")})
    assert not rule.covers("Read", {"file_path": str(tmp_path / "out" / "passwd")})
    assert not rule.covers("Read", {"file_path": f"{tmp_path}/../b"})


def test_rule_for_a_domain_covers_that_domain() -> None:
    rule = ask_first(("WebFetch", "domain:example.com"))
    assert rule.covers("WebFetch", {"url": "https://example.com/a"})
    assert not rule.covers("WebFetch", {"url": "https://example.com.evil.test/a"})


@pytest.mark.parametrize(
    ("mode", "tool", "decision"),
    [
        ("default", "Bash", "ask"),
        ("plan", "Read", "ask"),
        ("dontAsk", "Read", "deny"),
        ("default", "mcp__shop__buy", "ask"),
        ("default", "TodoWrite", None),
        ("acceptEdits", "Read", None),
        ("bypassPermissions", "Bash", None),
    ],
)
async def test_every_tool_is_asked_about_in_the_modes_that_ask(
    mode: str, tool: str, decision: str | None
) -> None:
    (matcher,) = AskPolicy().hooks()["PreToolUse"]
    about: Any = {"permission_mode": mode, "tool_name": tool, "tool_input": {}}
    context: Any = {"signal": None}
    decided: Any = await matcher.hooks[0](about, None, context)
    assert decided.get("hookSpecificOutput", {}).get("permissionDecision") == decision
    assert matcher.on_failure == "block"


def test_what_claude_code_suggests_comes_first() -> None:
    suggested = [sdk.PermissionUpdate("setMode", mode="acceptEdits")]
    assert offered_rules("Read", {}, suggested) == suggested
    assert offered_rules("Write", {"file_path": "a"}, ()) == ()
