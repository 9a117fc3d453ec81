"""A tool that asks for leave: renderers know it for what it is, and a yes may reach further."""

from __future__ import annotations

from typing import Any

import pytest

from arp import Turn, ui
from tests.hub.rig import HeldStore, Renderer, running, settled


async def agent(turn: Turn) -> None:
    """Asks for leave by the rule that the user names, beside a confirm that looks the same."""
    async with turn.tool("shell", {"command": turn.text}) as tool:
        allowed = await tool.approve("Run it?", rule=turn.text)
    await turn.say(f"{turn.text}: {allowed}, {tool.denial!r}. ")


async def asked(one: Renderer, turn_id: str) -> Any:
    """Return the message by which a turn asks for leave."""
    await one.box.has("turn", turn_id=turn_id, status="waiting")
    found = [each for each in one.box.of("turn") if each.get("permission")]
    assert found[-1]["turn_id"] == turn_id
    return found[-1]["permission"]


async def answer(one: Renderer, component: str, action: str, **payload: Any) -> None:
    """Answers a question."""
    data: dict[str, Any] = {"action": action, **({"payload": payload} if payload else {})}
    await one.send("action", data, source_component=component)


async def test_a_question_of_a_tool_is_named_outside_of_all_components() -> None:
    """With the tool and its call, whose arguments are known; live and to who comes later."""
    async with running(agent) as hub:
        one = await Renderer(hub).join()
        await one.say("ls")
        permission = await asked(one, "t1")
        assert permission == {
            "component": "t1-1",
            "tool": "shell",
            "call_id": "t1.1",
            "scopes": ["once", "session"],
        }
        late = await Renderer(hub).join()
        assert await asked(late, "t1") == permission
        await answer(one, "t1-1", "confirm")
        await one.ended("t1")
        await settled(hub)
        after = await Renderer(hub).join()
        assert one.screen.text("t1") == "ls: True, ''. "
        for each in (one, late, after):
            shown = each.screen.turns["t1"]
            assert (shown.status, list(shown.permissions)) == ("completed", ["t1-1"])


async def test_no_component_can_pass_for_such_a_question() -> None:
    """Whatever props an agent gives a confirm of its own."""

    async def forger(turn: Turn) -> None:
        await turn.ask(ui.confirm("Run it?", id="fake"))

    async with running(forger) as hub:
        one = await Renderer(hub).join()
        await one.say("go")
        waiting = await one.box.has("turn", status="waiting")
        assert "permission" not in waiting
        assert one.screen.turns["t1"].permissions == {}


async def test_a_yes_for_the_session_is_asked_for_once_by_each_rule() -> None:
    """Over a restart too; another rule asks all the same."""
    store = HeldStore()
    async with running(agent, store=store) as hub:
        one = await Renderer(hub).join()
        await one.say("ls")
        await asked(one, "t1")
        await answer(one, "t1-1", "confirm", scope="session")
        await one.ended("t1")
        await one.say("ls")
        await one.ended("t2")
        assert one.screen.text("t2") == "ls: True, ''. "
    async with running(agent, store=store) as hub:
        again = await Renderer(hub).join()
        await again.say("ls")
        await again.ended("t3")
        await again.say("rm")
        await asked(again, "t4")
        facts = await store.facts()
    evaluated = [fact.payload for fact in facts if fact.type == "permission.evaluated"]
    assert [one["decision"] for one in evaluated] == ["ask", "allow", "allow", "ask"]
    assert evaluated[1]["decidedBy"] == {"kind": "person", "name": "user"}


async def test_a_yes_for_once_is_a_yes_for_once() -> None:
    async with running(agent) as hub:
        one = await Renderer(hub).join()
        await one.say("ls")
        await asked(one, "t1")
        await answer(one, "t1-1", "confirm", scope="once")
        await one.ended("t1")
        assert hub.sessions["s"].session.settings.grants == set()


@pytest.mark.parametrize("scope", ["always", "", "Session", ["session"], {}, True, 1])
async def test_a_yes_for_what_is_unknown_is_refused_and_the_question_stays(scope: Any) -> None:
    """Somebody may have meant more than once, or less: nothing runs on a guess."""
    async with running(agent) as hub:
        one = await Renderer(hub).join()
        await one.say("ls")
        await asked(one, "t1")
        await answer(one, "t1-1", "confirm", scope=scope)
        refused = await one.box.has("error")
        assert refused["payload"]["code"] == 11
        assert refused["payload"]["error"].startswith("payload.scope: expected once or session, g")
        await answer(one, "t1-1", "confirm", scope=None)
        await one.ended("t1")
        assert one.screen.text("t1") == "ls: True, ''. "


async def test_a_no_says_why_and_allows_nothing() -> None:
    async with running(agent) as hub:
        one = await Renderer(hub).join()
        await one.say("rm")
        await asked(one, "t1")
        await answer(one, "t1-1", "deny", reason=" too dangerous ", scope="session")
        await one.ended("t1")
        assert one.screen.text("t1") == "rm: False, 'too dangerous'. "
        assert hub.sessions["s"].session.settings.grants == set()
