"""Commands of a session over real sockets: after a reconnect, a kill, and for who comes late."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from pathlib import Path

from arp import ArpClient, Command, connect
from arp.client.callbacks import Callbacks
from arp.client.options import Backoff
from tests.server.processes import Process, start

AGENT = Path(__file__).with_name("coder.py")
WAIT_S = 30.0


class Heard:
    """What `on_commands` was called with, and a wait for it."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self._news = asyncio.Event()

    def __call__(self, commands: Sequence[Command]) -> None:
        self.calls.append(described(commands))
        self._news.set()

    async def last(self, expected: list[str]) -> None:
        """Wait until the last call had these."""
        async with asyncio.timeout(WAIT_S):
            while not self.calls or self.calls[-1] != expected:
                self._news.clear()
                await self._news.wait()


def described(commands: Sequence[Command]) -> list[str]:
    """Return each command with the choice that holds."""
    return [
        " ".join([one.name, *(choice.value for choice in one.choices if choice.current)])
        for one in commands
    ]


async def ask(client: ArpClient, text: str) -> str:
    """Give a command, and return what the agent said."""
    async with asyncio.timeout(WAIT_S):
        turn = await client.ask(text)
    return client.screen.text(turn.id)


async def test_a_client_has_the_commands_of_app_and_session_over_reconnects_and_restarts(
    tmp_path: Path,
) -> None:
    ledger, heard = tmp_path / "ledger.db", Heard()
    server = await start(AGENT, ledger)
    try:
        callbacks = Callbacks(on_commands=heard)
        async with connect(server.http, session_id="s", callbacks=callbacks) as client:
            await heard.last(["export"])
            assert await ask(client, "hi") == "text with small"
            await heard.last(["export", "model small", "compact"])
            assert await ask(client, "/model large") == "model with large"
            await heard.last(["export", "model large", "compact"])
            assert await ask(client, "/export csv") == "exported csv"
            assert described(client.commands) == ["export", "model large", "compact"]
        await server.kill()
        server = await start(AGENT, ledger)
        for transport in ("http", "http+sse"):
            address = server.http.replace("http", transport, 1)
            late = Heard()
            callbacks = Callbacks(on_commands=late)
            async with connect(address, session_id="s", callbacks=callbacks) as client:
                await late.last(["export", "model large", "compact"])
                assert late.calls == [["export"], ["export", "model large", "compact"]]
        async with connect(server.http, session_id="other") as client:
            await client.ready()
            assert described(client.commands) == ["export"]
    finally:
        await server.aclose()


async def test_a_client_whose_server_is_killed_hears_what_changed_while_it_was_gone(
    tmp_path: Path,
) -> None:
    """It comes back by itself with its cursor; the change is in what it missed."""
    ledger, heard = tmp_path / "ledger.db", Heard()
    server = await start(AGENT, ledger)
    relay = Relay(server)
    try:
        await relay.open()
        callbacks, soon = Callbacks(on_commands=heard), Backoff(0.05, 0.1)
        async with connect(
            relay.address, session_id="s", callbacks=callbacks, backoff=soon
        ) as client:
            await ask(client, "hi")
            await heard.last(["export", "model small", "compact"])
            await relay.close()
            await server.kill()
            server = relay.server = await start(AGENT, ledger)
            async with connect(server.http, session_id="s") as other:
                await ask(other, "/model large")
            await relay.open()
            await heard.last(["export", "model large", "compact"])
            assert client.screen.text("t2") == "model with large"
    finally:
        await relay.close()
        await server.aclose()


class Relay:
    """A port that stays when the server behind it is another one, and can be closed meanwhile."""

    def __init__(self, server: Process) -> None:
        self.server = server
        self._port = 0
        self._listening: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    @property
    def address(self) -> str:
        """Where clients dial."""
        return f"http://127.0.0.1:{self._port}"

    async def open(self) -> None:
        """Take connections."""
        self._listening = await asyncio.start_server(self._serve, "127.0.0.1", self._port)
        self._port = self._listening.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Take none, and cut those that are there."""
        if self._listening is not None:
            self._listening.close()
        for writer in self._writers:
            writer.transport.abort()

    async def _serve(self, near: asyncio.StreamReader, to: asyncio.StreamWriter) -> None:
        far, back = await asyncio.open_connection("127.0.0.1", self.server.port)
        self._writers |= {to, back}
        await asyncio.gather(_copy(near, back), _copy(far, to))


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await source.read(1 << 16):
            target.write(data)
            await target.drain()
    target.close()
