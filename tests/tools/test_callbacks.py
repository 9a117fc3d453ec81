"""Callbacks over real sockets: retried, signed, never to a private address."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from arp.tools.build.callbacks import SIGNATURE, CallbackSender, signature_of, verify_callback
from arp.tools.build.messages import ToolError, ToolReady
from arp.tools.errors import ToolAgentError
from tests.tools.house import settings_in

READY = ToolReady("add", "it works", "http://localhost:9001/", "t")


class Receiver:
    """A server of a caller: answers with the statuses that it is given, then with 200."""

    def __init__(self, statuses: list[int]) -> None:
        self.statuses = statuses
        self.bodies: list[bytes] = []
        self.signatures: list[str | None] = []
        self.address = ""


@contextmanager
def receiving(*statuses: int) -> Iterator[Receiver]:
    receiver = Receiver(list(statuses))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            receiver.bodies.append(self.rfile.read(int(self.headers["content-length"])))
            receiver.signatures.append(self.headers.get(SIGNATURE))
            status = receiver.statuses.pop(0) if receiver.statuses else 200
            self.send_response(status)
            if status == 302:
                self.send_header("location", f"{receiver.address}/elsewhere")
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *args: object) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        receiver.address = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield receiver
        server.shutdown()
        thread.join()


class Pauses:
    """Waits without waiting."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


def sender(data_dir: Path, receiver: Receiver, **more: object) -> tuple[CallbackSender, Pauses]:
    host = receiver.address.removeprefix("http://")
    pauses = Pauses()
    settings = settings_in(data_dir, api_private_hosts=[host], **more)
    return CallbackSender(settings, pause=pauses), pauses


async def test_receiver_gets_the_message_of_the_document(tmp_path: Path) -> None:
    with receiving() as receiver:
        callbacks, _ = sender(tmp_path, receiver)
        assert await callbacks.deliver(receiver.address, READY) == "delivered"
    (body,) = receiver.bodies
    assert json.loads(body) == {
        "type": "tool_ready",
        "payload": {
            "tool_id": "add",
            "result": "it works",
            "url": "http://localhost:9001/",
            "task_id": "t",
        },
    }


async def test_receiver_that_fails_is_tried_again_with_longer_pauses(tmp_path: Path) -> None:
    with receiving(500, 503, 429) as receiver:
        callbacks, pauses = sender(tmp_path, receiver)
        assert await callbacks.deliver(receiver.address, READY) == "delivered"
    assert pauses.seconds == [1.0, 2.0, 4.0]
    assert len(receiver.bodies) == 4


@pytest.mark.parametrize(("status", "tries"), [(400, 1), (410, 1), (302, 1), (500, 3)])
async def test_receiver_that_refuses_is_left_alone(tmp_path: Path, status: int, tries: int) -> None:
    with receiving(*[status] * 10) as receiver:
        callbacks, _ = sender(tmp_path, receiver, callback_attempts=3)
        said = await callbacks.deliver(receiver.address, ToolError("", "no", "t"))
    assert said == f"the receiver answered {status}"
    assert len(receiver.bodies) == tries


async def test_private_address_is_refused_at_the_socket(tmp_path: Path) -> None:
    with receiving() as receiver:
        callbacks = CallbackSender(settings_in(tmp_path), pause=Pauses())
        port = receiver.address.rpartition(":")[2]
        for url in (receiver.address, f"http://localhost:{port}", f"http://[::ffff:7f00:1]:{port}"):
            said = await callbacks.deliver(url, READY)
            assert said != "delivered", url
    assert receiver.bodies == []


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1/", "http://10.0.0.1/x", "http://169.254.169.254/", "ftp://example.org/",
     "javascript:alert(1)", "//example.org", "http://", "http://user:secret@10.0.0.1/",
     "http://example.org/" + "x" * 2_000],
)  # fmt: skip
def test_address_that_can_never_be_called_is_refused_at_once(tmp_path: Path, url: str) -> None:
    with pytest.raises(ToolAgentError):
        CallbackSender(settings_in(tmp_path)).check(url)


async def test_a_signed_callback_is_accepted_and_a_forged_one_is_not(tmp_path: Path) -> None:
    with receiving() as receiver:
        callbacks, _ = sender(tmp_path, receiver, callback_secret="s3cret")
        await callbacks.deliver(receiver.address, READY)
    (body,), (signature,) = receiver.bodies, receiver.signatures
    assert signature is not None
    at = int(signature.split(",")[0].removeprefix("t="))
    assert verify_callback(body, signature, "s3cret", at)
    forged = body.replace(b"localhost", b"evil.test")
    assert not verify_callback(forged, signature, "s3cret", at)
    assert not verify_callback(body, signature, "other", at)
    assert not verify_callback(body, signature, "s3cret", at + 301)  # sent again much later
    later = signature.replace(f"t={at}", f"t={at + 301}")
    assert not verify_callback(body, later, "s3cret", at + 301)
    for odd in ("", "t=1", "v1=", "t=x,v1=y", f"t={'9' * 40},v1=0", "t=٣,v1=0"):
        assert not verify_callback(body, odd, "s3cret", at)


def test_signature_is_an_hmac_of_time_and_body() -> None:
    # hmac.new(b"key", b"5.{}", "sha256").hexdigest()
    expected = "9be615aec64f0d044b5ad6854ab1d893ec88617fb728d2149dcd3a3428e8c45d"
    assert signature_of(b"{}", "key", 5.9) == f"t=5,v1={expected}"


async def test_callback_without_a_secret_is_not_signed(tmp_path: Path) -> None:
    with receiving() as receiver:
        callbacks, _ = sender(tmp_path, receiver)
        await callbacks.deliver(receiver.address, READY)
    assert receiver.signatures == [None]
