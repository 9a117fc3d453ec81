"""Several users, real logins, and apps that are mounted in others."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from fastapi import FastAPI

from arp import User
from arp.protocol.errors import ArpError, SessionNotFound
from arp.testing import serve
from tests.testbed.shop import members_only, shop


async def test_named_users_are_kept_apart() -> None:
    async with serve(members_only()) as served:
        ann = User("ann", roles=["boss"])
        async with served.session(user=ann) as first, served.session(user="bob") as second:
            assert (await first.say("hi")).text == "Hello ann"
            assert (await second.say("hi")).text == "Hello bob"
            with pytest.raises(SessionNotFound):
                async with served.session(user="bob", session_id=first.session_id):
                    pass


async def test_roles_reach_the_agent() -> None:
    async with serve(shop()) as served, served.session(user=User("ann", roles=["boss"])) as ann:
        assert (await ann.say("who")).text == "ann ('boss',) None"


async def test_the_app_s_own_login_decides_where_no_user_is_named() -> None:
    async with serve(members_only()) as served:
        async with served.session(cookies={"member": "a-secret"}) as ann:
            assert (await ann.say("hi")).text == "Hello ann"
            async with served.http(cookies={"member": "a-secret"}) as http:
                chats = (await http.get("/_api/chats")).json()
            assert len(chats) == 1
        with pytest.raises(ArpError, match="token"):
            async with served.session():
                pass
        async with served.http() as http:
            assert (await http.get("/_api/chats")).status_code == 401


async def test_an_app_in_another_application_is_reached_through_that() -> None:
    life: list[str] = []

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        life.append("starts")
        yield
        life.append("stops")

    app, api = members_only(), FastAPI(lifespan=lifespan)
    api.mount("/agent", app.asgi)
    async with (
        serve(app, inside=api, at="/agent") as served,
        served.session(cookies={"member": "b-secret"}) as bob,
    ):
        assert (await bob.say("hi")).text == "Hello bob"
        await bob.restart()
        assert (await bob.say("hi")).text == "Hello bob"
    assert life == ["starts", "stops", "starts", "stops"]


async def test_a_path_where_no_app_is_says_so() -> None:
    app, api = members_only(), FastAPI()
    api.mount("/agent", app.asgi)
    async with serve(app, inside=api) as served:
        with pytest.raises(ArpError, match=r"/_arp/v1: there is no app at this path \(at=…\)"):
            async with served.session(user="ann"):
                pass
