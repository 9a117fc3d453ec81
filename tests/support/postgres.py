"""A real PostgreSQL for tests: a server for each test process, a schema or database for each test.

PostgreSQL refuses to run as root, so root starts it as another user.
"""

from __future__ import annotations

import atexit
import itertools
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import psycopg

from arp.conformance.store.store_under_test import StoreUnderTest
from arp.store.postgres.store import PostgresStore
from arp.store.store import Store
from tests.support.postgres_programs import ENDINGS, end_servers, programs

PASSWORD: Final = "p@ss:/?#[]%&= w\"ord'\\ü"
"""Password of the user of all test databases; it has each character that is special in a URL."""

USER: Final = "arp"

START_S: Final = 60.0
"""Maximum time in seconds for a server to start, to stop, or to create its files."""

_SETTINGS: Final = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "60",
    "shared_buffers": "32MB",
    "log_statement": "none",
    "logging_collector": "off",
    "autovacuum_naptime": "10min",
}


class PostgresServer:
    """A server on a free port of 127.0.0.1, with its files in a temporary directory.

    Args:
        is_durable: Whether commits are synced to the disk; off is faster.
        settings: Further settings.
    """

    def __init__(self, *, is_durable: bool = False, settings: dict[str, str] | None = None) -> None:
        found = programs()
        assert found is not None, "PostgreSQL is missing: make install"
        self.directory = Path(tempfile.mkdtemp(prefix="arp-postgres-"))
        self._owner = _owner()
        if self._owner is not None:
            os.chown(self.directory, self._owner, -1)
        self._programs = _reachable(found, self.directory, self._owner)
        self._settings = _SETTINGS | {"fsync": "on" if is_durable else "off"} | (settings or {})
        self.data = self.directory / "data"
        self.port = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None
        """Process that stops the server if this process is killed."""
        if not ENDINGS:
            atexit.register(end_servers)  # for processes without pytest
        ENDINGS.append(self.end)
        self._create_files()

    @property
    def log(self) -> str:
        """What the server has written to its log."""
        return (self.directory / "log").read_text(errors="replace")

    def location(self, database: str, *, user: str = USER, password: str = PASSWORD) -> str:
        """Return the location of a ledger in a database."""
        account = f"{quote(user, safe='')}:{quote(password, safe='')}"
        return f"postgresql://{account}@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """Start the server and wait until it accepts connections; it keeps its port."""
        is_new = not self.port
        for _ in range(5):
            self.port = free_port() if is_new else self.port
            self._process = self._spawn("postgres", "-D", str(self.data), "-p", str(self.port))
            if self._is_ready():
                self._guard = _guard_of(self._process.pid)
                return
            time.sleep(0.2)  # another process has the port, or a crashed server has not ended yet
        raise AssertionError(f"PostgreSQL does not start: {self.log[-2000:]}")

    def stop(self, number: signal.Signals = signal.SIGINT) -> None:
        """Stop the server; SIGINT ends its connections, SIGKILL is a crash."""
        process, self._process = self._process, None
        guard, self._guard = self._guard, None
        if guard is not None:
            guard.kill()
            guard.communicate()
        if process is None:
            return
        children = _children(process.pid)
        process.send_signal(number)
        process.wait(START_S)
        # After SIGKILL the other processes of the server notice by themselves, and a new server
        # cannot start before they have ended.
        deadline = time.monotonic() + START_S
        while any(map(_is_running, children)) and time.monotonic() < deadline:
            time.sleep(0.02)

    def end(self) -> None:
        """Stop the server and remove its files. May be called again."""
        self.stop(signal.SIGQUIT)
        for _ in range(50):
            shutil.rmtree(self.directory, ignore_errors=True)
            if not self.directory.exists():
                return
            time.sleep(0.1)  # a process of the server is still ending, and writes a file

    def execute(self, statement: str, *values: object, database: str = "postgres") -> list[Any]:
        """Run a statement on a connection of its own and return the rows."""
        with psycopg.connect(self.location(database), autocommit=True) as connection:
            cursor = connection.execute(statement.encode(), values or None)
            return cursor.fetchall() if cursor.description else []

    def create_database(self, name: str, options: str = "") -> str:
        """Create an empty database and return its location."""
        self.execute(f'CREATE DATABASE "{name}" TEMPLATE template0 {options}')
        return self.location(name)

    def _create_files(self) -> None:
        secret = self.directory / "password"
        secret.write_text(PASSWORD)
        if self._owner is not None:
            os.chown(secret, self._owner, -1)
        arguments = ["--auth=scram-sha-256", f"--pwfile={secret}", "--no-sync", "--locale=C"]
        done = self._spawn(
            "initdb", "-D", str(self.data), "-U", USER, "--encoding=UTF8", *arguments
        ).wait(START_S)
        assert done == 0, self.log
        lines = [f"{name} = '{value}'" for name, value in self._settings.items()]
        with (self.data / "postgresql.auto.conf").open("a") as file:
            file.write("\n".join(lines) + "\n")

    def _spawn(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        with (self.directory / "log").open("ab") as log:
            return subprocess.Popen(
                [self._programs / program, *arguments],
                user=self._owner,
                group=None if self._owner is None else pwd.getpwuid(self._owner).pw_gid,
                extra_groups=None if self._owner is None else [],
                cwd=self.directory,
                env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C must not stop it before the tests have ended
            )

    def _is_ready(self) -> bool:
        assert self._process is not None
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                self.execute("SELECT 1")
            except psycopg.OperationalError:
                time.sleep(0.05)
            else:
                return True
        return False


def _guard_of(pid: int) -> subprocess.Popen[bytes]:
    """Start a process that stops a server when the pipe from this process ends."""
    program = 'read -r _; kill -QUIT "$1"'
    return subprocess.Popen(
        ["sh", "-c", program, "sh", str(pid)], stdin=subprocess.PIPE, start_new_session=True
    )


def free_port() -> int:
    """Return a port of 127.0.0.1 that is free now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def _owner() -> int | None:
    """Return the user to run the server as; `None` means the user of this process."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name).pw_uid
        except KeyError:
            continue
    raise AssertionError("root needs a user postgres or nobody to run PostgreSQL")


def _reachable(found: Path, directory: Path, owner: int | None) -> Path:
    """Return the programs, copied if the user of the server may not use the original ones.

    The virtual environment of root may be in a directory that only root can enter.
    """
    if owner is None or all(path.stat().st_mode & 0o001 for path in found.parents):
        return found
    package, copied = found.parents[1], directory / "programs"
    for part in (found.parent, package.with_name(f"{package.name}.libs")):
        shutil.copytree(part, copied / part.relative_to(package.parent), symlinks=True)
    return copied / found.relative_to(package.parent)


def _children(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(one) for one in found.read_text().split()] if found.exists() else []


def _is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


_shared: list[PostgresServer] = []
_numbers = itertools.count(1)


def shared_server() -> PostgresServer:
    """Return the server of this test process; it is stopped when the process ends."""
    if not _shared:
        server = PostgresServer()
        _shared.append(server)
        server.start()
    return _shared[0]


def new_database(server: PostgresServer, options: str = "") -> str:
    """Create an empty database and return its location."""
    return server.create_database(f"test{next(_numbers)}", options)


def new_schema() -> str:
    """Create an empty schema on the shared server and return the location of a ledger in it.

    It is as separate as a database of its own, and is created in milliseconds instead of half a
    second.
    """
    server, name = shared_server(), f"test{next(_numbers)}"
    server.execute(f"CREATE SCHEMA {name}")
    return f"{server.location('postgres')}?options=-csearch_path%3D{name}"


@contextmanager
def pgbouncer(program: str, server: PostgresServer, directory: Path) -> Iterator[int]:
    """Run PgBouncer in transaction mode with two connections to each database; yield its port.

    Args:
        program: Path of PgBouncer.
        server: The server.
        directory: Directory for its files; other users must be able to read it.
    """
    port = free_port()
    password = PASSWORD.replace('"', '""')
    (directory / "users.txt").write_text(f'"{USER}" "{password}"\n')
    lines = [
        "[databases]",
        f"* = host=127.0.0.1 port={server.port}",
        "[pgbouncer]",
        "listen_addr = 127.0.0.1",
        f"listen_port = {port}",
        "unix_socket_dir =",
        "auth_type = scram-sha-256",
        f"auth_file = {directory / 'users.txt'}",
        "pool_mode = transaction",
        "default_pool_size = 2",
    ]
    (directory / "pgbouncer.ini").write_text("\n".join(lines) + "\n")
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(
            [program, str(directory / "pgbouncer.ini")],
            user=_owner(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        _wait_for_port(port, process, directory / "log")
        yield port
    finally:
        process.terminate()
        process.wait(START_S)


def _wait_for_port(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.02)
        else:
            return
    raise AssertionError(f"it does not start: {log.read_text(errors='replace')}")


class PostgresUnderTest(StoreUnderTest):
    """`PostgresStore` for the suite of stores, with a schema for each directory."""

    name = "postgres"

    def __init__(self, location: str) -> None:
        self.location = location

    def make(self) -> Store:
        """Return a new store object for the ledger."""
        return PostgresStore(self.location)

    def damage(self, session_id: str, sequence: int) -> None:
        """Overwrite the row that has the fact."""
        self._execute(
            "UPDATE arp_fact SET facts = decode(repeat('00', octet_length(facts)), 'hex')"
            " WHERE session = %s AND %s BETWEEN first AND last",
            (session_id, sequence),
        )

    def damage_model(self, session_id: str, name: str) -> None:
        """Overwrite the data of the model."""
        self._execute(
            "UPDATE arp_model SET data = decode(repeat('00', octet_length(data)), 'hex')"
            " WHERE session = %s AND name = %s",
            (session_id, name),
        )

    def _execute(self, statement: str, values: Sequence[object]) -> None:
        with psycopg.connect(self.location) as connection:
            connection.execute(statement.encode(), values)


def postgres(directory: Path, /) -> StoreUnderTest:
    """Return the store in a ledger that belongs to a directory, also in another process.

    The first call creates the ledger on the server of its process, and writes the location into the
    directory for the other processes.
    """
    file = directory / "postgres.location"
    if not file.exists():
        file.write_text(new_schema())
    return PostgresUnderTest(file.read_text())
