"""The configuration on the page about deploying works: nginx lets through all that renderers need,
and the unit of systemd starts a server that stops in time.
"""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from configparser import ConfigParser
from pathlib import Path
from typing import Literal

import httpx
import pytest

from arp import Access, App, Turn
from arp.client.client import connect
from tests.docs.pages import blocks
from tests.support.serving import serving

START_S = 20.0


def echo() -> App:
    app = App(access=Access(trusted_proxies=("127.0.0.1",)))

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


APP = """
from arp import App, Turn

app = App(title="Help desk")


@app.agent
async def desk(turn: Turn) -> None:
    await turn.say("Good morning")
"""


def unit_in(folder: Path) -> dict[str, str]:
    """Write the unit of the page and all that it names, in another folder than `/srv`."""
    (block,) = [one for one in blocks("text", page="deploy.md") if "[Service]" in one.text]
    text = block.code.replace("/srv/help-desk", str(folder))
    (folder / "help-desk.service").write_text(text)
    (folder / "app.py").write_text(APP)
    (folder / "secrets.env").write_text("ARP_TOKEN=a-long-secret-of-the-service\nARP_PORT=0\n")
    programs = folder / ".venv" / "bin"
    programs.mkdir(parents=True)
    (programs / "arp").symlink_to(Path(sys.executable).parent / "arp")
    parser = ConfigParser(interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign] # names keep their case
    parser.read_string(text)
    return dict(parser["Service"])


def test_the_unit_is_one_of_systemd(tmp_path: Path, requires: Callable[[str], str]) -> None:
    program = requires("systemd-analyze")
    unit_in(tmp_path)
    command = [program, "verify", "--man=no", str(tmp_path / "help-desk.service")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=START_S)
    told = [line for line in done.stderr.splitlines() if "help-desk" in line]
    assert (done.returncode, told) == (0, [])


def test_the_service_starts_by_its_unit_and_stops_in_time(tmp_path: Path) -> None:
    """As systemd runs it, but as the user of this test, and with a port that is free."""
    unit = unit_in(tmp_path)
    lines = Path(unit["EnvironmentFile"]).read_text().splitlines()
    process = subprocess.Popen(
        shlex.split(unit["ExecStart"]),
        cwd=unit["WorkingDirectory"],
        env={"PATH": os.environ["PATH"], **dict(line.split("=", 1) for line in lines)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert process.stdout is not None
        address = ""
        while not address and (line := process.stdout.readline()):
            found = re.search(r"http://127\.0\.0\.1:\d+", line)
            address = found[0] if found else ""
        token = {"authorization": "Bearer a-long-secret-of-the-service"}
        headers = {"host": "agents.example.com", **token}
        answer = httpx.post(f"{address}/desk", json={"message": "Hello"}, headers=headers)
        assert answer.json()["text"] == "Good morning"
        assert httpx.get(f"{address}/_api/chats").status_code == 401
        assert httpx.get(address, headers={"host": "other.example.com"}).status_code == 421
        began = time.monotonic()
        process.terminate()
        assert process.wait(float(unit["TimeoutStopSec"])) == 0
        assert time.monotonic() - began < float(unit["TimeoutStopSec"])
    finally:
        process.kill()
        process.communicate()
    assert (tmp_path / ".arp" / "app.db").is_file()
