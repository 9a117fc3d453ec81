"""Whose a question of an MCP server is, and how calls of real servers end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from arp.protocol.json_value import JsonObject
from arp.runtime.contract.types import McpServer
from arp.runtime.mcp.tools import LinkLimits, McpTools
from arp.turn.tool import ToolFailed, ToolOutput
from tests.runtime.mcp_rig import (
    SHOP,
    WAIT_S,
    Listening,
    ShopAtAddress,
    opened,
    servers_running,
    shop_at_address,
)

BERN: JsonObject = {"city": "Bern", "express": False}
OSLO: JsonObject = {"city": "Oslo", "express": False}


@pytest.fixture(scope="module")
def shop_address() -> Iterator[str]:
    """Run one shop for all tests that only call it: each process imports the SDK for a second."""
    with shop_at_address() as url:
        yield url


@pytest.fixture(params=[pytest.param("stdio", marks=pytest.mark.slow), "http"])
def shop(request: pytest.FixtureRequest) -> str:
    """Return the command or the address of the shop."""
    place: str = SHOP if request.param == "stdio" else request.getfixturevalue("shop_address")
    return place


class Person(Listening):
    """A caller who answers when the test says so."""

    def __init__(self, answer: JsonObject | None, session_id: str) -> None:
        super().__init__(answer, session_id, f"{session_id}.1")
        self.is_asked, self.may_answer = asyncio.Event(), asyncio.Event()
        self.withdrawn = asyncio.Event()

    async def ask(self, message: str, schema: JsonObject) -> JsonObject | None:
        self.asked.append(message)
        self.is_asked.set()
        try:
            await self.may_answer.wait()
        except asyncio.CancelledError:
            self.withdrawn.set()
            raise
        return self.answer


async def begun(
    tools: McpTools, name: str, args: JsonObject, caller: Listening
) -> asyncio.Task[str]:
    """Begin a call in a task of its own, and let it reach the server."""

    async def run() -> str:
        return (await tools.run(name, args, caller)).text

    task = asyncio.get_running_loop().create_task(run())
    await tools.run("stock", {}, Listening(session_id=caller.session_id))
    return task


async def test_a_question_reaches_the_session_whose_call_asks(shop: str, tmp_path: Path) -> None:
    ask, end = tmp_path / "ask", tmp_path / "end"
    ann, bob = Person(BERN, "ann"), Person(OSLO, "bob")
    async with asyncio.timeout(WAIT_S), opened(shop) as tools:
        order = await begun(tools, "order_later", {"item": "tea", "gate": str(ask)}, ann)
        held = await begun(tools, "hold", {"gate": str(end)}, bob)
        ask.touch()
        await ann.is_asked.wait()
        ann.may_answer.set()
        assert await order == "tea goes to Bern"
        end.touch()
        assert await held == "held"
    assert (ann.asked, bob.asked) == (["Where shall tea go?"], [])


async def test_both_sessions_ask_at_once_and_each_gets_its_own_answer(shop: str) -> None:
    ann, bob = Person(BERN, "ann"), Person(OSLO, "bob")
    async with asyncio.timeout(WAIT_S), opened(shop) as tools:
        tea = await begun(tools, "order", {"item": "tea"}, ann)
        jam = await begun(tools, "order", {"item": "jam"}, bob)
        await ann.is_asked.wait()
        await bob.is_asked.wait()
        bob.may_answer.set()
        assert await jam == "jam goes to Oslo"
        ann.may_answer.set()
        assert await tea == "tea goes to Bern"
    assert (ann.asked, bob.asked) == (["Where shall tea go?"], ["Where shall jam go?"])


async def test_at_an_address_a_question_of_one_session_is_that_of_its_call(
    shop_address: str, tmp_path: Path
) -> None:
    ask, end = tmp_path / "ask", tmp_path / "end"
    first, second = Person(BERN, "ann"), Person(OSLO, "ann")
    async with asyncio.timeout(WAIT_S), opened(shop_address) as tools:
        order = await begun(tools, "order_later", {"item": "tea", "gate": str(ask)}, first)
        held = await begun(tools, "hold", {"gate": str(end)}, second)
        ask.touch()
        await first.is_asked.wait()
        first.may_answer.set()
        assert await order == "tea goes to Bern"
        end.touch()
        await held
    assert second.asked == []


async def test_over_pipes_a_question_outlives_a_call_that_it_may_not_be_of(tmp_path: Path) -> None:
    """The question names no call: that another of the session ends withdraws nothing."""
    ask, end = tmp_path / "ask", tmp_path / "end"
    first, second = Person(BERN, "ann"), Person(OSLO, "ann")
    async with asyncio.timeout(WAIT_S), opened(SHOP) as tools:
        order = await begun(tools, "order_later", {"item": "tea", "gate": str(ask)}, first)
        held = await begun(tools, "hold", {"gate": str(end)}, second)
        ask.touch()
        await second.is_asked.wait()
        end.touch()
        await held
        second.may_answer.set()
        assert await order == "tea goes to Oslo"


async def test_a_shared_server_gets_cancel_for_what_it_asks(shop: str) -> None:
    if shop == SHOP:
        command, *args = SHOP.split()
        server = McpServer("shop", command, tuple(args), shared=True)
    else:
        server = McpServer("shop", url=shop, shared=True)
    ann, bob = Listening(BERN, "ann"), Listening(OSLO, "bob")
    async with asyncio.timeout(WAIT_S), opened(server) as tools:
        for caller in (ann, bob):
            assert (await tools.run("order", {"item": "tea"}, caller)).text == "not ordered: cancel"
        assert len(servers_running()) == (shop == SHOP)
    assert ann.asked == bob.asked == []


async def test_questions_of_a_turn_are_bounded(shop: str) -> None:
    caller, later = Listening(BERN), Listening(BERN, turn_id="a.2")
    async with asyncio.timeout(WAIT_S), opened(shop, limits=LinkLimits(questions=3)) as tools:
        nagged = await tools.run("nag", {"times": 4}, caller)
        again = await tools.run("nag", {"times": 1}, caller)
        in_next_turn = await tools.run("nag", {"times": 1}, later)
    assert nagged.text == "3 accepted, 1 cancelled"
    assert again.text == "0 accepted, 1 cancelled"
    assert in_next_turn.text == "1 accepted, 0 cancelled"
    assert (len(caller.asked), len(later.asked)) == (3, 1)


async def test_progress_is_told_now_and_then_and_the_newest_at_the_end(shop: str) -> None:
    caller = Listening()
    async with asyncio.timeout(WAIT_S), opened(shop) as tools:
        loop = asyncio.get_running_loop()
        began = loop.time()
        await tools.run("pack", {"items": 2_000}, caller)
        most = (loop.time() - began) / 0.1 + 3
    assert caller.heard[0] == ("item 1", 1, 2_000)
    assert caller.heard[-1] == ("item 2000", 2_000, 2_000)
    assert len(caller.heard) <= most
    numbers = [done for _, done, _ in caller.heard]
    assert numbers == sorted(set(numbers))


async def test_a_call_that_is_cancelled_withdraws_its_question(shop: str) -> None:
    ann = Person(BERN, "ann")
    async with asyncio.timeout(WAIT_S), opened(shop) as tools:
        order = await begun(tools, "order", {"item": "tea"}, ann)
        await ann.is_asked.wait()
        order.cancel()
        with pytest.raises(asyncio.CancelledError):
            await order
        await ann.withdrawn.wait()
        answer = await tools.run("order", {"item": "jam"}, Listening(OSLO, "ann"))
        assert answer.text == "jam goes to Oslo"


async def test_a_server_that_dies_ends_its_call_and_withdraws_its_question() -> None:
    ann = Person(BERN, "ann")
    async with asyncio.timeout(WAIT_S), opened(SHOP) as tools:
        order = await begun(tools, "order", {"item": "tea"}, ann)
        await ann.is_asked.wait()
        for pid in servers_running():
            psutil.Process(pid).kill()
        with pytest.raises(ToolFailed, match="Connection closed"):
            await order
        await ann.withdrawn.wait()
        answer = await tools.run("order", {"item": "jam"}, Listening(OSLO, "ann"))
        assert answer.text == "jam goes to Oslo"


async def test_closing_ends_calls_and_withdraws_questions(shop: str) -> None:
    ann = Person(BERN, "ann")
    async with asyncio.timeout(WAIT_S), opened(shop) as tools:
        order = await begun(tools, "order", {"item": "tea"}, ann)
        await ann.is_asked.wait()
    with pytest.raises(ToolFailed):
        await order
    assert ann.withdrawn.is_set()


async def test_a_server_at_an_address_that_restarts_is_connected_again() -> None:
    shop = ShopAtAddress()
    try:
        async with asyncio.timeout(WAIT_S), opened(shop.url) as tools:
            await tools.run("stock", {}, Listening())
            await asyncio.to_thread(shop.restart)
            again = await until_it_works(lambda: tools.run("pack", {"items": 1}, Listening()))
            assert again.text == "packed 1"
            order = await tools.run("order", {"item": "tea"}, Listening(BERN))
            assert order.text == "tea goes to Bern"
    finally:
        shop.close()


async def until_it_works(call: Callable[[], Awaitable[ToolOutput]]) -> ToolOutput:
    """Repeat a call that fails; at most once with a connection that was cut."""
    with suppress(ToolFailed):
        return await call()
    return await call()


async def test_a_connection_that_nobody_uses_is_closed_and_opened_by_the_next_call() -> None:
    async with asyncio.timeout(WAIT_S), opened(SHOP, limits=LinkLimits(idle_s=0.2)) as tools:
        await tools.run("stock", {}, Listening())
        (before,) = servers_running()
        await asyncio.to_thread(psutil.Process(before).wait)
        assert [tool.name for tool in tools.tools()][:1] == ["stock"]
        await tools.run("stock", {}, Listening())


async def test_connections_are_bounded_and_one_that_is_unused_makes_room(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    async with asyncio.timeout(WAIT_S), opened(SHOP, limits=LinkLimits(connections=2)) as tools:
        held = await begun(tools, "hold", {"gate": str(gate)}, Listening(session_id="ann"))
        await tools.run("stock", {}, Listening(session_id="bob"))
        await tools.run("stock", {}, Listening(session_id="cid"))
        also = await begun(tools, "hold", {"gate": str(gate)}, Listening(session_id="cid"))
        with pytest.raises(ToolFailed, match="in use by 2 sessions, which is the limit"):
            await tools.run("stock", {}, Listening(session_id="bob"))
        gate.touch()
        assert [await held, await also] == ["held", "held"]
    assert servers_running() == []


def test_servers_can_be_opened_again_in_another_event_loop(shop: str) -> None:
    tools = McpTools([shop])

    async def life() -> str:
        async with asyncio.timeout(WAIT_S):
            await tools.open()
            await tools.open()
            try:
                return (await tools.run("order", {"item": "tea"}, Listening(BERN))).text
            finally:
                await tools.aclose()

    assert [asyncio.run(life()) for _ in range(3)] == ["tea goes to Bern"] * 3
    assert tools.tools() == []


async def test_standard_error_is_logged_without_secrets_and_control_characters(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    token = "ghp_" + "Ab3" * 12
    text = f"\x1b[31mred\x1b[0m \x1b]0;title\x07 token={token} own-Secret-Value-1\x9b2J"
    command, *args = SHOP.split()
    server = McpServer("shop", command, tuple(args), {"API_KEY": "own-Secret-Value-1"})
    with caplog.at_level(logging.INFO, "arp.runtime.mcp.connection"):
        async with asyncio.timeout(WAIT_S), opened(server) as tools:
            assert (await tools.run("shout", {"text": text}, Listening())).text == "shouted"
    (line,) = [one.getMessage() for one in caplog.records if "red" in one.getMessage()]
    assert line == "MCP server shop: red  token=[redacted] [redacted]"
    assert "\x1b" not in capfd.readouterr().err


async def test_why_a_server_does_not_start_has_the_line_of_the_cause_without_secrets() -> None:
    code = (
        "import sys\n"
        "error = 'Error: no way in with token=ghp_' + 'Ab3' * 12 + chr(27) + '[2J'\n"
        "sys.exit(error + '\\n    at main (server.js:1)\\nnpm notice: see the log')"
    )
    async with asyncio.timeout(WAIT_S), opened(McpServer("bad", "python3", ("-c", code))) as tools:
        with pytest.raises(ToolFailed, match=r"no way in with token=(ghp_)?\[redacted\]") as failed:
            await tools.run("any", {}, Listening())
    assert "\x1b" not in str(failed.value)
    assert "npm notice" not in str(failed.value)
