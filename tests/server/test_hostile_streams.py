"""Attacks on the framings, over real sockets: bombs cost their sender, and nobody else."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import grpc
import grpc.aio
import pytest

from arp.client.client import connect
from arp.protocol.framing.envelope import CONNECT, seal, unseal
from arp.protocol.framing.length_prefix import prefixed
from arp.unix.socket_path import connect_to
from tests.protocol.test_framing_fuzz import mutated

AGENT = Path(__file__).with_name("scripted.py")
MOST_GROWTH = 24 << 20
LARGEST_FRAME = 4 << 20


class Attacked(NamedTuple):
    """A server and where it is reached."""

    pid: int
    path: Path
    target: str

    def memory(self, what: str = "VmRSS") -> int:
        """Return its resident memory, or the most that was ever resident (`VmHWM`), in bytes."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith(what)).split()[1]) << 10

    async def is_well(self) -> bool:
        """Return whether both transports still serve."""
        for url in (f"unix:{self.path}", f"grpc:{self.target}"):
            async with asyncio.timeout(20), connect(url) as client:
                if (await client.ask("fail")).status != "failed":
                    return False
        return True


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacked]:
    folder = tmp_path_factory.mktemp("hostile")
    command = (
        *(sys.executable, "-m", "arp.cli", "serve", str(AGENT), "--port", "0"),
        *("--ledger", f"sqlite:{folder}/l.db", "--unix", f"{folder}/s", "--grpc", "0"),
    )
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            words = [process.stdout.readline().decode().split()[-1] for _ in range(3)]
            target = next(word for word in words if word.startswith("grpc:"))
            yield Attacked(process.pid, folder / "s", target.removeprefix("grpc:"))
            assert process.poll() is None, "the server has ended"
        finally:
            process.kill()


def opened(stack: AsyncExitStack, server: Attacked) -> socket.socket:
    own = connect_to(server.path)
    stack.callback(own.close)
    own.setblocking(True)
    return own


async def test_what_is_announced_and_not_sent_costs_no_memory(server: Attacked) -> None:
    """A hundred connections announce the largest frame there may be: 400 MB, and send a byte."""
    assert await server.is_well()
    before = server.memory()
    async with AsyncExitStack() as stack:
        for _ in range(100):
            own = opened(stack, server)
            own.sendall(LARGEST_FRAME.to_bytes(4, "big") + b"{")
        assert await server.is_well()
        grown = server.memory() - before
    assert grown < MOST_GROWTH


async def test_random_streams_over_sockets_end_their_own_connection_alone(
    server: Attacked, fuzz: Random
) -> None:
    good = prefixed([json.dumps({"v": 1, "type": "hello"}).encode()] * 3)
    async with AsyncExitStack() as stack:
        for _ in range(100):
            own = opened(stack, server)
            data = mutated(good, fuzz) if fuzz.random() < 0.5 else fuzz.randbytes(200)
            own.sendall(data)
        assert await server.is_well()


async def begun(server: Attacked, stack: AsyncExitStack, **options: Any) -> Any:
    channel = await stack.enter_async_context(
        grpc.aio.insecure_channel(
            server.target, options=[("grpc.use_local_subchannel_pool", 1)], **options
        )
    )
    call: Any = channel.stream_stream(CONNECT)(timeout=30)
    await call.read()
    return call


async def test_a_compression_bomb_ends_its_call(server: Attacked) -> None:
    """256 MB of zeros are 250 kB on the wire; they are not unpacked beyond the limit."""
    assert await server.is_well()
    before = server.memory("VmHWM")
    async with AsyncExitStack() as stack:
        call = await begun(server, stack, compression=grpc.Compression.Gzip)
        await call.write(seal(bytes(256 << 20)))
        with suppress(grpc.aio.AioRpcError):
            while await call.read() is not grpc.aio.EOF:
                pass
        assert await call.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert await server.is_well()
    assert server.memory("VmHWM") - before < MOST_GROWTH


@pytest.mark.parametrize("bomb", [b"[" * 1_000_000, b'{"a":' * 200_000, b"1" * 1_000_000])
async def test_nesting_and_number_bombs_get_a_coded_error(server: Attacked, bomb: bytes) -> None:
    async with AsyncExitStack() as stack:
        call = await begun(server, stack)
        await call.write(seal(bomb))
        answer = json.loads(unseal(await call.read()).frame)
        assert answer["type"] == "error"
        assert answer["payload"]["code"] in (4, 11)
        assert await server.is_well()


async def test_bytes_that_are_no_http2_end_their_own_connection_alone(
    server: Attacked, fuzz: Random
) -> None:
    host, _, port = server.target.rpartition(":")
    async with AsyncExitStack() as stack:
        for _ in range(50):
            own = socket.create_connection((host, int(port)), timeout=10)
            stack.callback(own.close)
            own.sendall(fuzz.randbytes(500))
        assert await server.is_well()
