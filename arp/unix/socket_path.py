"""Paths of Unix sockets: listen at a path that other users cannot replace, and connect to a path.

Theory of operation. A user who can write to the directory of a socket can replace the socket. So
the directory must belong to the user of this process (or to root), and no other user may write to
it. The directory is locked while a stale file is removed and the new one is created. If two servers
start at the same time, one of them therefore listens and the other is refused.

Source: protocol.md 6.
"""

from __future__ import annotations

import errno
import os
import socket
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from arp.protocol.errors import LocalError

MAX_PATH_BYTES = 103
"""Longest path that works on every system.

`sun_path` has 104 bytes on macOS and 108 on Linux, including the final NUL.
"""

SEND_BUFFER_BYTES = 128 << 10
"""Size of the kernel's send buffer (Linux doubles the value)."""

BACKLOG = 128

PRIVATE_DIRECTORY, PRIVATE_SOCKET = 0o700, 0o600
SHARED_DIRECTORY, SHARED_SOCKET = 0o711, 0o666
"""Shared modes, for a server with a list of allowed users: it checks each user who connects."""

SOCKET_VARIABLE, DIRECTORY_VARIABLE = "ARP_SOCKET", "XDG_RUNTIME_DIR"

ANY_SESSION = "default"
"""Name of the socket of a server for all sessions."""


class SocketRefused(LocalError):
    """A path cannot be used for a socket; the message says why, and what to do."""


def default_path(environ: Mapping[str, str], session_id: str | None = None) -> str:
    """Return the default path of a socket: `$ARP_SOCKET`, or a path in `$XDG_RUNTIME_DIR`.

    Args:
        environ: Environment variables.
        session_id: Session of the socket; `None` means all sessions.

    Raises:
        SocketRefused: The environment has neither variable, or a path cannot contain the
            session's name.
    """
    if named := environ.get(SOCKET_VARIABLE):
        return named
    directory = environ.get(DIRECTORY_VARIABLE)
    if not directory:
        raise SocketRefused(
            f"no socket is named: write unix:PATH, or set {SOCKET_VARIABLE} (there is no "
            f"{DIRECTORY_VARIABLE} either)"
        )
    name = ANY_SESSION if session_id is None else session_id
    if "/" in name or "\0" in name:
        raise SocketRefused(f"session {name!r}: it cannot be in the name of a file; name a path")
    return str(Path(directory) / f"arp-{name}")


class SocketListener:
    """A socket that listens at a path; `close` removes the file.

    Args:
        path: Path of the socket file.
        is_shared: Whether other users may connect; the caller checks each of them.

    Raises:
        SocketRefused: Another server listens there, or the path is not safe to use.
    """

    def __init__(self, path: str | Path, *, is_shared: bool = False) -> None:
        self.path = _checked(path)
        _make_directory(self.path.parent, SHARED_DIRECTORY if is_shared else PRIVATE_DIRECTORY)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with _locked(self.path.parent):
                _remove_stale(self.path)
                self._bind(SHARED_SOCKET if is_shared else PRIVATE_SOCKET)
        except BaseException:
            self.socket.close()
            raise

    def _bind(self, mode: int) -> None:
        # On Linux the file gets the mode of the descriptor, so others cannot use it even before
        # the `chmod` below.
        with suppress(OSError):
            os.fchmod(self.socket.fileno(), mode)
        try:
            self.socket.bind(str(self.path))
            os.chmod(self.path, mode)
            self.socket.listen(BACKLOG)
        except OSError as error:
            raise SocketRefused(f"{self.path}: cannot listen there: {error.strerror}") from error
        self.socket.setblocking(False)
        self._identity = _identity(self.path)

    def accept(self) -> socket.socket:
        """Return the next connection.

        Raises:
            BlockingIOError: No connection is waiting.
            OSError: The connection cannot be accepted now.
        """
        accepted, _ = self.socket.accept()
        return _prepared(accepted)

    def close(self) -> None:
        """Stop listening, and remove the file if it is still ours."""
        if self.socket.fileno() < 0:
            return
        with suppress(OSError, SocketRefused), _locked(self.path.parent):
            if _identity(self.path) == self._identity:
                self.path.unlink()
        self.socket.close()


def connect_to(path: str | Path) -> socket.socket:
    """Return a connection to the socket at a path.

    Raises:
        SocketRefused: The file is not a socket, or the path cannot be used.
        OSError: No server accepts connections there now.
    """
    checked = _checked(path)
    if not stat.S_ISSOCK(_kind(checked)):
        raise SocketRefused(f"{checked}: {_kind_name(_kind(checked))}, not a socket")
    own = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        own.setblocking(False)
        own.connect(str(checked))
    except BaseException:
        own.close()
        raise
    return _prepared(own)


def _prepared(own: socket.socket) -> socket.socket:
    own.setblocking(False)
    own.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
    return own


def _checked(path: str | Path) -> Path:
    if "\0" in str(path) or not str(path):
        raise SocketRefused(f"{str(path)!r} is not the path of a socket")
    # Not resolve(): a symbolic link must stay visible, so that it is refused.
    absolute = Path(os.path.abspath(path))
    size = len(os.fsencode(absolute))
    if size > MAX_PATH_BYTES:
        raise SocketRefused(
            f"{absolute}: {size} bytes, and the path of a socket has at most {MAX_PATH_BYTES}; "
            "choose a shorter one"
        )
    return absolute


def _make_directory(directory: Path, mode: int) -> None:
    """Create a directory and its missing parents, and check that it is safe.

    Raises:
        SocketRefused: It cannot be created, is not a directory, or other users can write to it.
    """
    missing = [one for one in (directory, *directory.parents) if not _exists(one)]
    try:
        for one in reversed(missing):
            with suppress(FileExistsError):
                one.mkdir(mode=mode)
                one.chmod(mode)  # `mkdir` applies the umask
    except OSError as error:
        raise SocketRefused(f"{directory}: cannot be created: {error.strerror}") from error
    found = os.lstat(directory)
    if not stat.S_ISDIR(found.st_mode):
        raise SocketRefused(
            f"{directory}: {_kind_name(found.st_mode)}, not a directory; name the directory of the "
            "socket itself"
        )
    if found.st_uid not in (os.geteuid(), 0) or found.st_mode & 0o022:
        raise SocketRefused(
            f"{directory}: others can write to it, so they could replace the socket; choose a "
            f"directory of your own, such as {directory / 'arp'} (created with mode 0700)"
        )


def _exists(path: Path) -> bool:
    return os.path.lexists(path)


def _remove_stale(path: Path) -> None:
    """Remove the file of a socket that no server listens on.

    Raises:
        SocketRefused: A server listens on it, or it is another kind of file.
    """
    if not _exists(path):
        return
    kind = _kind(path)
    if not stat.S_ISSOCK(kind):
        raise SocketRefused(
            f"{path}: {_kind_name(kind)}, not a socket; it is not replaced. Choose another path"
        )
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        found = probe.connect_ex(str(path))
    if found == errno.ECONNREFUSED:
        path.unlink()
    elif found != errno.ENOENT:
        raise SocketRefused(
            f"{path}: another server listens there; stop it, or choose another path"
        )


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Lock a directory during a block, so that no other server creates or removes a socket."""
    import fcntl

    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _kind(path: Path) -> int:
    return os.lstat(path).st_mode


def _kind_name(mode: int) -> str:
    if stat.S_ISLNK(mode):
        return "a symbolic link"
    return "a directory" if stat.S_ISDIR(mode) else "a file"


def _identity(path: Path) -> tuple[int, int]:
    found = os.lstat(path)
    return found.st_dev, found.st_ino
