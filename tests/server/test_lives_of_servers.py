"""What a server holds besides its app lives again too: ports, tokens, logins, telemetry."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect as dial

from arp import Access, App, HubSettings, Turn
from arp.access.oidc import Oidc
from arp.access.tokens import IssuedToken, TokenFile, new_token_id
from arp.client.client import connect
from arp.runtime.plain.fake import FakeRuntime
from arp.server.ports.grpc_port import GrpcPort, GrpcSettings
from arp.server.ports.unix_port import UnixPort, UnixSettings
from arp.server.state import ServerState
from arp.testing import session
from arp.unix.socket_path import SocketRefused
from tests.server.identity_provider import CLIENT, SECRET, identity_provider
from tests.support.asgi_serving import serving_asgi
from tests.support.serving import serving
from tests.telemetry.receiver import receiving

WAIT_S = 20.0


def greeting(**more: Any) -> App:
    """Return an app with an agent that says who asks."""
    app = App("Again", **more)

    @app.agent
    async def agent(turn: Turn) -> str:
        return f"hi {turn.user.name}".strip()

    return app


async def test_app_is_served_again_over_every_transport(tmp_path: Path) -> None:
    app = greeting()
    app.runtime(FakeRuntime(cwd=tmp_path))
    for life in range(3):
        path = str(tmp_path / f"s{life}")

        def unix(state: ServerState, path: str = path) -> UnixPort:
            return UnixPort(state, path, UnixSettings())

        def grpc(state: ServerState) -> GrpcPort:
            return GrpcPort(state, GrpcSettings())

        ledger = f"sqlite:{tmp_path / 'ledger.db'}"
        with serving(app, ledger=ledger, ports=[unix, grpc]) as server:
            for url in (server.http, *server.addresses):
                async with connect(url) as client:
                    turn = await client.ask("go")
                    assert client.screen.text(turn.id) == "hi", url
                async with connect(url, workflow="fake") as client:
                    turn = await client.ask("go")
                    assert client.screen.text(turn.id) == "You said: go", url


async def test_port_starts_again_or_says_what_to_do(tmp_path: Path) -> None:
    app = greeting()
    grpc = GrpcPort(app.asgi.state, GrpcSettings())
    unix = UnixPort(app.asgi.state, str(tmp_path / "s"), UnixSettings())
    for _ in range(2):
        await grpc.start()
        async with connect(grpc.address) as client:
            turn = await client.ask("go")
            assert client.screen.text(turn.id) == "hi"
        await grpc.stop()
        await app.asgi.aclose()
    await unix.start()
    await unix.stop()
    with pytest.raises(SocketRefused, match="was closed; make a new UnixPort"):
        await unix.start()


@contextmanager
def connected(url: str, token: str) -> Iterator[Any]:
    headers = {"authorization": f"Bearer {token}"}
    address = f"{url.replace('http', 'ws')}/_arp/v1"
    with dial(address, additional_headers=headers) as socket:
        socket.recv(WAIT_S)
        yield socket


def test_token_that_is_revoked_closes_its_connection_in_every_life(tmp_path: Path) -> None:
    """The timer that looks belongs to the loop of one life."""
    app = greeting(ledger=f"sqlite:{tmp_path / 'l.db'}")
    file = TokenFile(tmp_path / "l.tokens")
    kept = IssuedToken(new_token_id(), "ann", time.time())
    secret = file.create(kept)
    for _ in range(3):
        issued = IssuedToken(new_token_id(), "bob", time.time())
        revoked = file.create(issued)
        with serving_asgi(app.asgi) as url, connected(url, secret) as stays:
            with connected(url, revoked) as socket:
                file.revoke(issued.id, time.time())
                with pytest.raises(ConnectionClosed, match="1008"):
                    deque(iter(lambda: socket.recv(WAIT_S), None))
            stays.ping().wait(WAIT_S)


def signed_in(client: httpx.Client) -> str:
    """Sign in as a browser does, if the provider has to be asked; return who that is."""
    there = client.get("/_login?next=/")
    back = client.get(there.headers["location"])
    assert client.get(back.headers["location"]).status_code == 303
    return who(client)


def who(client: httpx.Client) -> str:
    return str(client.get("/_api/user").json()["user"]["name"])


def test_people_sign_in_at_the_provider_in_every_life(tmp_path: Path) -> None:
    with identity_provider() as provider:
        access = Access(oidc=Oidc(provider.issuer, CLIENT, SECRET))
        app = greeting(access=access, ledger=f"sqlite:{tmp_path / 'l.db'}")
        for life in range(3):
            with serving_asgi(app.asgi) as url, httpx.Client(base_url=url) as client:
                assert signed_in(client) == "ann"
            assert len(provider.asked) == life + 1


def test_telemetry_is_sent_in_every_life(monkeypatch: pytest.MonkeyPatch) -> None:
    app = greeting(settings=HubSettings(telemetry=True))
    with receiving() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{collector.port}")

        async def life() -> None:
            async with session(app) as user:
                await user.say("go")

        for number in range(1, 4):
            asyncio.run(life())
            turns = [one for one in collector.spans if one.name.startswith("invoke_agent")]
            assert len(turns) == number, [one.name for one in collector.spans]
