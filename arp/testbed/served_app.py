"""`ServedApp`: an app that is served to tests in this process, with ledger, users and renderers.

Theory of operation. The app runs in the same ASGI application as on a server, with a ledger in a
temporary folder. Renderers connect to it like clients, with headers and cookies; only a `user` that
a test names needs no credential. A restart stops all parts of the server, and starts them again
from the ledger.
"""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    closing,
)
from pathlib import Path
from typing import Unpack

import httpx

from arp.access.guard import Guard
from arp.access.incoming import IncomingConnection, Scope
from arp.access.principal import Principal, User
from arp.app import App
from arp.server.application import Application
from arp.server.state import ServerState
from arp.testbed.asgi_lifespan import Lifespan
from arp.testbed.asgi_link import HOST, AsgiApp, AsgiLink, handshake, headers_of
from arp.testbed.virtual_clock import VirtualClock
from arp.testbed.virtual_renderer import TIMEOUT_S, ConnectOptions, EntryPoint, VirtualRenderer

USER_HEADER = "x-arp-testing-user"
"""Header with the number of a user that a test has named."""


class ServedApp:
    """A served app; see `serve`.

    Args:
        app: The app.
        inside: ASGI application that mounts the app; `None` if the app is not mounted.
        at: Path of the app in `inside`.
        ledger: Ledger of the test; `None` means a temporary one.
    """

    def __init__(
        self, app: App, *, inside: AsgiApp | None = None, at: str = "", ledger: str | None = None
    ) -> None:
        if not isinstance(app, App):
            kind = type(app).__name__
            raise TypeError(f"expected an App, got {kind}; pass another application as inside=…")
        self.app = app
        self._clock = VirtualClock()
        self._folder = Path(tempfile.mkdtemp(prefix="arp-testing-"))
        self._ledger = ledger or f"sqlite:{self._folder / 'ledger.db'}"
        self._is_own = ledger is None
        self._at = at.rstrip("/")
        self._application = app.asgi if inside is not None else Application(app.served())
        self._before = self._application.state
        self._asgi: AsgiApp = inside or self._application
        self._lifespan = Lifespan(self._asgi)
        self._users: dict[str, User] = {}
        self._restarts = 0
        self._is_up = asyncio.Event()
        """Set while renderers may connect."""

    # -- life ------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start the app like a new process."""
        self._application.state = state = ServerState(
            self.app.served(ledger=self._ledger, debug=True)
        )
        state.guard = _GuardWithNamedUsers(state.guard, self._users)
        self._lifespan = Lifespan(self._asgi)
        await self._lifespan.start()
        await state.hub()
        self._is_up.set()

    async def stop(self) -> None:
        """Stop the app."""
        self._is_up.clear()
        state = self._application.state
        await self._lifespan.stop()
        await state.aclose()

    async def restart(self, *, crash: bool = False) -> None:
        """Stop the server and start it again with its ledger; renderers reconnect by themselves.

        Args:
            crash: Whether to simulate `kill -9`. The new server then has only the facts that are
                durable now, and running turns cannot finish.

        Raises:
            ValueError: `crash` is true and the test provided the ledger.
        """
        if not crash:
            await self.stop()
        elif not self._is_own:
            raise ValueError("restart(crash=True) needs a temporary ledger; leave out ledger=…")
        else:
            self._restarts += 1
            survivor = self._folder / f"after-{self._restarts}"
            source = Path(self._ledger.removeprefix("sqlite:"))
            _copy_durable(source, survivor)
            self._ledger = f"sqlite:{survivor / source.name}"
            self._application.state.hurry()
            await self.stop()
        await self.start()

    async def aclose(self) -> None:
        """Stop the app and remove its ledger."""
        try:
            self._application.state.hurry()
            await self.stop()
        finally:
            self._clock.remove()
            self._application.state = self._before
            shutil.rmtree(self._folder, ignore_errors=True)

    async def advance(self, seconds: float) -> None:
        """Advance the clock: deadlines of questions, timers of agents, expiry of tokens."""
        await self._clock.advance(seconds, self._written)

    async def _written(self) -> None:
        hub = self._application.state.running
        if hub is not None:
            await hub.writer.turnover()

    # -- connections -----------------------------------------------------------------------------

    def session(
        self, **options: Unpack[ConnectOptions]
    ) -> AbstractAsyncContextManager[VirtualRenderer]:
        """Connect a renderer to the session `session_id`, or to a new session.

        Entering raises an `ArpError` if the connection is refused, or the session belongs to
        another user.
        """
        headers, user = dict(options.get("headers", {})), options.get("user")
        if user is not None:
            known = user if isinstance(user, User) else User(user)
            headers[USER_HEADER] = str(len(self._users))
            self._users[headers[USER_HEADER]] = known
        entry = EntryPoint(self, headers, dict(options.get("cookies", {})))
        return VirtualRenderer(
            entry,
            level=options.get("level", "full"),
            timeout_s=options.get("timeout_s", TIMEOUT_S),
            session_id=options.get("session_id"),
            workflow=options.get("workflow"),
            locale=options.get("locale"),
            time_zone=options.get("time_zone"),
        )

    async def open_link(
        self, hello: bytes, headers: Mapping[str, str], cookies: Mapping[str, str]
    ) -> AsgiLink:
        """Wait until the app has started, and connect a WebSocket.

        Raises:
            LinkLost: The app refused the connection.
        """
        await self._is_up.wait()
        link = AsgiLink()
        scope = handshake(f"{self._at}/_arp/v1", headers_of(headers, cookies))
        await link.open(self._asgi, scope, hello)
        return link

    def http(
        self, headers: Mapping[str, str] | None = None, cookies: Mapping[str, str] | None = None
    ) -> httpx.AsyncClient:
        """Return a client for the HTTP routes: `await served.http().get("/_api/chats")`."""
        return httpx.AsyncClient(
            transport=httpx.ASGITransport(self._asgi),
            base_url=f"http://{HOST}{self._at}",
            headers={"origin": f"http://{HOST}", **(headers or {})},
            cookies=dict(cookies or {}),
        )


class _GuardWithNamedUsers(Guard):
    """The guard of an app, extended to accept users that a test has named."""

    def __init__(self, guard: Guard, users: Mapping[str, User]) -> None:
        self.__dict__.update(vars(guard))
        self._users = users

    async def principal(self, scope: Scope) -> Principal | None:
        name = IncomingConnection(scope).headers.get(USER_HEADER, "")
        user = self._users.get(name)
        if user is None:
            return await super().principal(scope)
        is_admin = self._admin_role is not None and self._admin_role in user.roles
        return Principal(user.name, known_as=user, is_admin=is_admin)


def _copy_durable(source: Path, folder: Path) -> None:
    """Copy the durable state of a ledger, and the other files of its directory."""
    folder.mkdir()
    with (
        closing(sqlite3.connect(source)) as before,
        closing(sqlite3.connect(folder / source.name)) as after,
    ):
        before.backup(after)
    for beside in source.parent.iterdir():
        if beside.name.startswith((f"{source.name}-", "after-")) or beside == source:
            continue  # the backup above includes the write-ahead log
        target = folder / beside.name
        if beside.is_dir():
            shutil.copytree(beside, target, ignore=_is_in_copy, copy_function=_copy_file)
        else:
            shutil.copy2(beside, target)


def _is_in_copy(folder: str, names: list[str]) -> list[str]:
    """Return the files to skip: the backup of a database includes its `-wal` and `-shm` files."""
    return [name for name in names if name.endswith(("-wal", "-shm"))]


def _copy_file(source: str, target: str) -> None:
    """Copy a file; copy a database by a backup, so that the copy holds no unfinished write."""
    if not source.endswith(".db"):
        shutil.copy2(source, target)
        return
    with closing(sqlite3.connect(source)) as before, closing(sqlite3.connect(target)) as after:
        before.backup(after)


@asynccontextmanager
async def serve(
    app: App, *, inside: AsgiApp | None = None, at: str = "", ledger: str | None = None
) -> AsyncIterator[ServedApp]:
    """Serve an app to a test, for several users, renderers and sessions.

    Args:
        app: The app.
        inside: Application that mounts the app, such as a FastAPI application. All connections go
            through it, and its lifespan runs.
        at: Path of the app in `inside`, such as `/agent`.
        ledger: Ledger, such as `sqlite:PATH`; `None` means a temporary ledger.
    """
    served = ServedApp(app, inside=inside, at=at, ledger=ledger)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(served.aclose)
        await served.start()
        yield served


@asynccontextmanager
async def session(
    app: App,
    *,
    inside: AsgiApp | None = None,
    at: str = "",
    ledger: str | None = None,
    **options: Unpack[ConnectOptions],
) -> AsyncIterator[VirtualRenderer]:
    """Serve an app to a test, with one renderer on a new session.

    Args:
        app: The app.
        inside: See `serve`.
        at: See `serve`.
        ledger: See `serve`.
        **options: User, credentials and renderer of the connection; see `ConnectOptions`.
    """
    async with (
        serve(app, inside=inside, at=at, ledger=ledger) as served,
        served.session(**options) as renderer,
    ):
        yield renderer
