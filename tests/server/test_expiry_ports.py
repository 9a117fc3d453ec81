"""A revoked token closes what is open with it over Unix sockets and gRPC, too."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from arp import App, Turn
from arp.access.leases import ENDED
from arp.access.tokens import TokenFile
from arp.client.client import connect
from arp.client.events import Disconnected
from arp.live.settings import HubSettings
from arp.protocol.errors import Unauthenticated
from arp.server.ports.grpc_port import GrpcPort, GrpcSettings
from arp.server.ports.unix_port import UnixPort, UnixSettings
from arp.server.serve import Port
from arp.server.state import ServerState
from tests.server.test_expiry import issue
from tests.support.serving import serving

app = App("Expiry", settings=HubSettings(stop_grace_s=0.1))


@app.agent
async def agent(turn: Turn) -> None:
    """Talk until it is stopped."""
    while True:
        await turn.say("secret ")
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("kind", ["unix", "grpc"])
async def test_a_revoked_token_closes_a_connection(kind: str, tmp_path: Path) -> None:
    ledger = tmp_path / "app.db"
    tokens = TokenFile(ledger.with_suffix(".tokens"))
    token, token_id = issue(tokens)
    ports: list[Callable[[ServerState], Port]] = [
        lambda state: UnixPort(state, str(tmp_path / "s"), UnixSettings()),
        lambda state: GrpcPort(state, GrpcSettings()),
    ]
    with serving(app, ledger=f"sqlite:{ledger}", ports=ports) as server:
        address = next(one for one in server.addresses if one.startswith(kind))
        async with asyncio.timeout(20), connect(address, token=token) as client:
            events = client.events()
            turn_id = await client.turn_of(await client.send_text("talk"))
            while not client.screen.text(turn_id):
                await anext(events)
            tokens.revoke(token_id, time.time())
            while not isinstance(event := await anext(events), Disconnected):
                pass
            assert event.reason == f"closed with 1008: {ENDED}"
            assert event.retry_in_s is None, "it does not come back by itself"
        async with asyncio.timeout(20):
            with pytest.raises(Unauthenticated):
                async with connect(address, token=token) as refused:
                    await refused.send_text("again")
