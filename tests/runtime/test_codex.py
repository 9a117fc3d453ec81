"""Codex as a runtime: the real `codex app-server`, which talks to a fake model server."""

from __future__ import annotations

import asyncio
import base64
import os
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
from arp.runtime.contract import types as ari
from arp.runtime.contract.errors import (
    AriCode,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    Unavailable,
    Unimplemented,
)
from arp.runtime.contract.event_log import LogSubscription
from arp.runtime.contract.types import EventType, Lifecycle
from arp.runtime.programs.codex.codex import CodexRuntime
from arp.runtime.turns.session_commands import RuntimeOffers
from tests.runtime import mcp_server
from tests.runtime.clis import Cli, processes_of
from tests.runtime.model_script import HELLO, INPUT_TOKENS, THINKING, THOUGHT, WORKED, WRITTEN
from tests.runtime.model_server import ModelServer
from tests.support.serving import serving

WITHIN_S = 30.0

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5E"
    "rkJggg=="
)
"""One pixel: Codex decodes images before it sends them."""


class Session:
    """A session of a runtime, and its events as they come."""

    def __init__(self, runtime: CodexRuntime, about: ari.RuntimeSession) -> None:
        self.runtime = runtime
        self.id = about.session_id
        self.about = about
        self.events: LogSubscription
        self.seen: list[ari.Event] = []

    async def subscribe(self) -> Session:
        request = ari.SessionEventsRequest(self.id, None)
        self.events = await self.runtime.session_events(request)
        return self

    async def send(self, text: str, *parts: ari.ContentPart, **fields: Any) -> str:
        message = ari.RuntimeMessage(content=text, parts=parts)
        request = ari.SendMessageRequest(self.id, message, **fields)
        return (await self.runtime.send_message(request)).turn_id

    async def until(self, wanted: Callable[[ari.Event], object]) -> ari.Event:
        async with asyncio.timeout(WITHIN_S):
            async for event in self.events:
                self.seen.append(event)
                if wanted(event):
                    return event
        raise AssertionError(f"the events ended: {self.seen}")

    async def asked(self) -> ari.PermissionRequest:
        event = await self.until(lambda event: event.permission)
        assert event.permission is not None
        return event.permission

    async def answer(self, request: ari.PermissionRequest, decision: Any, **fields: Any) -> None:
        response = ari.PermissionResponse(decision, **fields)
        await self.runtime.respond_permission(
            ari.RespondPermissionRequest(self.id, request.request_id, response)
        )

    async def end(self) -> ari.Event:
        return await self.until(lambda event: event.done)

    async def turn(self, text: str, *parts: ari.ContentPart) -> list[ari.Event]:
        """Send a message, and return the events of its turn."""
        self.seen.clear()
        turn_id = await self.send(text, *parts)
        await self.end()
        return [event for event in self.seen if event.turn_id == turn_id]

    async def cancel(self) -> None:
        await self.runtime.cancel_turn(ari.CancelTurnRequest(self.id))

    async def close(self) -> None:
        await self.runtime.close_session(ari.CloseSessionRequest(self.id))

    async def delete(self) -> None:
        await self.runtime.delete_session(ari.DeleteSessionRequest(self.id))

    async def state(self) -> ari.RuntimeSession:
        return (await self.runtime.get_session(ari.GetSessionRequest(self.id))).session

    async def history(self) -> tuple[ari.RuntimeMessage, ...]:
        request = ari.GetSessionHistoryRequest(self.id)
        return (await self.runtime.get_session_history(request)).messages

    def of(self, event_type: EventType) -> list[ari.Event]:
        return [event for event in self.seen if event.type is event_type]

    def told(self, lifecycle: Lifecycle) -> list[ari.Event]:
        return [event for event in self.seen if event.lifecycle is lifecycle]


@asynccontextmanager
async def started(cli: Cli, **options: Any) -> AsyncIterator[CodexRuntime]:
    """Run a runtime; end all that it has started, and see that nothing is left."""
    runtime = CodexRuntime(environment=cli.environment, cwd=cli.cwd, program=cli.program, **options)
    try:
        yield runtime
    finally:
        await asyncio.wait_for(runtime.close(), WITHIN_S)
    assert processes_of(cli) == []


async def created(runtime: CodexRuntime, **fields: Any) -> Session:
    response = await runtime.create_session(ari.CreateSessionRequest(**fields))
    return await Session(runtime, response.session).subscribe()


async def resumed(runtime: CodexRuntime, session_id: str, **fields: Any) -> Session:
    response = await runtime.resume_session(ari.ResumeSessionRequest(session_id, **fields))
    return await Session(runtime, response.session).subscribe()


def kinds(events: list[ari.Event]) -> list[str]:
    """Return what happened, with runs of the same once."""
    names = [str(event.lifecycle or event.type) for event in events]
    return [name for index, name in enumerate(names) if index == 0 or name != names[index - 1]]


def joined(events: list[ari.Event], event_type: EventType) -> str:
    return "".join(event.content for event in events if event.type is event_type)


def config_of(cli: Cli) -> Path:
    return Path(cli.environment["CODEX_HOME"]) / "config.toml"


async def test_text_thinking_and_usage(codex_cli: Cli) -> None:
    async with started(codex_cli) as runtime:
        session = await created(runtime)
        assert session.about.state is ari.SessionState.CREATED
        assert (session.about.mode, session.about.provider) == ("default", "fake")
        assert session.about.model == "gpt-5.5"
        events = await session.turn("hello")
        assert kinds(events) == ["turn_started", "text", "usage", "result"]
        assert joined(events, EventType.TEXT) == events[-1].content == HELLO
        assert len([event for event in events if event.type is EventType.TEXT]) > 1
        assert events[-1].usage is not None
        assert events[-1].usage.input_tokens == INPUT_TOKENS
        events = await session.turn("think")
        assert kinds(events) == ["turn_started", "thinking", "text", "usage", "result"]
        assert joined(events, EventType.THINKING) == THINKING
        assert events[-1].content == THOUGHT
        assert session.told(Lifecycle.USAGE)[0].details["model"] == "gpt-5.5"


async def test_allow_runs_exactly_what_was_shown(codex_cli: Cli) -> None:
    async with started(codex_cli) as runtime:
        session = await created(runtime)
        await session.send("run: echo out; touch f; exit 3")
        request = await session.asked()
        assert request.kind is ari.PermissionKind.COMMAND
        assert request.tool_input_raw == {
            "command": "/bin/bash -lc 'echo out; touch f; exit 3'",
            "cwd": str(codex_cli.cwd),
        }
        assert request.tool_input_summary == "echo out; touch f; exit 3"
        assert request.message == "the script asks for it"
        assert not request.takes_updated_input
        assert (await session.state()).state is ari.SessionState.WAITING
        with pytest.raises(InvalidArgument, match="updated_input"):
            await session.answer(request, "allow", updated_input={"command": "touch g"})
        assert not (codex_cli.cwd / "f").exists()
        await session.answer(request, "allow")
        await session.end()
        assert (codex_cli.cwd / "f").exists()
        told = [kind for kind in kinds(session.seen) if kind not in ("usage", "tool_progress")]
        assert told == [
            "turn_started",
            "tool_call",
            "permission_request",
            "permission_resolved",
            "tool_result",
            "text",
            "result",
        ]
        (call,) = session.of(EventType.TOOL_CALL)
        (result,) = session.of(EventType.TOOL_RESULT)
        assert not call.synthetic
        assert call.tool_call_id == request.tool_call_id == result.tool_call_id
        assert (call.tool_name, result.content, result.is_error) == ("shell", "out\n", True)
        assert result.details["exit_code"] == 3
        with pytest.raises(FailedPrecondition, match="is allowed"):
            await session.answer(request, "allow")


async def test_denial_and_its_message_reach_the_model(
    codex_cli: Cli, model_server: ModelServer
) -> None:
    async with started(codex_cli) as runtime:
        session = await created(runtime)
        await session.send("run: touch f")
        await session.answer(await session.asked(), "deny")
        assert (await session.end()).type is EventType.RESULT
        assert "rejected by user" in (model_server.last_tool_result() or "")
        (result,) = session.of(EventType.TOOL_RESULT)
        assert result.is_error
        assert result.details["denied"] is True

        await session.send("run: touch g")
        request = await session.asked()
        assert request.takes_message
        await session.answer(request, "deny", message="not on a Monday")
        await session.end()
        assert model_server.last_user_text() == "not on a Monday"
        # Told with the result of the call, in one request: not a turn later.
        told = model_server.what_the_model_was_told()
        assert "rejected by user" in told[-2]
        assert list(codex_cli.cwd.iterdir()) == []


async def test_denial_that_interrupts_ends_the_turn(
    codex_cli: Cli, model_server: ModelServer
) -> None:
    async with started(codex_cli) as runtime:
        session = await created(runtime)
        await session.send("run: touch f")
        await session.answer(await session.asked(), "deny", interrupt=True)
        end = await session.end()
        assert end.error is not None
        assert end.error.code is AriCode.CANCELED
        assert len(model_server.requests) == 1


async def test_two_permissions_at_once(codex_cli: Cli) -> None:
    async with started(codex_cli) as runtime:
        session = await created(runtime)
        await session.send("two: touch a @@ touch b")
        by_command = {
            request.tool_input_summary: request
            for request in [await session.asked(), await session.asked()]
        }
        assert by_command.keys() == {"touch a", "touch b"}
        await session.answer(by_command["touch b"], "allow")
        assert (await session.state()).state is ari.SessionState.WAITING
        await session.answer(by_command["touch a"], "deny", message="only b")
        await session.end()
        assert [path.name for path in codex_cli.cwd.iterdir()] == ["b"]


async def test_rule_for_the_session_allows_that_command_alone(codex_cli: Cli) -> None:
    async with started(codex_cli) as runtime:
        session = await created(runtime)
        await session.send("run: touch f")
        request = await session.asked()
        rules = {rule.rule_id: rule for rule in request.rules}
        assert rules["session"].label == f"Exactly this command again, in {codex_cli.cwd}"
        assert (rules["session"].scope, rules["prefix"].scope) == ("session", "always")
        assert "begins with: touch f" in rules["prefix"].label
        await session.answer(request, "allow", rule_id="session")
        await session.end()
        (codex_cli.cwd / "f").unlink()
        await session.turn("run: touch f")
        assert session.of(EventType.PERMISSION_REQUEST) == []
        assert (codex_cli.cwd / "f").exists()
        await session.send("run: touch f g")
        await session.answer(await session.asked(), "deny")
        await session.end()
        assert not (codex_cli.cwd / "g").exists()


async def test_rule_for_a_prefix_holds_in_other_sessions(codex_cli: Cli) -> None:
    async with started(codex_cli) as runtime:
        session = await created(runtime)
        await session.send("run: touch f")
        await session.answer(await session.asked(), "allow", rule_id="prefix")
        await session.end()
        other = await created(runtime)
        await other.turn("run: touch f g")
        assert other.of(EventType.PERMISSION_REQUEST) == []
        assert (codex_cli.cwd / "g").exists()


async def test_change_of_files_is_shown_before_it_is_allowed(codex_cli: Cli) -> None:
    async with started(codex_cli, mode="read-only") as runtime:
        session = await created(runtime)
        await session.send("write: new.txt")
        request = await session.asked()
        path = str(codex_cli.cwd / "new.txt")
        assert (request.tool_name, request.kind) == ("apply_patch", ari.PermissionKind.EDIT)
        (change,) = request.tool_input_raw["changes"]
        assert (change["path"], change["diff"]) == (path, WRITTEN)
        assert [rule.label for rule in request.rules] == [f"All changes of: {path}"]
        diffs = [{"path": path, "before": "", "after": WRITTEN}]
        assert session.of(EventType.TOOL_CALL)[0].details["diffs"] == diffs
        await session.answer(request, "allow", rule_id="session")
        await session.end()
        (result,) = session.of(EventType.TOOL_RESULT)
        assert (result.is_error, result.details["diffs"]) == (False, diffs)
        assert (codex_cli.cwd / "new.txt").read_text() == WRITTEN
        await session.send("write: other.txt")
        await session.answer(await session.asked(), "deny")
        await session.end()
        assert not (codex_cli.cwd / "other.txt").exists()


async def test_cancel_stops_the_model(codex_cli: Cli, model_server: ModelServer) -> None:
    async with started(codex_cli) as runtime:
        session = await created(runtime)
        await session.send("slow")
        await session.until(lambda event: event.type is EventType.TEXT)
        with pytest.raises(FailedPrecondition, match="is active"):
            await session.send("hello")
        await session.cancel()
        end = await session.end()
        assert end.error is not None
        assert end.error.code is AriCode.CANCELED
        await model_server.reaches(lambda: model_server.requests[-1].client_left)
        assert (await session.turn("hello"))[-1].content == HELLO


async def test_cancel_stops_the_command_that_runs(codex_cli: Cli) -> None:
    async with started(codex_cli) as runtime:
        session = await created(runtime)
        await run_for_ever(session, codex_cli)
        # The shell that became `sleep`, or that is about to.
        found = processes_of(codex_cli)
        commands = [one for one in found if "sleep 987" in " ".join(one.cmdline())]
        assert commands
        await session.cancel()
        await session.end()
        _, alive = psutil.wait_procs(commands, timeout=10)
        assert alive == []
        (result,) = session.of(EventType.TOOL_RESULT)
        assert result.is_error


async def run_for_ever(session: Session, cli: Cli) -> None:
    """Let a command run that does not end by itself; return when it runs."""
    os.mkfifo(cli.home / "began")
    await session.send(f"run: echo > {cli.home / 'began'}; exec sleep 987")
    await session.answer(await session.asked(), "allow")
    await asyncio.wait_for(asyncio.to_thread((cli.home / "began").read_text), WITHIN_S)


async def test_cancel_while_permissions_are_open(codex_cli: Cli) -> None:
    async with started(codex_cli) as runtime:
        session = await created(runtime)
        await session.send("two: touch a @@ touch b")
        requests = [await session.asked(), await session.asked()]
        await session.cancel()
        await session.end()
        outcomes = [event.details for event in session.told(Lifecycle.PERMISSION_RESOLVED)]
        assert outcomes == [{"outcome": "cancelled"}] * 2
        with pytest.raises(FailedPrecondition, match="is cancelled"):
            await session.answer(requests[0], "allow")
        assert (await session.turn("hello"))[-1].content == HELLO
        assert list(codex_cli.cwd.iterdir()) == []


async def test_session_goes_on_in_a_new_process(codex_cli: Cli, model_server: ModelServer) -> None:
    (codex_cli.cwd / "deep").mkdir()
    async with started(codex_cli) as runtime:
        session = await created(runtime, cwd="deep")
        await session.turn("echo: remember me")
    async with started(codex_cli) as runtime:
        again = await resumed(runtime, session.id)
        assert again.about.state is ari.SessionState.IDLE
        assert again.about.cwd == str(codex_cli.cwd / "deep")
        await again.turn("echo: and now")
        assert model_server.what_the_model_was_told() == ["echo: remember me", "echo: and now"]
        assert "deep" in str(model_server.requests[-1].body["input"])
        history = await again.history()
        assert [(one.role, one.content) for one in history] == [
            ("user", "echo: remember me"),
            ("assistant", "remember me"),
            ("user", "echo: and now"),
            ("assistant", "and now"),
        ]


async def test_unknown_sessions(codex_cli: Cli) -> None:
    async with started(codex_cli) as runtime:
        for unknown in ("0190a0f4-0000-7000-8000-000000000000", "no id of Codex"):
            with pytest.raises(NotFound):
                await runtime.resume_session(ari.ResumeSessionRequest(unknown))
            with pytest.raises(NotFound):
                await runtime.get_session(ari.GetSessionRequest(unknown))
            with pytest.raises(NotFound):
                await runtime.get_session_history(ari.GetSessionHistoryRequest(unknown))
            await runtime.delete_session(ari.DeleteSessionRequest(unknown))


async def test_unused_session_outlives_its_process(codex_cli: Cli) -> None:
    async with started(codex_cli) as runtime:
        session = await created(runtime)
        assert await session.history() == ()
        await session.close()
        again = await resumed(runtime, session.id)
        await kill(runtime)
        await again.until(lambda event: event.lifecycle is Lifecycle.FAILED)
        again = await resumed(runtime, session.id)
        assert (await again.turn("hello"))[-1].content == HELLO


async def kill(runtime: CodexRuntime) -> None:
    os.kill((await runtime.server()).process_id, signal.SIGKILL)


async def test_killed_process_ends_every_turn_and_resume_works(codex_cli: Cli) -> None:
    async with started(codex_cli) as runtime:
        sessions = [await created(runtime) for _ in range(2)]
        idle = await created(runtime)
        for session in sessions:
            await session.send("slow")
            await session.until(lambda event: event.type is EventType.TEXT)
        await kill(runtime)
        for session in sessions:
            end = await session.end()
            assert end.error is not None
            assert end.error.code is AriCode.UNAVAILABLE
            assert "exit code -9" in end.error.message
        await idle.until(lambda event: event.lifecycle is Lifecycle.FAILED)
        with pytest.raises(FailedPrecondition, match="resume it first"):
            await idle.send("hello")
        for session in sessions:
            again = await resumed(runtime, session.id)
            assert (await again.turn("hello"))[-1].content == HELLO


async def test_kill_ends_the_commands_of_a_turn(codex_cli: Cli) -> None:
    async with started(codex_cli) as runtime:
        session = await created(runtime)
        await run_for_ever(session, codex_cli)
        await kill(runtime)
        await session.end()


async def test_list_and_delete(codex_cli: Cli) -> None:
    async with started(codex_cli) as runtime:
        one = await created(runtime, title="Kept by name")
        await one.turn("echo: first words")
        other = await created(runtime)
        await other.turn("echo: first words")
        unused = await created(runtime)
    async with started(codex_cli) as runtime:
        listed = (await runtime.list_sessions(ari.ListSessionsRequest())).sessions
        titles = {session.session_id: session.title for session in listed}
        assert titles == {one.id: "Kept by name", other.id: "echo: first words"}
        assert listed[0].session_id == other.id
        assert listed[0].cwd == str(codex_cli.cwd)
        for session_id in (one.id, one.id, unused.id):
            await runtime.delete_session(ari.DeleteSessionRequest(session_id))
        listed = (await runtime.list_sessions(ari.ListSessionsRequest())).sessions
        assert [session.session_id for session in listed] == [other.id]
        with pytest.raises(NotFound):
            await runtime.resume_session(ari.ResumeSessionRequest(one.id))


async def test_history_has_tools_and_thoughts(codex_cli: Cli) -> None:
    async with started(codex_cli) as runtime:
        session = await created(runtime)
        await session.turn("think")
        await session.send("run: echo out")
        await session.answer(await session.asked(), "allow")
        await session.end()
        await session.turn("echo: look", ari.ContentPart("image", data=PNG, mime_type="image/png"))
        history = await session.history()
    assert [one.role for one in history] == ["user", "assistant"] * 2 + [
        "assistant", "user", "assistant",
    ]  # fmt: skip
    assert history[1].thinking == THINKING
    (call,) = history[3].tool_calls
    assert (call.name, call.result, call.is_error) == ("shell", "out\n", False)
    assert history[5].parts == (ari.ContentPart("image", data=PNG, mime_type="image/png"),)


async def test_image_reaches_the_model(codex_cli: Cli) -> None:
    async with started(codex_cli) as runtime:
        session = await created(runtime)
        image = ari.ContentPart("image", data=PNG, mime_type="image/png")
        events = await session.turn("hello", image)
        assert events[-1].content == f"I received image/png, {len(PNG)} bytes.\n{HELLO}"
        secret = ari.ContentPart("image", uri="file:///etc/passwd")
        with pytest.raises(InvalidArgument, match=r"message.parts\[0\].uri: expected http"):
            await session.send("hello", secret)
        with pytest.raises(InvalidArgument, match="audio parts cannot be taken"):
            await session.send("hello", ari.ContentPart("audio", data=b"x"))


async def test_model_is_switched_for_the_next_turn(
    codex_cli: Cli, model_server: ModelServer
) -> None:
    async with started(codex_cli) as runtime:
        session = await created(runtime, model="fake-1")
        assert session.about.model == "fake-1"
        await session.turn("hello")
        await runtime.set_model(ari.SetModelRequest(session.id, "fake-2"))
        await session.turn("hello")
        assert [request.model for request in model_server.requests] == ["fake-1", "fake-2"]
        assert [event.content for event in session.told(Lifecycle.MODEL)] == ["fake-2"]
        answer = await runtime.get_model(ari.GetModelRequest(session.id))
        assert answer.model == "fake-2"
        models = (await runtime.list_models(ari.ListModelsRequest(session.id))).models
        assert "gpt-5.5" in [model.id for model in models]


async def test_mode_is_switched_for_the_next_turn(codex_cli: Cli, tmp_path: Path) -> None:
    async with started(codex_cli) as runtime:
        session = await created(runtime)
        modes = (await runtime.list_modes(ari.ListModesRequest(session.id))).modes
        asking = {mode.id for mode in modes if mode.asks}
        assert asking == {"default", "read-only", "ask"}
        # Where there are no user namespaces, its sandbox does not work, and it asks for this too.
        if (await runtime.status(ari.StatusRequest())).healthy:
            await session.turn("write: one.txt")
            assert session.of(EventType.PERMISSION_REQUEST) == []
            assert (codex_cli.cwd / "one.txt").exists()
            (codex_cli.cwd / "one.txt").unlink()
        with pytest.raises(InvalidArgument, match="mode: expected one of default"):
            await runtime.set_mode(ari.SetModeRequest(session.id, "yolo"))
        for mode in ("read-only", "ask"):
            await runtime.set_mode(ari.SetModeRequest(session.id, mode))
            await session.send("write: two.txt")
            await session.answer(await session.asked(), "deny")
            await session.end()
        await runtime.set_mode(ari.SetModeRequest(session.id, "full-access"))
        await session.turn(f"write: {tmp_path / 'outside.txt'}")
        assert session.of(EventType.PERMISSION_REQUEST) == []
        assert (await runtime.get_mode(ari.GetModeRequest(session.id))).mode == "full-access"
        assert list(codex_cli.cwd.iterdir()) == []
        assert (tmp_path / "outside.txt").exists()
    with pytest.raises(InvalidArgument, match="mode"):
        CodexRuntime(environment={}, mode="yolo")


async def test_mode_ask_asks_for_every_command(codex_cli: Cli) -> None:
    async with started(codex_cli, mode="ask") as runtime:
        session = await created(runtime)
        await session.send("run: cat /etc/hostname")
        await session.answer(await session.asked(), "deny")
        await session.end()


async def test_reviewer_of_the_configuration_is_never_taken(codex_cli: Cli) -> None:
    config = config_of(codex_cli)
    config.write_text('approvals_reviewer = "auto_review"\n' + config.read_text())
    async with started(codex_cli) as runtime:
        session = await created(runtime)
        await session.send("run: touch f")
        await session.answer(await session.asked(), "deny")
        await session.end()
        again = await resumed(runtime, session.id)
        await again.send("run: touch f")
        await again.answer(await again.asked(), "deny")
        await again.end()


async def test_provider_is_switched(codex_cli: Cli, model_server: ModelServer) -> None:
    config = config_of(codex_cli)
    first = config.read_text()
    second = first[first.index("[model_providers.fake]") :].replace(".fake]", ".second]")
    config.write_text(f'{first}\n{second}http_headers = {{ x-provider = "second" }}\n')

    def provider() -> str | None:
        return model_server.requests[-1].headers.get("x-provider")

    async with started(codex_cli) as runtime:
        session = await created(runtime)
        listed = await runtime.list_providers(ari.ListProvidersRequest(session.id))
        assert {"openai", "fake", "second"} <= {one.id for one in listed.providers}
        await session.turn("hello")
        assert provider() is None
        with pytest.raises(InvalidArgument, match="third"):
            await runtime.set_active_provider(ari.SetActiveProviderRequest(session.id, "third"))
        await session.turn("hello")
        assert provider() is None
        await runtime.set_active_provider(ari.SetActiveProviderRequest(session.id, "second"))
        await session.turn("hello")
        assert provider() == "second"
        answer = await runtime.get_active_provider(ari.GetActiveProviderRequest(session.id))
        assert answer.provider == "second"
        other = await created(runtime, provider="second")
        assert other.about.provider == "second"


async def test_provider_is_switched_from_a_screen(
    codex_cli: Cli, model_server: ModelServer, tmp_path: Path
) -> None:
    config = config_of(codex_cli)
    first = config.read_text()
    second = first[first.index("[model_providers.fake]") :].replace(".fake]", ".second]")
    config.write_text(f'{first}\n{second}http_headers = {{ x-provider = "second" }}\n')

    def provider() -> str | None:
        return model_server.requests[-1].headers.get("x-provider")

    def app() -> App:
        made = App(ledger=f"sqlite:{tmp_path}/ledger.db")
        runtime = CodexRuntime(
            environment=codex_cli.environment, cwd=codex_cli.cwd, program=codex_cli.program
        )
        made.runtime(runtime, offers=RuntimeOffers(providers=("fake", "second")))
        return made

    async def ask(client: ArpClient, text: str) -> str:
        turn = await client.ask(text)
        assert [error.error for error in turn.errors] == []
        return client.screen.text(turn.id)

    with serving(app()) as server:
        async with asyncio.timeout(WITHIN_S), connect(server.http, session_id="s") as client:
            # Before anything was said: Codex has stored nothing of the thread yet.
            assert await ask(client, "/provider second") == "The provider is now second."
            assert await ask(client, "hello") == HELLO
            assert provider() == "second"
            assert await ask(client, "/provider fake") == "The provider is now fake."
            assert await ask(client, "hello") == HELLO
            assert provider() is None
            assert await ask(client, "/provider second") == "The provider is now second."
            (command,) = [one for one in client.commands if one.name == "provider"]
            assert [(one.value, one.current) for one in command.choices] == [
                ("fake", False),
                ("second", True),
            ]
            refused = await ask(client, "/provider openai")
            assert refused == "There is no provider 'openai' here; choose one of: fake, second."
    with serving(app()) as server:
        async with asyncio.timeout(WITHIN_S), connect(server.http, session_id="s") as client:
            assert await ask(client, "hello") == HELLO
            assert provider() == "second", "the restart has lost what was chosen"
            told = model_server.what_the_model_was_told()
            assert told == ["hello", "hello", "hello"]


async def test_files_of_a_screen(codex_cli: Cli, model_server: ModelServer, tmp_path: Path) -> None:
    app = App(ledger=f"sqlite:{tmp_path}/ledger.db")
    app.runtime(
        CodexRuntime(
            environment=codex_cli.environment, cwd=codex_cli.cwd, program=codex_cli.program
        )
    )
    with serving(app) as server:
        async with asyncio.timeout(WITHIN_S), connect(server.http, session_id="s") as client:
            sent = await client.send_files([("dot.png", PNG)], "hello")
            turn = await client.turn_done(await client.turn_of(sent))
            assert "I received image/png" in client.screen.text(turn.id)
            sent = await client.send_files([("a.pdf", b"%PDF-1.7")], "hello")
            turn = await client.turn_done(await client.turn_of(sent))
            (error,) = turn.errors
            assert error.error == (
                "codex: the file 'a.pdf' (application/pdf) was not sent: "
                "file parts cannot be taken, only image, text"
            )


async def test_switched_provider_keeps_tools_instructions_and_mode(
    codex_cli: Cli, model_server: ModelServer
) -> None:
    config = config_of(codex_cli)
    first = config.read_text()
    second = first[first.index("[model_providers.fake]") :].replace(".fake]", ".second]")
    config.write_text(f"{first}\n{second}")
    server = ari.McpServer("sums", sys.executable, (mcp_server.__file__,))
    async with started(codex_cli) as runtime:
        session = await created(
            runtime, mcp_servers=(server,), instructions="Be kind.", mode="read-only"
        )
        await runtime.set_active_provider(ari.SetActiveProviderRequest(session.id, "second"))
        assert (await session.state()).provider == "second"
        assert (await session.state()).mode == "read-only"
        await session.send('mcp: sums add {"a": 2, "b": 3}')
        await session.answer(await session.asked(), "allow")
        await session.end()
        assert session.of(EventType.TOOL_RESULT)[-1].content == "5"
        assert "Be kind." in str(model_server.requests[-1].body["input"])


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, AriCode.INVALID_ARGUMENT),
        (401, AriCode.PERMISSION_DENIED),
        (500, AriCode.UNAVAILABLE),
    ],
)
async def test_errors_of_the_model(codex_cli: Cli, status: int, code: AriCode) -> None:
    async with started(codex_cli) as runtime:
        session = await created(runtime)
        end = (await session.turn(f"fail {status}"))[-1]
        assert end.error is not None
        assert end.error.code is code
        if status == 401:
            assert end.error.details["http_status"] == 401
        if status == 400:
            assert end.error.message == "the script says: fail 400"
        assert (await session.turn("hello"))[-1].content == HELLO


async def test_retry_is_visible(codex_cli: Cli) -> None:
    async with started(codex_cli) as runtime:
        session = await created(runtime)
        events = await session.turn("retry")
        assert events[-1].content == WORKED
        (retry,) = session.told(Lifecycle.RETRYING)
        assert retry.details["attempt"] == 1


async def test_tool_of_an_mcp_server(codex_cli: Cli, model_server: ModelServer) -> None:
    server = ari.McpServer("sums", sys.executable, (mcp_server.__file__,), {"A": "b"})
    async with started(codex_cli) as runtime:
        session = await created(runtime, mcp_servers=(server,))
        await session.send('mcp: sums add {"a": 2, "b": 3}')
        request = await session.asked()
        assert request.tool_name == "sums.add"
        assert request.tool_input_raw == {"a": 2, "b": 3}
        (rule,) = request.rules
        assert rule.label == 'Every call of the tool "add" of the MCP server "sums"'
        await session.answer(request, "deny", message="too easy")
        await session.end()
        (call,) = session.of(EventType.TOOL_CALL)
        (result,) = session.of(EventType.TOOL_RESULT)
        assert not call.synthetic
        assert call.tool_call_id == request.tool_call_id
        assert (result.is_error, result.details["denied"]) == (True, True)
        assert model_server.last_user_text() == "too easy"
        await session.send('mcp: sums add {"a": 2, "b": 3}')
        await session.answer(await session.asked(), "allow", rule_id="session")
        await session.end()
        assert session.of(EventType.TOOL_RESULT)[-1].content == "5"
        await session.turn('mcp: sums add {"a": 4, "b": 3}')
        assert session.of(EventType.PERMISSION_REQUEST) == []
        with pytest.raises(InvalidArgument, match=r"mcp_servers\[0\].name"):
            await created(runtime, mcp_servers=(ari.McpServer("a.b", "x"),))
        with pytest.raises(InvalidArgument, match=r"mcp_servers\[0\].shared: codex connects"):
            await created(runtime, mcp_servers=(ari.McpServer("a", "x", shared=True),))


async def test_questions_and_wider_permissions(codex_cli: Cli, model_server: ModelServer) -> None:
    config = config_of(codex_cli)
    features = "default_mode_request_user_input = true\nrequest_permissions_tool = true\n"
    config.write_text(config.read_text().replace("[features]\n", f"[features]\n{features}"))
    async with started(codex_cli) as runtime:
        session = await created(runtime)
        options = '[{"label":"Red","description":"r"},{"label":"Blue","description":"b"}]'
        question = f'{{"id":"c","header":"Color","question":"Which color?","options":{options}}}'
        ask = f'tool: request_user_input {{"questions":[{question}]}}'
        await session.send(ask)
        request = await session.asked()
        assert request.kind is ari.PermissionKind.QUESTION
        assert request.tool_input_raw["questions"][0]["options"][1]["label"] == "Blue"
        await session.answer(request, "allow", updated_input={"answers": {"Which color?": "Blue"}})
        await session.end()
        assert model_server.last_tool_result() == '{"answers":{"c":{"answers":["Blue"]}}}'
        await session.send(ask)
        await session.answer(await session.asked(), "deny")
        await session.end()
        assert model_server.last_tool_result() == '{"answers":{}}'

        wide = '{"reason":"to look","permissions":{"network":{"enabled":true}}}'
        for decision, granted in (("deny", '"network":null'), ("allow", '"enabled":true')):
            await session.send(f"tool: request_permissions {wide}")
            request = await session.asked()
            assert request.message == "to look"
            assert request.tool_input_raw["permissions"] == {"network": {"enabled": True}}
            await session.answer(request, decision)
            await session.end()
            assert granted in (model_server.last_tool_result() or "")


async def test_instructions_skills_and_memory(codex_cli: Cli, model_server: ModelServer) -> None:
    (codex_cli.cwd / "AGENTS.md").write_text("Be brief.")
    async with started(codex_cli) as runtime:
        session = await created(runtime, instructions="Be kind.")
        await session.turn("hello")
        assert "Be kind." in str(model_server.requests[-1].body["input"])
        items = ari.ListItemsRequest(session.id)
        files = (await runtime.list_memory_files(items)).items
        assert [file.path for file in files] == [str(codex_cli.cwd / "AGENTS.md")]
        assert all(skill.name for skill in (await runtime.list_skills(items)).items)


async def test_compaction_is_a_turn(codex_cli: Cli) -> None:
    async with started(codex_cli) as runtime:
        session = await created(runtime)
        await session.turn("hello")
        await runtime.compact_session(ari.CompactSessionRequest(session.id))
        with pytest.raises(FailedPrecondition, match="is active"):
            await session.send("hello")
        assert (await session.end()).type is EventType.RESULT
        assert len(session.told(Lifecycle.COMPACTION)) == 1
        request = ari.CompactSessionRequest(session.id, "keep the names")
        with pytest.raises(Unimplemented, match="instructions"):
            await runtime.compact_session(request)


async def test_close_stops_the_turn(codex_cli: Cli, model_server: ModelServer) -> None:
    async with started(codex_cli) as runtime:
        session = await created(runtime)
        await session.send("slow")
        await session.until(lambda event: event.type is EventType.TEXT)
        await session.close()
        await model_server.reaches(lambda: model_server.requests[-1].client_left)
        again = await resumed(runtime, session.id)
        assert (await again.turn("hello"))[-1].content == HELLO


async def test_environment_is_exactly_what_was_given(
    codex_cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OF_THE_SERVER", "secret")
    async with started(codex_cli) as runtime:
        process = psutil.Process((await runtime.server()).process_id)
        assert process.environ() == codex_cli.environment
        session = await created(runtime)
        await session.send("run: env")
        await session.answer(await session.asked(), "allow")
        await session.end()
        (result,) = session.of(EventType.TOOL_RESULT)
        assert "CODEX_HOME=" in result.content
        assert "OF_THE_SERVER" not in result.content


async def test_status_and_version(codex_cli: Cli) -> None:
    async with started(codex_cli) as runtime:
        assert (await runtime.version(ari.VersionRequest())).runtime_version == ""
        status = await runtime.status(ari.StatusRequest(verbose=True))
        assert status.ready
        assert status.healthy is (status.message == "")
        assert status.permission == "advisory"
        assert int(status.info["process_id"]) > 0
        applies = {one.name: one.applies_to for one in status.capabilities}
        assert applies["model"] == applies["mode"] == "next_turn"
        version = (await runtime.version(ari.VersionRequest())).runtime_version
        assert version.split(".")[0].isdigit()


async def test_fault_in_the_configuration_is_told(codex_cli: Cli) -> None:
    config_of(codex_cli).write_text('approval_policy = "on-request\n')
    async with started(codex_cli) as runtime:
        status = await runtime.status(ari.StatusRequest())
        assert not status.ready
        assert "config.toml" in status.message
        with pytest.raises(Unavailable, match=r"config\.toml"):
            await created(runtime)


async def test_process_that_ends_at_its_start_says_why(codex_cli: Cli) -> None:
    missing = codex_cli.but(CODEX_HOME=str(codex_cli.home / "missing"))
    async with started(missing) as runtime:
        with pytest.raises(Unavailable, match=r"CODEX_HOME|missing"):
            await created(runtime)
        assert not (await runtime.status(ari.StatusRequest())).ready


async def test_missing_program_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "codex_cli_bin", None)
    runtime = CodexRuntime(environment={"PATH": str(tmp_path)}, cwd=tmp_path)
    with pytest.raises(Unavailable, match=r"pip install 'agent-rendering-protocol\[codex\]'"):
        await created(runtime)
    status = await runtime.status(ari.StatusRequest())
    assert not status.ready
    assert "agent-rendering-protocol[codex]" in status.message
    await runtime.close()
