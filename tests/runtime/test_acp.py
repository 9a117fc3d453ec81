"""What is special to agents of ACP: OpenCode itself, and a scripted agent for other orders."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from arp import App, connect
from arp.client.client import ArpClient
from arp.protocol.messages import Permission
from arp.runtime.contract import types as ari
from arp.runtime.contract.errors import (
    AriCode,
    AriError,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    Unavailable,
    Unimplemented,
)
from arp.runtime.programs.acp.acp import AcpRuntime
from arp.runtime.turns.turn_questions import NO_WAY
from arp.testing import session
from tests.runtime import mcp_server, scripted_acp_agent
from tests.runtime.caller import Caller, asks, kinds, merged, only, text_of
from tests.runtime.clis import Cli, processes_of
from tests.runtime.model_server import ModelServer
from tests.support.serving import serving
from tests.support.waiting import becomes

ALLOW = ari.PermissionResponse("allow")
DENY = ari.PermissionResponse("deny")
Lifecycle = ari.Lifecycle

MODES = {
    "modes": {
        "currentModeId": "auto",
        "availableModes": [{"id": name, "name": name} for name in ("auto", "plan", "default")],
    }
}


@asynccontextmanager
async def opencode(cli: Cli) -> AsyncIterator[AcpRuntime]:
    """Run OpenCode as a runtime."""
    runtime = AcpRuntime(cli.command, cwd=cli.cwd, environment=cli.environment)
    try:
        yield runtime
    finally:
        await runtime.close()
    assert processes_of(cli) == []


@pytest.fixture
async def scripted(tmp_path: Path) -> AsyncIterator[Callable[..., AcpRuntime]]:
    """Return what makes a runtime of the scripted agent; how it is comes as keywords."""
    runtimes = []

    def made(**how: Any) -> AcpRuntime:
        command = [sys.executable, scripted_acp_agent.__file__, json.dumps(how)]
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
        runtimes.append(AcpRuntime(command, cwd=tmp_path, environment=environment, name="scripted"))
        return runtimes[-1]

    yield made
    for runtime in runtimes:
        await runtime.close()


def logged(runtime: AcpRuntime) -> list[Any]:
    """Return what the scripted agent was told."""
    file = runtime.cwd / "log"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


async def agent_of(runtime: AcpRuntime) -> psutil.Process:
    """Return the process of the agent."""
    status = await runtime.status(ari.StatusRequest(verbose=True))
    return psutil.Process(int(status.info["process_id"]))


async def capability(runtime: AcpRuntime, name: str) -> ari.Capability:
    status = await runtime.status(ari.StatusRequest())
    [found] = [one for one in status.capabilities if one.name == name]
    return found


# -- OpenCode ------------------------------------------------------------------------------------


async def test_what_opencode_does_beyond_the_contract(
    opencode_cli: Cli, model_server: ModelServer
) -> None:
    """In one process: it needs seconds to start. The rest is in `test_contract`."""
    sums = ari.McpServer("sums", sys.executable, (mcp_server.__file__,))
    async with opencode(opencode_cli) as runtime:
        caller = await Caller.create(runtime, model="fake/fake-2", mcp_servers=(sums,))
        session = await caller.session()
        assert (session.model, session.mode) == ("fake/fake-2", "build")
        agent = await agent_of(runtime)
        assert agent.environ() == opencode_cli.environment

        events = await caller.turn("think")
        assert merged([one for one in events if one.lifecycle is not Lifecycle.COMMANDS]) == [
            "created",
            "turn_started",
            "thinking",
            "text",
            "result",
        ]
        assert events[-1].content == "I have thought."
        assert events[-1].usage == ari.Usage(input_tokens=11, output_tokens=7, cached_tokens=3)

        events = await caller.turn("run: touch f; echo out", respond=ALLOW)
        call, question = only(events, "tool_call"), only(events, "permission_request")
        result = only(events, "tool_result")
        assert not call.synthetic
        assert (call.tool_name, call.tool_input_summary) == ("bash", "touch f; echo out")
        assert question.permission is not None
        assert question.permission.kind is ari.PermissionKind.COMMAND
        assert question.permission.tool_input_raw["command"] == "touch f; echo out"
        assert [rule.scope for rule in question.permission.rules] == ["always"]
        assert (result.content, result.details["exit_code"]) == ("out\n", 0)
        assert (opencode_cli.cwd / "f").exists()

        target = opencode_cli.cwd / "w.txt"
        events = await caller.turn(f"write: {target}", respond=ALLOW)
        result = only(events, "tool_result")
        written = {"path": str(target), "before": "", "after": "written by the model\n"}
        assert result.details["diffs"] == [written]
        assert target.read_text() == "written by the model\n"

        events = await caller.turn("run: touch g", respond=DENY)
        result = only(events, "tool_result")
        assert (result.is_error, result.details["denied"]) == (True, True)
        assert not (opencode_cli.cwd / "g").exists()

        todos = [{"content": "a", "status": "in_progress", "priority": "high"}]
        events = await caller.turn(f"tool: todowrite {json.dumps({'todos': todos})}")
        plan = only(events, Lifecycle.PLAN)
        assert plan.details == {"todos": [{"text": "a", "status": "active"}]}

        events = await caller.turn('mcp: sums add {"a": 2, "b": 3}')
        assert only(events, "tool_call").tool_name == "sums_add"
        assert only(events, "tool_result").content == "5"

        events = await caller.turn("fail 400")
        assert events[-1].error is not None
        assert events[-1].error.code is AriCode.INTERNAL
        assert "the script says: fail 400" in events[-1].error.message

        await caller.send("slow")
        await caller.until(lambda event: event.type is ari.EventType.TEXT)
        await caller.cancel()
        await caller.until(lambda event: event.done)
        await model_server.reaches(lambda: model_server.requests[-1].client_left)

        with pytest.raises(InvalidArgument, match="mode: expected one of build, plan"):
            await runtime.set_mode(ari.SetModeRequest(caller.session_id, "yolo"))
        await runtime.set_mode(ari.SetModeRequest(caller.session_id, "plan"))
        events = await caller.until(lambda event: event.lifecycle is Lifecycle.MODE)
        assert events[-1].content == "plan"

        history = await runtime.get_session_history(ari.GetSessionHistoryRequest(caller.session_id))
        asked = [message.content for message in history.messages if message.role == "user"]
        assert asked[:2] == ["think", "run: touch f; echo out"]
        calls = [call for message in history.messages for call in message.tool_calls]
        told = [(call.name, call.result, call.is_error) for call in calls]
        # Of what it repeats, it names a command by its kind.
        assert told[0] == ("execute", "out\n", False)
        assert ("sums_add", "5", False) in told
        session = await caller.session()
        assert (session.model, session.mode) == ("fake/fake-2", "plan")

        # Its commands run in sessions of their own, and end when it is killed.
        await runtime.set_mode(ari.SetModeRequest(caller.session_id, "build"))
        await caller.send("run: sleep 600")
        await caller.answer((await caller.until(asks))[-1], ALLOW)
        await becomes(lambda: "sleep" in [one.name() for one in processes_of(opencode_cli)])
        agent.send_signal(signal.SIGKILL)
        events = await caller.until(lambda event: event.lifecycle is Lifecycle.FAILED)
        assert kinds(events)[-3:] == ["tool_result", "error", "failed"]
        assert events[-2].error is not None
        assert events[-2].error.code is AriCode.UNAVAILABLE
        await becomes(lambda: processes_of(opencode_cli) == [])


# -- orders that OpenCode does not produce -------------------------------------------------------

Scripted = Callable[..., AcpRuntime]


async def test_a_call_that_was_not_announced_is_made_up_before_its_question(
    scripted: Scripted,
) -> None:
    runtime = scripted()
    caller = await Caller.create(runtime)
    events = await caller.turn("unannounced", respond=ALLOW)
    assert merged(events)[2:] == [
        "tool_call",
        "permission_request",
        "permission_resolved",
        "tool_result",
        "text",
        "result",
    ]
    assert only(events, "tool_call").synthetic
    assert only(events, "permission_request").tool_input_summary == "git push"
    assert only(events, "permission_request").tool_input_raw == {"title": "git push"}
    assert logged(runtime)[-1] == {"outcome": {"outcome": "selected", "optionId": "yes"}}


async def test_a_denied_call_without_a_result_gets_one(scripted: Scripted) -> None:
    runtime = scripted()
    caller = await Caller.create(runtime)
    events = await caller.turn("unannounced", respond=DENY)
    result = only(events, "tool_result")
    assert (result.synthetic, result.is_error, text_of(events)) == (True, True, "done")
    assert (result.content, result.details) == ("denied", {"denied": True})
    assert logged(runtime)[-1] == {"outcome": {"outcome": "selected", "optionId": "no"}}


async def test_allowed_call_of_which_the_agent_tells_nothing_more_has_not_failed(
    scripted: Scripted,
) -> None:
    caller = await Caller.create(scripted())
    events = await caller.turn("silent", respond=ALLOW)
    result = only(events, "tool_result")
    assert (result.synthetic, result.is_error) == (True, False)
    assert result.content == "The agent has reported no result of this call."
    result = only(await caller.turn("cut_off", respond=ALLOW), "tool_result")
    assert not result.is_error


@pytest.mark.parametrize("text", ["unannounced", "silent", "cut_off"])
async def test_denied_call_is_told_as_denied_however_the_turn_ends(
    scripted: Scripted, text: str
) -> None:
    events = await (await Caller.create(scripted())).turn(text, respond=DENY)
    result = only(events, "tool_result")
    assert (result.content, result.is_error) == ("denied", True)
    assert result.details == {"denied": True}


async def test_call_that_nobody_answered_in_time_was_denied(scripted: Scripted) -> None:
    caller = await Caller.create(scripted(), permission_timeout_s=0.05)
    await caller.send("silent")
    events = await caller.until(lambda event: event.done)
    result = only(events, "tool_result")
    assert (result.content, result.details) == ("not answered in time", {"denied": True})


async def test_a_rule_is_the_agents_own_option(scripted: Scripted) -> None:
    runtime = scripted()
    caller = await Caller.create(runtime)
    await caller.turn("unannounced", respond=ari.PermissionResponse("allow", rule_id="all"))
    assert logged(runtime)[-1] == {"outcome": {"outcome": "selected", "optionId": "all"}}


async def test_what_the_protocol_has_no_place_for_is_refused(scripted: Scripted) -> None:
    runtime = scripted()
    caller = await Caller.create(runtime)
    await caller.send("unannounced")
    question = (await caller.until(asks))[-1]
    for response in (
        ari.PermissionResponse("deny", message="no"),
        ari.PermissionResponse("allow", updated_input={"command": "ls"}),
    ):
        with pytest.raises(InvalidArgument):
            await caller.answer(question, response)
    await caller.answer(question, DENY)
    await caller.until(lambda event: event.done)


async def test_a_permission_for_ever_is_never_given_for_one_call(scripted: Scripted) -> None:
    runtime = scripted()
    caller = await Caller.create(runtime)
    await caller.send("only_always")
    question = (await caller.until(asks))[-1]
    with pytest.raises(InvalidArgument, match="no permission for this call alone"):
        await caller.answer(question, ALLOW)
    await caller.answer(question, DENY)
    await caller.until(lambda event: event.done)
    assert logged(runtime)[-1] == {"outcome": {"outcome": "cancelled"}}


async def test_two_questions_are_open_at_once(scripted: Scripted) -> None:
    runtime = scripted()
    caller = await Caller.create(runtime)
    await caller.send("two")
    first, second = (await caller.until(asks))[-1], (await caller.until(asks))[-1]
    await caller.answer(second, DENY)
    await caller.answer(first, ALLOW)
    events = await caller.until(lambda event: event.done)
    results = [event for event in events if event.type is ari.EventType.TOOL_RESULT]
    assert [(one.tool_call_id, one.is_error) for one in results] == [("c1", False), ("c2", True)]


async def test_a_cancel_answers_every_open_question(scripted: Scripted) -> None:
    runtime = scripted()
    caller = await Caller.create(runtime)
    await caller.send("two")
    await caller.until(asks)
    await caller.until(asks)
    await caller.cancel()
    events = await caller.until(lambda event: event.done)
    assert events[-1].error is not None
    assert events[-1].error.code is AriCode.CANCELED
    cancelled = {"outcome": {"outcome": "cancelled"}}
    assert logged(runtime)[-3:] == ["cancel", cancelled, cancelled]


async def test_a_denial_that_ends_the_turn_leaves_no_other_question_open(
    scripted: Scripted,
) -> None:
    runtime = scripted()
    caller = await Caller.create(runtime)
    await caller.send("two")
    first = (await caller.until(asks))[-1]
    await caller.until(asks)
    await caller.answer(first, ari.PermissionResponse("deny", interrupt=True))
    events = await caller.until(lambda event: event.done)
    assert events[-1].error is not None
    assert events[-1].error.code is AriCode.CANCELED
    outcomes = [one["outcome"]["outcome"] for one in logged(runtime) if "outcome" in one]
    assert outcomes == ["selected", "cancelled"]


async def test_a_cancel_does_not_overtake_its_message(scripted: Scripted) -> None:
    """Both are called at once, each in a task."""
    runtime = scripted()
    caller = await Caller.create(runtime)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(caller.send("two"))
        tasks.create_task(caller.cancel())
    events = await caller.until(lambda event: event.done)
    assert events[-1].error is not None
    assert events[-1].error.code is AriCode.CANCELED
    assert logged(runtime)[-3] == "cancel"


async def test_a_question_that_is_withdrawn_cannot_be_answered(scripted: Scripted) -> None:
    runtime = scripted()
    caller = await Caller.create(runtime)
    await caller.send("withdrawn")
    events = await caller.until(lambda event: event.done)
    assert only(events, "permission_resolved").details == {"outcome": "cancelled"}
    with pytest.raises(FailedPrecondition):
        await caller.answer(only(events, "permission_request"), ALLOW)


async def test_an_agent_that_does_not_stop_is_ended_with_its_commands(scripted: Scripted) -> None:
    runtime = scripted()
    runtime.cancel_grace_s = 0.1
    caller = await Caller.create(runtime)
    watcher = (await agent_of(runtime)).parent()
    assert watcher is not None
    await caller.send("deaf")
    await caller.until(lambda event: event.content == "!")
    started = watcher.children(recursive=True)
    assert len(started) == 2
    await caller.cancel()
    events = await caller.until(lambda event: event.lifecycle is Lifecycle.FAILED)
    assert events[-2].error is not None
    assert events[-2].error.code is AriCode.CANCELED
    await becomes(lambda: not any(one.is_running() for one in started), within_s=20)


async def test_an_agent_that_dies_is_started_again(scripted: Scripted) -> None:
    runtime = scripted(capabilities={"loadSession": True})
    caller = await Caller.create(runtime)
    watcher = (await agent_of(runtime)).parent()
    assert watcher is not None
    events = await caller.turn("dies")
    assert text_of(events) == "hello"
    assert events[-1].error is not None
    assert events[-1].error.code is AriCode.UNAVAILABLE
    for said in ("scripted ended in the middle of a line", "exit code 3", "out of luck"):
        assert said in events[-1].error.message
    await becomes(lambda: not watcher.is_running())
    assert (await caller.session()).state is ari.SessionState.FAILED

    caller = await Caller.resume(runtime, caller.session_id)
    assert text_of(await caller.turn("echo")) == "hello"


async def test_what_is_no_acp_is_skipped(scripted: Scripted) -> None:
    runtime = scripted()
    caller = await Caller.create(runtime)
    events = await caller.turn("garbage")
    assert (text_of(events), events[-1].type) == ("before", ari.EventType.RESULT)
    [refused] = [one for one in logged(runtime) if "code" in one]
    assert refused["code"] == -32601


async def test_output_diffs_plan_and_cost(scripted: Scripted) -> None:
    caller = await Caller.create(scripted())
    events = await caller.turn("terminal")
    output = [one.content for one in events if one.lifecycle is Lifecycle.TOOL_PROGRESS]
    assert output == ["one\n", "two\n"]
    run, edit = (one for one in events if one.type is ari.EventType.TOOL_RESULT)
    assert (run.content, run.is_error, run.details) == ("one\ntwo\n", True, {"exit_code": 2})
    assert edit.tool_name == "replace"
    assert edit.details["diffs"] == [{"path": "/a", "before": "", "after": "new"}]
    todos = only(events, Lifecycle.PLAN).details["todos"]
    assert [todo["status"] for todo in todos] == ["done", "active", "pending"]
    assert text_of(events) == "one\n\ntwo"
    assert events[-1].usage is not None
    assert (events[-1].usage.cost, events[-1].usage.currency) == (0.25, "USD")
    assert events[-1].usage.input_tokens is None


async def test_usage_that_the_agent_does_not_tell_is_absent(scripted: Scripted) -> None:
    caller = await Caller.create(scripted())
    assert (await caller.turn("echo"))[-1].usage is None
    await caller.turn("terminal")
    assert (await caller.turn("echo"))[-1].usage is None


async def test_tokens_of_a_turn_are_those_that_the_agent_tells(scripted: Scripted) -> None:
    """What it leaves out is absent; a 0 that it tells is a 0."""
    caller = await Caller.create(scripted(usage={"inputTokens": 7, "thoughtTokens": 0}))
    told = ari.Usage(input_tokens=7, reasoning_tokens=0)
    assert (await caller.turn("echo"))[-1].usage == told


async def test_price_of_what_came_before_a_session_was_resumed_is_not_that_of_a_turn(
    scripted: Scripted,
) -> None:
    """An agent tells the price of the whole session."""
    known: dict[str, Any] = {"capabilities": {"sessionCapabilities": {"resume": {}}}}
    caller = await Caller.create(scripted(**known))
    first = (await caller.turn("terminal"))[-1].usage
    assert first is not None
    assert first.cost == 0.25
    again = await Caller.resume(scripted(**known), "s1")
    assert (await again.turn("terminal"))[-1].usage is None
    assert (await again.turn("dearer"))[-1].usage == ari.Usage(cost=0.5, currency="USD")


async def test_command_with_an_exit_code_failed_although_the_agent_calls_it_completed(
    scripted: Scripted,
) -> None:
    events = await (await Caller.create(scripted())).turn("exits")
    result = only(events, "tool_result")
    assert (result.is_error, result.details) == (True, {"exit_code": 3})


async def test_commands_that_come_late_are_listed_and_are_no_event_of_a_closed_session(
    scripted: Scripted,
) -> None:
    runtime = scripted(
        commands_after="session/list", capabilities={"sessionCapabilities": {"list": {}}}
    )
    caller = await Caller.create(runtime)
    listing = asyncio.ensure_future(runtime.list_commands(ari.ListItemsRequest("s1")))
    await runtime.list_sessions(ari.ListSessionsRequest())
    assert [item.name for item in (await listing).items] == ["init"]

    await runtime.close_session(ari.CloseSessionRequest("s1"))
    await runtime.list_sessions(ari.ListSessionsRequest())
    events = await caller.until(lambda event: event.lifecycle is Lifecycle.CLOSED)
    assert only(events, Lifecycle.COMMANDS).details["commands"][0]["name"] == "init"
    with pytest.raises(StopAsyncIteration):
        await anext(caller.events)


async def test_a_tool_that_starts_a_sub_agent_is_one(scripted: Scripted) -> None:
    """The protocol has no sub-agents; the calls that one makes are told apart by `_meta`."""
    caller = await Caller.create(scripted())
    events = await caller.turn("sub_agent")
    started, completed = (one for one in events if one.lifecycle is Lifecycle.SUBAGENT)
    assert started.details == {
        "subagent_id": "c1",
        "status": "started",
        "name": "explore",
        "objective": "Find it",
        "tool_call_id": "c1",
    }
    assert (completed.content, completed.details["status"]) == ("It is here", "completed")
    task, grep = (one for one in events if one.type is ari.EventType.TOOL_CALL)
    assert "subagent_id" not in task.details
    assert (grep.tool_name, grep.details["subagent_id"]) == ("Grep", "c1")
    assert grep.details["subagent"] == "explore"
    assert only(events, Lifecycle.USAGE).details == {"context_tokens": 120, "context_max": 1000}


async def test_commands_that_change_behind_a_turn_are_told(scripted: Scripted) -> None:
    runtime = scripted()
    caller = await Caller.create(runtime)
    events = await caller.turn("commands")
    told = [one for one in events if one.lifecycle is Lifecycle.COMMANDS]
    if not told:  # they may be read together with the end of the turn, or after it
        told = (await caller.until(lambda one: one.lifecycle is Lifecycle.COMMANDS))[-1:]
    assert told[-1].details["commands"] == [
        {"name": "review", "description": "Look at the changes", "hint": "what"}
    ]
    listed = await runtime.list_commands(ari.ListItemsRequest(caller.session_id))
    assert [one.name for one in listed.items] == ["review"]


async def test_a_call_without_input_is_told_before_what_follows(scripted: Scripted) -> None:
    caller = await Caller.create(scripted())
    events = await caller.turn("held")
    assert merged(events)[2:] == ["tool_call", "text", "warning", "tool_result", "result"]
    assert events[-1].details == {"stop_reason": "max_tokens"}


async def test_a_refusal_is_no_result(scripted: Scripted) -> None:
    caller = await Caller.create(scripted())
    events = await caller.turn("refuses")
    assert events[-1].error is not None
    assert events[-1].error.code is AriCode.PERMISSION_DENIED


# -- sessions ------------------------------------------------------------------------------------


@pytest.mark.parametrize("late_replay", [False, True])
async def test_the_history_that_a_load_repeats_is_no_event(
    scripted: Scripted, late_replay: bool
) -> None:
    runtime = scripted(capabilities={"loadSession": True}, late_replay=late_replay)
    caller = await Caller.resume(runtime, "s1")
    events = await caller.turn("echo")
    assert text_of(events) == "hello"
    assert merged(events) == ["turn_started", "text", "result"]
    commands = await runtime.list_commands(ari.ListItemsRequest("s1"))
    assert [item.name for item in commands.items] == ["init"]


async def test_history_is_what_the_agent_repeats(scripted: Scripted) -> None:
    can = {"loadSession": True, "sessionCapabilities": {"list": {}, "resume": {}, "close": {}}}
    runtime = scripted(capabilities=can, stored=["s1"])
    assert (await capability(runtime, "history")).enabled
    past = ari.PastToolCall("old", "old")
    said = ari.RuntimeMessage("assistant", "what was said before", tool_calls=(past,))
    request = ari.GetSessionHistoryRequest("s1")
    history = await runtime.get_session_history(request)
    assert history.messages == (ari.RuntimeMessage("user", "before"), said)
    assert (await runtime.get_session(ari.GetSessionRequest("s1"))).session.state == "closed"

    caller = await Caller.resume(runtime, "s1")
    only_one = await runtime.get_session_history(ari.GetSessionHistoryRequest("s1", limit=1))
    assert only_one.messages == (said,)
    assert merged(await caller.turn("echo")) == ["turn_started", "text", "result"]
    with pytest.raises(NotFound):
        await runtime.get_session_history(ari.GetSessionHistoryRequest("unknown"))


async def test_history_waits_for_the_end_of_a_turn(scripted: Scripted) -> None:
    runtime = scripted(capabilities={"loadSession": True})
    caller = await Caller.create(runtime)
    await caller.send("unannounced")
    question = (await caller.until(asks))[-1]
    with pytest.raises(FailedPrecondition, match="when the turn has ended"):
        await runtime.get_session_history(ari.GetSessionHistoryRequest("s1"))
    await caller.answer(question, DENY)
    assert text_of(await caller.until(lambda event: event.done)) == "done"


async def test_message_waits_until_the_history_is_read(scripted: Scripted) -> None:
    """What the agent says in the turn is no history, and what it repeats is no event."""
    runtime = scripted(capabilities={"loadSession": True}, late_replay=True)
    caller = await Caller.create(runtime)
    reading = asyncio.ensure_future(runtime.get_session_history(ari.GetSessionHistoryRequest("s1")))
    await becomes(lambda: any("session/load" in one for one in logged(runtime)))
    assert text_of(await caller.turn("echo")) == "hello"
    assert len((await reading).messages) == 2


async def test_reading_the_history_keeps_the_mode(scripted: Scripted) -> None:
    """A load sets the session up again, as it was at its last turn."""
    runtime = scripted(capabilities={"loadSession": True}, setup=MODES)
    caller = await Caller.create(runtime, mode="plan")
    await runtime.get_session_history(ari.GetSessionHistoryRequest("s1"))
    assert (await caller.session()).mode == "plan"
    assert logged(runtime)[-1] == {"session/set_mode": {"sessionId": "s1", "modeId": "plan"}}
    events = await caller.turn("echo")
    assert Lifecycle.MODE not in [event.lifecycle for event in events]


async def test_agent_that_cannot_load_has_no_history(scripted: Scripted) -> None:
    runtime = scripted()
    assert not (await capability(runtime, "history")).enabled
    with pytest.raises(Unimplemented, match="history"):
        await runtime.get_session_history(ari.GetSessionHistoryRequest("s1"))


async def test_capabilities_do_not_change_with_the_first_session(scripted: Scripted) -> None:
    """What can be switched is known with a session alone; where nothing can, lists are empty."""
    runtime = scripted(setup=MODES)
    before = (await runtime.status(ari.StatusRequest())).capabilities
    caller = await Caller.create(runtime)
    await caller.turn("echo")
    assert (await runtime.status(ari.StatusRequest())).capabilities == before
    assert (await capability(runtime, "mode")).enabled
    assert (await capability(runtime, "model")).enabled
    assert (await runtime.list_models(ari.ListModelsRequest("s1"))).models == ()
    with pytest.raises(InvalidArgument, match="model: scripted offers none to choose from"):
        await runtime.set_model(ari.SetModelRequest("s1", "m"))


async def test_an_unknown_session_is_not_found_even_where_the_agent_opens_it(
    scripted: Scripted,
) -> None:
    can = {"loadSession": True, "sessionCapabilities": {"list": {}}}
    runtime = scripted(capabilities=can, stored=["a", "b", "c", "s1"])
    with pytest.raises(NotFound):
        await Caller.resume(runtime, "unknown")
    assert not [one for one in logged(runtime) if "session/load" in one]
    await Caller.resume(runtime, "s1")
    listed = await runtime.list_sessions(ari.ListSessionsRequest())
    assert {one.session_id for one in listed.sessions} == {"a", "b", "c", "s1"}


async def test_a_session_is_opened_again_where_it_was(scripted: Scripted, tmp_path: Path) -> None:
    where = tmp_path / "below"
    where.mkdir()
    can: dict[str, Any] = {"sessionCapabilities": {"list": {}, "resume": {}}}
    runtime = scripted(capabilities=can, stored=["s1"], cwd=str(where))
    caller = await Caller.resume(runtime, "s1")
    assert logged(runtime)[-1]["session/resume"]["cwd"] == str(where)
    assert (await caller.session()).cwd == str(where)


async def test_a_resume_that_is_only_advertised_becomes_a_load(scripted: Scripted) -> None:
    can = {"loadSession": True, "sessionCapabilities": {"resume": {}}}
    runtime = scripted(capabilities=can, resumes=False)
    await Caller.resume(runtime, "s1")
    assert [next(iter(one)) for one in logged(runtime)] == ["session/resume", "session/load"]


async def test_an_agent_without_sessions_that_can_be_opened_again(scripted: Scripted) -> None:
    runtime = scripted()
    with pytest.raises(Unimplemented, match="resume_session"):
        await Caller.resume(runtime, "s1")
    with pytest.raises(Unimplemented, match="delete_session"):
        await runtime.delete_session(ari.DeleteSessionRequest("s1"))
    assert not (await capability(runtime, "resume_session")).enabled
    assert not (await capability(runtime, "delete_session")).enabled

    caller = await Caller.create(runtime)
    await caller.turn("echo")
    await runtime.close_session(ari.CloseSessionRequest("s1"))
    # It has the session open, because it cannot close it.
    caller = await Caller.resume(runtime, "s1")
    assert text_of(await caller.turn("echo")) == "hello"


async def test_a_session_is_deleted_where_the_agent_can(scripted: Scripted) -> None:
    runtime = scripted(capabilities={"sessionCapabilities": {"delete": {}}})
    await Caller.create(runtime)
    await runtime.delete_session(ari.DeleteSessionRequest("s1"))
    assert logged(runtime)[-1] == {"session/delete": {"sessionId": "s1"}}
    assert (await capability(runtime, "delete_session")).enabled


async def test_a_session_begins_in_a_mode_that_asks(scripted: Scripted) -> None:
    runtime = scripted(setup=MODES)
    caller = await Caller.create(runtime)
    assert (await caller.session()).mode == "default"
    modes = await runtime.list_modes(ari.ListModesRequest("s1"))
    assert [(mode.id, mode.asks) for mode in modes.modes] == [
        ("auto", False),
        ("plan", True),
        ("default", True),
    ]


async def test_an_agent_that_takes_another_mode_is_not_used(scripted: Scripted) -> None:
    with pytest.raises(InvalidArgument, match="took 'auto' instead of 'default'"):
        await Caller.create(scripted(setup=MODES, takes="auto"))


async def test_a_mode_that_does_not_ask_is_taken_when_it_is_said(scripted: Scripted) -> None:
    caller = await Caller.create(scripted(setup=MODES), mode="auto")
    assert (await caller.session()).mode == "auto"


async def test_a_session_without_an_asking_mode_says_so(scripted: Scripted) -> None:
    setup = {"modes": {"currentModeId": "yolo", "availableModes": [{"id": "yolo"}]}}
    caller = await Caller.create(scripted(setup=setup))
    events = await caller.turn("echo")
    assert "'yolo' is not known to ask" in only(events, Lifecycle.WARNING).content


async def test_models_of_the_older_kind(scripted: Scripted) -> None:
    models = [{"modelId": "small"}, {"modelId": "large", "name": "Large"}]
    setup = {"models": {"currentModelId": "small", "availableModels": models}}
    runtime = scripted(setup=setup)
    caller = await Caller.create(runtime)
    taken = await runtime.set_model(ari.SetModelRequest("s1", "large"))
    assert taken.model == "large"
    assert logged(runtime)[-1] == {"session/set_model": {"sessionId": "s1", "modelId": "large"}}
    assert (await caller.session()).model == "large"
    with pytest.raises(InvalidArgument, match="mode: scripted offers none"):
        await runtime.set_mode(ari.SetModeRequest("s1", "plan"))


# -- what goes wrong at the beginning ------------------------------------------------------------


async def test_an_agent_sees_the_environment_that_is_given_alone(scripted: Scripted) -> None:
    runtime = scripted()
    assert (await agent_of(runtime)).environ() == runtime.environment


async def test_an_agent_without_a_login_says_what_to_do(scripted: Scripted) -> None:
    with pytest.raises(FailedPrecondition, match="not logged in: run `agent login`"):
        await Caller.create(scripted(log_in=True))


async def test_another_version_of_the_protocol_is_refused(scripted: Scripted) -> None:
    with pytest.raises(Unavailable, match=r"1\.2\.3 is too new: it speaks version 2 of ACP"):
        await Caller.create(scripted(version=2))
    status = await scripted(version=0).status(ari.StatusRequest())
    assert status.message == (
        "scripted 1.2.3 is too old: it speaks version 0 of ACP, and 1 is needed; update it"
    )


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (["no-such-agent", "acp"], "there is no program no-such-agent in the PATH"),
        (["/bin/sh", "-c", "echo no licence >&2; exit 7"], "exit code 7.*no licence"),
    ],
)
async def test_an_agent_that_does_not_start_is_unavailable(
    command: list[str], why: str, tmp_path: Path
) -> None:
    runtime = AcpRuntime(command, cwd=tmp_path, environment={"PATH": "/usr/bin:/bin"})
    with pytest.raises(Unavailable, match=why):
        await Caller.create(runtime)
    status = await runtime.status(ari.StatusRequest())
    assert not status.ready
    await runtime.close()


async def test_parts_and_servers_that_an_agent_cannot_take_are_refused(
    scripted: Scripted,
) -> None:
    runtime = scripted()
    caller = await Caller.create(runtime)
    for part, why in (
        (ari.ContentPart("image", data=b"x"), r"parts\[0\]: image parts cannot be taken"),
        (ari.ContentPart("file", data=b"x"), r"parts\[0\]: .* not their data"),
        (ari.ContentPart("file", uri="file:///etc/passwd"), r"parts\[0\].uri: expected http"),
    ):
        with pytest.raises(InvalidArgument, match=why):
            await caller.send("echo", [part])
    with pytest.raises(InvalidArgument, match="takes commands only"):
        await Caller.create(runtime, mcp_servers=(ari.McpServer("a", url="http://a"),))
    assert (await caller.turn("echo"))[-1].error is None


async def test_the_errors_are_of_ari(scripted: Scripted) -> None:
    """Whatever an agent answers."""
    runtime = scripted(capabilities={"sessionCapabilities": {"list": {}}}, stored=[7])
    with pytest.raises(AriError, match="does not answer as ACP says"):
        await runtime.list_sessions(ari.ListSessionsRequest())


@asynccontextmanager
async def on_a_screen(runtime: AcpRuntime, tmp_path: Path) -> AsyncIterator[ArpClient]:
    """Serve a runtime, and connect a renderer to it."""
    app = App(ledger=f"sqlite:{tmp_path}/ledger.db")
    app.runtime(runtime)
    with serving(app) as server:
        async with asyncio.timeout(30), connect(server.http, session_id="s") as client:
            yield client


async def permission(client: ArpClient) -> Permission:
    """Return what is asked first."""
    events = client.events()
    while not (found := [p for t in client.screen.turns.values() for p in t.permissions.values()]):
        await anext(events)
    return found[0]


async def test_reason_of_a_denial_is_the_next_message(
    scripted: Callable[..., AcpRuntime], tmp_path: Path
) -> None:
    """ACP has no place for it in the answer to a permission."""
    runtime = scripted()
    async with on_a_screen(runtime, tmp_path) as client:
        await client.send_text("unannounced")
        await client.send_permission(await permission(client), False, reason="push it later")
        turn = await client.turn_done()
        told = [line["prompt"] for line in logged(runtime) if "prompt" in line]
        assert told == ["I have denied 'execute: git push': push it later"]
        assert client.screen.text(turn.id) == "donehello"


@pytest.mark.parametrize(("yes", "error"), [(True, None), (False, "denied")])
async def test_screens_show_an_allowed_call_as_done_and_a_denied_one_as_denied(
    scripted: Callable[..., AcpRuntime],
    tmp_path: Path,
    yes: bool,
    error: str | None,
) -> None:
    """The agent tells nothing of the call after the answer."""
    async with on_a_screen(scripted(), tmp_path) as client:
        await client.send_text("silent")
        await client.send_permission(await permission(client), yes)
        turn = await client.turn_done()
        (tool,) = turn.tools
        assert (tool.ok, tool.error) == (yes, error)
        assert turn.status == "completed"


async def test_permission_that_the_agent_does_not_offer_is_a_denial_that_is_shown(
    scripted: Callable[..., AcpRuntime], tmp_path: Path
) -> None:
    runtime = scripted()
    async with on_a_screen(runtime, tmp_path) as client:
        await client.send_text("only_always")
        await client.send_permission(await permission(client), True)
        turn = await client.turn_done()
        assert turn.status == "completed"
        shown = [
            one.props["content"] for one in client.screen.output(turn.id) if one.type == "text"
        ]
        assert len(shown) == 1
        assert shown[0].startswith("Nothing ran: response.rule_id: the agent offers no permission")
        assert {"outcome": {"outcome": "cancelled"}} in logged(runtime)


@pytest.mark.parametrize(
    ("word", "text", "why"),
    [
        ("out_of_tokens", "Half", "limit of output tokens"),
        ("out_of_requests", "", "limit of requests to the model"),
    ],
)
async def test_a_turn_that_ends_at_a_limit_says_that_it_is_not_complete(
    scripted: Callable[..., AcpRuntime], word: str, text: str, why: str
) -> None:
    app = App()
    app.runtime(scripted())
    async with session(app) as user:
        turn = await user.say(word)
        assert (turn.status, turn.text) == ("completed", text)
        assert why in turn.component("status-card").props["message"]


async def test_different_ways_to_allow_one_call_keep_their_words(
    scripted: Callable[..., AcpRuntime],
) -> None:
    """A plan may be carried out in two modes: a yes alone does not say in which."""
    app = App()
    app.runtime(scripted())
    async with session(app) as user:
        for way, chosen in (("Proceed and edit", '"edit"'), (NO_WAY, '"no"')):
            turn = await user.say("two_ways")
            assert turn.question is not None
            message = turn.question.props["message"]
            assert "Proceed in plan mode; Proceed and edit" in message
            turn = await turn.allow()
            assert turn.question is not None
            options = ["Proceed in plan mode", "Proceed and edit", NO_WAY]
            assert turn.question.props["options"] == options
            turn = await turn.answer(way)
            assert turn.text.startswith(chosen)


async def test_commands_and_plans_that_do_not_fit_do_not_end_the_turn(
    scripted: Callable[..., AcpRuntime], tmp_path: Path
) -> None:
    """Gemini CLI has a command "memory show": it is an argument of /memory."""
    setup = {"modes": {"currentModeId": "a", "availableModes": [7, {"name": "no id"}]}}
    async with on_a_screen(scripted(setup=setup), tmp_path) as client:
        await client.send_text("odd_names")
        turn = await client.turn_done()
        assert (turn.status, client.screen.text(turn.id)) == ("completed", "hello")
        commands = {one.name: one for one in client.screen.commands}
        assert [one.value for one in commands["memory"].choices] == ["show", "add"]
        assert commands["memory"].description == "Works with memory"
        assert [one.value for one in commands["tab"].choices] == ["bed"]
        assert len(commands["init"].description) == 500
        assert "x" * 100 not in commands
        assert [run.tool for run in turn.tools] == ["tool"]
