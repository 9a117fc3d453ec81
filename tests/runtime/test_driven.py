"""What every runtime promises, whatever is behind it (`arp.runtime.contract.services`)."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from arp.runtime.contract import types as ari
from arp.runtime.contract.driven import DrivenRuntime
from arp.runtime.contract.errors import (
    AlreadyExists,
    AriCode,
    ErrorStatus,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    RuntimeInternal,
    Unimplemented,
)
from arp.runtime.contract.event_log import LogSubscription
from arp.runtime.contract.feed import SessionFeed
from tests.runtime.scripted_session import ScriptedRuntime

EventType, Lifecycle, State = ari.EventType, ari.Lifecycle, ari.SessionState


def nothing(_text: str, _conversation: SessionFeed) -> None:
    """Begin a turn in which nothing happens until the test goes on."""


def shell(command: str, **fields: bool) -> ari.PermissionRequest:
    return ari.PermissionRequest("shell", tool_input_raw={"command": command}, **fields)  # type: ignore[arg-type]  # only flags


async def created(runtime: DrivenRuntime, **fields: object) -> str:
    request = ari.CreateSessionRequest(**fields)  # type: ignore[arg-type]
    return (await runtime.create_session(request)).session.session_id


async def sent(runtime: DrivenRuntime, session_id: str, text: str = "hi", **fields: object) -> str:
    message = ari.RuntimeMessage(content=text)
    request = ari.SendMessageRequest(session_id, message, **fields)  # type: ignore[arg-type]
    return (await runtime.send_message(request)).turn_id


async def subscribed(
    runtime: DrivenRuntime, session_id: str, after: int | None = 0
) -> LogSubscription:
    return await runtime.session_events(ari.SessionEventsRequest(session_id, after))


async def until_done(events: LogSubscription) -> list[ari.Event]:
    seen = []
    async with asyncio.timeout(5):
        async for event in events:
            seen.append(event)
            if event.done:
                break
    return seen


def kinds(events: list[ari.Event]) -> list[str]:
    return [event.lifecycle or event.type for event in events]


async def state_of(runtime: DrivenRuntime, session_id: str) -> ari.RuntimeSession:
    return (await runtime.get_session(ari.GetSessionRequest(session_id))).session


async def test_turn_ends_with_one_result_that_has_the_last_text(tmp_path: Path) -> None:
    def script(text: str, feed: SessionFeed) -> None:
        feed.thinking("hm")
        feed.text("first")
        feed.tool_call("c1", "shell", {"command": "ls"}, summary="ls")
        feed.tool_result("c1", "README")
        feed.text("la")
        feed.text("st")
        feed.result(usage=ari.Usage(input_tokens=3))
        feed.result("again")
        feed.text("too late")

    runtime = ScriptedRuntime(script, tmp_path)
    session_id = await created(runtime)
    turn_id = await sent(runtime, session_id)
    events = await until_done(await subscribed(runtime, session_id))
    assert kinds(events) == [
        "created", "turn_started", "thinking", "text", "tool_call", "tool_result", "text", "text",
        "result",
    ]  # fmt: skip
    assert [event.sequence for event in events] == list(range(1, 10))
    assert {event.turn_id for event in events[1:]} == {turn_id}
    assert events[-1].content == "last"
    assert events[-1].usage == ari.Usage(input_tokens=3)
    assert not any(event.synthetic for event in events)
    assert (await state_of(runtime, session_id)).state is State.IDLE


async def test_second_message_is_refused_before_the_runtime_hears_of_it(tmp_path: Path) -> None:
    heard = []
    runtime = ScriptedRuntime(lambda text, _: heard.append(text), tmp_path)
    session_id = await created(runtime)
    turn_id = await sent(runtime, session_id, "one")
    with pytest.raises(FailedPrecondition, match=f"turn {turn_id} is active"):
        await sent(runtime, session_id, "two")
    assert heard == ["one"]


async def test_one_key_is_one_turn(tmp_path: Path) -> None:
    runtime = ScriptedRuntime(lambda _, feed: feed.result(), tmp_path)
    session_id = await created(runtime)
    first = await sent(runtime, session_id, idempotency_key="k")
    assert await sent(runtime, session_id, idempotency_key="k") == first
    assert await sent(runtime, session_id, idempotency_key="l") != first
    assert (await state_of(runtime, session_id)).turn_count == 2


async def test_permission_without_its_tool_call_gets_one(tmp_path: Path) -> None:
    def script(_text: str, feed: SessionFeed) -> None:
        feed.ask("n1", shell("rm x"))

    runtime = ScriptedRuntime(script, tmp_path)
    session_id = await created(runtime)
    await sent(runtime, session_id)
    assert (await state_of(runtime, session_id)).state is State.WAITING
    events = await subscribed(runtime, session_id)
    seen = [await anext(events) for _ in range(4)]
    assert kinds(seen) == ["created", "turn_started", "tool_call", "permission_request"]
    assert seen[2].synthetic
    assert seen[2].tool_call_id == seen[3].tool_call_id
    request = seen[3].permission
    assert request is not None
    assert request.tool_input_raw == {"command": "rm x"}


async def test_permission_is_answered_once_and_fits(tmp_path: Path) -> None:
    def script(_text: str, feed: SessionFeed) -> None:
        feed.ask("n1", shell("one"))
        feed.ask("n2", shell("two", takes_updated_input=True))

    runtime = ScriptedRuntime(script, tmp_path)
    session_id = await created(runtime)
    await sent(runtime, session_id)
    open_requests = list(runtime.session(session_id).feed.pending)

    async def respond(request_id: str, response: ari.PermissionResponse) -> None:
        request = ari.RespondPermissionRequest(session_id, request_id, response)
        await runtime.respond_permission(request)

    edited = ari.PermissionResponse("allow", updated_input={"command": "else"})
    with pytest.raises(InvalidArgument, match="updated_input: this request does not take one"):
        await respond(open_requests[0], edited)
    with pytest.raises(InvalidArgument, match="the agent cannot receive a reason"):
        await respond(open_requests[0], ari.PermissionResponse("deny", message="no"))
    with pytest.raises(InvalidArgument, match="'all' is not offered"):
        await respond(open_requests[0], ari.PermissionResponse("allow", rule_id="all"))
    await respond(open_requests[1], edited)
    assert (await state_of(runtime, session_id)).state is State.WAITING
    await respond(open_requests[0], ari.PermissionResponse("deny"))
    assert (await state_of(runtime, session_id)).state is State.RUNNING
    assert [native for native, _ in runtime.natives[session_id].told] == ["n2", "n1"]
    with pytest.raises(FailedPrecondition, match="is denied"):
        await respond(open_requests[0], ari.PermissionResponse("allow"))
    with pytest.raises(NotFound):
        await respond("permission-none", ari.PermissionResponse("allow"))


async def test_cancel_closes_what_is_asked_and_ends_the_turn_as_canceled(tmp_path: Path) -> None:
    def script(_text: str, feed: SessionFeed) -> None:
        feed.ask("n1", shell("one"))

    runtime = ScriptedRuntime(script, tmp_path)
    session_id = await created(runtime)
    turn_id = await sent(runtime, session_id)
    (request_id,) = runtime.session(session_id).feed.pending
    await runtime.cancel_turn(ari.CancelTurnRequest(session_id, turn_id))
    events = await until_done(await subscribed(runtime, session_id))
    assert kinds(events)[4:] == ["permission_resolved", "tool_result", "error"]
    assert events[4].details == {"outcome": "cancelled"}
    assert events[5].synthetic
    assert events[6].error is not None
    assert events[6].error.code is AriCode.CANCELED
    answer = ari.RespondPermissionRequest(session_id, request_id, ari.PermissionResponse("allow"))
    with pytest.raises(FailedPrecondition, match="is cancelled"):
        await runtime.respond_permission(answer)
    with pytest.raises(FailedPrecondition, match="is not active"):
        await runtime.cancel_turn(ari.CancelTurnRequest(session_id, turn_id))


async def test_resuming_an_open_session_emits_what_it_asks_again(tmp_path: Path) -> None:
    """For a caller that was started again, and has not seen the request."""

    def script(_text: str, feed: SessionFeed) -> None:
        feed.ask("n1", shell("one"))

    runtime = ScriptedRuntime(script, tmp_path)
    session_id = await created(runtime)
    await sent(runtime, session_id)
    (request_id,) = runtime.session(session_id).feed.pending
    resumed = await runtime.resume_session(ari.ResumeSessionRequest(session_id))
    assert resumed.session.state is ari.SessionState.WAITING
    again = await subscribed(runtime, session_id, resumed.sequence)
    event = await anext(again)
    assert (event.type, event.request_id) == (ari.EventType.PERMISSION_REQUEST, request_id)
    assert event.permission is not None
    assert event.permission.tool_input_raw == shell("one").tool_input_raw


async def test_a_closed_runtime_abandons_what_asks_and_cancels_what_runs(tmp_path: Path) -> None:
    def script(text: str, feed: SessionFeed) -> None:
        if text == "ask":
            feed.ask("n1", shell("one"))

    runtime = ScriptedRuntime(script, tmp_path)
    asking, running = await created(runtime), await created(runtime)
    await sent(runtime, asking, "ask")
    await sent(runtime, running, "run")
    await runtime.close()
    ends = {name: native.ends for name, native in runtime.natives.items()}
    assert ends == {asking: ["abandon"], running: ["aclose"]}
    assert runtime.natives[asking].told == []


async def test_runtime_that_does_not_stop_is_ended(tmp_path: Path) -> None:
    runtime = ScriptedRuntime(nothing, tmp_path)
    runtime.cancel_grace_s = 0.01
    session_id = await created(runtime)
    await sent(runtime, session_id)
    native = runtime.natives[session_id]
    native.stops_when_told = False
    await runtime.cancel_turn(ari.CancelTurnRequest(session_id))
    events = await until_done(await subscribed(runtime, session_id))
    assert events[-1].error is not None
    assert events[-1].error.code is AriCode.CANCELED
    assert (await state_of(runtime, session_id)).state is State.FAILED
    await runtime.close()
    assert not native.is_open


async def test_deadlines_of_turns_and_of_permissions(tmp_path: Path) -> None:
    def script(_text: str, feed: SessionFeed) -> None:
        feed.ask("n1", shell("one"))

    runtime = ScriptedRuntime(script, tmp_path)
    session_id = await created(runtime, permission_timeout_s=0.01)
    await sent(runtime, session_id, timeout_s=0.1)
    events = await until_done(await subscribed(runtime, session_id))
    assert kinds(events)[4:] == ["permission_resolved", "tool_result", "error"]
    assert events[4].details == {"outcome": "expired"}
    assert events[-1].error is not None
    assert events[-1].error.code is AriCode.DEADLINE_EXCEEDED
    assert runtime.natives[session_id].told == [("n1", ari.PermissionResponse("deny"))]


async def test_lost_process_ends_the_turn_and_resume_opens_the_session_again(
    tmp_path: Path,
) -> None:
    runtime = ScriptedRuntime(nothing, tmp_path)
    session_id = await created(runtime)
    await sent(runtime, session_id)
    runtime.stored.add(session_id)
    runtime.session(session_id).feed.lost("killed")
    events = await until_done(await subscribed(runtime, session_id))
    assert events[-1].error == ErrorStatus(AriCode.UNAVAILABLE, "killed", retryable=True)
    with pytest.raises(FailedPrecondition, match="resume it first"):
        await sent(runtime, session_id)
    resumed = await runtime.resume_session(ari.ResumeSessionRequest(session_id))
    assert resumed.session.state is State.IDLE
    await sent(runtime, session_id)


async def test_close_and_delete_may_be_called_again(tmp_path: Path) -> None:
    runtime = ScriptedRuntime(nothing, tmp_path)
    session_id = await created(runtime)
    await sent(runtime, session_id)
    events = await subscribed(runtime, session_id)
    for _ in range(2):
        await runtime.close_session(ari.CloseSessionRequest(session_id))
    async with asyncio.timeout(5):
        seen = [event async for event in events]
    assert kinds(seen)[-2:] == ["error", "closed"]
    with pytest.raises(FailedPrecondition, match="closed"):
        await sent(runtime, session_id)
    with pytest.raises(FailedPrecondition, match="closed"):
        await subscribed(runtime, session_id)
    for _ in range(2):
        await runtime.delete_session(ari.DeleteSessionRequest(session_id))
    with pytest.raises(NotFound):
        await state_of(runtime, session_id)
    for _ in range(2):
        await runtime.close()
    with pytest.raises(FailedPrecondition, match="the runtime is closed"):
        await created(runtime)


async def test_unused_session_is_created_again(tmp_path: Path) -> None:
    runtime = ScriptedRuntime(nothing, tmp_path)
    session_id = await created(runtime)
    await runtime.close_session(ari.CloseSessionRequest(session_id))
    resumed = await runtime.resume_session(ari.ResumeSessionRequest(session_id))
    assert resumed.session.state is State.CREATED
    with pytest.raises(NotFound):
        await runtime.resume_session(ari.ResumeSessionRequest("of another process"))


async def test_what_a_runtime_cannot_take_is_refused(tmp_path: Path) -> None:
    runtime = ScriptedRuntime(nothing, tmp_path)
    with pytest.raises(Unimplemented, match="instructions: scripted cannot take one"):
        await created(runtime, instructions="be kind")
    with pytest.raises(InvalidArgument, match="not below the directory"):
        await created(runtime, cwd="..")
    with pytest.raises(InvalidArgument, match="api_version: expected 'v1', got 'v2'"):
        await runtime.version(ari.VersionRequest("v2"))
    session_id = await created(runtime, session_id="mine")
    with pytest.raises(AlreadyExists):
        await created(runtime, session_id="mine")
    image = ari.ContentPart("image", data=b"x", mime_type="image/png")
    message = ari.RuntimeMessage(content="look", parts=(ari.ContentPart("text", "a"), image))
    with pytest.raises(InvalidArgument, match=r"message.parts\[1\]: image parts cannot be taken"):
        await runtime.send_message(ari.SendMessageRequest(session_id, message))
    with pytest.raises(InvalidArgument, match="it is empty"):
        await sent(runtime, session_id, " ")
    assert (await state_of(runtime, session_id)).state is State.CREATED


async def test_several_consumers_get_every_event_and_heartbeats_say_the_turn_is_active(
    tmp_path: Path,
) -> None:
    runtime = ScriptedRuntime(nothing, tmp_path)
    runtime.heartbeat_s = 0.01
    session_id = await created(runtime)
    consumers = [await subscribed(runtime, session_id, None) for _ in range(3)]
    await sent(runtime, session_id)
    async with asyncio.timeout(5):
        seen = [[await anext(events) for _ in range(3)] for events in consumers]
    assert seen[0] == seen[1] == seen[2]
    assert kinds(seen[0]) == ["turn_started", "heartbeat", "heartbeat"]
    await consumers[0].aclose()
    with pytest.raises(StopAsyncIteration):
        await anext(consumers[0])
    await runtime.close()


async def test_other_threads_have_a_handle(tmp_path: Path) -> None:
    runtime = ScriptedRuntime(lambda _, feed: feed.result("done"), tmp_path)
    handle = runtime.threadsafe()
    seen: list[ari.Event] = []

    def other_thread() -> None:
        session = handle.call(lambda one: one.create_session(ari.CreateSessionRequest())).session
        events = handle.events(ari.SessionEventsRequest(session.session_id))
        message = ari.SendMessageRequest(session.session_id, ari.RuntimeMessage(content="hi"))
        handle.call(lambda one: one.send_message(message))
        close = ari.CloseSessionRequest(session.session_id)
        handle.call(lambda one: one.close_session(close))
        seen.extend(events)

    thread = threading.Thread(target=other_thread)
    thread.start()
    await asyncio.to_thread(thread.join, 5)
    assert kinds(seen) == ["turn_started", "result", "closed"]
    with pytest.raises(RuntimeError, match="in the thread of its loop"):
        handle.call(lambda one: one.close(ari.CloseRequest()))


class NamesItsOwn(ScriptedRuntime):
    """Lists one capability, by any name."""

    listed = ""

    def _capabilities(self) -> list[ari.Capability]:
        return [ari.Capability(self.listed)]


@pytest.mark.parametrize("name", ["cancel_turn", "history", "acme.example/voice", "acme/Voice-2"])
async def test_capability_has_a_shared_name_or_one_with_the_prefix_of_its_vendor(
    name: str, tmp_path: Path
) -> None:
    runtime = NamesItsOwn(nothing, tmp_path)
    runtime.listed = name
    status = await runtime.status(ari.StatusRequest())
    assert [one.name for one in status.capabilities] == [name]


@pytest.mark.parametrize("name", ["cancel", "list", "", "voice", "/voice", "acme/", "Acme/voice"])
async def test_unknown_capability_is_refused(name: str, tmp_path: Path) -> None:
    runtime = NamesItsOwn(nothing, tmp_path)
    runtime.listed = name
    with pytest.raises(RuntimeInternal, match="call one of your own VENDOR/NAME"):
        await runtime.status(ari.StatusRequest())


async def test_nothing_is_told_of_a_session_behind_its_end(tmp_path: Path) -> None:
    """An agent that is slow to end still tells something."""
    runtime = ScriptedRuntime(nothing, tmp_path)
    session_id = await created(runtime)
    events = await runtime.session_events(ari.SessionEventsRequest(session_id, 0))
    await runtime.close_session(ari.CloseSessionRequest(session_id))
    runtime.natives[session_id].feed.tell(Lifecycle.COMMANDS, commands=[])
    assert kinds([event async for event in events]) == ["created", "closed"]
