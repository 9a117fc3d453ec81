"""Any async function is an agent runtime."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from arp.runtime.contract import types as ari
from arp.runtime.contract.errors import AriCode, InvalidArgument, NotFound, Unavailable
from arp.runtime.plain.function import FunctionRuntime, FunctionTurn
from tests.runtime.test_driven import created, kinds, sent, state_of, subscribed, until_done


async def upper(turn: FunctionTurn) -> str:
    return turn.text.upper()


async def letters(turn: FunctionTurn) -> AsyncIterator[str]:
    for letter in turn.text:
        yield letter


async def answer(runtime: FunctionRuntime, session_id: str, text: str) -> list[ari.Event]:
    after = runtime.session(session_id).log.last
    await sent(runtime, session_id, text)
    return await until_done(await subscribed(runtime, session_id, after))


async def test_text_that_is_returned_or_yielded() -> None:
    runtime = FunctionRuntime(upper)
    events = await answer(runtime, await created(runtime), "hi")
    assert kinds(events) == ["turn_started", "text", "result"]
    assert events[-1].content == "HI"
    runtime = FunctionRuntime(letters)
    events = await answer(runtime, await created(runtime), "hi")
    assert [event.content for event in events] == ["", "hi", "hi"]


async def test_session_is_resumed_where_it_worked(tmp_path: Path) -> None:
    async def where(turn: FunctionTurn) -> str:
        return turn.cwd

    def opened() -> FunctionRuntime:
        return FunctionRuntime(where, cwd=tmp_path, directory=tmp_path / "sessions")

    own = tmp_path / "own"
    own.mkdir()
    first = opened()
    session_id = await created(first, cwd="own")
    assert (await answer(first, session_id, "?"))[-1].content == str(own)
    second = opened()
    found = (await second.get_session(ari.GetSessionRequest(session_id))).session
    assert found.cwd == str(own)
    resumed = await second.resume_session(ari.ResumeSessionRequest(session_id))
    assert resumed.session.cwd == str(own)
    assert (await answer(second, session_id, "?"))[-1].content == str(own)
    own.rmdir()
    resumed = await opened().resume_session(ari.ResumeSessionRequest(session_id))
    assert resumed.session.cwd == str(tmp_path)


async def test_tool_that_asks_runs_what_was_allowed() -> None:
    ran: list[object] = []

    async def removes(turn: FunctionTurn) -> None:
        with turn.tool("remove", {"path": "a"}, summary="remove a") as call:
            response = await call.allowed(message="it cannot be undone")
            if response.decision == "allow":
                ran.append(response.updated_input or call.input)
                call.result("removed")
        turn.say("Done.")

    runtime = FunctionRuntime(removes)
    session_id = await created(runtime)
    for decision in (
        ari.PermissionResponse("allow", updated_input={"path": "b"}),
        ari.PermissionResponse("deny", message="keep it"),
    ):
        after = runtime.session(session_id).log.last
        await sent(runtime, session_id, "go")
        events = await subscribed(runtime, session_id, after)
        asked = [await anext(events) for _ in range(3)][-1]
        respond = ari.RespondPermissionRequest(session_id, asked.request_id, decision)
        await runtime.respond_permission(respond)
        rest = await until_done(events)
        assert kinds(rest) == ["permission_resolved", "tool_result", "text", "result"]
    assert rest[1].content == "keep it"
    assert rest[1].is_error
    assert rest[1].details["denied"] is True
    assert ran == [{"path": "b"}]


async def test_cancel_reaches_the_function() -> None:
    reached = asyncio.Event()

    async def waits(turn: FunctionTurn) -> None:
        try:
            turn.say("I wait.")
            await asyncio.Event().wait()
        finally:
            reached.set()

    runtime = FunctionRuntime(waits)
    session_id = await created(runtime)
    await sent(runtime, session_id)
    events = await subscribed(runtime, session_id, 2)
    assert (await anext(events)).content == "I wait."
    await runtime.cancel_turn(ari.CancelTurnRequest(session_id))
    error = (await until_done(events))[-1].error
    assert error is not None
    assert error.code is AriCode.CANCELED
    assert reached.is_set()


async def test_cancel_before_the_function_begins_ends_the_turn() -> None:
    runtime = FunctionRuntime(upper)
    session_id = await created(runtime)
    await sent(runtime, session_id)
    await runtime.cancel_turn(ari.CancelTurnRequest(session_id))
    events = await until_done(await subscribed(runtime, session_id))
    assert kinds(events) == ["created", "turn_started", "error"]


async def test_failure_of_the_function_ends_the_turn() -> None:
    async def fails(turn: FunctionTurn) -> str:
        if turn.text == "coded":
            raise Unavailable("the model does not answer")
        raise KeyError("a secret")

    runtime = FunctionRuntime(fails)
    session_id = await created(runtime)
    coded = (await answer(runtime, session_id, "coded"))[-1].error
    assert coded is not None
    assert (coded.code, coded.message) == (AriCode.UNAVAILABLE, "the model does not answer")
    other = (await answer(runtime, session_id, "other"))[-1].error
    assert other is not None
    assert other.code is AriCode.INTERNAL
    assert "secret" not in other.message


async def test_sessions_in_a_directory_are_found_by_another_process(tmp_path: Path) -> None:
    first = FunctionRuntime(upper, directory=tmp_path)
    session_id = await created(first, session_id="mine")
    await answer(first, session_id, "one")
    await first.close()
    second = FunctionRuntime(upper, directory=tmp_path)
    assert (await state_of(second, "mine")).turn_count == 1
    await second.resume_session(ari.ResumeSessionRequest("mine"))
    await answer(second, "mine", "two")
    history = await second.get_session_history(ari.GetSessionHistoryRequest("mine"))
    assert [message.content for message in history.messages] == ["one", "ONE", "two", "TWO"]
    await second.delete_session(ari.DeleteSessionRequest("mine"))
    assert not (tmp_path / "mine.jsonl").exists()
    with pytest.raises(NotFound):
        await second.resume_session(ari.ResumeSessionRequest("mine"))


async def test_id_that_is_no_file_name_is_refused(tmp_path: Path) -> None:
    runtime = FunctionRuntime(upper, directory=tmp_path / "sessions")
    with pytest.raises(InvalidArgument, match="session_id"):
        await created(runtime, session_id="../other")
    with pytest.raises(NotFound):
        await runtime.resume_session(ari.ResumeSessionRequest("../other"))
    await runtime.delete_session(ari.DeleteSessionRequest("../other"))
