"""Tools of real MCP servers: over pipes and HTTP, with progress, questions, images and failures."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from arp import App, Turn
from arp.client.client import ArpClient, connect
from arp.protocol.json_value import JsonObject
from arp.runtime.contract.types import McpServer
from arp.turn.tool import ToolFailed
from tests.runtime.mcp_rig import (
    SHOP,
    SUMS,
    WAIT_S,
    Listening,
    listening_shop,
    opened,
    servers_running,
    shop_over,
)
from tests.support.serving import serving


async def test_progress_a_question_and_the_result_of_a_call() -> None:
    async with opened(SHOP) as tools:
        caller = Listening({"city": "Bern", "express": True})
        packed = await tools.run("pack", {"items": 2}, caller)
        ordered = await tools.run("order", {"item": "tea"}, caller)
        declined = await tools.run("order", {"item": "tea"}, Listening(None))
    assert caller.heard == [("item 1", 1, 2), ("item 2", 2, 2)]
    assert packed.value == "packed 2"
    assert caller.asked == ["Where shall tea go?"]
    assert ordered.text == "tea goes fast to Bern"
    assert declined.text == "not ordered: decline"


async def test_a_server_that_is_missing_leaves_the_others_and_says_why() -> None:
    async with opened(SUMS, "no-such-program --x", "http://127.0.0.1:9/mcp") as tools:
        assert [tool.name for tool in tools.tools()] == ["add"]
        result = await tools.run("add", {"a": 2, "b": 3}, Listening())
        assert result.value == "5"
        with pytest.raises(ToolFailed, match=r"no tool 'other'.*server2 cannot be reached"):
            await tools.run("other", {}, Listening())


async def test_two_tools_of_one_name_have_their_servers_name() -> None:
    first, second = (McpServer(name, sys.executable, (SUMS.split()[1],)) for name in ("a", "b"))
    async with opened(first, second) as tools:
        assert [tool.name for tool in tools.tools()] == ["a_add", "b_add"]
        assert (await tools.run("b_add", {"a": 1, "b": 1}, Listening())).value == "2"


async def test_no_process_is_left() -> None:
    async with opened(SHOP) as tools:
        assert len(servers_running()) == 1
    assert servers_running() == []
    with pytest.raises(ToolFailed, match="no tool 'stock'"):
        await tools.run("stock", {}, Listening())


async def test_a_server_that_dies_is_started_again() -> None:
    async with opened(SHOP) as tools:
        (before,) = servers_running()
        psutil.Process(before).kill()
        with pytest.raises(ToolFailed, match="Connection closed"):
            await tools.run("stock", {}, Listening())
        async with asyncio.timeout(WAIT_S):
            while True:
                try:
                    result = await tools.run("stock", {}, Listening())
                except ToolFailed:
                    await asyncio.sleep(0.1)
                else:
                    break
        assert result.value == [{"item": "tea", "count": 3}, {"item": "jam", "count": 0}]
        assert servers_running() != [before]
    assert servers_running() == []


async def test_a_server_at_an_address_gets_the_headers_that_are_set() -> None:
    with listening_shop() as url:
        allowed = McpServer("shop", url=url, headers={"x-key": "of the shop"})
        async with opened(allowed) as tools:
            caller = Listening({"city": "Bern", "express": False})
            packed = await tools.run("pack", {"items": 2}, caller)
            ordered = await tools.run("order", {"item": "tea"}, caller)
        async with opened(McpServer("closed", url=url)) as tools:
            assert tools.tools() == []
    assert packed.text == "packed 2"
    assert caller.heard == [("item 1", 1, 2), ("item 2", 2, 2)]
    assert ordered.text == "tea goes to Bern"


async def shop(turn: Turn) -> None:
    """Call the tool that the text names."""
    name, _, value = turn.text.partition(" ")
    given: dict[str, JsonObject] = {"order": {"item": value}, "pack": {"items": 2}}
    args = given.get(name, {})
    await turn.say(str(await turn.use(name, args)))


async def until(client: ArpClient, found: Any) -> Any:
    """Return what `found` returns as soon as it is something."""
    events = client.events()
    async with asyncio.timeout(WAIT_S):
        while not (value := found()):
            await anext(events)
    return value


@pytest.fixture
def app() -> App:
    app = App(mcp=[SHOP])
    app.agent(shop)
    return app


async def test_rows_are_a_table_and_a_picture_is_an_image(app: App) -> None:
    with serving(app, ledger="memory:") as server:
        async with connect(server.http) as client:
            turn = await client.ask("stock")
            table = next(one for one in client.screen.output(turn.id) if one.type == "table")
            assert table.props["headers"] == ["item", "count"]
            assert table.props["rows"] == [["tea", 3], ["jam", 0]]
            turn = await client.ask("picture")
            image = next(one for one in client.screen.output(turn.id) if one.type == "image")
            assert image.props["alt"] == "From picture"


async def test_a_question_of_a_server_is_a_form_on_the_screen(app: App) -> None:
    with serving(app, ledger="memory:") as server:
        async with connect(server.http) as client:
            turn_id = await client.turn_of(await client.send_text("order tea"))

            form = await until(client, lambda: open_question(client, turn_id, "form"))
            assert [field["name"] for field in form.props["fields"]] == ["city", "express"]
            await client.send_form({"city": "Bern", "express": False}, source=form.id)
            turn = await client.turn_done(turn_id)
            assert turn.status == "completed"
            assert client.screen.text(turn_id).endswith("tea goes to Bern")


async def test_a_tool_that_fails_is_shown_as_failed(app: App) -> None:
    with serving(app, ledger="memory:") as server:
        async with connect(server.http) as client:
            turn = await client.ask("broken")
            assert turn.status == "failed"
            assert [(run.tool, run.ok) for run in turn.tools] == [("broken", False)]


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_a_question_is_on_the_screen_of_its_user_alone(
    transport: str, tmp_path: Path
) -> None:
    ask, end = tmp_path / "ask", tmp_path / "end"

    async def shopping(turn: Turn) -> None:
        """Order when the test wants it, or keep the server busy."""
        if turn.text == "order":
            await turn.say(str(await turn.use("order_later", {"item": "tea", "gate": str(ask)})))
        else:
            await turn.say(str(await turn.use("hold", {"gate": str(end)})))

    with shop_over(transport) as place:
        app = App(mcp=[place])
        app.agent(shopping)
        with serving(app, ledger="memory:") as server:
            async with connect(server.http) as ann, connect(server.http) as bob:
                ordering = await ann.turn_of(await ann.send_text("order"))
                holding = await bob.turn_of(await bob.send_text("hold"))
                await until(bob, lambda: bob.screen.turns[holding].tools)
                ask.touch()
                form = await until(ann, lambda: open_question(ann, ordering, "form"))
                assert open_question(bob, holding, "form") is None
                await ann.send_form({"city": "Bern", "express": False}, source=form.id)
                assert (await ann.turn_done(ordering)).status == "completed"
                end.touch()
                assert (await bob.turn_done(holding)).status == "completed"
                assert ann.screen.text(ordering).endswith("tea goes to Bern")
                assert [one.type for one in bob.screen.output(holding)] == ["text"]


def open_question(client: ArpClient, turn_id: str, kind: str) -> Any:
    """Return the open question of a turn; `None` if there is none."""
    for one in client.screen.output(turn_id):
        if one.type == kind and one.props.get("state") == "open":
            return one
    return None
