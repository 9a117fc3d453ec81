"""A mixed load over a long time: the CPU time of a turn and the server's memory over time.

Clients connect and disconnect over a pool of sessions: all run turns, some also list or search
chats, subscribe to a session from its first fact, upload a file, or send invalid data. Each kind
has a fixed share of the turns, so that the CPU time per turn of two windows can be compared. At the
end all clients disconnect, the sessions are evicted, and the memory of the server is measured.

A client without a cursor to resume from gets the newest 50 turns, so a visit costs more in a longer
session, up to 50 turns. That growth is intended and would hide an unintended one: therefore a
session ends after `TURNS_PER_SESSION` turns and a new one replaces it in the pool. With
`--turns-per-session 1000` the growth is visible, beside the kilobytes that a visit receives.

    python -m tests.bench.soak --minutes 20
    python -m tests.bench.soak --minutes 2 --only turns,search
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import count

import httpx
import msgspec
import websockets
from msgspec import Struct

from tests.bench.figures import Figure, report
from tests.bench.servers import Server, running

SESSIONS = 980
WORKERS = 24
TURNS_PER_VISIT = 3
TURNS_PER_SESSION = 12
EVERY = {"list": 4, "search": 8, "follow": 10, "upload": 12, "junk": 5}
"""Action → every how many visits it is done."""

WINDOWS = 10
WAIT_S = 60.0
"""A wait that takes longer fails."""

REST_S = 60.0
"""How long the eviction of all sessions may take at the end: `idle_s` of the agent is 8."""

GIVEN_BACK_S = 6.0
"""Three rounds of the task that stores states and returns memory to the system."""

GROWTH = 1.3
"""The highest ratio of the CPU per turn in the last windows to that in the first ones."""

HELD = 2.0
"""The highest ratio of the memory at the end to that after the first window."""

_JUNK = (
    b"\xff\xfe\x00",
    '{"v":1,"type":"input"}',
    '{"v":1,"type":"hello","capabilities":7}',
    "[" * 2000,
    '{"v":1,"type":"input","input_type":"resize","data":{}}',
)


class Sample(Struct, frozen=True):
    """One window of the run."""

    minutes: float
    """Since the beginning, at the end of the window."""
    turns: int
    cpu_ms_per_turn: float
    kb_per_visit: float
    """Received by a client over its WebSocket: the snapshot and its turns."""
    memory_mb: float
    sessions: int
    """In the server's memory."""


class Options(Struct, frozen=True):
    """The options of the load."""

    kinds: frozenset[str] = frozenset(EVERY)
    sessions: int = SESSIONS
    turns_per_session: int = TURNS_PER_SESSION
    seed: int = 1


class Load:
    """The clients of one server."""

    def __init__(self, port: int, options: Options) -> None:
        self.turns = 0
        self.visits = 0
        self.received_bytes = 0
        self._options = options
        self._base = f"127.0.0.1:{port}"
        self._random = random.Random(options.seed)
        self._http = httpx.AsyncClient(base_url=f"http://{self._base}", timeout=WAIT_S)
        self._inputs = count(1)
        self._taken = [0] * options.sessions
        """Turns of each place of the pool so far."""

    async def run(self, until: float) -> None:
        """Let clients connect and disconnect until a time of the monotonic clock."""
        async with self._http, asyncio.TaskGroup() as group:
            for _ in range(WORKERS):
                group.create_task(self._visit_again(until))

    async def _visit_again(self, until: float) -> None:
        number = 0
        actions: dict[str, Callable[[str], Awaitable[object]]] = {
            "list": self._list,
            "search": self._search,
            "follow": self._follow,
            "upload": self._upload,
            "junk": self._junk,
        }
        while time.monotonic() < until:
            number += 1
            place = self._random.randrange(len(self._taken))
            session_id = f"soak-{place}-{self._taken[place] // self._options.turns_per_session}"
            self._taken[place] += TURNS_PER_VISIT
            await self._take_turns(session_id)
            for kind, action in actions.items():
                if kind in self._options.kinds and number % EVERY[kind] == 0:
                    await action(session_id)

    async def _take_turns(self, session_id: str) -> None:
        async with websockets.connect(f"ws://{self._base}/_arp/v1", compression=None) as socket:
            await socket.send(_hello(session_id))
            for number in range(TURNS_PER_VISIT):
                text = f"Show the sales of {self._random.choice(_WORDS)} {number}"
                input_id = str(next(self._inputs))
                await socket.send(_input(session_id, text, input_id))
                turn_id = None
                while True:
                    data = await asyncio.wait_for(socket.recv(), WAIT_S)
                    self.received_bytes += len(data)
                    message = msgspec.json.decode(data)
                    if message["type"] == "ack" and message["id"] == input_id:
                        turn_id = message["turn_id"]
                    if message.get("final") and message.get("turn_id") == turn_id:
                        break
                self.turns += 1
        self.visits += 1

    async def _list(self, _: str) -> None:
        (await self._http.get("/_api/chats")).raise_for_status()

    async def _search(self, _: str) -> None:
        words = " ".join(self._random.sample(_WORDS, 2))
        (await self._http.get("/_api/chats", params={"query": words})).raise_for_status()

    async def _follow(self, session_id: str) -> None:
        """Subscribe to all facts of a session and read up to the last one."""
        async with websockets.connect(f"ws://{self._base}/_api/rpc", compression=None) as socket:
            params = {"sessionId": session_id, "after": 0}
            call = {"jsonrpc": "2.0", "id": 1, "method": "agentSession/subscribe", "params": params}
            await socket.send(msgspec.json.encode(call).decode())
            with suppress(TimeoutError):
                while True:
                    await asyncio.wait_for(socket.recv(), 0.2)

    async def _upload(self, session_id: str) -> None:
        files = {"file": ("notes.txt", self._random.randbytes(40_000), "text/plain")}
        data = {"message": _input(session_id, "Here is a file", str(next(self._inputs)), "file")}
        (await self._http.post("/_arp/v1/input", data=data, files=files)).raise_for_status()
        self.turns += 1

    async def _junk(self, _: str) -> None:
        async with websockets.connect(f"ws://{self._base}/_arp/v1", compression=None) as socket:
            with suppress(websockets.ConnectionClosed, TimeoutError):
                for junk in _JUNK:
                    await socket.send(junk)
                await asyncio.wait_for(socket.recv(), 0.2)


_WORDS = ["apples", "boats", "cars", "doors", "engines", "flowers", "guitars", "houses", "islands"]


def _hello(session_id: str) -> str:
    capabilities = {"components": ["text", "table"], "features": ["streaming", "resume"]}
    hello = {"v": 1, "type": "hello", "session_id": session_id, "capabilities": capabilities}
    return msgspec.json.encode(hello).decode()


def _input(session_id: str, text: str, input_id: str, kind: str = "text") -> str:
    data = {"text": text, "files": []} if kind == "file" else {"text": text}
    head = {"v": 1, "type": "input", "session_id": session_id, "id": input_id}
    return msgspec.json.encode({**head, "input_type": kind, "data": data}).decode()


# -- measuring -----------------------------------------------------------------------------------


async def measure(server: Server, minutes: float, options: Options) -> list[Sample]:
    """Run the load and return one sample for each window."""
    load = Load(server.port, options)
    began = time.monotonic()
    clients = asyncio.create_task(load.run(began + minutes * 60))
    samples: list[Sample] = []
    for number in range(1, WINDOWS + 1):
        cpu_s, turns, visits, received = (
            server.cpu_s(),
            load.turns,
            load.visits,
            load.received_bytes,
        )
        ends = began + number * minutes * 60 / WINDOWS
        await asyncio.wait([clients], timeout=max(0.0, ends - time.monotonic()))
        received_kb = (load.received_bytes - received) / 1000
        samples.append(
            Sample(
                round((time.monotonic() - began) / 60, 2),
                load.turns - turns,
                round((server.cpu_s() - cpu_s) * 1000 / max(1, load.turns - turns), 2),
                round(received_kb / max(1, load.visits - visits), 1),
                round(server.memory_bytes() / 1e6, 1),
                await sessions_in_memory(server.port),
            )
        )
        print(_line(samples[-1]), flush=True)
    await clients
    return samples


def _line(sample: Sample) -> str:
    return (
        f"{sample.minutes:6.2f} min  {sample.turns:6} turns"
        f"  {sample.cpu_ms_per_turn:6.2f} ms a turn"
        f"  {sample.kb_per_visit:6.1f} kB a visit"
        f"  {sample.memory_mb:6.1f} MB  {sample.sessions:4} sessions"
    )


async def sessions_in_memory(port: int) -> int:
    """Return how many sessions the server has in memory."""
    async with httpx.AsyncClient(timeout=WAIT_S) as http:
        text = (await http.get(f"http://127.0.0.1:{port}/metrics")).text
    return int(float(text.split("\narp_sessions ", 1)[1].split("\n", 1)[0]))


async def rest(port: int) -> None:
    """Wait until all sessions are evicted and their memory is returned to the system."""
    deadline = time.monotonic() + REST_S
    for _ in range(int(REST_S)):
        if not await sessions_in_memory(port):
            await asyncio.sleep(GIVEN_BACK_S)
            return
        await asyncio.sleep(max(0.0, min(1.0, deadline - time.monotonic())))
    raise TimeoutError(f"sessions are still in memory {REST_S} s after the last client left")


def figures(samples: list[Sample], rest_mb: float) -> list[Figure]:
    """Compare the last windows with the first ones, except the very first, which warms up."""
    first, last = samples[1:4], samples[-3:]
    before, after = (sum(one.cpu_ms_per_turn for one in some) / len(some) for some in (first, last))
    growth, held = after / before, rest_mb / samples[0].memory_mb
    return [
        Figure(
            "CPU per turn at the end, against the beginning",
            "ms",
            after,
            before,
            growth,
            target=GROWTH,
            met=growth <= GROWTH,
        ),
        Figure(
            "memory when all have left, against the first window",
            "MB",
            rest_mb,
            samples[0].memory_mb,
            held,
            target=HELD,
            met=held <= HELD,
        ),
    ]


def main() -> int:
    """Run the soak test; return 1 if a limit is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--only", default=",".join(EVERY), help="what is done besides turns")
    parser.add_argument("--sessions", type=int, default=SESSIONS)
    parser.add_argument("--turns-per-session", type=int, default=TURNS_PER_SESSION)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    options = Options(
        frozenset(args.only.split(",")), args.sessions, args.turns_per_session, args.seed
    )
    with tempfile.TemporaryDirectory(prefix="arp-soak-") as folder:
        command = (*COMMAND, "--ledger", f"sqlite:{folder}/ledger.db")
        with running(command, is_ours=True) as server:
            samples = asyncio.run(measure(server, args.minutes, options))
            asyncio.run(rest(server.port))
            found = figures(samples, server.memory_bytes() / 1e6)
    report("soak", found)
    return 0 if all(one.met for one in found) else 1


COMMAND = (sys.executable, "-m", "arp.cli", "serve", "tests/bench/soak_agent.py", "--port", "0")

if __name__ == "__main__":
    sys.exit(main())
