"""Claude Code behind the interface: the real program, and a model that is scripted."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import os
import signal
import stat
import sys
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from arp import App, connect
from arp.runtime.contract import types as ari
from arp.runtime.contract.errors import (
    AlreadyExists,
    AriCode,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    Unavailable,
)
from arp.runtime.contract.feed import SessionFeed
from arp.runtime.contract.services import (
    CommandManager,
    HistoryManager,
    ModelManager,
    ModeManager,
    ProviderManager,
    RuntimeService,
    SessionUtilityManager,
)
from arp.runtime.programs.claude.claude_code import (
    ClaudeCodeOptions,
    ClaudeCodeRuntime,
    usual_environment,
)
from arp.runtime.programs.claude.messages import MessageReader
from tests.runtime import mcp_server
from tests.runtime.caller import Caller, asks, kinds, merged, only, text_of
from tests.runtime.clis import Cli
from tests.runtime.model_script import Text
from tests.runtime.model_server import ModelServer
from tests.support.serving import serving

ALLOW = ari.PermissionResponse("allow")
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def runtime_of(cli: Cli, **options: Any) -> ClaudeCodeRuntime:
    settings = ClaudeCodeOptions(**options)
    return ClaudeCodeRuntime(cwd=cli.cwd, environment=cli.environment, options=settings)


@pytest.fixture
async def runtime(claude_cli: Cli) -> AsyncIterator[ClaudeCodeRuntime]:
    """Run Claude Code for one test; none of its processes is left."""
    others = psutil.Process().children(recursive=True)  # of a test before, which may still end
    runtime = runtime_of(claude_cli)
    yield runtime
    await runtime.close()
    left = [one for one in psutil.Process().children(recursive=True) if one not in others]
    assert [child.name() for child in left if child.status() != psutil.STATUS_ZOMBIE] == []


async def created(runtime: RuntimeService, **fields: object) -> Caller:
    return await Caller.create(runtime, **{"model": "fake-1", **fields})


def pid_of(runtime: ClaudeCodeRuntime, caller: Caller) -> int:
    return runtime.process_id(caller.session_id)


# -- what the model says ------------------------------------------------------------------------


async def test_text_comes_once_and_the_result_has_usage_and_cost(
    runtime: ClaudeCodeRuntime, model_server: ModelServer
) -> None:
    caller = await created(runtime)
    events = await caller.turn("hello")
    assert merged(events) == [
        "created",
        "commands",
        "turn_started",
        "model_request",
        "text",
        "result",
    ]
    assert text_of(events) == events[-1].content == "Hello from the model."
    usage = events[-1].usage
    assert usage is not None
    assert (usage.input_tokens, usage.cached_tokens, usage.output_tokens) == (11, 3, 7)
    assert usage.currency == "USD"
    again = (await caller.turn("hello"))[-1].usage
    assert again is not None
    assert again.cost == pytest.approx(usage.cost)
    assert model_server.what_the_model_was_told() == ["hello", "hello"]


async def test_errors_and_retries_of_the_model_are_told(runtime: ClaudeCodeRuntime) -> None:
    """The program calls such a turn a success; in one process, which goes on each time."""
    caller = await created(runtime)
    for status, code in (
        (400, AriCode.INVALID_ARGUMENT),
        (401, AriCode.PERMISSION_DENIED),
        (500, AriCode.UNAVAILABLE),
    ):
        events = await caller.turn(f"fail {status}")
        assert events[-1].error is not None
        assert events[-1].error.code is code
        assert events[-1].error.details["http_status"] == status
        assert f"the script says: fail {status}" in events[-1].error.message
        assert text_of(events) == ""
        assert (await caller.turn("hello"))[-1].content == "Hello from the model."
    events = await caller.turn("retry")
    retrying = only(events, "retrying")
    assert (retrying.details["http_status"], retrying.details["attempt"]) == (503, 1)
    assert events[-1].content == "It worked the second time."


async def test_images_and_files_reach_the_model(
    runtime: ClaudeCodeRuntime, model_server: ModelServer
) -> None:
    caller = await created(runtime)
    image = ari.ContentPart("image", mime_type="image/png", data=PNG)
    notes = ari.ContentPart("file", mime_type="text/markdown", data=b"# Notes", name="notes.md")
    events = await caller.turn("hello", [image, notes])
    assert f"I received image/png, {len(PNG)} bytes." in text_of(events)
    documents = [
        block
        for message in model_server.requests[-1].body["messages"]
        for block in message["content"]
        if isinstance(block, dict) and block.get("type") == "document"
    ]
    assert documents[0]["source"]["data"] == "# Notes"

    video = ari.ContentPart("image", mime_type="image/tiff", data=PNG)
    with pytest.raises(InvalidArgument, match=r"message.parts\[0\].mime_type"):
        await caller.send("look", [video])
    with pytest.raises(InvalidArgument, match=r"message.parts\[0\]: audio parts"):
        await caller.send("listen", [ari.ContentPart("audio", data=b"x")])
    assert (await caller.session()).state is ari.SessionState.IDLE


# -- tools and permissions -----------------------------------------------------------------------


async def test_command_runs_when_it_is_allowed(runtime: ClaudeCodeRuntime, claude_cli: Cli) -> None:
    caller = await created(runtime)
    await caller.send("run: touch f && echo made")
    events = await caller.until(asks)
    call, question = only(events, "tool_call"), events[-1]
    assert call.details["kind"] == "command"
    assert not call.synthetic
    assert call.tool_call_id == question.tool_call_id
    assert question.permission is not None
    assert question.permission.kind is ari.PermissionKind.COMMAND
    assert question.permission.tool_input_summary == "touch f && echo made"
    assert question.permission.tool_input_raw["command"] == "touch f && echo made"
    assert (await caller.session()).state is ari.SessionState.WAITING
    assert not (claude_cli.cwd / "f").exists()

    await caller.answer(question, ALLOW)
    rest = await caller.until(lambda event: event.done)
    result = only(rest, "tool_result")
    assert (result.content, result.details) == ("made", {"exit_code": 0})
    assert (claude_cli.cwd / "f").exists()
    assert merged(rest) == ["permission_resolved", "tool_result", "model_request", "text", "result"]


async def test_model_is_told_exactly_the_message_of_a_denial(
    runtime: ClaudeCodeRuntime, model_server: ModelServer, claude_cli: Cli
) -> None:
    caller = await created(runtime)
    deny = ari.PermissionResponse("deny", message="Not on a Monday; ask Ümit.")
    events = await caller.turn("run: touch f", respond=deny)
    assert model_server.last_tool_result() == "Not on a Monday; ask Ümit."
    result = only(events, "tool_result")
    assert (result.is_error, result.details) == (True, {"denied": True})
    assert events[-1].type is ari.EventType.RESULT
    assert not (claude_cli.cwd / "f").exists()


async def test_a_rule_is_for_the_command_that_was_shown_and_counts_for_the_session(
    runtime: ClaudeCodeRuntime, claude_cli: Cli
) -> None:
    caller = await created(runtime)
    await caller.send("run: touch f")
    question = (await caller.until(asks))[-1]
    assert question.permission is not None
    labels = {rule.label: rule for rule in question.permission.rules}
    rule = labels["Allow Bash(touch f) without asking, until this session ends"]
    assert {rule.scope for rule in labels.values()} == {"session"}
    await caller.answer(question, ari.PermissionResponse("allow", rule_id=rule.rule_id))
    await caller.until(lambda event: event.done)
    assert "permission_request" not in kinds(await caller.turn("run: touch f"))
    assert asks(only(await caller.turn("run: touch f -c", respond=ALLOW), "permission_request"))
    assert not (claude_cli.cwd / ".claude").exists()


async def test_a_tool_that_reads_is_asked_about_and_can_be_allowed_for_the_session(
    runtime: ClaudeCodeRuntime, claude_cli: Cli
) -> None:
    """Claude Code reads files below its directory unasked if nobody makes it ask."""
    path = claude_cli.cwd / "note.txt"
    path.write_text("what the note says")
    caller = await created(runtime)
    read = f'tool: Read {{"file_path": "{path}"}}'
    await caller.send(read)
    question = (await caller.until(asks))[-1]
    assert question.permission is not None
    (rule,) = question.permission.rules
    assert rule.label == "Allow Read without asking, until this session ends"
    await caller.answer(question, ari.PermissionResponse("allow", rule_id=rule.rule_id))
    await caller.until(lambda event: event.done)
    events = await caller.turn(read)
    assert "permission_request" not in kinds(events)
    assert "what the note says" in text_of(events)


async def test_in_the_mode_that_refuses_nothing_is_read(
    runtime: ClaudeCodeRuntime, claude_cli: Cli
) -> None:
    (claude_cli.cwd / "note.txt").write_text("what the note says")
    caller = await created(runtime, mode="dontAsk")
    events = await caller.turn("run: cat note.txt")
    assert "permission_request" not in kinds(events)
    assert "what the note says" not in text_of(events)


async def test_without_asking_first_permissions_are_advisory(claude_cli: Cli) -> None:
    (claude_cli.cwd / "note.txt").write_text("what the note says")
    runtime = runtime_of(claude_cli, ask_first=False)
    assert (await runtime.status(ari.StatusRequest())).permission == "advisory"
    caller = await created(runtime)
    assert "what the note says" in text_of(await caller.turn("run: cat note.txt"))
    await runtime.close()
    assert runtime_of(claude_cli, setting_sources=("project",)).permission == "advisory"


async def test_rule_that_is_kept_is_offered_where_it_is_read_again(claude_cli: Cli) -> None:
    runtime = runtime_of(claude_cli, setting_sources=("local",))
    caller = await created(runtime)
    await caller.send("run: touch f")
    question = (await caller.until(asks))[-1]
    assert question.permission is not None
    (kept,) = [rule for rule in question.permission.rules if rule.scope == "always"]
    assert kept.label == "Allow Bash(touch f *) without asking, always (written to localSettings)"
    await caller.answer(question, ari.PermissionResponse("allow", rule_id=kept.rule_id))
    await caller.until(lambda event: event.done)
    await runtime.close()
    again = runtime_of(claude_cli, setting_sources=("local",))
    caller = await created(again)
    assert "permission_request" not in kinds(await caller.turn("run: touch f -c"))
    await again.close()


async def test_edits_have_diffs(runtime: ClaudeCodeRuntime, claude_cli: Cli) -> None:
    caller = await created(runtime)
    events = await caller.turn("write: x.txt", respond=ALLOW)
    new = [{"path": "x.txt", "before": "", "after": "written by the model\n"}]
    assert only(events, "tool_call").details == {"kind": "edit", "diffs": new}
    assert only(events, "tool_result").details == {"diffs": new}
    edit = 'tool: Edit {"file_path": "x.txt", "old_string": "model", "new_string": "robot"}'
    events = await caller.turn(edit, respond=ALLOW)
    assert only(events, "tool_result").details["diffs"] == [
        {
            "path": "x.txt",
            "before": "written by the model",
            "after": "written by the robot",
            "line": 1,
        }
    ]
    assert (claude_cli.cwd / "x.txt").read_text() == "written by the robot\n"


async def test_empty_output_and_exit_code_of_a_command(runtime: ClaudeCodeRuntime) -> None:
    caller = await created(runtime)
    events = await caller.turn("run: touch f", respond=ALLOW)
    assert only(events, "tool_result").details == {"exit_code": 0, "no_output": True}
    events = await caller.turn("run: touch f; exit 3", respond=ALLOW)
    result = only(events, "tool_result")
    assert (result.is_error, result.details) == (True, {"exit_code": 3})


async def test_question_of_the_agent_is_answered_by_changed_input(
    runtime: ClaudeCodeRuntime, model_server: ModelServer
) -> None:
    caller = await created(runtime)
    question = {
        "question": "Which color?",
        "header": "Color",
        "options": [{"label": name, "description": name} for name in ("Red", "Blue")],
        "multiSelect": False,
    }
    await caller.send(f"tool: AskUserQuestion {json.dumps({'questions': [question]})}")
    asked = (await caller.until(asks))[-1].permission
    assert asked is not None
    assert (asked.kind, asked.tool_input_summary) == (ari.PermissionKind.QUESTION, "Which color?")
    answered = {**asked.tool_input_raw, "answers": {"Which color?": "Blue"}}
    response = ari.PermissionResponse("allow", updated_input=answered)
    await runtime.respond_permission(
        ari.RespondPermissionRequest(caller.session_id, asked.request_id, response)
    )
    await caller.until(lambda event: event.done)
    assert "Blue" in (model_server.last_tool_result() or "")


async def test_files_of_a_screen(claude_cli: Cli, tmp_path: Path) -> None:
    app = App(ledger=f"sqlite:{tmp_path}/ledger.db")
    app.runtime(runtime_of(claude_cli), session=ari.CreateSessionRequest(model="fake-1"))
    with serving(app) as server:
        async with connect(server.http, session_id="s") as client:
            files = [("dot.png", PNG), ("notes.txt", b"Remember the milk.")]
            turn = await client.turn_done(
                await client.turn_of(await client.send_files(files, "hello"))
            )
            said = client.screen.text(turn.id)
            assert f"I received image/png, {len(PNG)} bytes." in said
            assert "I received text/plain" in said
            sent = await client.send_files([("a.zip", b"PK\x03\x04")], "hello")
            turn = await client.turn_done(await client.turn_of(sent))
            (error,) = turn.errors
            assert error.error.startswith("claude-code: the file 'a.zip' (application/zip) was not")


async def test_todo_list_is_a_plan(claude_cli: Cli) -> None:
    cli = claude_cli.but(CLAUDE_CODE_ENABLE_TODO_TOOLS="true", CLAUDE_CODE_ENABLE_TASKS="false")
    runtime = runtime_of(cli)
    caller = await created(runtime)
    states = {"read": "completed", "write": "in_progress", "test": "pending"}
    todos = [
        {"content": text, "status": status, "activeForm": text} for text, status in states.items()
    ]
    events = await caller.turn(f"tool: TodoWrite {json.dumps({'todos': todos})}")
    assert only(events, "plan").details["todos"] == [
        {"text": "read", "status": "done"},
        {"text": "write", "status": "active"},
        {"text": "test", "status": "pending"},
    ]
    await runtime.close()


async def test_tasks_are_a_plan(claude_cli: Cli) -> None:
    runtime = runtime_of(claude_cli.but(CLAUDE_CODE_ENABLE_TODO_TOOLS="true"))
    caller = await created(runtime)
    for name in ("read", "write"):
        await caller.turn(f'tool: TaskCreate {{"subject": "{name}", "description": "d"}}')
    events = await caller.turn('tool: TaskUpdate {"taskId": "1", "status": "in_progress"}')
    plan = only(events, "plan").details["todos"]
    assert sorted(plan, key=str) == [
        {"text": "read", "status": "active"},
        {"text": "write", "status": "pending"},
    ]
    await runtime.close()


def test_rate_limit_and_texts_that_come_whole() -> None:
    feed = RecordedFeed()
    for status in ("allowed", "rejected"):
        limits = {"status": status, "rateLimitType": "five_hour", "resetsAt": 0, "utilization": 1.0}
        feed.reader.read({"type": "rate_limit_event", "rate_limit_info": limits})
    known = {"status": "reached", "limit": "five_hour", "retry_after_s": 0, "used": 1.0}
    assert only(feed.events, "rate_limit").details == {**known, "resets_at_s": 0}
    content = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "whole"}]
    feed.reader.read({"type": "assistant", "message": {"id": "m", "content": content}})
    assert merged(feed.events)[-2:] == ["thinking", "text"]
    assert text_of(feed.events) == "whole"


def test_end_of_its_own_turn_does_not_end_ours() -> None:
    """A message can reach Claude Code when it has just begun a turn by itself."""
    feed = RecordedFeed()
    feed.reader.sent("ours", "hello")
    end = {"type": "result", "subtype": "success", "is_error": False, "result": "done"}
    feed.reader.read({**end, "origin": {"kind": "task-notification"}})
    feed.reader.read({**end, "user_message_uuids": ["another"]})
    assert not any(event.done for event in feed.events)
    feed.reader.read({**end, "user_message_uuids": ["ours"]})
    assert [event.content for event in feed.events if event.done] == ["done"]


class RecordedFeed:
    """A reader in the middle of a turn, and the events that it makes."""

    def __init__(self) -> None:
        self.events: list[ari.Event] = []
        numbers = itertools.count(1)
        feed = SessionFeed(self.events.append, lambda: 0, lambda kind: f"{kind}-{next(numbers)}")
        feed.opened("s", ari.Lifecycle.CREATED)
        feed.begin()
        self.reader = MessageReader(feed, lambda: None)


def test_what_tools_returned_in_one_line_is_not_that_of_each_of_them() -> None:
    recorded = RecordedFeed()
    uses = [
        {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": "false"}}
        for number in (1, 2)
    ]
    recorded.reader.read({"type": "assistant", "message": {"id": "m", "content": uses}})
    results = [
        {"type": "tool_result", "tool_use_id": f"t{number}", "content": f"r{number}"}
        for number in (2, 1)
    ]
    empty = {"stdout": "", "stderr": "", "interrupted": False}
    line = {"type": "user", "message": {"content": results}, "tool_use_result": empty}
    recorded.reader.read(line)
    told = [one for one in recorded.events if one.type is ari.EventType.TOOL_RESULT]
    assert {one.tool_call_id: one.content for one in told} == {"t1": "r1", "t2": "r2"}
    assert not any("no_output" in one.details for one in told)


async def test_tools_of_mcp_servers(runtime: ClaudeCodeRuntime, model_server: ModelServer) -> None:
    server = ari.McpServer("sums", command=sys.executable, args=(mcp_server.__file__,))
    caller = await created(runtime, mcp_servers=(server,))
    events = await caller.turn('mcp: sums add {"a": 2, "b": 3}', respond=ALLOW)
    call = only(events, "tool_call")
    assert (call.tool_name, call.details["kind"]) == ("mcp__sums__add", "tool")
    assert model_server.last_tool_result() == "5"


# -- cancel --------------------------------------------------------------------------------------


async def test_cancel_right_after_the_message(runtime: ClaudeCodeRuntime) -> None:
    caller = await created(runtime)
    for _ in range(3):
        await caller.send("slow")
        await caller.cancel()
        end = (await caller.until(lambda event: event.done))[-1]
        assert end.error is not None
        assert end.error.code is AriCode.CANCELED
    assert (await caller.turn("hello"))[-1].content == "Hello from the model."


async def test_cancel_ends_the_command_that_runs(
    runtime: ClaudeCodeRuntime, claude_cli: Cli
) -> None:
    caller = await created(runtime)
    await command_that_runs(caller, claude_cli.cwd)
    commands = psutil.Process(pid_of(runtime, caller)).children(recursive=True)
    assert commands
    await caller.cancel()
    end = (await caller.until(lambda event: event.done))[-1]
    assert end.error is not None
    assert end.error.code is AriCode.CANCELED
    _, alive = psutil.wait_procs(commands, timeout=10)
    assert alive == []


@asynccontextmanager
async def signpost(path: Path) -> AsyncIterator[asyncio.Event]:
    """Make a pipe with a name; the event is set when a command writes into it."""
    os.mkfifo(path)
    pipe = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    loop, written = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(pipe, written.set)
    try:
        yield written
    finally:
        loop.remove_reader(pipe)
        os.close(pipe)


async def command_that_runs(caller: Caller, cwd: Path) -> None:
    """Let the agent run a command for a minute, and return when it runs."""
    async with signpost(cwd / "pipe") as written, asyncio.timeout(20):
        await caller.send("run: echo running > pipe; sleep 61.5")
        await caller.answer((await caller.until(asks))[-1], ALLOW)
        await written.wait()


# -- sessions ------------------------------------------------------------------------------------


async def test_session_is_resumed_by_another_runtime_object(
    claude_cli: Cli, model_server: ModelServer
) -> None:
    (claude_cli.cwd / "deep").mkdir()
    first = runtime_of(claude_cli)
    chosen = str(uuid.uuid4())
    caller = await created(first, session_id=chosen, cwd="deep")
    assert caller.session_id == chosen
    await caller.turn("hello")
    await first.close()

    second = runtime_of(claude_cli)
    found = (await second.get_session(ari.GetSessionRequest(chosen))).session
    assert found.state is ari.SessionState.CLOSED
    assert found.cwd == str(claude_cli.cwd / "deep")
    assert found.title == "hello"
    with pytest.raises(AlreadyExists):
        await created(second, session_id=chosen)
    caller = await Caller.resume(second, chosen, model="fake-1")
    assert (await caller.turn("echo: again"))[-1].content == "again"
    assert model_server.what_the_model_was_told() == ["hello", "echo: again"]
    assert (await caller.session()).cwd == str(claude_cli.cwd / "deep")
    await caller.turn("run: touch there", respond=ALLOW)
    assert (claude_cli.cwd / "deep" / "there").exists()
    await second.close()


async def test_unknown_session_is_not_found(runtime: ClaudeCodeRuntime) -> None:
    for session_id in (str(uuid.uuid4()), "no-uuid", "../x"):
        with pytest.raises(NotFound):
            await Caller.resume(runtime, session_id)
        with pytest.raises(NotFound):
            await runtime.get_session_history(ari.GetSessionHistoryRequest(session_id))
    with pytest.raises(InvalidArgument, match="session_id: expected a UUID"):
        await created(runtime, session_id="mine")


async def test_session_without_a_turn_is_created_again_with_its_id(
    runtime: ClaudeCodeRuntime,
) -> None:
    caller = await created(runtime)
    await runtime.close_session(ari.CloseSessionRequest(caller.session_id))
    again = await Caller.resume(runtime, caller.session_id)
    assert again.session_id == caller.session_id
    assert (await again.turn("hello"))[-1].content == "Hello from the model."


async def test_list_history_and_delete(runtime: ClaudeCodeRuntime, claude_cli: Cli) -> None:
    caller = await created(runtime)
    await caller.turn("run: touch f", respond=ALLOW)
    other = await created(runtime)
    await other.turn("hello")
    await other.turn("think")

    fresh = runtime_of(claude_cli)
    listed = (await fresh.list_sessions(ari.ListSessionsRequest())).sessions
    assert [one.session_id for one in listed] == [other.session_id, caller.session_id]
    assert [one.title for one in listed] == ["hello", "run: touch f"]
    elsewhere = ari.ListSessionsRequest(ari.SessionFilter(cwd="/elsewhere"))
    assert (await fresh.list_sessions(elsewhere)).sessions == ()

    history = await fresh.get_session_history(ari.GetSessionHistoryRequest(other.session_id))
    said = [(one.role, one.content, one.thinking) for one in history.messages]
    assert said == [
        ("user", "hello", ""),
        ("assistant", "Hello from the model.", ""),
        ("user", "think", ""),
        ("assistant", "I have thought.", "I think before I answer."),
    ]
    history = await fresh.get_session_history(ari.GetSessionHistoryRequest(caller.session_id))
    (call,) = [call for one in history.messages for call in one.tool_calls]
    assert (call.name, call.input["command"]) == ("Bash", "touch f")
    assert call.result == "(Bash completed with no output)"
    newest = ari.GetSessionHistoryRequest(caller.session_id, limit=1)
    assert (await fresh.get_session_history(newest)).messages == history.messages[-1:]

    for _ in range(2):
        await runtime.delete_session(ari.DeleteSessionRequest(caller.session_id))
        await fresh.delete_session(ari.DeleteSessionRequest(caller.session_id))
    with pytest.raises(NotFound):
        await fresh.get_session(ari.GetSessionRequest(caller.session_id))
    listed = (await fresh.list_sessions(ari.ListSessionsRequest())).sessions
    assert [one.session_id for one in listed] == [other.session_id]
    await fresh.close()


async def test_killed_program_ends_the_turn_and_the_session_is_resumed(
    runtime: ClaudeCodeRuntime,
) -> None:
    caller = await created(runtime)
    await caller.turn("hello")
    await caller.send("slow")
    await caller.until(lambda event: event.type is ari.EventType.TEXT)
    os.kill(pid_of(runtime, caller), signal.SIGKILL)
    end = await caller.until(lambda event: event.lifecycle is ari.Lifecycle.FAILED)
    (terminal,) = [event for event in end if event.done]
    assert terminal.error is not None
    assert terminal.error.code is AriCode.UNAVAILABLE
    assert "SIGKILL" in terminal.error.message
    with pytest.raises(FailedPrecondition, match="resume it first"):
        await caller.send("hello")
    caller = await Caller.resume(runtime, caller.session_id)
    assert (await caller.turn("echo: back"))[-1].content == "back"


async def test_program_that_is_killed_before_its_first_turn_is_kept(
    runtime: ClaudeCodeRuntime,
) -> None:
    caller = await created(runtime)
    pid = pid_of(runtime, caller)
    os.kill(pid, signal.SIGSTOP)
    await caller.send("hello")
    os.kill(pid, signal.SIGKILL)
    await caller.until(lambda event: event.lifecycle is ari.Lifecycle.FAILED)
    caller = await Caller.resume(runtime, caller.session_id)
    assert (await caller.turn("hello"))[-1].content == "Hello from the model."


async def test_command_of_a_killed_program_is_ended(
    runtime: ClaudeCodeRuntime, claude_cli: Cli
) -> None:
    caller = await created(runtime)
    await caller.turn("hello")
    await runtime.close_session(ari.CloseSessionRequest(caller.session_id))
    caller = await Caller.resume(runtime, caller.session_id)
    await command_that_runs(caller, claude_cli.cwd)
    process = psutil.Process(pid_of(runtime, caller))
    commands = process.children(recursive=True)
    assert commands
    process.kill()
    await caller.until(lambda event: event.lifecycle is ari.Lifecycle.FAILED)
    _, alive = psutil.wait_procs(commands, timeout=10)
    assert alive == []


async def test_close_in_the_middle_of_a_command(
    runtime: ClaudeCodeRuntime, claude_cli: Cli
) -> None:
    caller = await created(runtime)
    await command_that_runs(caller, claude_cli.cwd)
    commands = psutil.Process(pid_of(runtime, caller)).children(recursive=True)
    assert commands
    await runtime.close_session(ari.CloseSessionRequest(caller.session_id))
    rest = await caller.until(lambda event: event.lifecycle is ari.Lifecycle.CLOSED)
    assert [event.error.code for event in rest if event.error] == [AriCode.CANCELED]
    _, alive = psutil.wait_procs(commands, timeout=10)
    assert alive == []


async def test_turns_of_its_own_are_told_as_such(
    runtime: ClaudeCodeRuntime, model_server: ModelServer
) -> None:
    caller = await created(runtime)
    call = 'tool: Bash {"command": "touch g; sleep 0.3", "run_in_background": true}'
    first = await caller.turn(call, respond=ALLOW)
    assert first[-1].type is ari.EventType.RESULT
    own = await caller.until(lambda event: event.done)
    started = only(own, "turn_started")
    assert started.details == {"origin": "runtime"}
    assert started.turn_id != first[-1].turn_id
    assert {event.turn_id for event in own if event.turn_id} == {started.turn_id}
    assert own[-1].type is ari.EventType.RESULT
    assert (await caller.turn("hello"))[-1].content == "Hello from the model."


async def test_sub_agent_in_the_background_is_told_and_asks(
    runtime: ClaudeCodeRuntime, claude_cli: Cli
) -> None:
    caller = await created(runtime)
    task = {"description": "d", "prompt": "run: touch sub", "subagent_type": "general-purpose"}
    await caller.send(f"tool: Agent {json.dumps(task)}")
    pending = runtime.session(caller.session_id).feed.pending
    seen: list[ari.Event] = []
    while not (claude_cli.cwd / "sub").exists() or not seen[-1].done:
        seen += await caller.until(lambda event: event.done or event.permission)
        if seen[-1].request_id in pending:
            await caller.answer(seen[-1], ALLOW)
    states = [
        event.details["status"] for event in seen if event.lifecycle is ari.Lifecycle.SUBAGENT
    ]
    assert states[0] == "started"
    assert [event.error for event in seen if event.error] == []


# -- switches ------------------------------------------------------------------------------------


async def test_model_is_switched_to_what_it_takes_for_it(
    runtime: ClaudeCodeRuntime, model_server: ModelServer
) -> None:
    caller = await created(runtime)
    assert (await runtime.get_model(ari.GetModelRequest(caller.session_id))).model == "fake-1"
    switched = await runtime.set_model(ari.SetModelRequest(caller.session_id, "claude-opus-4-1"))
    assert switched.model != "claude-opus-4-1"
    assert (await runtime.get_model(ari.GetModelRequest(caller.session_id))) == (
        ari.GetModelResponse(switched.model)
    )
    events = await caller.turn("hello")
    assert only(events, "model").content == switched.model
    assert model_server.requests[-1].model == switched.model
    models = (await runtime.list_models(ari.ListModelsRequest(caller.session_id))).models
    assert "fake-1" in [model.id for model in models]


async def test_modes_that_change_without_asking_are_offered_by_the_operator_only(
    runtime: ClaudeCodeRuntime,
) -> None:
    caller = await created(runtime)
    modes = (await runtime.list_modes(ari.ListModesRequest(caller.session_id))).modes
    assert all(mode.asks for mode in modes)
    with pytest.raises(InvalidArgument, match="mode: expected one of default, plan, dontAsk"):
        await runtime.set_mode(ari.SetModeRequest(caller.session_id, "acceptEdits"))
    await caller.send("write: x.txt")
    asked = await caller.until(lambda event: event.permission is not None)
    assert asked[-1].permission is not None
    assert not [rule for rule in asked[-1].permission.rules if "acceptEdits" in rule.label]


async def test_modes_are_those_of_the_operator(claude_cli: Cli) -> None:
    runtime = runtime_of(claude_cli, modes=("default", "plan", "dontAsk", "acceptEdits"))
    caller = await created(runtime)
    modes = (await runtime.list_modes(ari.ListModesRequest(caller.session_id))).modes
    assert {mode.id: mode.asks for mode in modes} == {
        "default": True,
        "plan": True,
        "dontAsk": True,
        "acceptEdits": False,
    }
    switched = await runtime.set_mode(ari.SetModeRequest(caller.session_id, "acceptEdits"))
    assert switched.mode == "acceptEdits"
    assert "permission_request" not in kinds(await caller.turn("write: x.txt"))
    for mode in ("bypassPermissions", "bogus"):
        with pytest.raises(InvalidArgument, match="mode: expected one of default, plan"):
            await runtime.set_mode(ari.SetModeRequest(caller.session_id, mode))
        with pytest.raises(InvalidArgument, match="mode: expected one of default, plan"):
            await created(runtime, mode=mode)
    assert (await runtime.get_mode(ari.GetModeRequest(caller.session_id))).mode == "acceptEdits"
    planning = await created(runtime, mode="plan")
    assert (await planning.session()).mode == "plan"
    await runtime.close()


async def test_provider_is_switched_by_a_new_process_for_the_same_session(claude_cli: Cli) -> None:
    with ModelServer() as other:
        runtime = runtime_of(claude_cli, providers={"other": {"ANTHROPIC_BASE_URL": other.address}})
        caller = await created(runtime)
        await caller.turn("hello")
        before = pid_of(runtime, caller)
        switch = ari.SetActiveProviderRequest(caller.session_id, "other")
        await runtime.set_active_provider(switch)
        assert pid_of(runtime, caller) != before
        events = await caller.turn("echo: there")
        assert events[-1].content == "there"
        assert other.what_the_model_was_told() == ["hello", "echo: there"]
        assert (await caller.session()).provider == "other"
        with pytest.raises(InvalidArgument, match="provider: expected one of other"):
            await runtime.set_active_provider(
                ari.SetActiveProviderRequest(caller.session_id, "third")
            )
        await runtime.close()


async def test_commands_are_told_and_compaction_is_a_turn(runtime: ClaudeCodeRuntime) -> None:
    caller = await created(runtime)
    opened = await caller.until(lambda event: event.lifecycle is ari.Lifecycle.COMMANDS)
    listed = (await runtime.list_commands(ari.ListItemsRequest(caller.session_id))).items
    told: Any = opened[-1].details["commands"]
    assert [one["name"] for one in told] == [one.name for one in listed]
    assert "compact" in [one.name for one in listed]
    await caller.turn("hello")
    await runtime.compact_session(ari.CompactSessionRequest(caller.session_id))
    events = await caller.until(lambda event: event.done)
    assert only(events, "compaction").details["trigger"] == "manual"
    assert events[-1].type is ari.EventType.RESULT


async def test_instructions_are_added_to_its_own(
    runtime: ClaudeCodeRuntime, model_server: ModelServer
) -> None:
    caller = await created(runtime, instructions="Answer in rhymes.")
    await caller.turn("hello")
    said = model_server.requests[-1].items
    system = [item.text for item in said if isinstance(item, Text) and item.role == "system"]
    assert "Answer in rhymes." in "\n".join(system)
    assert "Claude" in "\n".join(system)


# -- the program ---------------------------------------------------------------------------------


async def test_environment_is_exactly_what_was_given(
    claude_cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARP_SECRET_OF_THE_PARENT", "s3cret")
    runtime = runtime_of(claude_cli)
    caller = await created(runtime)
    assert psutil.Process(pid_of(runtime, caller)).environ() == claude_cli.environment
    await caller.turn("run: env > seen.txt", respond=ALLOW)
    seen = (claude_cli.cwd / "seen.txt").read_text()
    assert f"HOME={claude_cli.home}" in seen
    assert "s3cret" not in seen
    await runtime.close()


def test_usual_environment_has_no_secrets_of_others() -> None:
    parent = {
        "PATH": "/bin",
        "HOME": "/home/x",
        "ANTHROPIC_API_KEY": "k",
        "CLAUDE_CONFIG_DIR": "/c",
        "AWS_SECRET_ACCESS_KEY": "no",
        "GITHUB_TOKEN": "no",
        "DATABASE_URL": "no",
        "CLAUDE_CODE_MESSAGING_TOKEN": "no",
    }
    assert usual_environment(parent) == {
        name: value for name, value in parent.items() if value != "no"
    }


async def test_status_says_what_is_there_and_what_is_missing(
    runtime: ClaudeCodeRuntime, claude_cli: Cli
) -> None:
    status = await runtime.status(ari.StatusRequest(verbose=True))
    assert (status.healthy, status.ready, status.permission) == (True, True, "enforced")
    version = (await runtime.version(ari.VersionRequest())).runtime_version
    assert status.info["version"] == version
    assert version.count(".") == 2
    named = {one.name for one in status.capabilities if one.enabled}
    assert {"deny_message", "history", "model", "mode", "mcp_servers"} <= named
    assert "provider" not in named
    for service in (
        HistoryManager,
        ModelManager,
        ModeManager,
        ProviderManager,
        CommandManager,
        SessionUtilityManager,
    ):
        assert isinstance(runtime, service)

    missing = runtime_of(claude_cli, program="/nowhere/claude")
    status = await missing.status(ari.StatusRequest())
    assert not status.ready
    assert "/nowhere/claude" in status.message
    with pytest.raises(Unavailable, match="no program of Claude Code at /nowhere/claude"):
        await created(missing)


async def test_extra_that_is_missing_is_named(
    claude_cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arp.runtime.programs.claude.claude_code.find_spec", lambda name: None)
    runtime = runtime_of(claude_cli)
    status = await runtime.status(ari.StatusRequest())
    assert "pip install 'agent-rendering-protocol[claude]'" in status.message
    with pytest.raises(Unavailable, match=r"agent-rendering-protocol\[claude\]"):
        await created(runtime)


def wrapper(cli: Cli, place: Path, script: str) -> str:
    """Return the path of a program that runs Claude Code, and does more."""
    path = place / "claude-wrapper"
    path.write_text(f"#!/bin/bash\nREAL={cli.program}\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def filtering(at_the_first_text: str) -> str:
    """Return a script that lets the output through until the first text of the model."""
    return f"""exec "$REAL" "$@" > >(while IFS= read -r line; do
  case "$line" in *text_delta*) {at_the_first_text};; esac
  printf '%s\\n' "$line"
done)"""


async def test_notes_on_standard_output_are_told_and_do_no_harm(
    claude_cli: Cli, tmp_path: Path
) -> None:
    program = wrapper(claude_cli, tmp_path, 'echo "[debug] not JSON"\nexec "$REAL" "$@"')
    runtime = runtime_of(claude_cli, program=program)
    caller = await created(runtime)
    assert (await caller.turn("hello"))[-1].content == "Hello from the model."
    await runtime.close()


async def test_command_that_begins_another_session_is_refused(runtime: ClaudeCodeRuntime) -> None:
    caller = await created(runtime)
    with pytest.raises(InvalidArgument, match="/clear begins another session; create one"):
        await caller.send("/clear")
    listed = (await runtime.list_commands(ari.ListItemsRequest(caller.session_id))).items
    assert "clear" not in [one.name for one in listed]
    events = await caller.turn("/cost")
    assert "Estimated cost" in text_of(events)
    history = await runtime.get_session_history(ari.GetSessionHistoryRequest(caller.session_id))
    assert [one.content for one in history.messages] in (["/cost"], ["/usage"])


@pytest.mark.parametrize("garbage", ['{"type": "assistant"}', '{"type": "ass', '{"type": 7}}'])
async def test_garbage_ends_the_turn(claude_cli: Cli, tmp_path: Path, garbage: str) -> None:
    """What follows the first text is replaced by something that no program should write."""
    script = filtering(f"printf '%s\\n' '{garbage}'; cat > /dev/null")
    runtime = runtime_of(claude_cli, program=wrapper(claude_cli, tmp_path, script))
    caller = await created(runtime)
    await caller.send("hello")
    seen = await caller.until(lambda event: event.lifecycle is ari.Lifecycle.FAILED)
    (end,) = [event for event in seen if event.done]
    assert end.error is not None
    assert end.error.code in (AriCode.UNAVAILABLE, AriCode.INTERNAL)
    await runtime.close()


def test_options_that_cannot_be_met_are_refused(claude_cli: Cli) -> None:
    with pytest.raises(ValueError, match="modes: expected some of default"):
        runtime_of(claude_cli, modes=("default", "yolo"))
    with pytest.raises(ValueError, match="CLAUDE_CONFIG_DIR moves the sessions away"):
        runtime_of(claude_cli, providers={"x": {"CLAUDE_CONFIG_DIR": "/tmp/x"}})
