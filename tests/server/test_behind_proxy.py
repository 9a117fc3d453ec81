"""An open server behind a real proxy is refused, however that is set up; with a token, served."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from arp import Access, App, Turn
from tests.docs.test_deploy_page import answers, written
from tests.support.serving import serving

WAYS = {
    "by default": "",
    "HTTP/1.1 and addresses": """
        proxy_http_version 1.1;
        proxy_set_header Connection "";
        proxy_set_header X-Real-IP $remote_addr;
        proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
    """,
    "WebSocket": """
        proxy_http_version 1.1;
        proxy_set_header Upgrade $http_upgrade;
        proxy_set_header Connection "upgrade";
        proxy_set_header Forwarded "for=$remote_addr";
    """,
}


def app_of(access: Access | None) -> App:
    app = App(access=access)

    @app.agent
    async def agent(turn: Turn) -> None:
        await turn.say("here")

    return app


@contextmanager
def nginx(program: str, folder: Path, way: str, backend: int) -> Iterator[str]:
    """Run nginx before a server; its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    place = f"location / {{ proxy_pass http://127.0.0.1:{backend}; {WAYS[way]} }}"
    servers = f"server {{ listen 127.0.0.1:{port}; {place} }}"
    process = subprocess.Popen([program, "-p", folder, "-c", written(folder, servers)])
    try:
        until = time.monotonic() + 20
        while not answers(port) and time.monotonic() < until:
            assert process.poll() is None, "nginx refuses the configuration"
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(15)


@pytest.mark.parametrize("way", WAYS)
def test_open_server_refuses_what_comes_through_nginx(
    way: str, tmp_path: Path, requires: Callable[[str], str]
) -> None:
    """Its `Host` is that of the backend, which nginx writes by itself."""
    with (
        serving(app_of(None)) as server,
        nginx(requires("nginx"), tmp_path, way, server.port) as url,
    ):
        for path in ("/_api/chats", "/agent", "/"):
            refused = httpx.get(f"{url}{path}")
            assert refused.status_code == 403
            assert "came through a proxy" in refused.json()["payload"]["error"]
        assert httpx.post(f"{url}/agent", json={"message": "hi"}).status_code == 403
        assert httpx.get(f"{server.http}/_api/chats").status_code == 200


@pytest.mark.parametrize("way", WAYS)
def test_server_with_a_token_is_served_through_nginx(
    way: str, tmp_path: Path, requires: Callable[[str], str]
) -> None:
    access = Access(token="t0ken-t0ken-t0ken")
    with (
        serving(app_of(access)) as server,
        nginx(requires("nginx"), tmp_path, way, server.port) as url,
    ):
        headers = {"authorization": "Bearer t0ken-t0ken-t0ken"}
        assert httpx.get(f"{url}/_api/chats", headers=headers).status_code == 200
        assert httpx.get(f"{url}/_api/chats").status_code == 401
