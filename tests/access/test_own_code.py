"""The token of a start, and which user made a connection: real files, sockets and users."""

from __future__ import annotations

import os
import socket
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from arp.access.guard import OF_A_TOOL, Guard
from arp.access.own_code import FIRST_TOOL_UID, KEPT, KEPT_S, LAST_TOOL_UID, OwnCodeDetector, uid_of
from arp.access.principal import Principal
from arp.access.settings import Access
from arp.process import sandbox

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="reads the tables of Linux")
as_root = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="needs another user"
)


def scope_of(token: str = "", **more: object) -> dict[str, object]:
    headers = [(b"host", b"127.0.0.1"), (b"authorization", f"Bearer {token}".encode())]
    return {"type": "http", "path": "/", "headers": headers, **more}


def test_users_of_tools_are_those_that_the_sandbox_gives_out() -> None:
    assert (FIRST_TOOL_UID, LAST_TOOL_UID) == (sandbox.FIRST_UID, sandbox.LAST_UID)


def test_token_of_a_start_and_of_the_newest_before_lets_in(tmp_path: Path) -> None:
    path = tmp_path / "app.starts"
    starts = [OwnCodeDetector(path)]
    for _ in range(KEPT):
        starts[-1].save()
        starts.append(OwnCodeDetector(path))
    newest = starts[-1]
    assert [newest.has_shown(one.token) for one in starts] == [False, *[True] * KEPT]
    assert not newest.has_shown("")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]
    assert not any(one.token in path.read_text() for one in starts)


def test_old_tokens_damaged_files_and_those_of_others_let_nobody_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "app.starts"
    old = OwnCodeDetector(path)
    old.save()
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + KEPT_S + 60)
    assert not OwnCodeDetector(path).has_shown(old.token)
    monkeypatch.undo()
    assert OwnCodeDetector(path).has_shown(old.token)
    path.chmod(0o622)
    assert not OwnCodeDetector(path).has_shown(old.token)
    assert "others can write it" in caplog.text
    path.chmod(0o600)
    path.write_bytes(path.read_bytes()[:-5])
    assert not OwnCodeDetector(path).has_shown(old.token)
    assert "is damaged" in caplog.text
    path.unlink()
    os.mkfifo(path)
    assert not OwnCodeDetector(path).has_shown(old.token)
    path.unlink()
    path.symlink_to(tmp_path / "elsewhere")
    assert not OwnCodeDetector(path).has_shown(old.token)


def test_what_is_written_after_the_start_lets_nobody_in(tmp_path: Path) -> None:
    path = tmp_path / "app.starts"
    running, forged = OwnCodeDetector(path), OwnCodeDetector(tmp_path / "forged")
    path.write_bytes(msgspec.json.encode(forged._kept))
    assert not running.has_shown(forged.token)


async def test_guard_wants_the_token_of_the_start_or_another_that_is_valid() -> None:
    own = OwnCodeDetector()
    guard = Guard(Access(), own_code=own)
    assert await guard.principal(scope_of()) is None
    assert await guard.principal(scope_of("wrong")) is None
    assert await guard.check_token("wrong", scope_of()) is None
    assert await guard.principal(scope_of(own.token)) == Principal()
    assert await guard.check_token(own.token, scope_of()) == Principal()
    without = Guard(Access(), own_code=OwnCodeDetector(has_token=False))
    assert await without.principal(scope_of()) == Principal()
    assert await without.principal(scope_of("anything")) == Principal()


def test_elsewhere_is_refused_as_without_a_token() -> None:
    guard = Guard(Access(), own_code=OwnCodeDetector())
    assert guard.check_source(scope_of(client=("192.0.2.7", 5))) is not None
    assert guard.check_peer(scope_of(client=("192.0.2.7", 5))) is not None


def test_user_of_a_tool_is_refused_on_a_unix_socket_also_if_it_is_listed() -> None:
    guard = Guard(Access(uids=(FIRST_TOOL_UID,)), own_code=OwnCodeDetector())
    assert guard.check_peer(scope_of(uid=FIRST_TOOL_UID)) == OF_A_TOOL
    assert guard.check_peer(scope_of(uid=os.geteuid())) is None


@pytest.fixture(params=["127.0.0.1", "::1", "::ffff:127.0.0.1"])
def listener(request: pytest.FixtureRequest) -> Iterator[tuple[socket.socket, str]]:
    """A server, and the address at which it is dialled."""
    host = request.param
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with closing(socket.socket(family)) as listening:
        if host.startswith("::ffff"):
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listening.bind(("::" if host.startswith("::ffff") else host, 0))
        listening.listen()
        yield listening, host


@on_linux
def test_user_of_a_connection_is_found(listener: tuple[socket.socket, str]) -> None:
    listening, host = listener
    port = listening.getsockname()[1]
    dialled = host.removeprefix("::ffff:")
    with closing(socket.create_connection((dialled, port))):
        accepted, peer = listening.accept()
        with closing(accepted):
            assert uid_of(peer[0], peer[1], listening.getsockname()[1]) == os.geteuid()


@on_linux
@pytest.mark.parametrize("linger", [False, True], ids=["closed", "broken off"])
def test_connection_whose_program_is_gone_is_nobodys(
    listener: tuple[socket.socket, str], *, linger: bool
) -> None:
    listening, host = listener
    port = listening.getsockname()[1]
    dialling = socket.create_connection((host.removeprefix("::ffff:"), port))
    if linger:
        dialling.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    dialling.sendall(b"POST / HTTP/1.1\r\n\r\n")
    dialling.close()
    accepted, peer = listening.accept()
    with closing(accepted):
        assert uid_of(peer[0], peer[1], listening.getsockname()[1]) == -1


@on_linux
def test_other_machines_have_no_user_here() -> None:
    assert uid_of("192.0.2.7", 4000, 80) is None
    assert uid_of("testclient", 50000, 80) is None
    assert uid_of("127.0.0.1", 0, 80) is None
    assert uid_of("127.0.0.1", 123, None) is None, "httpx without a socket"


@on_linux
def test_connection_to_another_server_from_the_same_port_does_not_count() -> None:
    servers = [socket.socket() for _ in range(2)]
    for server in servers:
        server.bind(("127.0.0.1", 0))
        server.listen()
    first, second = (server.getsockname() for server in servers)
    gone, here = socket.socket(), socket.socket()
    for one in (gone, here):
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    gone.bind(("127.0.0.1", 0))
    here.bind(gone.getsockname())
    place = gone.getsockname()
    gone.connect(first)
    here.connect(second)
    gone.close()
    assert uid_of(place[0], place[1], first[1]) == -1
    assert uid_of(place[0], place[1], second[1]) == os.geteuid()
    for one in (here, *servers):
        one.close()


@as_root
def test_connection_of_a_tool_is_recognised(listener: tuple[socket.socket, str]) -> None:
    listening, host = listener
    os.seteuid(FIRST_TOOL_UID)
    try:
        dialling = socket.socket(socket.AF_INET6 if host == "::1" else socket.AF_INET)
    finally:
        os.seteuid(0)
    with closing(dialling):
        dialling.connect((host.removeprefix("::ffff:"), listening.getsockname()[1]))
        accepted, peer = listening.accept()
        with closing(accepted):
            assert uid_of(peer[0], peer[1], listening.getsockname()[1]) == FIRST_TOOL_UID
            own_port = listening.getsockname()[1]
            assert OwnCodeDetector().is_tool({"client": peer[:2], "server": ("", own_port)})
            guard = Guard(Access(), own_code=OwnCodeDetector(has_token=False))
            assert guard.check_source(scope_of(client=peer[:2])) == OF_A_TOOL
