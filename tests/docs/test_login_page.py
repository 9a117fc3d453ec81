"""What the page about logins shows runs, and does what it says."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from arp import App
from tests.docs.pages import Block, blocks

OIDC, FASTAPI, AGENT, ASGI, HOOK = blocks("python", page="login.md")


def run(block: Block, **names: Any) -> dict[str, Any]:
    """Runs a block, and returns the names in it."""
    names = {"__name__": "docs", **names}
    exec(compile(block.code, str(block), "exec", dont_inherit=True), names)
    return names


async def answers(application: Any, path: str, cookie: str) -> tuple[int, str]:
    """What an agent says to somebody with a cookie."""
    transport = httpx.ASGITransport(application)
    headers = {"cookie": cookie}
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        answered = await client.post(path, json={"message": "x"}, headers=headers)
    return answered.status_code, answered.json().get("text", "")


async def test_app_with_a_provider_lets_in_nobody_without_a_login() -> None:
    app: App = run(OIDC)["app"]
    assert (await answers(app.asgi, "/greet", ""))[0] == 401
    assert app.access.oidc is not None
    assert app.access.oidc.roles_claim == "groups"
    await app.asgi.aclose()


async def test_user_of_the_middleware_is_the_user_of_the_agent() -> None:
    names = run(FASTAPI)
    assert await answers(names["api"], "/agent/greet", "session=a-secret") == (200, "Hello ann.")
    assert (await answers(names["api"], "/agent/greet", "session=guessed"))[0] == 401
    await names["agent"].asgi.aclose()


async def test_hook_of_another_login_finds_its_user() -> None:
    app: App = run(HOOK)["app"]
    cookie = "session=value-of-a-cookie"
    assert await answers(app.asgi, "/greet", cookie) == (200, "Hello ann.")
    assert (await answers(app.asgi, "/greet", ""))[0] == 401
    await app.asgi.aclose()


async def test_agent_in_a_django_project_stands_in_front_of_it(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DJANGO_DATABASE", str(tmp_path / "db.sqlite3"))
    import examples.django_login.app  # noqa: F401  # sets Django up

    agent = run(AGENT)["agent"]
    application = run(ASGI, agent=agent)["application"]
    assert (await answers(application, "/agent/notes", ""))[0] == 401
    transport = httpx.ASGITransport(application)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        assert (await client.get("/whoami/")).text == "nobody"
    await agent.asgi.aclose()
