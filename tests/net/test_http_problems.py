"""What went wrong with a request is said in words that name the server and what to do."""

from __future__ import annotations

import asyncio
import socket

import httpx
import pytest

from arp.net.http_problems import (
    MAX_WORDS,
    answer_problem,
    broken_connection,
    message_in,
    not_a_stream,
    words_of,
)


async def failure_at(url: str, **options: object) -> httpx.HTTPError:
    async with httpx.AsyncClient(trust_env=False, **options) as client:  # type: ignore[arg-type]  # a test's own
        with pytest.raises(httpx.HTTPError) as failed:
            await client.get(url)
    return failed.value


async def answered_with(data: bytes, **options: object) -> str:
    """Return what is said of a server that answers each request with these bytes."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(data)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        failed = await failure_at(f"http://user:secret@127.0.0.1:{port}/v1?key=s3cret", **options)
        said = broken_connection(failed)
        assert "secret" not in said
        assert f"http://127.0.0.1:{port}/v1" in said
        return said


async def test_a_refused_connection_names_the_address() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        said = broken_connection(await failure_at(f"http://127.0.0.1:{port}/a"))
    assert said == (
        f"http://127.0.0.1:{port}/a cannot be reached: it refuses connections; check the address, "
        "and that the server runs"
    )


async def test_an_unknown_host_is_named() -> None:
    said = broken_connection(await failure_at("http://nothing.invalid/"))
    assert said.startswith("http://nothing.invalid/ cannot be reached: there is no such host")


async def test_a_connection_that_breaks_is_named() -> None:
    half = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nx"
    assert (await answered_with(half)).startswith("the connection to http://127.0.0.1")
    assert "illegal status line" in await answered_with(b"nonsense\r\n\r\n")


async def test_redirects_without_end_are_named() -> None:
    turning = b"HTTP/1.1 302 Found\r\nlocation: /v1\r\ncontent-length: 0\r\n\r\n"
    assert "redirects without end" in await answered_with(turning, follow_redirects=True)


async def test_a_server_that_is_silent_is_named() -> None:
    ended = asyncio.Event()

    async def wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await ended.wait()
        writer.close()

    async with await asyncio.start_server(wait, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        failed = await failure_at(f"http://127.0.0.1:{port}/", timeout=0.2)
        ended.set()
    assert broken_connection(failed) == f"http://127.0.0.1:{port}/ did not answer in time"
    assert broken_connection(failed, "weather") == "weather did not answer in time"


def test_a_framework_may_raise_its_own_error_because_of_it() -> None:
    framework = RuntimeError("Connection error.")
    framework.__cause__ = httpx.ReadError("")
    assert broken_connection(framework) == (
        "the connection to the server broke: it ended before the answer did"
    )
    assert broken_connection(ValueError("something else")) == ""


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"error": {"message": "Too many calls", "code": 7}}', "Too many calls"),
        (b'{"error": "no model"}', "no model"),
        (b'{"detail": [{"msg": "missing"}, {"msg": "long"}]}', "missing; long"),
        (b'{"ok": false}', ""),
        (b"null", ""),
        (b"<html><head><title>502</title><style>p {}</style></head><h1>Bad &amp; gone</h1>",
         "502: Bad & gone"),
        (b"<script>alert(1)</script><p>Sign  in</p>", "Sign in"),
        (b"upstream\nis \x1b[31mdown", "upstream is ␛[31mdown"),
        (b"\xff\xfe", "\ufffd\ufffd"),
        (b"", ""),
    ],
)  # fmt: skip
def test_the_words_of_a_body(body: bytes, said: str) -> None:
    assert words_of(body) == said


def test_a_hostile_page_takes_no_time() -> None:
    assert len(words_of(b"<script <title <style>" * 20_000)) <= MAX_WORDS


def test_long_words_are_cut() -> None:
    assert words_of(b"x" * 1000) == "x" * (MAX_WORDS - 1) + "…"
    assert words_of(b"[" * 100_000).startswith("[[")


@pytest.mark.parametrize("given", [b'["m"]', '{"message": "m"}', {"message": "m"}, ["m"]])
def test_a_body_that_was_read_already(given: object) -> None:
    assert message_in(given) == "m"


def test_a_redirect_names_where_to() -> None:
    said = answer_problem(302, {"location": "/login"}, b"", "https://a.example/agent")
    assert said == "it redirects (302) to https://a.example/login; use that address"
    assert answer_problem(302, {}, b"") == "it answered 302"
    assert answer_problem(429, {}, b'{"message": "later"}') == "it answered 429: later"


@pytest.mark.parametrize(
    ("kind", "problem"),
    [
        ("text/event-stream; charset=utf-8", ""),
        ("Text/Event-Stream", ""),
        ("", ""),
        ("text/plain", ""),
        ("text/html; charset=utf-8", "text/html"),
        ("application/json", "application/json"),
    ],
)
def test_what_is_no_stream(kind: str, problem: str) -> None:
    assert not_a_stream({"content-type": kind}) == problem
