"""An agent inside a Django project, which knows who has signed in there."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from types import ModuleType

import httpx
import pytest

from tests.examples.two_users import check_apart, check_leaving, check_nobody
from tests.support.asgi_serving import serving_asgi


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """The project with its database; Django is set up once in a process."""
    database = tmp_path_factory.mktemp("django") / "db.sqlite3"
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("DJANGO_DATABASE", str(database))
        from examples.django_login import app
    app.prepare()
    yield app
    from django.db import connections

    connections.close_all()


@pytest.fixture(scope="module")
def url(project: ModuleType) -> Iterator[str]:
    with serving_asgi(project.application) as address:
        yield address


async def signed_in(client: httpx.AsyncClient, name: str) -> None:
    await client.get("/login/")
    token = client.cookies["csrftoken"]
    form = {"username": name, "password": name, "csrfmiddlewaretoken": token}
    done = await client.post("/login/?next=/agent/", data=form)
    assert (done.status_code, done.headers["location"]) == (302, "/agent/")
    assert (await client.get("/whoami/")).text == name


async def test_two_users_of_the_project_are_kept_apart(url: str) -> None:
    async with httpx.AsyncClient(base_url=url) as ann, httpx.AsyncClient(base_url=url) as bob:
        await signed_in(ann, "ann")
        await signed_in(bob, "bob")
        await check_apart(ann, bob)


async def test_who_has_not_signed_in_is_led_to_the_login(url: str) -> None:
    await check_nobody(url, "/login/?next={next}")
    async with httpx.AsyncClient(base_url=url) as client:
        moved = await client.get("/agent?session=s")
        assert (moved.status_code, moved.headers["location"]) == (307, "/agent/?session=s")
        assert (await client.get("/agents")).status_code == 404  # Django's own


async def test_signing_out_of_django_ends_open_connections(project: ModuleType, url: str) -> None:
    async with httpx.AsyncClient(base_url=url) as ann:
        await signed_in(ann, "ann")
        cookies = dict(ann.cookies)

        async def leave() -> None:
            token = {"csrfmiddlewaretoken": ann.cookies["csrftoken"]}
            assert (await ann.post("/logout/", data=token)).status_code == 302
            ann.cookies.update(cookies)  # somebody has kept the cookie

        await check_leaving(project.agent, ann, leave)


async def test_user_has_the_groups_and_rights_of_django_as_roles(
    project: ModuleType, url: str
) -> None:
    from django.contrib.auth.models import Group, User

    def promote() -> None:
        ann = User.objects.get(username="ann")
        ann.groups.add(Group.objects.create(name="writers"))
        ann.is_staff, ann.last_name = True, "Lee"
        ann.save()

    await asyncio.to_thread(promote)
    async with httpx.AsyncClient(base_url=url) as ann:
        await signed_in(ann, "ann")
        about = (await ann.get("/agent/_api/user")).json()["user"]
    assert about == {
        "name": "ann",
        "display_name": "Ann Lee",
        "roles": ["writers", "staff"],
        "is_admin": False,
    }


async def test_a_user_deactivated_in_django_is_refused(project: ModuleType, url: str) -> None:
    from django.contrib.auth.models import User

    def deactivate() -> None:
        User.objects.filter(username="bob").update(is_active=False)

    async with httpx.AsyncClient(base_url=url) as bob:
        await signed_in(bob, "bob")
        assert (await bob.get("/agent/_api/chats")).status_code == 200
        await asyncio.to_thread(deactivate)
        assert (await bob.get("/agent/_api/chats")).status_code == 401
