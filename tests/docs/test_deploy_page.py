"""The configuration of nginx on the page about deploying lets through all that renderers need."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import httpx
import pytest

from arp import App, Turn
from arp.client.client import connect
from tests.docs.pages import blocks
from tests.serving import serving

START_S = 20.0


def echo() -> App:
    app = App()

    @app.agent
    async def echo(turn: Turn) -> None:
        files = [len(await turn.read_file(one)) for one in turn.files]
        await turn.say(f"{turn.text} {files}")

    return app


@pytest.fixture(scope="module")
def proxied(
    tmp_path_factory: pytest.TempPathFactory, requires: Callable[[str], str]
) -> Iterator[str]:
    """The address of nginx in front of a server, with the page's configuration without TLS."""
    program, folder = requires("nginx"), tmp_path_factory.mktemp("nginx")
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    with serving(echo()) as server:
        block = blocks("text", page="deploy.md")[0].code
        lines = [line for line in block.splitlines() if "ssl_certificate" not in line]
        own = "\n".join(lines).replace("listen 443 ssl", f"listen 127.0.0.1:{port}")
        own = own.replace("127.0.0.1:8080", f"127.0.0.1:{server.port}")
        process = subprocess.Popen([program, "-p", folder, "-c", written(folder, own)])
        try:
            until = time.monotonic() + START_S
            while not answers(port) and time.monotonic() < until:
                assert process.poll() is None, "nginx refuses the configuration"
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(15)


def written(folder: Path, servers: str) -> Path:
    """Write a whole configuration around that of the page."""
    places = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = "\n".join(f"{name}_temp_path {folder}/{name};" for name in places)
    file = folder / "nginx.conf"
    user = "user root;" if os.geteuid() == 0 else ""  # else its workers could not write here
    file.write_text(
        f"{user} daemon off; pid {folder}/pid; error_log stderr; events {{}}\n"
        f"http {{ access_log off;\n{temporary}\n{servers}\n}}\n"
    )
    return file


def answers(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(0.2)
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.parametrize("transport", ["websocket", "sse"])
async def test_renderers_and_uploads_pass_through_nginx(
    proxied: str, transport: Literal["websocket", "sse"]
) -> None:
    async with asyncio.timeout(30), connect(proxied, transport=transport) as client:
        turn = await client.ask("hello")
        assert client.screen.text(turn.id) == "hello []"
        sent = await client.send_files([("big.bin", b"x" * 2_000_000)], "look")
        turn = await client.turn_done(await client.turn_of(sent))
        assert client.screen.text(turn.id) == "look [2000000]"


def test_the_page_passes_through_nginx(proxied: str) -> None:
    answer = httpx.get(f"{proxied}/")
    assert answer.status_code == 200
    assert "<title>" in answer.text
