"""A fake model server on 127.0.0.1 for real CLIs of agents: scripted, and it keeps its requests.

    with ModelServer() as server:                   # or the fixture `model_server`
        ...                                         # start a CLI that is aimed at server.address
        server.wait_for(lambda: server.last_tool_result() is not None)
        assert server.last_tool_result() == "denied by the user"

What the user's text makes the model do is in one table, in `model_script.py`: `hello`, `think`,
`echo: TEXT`, `run: CMD`, `two: A @@ B`, `write: PATH`, `slow`, `fail 400`, `retry` and others. It
is the same for every CLI; `clis.py` aims them at the server.

What a test may ask afterwards:

    server.requests                    every request of a turn, oldest first, parsed (`Request`)
    server.helper_requests             those that offered no tools: titles, summaries, probes
    server.last_tool_result()          what the model was told of the last tool call, or None
    server.last_user_text()            what the user said last, as the model received it
    server.what_the_model_was_told()   the last request's texts of the user and tool results
    server.wait_for(condition)         wait in a thread; `await server.reaches(condition)` in a loop
    request.is_streaming               whether its answer is being written
    request.client_left                whether the CLI left before the end of the answer

It speaks Anthropic Messages, OpenAI Responses and OpenAI Chat Completions, with and without a
stream, and answers the probes of the CLIs. A request that it cannot read is answered with 500 and
kept in `server.errors`; leaving the block raises if there is one.
"""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from tests.runtime.model_dialects import DIALECTS, Dialect, Pause
from tests.runtime.model_script import (
    INPUT_TOKENS,
    RESETS_AT_S,
    Answer,
    Failure,
    Item,
    Script,
    Text,
    ToolResult,
    is_typed,
    last_user_text,
)

WITHIN_S = 20.0
"""So long a test waits for a request, unless it says otherwise."""

MODELS = ("fake-1", "fake-2", "gpt-5.5")
"""What `GET /v1/models` lists; every other name is answered just as well."""


@dataclass
class Request:
    """A request to the model."""

    dialect: str
    """`messages`, `responses` or `chat`."""
    model: str
    body: dict[str, Any]
    headers: dict[str, str]
    """With names in lower case."""
    items: list[Item]
    tools: list[str]
    answer: Answer | Failure
    is_streaming: bool = False
    client_left: bool = False

    @property
    def user_text(self) -> str:
        """What the user said last."""
        return last_user_text(self.items)[0]

    @property
    def tool_results(self) -> list[ToolResult]:
        """What the model was told about calls, oldest first."""
        return [item for item in self.items if isinstance(item, ToolResult)]

    @property
    def told(self) -> list[str]:
        """What the user said and what tools returned, oldest first."""
        return [
            item.text
            for item in self.items
            if isinstance(item, ToolResult)
            or (isinstance(item, Text) and item.role == "user" and is_typed(item.text))
        ]


@dataclass
class ModelServer:
    """A server in a thread; a context manager."""

    requests: list[Request] = field(default_factory=list)
    helper_requests: list[Request] = field(default_factory=list)
    other_requests: list[str] = field(default_factory=list)
    """Method and path of everything else, such as `GET /v1/models`."""
    errors: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._script = Script()
        self._changed = threading.Condition()
        self._closing = threading.Event()
        self._server = _HttpServer(self)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.05,), name="model server", daemon=True
        )

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self._server.server_address[1])

    @property
    def address(self) -> str:
        """Its address without a path, as Claude Code wants it."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def openai_address(self) -> str:
        """Its address as clients of OpenAI want it."""
        return f"{self.address}/v1"

    def __enter__(self) -> ModelServer:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.close_connections()
        self._server.server_close()
        self._thread.join(WITHIN_S)
        if error is None and self.errors:
            raise AssertionError("the model server could not read: " + "\n".join(self.errors))

    def last_user_text(self) -> str:
        """Return what the user said last, as the model received it."""
        with self._changed:
            return self.requests[-1].user_text if self.requests else ""

    def last_tool_result(self) -> str | None:
        """Return what the model was told of the last tool call; `None` before there is any."""
        with self._changed:
            results = [item.text for request in self.requests for item in request.tool_results]
            return results[-1] if results else None

    def what_the_model_was_told(self) -> list[str]:
        """Return each text of the user and each tool result in the last request, oldest first."""
        with self._changed:
            return self.requests[-1].told if self.requests else []

    def wait_for(self, condition: Callable[[], object], *, within_s: float = WITHIN_S) -> None:
        """Wait until `condition()` holds; it is asked again whenever the server's log changes.

        Raises:
            AssertionError: It did not come to hold in time; the message says what was requested.
        """
        with self._changed:
            if self._changed.wait_for(condition, within_s):
                return
            seen = [f"{request.dialect}: {request.user_text[:60]}" for request in self.requests]
        raise AssertionError(f"it did not come to hold within {within_s} s; requests: {seen}")

    async def reaches(self, condition: Callable[[], object], *, within_s: float = WITHIN_S) -> None:
        """Wait as `wait_for` does, without holding up the loop."""
        await asyncio.to_thread(self.wait_for, condition, within_s=within_s)

    # From here on: what the handlers call, each in a thread of its own.

    def answer(self, dialect: Dialect, body: dict[str, Any], headers: dict[str, str]) -> Request:
        """Return the request with its answer, after it was written to the log."""
        items, tools = dialect.items(body), dialect.tools(body)
        with self._changed:
            request = Request(
                dialect=dialect.name,
                model=body["model"],
                body=body,
                headers=headers,
                items=items,
                tools=tools,
                answer=self._script.answer(items, tools),
                is_streaming=True,
            )
            (self.requests if tools else self.helper_requests).append(request)
            self._changed.notify_all()
        return request

    def ended(self, request: Request, *, client_left: bool) -> None:
        """Note that the answer has ended."""
        with self._changed:
            request.is_streaming = False
            request.client_left = client_left
            self._changed.notify_all()

    def note(self, log: list[str], line: str) -> None:
        """Append a line to one of the logs."""
        with self._changed:
            log.append(line)
            self._changed.notify_all()

    def pause(self, seconds: float) -> None:
        """Wait; raise `ConnectionAbortedError` if the server is closed meanwhile."""
        if self._closing.wait(seconds):
            raise ConnectionAbortedError


class _HttpServer(ThreadingHTTPServer):
    """Knows its connections, so that no thread outlives the test: `server_close` joins them all."""

    daemon_threads = False

    def __init__(self, model: ModelServer) -> None:
        self.model = model
        self._connections: set[socket.socket] = set()
        super().__init__(("127.0.0.1", 0), _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._connections.discard(request)
        super().shutdown_request(request)

    def close_connections(self) -> None:
        """Wake up each thread that waits for its client; it closes the socket itself."""
        for connection in list(self._connections):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: clients leave, and what cannot be read is in `errors`."""


class _Handler(BaseHTTPRequestHandler):
    server: _HttpServer

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def do_HEAD(self) -> None:
        self._other({})

    def do_GET(self) -> None:
        data = [{"id": name, "object": "model", "owned_by": "tests"} for name in MODELS]
        path = urlsplit(self.path).path
        self._other({"object": "list", "data": data} if path == "/v1/models" else {})

    def do_POST(self) -> None:
        path, text = urlsplit(self.path).path, self._read()
        if path.endswith("/count_tokens"):
            self._other({"input_tokens": INPUT_TOKENS})
            return
        dialect = DIALECTS.get(path)
        if dialect is None:
            self._other({}, 404 if path.startswith("/v1/") else 200)
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            body = json.loads(text)
            request = self.server.model.answer(dialect, body, headers)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            self.server.model.note(self.server.model.errors, f"{path}: {error!r}: {text[:2000]!r}")
            self._json(dialect.error(500, repr(error)), 500)
            return
        left = True
        try:
            self._answer(dialect, request)
            left = False
        finally:
            self.server.model.ended(request, client_left=left)

    def _answer(self, dialect: Dialect, request: Request) -> None:
        answer = request.answer
        if isinstance(answer, Failure):
            self._json(dialect.error(answer.status, answer.message), answer.status)
        elif not request.body.get("stream"):
            self._json(dialect.whole(answer, request.body))
        else:
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("cache-control", "no-store")
            for name, value in limit_headers(answer).items():
                self.send_header(name, value)
            self.end_headers()
            for event in dialect.events(answer, request.body):
                if isinstance(event, Pause):
                    self.server.model.pause(event.seconds)
                else:
                    self.wfile.write(dialect.frame(event).encode())
            self.wfile.write(dialect.end().encode())

    def _other(self, body: dict[str, Any], status: int = 200) -> None:
        model = self.server.model
        model.note(model.other_requests, f"{self.command} {urlsplit(self.path).path}")
        self._json(body, status)

    def _json(self, body: dict[str, Any], status: int = 200) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        if status in (429, 503, 529):
            self.send_header("retry-after", "0")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _read(self) -> bytes:
        if self.headers.get("transfer-encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("content-length", 0)))
        data = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            data += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return data


def limit_headers(answer: Answer) -> dict[str, str]:
    """Return how a provider tells how much of a limit is used: OpenAI's way, and Anthropic's."""
    used = answer.used_percent
    if used is None:
        return {}
    status = "rejected" if used >= 100 else "allowed_warning"
    return {
        "x-codex-primary-used-percent": f"{used}",
        "x-codex-primary-window-minutes": "300",
        "x-codex-primary-reset-at": f"{RESETS_AT_S}",
        "anthropic-ratelimit-unified-status": status,
        "anthropic-ratelimit-unified-reset": f"{RESETS_AT_S}",
        "anthropic-ratelimit-unified-representative-claim": "five_hour",
        "anthropic-ratelimit-unified-5h-utilization": f"{used / 100}",
        "anthropic-ratelimit-unified-5h-reset": f"{RESETS_AT_S}",
        "anthropic-ratelimit-unified-5h-surpassed-threshold": "0.9",
    }
