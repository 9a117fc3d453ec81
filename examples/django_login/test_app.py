"""Tests of the login and the agent: `cd examples/django_login && pytest`."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from arp.api import SessionNotFound, Unauthenticated
from arp.testing import ServedApp, serve


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    """The project, with a database of its own."""
    os.environ["DJANGO_DATABASE"] = str(tmp_path_factory.mktemp("django") / "db.sqlite3")
    import app

    app.prepare()
    yield app
    from django.db import connections

    connections.close_all()
    assert Path(os.environ.pop("DJANGO_DATABASE")).exists()


async def sign_in(served: ServedApp, name: str) -> dict[str, str]:
    """Sign in by Django's form, with its CSRF token; return the cookies."""
    async with served.http() as http:
        http.base_url = "http://127.0.0.1"
        await http.get("/login/")
        form = {"username": name, "password": name}
        token = {"csrfmiddlewaretoken": http.cookies["csrftoken"]}
        done = await http.post("/login/", data={**form, **token})
        assert done.headers["location"] == "/agent/"
        return dict(http.cookies)


@pytest.mark.asyncio
async def test_two_users_are_kept_apart(project) -> None:  # type: ignore[no-untyped-def]
    async with serve(project.agent, inside=project.application, at="/agent") as served:
        ann, bob = await sign_in(served, "ann"), await sign_in(served, "bob")
        async with served.session(cookies=ann) as user:
            turn = await user.say("buy milk")
            assert turn.text == "Ann, these are your notes: buy milk."
            with pytest.raises(SessionNotFound):
                async with served.session(cookies=bob, session_id=user.session_id):
                    pass


@pytest.mark.asyncio
async def test_nobody_comes_in_without_signing_in(project) -> None:  # type: ignore[no-untyped-def]
    async with serve(project.agent, inside=project.application, at="/agent") as served:
        with pytest.raises(Unauthenticated):
            async with served.session(cookies={"sessionid": "guessed"}):
                pass
