"""The fake runtime plays what was written out, records its calls, and fails on demand."""

from __future__ import annotations

import pytest

from arp.runtime.contract import types as ari
from arp.runtime.contract.errors import AriCode, InvalidArgument, Unavailable
from arp.runtime.contract.services import (
    METHODS,
    CommandManager,
    HistoryManager,
    ModelManager,
    ModeManager,
)
from arp.testing import Fails, FakeRuntime, Says, Step, Tells, Thinks, Uses, Waits
from tests.runtime.test_driven import created, kinds, sent, subscribed, until_done


async def test_steps_of_a_turn() -> None:
    steps: list[Step] = [
        Thinks("hm"),
        Uses("shell", {"command": "ls"}, "README"),
        Says("All done."),
    ]
    fake = FakeRuntime({"go": steps})
    session_id = await created(fake)
    await sent(fake, session_id, "go")
    events = await until_done(await subscribed(fake, session_id, 1))
    assert kinds(events) == [
        "turn_started", "thinking", "tool_call", "tool_result", "text", "text", "result",
    ]  # fmt: skip
    assert fake.ran == [("shell", {"command": "ls"})]


async def test_denied_tool_does_not_run() -> None:
    fake = FakeRuntime({"go": [Uses("shell", {"command": "rm x"}, asks=True)]})
    session_id = await created(fake)
    await sent(fake, session_id, "go")
    events = await subscribed(fake, session_id, 1)
    asked = [await anext(events) for _ in range(3)][-1]
    assert asked.tool_input_summary == "rm x"
    denial = ari.PermissionResponse("deny")
    await fake.respond_permission(
        ari.RespondPermissionRequest(session_id, asked.request_id, denial)
    )
    await until_done(events)
    assert fake.ran == []


async def test_calls_are_recorded_and_errors_injected() -> None:
    fake = FakeRuntime()
    fake.inject_error("create_session", Unavailable("no process left"))
    with pytest.raises(Unavailable, match="no process left"):
        await created(fake)
    fake.inject_error("create_session", None)
    await created(fake, model="fake-2")
    assert fake.calls("create_session") == 2
    assert fake.called[-1] == ("create_session", ari.CreateSessionRequest(model="fake-2"))
    with pytest.raises(ValueError, match="there is no 'creat'"):
        fake.inject_error("creat", Unavailable("x"))
    await fake.close()
    assert fake.calls("close") == 1


async def test_turn_that_waits_and_turn_that_fails() -> None:
    fake = FakeRuntime(
        {
            "wait": [Tells(ari.Lifecycle.PLAN, details={"todos": []}), Waits(), Says("Now.")],
            "fail": [Fails(Unavailable("later"))],
        }
    )
    session_id = await created(fake)
    events = await subscribed(fake, session_id, None)
    await sent(fake, session_id, "wait")
    assert kinds([await anext(events) for _ in range(2)]) == ["turn_started", "plan"]
    fake.proceed()
    assert (await until_done(events))[-1].content == "Now."
    await sent(fake, session_id, "fail")
    failed = (await until_done(events))[-1].error
    assert failed is not None
    assert failed.code is AriCode.UNAVAILABLE


async def test_every_method_of_the_interface_is_there() -> None:
    fake = FakeRuntime()
    for service in (HistoryManager, ModelManager, ModeManager, CommandManager):
        assert isinstance(fake, service)
    session_id = await created(fake)
    for method in METHODS:
        if method.level == 3 and method.name.startswith(("get_", "list_")):
            response = await getattr(fake, method.name)(method.request(session_id))
            assert isinstance(response, method.response)
    await fake.set_model(ari.SetModelRequest(session_id, "fake-2"))
    assert await fake.get_model(ari.GetModelRequest(session_id)) == ari.GetModelResponse("fake-2")
    with pytest.raises(InvalidArgument, match="expected one of ask, free, got 'wild'"):
        await fake.set_mode(ari.SetModeRequest(session_id, "wild"))
    await fake.compact_session(ari.CompactSessionRequest(session_id))
    assert "compaction" in kinds(await until_done(await subscribed(fake, session_id)))
