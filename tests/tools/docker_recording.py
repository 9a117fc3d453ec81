"""A recording of what we ask of Docker's engine and what it answers, made once and replayed.

Between the SDK and the engine there is an HTTP server on a Unix socket: `Recorder` passes each
request on and keeps it with its answer; `Replay` compares each request with the recording and
answers from it. What changes from run to run (ids, times, names) is replaced in the recording; of
large answers only what `KEPT` names is recorded.

`pytest tests/tools/test_docker.py -k recording --record-docker` writes the file.
"""

from __future__ import annotations

import http.client
import json
import re
import socket
import socketserver
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol
from urllib.parse import parse_qsl, urlsplit

FILE: Final = Path(__file__).with_name("docker_recording.json")
WAIT_S: Final = 30.0
STREAMS: Final = {"stdout": 1, "stderr": 2}
TIME: Final = "2026-01-01T00:00:00Z"
CREATED: Final = 1767225600
"""The same time, in seconds."""
KEPT: Final = {
    "/version": ("Version", "ApiVersion", "MinAPIVersion"),
    "/containers/json": ("Id", "Names", "Image", "Created", "Labels", "State"),
    "/containers/*/json": ("Id", "Name", "Image", "Created", "State"),
    "/images/*/json": ("Id", "RepoTags"),
    "/exec/*/json": ("ID", "ContainerID", "Running", "ExitCode"),
}
"""What is recorded of an answer, by path: the others are whole."""


class Request(NamedTuple):
    """A request to the engine."""

    method: str
    target: str
    """Path and query."""
    headers: dict[str, str]
    body: bytes

    def as_json(self, hidden: dict[str, str]) -> dict[str, Any]:
        """Return it as it is recorded and compared, with some texts replaced."""
        parts = urlsplit(self.target)
        body = self.body.decode()
        for text, stable in hidden.items():
            body = body.replace(text, stable)
        return {
            "method": self.method,
            "path": parts.path,
            "query": dict(parse_qsl(parts.query, keep_blank_values=True)),
            "body": json.loads(body) if body else None,
        }


class Answers(Protocol):
    """Who answers requests, on the connection of a handler."""

    def answer(self, request: Request, handler: Handler) -> None:
        """Answer a request."""


class Handler(BaseHTTPRequestHandler):
    """A connection of the SDK."""

    protocol_version = "HTTP/1.1"
    server: UnixServer

    def setup(self) -> None:
        super().setup()
        self.client_address = ("unix", 0)

    def handle_one_request(self) -> None:
        self.raw_requestline = self.rfile.readline(65537)
        self.close_connection = True
        if self.raw_requestline and self.parse_request():
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            request = Request(self.command, self.path, dict(self.headers.items()), body)
            self.server.answers.answer(request, self)

    def send(self, status: int, body: bytes, content_type: str) -> None:
        """Send an answer that is no stream."""
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def send_upgrade(self, first: bytes = b"") -> None:
        """Send the head of a stream, with what comes first of it in the same packet."""
        head = (
            b"HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.raw-stream\r\n"
            b"Connection: Upgrade\r\nUpgrade: tcp\r\n\r\n"
        )
        self.wfile.write(head + first)
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


class UnixServer(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """An HTTP server on a Unix socket."""

    daemon_threads = True

    def __init__(self, path: Path, answers: Answers) -> None:
        super().__init__(str(path), Handler)
        self.answers = answers


@contextmanager
def serving(path: Path, answers: Answers) -> Iterator[str]:
    """Serve on a Unix socket; yields its `DOCKER_HOST`."""
    with UnixServer(path, answers) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield f"unix://{path}"
        finally:
            server.shutdown()
            thread.join()


class Recorder:
    """Passes requests on to an engine and keeps them with its answers.

    Args:
        engine: The path of its socket.
        hidden: Texts of requests → what is recorded instead.
    """

    def __init__(self, engine: str, hidden: dict[str, str]) -> None:
        self._engine = engine
        self._hidden = hidden
        self._guard = threading.Lock()
        self._exchanges: list[dict[str, Any]] = []

    def answer(self, request: Request, handler: Handler) -> None:
        """Pass a request on, and its answer back."""
        exchange: dict[str, Any] = {"request": request.as_json(self._hidden)}
        with self._guard:
            self._exchanges.append(exchange)
        upstream = _EngineConnection(self._engine)
        try:
            upstream.request(request.method, request.target, request.body, request.headers)
            response = upstream.getresponse()
            if response.status == http.client.SWITCHING_PROTOCOLS:
                exchange["answer"] = self._pass_stream(response, handler)
            else:
                body = response.read()
                content_type = response.headers.get("Content-Type", "text/plain")
                exchange["answer"] = {"status": response.status, "body": _parsed(body)}
                handler.send(response.status, body, content_type)
            response.close()
        finally:
            upstream.close()

    def recording(self) -> list[dict[str, Any]]:
        """Return what was recorded, without what differs from run to run."""
        for exchange in self._exchanges:
            answer = exchange["answer"]
            if "body" in answer and answer["status"] < http.client.BAD_REQUEST:
                answer["body"] = _kept(exchange["request"]["path"], answer["body"])
        text = json.dumps(self._exchanges)
        names = dict.fromkeys(re.findall(r'"Name": "/([a-z]+_[a-z0-9]+)"', text))
        for number, name in enumerate(names, 1):
            text = text.replace(name, f"name_{number}")
        for number, identity in enumerate(dict.fromkeys(re.findall(r"[0-9a-f]{64}", text)), 1):
            short = f"{number:012x}"
            text = text.replace(identity, short.ljust(64, "0")).replace(identity[:12], short)
        text = re.sub(r"(?!0001)\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)", TIME, text)
        text = re.sub(r'"Created": \d+', f'"Created": {CREATED}', text)
        text = re.sub(r'"Pid": [1-9]\d*', '"Pid": 1', text)
        recorded: list[dict[str, Any]] = json.loads(text)
        return recorded

    def _pass_stream(self, response: http.client.HTTPResponse, handler: Handler) -> dict[str, Any]:
        """Pass on what a command writes, until it ends; a replay ends it after as many requests."""
        handler.send_upgrade()
        frames: list[list[str]] = []
        names = {number: name for name, number in STREAMS.items()}
        while len(head := response.fp.read(8)) == 8:
            kind, size = struct.unpack(">BxxxL", head)
            data = response.fp.read(size)
            handler.wfile.write(head + data)
            if frames and frames[-1][0] == names[kind]:
                frames[-1][1] += data.decode()
            else:
                frames.append([names[kind], data.decode()])
        with self._guard:  # one that writes nothing is a helper, which ends as soon as it may
            ended_after = len(self._exchanges) if frames else 0
        return {"status": 101, "frames": frames, "ended_after": ended_after}


class Replay:
    """Answers from a recording, and compares each request with it.

    Args:
        exchanges: The recording.
        hidden: Texts of requests → what was recorded instead.
    """

    def __init__(self, exchanges: list[dict[str, Any]], hidden: dict[str, str]) -> None:
        self._exchanges = exchanges
        self._hidden = hidden
        self._seen = 0
        self._arrived = threading.Condition()
        self._problems: list[str] = []

    def answer(self, request: Request, handler: Handler) -> None:
        """Answer a request as the engine did, if it is the one that it got."""
        got = request.as_json(self._hidden)
        with self._arrived:
            number = self._seen
            self._seen += 1
            self._arrived.notify_all()
        wanted = self._exchanges[number]["request"] if number < len(self._exchanges) else None
        if got != wanted:
            self._problems.append(f"request {number} is {got}, and not {wanted}")
            handler.send(500, b'{"message": "it is not in the recording"}', "application/json")
            return
        answer = self._exchanges[number]["answer"]
        if "frames" in answer:
            handler.send_upgrade(b"".join(_frame(*one) for one in answer["frames"]))
            with self._arrived:
                self._arrived.wait_for(lambda: self._seen >= answer["ended_after"], WAIT_S)
        elif isinstance(answer["body"], str):
            handler.send(answer["status"], answer["body"].encode(), "text/plain")
        else:
            body = json.dumps(answer["body"]).encode()
            handler.send(answer["status"], body, "application/json")

    def check(self) -> None:
        """Fail if a request was not as recorded, or one that is recorded was not made."""
        assert not self._problems, self._problems[0]
        assert self._seen == len(self._exchanges)


class _EngineConnection(http.client.HTTPConnection):
    """A connection to the engine's socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=WAIT_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _frame(name: str, text: str) -> bytes:
    data = text.encode()
    return struct.pack(">BxxxL", STREAMS[name], len(data)) + data


def _parsed(body: bytes) -> Any:
    """Return the JSON of an answer; its text if it is none."""
    try:
        return json.loads(body)
    except ValueError:
        return body.decode()


def _kept(path: str, body: Any) -> Any:
    """Return what is recorded of an answer to a request of this path."""
    path = re.sub(r"^/v[\d.]+", "", path)
    kept = KEPT.get(re.sub(r"^(/\w+)/.+/json$", r"\1/*/json", path))
    if isinstance(body, list):
        return [_kept(path, one) for one in body]
    if kept is None or not isinstance(body, dict):
        return body
    return {name: value for name, value in body.items() if name in kept}


def read_recording() -> list[dict[str, Any]]:
    """Return the recording of the file."""
    exchanges: list[dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8"))["exchanges"]
    return exchanges


def write_recording(exchanges: list[dict[str, Any]]) -> None:
    """Write the file."""
    about = "What DockerEngine asks of Docker and what it answers; see docker_recording.py."
    document = {"about": about, "exchanges": exchanges}
    FILE.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
