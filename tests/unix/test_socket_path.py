"""Where sockets are: nobody else can use one, replace one, or make us remove something."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import pytest

from arp.unix.socket_path import SocketListener, SocketRefused, connect_to, default_path


def mode(path: Path) -> int:
    return stat.S_IMODE(os.lstat(path).st_mode)


def stale(path: Path) -> None:
    """Leaves a socket file that nobody listens on."""
    with socket.socket(socket.AF_UNIX) as own:
        own.bind(str(path))


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077, 0o777])
def test_the_socket_and_new_directories_are_ours_alone_whatever_the_umask(
    tmp_path: Path, mask: int
) -> None:
    path = tmp_path / "a" / "b" / "s"
    before = os.umask(mask)
    try:
        listener = SocketListener(path)
    finally:
        os.umask(before)
    assert [mode(one) for one in (tmp_path / "a", path.parent, path)] == [0o700, 0o700, 0o600]
    listener.close()


def test_it_can_be_connected_to_and_is_removed_at_the_end(tmp_path: Path) -> None:
    listener = SocketListener(tmp_path / "s")
    with connect_to(tmp_path / "s") as ours, listener.accept() as theirs:
        theirs.send(b"x")
        assert ours.recv(1) == b"x"
    listener.close()
    listener.close()
    assert not (tmp_path / "s").exists()


def test_a_stale_socket_is_replaced(tmp_path: Path) -> None:
    stale(tmp_path / "s")
    listener = SocketListener(tmp_path / "s")
    connect_to(tmp_path / "s").close()
    listener.close()


def test_a_socket_with_a_listener_is_not_replaced(tmp_path: Path) -> None:
    listener = SocketListener(tmp_path / "s")
    with pytest.raises(SocketRefused, match="another server listens there"):
        SocketListener(tmp_path / "s")
    connect_to(tmp_path / "s").close()
    listener.close()


def test_a_listener_removes_its_own_file_and_never_another_one(tmp_path: Path) -> None:
    first = SocketListener(tmp_path / "s")
    (tmp_path / "s").unlink()
    second = SocketListener(tmp_path / "s")
    first.close()
    connect_to(tmp_path / "s").close()
    second.close()


def test_a_symbolic_link_is_refused_and_its_target_stays(tmp_path: Path) -> None:
    """Spec: T3. To a file, to a stale socket, to nothing; on both sides."""
    target = tmp_path / "target"
    for kind in ("file", "socket", "nothing"):
        target.unlink(missing_ok=True)
        if kind == "file":
            target.touch()
        elif kind == "socket":
            stale(target)
        link = tmp_path / "s"
        link.symlink_to(target)
        with pytest.raises(SocketRefused, match="a symbolic link, not a socket"):
            SocketListener(link)
        with pytest.raises(SocketRefused, match="a symbolic link, not a socket"):
            connect_to(link)
        assert link.is_symlink()
        link.unlink()


def test_a_directory_that_is_a_symbolic_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(SocketRefused, match="a symbolic link, not a directory"):
        SocketListener(tmp_path / "link" / "s")


def test_a_file_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "s").write_text("precious")
    with pytest.raises(SocketRefused, match="a file, not a socket; it is not replaced"):
        SocketListener(tmp_path / "s")
    assert (tmp_path / "s").read_text() == "precious"


@pytest.mark.parametrize("open_to", [0o777, 0o1777, 0o770, 0o702])
def test_a_directory_that_others_can_write_to_is_refused(tmp_path: Path, open_to: int) -> None:
    """Also with the sticky bit: who is first there would be the server."""
    (tmp_path / "d").mkdir()
    (tmp_path / "d").chmod(open_to)
    with pytest.raises(SocketRefused, match="others can write to it") as refused:
        SocketListener(tmp_path / "d" / "s")
    assert str(tmp_path / "d" / "arp") in refused.value.message
    SocketListener(tmp_path / "d" / "arp" / "s").close()  # as the message says


def test_a_path_that_no_socket_can_have_is_refused_with_the_limit(tmp_path: Path) -> None:
    with pytest.raises(SocketRefused, match="at most 103"):
        SocketListener(tmp_path / ("x" * 104))
    with pytest.raises(SocketRefused, match="not the path of a socket"):
        connect_to("a\0b")


def test_nobody_there_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        connect_to(tmp_path / "s")
    stale(tmp_path / "s")
    with pytest.raises(ConnectionRefusedError):
        connect_to(tmp_path / "s")


def test_the_usual_socket_is_named_by_the_environment_or_the_session() -> None:
    both = {"ARP_SOCKET": "/x/y", "XDG_RUNTIME_DIR": "/run/user/7"}
    assert default_path(both, "s1") == "/x/y"
    del both["ARP_SOCKET"]
    assert default_path(both, "s1") == "/run/user/7/arp-s1"
    assert default_path(both) == "/run/user/7/arp-default"
    with pytest.raises(SocketRefused, match="cannot be in the name of a file"):
        default_path(both, "../s1")
    with pytest.raises(SocketRefused, match="set ARP_SOCKET"):
        default_path({})


def test_where_users_are_listed_they_can_reach_the_socket(tmp_path: Path) -> None:
    """Who they are is checked when they connect."""
    tmp_path.chmod(0o700)
    listener = SocketListener(tmp_path / "d" / "s", is_shared=True)
    assert mode(tmp_path / "d") == 0o711
    assert mode(tmp_path / "d" / "s") == 0o666
    listener.close()
