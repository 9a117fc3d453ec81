"""Event streams are read as their specification says, and carry a session both ways."""

from __future__ import annotations

import asyncio
import json
from base64 import urlsafe_b64decode
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from arp.client.address import parse_address
from arp.client.errors import LinkLost, ServerRefused
from arp.client.links.sse_link import (
    SseLink,
    open_sse,
    stream_headers,
    stream_url,
)
from arp.client.options import LinkSettings
from arp.protocol.codec import encode_json
from arp.protocol.errors import PermissionDenied, Unauthenticated
from arp.protocol.messages import RendererCapabilities, RendererHello, Resume
from tests.client import agent_messages as say
from tests.client.loopback import Answer, Request, http_server

HELLO = encode_json(RendererHello(session_id="s 1", resume=Resume("e1", 7)))

INPUT = b'{"v":1,"type":"input","input_type":"text","data":{"text":"hi"},"id":"i1"}'


async def opened(url: str, access: LinkSettings | None = None) -> SseLink:
    return await open_sse(parse_address(url), access or LinkSettings(), HELLO)


async def silent(request: Request, answer: Answer) -> None:
    """An event stream on which nothing comes, and 200 without a word for each input."""
    if request.method == "GET":
        await answer.stream()
        await asyncio.Event().wait()
    await answer.send(200)


def test_hello_travels_in_the_query() -> None:
    hello = RendererHello(
        session_id="s&1", capabilities=RendererCapabilities(["text"], ["frame-ack", "batch"])
    )
    parts = urlsplit(stream_url("http://h/x/events?tenant=7", hello))
    query = parse_qs(parts.query)
    plain = query.pop("hello")[0]
    assert json.loads(urlsafe_b64decode(plain + "=" * (-len(plain) % 4))) == {
        "v": 1,
        "type": "hello",
        "session_id": "s&1",
        "capabilities": {"components": ["text"], "features": ["batch"], "limits": {}},
    }
    assert query == {"tenant": ["7"], "session_id": ["s&1"]}


def test_first_stream_of_a_session_names_none() -> None:
    url = stream_url("http://h/events", RendererHello())
    assert url.startswith("http://h/events?hello=")
    assert "session_id" not in url
    assert "Last-Event-ID" not in stream_headers(RendererHello())


async def test_request_says_where_we_were_and_who_we_are() -> None:
    seen: list[Request] = []

    async def serve(request: Request, answer: Answer) -> None:
        seen.append(request)
        await silent(request, answer)

    async with http_server(serve) as url:
        link = await opened(url + "/mounted", LinkSettings(token="tok"))
        await link.send(INPUT)
        await link.aclose()
    stream, posted = seen
    assert (stream.method, stream.path) == ("GET", "/mounted/_arp/v1/events")
    assert stream.headers["Accept"] == "text/event-stream"
    assert stream.headers["Last-Event-ID"] == "e1-7"
    assert (posted.method, posted.path) == ("POST", "/mounted/_arp/v1/input")
    assert posted.headers["Content-Type"] == "application/json"
    assert posted.body == INPUT
    for request in seen:
        assert request.headers["Authorization"] == "Bearer tok"
        assert "tok" not in request.target


async def test_each_event_is_a_frame_however_the_bytes_come() -> None:
    async def serve(request: Request, answer: Answer) -> None:
        await answer.stream()
        await answer.event(say.HELLO)
        await answer.raw(b": awake\n\n")
        for byte in b'id: e1-3\r\ndata: {"a":\r\ndata: "\xc3\xa4"}\r\n\r\n':
            await answer.raw(bytes([byte]))
        await answer.raw(b'data: 1\n\ndata: [2,3]\n\ndata: "never finished')

    async with http_server(serve) as url:
        link = await opened(url)
        async with asyncio.timeout(30):
            assert json.loads(await link.receive()) == say.HELLO
            assert await link.receive() == '{"a":\n"ä"}'.encode()
            assert await link.receive() == b"1"
            assert await link.receive() == b"[2,3]"
            with pytest.raises(LinkLost, match="ended the event stream") as lost:
                await link.receive()
        await link.aclose()
    assert lost.value.error is None


async def test_answer_to_an_input_is_given_back() -> None:
    async def serve(request: Request, answer: Answer) -> None:
        if request.method == "POST":
            await answer.send(200, json.dumps([say.ack("i1")]).encode())
        await silent(request, answer)

    async with http_server(serve) as url:
        link = await opened(url)
        assert json.loads(await link.send(INPUT) or b"") == [say.ack("i1")]
        await link.aclose()


async def test_refused_input_is_answered_and_the_stream_lives_on() -> None:
    async def serve(request: Request, answer: Answer) -> None:
        if request.method == "POST":
            await answer.send(400, json.dumps(say.error("no text", 11)).encode())
        await silent(request, answer)

    async with http_server(serve) as url:
        link = await opened(url)
        (told,) = json.loads(await link.send(INPUT) or b"")
        await link.aclose()
    assert told["payload"] == {"error": "no text", "code": 11, "id": "i1"}


async def test_input_that_nobody_took_loses_the_link_so_that_it_is_sent_again() -> None:
    async def serve(request: Request, answer: Answer) -> None:
        if request.method == "POST":
            answer.cut()
        await silent(request, answer)

    async with http_server(serve) as url:
        link = await opened(url)
        with pytest.raises(LinkLost, match="/_arp/v1/input") as lost:
            await link.send(INPUT)
        await link.aclose()
    assert lost.value.error is None


@pytest.mark.parametrize(
    ("status", "error", "unavailable"),
    [
        (401, Unauthenticated, False),
        (403, PermissionDenied, True),
        (404, ServerRefused, True),
        (503, type(None), True),
    ],
)
async def test_refused_stream_says_why(status: int, error: type, unavailable: bool) -> None:
    async def serve(request: Request, answer: Answer) -> None:
        await answer.send(status, b"not you\x1b")

    async with http_server(serve) as url:
        with pytest.raises(
            LinkLost, match=f"HTTP {status} from {url}/_arp/v1/events: not you"
        ) as lost:
            await opened(url)
    assert type(lost.value.error) is error
    assert lost.value.unavailable is unavailable


async def test_page_that_is_no_event_stream_is_refused() -> None:
    async def serve(request: Request, answer: Answer) -> None:
        await answer.send(200, b"<html>" + b"x" * 200_000, "text/html; charset=utf-8")

    async with http_server(serve) as url:
        with pytest.raises(LinkLost, match="is no event stream but text/html") as lost:
            await opened(url)
    assert isinstance(lost.value.error, ServerRefused)


async def test_server_that_is_down_is_worth_coming_back_for(unused_tcp_port: int) -> None:
    with pytest.raises(LinkLost) as lost:
        await opened(f"http://127.0.0.1:{unused_tcp_port}")
    assert lost.value.error is None


@pytest.mark.parametrize(
    ("data", "reason", "ends"),
    [
        (b'{"code":1000,"reason":"deleted"}', "closed with 1000: deleted", True),
        (b'{"code":1012,"reason":"restarting"}', "closed with 1012: restarting", False),
        (b"bye", "the server ended the event stream", False),
        (b'{"code":"x"}', "the server ended the event stream", False),
    ],
)
async def test_stream_says_why_it_ends_behind_what_came_before(
    data: bytes, reason: str, ends: bool
) -> None:
    """Source: protocol.md 6."""

    async def serve(request: Request, answer: Answer) -> None:
        await answer.stream()
        await answer.raw(b"data: 1\n\nevent: close\ndata: " + data + b"\n\n")

    async with http_server(serve) as url:
        link = await opened(url)
        async with asyncio.timeout(30):
            assert await link.receive() == b"1"
            with pytest.raises(LinkLost) as lost:
                await link.receive()
        await link.aclose()
    assert lost.value.reason == reason
    assert (lost.value.error is not None) is ends


async def test_stream_that_breaks_off_is_worth_coming_back_for() -> None:
    async def serve(request: Request, answer: Answer) -> None:
        await answer.stream()
        answer.cut()

    async with http_server(serve) as url:
        link = await opened(url)
        with pytest.raises(LinkLost) as lost:
            await link.receive()
        await link.aclose()
    assert lost.value.error is None


async def test_stream_without_even_a_comment_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    import httpx

    monkeypatch.setattr("arp.client.links.sse_link._TIMEOUT", httpx.Timeout(5, read=0.05))
    async with http_server(silent) as url:
        link = await opened(url)
        with pytest.raises(LinkLost, match="no data arrived in time") as lost:
            await link.receive()
        await link.aclose()
    assert lost.value.error is None


async def test_endless_event_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def serve(request: Request, answer: Answer) -> None:
        await answer.stream()
        while True:
            await answer.raw(b"x" * 10_000)

    monkeypatch.setattr("arp.client.links.sse_link.MAX_FRAME_BYTES", 100_000)
    async with http_server(serve) as url:
        link = await opened(url)
        with pytest.raises(LinkLost, match="more than 100000 bytes") as lost:
            await link.receive()
        await link.aclose()
    assert isinstance(lost.value.error, ServerRefused)


async def test_cancelled_opening_leaves_nothing_open() -> None:
    asked = asyncio.Event()

    async def serve(request: Request, answer: Answer) -> None:
        asked.set()
        await asyncio.Event().wait()

    async with http_server(serve) as url:
        opening: asyncio.Task[Any] = asyncio.ensure_future(opened(url))
        await asyncio.wait_for(asked.wait(), 5)
        opening.cancel()
        await asyncio.wait([opening])
    assert opening.cancelled()
