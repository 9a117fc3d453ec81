"""Turns that nobody typed, begun by `app.push` in a server that runs."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import httpx
import pytest

from arp import Access, App, ArpError, ErrorCode, Turn, User, connect
from arp.protocol.limits import Limits
from arp.protocol.messages import Command
from tests.server.rpc import rpc
from tests.support.serving import Serving, serving
from tests.support.waiting import becomes

T = TypeVar("T")


class Pushing(NamedTuple):
    """An app that is served, and what its agent was told."""

    app: App
    server: Serving
    told: list[tuple[str | None, str, Any, str]]

    def run(self, doing: Coroutine[Any, Any, T]) -> T:
        """Run a call of the author's in the server's loop."""
        return asyncio.run_coroutine_threadsafe(doing, self.server.loop).result(10)


def made(told: list[Any], **settings: Any) -> App:
    """An app whose agent notes who began each turn."""
    app = App(**settings)

    @app.agent
    async def agent(turn: Turn) -> None:
        """Answers."""
        told.append((turn.origin, turn.text, turn.input.data.get("n"), turn.user.name))
        await turn.say(f"re {turn.text}")
        if turn.text == "fail":
            raise RuntimeError("no")

    return app


@pytest.fixture
def pushing() -> Iterator[Pushing]:
    told: list[Any] = []
    app = made(told)
    with serving(app) as server:
        yield Pushing(app, server, told)


async def test_who_is_there_sees_it_and_who_comes_later_finds_it(pushing: Pushing) -> None:
    async with connect(pushing.server.http) as client:
        await client.turn_done(await client.turn_of(await client.send_text("hi")))
        session = client.session_id
        assert session is not None
        turn = await asyncio.to_thread(
            pushing.run, pushing.app.push(session, "Disk full", data={"n": 1}, origin="monitor")
        )
        assert (turn.id, turn.session_id) == ("t2", session)
        assert await asyncio.to_thread(pushing.run, turn.over()) == "completed"
        await becomes(lambda: "t2" in client.screen.turns and client.screen.turns["t2"].final)
        (echo,) = client.screen.turns["t2"].inputs
        assert (echo.origin, client.screen.text("t2")) == ("monitor", "re Disk full")
        async with connect(pushing.server.http, session_id=session) as late:
            await becomes(lambda: "t2" in late.screen.turns)
            assert late.screen.turns["t2"].inputs[0].origin == "monitor"
            assert late.screen.canonical() == client.screen.canonical()
    assert pushing.told == [(None, "hi", None, ""), ("monitor", "Disk full", 1, "")]
    async with httpx.AsyncClient(base_url=pushing.server.http) as http:
        history = (await http.get(f"/_api/chats/{session}")).json()
    said = [entry for entry in history["messages"] if entry["role"] == "user"]
    assert [entry.get("origin") for entry in said] == [None, "monitor"]


async def test_end_of_a_turn_tells_how_it_ended_and_same_id_is_one_turn(pushing: Pushing) -> None:
    async with connect(pushing.server.http) as client:
        await client.turn_done(await client.turn_of(await client.send_text("hi")))
        session = client.session_id
        assert session is not None

        async def twice() -> tuple[str, str, str]:
            first = await pushing.app.push(session, "fail", id="n1")
            again = await pushing.app.push(session, "fail", id="n1")
            return first.id, again.id, await again.over()

        assert await asyncio.to_thread(pushing.run, twice()) == ("t2", "t2", "failed")
    assert len(pushing.told) == 2


async def test_unknown_session_is_refused(pushing: Pushing) -> None:
    with pytest.raises(ArpError, match="no session 'nowhere'") as caught:
        await asyncio.to_thread(pushing.run, pushing.app.push("nowhere", "x"))
    assert caught.value.code == ErrorCode.SESSION_NOT_FOUND


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ({"data": {"x": object()}}, TypeError),
        ({"origin": ""}, ValueError),
        ({"origin": "x" * 81}, ValueError),
        ({"text": 3}, TypeError),
        ({"id": 3}, TypeError),
        ({"id": ""}, ValueError),
        ({"id": "x" * 124}, ValueError),
        ({"id": "ü"}, ValueError),
        ({"id": "half \ud800"}, ValueError),
        ({"user": 3}, TypeError),
        ({"session": "half \ud800"}, ArpError),
    ],
)
async def test_what_an_author_gets_wrong_is_said_at_the_call(
    pushing: Pushing, more: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        await asyncio.to_thread(pushing.run, pushing.app.push(**{"session": "s", **more}))


def test_session_of_another_user_is_not_there() -> None:
    """A session id is no credential: with `user`, it has to be theirs."""
    told: list[Any] = []

    def who(connection: Any) -> User:
        return User(connection.headers.get("x-user", "nobody"))

    app = made(told, access=Access(authenticate=who))
    with serving(app) as server:
        pushing = Pushing(app, server, told)
        answer = httpx.post(
            f"{server.http}/_arp/v1/input",
            json={"v": 1, "type": "input", "input_type": "text", "data": {"text": "hi"}},
            headers={"x-user": "ann"},
        )
        session = answer.json()[0]["session_id"]
        with pytest.raises(ArpError) as caught:
            pushing.run(app.push(session, "x", user="bob"))
        assert caught.value.code == ErrorCode.SESSION_NOT_FOUND
        mine = pushing.run(app.push(session, "x", user=User("ann", roles=["admin"])))
        assert pushing.run(mine.over()) == "completed"
        anybodys = pushing.run(app.push(session, "y"))
        assert pushing.run(anybodys.over()) == "completed"
    assert [entry[-1] for entry in told] == ["ann", "ann", "ann"]


def test_session_that_is_not_in_memory_is_read_from_the_ledger(tmp_path: Path) -> None:
    told: list[Any] = []
    app = made(told, ledger=f"sqlite:{tmp_path / 'arp.db'}")
    with serving(app) as server:
        body = {"v": 1, "type": "input", "input_type": "text", "data": {"text": "hi"}}
        session = httpx.post(f"{server.http}/_arp/v1/input", json=body).json()[0]["session_id"]
    with serving(app) as server:
        pushing = Pushing(app, server, told)
        turn = pushing.run(app.push(session, "after the restart"))
        assert pushing.run(turn.over()) == "completed"
    assert told[-1][:2] == ("app", "after the restart")


async def test_app_that_nobody_visited_yet_opens_its_ledger_for_the_push() -> None:
    app = made([])
    with pytest.raises(ArpError, match="no session"):
        await app.push("s", "x")
    assert app.asgi.state.running is not None
    await app.asgi.aclose()


def test_too_much_data_is_refused() -> None:
    told: list[Any] = []
    app = made(told)
    with serving(app) as server:
        pushing = Pushing(app, server, told)
        with pytest.raises(ArpError) as caught:
            pushing.run(app.push("s", "x" * (Limits().max_message_bytes + 1)))
        assert caught.value.code == ErrorCode.RESOURCE_LIMIT


async def test_commands_and_facts_outside_of_a_turn(pushing: Pushing, tmp_path: Path) -> None:
    """Who is there hears of the commands, and who joins later; they are there after a restart."""
    ledger = f"sqlite:{tmp_path}/ledger.db"
    app = made([])
    offered = Command("review", "Looks at the changes")
    with serving(app, ledger=ledger) as server:
        here = Pushing(app, server, [])
        async with connect(server.http, session_id="s") as client:
            await client.turn_done(await client.turn_of(await client.send_text("hi")))
            await asyncio.to_thread(here.run, app.set_commands("s", [offered]))
            await becomes(lambda: client.commands == (offered,))

            async def record() -> None:
                recorder = await app.recorder("s")
                recorder("runtime.warning", {"message": "the disk is nearly full"})

            await asyncio.to_thread(here.run, record())
            with pytest.raises(ValueError, match="two have the same name"):
                await asyncio.to_thread(here.run, app.set_commands("s", [offered, offered]))
            for calling in (app.set_commands("nowhere", []), app.recorder("nowhere")):
                with pytest.raises(ArpError, match="no session 'nowhere'"):
                    await asyncio.to_thread(here.run, calling)
    with serving(made([]), ledger=ledger) as server:
        async with (
            connect(server.http, session_id="s") as client,
            rpc(server.port) as caller,
        ):
            assert [command.name for command in client.commands] == ["review"]
            snapshot = await caller.call("agentSession/read", sessionId="s")
            messages = [line["message"] for line in snapshot["diagnostics"]]
            assert messages == ["the disk is nearly full"]
