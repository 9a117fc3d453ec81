"""Tests of the agent and its service: `cd examples/fastapi_embed && pytest`."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from app import agent, api, guests

from arp.testing import ServedApp, serve


@pytest_asyncio.fixture
async def served() -> AsyncIterator[ServedApp]:
    """The agent, mounted in its service, with an empty guest book."""
    guests.clear()
    async with serve(agent, inside=api, at="/agent") as served:
        yield served


@pytest.mark.asyncio
async def test_a_guest_signs_by_a_form(served: ServedApp) -> None:
    async with served.session() as user:
        turn = await user.say("Sign the book")
        assert turn.question is not None
        assert turn.question.fields == ["name", "message"]
        await turn.answer({"name": "Ann", "message": "Hello!"})
        assert turn.text == "Thank you, Ann! Guests so far: 1."
        assert turn.component("table").props["rows"] == [["Ann", "Hello!"]]


@pytest.mark.asyncio
async def test_a_form_waits_for_its_answer_over_a_restart(served: ServedApp) -> None:
    async with served.session() as user:
        turn = await user.say("Sign the book")
        await user.restart(crash=True)
        assert user.turn(turn.id).question is not None


@pytest.mark.asyncio
async def test_a_terminal_without_tables_gets_text(served: ServedApp) -> None:
    async with served.session() as user:
        turn = await user.say("Sign the book")
        await turn.answer({"name": "Ann", "message": "Hello!"})
        assert "name  message\n----  -------\nAnn   Hello!" in await user.snapshot(turn, "minimal")


@pytest.mark.asyncio
async def test_programs_and_people_share_one_book(served: ServedApp) -> None:
    async with served.http() as http:
        http.base_url = "http://127.0.0.1"
        assert (await http.post("/guests", json={"name": "Bob"})).status_code == 201
    async with served.session() as user:
        assert (await user.say("Who was here?")).text == "Guests so far: 1."
