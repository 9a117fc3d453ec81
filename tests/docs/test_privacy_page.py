"""The program of `docs/privacy.md` deletes what is old, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from arp import App, Turn
from arp.testing import serve
from tests.docs.pages import blocks


async def test_old_sessions_are_deleted() -> None:
    (block,) = blocks("python", page="privacy.md")
    names: dict[str, Any] = {"__name__": "docs"}
    exec(compile(block.code, str(block), "exec", dont_inherit=True), names)
    delete = names["delete_old_sessions"]
    app = App("Notes")

    @app.agent
    async def agent(turn: Turn) -> None:
        if turn.text == "ask":
            await turn.confirm("Sure?")

    async with serve(app) as served:
        for name, user in (("one", "ada"), ("two", "ada"), ("three", "bob")):
            async with served.session(session_id=name, user=user) as renderer:
                await renderer.say("go")
        ids = [one.id async for one in app.sessions()]
        assert ids == ["three", "two", "one"]
        assert [one.id async for one in app.sessions(user="ada")] == ["two", "one"]
        assert await delete(app, 1) == 0
        async with served.session(session_id="three", user="bob") as renderer:
            await renderer.say("ask")
            assert await delete(app, -1) == 2  # as if today were tomorrow
            assert [one.id async for one in app.sessions()] == ["three"]


async def test_sessions_of_more_than_a_page_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("arp.hub.pushed.MAX_PAGE", 2)
    app = App("Notes")

    @app.agent
    async def agent(turn: Turn) -> None:
        """Nothing."""

    async with serve(app) as served:
        for name in "abcde":
            async with served.session(session_id=name) as renderer:
                await renderer.say("go")
        assert [one.id async for one in app.sessions()] == list("edcba")
