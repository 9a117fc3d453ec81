"""Two users sign in at a provider and are kept apart: with arp.testing, and with `arp serve`."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from arp import Access, App, Oidc
from arp.protocol.errors import SessionNotFound
from arp.testing import serve
from examples.oidc_login.app import notes
from tests.server.identity_provider import CLIENT, SECRET, IdentityProvider, identity_provider

APP = Path(__file__).parents[2] / "examples/oidc_login/app.py"
START_S = 30.0


@pytest.fixture(scope="module")
def provider() -> Iterator[IdentityProvider]:
    with identity_provider() as running:
        yield running


async def sign_in(client: httpx.AsyncClient, provider: IdentityProvider, name: str) -> None:
    """Sign in as a browser does: there, and back."""
    provider.signed_in = name
    begun = await client.get("/_login")
    async with httpx.AsyncClient() as other:
        back = await other.get(begun.headers["location"])
    done = await client.get(back.headers["location"].replace(str(client.base_url).rstrip("/"), ""))
    assert (done.status_code, done.headers["location"]) == (303, "/")


async def test_two_users_are_kept_apart(provider: IdentityProvider) -> None:
    oidc = Oidc(provider.issuer, CLIENT, SECRET, admin="groups=arp-admins")
    app = App("Notes", access=Access(oidc=oidc))
    app.agent(notes)
    async with serve(app) as served:
        cookies = {}
        for name in ("ann", "bob"):
            async with served.http() as client:
                await sign_in(client, provider, name)
                cookies[name] = dict(client.cookies)
        async with served.session(cookies=cookies["ann"]) as ann:
            assert (await ann.say("buy milk")).text == "Ann L., these are your notes: buy milk."
            with pytest.raises(SessionNotFound):
                async with served.session(cookies=cookies["bob"], session_id=ann.session_id):
                    pass
        async with served.session(cookies=cookies["bob"]) as bob:
            turn = await bob.say("sleep")
            assert turn.text.startswith("Bob, these are your notes: sleep. You may read")


@asynccontextmanager
async def served_by_command(folder: Path, provider: IdentityProvider) -> AsyncIterator[str]:
    """Runs `arp serve` with settings from flags and the environment; yields its address."""
    environment = {
        **os.environ,
        "HOME": str(folder),
        "ARP_OIDC_ISSUER": provider.issuer,
        "ARP_OIDC_CLIENT_SECRET": SECRET,
    }
    flags = ("--port", "0", "--oidc-client-id", CLIENT, "--oidc-admin", "groups=arp-admins")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "arp.cli", "serve", str(APP), *flags),
        cwd=folder,
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(START_S):
            line = (await process.stdout.readline()).decode()
        yield line.removeprefix("ARP on ").strip()
    finally:
        process.send_signal(signal.SIGTERM)
        _, log = await process.communicate()
        assert SECRET not in log.decode()


async def test_command_signs_people_in_and_takes_tokens_beside(
    tmp_path: Path, provider: IdentityProvider
) -> None:
    async with served_by_command(tmp_path, provider) as url:
        own = {"origin": url}
        async with httpx.AsyncClient(base_url=url, headers=own) as ann:
            assert (await ann.get("/_api/chats")).status_code == 401
            await sign_in(ann, provider, "ann")
            answered = await ann.post("/notes", json={"message": "milk", "session_id": "s"})
            assert answered.json()["text"] == "Ann L., these are your notes: milk."
        command = (sys.executable, "-m", "arp.cli", "token", "create", "--user", "carl")
        made = await asyncio.create_subprocess_exec(
            *command, cwd=tmp_path, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        token, about = (text.decode().strip() for text in await made.communicate())
        assert re.fullmatch(r"arp_[0-9a-f]{12}_[\w-]{43}", token), about
        async with httpx.AsyncClient(base_url=url) as carl:
            carl.headers["authorization"] = f"Bearer {token}"
            answered = await carl.post("/notes", json={"message": "bread"})
            assert answered.json()["text"] == "carl, these are your notes: bread."
            assert (await carl.get("/_api/chats/s")).status_code == 404
