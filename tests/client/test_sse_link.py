"""Event streams are read as their specification says, and carry a session both ways."""

from __future__ import annotations

import asyncio
import json
from base64 import urlsafe_b64decode
from itertools import pairwise
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arp.client.address import parse_address
from arp.client.errors import LinkLost, ServerRefused
from arp.client.options import LinkSettings
from arp.client.sse_link import (
    EventTooLong,
    SseEvent,
    SseLink,
    SseParser,
    open_sse,
    stream_headers,
    stream_url,
)
from arp.protocol.codec import encode_json
from arp.protocol.errors import PermissionDenied, Unauthenticated
from arp.protocol.messages import RendererCapabilities, RendererHello, Resume
from tests.client import agent_messages as say
from tests.client.loopback import Answer, Request, http_server


def parsed(*chunks: bytes) -> list[SseEvent]:
    parser = SseParser()
    return [event for chunk in chunks for event in parser.feed(chunk)]


def test_data_of_one_event_ends_at_the_blank_line() -> None:
    assert parsed(b"data: one\n\ndata: two\n") == [SseEvent("one")]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_lines_end_with_lf_crlf_or_cr(end: bytes) -> None:
    stream = b"id: e-1" + end + b"data: a" + end + b"data:  b" + end + end + b"data: c" + end + end
    assert parsed(stream) == [SseEvent("a\n b", id="e-1"), SseEvent("c", id="e-1")]


def test_crlf_split_between_two_chunks_is_one_line_end() -> None:
    assert parsed(b"data: a\r", b"\ndata: b\r", b"\n\r", b"\n") == [SseEvent("a\nb")]


def test_cr_inside_a_chunk_takes_no_lf_from_the_next() -> None:
    assert parsed(b"data: a\rdata", b"\n\n") == [SseEvent("a\n")]


def test_empty_chunk_between_cr_and_lf_changes_nothing() -> None:
    assert parsed(b"data: a\r", b"", b"\n\r", b"", b"\n") == [SseEvent("a")]


def test_cr_alone_at_the_end_of_a_chunk_ends_its_line_at_once() -> None:
    assert parsed(b"data: a\r\r") == [SseEvent("a")]


def test_byte_order_mark_at_the_start_is_skipped_and_elsewhere_is_text() -> None:
    assert parsed(b"\xef", b"\xbb", b"\xbfdata: a\n\n") == [SseEvent("a")]
    assert parsed(b"\xef\xbb\xbfdata: a\n\n\xef\xbb\xbfdata: b\n\n") == [SseEvent("a")]
    assert parsed(b"\xef\xbbdata: a\n\n") == []


def test_comments_and_unknown_fields_say_nothing() -> None:
    assert parsed(b": awake\n\nretry: 5\nfoo: bar\nfoo\n\ndata: a\n\n") == [SseEvent("a")]


def test_field_without_colon_has_an_empty_value() -> None:
    assert parsed(b"data\n\n", b"data\ndata\n\n") == [SseEvent(""), SseEvent("\n")]


def test_only_one_leading_space_belongs_to_the_syntax() -> None:
    assert parsed(b"data:a\n\ndata:  a: b\n\n") == [SseEvent("a"), SseEvent(" a: b")]


def test_event_name_holds_for_one_event_and_id_for_all_that_follow() -> None:
    assert parsed(b"event: x\nid: 7\ndata: a\n\ndata: b\n\nid\ndata: c\n\n") == [
        SseEvent("a", "x", "7"),
        SseEvent("b", "message", "7"),
        SseEvent("c", "message", ""),
    ]


def test_id_with_nul_is_ignored() -> None:
    assert parsed(b"id: 1\nid: 2\x00\ndata: a\n\n") == [SseEvent("a", id="1")]


def test_event_without_data_is_none_and_forgets_its_name() -> None:
    assert parsed(b"event: x\n\ndata: a\n\n") == [SseEvent("a")]


def test_bytes_that_are_no_utf_8_become_replacement_characters() -> None:
    assert parsed(b"data: a\xffb\n\n") == [SseEvent("a�b")]


def test_character_split_between_chunks_is_whole() -> None:
    assert parsed(b"data: \xe2\x82", b"\xac\n\n") == [SseEvent("€")]


def test_other_unicode_line_separators_are_text() -> None:
    assert parsed("data: a\u2028b\x0bc\x85d\n\n".encode()) == [SseEvent("a\u2028b\x0bc\x85d")]


def test_endless_line_is_refused() -> None:
    parser = SseParser(max_event_bytes=10)
    assert parser.feed(b"data: 1234") == []
    with pytest.raises(EventTooLong, match="more than 10 bytes"):
        parser.feed(b"5")


def test_endless_event_of_short_lines_is_refused() -> None:
    parser = SseParser(max_event_bytes=10)
    assert parser.feed(b"data\n" * 10) == []
    with pytest.raises(EventTooLong, match="more than 10 bytes"):
        parser.feed(b"data\n")


def test_many_short_events_are_not_counted_together() -> None:
    parser = SseParser(max_event_bytes=10)
    assert parser.feed(b"data: 123\n\n" * 20) == [SseEvent("123")] * 20


LINES = st.sampled_from(
    [
        b"data: a",
        b"data",
        b": x",
        b"id: e-9",
        b"event: n",
        b"",
        b"\xef\xbb\xbfdata: b",
        "data: €é".encode(),
    ]
)


@given(
    st.lists(st.tuples(LINES, st.sampled_from([b"\n", b"\r", b"\r\n"])), max_size=12),
    st.lists(st.integers(0, 120), max_size=12),
)
def test_any_split_of_the_bytes_gives_the_same_events(
    lines: list[tuple[bytes, bytes]], cuts: list[int]
) -> None:
    stream = b"".join(line + end for line, end in lines)
    places = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    pieces = [stream[a:b] for a, b in pairwise(places)]
    whole = parsed(stream)
    assert parsed(*pieces) == whole
    assert parsed(*(stream[at : at + 1] for at in range(len(stream)))) == whole


@given(st.binary(max_size=200))
def test_any_bytes_end_in_events(stream: bytes) -> None:
    for event in parsed(stream):
        assert isinstance(event.data, str)


@given(
    st.lists(st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]))),
    st.sampled_from(["\n", "\r", "\r\n"]),
)
def test_what_was_sent_as_data_arrives(data: list[str], end: str) -> None:
    stream = "".join(f"data: {line}{end}" for line in data) + end
    assert parsed(stream.encode()) == ([SseEvent("\n".join(data))] if data else [])


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

    monkeypatch.setattr("arp.client.sse_link._TIMEOUT", httpx.Timeout(5, read=0.05))
    async with http_server(silent) as url:
        link = await opened(url)
        with pytest.raises(LinkLost, match="nothing came in time") as lost:
            await link.receive()
        await link.aclose()
    assert lost.value.error is None


async def test_endless_event_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def serve(request: Request, answer: Answer) -> None:
        await answer.stream()
        while True:
            await answer.raw(b"x" * 10_000)

    async with http_server(serve) as url:
        link = await opened(url)
        link._parser._most = 100_000
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
