"""`arp serve --runtime`: what its flags say about the runtime."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

from arp import connect

SERVE = (sys.executable, "-m", "arp.cli", "serve", "--port", "0", "--ledger", "memory:")


async def test_users_may_switch_to_the_providers_that_flags_name(tmp_path: Path) -> None:
    flags = ("--runtime", "arp.testing:FakeRuntime", "--provider", "there")
    server = await asyncio.create_subprocess_exec(*SERVE, *flags, cwd=tmp_path, stdout=PIPE)
    try:
        assert server.stdout is not None
        line = (await server.stdout.readline()).decode()
        url = line.removeprefix("ARP on ").strip()
        async with asyncio.timeout(15), connect(url, session_id="s") as client:
            turn = await client.ask("/provider there")
            assert client.screen.text(turn.id) == "The provider is now there."
            turn = await client.ask("/provider here")
            refused = "There is no provider 'here' here; choose one of: there."
            assert client.screen.text(turn.id) == refused
    finally:
        server.terminate()
        await server.communicate()
