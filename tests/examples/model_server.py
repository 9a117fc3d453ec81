"""A model's server on 127.0.0.1 that plays back what a test wrote, and keeps what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Playback:
    """One answer of the server."""

    lines: tuple[str, ...] = ()
    status: int = 200

    @property
    def content(self) -> bytes:
        """The body."""
        return "".join(self.lines).encode()


@dataclass
class Request:
    """One question to the server."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


@dataclass
class ModelServer:
    """The server: its address, what it will answer, and what it was asked."""

    url: str
    playbacks: list[Playback] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)

    def answer(self, request: Request) -> Playback:
        """The next answer; one more than the test wrote is an error of the test."""
        self.requests.append(request)
        return self.playbacks.pop(0) if self.playbacks else Playback(("no more answers",), 500)


@contextmanager
def running() -> Iterator[ModelServer]:
    """A server on a free port, stopped at the end."""

    class Handler(BaseHTTPRequestHandler):
        """Hands each question to the server."""

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            headers = {name.lower(): value for name, value in self.headers.items()}
            playback = model.answer(Request(self.path, headers, body))
            self.send_response(playback.status)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            self.wfile.write(playback.content)

        def log_message(self, format: str, *args: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    model = ModelServer(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield model
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def event(data: object, name: str = "") -> str:
    """One server-sent event."""
    return (f"event: {name}\n" if name else "") + f"data: {json.dumps(data)}\n\n"


def openai_text(*pieces: str) -> Playback:
    """An answer of words."""
    chunks = [{"choices": [{"delta": {"content": piece}}]} for piece in pieces]
    end = {"choices": [{"delta": {}, "finish_reason": "stop"}]}
    return Playback((*map(event, chunks), event(end), "data: [DONE]\n\n"))


def openai_tool(name: str, *arguments: str, text: str = "") -> Playback:
    """An answer that uses a tool; its arguments come in these pieces."""
    first = {"index": 0, "id": "call_7", "function": {"name": name, "arguments": ""}}
    parts = [{"index": 0, "function": {"arguments": piece}} for piece in arguments]
    deltas: list[dict[str, object]] = [{"content": text}] if text else []
    deltas += [{"tool_calls": [part]} for part in (first, *parts)]
    chunks = [{"choices": [{"delta": delta}]} for delta in deltas]
    end = {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}
    return Playback((*map(event, chunks), event(end), "data: [DONE]\n\n"))


def anthropic_text(*pieces: str) -> Playback:
    """An answer of words."""
    return Playback(
        (
            event({"type": "message_start", "message": {"id": "m"}}, "message_start"),
            event(
                {
                    "type": "content_block_start",
                    "index": 0,
                    "content_block": {"type": "text", "text": ""},
                }
            ),
            event({"type": "ping"}, "ping"),
            *(
                event(
                    {
                        "type": "content_block_delta",
                        "index": 0,
                        "delta": {"type": "text_delta", "text": piece},
                    }
                )
                for piece in pieces
            ),
            event({"type": "content_block_stop", "index": 0}),
            event({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}),
            event({"type": "message_stop"}, "message_stop"),
        )
    )


def anthropic_tool(name: str, *arguments: str, text: str = "") -> Playback:
    """An answer that uses a tool; its arguments come in these pieces."""
    block = {"type": "tool_use", "id": "use_7", "name": name, "input": {}}
    deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in arguments]
    said = {"type": "text_delta", "text": text}
    return Playback(
        (
            event({"type": "message_start", "message": {}}),
            event(
                {
                    "type": "content_block_start",
                    "index": 0,
                    "content_block": {"type": "text", "text": ""},
                }
            ),
            event({"type": "content_block_delta", "index": 0, "delta": said}) if text else "",
            event({"type": "content_block_stop", "index": 0}),
            event({"type": "content_block_start", "index": 1, "content_block": block}),
            *(
                event({"type": "content_block_delta", "index": 1, "delta": delta})
                for delta in deltas
            ),
            event({"type": "content_block_stop", "index": 1}),
            event({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}),
            event({"type": "message_stop"}),
        )
    )
