"""Answers of MCP servers that cannot be read end their call, over every transport."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator

import pytest

from arp.turn.tool import ToolFailed
from tests.runtime import mcp_odd
from tests.runtime.mcp_rig import WAIT_S, Listening, opened

OK = '{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"fine"}]}}'


def result(**fields: object) -> str:
    return f'{{"jsonrpc":"2.0","id":$ID,"result":{json.dumps(fields)}}}'


@pytest.fixture(params=["stdio", "application/json", "text/event-stream"])
def odd(request: pytest.FixtureRequest) -> Iterator[str]:
    """Where the odd server is."""
    if request.param == "stdio":
        yield f"{sys.executable} {mcp_odd.__file__}"
        return
    with mcp_odd.odd_at_address(request.param) as url:
        yield url


UNREADABLE = {
    "a text as result": '{"jsonrpc":"2.0","id":$ID,"result":"text"}',
    "no result": '{"jsonrpc":"2.0","id":$ID}',
    "cut off": '{"jsonrpc":"2.0","id":$ID,"result":{"content":[',
    "a text as error": '{"jsonrpc":"2.0","id":$ID,"error":"no"}',
    "no id": '{"jsonrpc":"2.0","id":null,"result":{}}',
    "an error for no id": '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}',
    "no version": '{"id":$ID,"result":{"content":[]}}',
    "a list": '[{"jsonrpc":"2.0","id":$ID,"result":{"content":[]}}]',
    "no content": result(contents=[]),
    "content that is no list": result(content="text"),
    "a text without text": result(content=[{"type": "text"}]),
    "a part of an unknown type": result(content=[{"type": "hologram", "data": "x"}]),
    "an image that is no base64": result(
        content=[{"type": "image", "data": "§§§", "mimeType": "image/png"}]
    ),
}


@pytest.mark.parametrize("text", UNREADABLE.values(), ids=UNREADABLE.keys())
async def test_an_answer_that_cannot_be_read_fails_its_call(odd: str, text: str) -> None:
    async with asyncio.timeout(WAIT_S), opened(odd) as tools:
        with pytest.raises(ToolFailed, match=r"^raw: "):
            await tools.run("raw", {"text": text}, Listening())
        after = await tools.run("raw", {"text": OK}, Listening())
    assert after.text == "fine"


async def test_a_result_that_does_not_fit_the_schema_of_its_tool_fails_its_call(odd: str) -> None:
    async with asyncio.timeout(WAIT_S), opened(odd) as tools:
        for given in (result(content=[], structuredContent={"n": "x"}), result(content=[])):
            with pytest.raises(ToolFailed, match="strict: the answer of the MCP server server1"):
                await tools.run("strict", {"text": given}, Listening())


async def test_lines_for_people_in_the_output_fail_nothing() -> None:
    noise = 'listening, {"id": $ID}\n\n[info] "id": $ID\n\u00e4\u00ff\n' + OK
    async with asyncio.timeout(WAIT_S), opened(f"{sys.executable} {mcp_odd.__file__}") as tools:
        assert (await tools.run("raw", {"text": noise}, Listening())).text == "fine"


async def test_an_answer_spread_over_lines_fails_its_call() -> None:
    text = '{\n  "jsonrpc": "2.0",\n  "id": $ID,\n  "result": {}\n}'
    async with asyncio.timeout(WAIT_S), opened(f"{sys.executable} {mcp_odd.__file__}") as tools:
        with pytest.raises(ToolFailed, match="the answer cannot be read"):
            await tools.run("raw", {"text": text}, Listening())


async def test_an_unreadable_answer_leaves_other_calls_alone() -> None:
    async with asyncio.timeout(WAIT_S), opened(f"{sys.executable} {mcp_odd.__file__}") as tools:
        waits = asyncio.ensure_future(tools.run("raw", {"text": "nothing yet"}, Listening()))
        await tools.run("raw", {"text": OK}, Listening())
        with pytest.raises(ToolFailed):
            await tools.run("raw", {"text": UNREADABLE["no result"]}, Listening())
        assert not waits.done()
        waits.cancel()
        await asyncio.wait([waits])


async def test_what_is_neither_text_nor_image_is_told_in_words(odd: str) -> None:
    parts = [
        {"type": "text", "text": "first"},
        {"type": "resource_link", "name": "plan", "uri": "file:///plan.txt"},
        {"type": "resource", "resource": {"uri": "file:///a.txt", "text": "the plan"}},
        {"type": "resource", "resource": {"uri": "file:///a.bin", "blob": "AAAA"}},
        {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
    ]
    async with asyncio.timeout(WAIT_S), opened(odd) as tools:
        told = await tools.run("raw", {"text": result(content=parts)}, Listening())
    assert told.text.splitlines() == [
        "first",
        "plan: file:///plan.txt",
        "the plan",
        "(a.bin: application/octet-stream, 3 bytes; the user can load it)",
        "(audio.wav: audio/wav, 3 bytes; the user can load it)",
    ]
