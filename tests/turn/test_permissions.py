"""A tool that asks for leave: renderers know it for what it is, and a yes may reach further."""

from __future__ import annotations

import asyncio
import json
import time
from hashlib import sha256
from typing import Any

import pytest

from arp import Turn, ui
from arp.ledger.fact import Fact
from arp.protocol.json_value import JsonObject
from arp.protocol.messages import Permission
from arp.turn.approval.approval import Approval, RecheckResult
from arp.turn.tool import ToolCall
from tests.hub.rig import HeldStore, Renderer, running, settled
from tests.support.waiting import becomes


async def agent(turn: Turn) -> None:
    """Asks for leave by the rule that the user names, beside a confirm that looks the same."""
    async with turn.tool("shell", {"command": turn.text}) as tool:
        allowed = await tool.approve("Run it?", rule=turn.text, session_rule=f"any {turn.text}")
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
            "digest": sha256(b'{"command":"ls"}').hexdigest(),
            "session_rule": "any ls",
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


# -- what is approved ------------------------------------------------------------------------------

COMMAND: JsonObject = {"command": "ls", "cwd": "/tmp"}
TOKEN = "ghp_" + "k3Yx" * 9


def asking(told: list[Approval], args: Any = COMMAND, **options: Any) -> Any:
    """Return an agent that asks for permission once, and keeps what came of it."""

    async def agent(turn: Turn) -> None:
        async with turn.tool("shell", args) as tool:
            told.append(await tool.ask_permission("Run it?", rule="commands", **options))

    return agent


def permission_of(one: Renderer, component: str = "t1-1") -> Permission:
    """Return the permission that a renderer shows."""
    return one.screen.turns["t1"].permissions[component]


def state_of(one: Renderer, component: str = "t1-1") -> Any:
    return one.screen.surfaces["main"].component(component).props["state"]


async def refusal(one: Renderer) -> str:
    """Return what the renderer was told last of what is wrong with its input."""
    error = (await one.box.has("error"))["payload"]
    assert error["code"] == 11
    return str(error["error"])


async def resolved(store: HeldStore) -> list[JsonObject]:
    facts = await store.facts()
    return [fact.payload for fact in facts if fact.type == "permission.resolved"]


async def test_an_approval_says_what_was_approved_and_how_far() -> None:
    """The digest is of the bytes that the tool was called with."""
    told: list[Approval] = []
    store = HeldStore()
    async with running(asking(told), store=store) as hub:
        one = await Renderer(hub).join()
        await one.say("go")
        permission = await asked(one, "t1")
        assert permission["scopes"] == ["once"]
        assert {"session_rule", "editable", "expires_at", "input"}.isdisjoint(permission)
        await answer(one, "t1-1", "confirm", scope="once", digest=permission["digest"])
        await one.ended("t1")
        facts = await resolved(store)
    digest = sha256(b'{"command":"ls","cwd":"/tmp"}').hexdigest()
    (approval,) = told
    assert (approval.allowed, approval.scope, approval.digest) == (True, "once", digest)
    assert (approval.args, approval.updated_input, approval.reason) == (COMMAND, None, "")
    assert facts == [{"tool": "shell", "decision": "allow", "scope": "once", "digest": digest}]


async def test_an_approval_covers_what_was_shown_and_nothing_else() -> None:
    """What the agent changes after the question is not what was approved."""
    told: list[Approval] = []
    args = {"command": "ls", "n": 1}
    async with running(asking(told, args)) as hub:
        one = await Renderer(hub).join()
        await one.say("go")
        await asked(one, "t1")
        args["command"] = "rm"
        await answer(one, "t1-1", "confirm")
        await one.ended("t1")
    (approval,) = told
    assert approval.args == {"command": "ls", "n": 1}
    assert approval.covers({"command": "ls", "n": 1})
    assert approval.covers('{"command":"ls","n":1}')
    for other in (args, {"n": 1, "command": "ls"}, {"command": "ls", "n": 1.0}, "ls", None):
        assert not approval.covers(other)
    approval.args["command"] = "rm"
    assert approval.covers(approval.args)


@pytest.mark.parametrize("action", ["deny", "confirm"])
async def test_what_was_denied_covers_nothing(action: str) -> None:
    told: list[Approval] = []
    async with running(asking(told)) as hub:
        one = await Renderer(hub).join()
        await one.say("go")
        await asked(one, "t1")
        await answer(one, "t1-1", action, reason="no")
        await one.ended("t1")
    assert told[0].covers(COMMAND) is told[0].allowed is bool(told[0]) is (action == "confirm")


async def test_an_input_of_its_own_is_shown_whole() -> None:
    """Where it is not what the tool was called with."""
    told: list[Approval] = []
    own = {"command": "ls " + "x" * 5000}
    async with running(asking(told, input=own)) as hub:
        one = await Renderer(hub).join()
        await one.say("go")
        permission = await asked(one, "t1")
        assert json.loads(permission["input"]) == own
        await answer(one, "t1-1", "confirm")
        await one.ended("t1")
    assert told[0].args == own
    assert told[0].covers(own)


async def test_secrets_are_shown_as_marks_and_the_digest_covers_them() -> None:
    """It is salted, so that nobody finds a short secret by trying; and not editable."""
    told: list[Approval] = []
    store = HeldStore()
    own = {"command": f"push {TOKEN}", "password": "1234"}
    async with running(asking(told, input=own, editable=True), store=store) as hub:
        one = await Renderer(hub).join()
        await one.say("go")
        permission = await asked(one, "t1")
        assert json.loads(permission["input"]) == {
            "command": "push ghp_[redacted]",
            "password": "[redacted]",
        }
        assert "editable" not in permission
        plain = json.dumps(own, separators=(",", ":"))
        assert permission["digest"] != sha256(plain.encode()).hexdigest()
        await answer(one, "t1-1", "confirm", updated_input={"command": "x"})
        assert "offers no change" in await refusal(one)
        await answer(one, "t1-1", "confirm", digest=permission["digest"])
        await one.ended("t1")
        assert TOKEN.encode() not in b"".join(one.box.frames)
        ledger = [body async for body in _bodies(store)]
    assert TOKEN.encode() not in b"".join(ledger)
    (approval,) = told
    assert approval.args == own
    assert approval.covers(own)
    assert not approval.covers({**own, "password": "1235"})
    assert approval.digest == sha256(approval.salt + plain.encode()).hexdigest()


async def _bodies(store: HeldStore) -> Any:
    for _, body in await store.read("s", 0):
        yield body


async def test_an_answer_about_another_input_is_refused_and_the_question_stays() -> None:
    told: list[Approval] = []
    async with running(asking(told)) as hub:
        one = await Renderer(hub).join()
        await one.say("go")
        await asked(one, "t1")
        await answer(one, "t1-1", "confirm", digest="0" * 64)
        assert (await refusal(one)).startswith("payload.digest: the answer is for another")
        assert state_of(one) == "open"
        await answer(one, "t1-1", "deny", reason="wrong")
        await one.ended("t1")
    assert (told[0].allowed, told[0].reason) == (False, "wrong")


async def test_a_session_rule_that_is_not_offered_cannot_be_allowed() -> None:
    told: list[Approval] = []
    async with running(asking(told)) as hub:
        one = await Renderer(hub).join()
        await one.say("go")
        await asked(one, "t1")
        await answer(one, "t1-1", "confirm", scope="session")
        assert "offers once only" in await refusal(one)
        assert hub.sessions["s"].session.settings.grants == set()


async def test_a_grant_is_the_rule_that_was_shown_and_nothing_wider() -> None:
    """Another rule of the same tool, and the same words for another tool, ask again."""
    told: list[tuple[str, bool]] = []

    async def agent(turn: Turn) -> None:
        tool_name, session_rule = turn.text.split(":")
        async with turn.tool(tool_name, {"n": 1}) as tool:
            one = await tool.ask_permission("Run?", rule="all", session_rule=session_rule)
            told.append((turn.text, one.allowed))

    async with running(agent) as hub:
        one = await Renderer(hub).join()
        await one.say("shell:git *")
        assert (await asked(one, "t1"))["session_rule"] == "git *"
        await answer(one, "t1-1", "confirm", scope="session")
        await one.ended("t1")
        await one.say("shell:git *")
        await one.ended("t2")
        for turn_id, text in (("t3", "shell:git"), ("t4", "git:git *"), ("t5", "shell:all")):
            await one.say(text)
            await asked(one, turn_id)
            await answer(one, f"{turn_id}-1", "deny")
            await one.ended(turn_id)
    assert [allowed for _, allowed in told] == [True, True, False, False, False]


# -- an edited input -------------------------------------------------------------------------------


async def test_an_edited_input_is_approved_under_its_own_digest() -> None:
    told: list[Approval] = []
    store = HeldStore()
    async with running(asking(told, editable=True), store=store) as hub:
        one = await Renderer(hub).join()
        await one.say("go")
        permission = await asked(one, "t1")
        assert permission["editable"] is True
        edited = {"command": "ls -l", "cwd": "/tmp"}
        digest = permission["digest"]
        await answer(one, "t1-1", "confirm", updated_input=edited, digest=digest)
        await one.ended("t1")
        facts = await resolved(store)
    (approval,) = told
    own = sha256(b'{"command":"ls -l","cwd":"/tmp"}').hexdigest()
    assert own != digest
    assert (approval.digest, approval.edited, approval.updated_input) == (own, True, edited)
    assert approval.covers(edited)
    assert not approval.covers(COMMAND)
    expected = {"tool": "shell", "decision": "allow", "scope": "once", "digest": own}
    assert facts == [{**expected, "edited": True}]


async def test_an_edit_that_changes_nothing_is_none() -> None:
    told: list[Approval] = []
    async with running(asking(told, editable=True)) as hub:
        one = await Renderer(hub).join()
        await one.say("go")
        digest = (await asked(one, "t1"))["digest"]
        await answer(one, "t1-1", "confirm", updated_input=COMMAND)
        await one.ended("t1")
    assert (told[0].edited, told[0].updated_input, told[0].digest) == (False, None, digest)


async def test_a_secret_that_somebody_types_reaches_the_tool_and_no_fact() -> None:
    told: list[Approval] = []
    store = HeldStore()
    async with running(asking(told, editable=True), store=store) as hub:
        one = await Renderer(hub).join()
        await one.say("go")
        await asked(one, "t1")
        await answer(one, "t1-1", "confirm", updated_input={"command": TOKEN})
        await one.ended("t1")
        assert TOKEN.encode() not in b"".join(one.box.frames)
        assert TOKEN.encode() not in b"".join([body async for body in _bodies(store)])
    assert told[0].args == {"command": TOKEN}
    plain = f'{{"command":"{TOKEN}"}}'.encode()
    assert told[0].digest == sha256(told[0].salt + plain).hexdigest() != sha256(plain).hexdigest()


@pytest.mark.parametrize(
    ("action", "edited", "why"),
    [
        ("confirm", "ls", "expected object, got string"),
        ("confirm", [1], "expected object, got array"),
        ("confirm", {"x": "y" * (256 << 10)}, "at most 262144"),
        ("deny", {"command": "ls"}, "only with confirm"),
    ],
)
async def test_an_edit_that_is_none_is_refused_and_the_question_stays(
    action: str, edited: Any, why: str
) -> None:
    told: list[Approval] = []
    async with running(asking(told, editable=True)) as hub:
        one = await Renderer(hub).join()
        await one.say("go")
        await asked(one, "t1")
        await answer(one, "t1-1", action, updated_input=edited)
        refused = await refusal(one)
        assert refused.startswith("payload.updated_input: ")
        assert why in refused
        assert state_of(one) == "open"


async def test_an_edit_that_was_not_offered_is_refused() -> None:
    """Of a permission, and of any other confirm."""

    async def plainly(turn: Turn) -> None:
        await turn.confirm("Sure?", id="t1-1")

    for agent in (asking([]), plainly):
        async with running(agent) as hub:
            one = await Renderer(hub).join()
            await one.say("go")
            await one.box.has("turn", status="waiting")
            await answer(one, "t1-1", "confirm", updated_input={"command": "rm"})
            assert "offers no change of the input" in await refusal(one)


async def test_approve_leaves_the_args_that_were_approved() -> None:
    told: list[Any] = []

    async def agent(turn: Turn) -> None:
        async with turn.tool("shell", COMMAND) as tool:
            told.append(tool.args)
            told.append(await tool.approve("Run it?", rule="commands", editable=True))
            told.append(tool.args)

    async with running(agent) as hub:
        one = await Renderer(hub).join()
        await one.say("go")
        await asked(one, "t1")
        await answer(one, "t1-1", "confirm", updated_input={"command": "pwd"})
        await one.ended("t1")
    assert told == [COMMAND, True, {"command": "pwd"}]


# -- deadlines -------------------------------------------------------------------------------------


async def test_a_question_whose_time_is_over_expires_on_all_renderers() -> None:
    told: list[Approval] = []
    store = HeldStore()
    before = time.time()
    async with running(asking(told, timeout_s=0.05), store=store) as hub:
        one, two = await Renderer(hub).join(), await Renderer(hub).join()
        await one.say("go")
        permission = await asked(one, "t1")
        await one.ended("t1")
        await two.ended("t1")
        assert [state_of(each) for each in (one, two)] == ["expired", "expired"]
        await answer(two, "t1-1", "confirm")
        assert "has expired and takes no more answers" in await refusal(two)
        facts = await resolved(store)
    (approval,) = told
    assert (approval.decision, approval.allowed) == ("expired", False)
    assert approval.reason == "nobody answered in time"
    assert facts == [{"tool": "shell", "decision": "expired", "digest": approval.digest}]
    ends = time.strptime(permission["expires_at"][:19], "%Y-%m-%dT%H:%M:%S")
    assert abs(time.mktime(ends) - time.timezone - before) < 3


async def test_an_answer_behind_the_deadline_is_refused_also_where_the_timer_is_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As after a loop that was blocked, or a machine that slept."""
    told: list[Approval] = []
    async with running(asking(told, timeout_s=3600.0)) as hub:
        one = await Renderer(hub).join()
        await one.say("go")
        await asked(one, "t1")
        later = time.time() + 3601
        monkeypatch.setattr(time, "time", lambda: later)
        await answer(one, "t1-1", "confirm")
        assert "has expired" in await refusal(one)
        await one.ended("t1")
    assert told[0].decision == "expired"


async def test_an_answer_in_time_counts_and_nothing_is_left_of_the_deadline() -> None:
    told: list[Approval] = []
    async with running(asking(told, timeout_s=60.0)) as hub:
        one = await Renderer(hub).join()
        await one.say("go")
        await asked(one, "t1")
        await answer(one, "t1-1", "confirm")
        await one.ended("t1")
        assert hub.sessions["s"].deadlines == {}
    assert told[0].allowed


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"timeout_s": 0}, "timeout_s: expected more than 0"),
        ({"timeout_s": float("nan")}, "timeout_s: expected more than 0"),
        ({"timeout_s": "1"}, "timeout_s: expected seconds, got str"),
        ({"session_rule": " "}, "session_rule: expected 1 to 1000 characters"),
        ({"session_rule": "x" * 1001}, "session_rule: expected 1 to 1000 characters"),
        ({"session_rule": 7}, "session_rule: expected a text, got int"),
        ({"editable": True, "input": [1]}, "editable: only an input that is an object"),
    ],
)
async def test_a_wrong_argument_asks_nobody(options: Any, error: str) -> None:
    wrong: list[str] = []

    async def agent(turn: Turn) -> None:
        async with turn.tool("shell", COMMAND) as tool:
            try:
                await tool.ask_permission("Run it?", rule="commands", **options)
            except (TypeError, ValueError) as raised:
                wrong.append(str(raised))

    store = HeldStore()
    async with running(agent, store=store) as hub:
        one = await Renderer(hub).join()
        await one.say("go")
        await one.ended("t1")
        kinds = {fact.type for fact in await store.facts()}
    assert wrong[0].startswith(error)
    assert not {kind for kind in kinds if kind.startswith(("permission.", "action."))}


# -- several at once, on several screens -----------------------------------------------------------


async def two_tools(turn: Turn) -> None:
    """Asks for two tools at once, and says which may run."""

    async def use(name: str) -> str:
        async with turn.tool(name, {"what": name}) as tool:
            return f"{name} {await tool.approve(f'Use {name}?', rule='all')}. "

    turn.cache["said"] = await asyncio.gather(use("one"), use("two"))
    await turn.say("".join(turn.cache["said"]))


async def both_asked(one: Renderer) -> dict[str, Permission]:
    """Return the two permissions of `two_tools`, by tool."""
    await one.box.until(lambda: len([m for m in one.box.of("turn") if m.get("permission")]) == 2)
    return {each.tool: each for each in one.screen.turns["t1"].permissions.values()}


@pytest.mark.parametrize("first", ["one", "two"])
async def test_two_tools_that_ask_at_once_get_each_its_own_answer(first: str) -> None:
    """The turn waits until both are answered."""
    async with running(two_tools) as hub:
        one = await Renderer(hub).join()
        await one.say("go")
        asked_by = await both_asked(one)
        second = "two" if first == "one" else "one"
        await answer(one, asked_by[first].component, "confirm", digest=asked_by[first].digest)
        await becomes(lambda: state_of(one, asked_by[first].component) == "answered")
        await settled(hub)
        assert one.screen.turns["t1"].status == "waiting"
        await answer(one, asked_by[second].component, "deny", digest=asked_by[second].digest)
        await one.ended("t1")
        expected = {"one": f"one {first == 'one'}. ", "two": f"two {first == 'two'}. "}
        assert one.screen.text("t1") == expected["one"] + expected["two"]


async def test_the_digest_of_one_question_answers_no_other() -> None:
    async with running(two_tools) as hub:
        one = await Renderer(hub).join()
        await one.say("go")
        asked_by = await both_asked(one)
        await answer(one, asked_by["one"].component, "confirm", digest=asked_by["two"].digest)
        assert "payload.digest" in await refusal(one)


async def test_a_yes_that_names_no_question_is_refused_where_there_is_more_than_one() -> None:
    """Somebody may mean the one that they saw first. A no harms nobody."""
    async with running(two_tools) as hub:
        one = await Renderer(hub).join()
        await one.say("go")
        asked_by = await both_asked(one)
        await one.send("action", {"action": "confirm"})
        assert "name the one that you allow" in await refusal(one)
        texts = await Renderer(hub, components=["text"]).join()
        await texts.say("yes", id="typed")
        assert "name the one that you allow" in await refusal(texts)
        await one.send("action", {"action": "deny"})
        await becomes(lambda: state_of(one, asked_by["two"].component) == "answered")
        await one.send("action", {"action": "confirm"})  # still: the other was just answered
        assert state_of(one, asked_by["one"].component) == "open"
        await answer(one, asked_by["one"].component, "confirm")
        await one.ended("t1")
        assert one.screen.text("t1") == "one True. two False. "


async def test_a_yes_that_names_no_question_is_not_for_the_one_behind_an_expired_one() -> None:
    async def agent(turn: Turn) -> None:
        for name in ("one", "two"):
            async with turn.tool(name, {}) as tool:
                timeout_s = 0.02 if name == "one" else None
                await tool.approve(f"Use {name}?", rule="all", timeout_s=timeout_s)

    async with running(agent) as hub:
        one = await Renderer(hub).join()
        await one.say("go")
        await both_asked(one)
        await one.send("action", {"action": "confirm"})
        assert "name the one that you allow" in await refusal(one)


async def test_a_yes_that_names_no_question_is_enough_where_there_is_one() -> None:
    """One behind the other; the draft's renderers name none."""

    async def agent(turn: Turn) -> None:
        for name in ("one", "two"):
            async with turn.tool(name, {}) as tool:
                await turn.say(str(await tool.approve(f"Use {name}?", rule="all")))

    async with running(agent) as hub:
        one = await Renderer(hub).join()
        texts = await Renderer(hub, components=["text"]).join()
        await one.say("go")
        await asked(one, "t1")
        await texts.say("yes")
        await both_asked(one)
        await one.send("action", {"action": "confirm"})
        await one.ended("t1")
        assert one.screen.text("t1") == "TrueTrue"


@pytest.mark.parametrize("winner", ["confirm", "deny"])
async def test_of_two_screens_that_answer_at_once_one_wins_and_the_other_is_told(
    winner: str,
) -> None:
    told: list[Approval] = []
    async with running(asking(told)) as hub:
        one, two = await Renderer(hub).join(), await Renderer(hub).join()
        await one.say("go")
        await asked(two, "t1")
        loser = "deny" if winner == "confirm" else "confirm"
        await asyncio.gather(answer(one, "t1-1", winner), answer(two, "t1-1", loser))
        assert "is already answered" in await refusal(two)
        await two.ended("t1")
        assert one.box.of("error") == []
        assert state_of(two) == "answered"
    assert [each.allowed for each in told] == [winner == "confirm"]


async def test_an_answer_that_comes_again_changes_nothing() -> None:
    """By its id it is the same input; without, the question is over."""
    told: list[Approval] = []
    store = HeldStore()
    async with running(asking(told), store=store) as hub:
        one = await Renderer(hub).join()
        await one.say("go")
        await asked(one, "t1")
        yes = {"action": "confirm"}
        for _ in range(3):
            await one.send("action", yes, source_component="t1-1", id="same")
        await one.ended("t1")
        await one.send("action", yes, source_component="t1-1", id="other")
        assert "is already answered" in await refusal(one)
        await settled(hub)
        facts = await store.facts()
    assert len(told) == 1
    assert len([fact for fact in facts if fact.type == "action.resolved"]) == 1
    assert hub.sessions == {} or len(_turns(facts)) == 1


def _turns(facts: list[Fact]) -> set[str]:
    return {fact.turn_id for fact in facts if fact.turn_id and fact.type.startswith("turn.")}


async def test_an_answer_after_the_cancel_is_refused() -> None:
    told: list[Approval] = []
    async with running(asking(told)) as hub:
        one = await Renderer(hub).join()
        await one.say("go")
        await asked(one, "t1")
        await one.cancel()
        await one.ended("t1")
        await answer(one, "t1-1", "confirm")
        assert "was cancelled and takes no more answers" in await refusal(one)
    assert told == []


async def test_a_component_in_place_of_the_question_answers_nothing_else() -> None:
    """An agent may replace what it shows; the permission stays what the server said."""
    told: list[bool] = []

    async def agent(turn: Turn) -> None:
        async def forge(tool: ToolCall) -> None:
            await becomes(lambda: tool.call_id is not None)
            turn.patch("t1-1", "props.title", "Say hello?")

        async with turn.tool("shell", {"command": "rm -r /"}) as tool:
            other = asyncio.ensure_future(forge(tool))
            told.append(await tool.approve("Run it?", rule="all"))
            await other

    async with running(agent) as hub:
        one = await Renderer(hub).join()
        await one.say("go")
        await asked(one, "t1")
        await settled(hub)
        shown = permission_of(one)
        assert shown.digest == sha256(b'{"command":"rm -r /"}').hexdigest()
        assert one.screen.turns["t1"].tools[0].args == '{"command":"rm -r /"}'
        await answer(one, "t1-1", "deny", digest=shown.digest)
        await one.ended("t1")
    assert told == [False]


# -- a second look before a yes counts -------------------------------------------------------------

FILES: list[JsonObject] = [{"path": "/a", "bytes": 1, "sha256": "0" * 64}]


def rechecking(told: list[Approval], seen: list[Approval], found: RecheckResult) -> Any:
    """Return an agent that looks again when somebody has said yes."""

    async def again(approval: Approval) -> RecheckResult:
        seen.append(approval)
        return found

    return asking(told, files=FILES, recheck=again)


async def test_a_yes_that_a_second_look_refuses_is_no_approval() -> None:
    """Its fact names the policy, the reason and the files as they are now."""
    store, told, seen = HeldStore(), list[Approval](), list[Approval]()
    found = RecheckResult("it changed", [{"path": "/a", "bytes": 2}])
    async with running(rechecking(told, seen, found), store=store) as hub:
        one = await Renderer(hub).join()
        await one.say("go")
        permission = await asked(one, "t1")
        await answer(one, permission["component"], "confirm")
        await one.ended("t1")
        facts = await store.facts()
    assert [approval.allowed for approval in seen] == [True]
    assert [(one.decision, one.scope, one.reason) for one in told] == [("deny", None, "it changed")]
    assert not told[0].covers(COMMAND)
    (requested,) = [fact.payload for fact in facts if fact.type == "permission.requested"]
    (resolved,) = [fact.payload for fact in facts if fact.type == "permission.resolved"]
    assert requested["files"] == FILES
    assert resolved == {
        "tool": "shell",
        "decision": "deny",
        "deniedBy": {"kind": "hostPolicy", "name": "second-look"},
        "digest": permission["digest"],
        "reason": "it changed",
        "files": [{"path": "/a", "bytes": 2}],
    }


async def test_only_a_yes_gets_a_second_look() -> None:
    told, seen = list[Approval](), list[Approval]()
    async with running(rechecking(told, seen, RecheckResult())) as hub:
        one = await Renderer(hub).join()
        for number, action in enumerate(("deny", "confirm"), 1):
            await one.say("go")
            permission = await asked(one, f"t{number}")
            await answer(one, permission["component"], action)
            await one.ended(f"t{number}")
    assert [one.decision for one in told] == ["deny", "allow"]
    assert len(seen) == 1


async def test_a_cancel_during_the_second_look_is_no_approval() -> None:
    store, looking = HeldStore(), asyncio.Event()
    told: list[Approval] = []

    async def again(_: Approval) -> RecheckResult:
        looking.set()
        await asyncio.Event().wait()
        return RecheckResult()

    async with running(asking(told, recheck=again), store=store) as hub:
        one = await Renderer(hub).join()
        await one.say("go")
        permission = await asked(one, "t1")
        await answer(one, permission["component"], "confirm")
        await looking.wait()
        await one.cancel()
        await one.ended("t1")
        facts = await store.facts()
    assert told == []
    (resolved,) = [fact.payload for fact in facts if fact.type == "permission.resolved"]
    assert resolved["decision"] == "cancelled"


async def test_a_grant_that_is_kept_cannot_have_a_second_look() -> None:
    """It would allow the next use without one."""
    told: list[Approval] = []

    async def again(_: Approval) -> RecheckResult:
        return RecheckResult()

    async with running(asking(told, recheck=again, session_rule="any ls")) as hub:
        one = await Renderer(hub).join()
        await one.say("go")
        assert await one.ended("t1") == "failed"
    assert told == []
