"""Servers that are ended and started again: where they are, and each of their lives."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import psutil

from arp.client.options import Backoff
from arp.ledger.fact import Fact, decode
from arp.store.sqlite import SqliteStore

ROOT = Path(__file__).parents[2]
START_S = 150.0
"""A framework takes seconds of a processor to import."""
STOP_S = 30.0
SOON = Backoff(first_s=0.02, most_s=0.1)
"""Clients are back as soon as the server is."""
ENDINGS = ("sigterm", "sigterm-twice", "sigkill", "reload")


class Place:
    """The directory, the port and the ledger that all lives of one server share.

    Args:
        agents: Of `stopped_agents`; each has a directory of its own.
        directory: An empty directory.
        model: Address of the fake model.
    """

    def __init__(self, agents: Sequence[str], directory: Path, model: str = "") -> None:
        self.directory, self.model = directory, model
        for agent in agents:
            (self.place_of(agent) / "cwd").mkdir(parents=True)
        self.ledger = directory / "ledger.db"
        self.port = free_port()
        self.agents = {agent: agent for agent in agents}
        """By its name what `app_of` gets of it; of a remote one its address."""
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "OPENAI_API_KEY": "none",
        }

    def place_of(self, agent: str) -> Path:
        """Return the directory of an agent."""
        return self.directory / agent.replace(":", "-")

    @property
    def http(self) -> str:
        """Address of the server, the same in each of its lives."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def app_file(self) -> Path:
        """File of the app, in a directory of its own, which `--reload` watches."""
        return self.directory / "app" / "app.py"

    def app(self) -> Path:
        """Return the file of the app; write it, unless there is one."""
        path = self.app_file
        if not path.exists():
            path.parent.mkdir()
            agents = {name: (of, str(self.place_of(name))) for name, of in self.agents.items()}
            path.write_text(
                "from tests.runtime.stopped_agents import app_of\n"
                f"app = app_of({agents!r}, {self.model!r})\n"
            )
        return path

    def ran(self) -> list[tuple[str, str]]:
        """Return what tools have written, with the agent, for each time that they ran; sorted."""
        return sorted(
            (agent, word)
            for agent in self.agents
            for file in (self.place_of(agent) / "cwd").glob("*.ran")
            for word in file.read_text().split()
        )


async def facts_of(ledger: Path, session_id: str) -> list[Fact]:
    """Return what a ledger has of a session, also while a server writes it."""
    store = SqliteStore(ledger, read_only=True)
    await store.open()
    try:
        return [decode(body) for _, body in await store.read(session_id, 0, 10_000)]
    finally:
        await store.aclose()


def free_port() -> int:
    """Return a port on which nobody listens."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


class Life:
    """One life of the server, or with `--reload` several."""

    def __init__(self, child: asyncio.subprocess.Process, ending: str) -> None:
        self.child, self.ending = child, ending

    @classmethod
    async def begin(cls, place: Place, ending: str = "sigterm") -> Life:
        """Start the server, and wait until it is ready."""
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "arp.cli", "serve", str(place.app())),
            *("--port", str(place.port), "--ledger", f"sqlite:{place.ledger}", "--no-token"),
            *(("--reload",) if ending == "reload" else ()),
            env=place.environment,
            cwd=place.directory,
            stdout=asyncio.subprocess.PIPE,
        )
        life = cls(child, ending)
        try:
            await life.ready()
        except BaseException:
            await life.kill()
            raise
        return life

    async def ready(self) -> None:
        """Wait until it says where it is."""
        assert self.child.stdout is not None
        async with asyncio.timeout(START_S):
            while not (line := (await self.child.stdout.readline()).decode()).startswith("ARP on"):
                assert line, "the server did not start"

    async def kill(self) -> None:
        """End it at once, if it has not ended; with `--reload` the child that serves, too."""
        if self.child.returncode is None:
            with suppress(ProcessLookupError, psutil.NoSuchProcess):
                below = psutil.Process(self.child.pid).children(recursive=True)
                self.child.kill()
                for process in below:
                    process.kill()
        await self.child.wait()

    async def end(self, place: Place) -> Life:
        """End the server in its way, and start it again."""
        child = self.child
        match self.ending:
            case "reload":
                stamp = place.app_file.stat().st_mtime_ns + 1_000_000_000
                os.utime(place.app_file, ns=(stamp, stamp))
                await self.ready()
                return self
            case "sigkill":
                child.kill()
            case _:
                child.send_signal(signal.SIGTERM)
                if self.ending == "sigterm-twice":
                    child.send_signal(signal.SIGTERM)
        async with asyncio.timeout(STOP_S):
            code = await child.wait()
        assert code == (-signal.SIGKILL if self.ending == "sigkill" else 0)
        return await Life.begin(place, self.ending)

    async def stop(self) -> None:
        """Stop it at the end of the test: its ledger is whole then."""
        if self.child.returncode is None:
            self.child.terminate()
            try:
                async with asyncio.timeout(STOP_S):
                    await self.child.wait()
            finally:
                await self.kill()


@asynccontextmanager
async def remote_runtimes(place: Place) -> AsyncIterator[None]:
    """Serve the runtimes of remote agents in processes of their own, which outlive servers."""
    async with AsyncExitStack() as stack:
        remote = [agent for agent in place.agents if agent in ("grpc", "http")]
        started = [stack.enter_async_context(_serving_runtime(place, one)) for one in remote]
        place.agents.update(zip(remote, await asyncio.gather(*started), strict=True))
        yield


@asynccontextmanager
async def _serving_runtime(place: Place, agent: str) -> AsyncIterator[str]:
    """Serve a runtime, and return its address."""
    asking = f"function|{place.place_of(agent)}|{place.model}"
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "arp.cli", "ari", "serve", f"--{agent}", ":0"),
        *("--runtime", "tests.runtime.stopped_agents:served_runtime"),
        env={**place.environment, "ASKING": asking},
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert child.stdout is not None
        async with asyncio.timeout(START_S):
            line = (await child.stdout.readline()).decode()
        assert line.startswith("ARI on "), line
        yield line.removeprefix("ARI on ").strip()
    finally:
        child.terminate()
        await child.wait()
