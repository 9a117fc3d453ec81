"""An agent inside a FastAPI service with a login of its own."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from examples.fastapi_login.app import agent, api
from tests.examples.two_users import check_apart, check_leaving, check_nobody
from tests.support.asgi_serving import serving_asgi


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving_asgi(api) as address:
        yield address


async def signed_in(client: httpx.AsyncClient, name: str) -> None:
    done = await client.post("/login?next=/agent/", data={"name": name, "password": name})
    assert (done.status_code, done.headers["location"]) == (303, "/agent/")


async def test_two_users_of_the_service_are_kept_apart(url: str) -> None:
    async with httpx.AsyncClient(base_url=url) as ann, httpx.AsyncClient(base_url=url) as bob:
        await signed_in(ann, "ann")
        await signed_in(bob, "bob")
        await check_apart(ann, bob)


async def test_who_has_not_signed_in_is_led_to_the_login(url: str) -> None:
    await check_nobody(url, "/login?next={next}")


async def test_signing_out_of_the_service_ends_open_connections(url: str) -> None:
    async with httpx.AsyncClient(base_url=url) as ann:
        await signed_in(ann, "ann")
        cookies = dict(ann.cookies)

        async def leave() -> None:
            await ann.get("/logout")
            ann.cookies.update(cookies)  # somebody has kept the cookie

        await check_leaving(agent, ann, leave)


async def test_form_leads_to_no_other_site_and_lets_nobody_in_with_a_wrong_password(
    url: str,
) -> None:
    async with httpx.AsyncClient(base_url=url) as client:
        form = {"name": "ann", "password": "ann"}
        done = await client.post("/login?next=//evil.example", data=form)
        assert done.headers["location"] == "/agent/"
        client.cookies.clear()
        wrong = await client.post("/login", data={"name": "eve", "password": ""})
        assert wrong.status_code in (401, 422)
        assert client.cookies == {} or not dict(client.cookies)
