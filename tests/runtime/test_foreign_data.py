"""Names, titles, choices and plans of any runtime that do not fit never end a turn."""

from __future__ import annotations

from pathlib import Path

import pytest

from arp.client.client import ArpClient
from arp.protocol.json_value import JsonObject
from arp.runtime.contract import types as ari
from arp.testing import Says, Step, Tells, Uses
from tests.runtime.test_agent import asked, shown, until
from tests.runtime.test_user_questions import open_questions, question

Lifecycle = ari.Lifecycle
HUGE = "x" * 2_000_000
"""More than a message carries."""


def of_type(client: ArpClient, kind: str) -> list[JsonObject]:
    """Return the props of the components of a type that show."""
    return [
        one.props
        for turn in client.screen.turns
        for one in client.screen.output(turn)
        if one.type == kind
    ]


@pytest.mark.parametrize(
    "step",
    [
        Tells(Lifecycle.PLAN, details={"todos": 3}),
        Tells(Lifecycle.PLAN, details={"todos": [3, {"text": 3, "status": []}, {"text": HUGE}]}),
        Tells(Lifecycle.COMPONENT, details={"component": 3}),
        Tells(
            Lifecycle.COMPONENT,
            details={"component": {"type": "text", "props": {"content": HUGE}}},
        ),
        Tells(Lifecycle.RETRYING, HUGE, {"attempt": [], "delay_ms": "soon", "http_status": HUGE}),
        Tells(Lifecycle.RATE_LIMIT, details={"limit": HUGE, "used": 1e307, "status": "warning"}),
        Tells(Lifecycle.RATE_LIMIT, details={"limit": [], "resets_at_s": -1}),
        Tells(Lifecycle.SUBAGENT, HUGE, {"subagent_id": "a", "status": 3, "name": HUGE}),
        Tells(Lifecycle.HOOK, details={"name": 3, "duration_ms": "long"}),
        Tells(Lifecycle.COMPACTION, details={"tokens_before": "many"}),
        Tells(Lifecycle.MODE, HUGE),
        Tells(Lifecycle.SPEAKER, HUGE),
        Uses("", {}, "done"),
        Uses(HUGE, {}, "done"),
        Uses("two\nlines", {"command": HUGE}, HUGE),
    ],
)
async def test_what_does_not_fit_does_not_end_the_turn(step: Step, tmp_path: Path) -> None:
    async with shown({"go": [step, Says("Done.")]}, tmp_path) as (client, _, _):
        await client.send_text("go")
        turn = await client.turn_done()
        assert (turn.status, client.screen.text(turn.id)[-5:]) == ("completed", "Done.")


async def test_plan_that_is_too_long_is_shortened(tmp_path: Path) -> None:
    todos = [{"text": f"{number} {HUGE[:9_000]}", "status": "active"} for number in range(300)]
    plan = Tells(Lifecycle.PLAN, details={"todos": todos})
    async with shown({"go": [plan, Says("Done.")]}, tmp_path) as (client, _, _):
        await client.ask("go")
        (progress,) = of_type(client, "progress")
        steps = progress["steps"]
        assert (len(steps), steps[-1]["name"]) == (101, "… and 200 more")
        assert (len(steps[0]["name"]), steps[0]["name"][-1]) == (500, "…")


async def test_names_of_tools_that_are_shortened_stay_two(tmp_path: Path) -> None:
    first, second = f"{HUGE[:1_000]}1", f"{HUGE[:1_000]}2"
    script: dict[str, list[Step]] = {"go": [Uses(first, {}), Uses(second, {}), Uses("", {})]}
    async with shown(script, tmp_path) as (client, _, _):
        turn = await client.ask("go")
        names = [one.tool for one in turn.tools]
        assert (len(set(names)), max(map(len, names)), names[2]) == (3, 200, "tool")


async def test_permission_with_a_huge_name_and_odd_rules_is_asked(tmp_path: Path) -> None:
    """Two rules of one label can both be chosen; those that nobody can read are not offered."""
    rules = (
        ari.PermissionRule("a", "Everything here"),
        ari.PermissionRule("b", "Everything here"),
        ari.PermissionRule("c", HUGE),
        ari.PermissionRule("d", " "),
    )
    step = Uses(HUGE, {"command": "ls"}, asks=True, rules=rules)
    async with shown({"go": [step, Says("Done.")]}, tmp_path) as (client, fake, _):
        await client.send_text("go")
        (permission,) = (await until(client, lambda: asked(client))).values()
        await client.send_permission(permission, True, scope="session")
        which = await question(client, "choices")
        assert which.props["options"][:2] == ["Everything here (a)", "Everything here (b)"]
        assert len(which.props["options"]) == 3
        await client.send_selection(["Everything here (b)"], source=which.id)
        turn = await client.turn_done()
        assert turn.status == "completed"
        sent = [one for name, one in fake.called if name == "respond_permission"]
        assert isinstance(sent[-1], ari.RespondPermissionRequest)
        assert sent[-1].response.rule_id == "b"


async def test_permission_that_cannot_be_shown_runs_nothing_and_says_so(tmp_path: Path) -> None:
    step = Uses("shell", {"command": HUGE}, asks=True)
    async with shown({"go": [step, Says("Done.")]}, tmp_path) as (client, fake, _):
        await client.send_text("go")
        turn = await client.turn_done()
        assert (turn.status, fake.ran, open_questions(client)) == ("completed", [], [])
        (said,) = [
            one["content"] for one in of_type(client, "text") if "Nothing ran" in one["content"]
        ]
        assert said.startswith("Nothing ran: shell cannot be asked for: ")
