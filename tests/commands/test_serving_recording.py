"""`arp replay --serve`: a recording on every screen that connects."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner

from arp.cli import main
from arp.client.client import connect
from arp.server.serve import bind
from tests.commands.ledgers import ledger
from tests.server.rpc import RpcFailed, rpc
from tests.support.waiting import becomes

START_S = 15.0
NO_INPUT = "this is a recording: it takes no input"


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    file, target = ledger(tmp_path / "l.db", "a b"), tmp_path / "s.zip"
    words = ["evidence", "export", "a b", "--ledger", f"sqlite:{file}", "-o", str(target)]
    assert CliRunner().invoke(main, words).exit_code == 0
    return target


@asynccontextmanager
async def played(pack: Path, *options: str) -> AsyncIterator[tuple[str, str]]:
    """Serves a recording as a process; gives the two lines that it says."""
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "arp.cli", "replay", str(pack), "--serve", *options),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "NO_COLOR": "1"},
    )
    assert child.stdout is not None
    try:
        async with asyncio.timeout(START_S):
            page = (await child.stdout.readline()).decode().strip()
            command = (await child.stdout.readline()).decode().strip()
        yield page, command
        child.terminate()
        async with asyncio.timeout(START_S):
            assert await child.wait() == 0
    finally:
        if child.returncode is None:
            child.kill()
        await child.wait()


async def test_a_renderer_that_connects_sees_it_happen_and_can_change_nothing(pack: Path) -> None:
    async with played(pack, "--speed", "0") as (page, command):
        url, _, session = page.partition("/?session=")
        assert session == "a%20b"
        assert command == f"arp connect {url} --session 'a b'"
        async with connect(url, session_id="a b") as client:
            turns = client.screen.turns
            await becomes(lambda: "t1" in turns and turns["t1"].final)
            assert "it failed" in client.screen.text("t1")
            assert [(tool.tool, tool.ok) for tool in turns["t1"].tools] == [("read", False)]
        async with connect(url, session_id="a b") as late, httpx.AsyncClient(base_url=url) as http:
            await becomes(lambda: "t1" in late.screen.turns)
            said = {"input_type": "text", "data": {"text": "more"}, "session_id": "a b"}
            refused = await http.post("/_arp/v1/input", json={"v": 1, "type": "input", **said})
            (why,) = refused.json()
            assert (refused.status_code, why["payload"]["code"]) == (403, 15)
            assert "this is a recording" in why["payload"]["error"]
            offered = (await http.get("/_api/arp")).json()["capabilities"]["features"]
            assert ("input" in offered, "resume" in offered) == (False, True)
            chat = "/_api/chats/a%20b"
            for changed in (await http.patch(chat, json={"title": "x"}), await http.delete(chat)):
                assert (changed.status_code, changed.json()["payload"]["error"]) == (403, NO_INPUT)
            async with rpc(int(url.rpartition(":")[2])) as control:
                assert (await control.thread("a b"))["sequence"] > 0
                with pytest.raises(RpcFailed, match="this is a recording") as denied:
                    await control.say("a b", "more")
                assert denied.value.code == 15
            assert list(late.screen.turns) == ["t1"]
            assert (await http.get("/")).status_code == 200


def test_a_port_that_is_taken_and_a_pack_with_nothing_in_it_are_one_sentence(pack: Path) -> None:
    with bind("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        failed = CliRunner().invoke(main, ["replay", str(pack), "--serve", "--port", str(port)])
    assert failed.exit_code == 1
    assert f"arp: Cannot listen on 127.0.0.1:{port}: " in failed.stderr
