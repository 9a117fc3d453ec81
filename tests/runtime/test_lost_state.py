"""What a runtime keeps of a session is lost or torn: it goes on with what is left, and says so."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from arp.runtime.contract import types as ari
from arp.runtime.contract.errors import FailedPrecondition
from arp.runtime.plain.fake import FakeRuntime
from tests.runtime.caller import Caller
from tests.runtime.runtimes_under_test import RUNTIMES


def lose(file: Path, how: str) -> None:
    """Lose a file as disks do."""
    content = file.read_bytes()
    if how == "missing":
        file.unlink()
    else:
        file.write_bytes({"empty": b"", "cut": content[: len(content) // 2]}[how])


@pytest.mark.timeout(180)
@pytest.mark.parametrize("how", ["missing", "empty", "cut"])
@pytest.mark.parametrize("name", ["pydantic-ai", "openai-agents", "ag-ui", "langgraph"])
async def test_session_whose_state_is_lost_goes_on_with_its_messages(
    tmp_path: Path, name: str, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Without its messages, an agent would answer as if nobody had said anything before."""
    under_test = RUNTIMES[name](tmp_path)
    try:
        first = under_test.make()
        caller = await Caller.create(first)
        await caller.turn("echo: the first")
        await first.close(ari.CloseRequest())
        (stored,) = (tmp_path / "sessions").glob("threads.db" if name == "langgraph" else "*.state")
        if name == "langgraph" and how == "cut":
            pytest.skip("SQLite says that the file is no database; nothing is silent there")
        lose(stored, how)
        second = under_test.make()
        caller = await Caller.resume(second, caller.session_id)
        await caller.turn("echo: the second")
        await second.close(ari.CloseRequest())
        assert list(under_test.told()) == ["echo: the first", "echo: the second"]
    finally:
        under_test.end()
    assert "its state is lost; it continues with its messages" in caplog.text


async def test_message_that_was_torn_is_left_out_and_the_next_is_whole(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first = FakeRuntime(cwd=tmp_path, directory=tmp_path / "kept")
    caller = await Caller.create(first)
    await caller.turn("one")
    await first.close()
    (file,) = (tmp_path / "kept").glob("*.jsonl")
    file.write_bytes(file.read_bytes()[:-20])
    second = FakeRuntime(cwd=tmp_path, directory=tmp_path / "kept")
    caller = await Caller.resume(second, caller.session_id)
    await caller.turn("two")
    request = ari.GetSessionHistoryRequest(caller.session_id)
    history = (await second.get_session_history(request)).messages
    await second.close()
    assert [one.content for one in history] == ["one", "two", "You said: two"]
    assert "message 2 of a session cannot be read, and is left out" in caplog.text


async def test_checkpointer_of_another_loop_is_refused_with_what_to_do(tmp_path: Path) -> None:
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
    from langgraph.graph import START, MessagesState, StateGraph

    from arp.runtime.frameworks.langgraph import LangGraphRuntime

    builder = StateGraph(MessagesState)
    builder.add_node("answer", lambda state: {"messages": []})
    builder.add_edge(START, "answer")

    async def made() -> LangGraphRuntime:
        async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "own.db")) as saver:
            runtime = LangGraphRuntime(builder.compile(checkpointer=saver), cwd=tmp_path)
            await runtime.close()
            return runtime

    runtime = await asyncio.to_thread(asyncio.run, made())
    with pytest.raises(FailedPrecondition, match="AsyncSqliteSaver belongs to another event loop"):
        await runtime.open()
