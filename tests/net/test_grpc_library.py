"""A process that makes calls of gRPC can start programs."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections import Counter
from typing import Any

PROGRAMS = 150
"""With gRPC's handlers of `fork`, one in 30 of them crashed, or waited for ever."""
WAIT_S = 60


async def ends_of_programs() -> Counter[int | None]:
    """Start programs while calls go to and fro, and count how they end."""
    from arp.net.grpc_library import grpc

    async def echo(request: bytes, context: Any) -> bytes:
        return request

    async def call_on(address: str) -> None:
        async with grpc.aio.insecure_channel(address) as channel:
            call: Any = channel.unary_unary("/test.Test/Echo")
            while True:
                await call(b"x" * 100)

    server = grpc.aio.server()
    method: Any = grpc.unary_unary_rpc_method_handler(echo)
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("test.Test", {"Echo": method}),)
    )
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    callers = [asyncio.create_task(call_on(f"127.0.0.1:{port}")) for _ in range(2)]
    ends: Counter[int | None] = Counter()
    for _ in range(PROGRAMS):
        program = await asyncio.create_subprocess_exec("true")
        ends[await program.wait()] += 1
    for caller in callers:
        caller.cancel()
    await asyncio.gather(*callers, return_exceptions=True)
    await server.stop(0)
    return ends


def test_programs_start_while_calls_are_under_way() -> None:
    code = (
        "import uvloop; from tests.net.test_grpc_library import ends_of_programs; "
        "print(dict(uvloop.run(ends_of_programs())))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=WAIT_S, check=True
    )
    assert done.stdout.strip() == str({0: PROGRAMS})


def test_environment_of_programs_is_as_it_was() -> None:
    code = "import os, arp.net.grpc_library; print(os.environ.get('GRPC_ENABLE_FORK_SUPPORT'))"
    for value in (None, "1"):
        given = {} if value is None else {"GRPC_ENABLE_FORK_SUPPORT": value}
        environment = {**os.environ, **given}
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            timeout=WAIT_S,
            check=True,
            env=environment,
        )
        assert done.stdout.strip() == str(value)
