"""Tests of the login and the agent: `cd examples/fastapi_login && pytest`."""

import pytest
from app import agent, api

from arp.api import SessionNotFound, Unauthenticated
from arp.testing import ServedApp, serve


async def sign_in(served: ServedApp, name: str) -> dict[str, str]:
    """Sign in as a user does; return the cookies."""
    async with served.http() as http:
        http.base_url = "http://127.0.0.1"
        await http.post("/login", data={"name": name, "password": name})
        return dict(http.cookies)


@pytest.mark.asyncio
async def test_two_users_are_kept_apart() -> None:
    async with serve(agent, inside=api, at="/agent") as served:
        ann, bob = await sign_in(served, "ann"), await sign_in(served, "bob")
        async with served.session(cookies=ann) as user:
            turn = await user.say("buy milk")
            assert turn.text == "ann, these are your notes: buy milk."
            with pytest.raises(SessionNotFound):
                async with served.session(cookies=bob, session_id=user.session_id):
                    pass
        async with served.session(cookies=bob) as user:
            assert (await user.say("sleep")).text == "bob, these are your notes: sleep."


@pytest.mark.asyncio
async def test_nobody_comes_in_without_signing_in() -> None:
    async with serve(agent, inside=api, at="/agent") as served:
        with pytest.raises(Unauthenticated):
            async with served.session(cookies={"session": "guessed"}):
                pass
