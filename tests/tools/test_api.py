"""Tools over HTTP: what is sent, how answers are read, what is tried again, what is refused."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from arp.tools.errors import (
    InvalidToolCall,
    InvalidToolMeta,
    ToolCallFailed,
    ToolRefused,
    ToolTimeout,
)
from arp.tools.registry.models import RuntimeInfo, RuntimeType, ToolMeta
from arp.tools.run.api import ApiRuntime
from tests.tools.http_server import Asked, HttpServer, answering, ok
from tests.tools.local_tools import settings_in


def api(server: HttpServer | str, **runtime: Any) -> ToolMeta:
    entry = server if isinstance(server, str) else server.url
    return ToolMeta("away", "Away", runtime=RuntimeInfo(RuntimeType.API, entry, **runtime))


class Waits:
    """Waiting between attempts that takes no time."""

    def __init__(self) -> None:
        self.waited: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.waited.append(seconds)


def runtime_in(folder: Path, waits: Waits | None = None, **settings: Any) -> ApiRuntime:
    settings.setdefault("api_private_hosts", ["127.0.0.1"])
    return ApiRuntime(settings_in(folder, **settings), (waits or Waits()).sleep)


async def called(folder: Path, tool: ToolMeta, params: dict[str, Any], on_chunk: Any = None) -> Any:
    runtime = runtime_in(folder)
    try:
        await runtime.start(tool)
        return await runtime.call(tool, params, on_chunk)
    finally:
        await runtime.aclose()


async def test_parameters_are_sent_as_json(tmp_path: Path) -> None:
    async with answering(lambda asked: ok({"got": json.loads(asked.body)})) as server:
        tool = api(server, endpoint_path="/run", env={"Authorization": "Bearer x"})
        assert await called(tmp_path, tool, {"n": 1, "t": "é"}) == {"got": {"n": 1, "t": "é"}}
        (asked,) = server.asked
        assert (asked.method, asked.target) == ("POST", "/run")
        assert asked.headers["authorization"] == "Bearer x"
        assert asked.headers["content-type"] == "application/json"


async def test_parameters_are_in_the_query_and_the_path(tmp_path: Path) -> None:
    async with answering(lambda asked: ok([1])) as server:
        tool = api(server, endpoint_path="/items/{id}/x", http_method="GET")
        params = {"id": "a/../b c", "q": "ä&x=1", "n": 2, "list": [1, True]}
        assert await called(tmp_path, tool, params) == [1]
        (asked,) = server.asked
        path, _, query = asked.target.partition("?")
        assert path == "/items/a%2F..%2Fb%20c/x"
        assert query == "q=%C3%A4%26x%3D1&n=2&list=%5B1%2Ctrue%5D"
        assert asked.body == b""


@pytest.mark.parametrize("value", ["..", ".", "", None])
async def test_a_parameter_cannot_lead_out_of_its_place_in_the_path(
    tmp_path: Path, value: str | None
) -> None:
    async with answering(lambda asked: ok([1])) as server:
        tool = api(server, endpoint_path="/items/{id}", http_method="GET")
        with pytest.raises(InvalidToolCall, match="id"):
            await called(tmp_path, tool, {} if value is None else {"id": value})
        assert server.asked == []


PNG = b"\x89PNG\r\n"


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        (ok({"a": 1}), {"a": 1}),
        (ok({"a": 1}, "application/problem+json; charset=utf-8"), {"a": 1}),
        (ok(b"just words", "text/plain"), {"text": "just words"}),
        (ok(b"", "text/plain", "204 No Content"), None),
        (
            ok(PNG, "image/png"),
            {"content_type": "image/png", "base64": base64.b64encode(PNG).decode()},
        ),
    ],
)
async def test_answers_are_read_by_their_type(tmp_path: Path, answer: bytes, result: Any) -> None:
    async with answering(lambda asked: answer) as server:
        assert await called(tmp_path, api(server), {}) == result


@pytest.mark.parametrize("is_asked", [True, False])
async def test_a_stream_comes_in_pieces(tmp_path: Path, is_asked: bool) -> None:
    """Section 6. A service that is not said to stream is not asked for one, but may send one."""
    text = (
        'data: {"chunk": "处理中...", "done": false}\n\ndata: {"chunk": "完成", "done": true}\n\n'
    )
    pieces = []

    async def take(piece: str) -> None:
        pieces.append(piece)

    async with answering(lambda asked: ok(text.encode(), "text/event-stream")) as server:
        tool = structs.replace(api(server), stream_support=is_asked)
        result = await called(tmp_path, tool, {}, take)
        accepted = server.asked[0].headers["accept"]
        assert accepted.startswith("text/event-stream") is is_asked
    assert pieces == ["处理中...", "完成"]
    assert result == {"text": "处理中...完成"}


async def test_a_stream_is_read_as_event_streams_are(tmp_path: Path) -> None:
    """Several `data` lines are one event, lines end as they like, comments say nothing."""
    text = (
        b': wait\r\n\r\ndata: {"chunk": "a",\r\ndata: "done": false}\r\n\r\n'
        b'event: x\rdata:{"chunk": "b", "done": true}'
    )
    async with answering(lambda asked: ok(text, "text/event-stream")) as server:
        assert await called(tmp_path, api(server), {}) == {"text": "ab"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b'data: {"chunk": "x", "done": false}\n\n', "before it was done"),
        (b'data: {"error": "no model", "chunk": "", "done": true}\n\n', "no model"),
    ],
)
async def test_a_stream_that_breaks_is_an_error(tmp_path: Path, text: bytes, message: str) -> None:
    async with answering(lambda asked: ok(text, "text/event-stream")) as server:
        with pytest.raises(ToolCallFailed, match=message):
            await called(tmp_path, api(server), {})


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (ok(b"{", "application/json"), "JSON that cannot be read"),
        (ok(b"[" * 100_000, "application/json"), "JSON that cannot be read"),
        (ok({"detail": "no such"}, status="404 Not Found"), r"HTTP 404: Not Found .*no such"),
        (ok(b"", status="503 Service Unavailable"), r"^HTTP 503: Service Unavailable$"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nx", "the connection to .* broke"),
        (b"nonsense\r\n\r\n", "the connection to .* broke"),
    ],
)
async def test_what_is_no_answer_is_an_error(tmp_path: Path, answer: bytes, message: str) -> None:
    async with answering(lambda asked: answer) as server:
        with pytest.raises(ToolCallFailed, match=message):
            await called(tmp_path, api(server), {})


async def test_an_answer_that_is_too_large_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arp.tools.run.http_call.MAX_ANSWER", 1000)
    import gzip

    bomb = gzip.compress(b"0" * 100_000)
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-encoding: gzip\r\n"
    packed = head + b"content-length: %d\r\n\r\n" % len(bomb) + bomb
    for answer in (ok(b"x" * 1001, "text/plain"), packed):
        async with answering(lambda asked, answer=answer: answer) as server:  # type: ignore[misc] # one argument is given
            with pytest.raises(ToolCallFailed, match="more than 1000 bytes"):
                await called(tmp_path, api(server), {})


async def test_no_answer_in_time_is_an_error(tmp_path: Path) -> None:
    async with answering(lambda asked: None) as server:
        runtime = runtime_in(tmp_path, call_timeout_s=0.2)
        with pytest.raises(ToolTimeout, match="did not answer in time"):
            await runtime.call(api(server), {}, None)
        await runtime.aclose()


def statuses(*answers: bytes) -> tuple[Iterator[bytes], Any]:
    left = iter(answers)
    return left, lambda asked: next(left)


async def test_what_can_be_tried_again_is(tmp_path: Path) -> None:
    busy = ok(b"", status="503 Service Unavailable")
    _, answers = statuses(busy, busy, ok({"third": True}))
    waits = Waits()
    async with answering(answers) as server:
        runtime = runtime_in(tmp_path, waits)
        assert await runtime.call(api(server, http_method="GET"), {}, None) == {"third": True}
        await runtime.aclose()
        assert len(server.asked) == 3
    assert waits.waited == [0.25, 0.5]


@pytest.mark.parametrize(
    ("method", "status", "times"),
    [("POST", 503, 1), ("PATCH", 503, 1), ("GET", 500, 1), ("GET", 404, 1), ("GET", 429, 3)],
)
async def test_what_could_do_harm_twice_is_not_tried_again(
    tmp_path: Path, method: str, status: int, times: int
) -> None:
    async with answering(lambda asked: ok(b"", status=f"{status} X")) as server:
        with pytest.raises(ToolCallFailed, match=f"HTTP {status}"):
            await called(tmp_path, api(server, http_method=method), {})
        assert len(server.asked) == times


@pytest.mark.parametrize(
    ("after", "waited"), [("1", [1.0, 1.0]), ("60", []), ("soon", [0.25, 0.5])]
)
async def test_retry_after_is_heeded(tmp_path: Path, after: str, waited: list[float]) -> None:
    answer = b"HTTP/1.1 429 X\r\nretry-after: %b\r\ncontent-length: 0\r\n\r\n" % after.encode()
    waits = Waits()
    async with answering(lambda asked: answer) as server:
        runtime = runtime_in(tmp_path, waits)
        with pytest.raises(ToolCallFailed):
            await runtime.call(api(server, http_method="GET"), {}, None)
        await runtime.aclose()
    assert waits.waited == waited


async def test_a_connection_that_was_not_made_is_tried_again(tmp_path: Path) -> None:
    async with answering(lambda asked: ok({})) as server:
        pass
    waits = Waits()
    runtime = runtime_in(tmp_path, waits)
    with pytest.raises(ToolCallFailed, match="cannot be reached"):
        await runtime.call(api(server), {}, None)
    await runtime.aclose()
    assert len(waits.waited) == 2


async def test_private_addresses_are_refused_unless_an_operator_allows_them(tmp_path: Path) -> None:
    async with answering(lambda asked: ok({"secret": 1})) as server:
        closed = runtime_in(tmp_path, api_private_hosts=[])
        for entry in (
            server.url,
            f"http://localhost:{server.port}",
            f"http://0x7f.1:{server.port}",
        ):
            with pytest.raises(ToolRefused, match="TOOL_AGENT_API_PRIVATE_HOSTS"):
                await closed.start(api(entry))
            with pytest.raises(ToolRefused):
                await closed.call(api(entry), {}, None)
            with pytest.raises(ToolRefused):
                await closed.healthy(api(entry))
        await closed.aclose()
        assert server.asked == []


async def test_a_redirect_of_an_allowed_server_leads_to_no_other_private_one(
    tmp_path: Path,
) -> None:
    async with answering(lambda asked: ok({"secret": 1})) as inner:
        location = f"HTTP/1.1 307 X\r\nlocation: {inner.url}/\r\ncontent-length: 0\r\n\r\n"
        async with answering(lambda asked: location.encode()) as outer:
            runtime = runtime_in(tmp_path, api_private_hosts=[f"127.0.0.1:{outer.port}"])
            with pytest.raises(ToolRefused, match=str(inner.port)):
                await runtime.call(api(outer), {}, None)
            await runtime.aclose()
        assert inner.asked == []


async def test_a_redirect_without_end_ends(tmp_path: Path) -> None:
    def again(asked: Asked) -> bytes:
        return b"HTTP/1.1 302 X\r\nlocation: /x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"

    async with answering(again) as server:
        with pytest.raises(ToolCallFailed, match="redirects"):
            await called(tmp_path, api(server, http_method="GET"), {})
        assert len(server.asked) == 6


async def test_a_change_of_the_settings_holds_for_the_next_call(tmp_path: Path) -> None:
    async with answering(lambda asked: ok({"a": 1})) as server:
        runtime = runtime_in(tmp_path, api_private_hosts=[])
        with pytest.raises(ToolRefused):
            await runtime.call(api(server), {}, None)
        (tmp_path / "data").mkdir(exist_ok=True)
        config = {"api_private_hosts": [f"127.0.0.1:{server.port}"]}
        (tmp_path / "data" / "config.json").write_text(json.dumps(config))
        assert await runtime.call(api(server), {}, None) == {"a": 1}
        await runtime.aclose()


@pytest.mark.parametrize(
    ("env", "error"),
    [
        ({"Host": "other"}, ToolRefused),
        ({"transfer-encoding": "chunked"}, ToolRefused),
        ({"X": "a\r\nEvil: 1"}, InvalidToolMeta),
        ({"X Y": "a"}, InvalidToolMeta),
        ({"": "a"}, InvalidToolMeta),
    ],
)
async def test_headers_cannot_change_how_a_message_travels(
    tmp_path: Path, env: dict[str, str], error: type[Exception]
) -> None:
    async with answering(lambda asked: ok({})) as server:
        with pytest.raises(error, match="env"):
            await called(tmp_path, api(server, env=env), {})
        assert server.asked == []


@pytest.mark.parametrize(("status", "well"), [(200, True), (404, True), (405, True), (503, False)])
async def test_a_server_is_healthy_if_it_answers(tmp_path: Path, status: int, well: bool) -> None:
    async with answering(lambda asked: ok(b"", status=f"{status} X")) as server:
        runtime = runtime_in(tmp_path)
        if well:
            await runtime.healthy(api(server))
        else:
            with pytest.raises(ToolCallFailed, match="HTTP 503"):
                await runtime.healthy(api(server))
        await runtime.aclose()
        assert {asked.method for asked in server.asked} == {"HEAD"}


async def test_many_calls_work_at_once(tmp_path: Path) -> None:
    async with answering(lambda asked: ok(json.loads(asked.body))) as server:
        runtime = runtime_in(tmp_path)
        calls = (runtime.call(api(server), {"n": number}, None) for number in range(50))
        assert await asyncio.gather(*calls) == [{"n": number} for number in range(50)]
        await runtime.aclose()
