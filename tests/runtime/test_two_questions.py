"""Several requests of a runtime are open, and the server is started again before all have answers.

Each is shown once, an answer reaches the call that asked, once, and nothing is asked twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from arp import App, connect
from arp.client.client import ArpClient
from arp.live.settings import HubSettings
from arp.protocol.errors import ArpError
from arp.runtime.contract.task_runtime import TaskRuntime, TaskTurn
from tests.runtime.answering import open_questions, permission_of, until
from tests.support.serving import serving

COMMANDS = ("echo one", "echo two")
COLOUR = "Which colour?"


class AsksAll(TaskRuntime):
    """Asks for two commands and a colour at once, as a framework does that has kept the calls."""

    name = "asks-all"
    got: list[tuple[str, Any]]

    async def run_turn(self, turn: TaskTurn) -> None:
        self.save(turn.session_id, b'{"asks": true}')

        async def bash(number: int) -> tuple[str, Any]:
            tool_input = {"command": COMMANDS[number]}
            turn.start_call(f"c{number}", "bash", tool_input)
            response = await turn.allowed(f"c{number}", "bash", tool_input)
            return COMMANDS[number], response.decision

        async def colour() -> tuple[str, Any]:
            return COLOUR, await turn.answered("colour", COLOUR)

        self.got += await asyncio.gather(bash(0), bash(1), colour())
        self.save(turn.session_id, b"{}")
        turn.say("Done.")

    async def is_interrupted(self, session_id: str) -> bool:
        return b"asks" in self.saved(session_id)


class AsksTheColourFirst(AsksAll):
    """Asks for all at once, and when it is taken up again for the colour first."""

    async def run_turn(self, turn: TaskTurn) -> None:
        if turn.has_message:
            await super().run_turn(turn)
            return
        self.got.append((COLOUR, await turn.answered("colour", COLOUR)))
        for number, command in enumerate(COMMANDS):
            turn.start_call(f"c{number}", "bash", {"command": command})
            response = await turn.allowed(f"c{number}", "bash", {"command": command})
            self.got.append((command, response.decision))
        self.save(turn.session_id, b"{}")
        turn.say("Done.")


class Place:
    """Where the lives of the server are, and what the runtime got in all of them."""

    def __init__(
        self,
        directory: Path,
        settings: HubSettings | None = None,
        kind: type[AsksAll] = AsksAll,
    ) -> None:
        self.directory, self.kind = directory, kind
        self.settings = settings or HubSettings()
        self.got: list[tuple[str, Any]] = []

    def serving(self) -> Any:
        app = App(settings=self.settings)
        runtime = self.kind(cwd=self.directory, directory=self.directory / "sessions")
        runtime.got = self.got
        app.runtime(runtime)
        return serving(app, ledger=f"sqlite:{self.directory / 'ledger.db'}")


def shown(client: ArpClient) -> dict[str, Any]:
    """Return the components that are open, by what they ask; nothing is open twice."""
    found = {}
    for one in open_questions(client):
        what = one.props.get("label") or permission_of(client, one.id).input or one.props["title"]
        what = next(name for name in (*COMMANDS, COLOUR) if name in str(what))
        assert what not in found, f"{what} is open twice"
        found[what] = one
    return found


async def reply(client: ArpClient, what: str, component: Any) -> None:
    if what == COLOUR:
        await client.send_text("blue", source=component.id)
    else:
        await client.send_permission(permission_of(client, component.id), True)


def are(*what: str) -> Callable[[ArpClient], bool]:
    return lambda client: set(shown(client)) == set(what)


async def begun(client: ArpClient) -> None:
    await client.send_text("go")
    await until(client, lambda: len(open_questions(client)) == 3)


ALL = (*COMMANDS, COLOUR)
EXPECTED = sorted([(COMMANDS[0], "allow"), (COMMANDS[1], "allow"), (COLOUR, "blue")])
ORDERS = [(0, 1, 2), (2, 1, 0), (1, 2, 0), (2, 0, 1)]


@pytest.mark.parametrize("order", ORDERS)
async def test_each_answer_reaches_its_call_with_a_restart_before_each(
    tmp_path: Path, order: tuple[int, ...]
) -> None:
    place = Place(tmp_path)
    names = [ALL[number] for number in order]
    async with asyncio.timeout(90):
        with place.serving() as server:
            async with connect(server.http, session_id="s") as client:
                await begun(client)
        for number, name in enumerate(names):
            with place.serving() as server:
                async with connect(server.http, session_id="s") as client:
                    left, turn_id = names[number:], f"t{number + 2}"
                    await until(client, partial(are(*left), client))
                    await reply(client, name, shown(client)[name])
                    ends = "waiting" if number < 2 else "completed"
                    await until(client, partial(is_at, client, turn_id, ends))
                    await until(client, partial(are(*left[1:]), client))
    assert sorted(place.got) == EXPECTED


def is_at(client: ArpClient, turn_id: str, status: str) -> bool:
    turn = client.screen.turns.get(turn_id)
    return turn is not None and turn.status == status


@pytest.mark.parametrize("order", ORDERS)
async def test_each_answer_reaches_its_call_after_one_restart(
    tmp_path: Path, order: tuple[int, ...]
) -> None:
    """The first answer comes before the restart: it is not asked for again."""
    place = Place(tmp_path)
    names = [ALL[number] for number in order]
    async with asyncio.timeout(90):
        with place.serving() as server:
            async with connect(server.http, session_id="s") as client:
                await begun(client)
                await reply(client, names[0], shown(client)[names[0]])
                await until(client, lambda: are(*names[1:])(client))
        with place.serving() as server:
            async with connect(server.http, session_id="s") as client:
                await until(client, lambda: are(*names[1:])(client))
                await reply(client, names[1], shown(client)[names[1]])
                await until(client, lambda: is_at(client, "t2", "waiting"))
                await until(client, lambda: are(names[2])(client))
                await reply(client, names[2], shown(client)[names[2]])
                await until(client, lambda: is_at(client, "t2", "completed"))
                assert client.screen.turns["t1"].status == "completed"
                assert open_questions(client) == []
    assert sorted(place.got) == EXPECTED


async def test_an_answer_that_nobody_took_before_another_restart_is_not_lost(
    tmp_path: Path,
) -> None:
    """The turn of the answer asks something else first when its server ends."""
    place = Place(tmp_path, kind=AsksTheColourFirst)
    async with asyncio.timeout(90):
        with place.serving() as server:
            async with connect(server.http, session_id="s") as client:
                await begun(client)
        for number in (1, 0):  # neither answer is taken: the colour is asked first
            with place.serving() as server:
                async with connect(server.http, session_id="s") as client:
                    left = (*COMMANDS[: number + 1], COLOUR)
                    await until(client, partial(are(*left), client))
                    await reply(client, COMMANDS[number], shown(client)[COMMANDS[number]])
                    await until(client, partial(is_at, client, f"t{3 - number}", "waiting"))
                    await until(client, partial(are(*left[:number], COLOUR), client))
        with place.serving() as server:
            async with connect(server.http, session_id="s") as client:
                await until(client, partial(are(COLOUR), client))
                await reply(client, COLOUR, shown(client)[COLOUR])
                await until(client, partial(is_at, client, "t4", "completed"))
                assert open_questions(client) == []
    assert sorted(place.got) == EXPECTED


@pytest.mark.parametrize("policy", ["queue", "interrupt"])
async def test_answers_from_several_screens_at_once(tmp_path: Path, policy: Any) -> None:
    """All come before the runtime has asked again: the first begins a turn, which takes all."""
    place = Place(tmp_path, HubSettings(policy=policy))
    async with asyncio.timeout(90):
        with place.serving() as server:
            async with connect(server.http, session_id="s") as client:
                await begun(client)
        with place.serving() as server:
            async with (
                connect(server.http, session_id="s") as one,
                connect(server.http, session_id="s") as two,
                connect(server.http, session_id="s") as three,
            ):
                screens = (one, two, three)
                for screen in screens:
                    await until(screen, partial(are(*ALL), screen))
                open_now = shown(one)
                await asyncio.gather(
                    *(
                        reply(screen, name, open_now[name])
                        for screen, name in zip(screens, ALL, strict=True)
                    )
                )
                for turn_id in ("t2", "t3", "t4"):
                    await until(one, partial(is_at, one, turn_id, "completed"))
                texts = [one.screen.text(turn_id) for turn_id in ("t2", "t3", "t4")]
                assert texts == ["Done.", "", ""]
    assert sorted(place.got) == EXPECTED


async def test_a_late_answer_to_what_is_asked_again_elsewhere_is_refused(tmp_path: Path) -> None:
    place = Place(tmp_path)
    async with asyncio.timeout(90):
        with place.serving() as server:
            async with connect(server.http, session_id="s") as client:
                await begun(client)
        with place.serving() as server:
            async with connect(server.http, session_id="s") as client:
                await until(client, lambda: are(*ALL)(client))
                before = shown(client)
                await reply(client, COMMANDS[0], before[COMMANDS[0]])
                await until(client, lambda: is_at(client, "t2", "waiting"))
                await until(client, lambda: are(*ALL[1:])(client))
                assert shown(client)[COLOUR].id != before[COLOUR].id
                late = await client.send_text("red", source=before[COLOUR].id)
                with pytest.raises(ArpError, match="has expired and takes no more answers"):
                    await client.turn_of(late)
                assert set(shown(client)) == set(ALL[1:])
