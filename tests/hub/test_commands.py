"""Slash commands of a session: set by a turn, and with every renderer that says `hello`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from arp import Command, CommandChoice, Turn
from arp.hub.hub import Hub
from arp.hub.runner import HubApp
from arp.ledger.fact_types import ProfileViolation
from arp.live.settings import HubSettings
from arp.protocol.errors import ResourceLimit, SurfaceDestroyed
from arp.store.blobs import MemoryBlobs
from arp.store.sqlite import SqliteStore
from tests.hub.rig import WAIT_S, HeldStore, Renderer, played, running, settled
from tests.hub.test_branches import edits, talked, turns_to

COMPACT = {"name": "compact"}


def model(current: str) -> Command:
    """Return a command that shows which of its choices holds."""
    choices = [CommandChoice(name, current=name == current) for name in ("small", "large")]
    return Command("model", "Switches the model", choices=tuple(choices))


def as_json(current: str) -> dict[str, Any]:
    """Return the same as renderers get it."""
    choices: list[dict[str, Any]] = [
        {"value": name, **({"current": True} if name == current else {})}
        for name in ("small", "large")
    ]
    return {"name": "model", "description": "Switches the model", "choices": choices}


async def runtime(turn: Turn) -> None:
    """What an adapter of an agent runtime does with its commands."""
    turn.state.setdefault("model", "small")
    if turn.command == "model":
        turn.state["model"] = turn.arguments
    turn.set_commands([Command("compact"), model(turn.state["model"])])
    await turn.say(f"{turn.command or 'text'}:{turn.arguments}")


def offered(renderer: Renderer) -> list[list[Any]]:
    """Return the commands of each message that a renderer got."""
    return [one["commands"] for one in renderer.box.of("commands")]


async def test_who_is_there_gets_the_commands_when_they_change_and_not_when_they_do_not() -> None:
    async with running(runtime) as hub:
        one, two = await Renderer(hub).join(), await Renderer(hub).join()
        assert offered(one) == []
        for number, text in enumerate(["hi", "again", "/model large"], 1):
            await one.say(text)
            await one.ended(f"t{number}")
            await two.ended(f"t{number}")
    expected = [[COMPACT, as_json("small")], [COMPACT, as_json("large")]]
    assert offered(one) == offered(two) == expected
    (first, _) = one.box.of("commands")
    assert "turn_id" not in first
    assert first["seq"] > 0
    assert one.screen.text("t3") == "model:large"


async def test_who_joins_gets_them_before_the_first_turn() -> None:
    async with running(runtime) as hub:
        one = await Renderer(hub).join()
        await one.say("hi")
        await one.ended("t1")
        late = await Renderer(hub).join()
        await late.ended("t1")
        kinds = [message["type"] for message in late.box.messages]
        assert kinds.index("session") < kinds.index("commands") < kinds.index("input")
        assert "seq" not in late.box.of("commands")[0]
        assert late.screen.canonical() == one.screen.canonical()


async def test_who_resumes_gets_what_changed_meanwhile() -> None:
    async with running(runtime) as hub:
        one = await Renderer(hub).join()
        await one.say("hi")
        await one.ended("t1")
        epoch, seq = one.box.of("session")[0]["epoch"], one.box.of("commit")[-1]["seq"]
        one.leave()
        other = await Renderer(hub).join()
        await other.say("/model large")
        await other.ended("t2")
        back = await Renderer(hub).join(epoch, seq)
        await back.ended("t2")
    assert back.box.of("session")[0]["resume"] == "replay"
    assert offered(back) == [[COMPACT, as_json("large")]]


async def test_who_was_behind_gets_the_newest_with_its_catch_up() -> None:
    """Of commands only the newest count, as of everything else."""
    words: asyncio.Queue[str] = asyncio.Queue()

    async def agent(turn: Turn) -> None:
        while (word := await words.get()) != "end":
            turn.set_commands([model(word)])
            await turn.say(f"{word} ")

    async with running(agent) as hub:
        slow, quick = await Renderer(hub).join(), await Renderer(hub).join()
        await quick.say("go")
        slow.box.buffered = 10 << 20
        for number, word in enumerate(["small", "large", "small"], 1):
            words.put_nowait(word)
            await quick.box.until(lambda: len(offered(quick)) == number)  # noqa: B023 - at once
        assert (slow.viewer.state, offered(slow)) == ("behind", [])
        slow.box.buffered = 0
        slow.viewer.drained()
        await slow.box.has("commands")
        await settled(hub)
        assert slow.screen.canonical() == quick.screen.canonical()
        words.put_nowait("end")
        await slow.ended("t1")
    assert offered(slow) == [[as_json("small")]]


async def test_client_of_the_draft_gets_no_commands() -> None:
    async with running(runtime) as hub:
        renderer = await Renderer(hub).join()
        draft = Renderer(hub)
        await draft.say("hi")
        await draft.ended("t1")
        await renderer.ended("t1")
    assert (len(offered(renderer)), offered(draft)) == (1, [])


async def test_commands_are_there_again_when_the_server_starts_on_the_same_file(
    tmp_path: Path,
) -> None:
    """Made of all facts, or of a stored state."""
    seen = []
    for text in ("/model large", "", ""):
        store = SqliteStore(tmp_path / "ledger.db")
        await store.open()
        hub = Hub(store, MemoryBlobs(), HubApp({"agent": runtime}), HubSettings())
        await hub.start()
        renderer = await Renderer(hub).join()
        if text:
            await renderer.say(text)
            await renderer.ended("t1")
        seen.append(offered(renderer))
        async with asyncio.timeout(WAIT_S):
            await hub.aclose()
    assert seen == [[[COMPACT, as_json("large")]]] * 3


async def test_each_branch_has_its_own_commands() -> None:
    async def agent(turn: Turn) -> None:
        turn.set_commands([Command(turn.text)])
        await turn.say(turn.text)

    async with running(agent) as hub:
        one = await talked(hub, "a", "b")
        await edits(one, "t2", "c", "t3")
        assert one.screen.commands == (Command("c"),)
        await turns_to(one, "arp.branch", "t2")
        assert one.screen.commands == (Command("b"),)


async def test_cleared_commands_are_gone() -> None:
    async def agent(turn: Turn) -> None:
        turn.set_commands([Command("a")] if turn.text == "set" else [])

    async with running(agent) as hub:
        one = await talked(hub, "set", "clear")
        late = await Renderer(hub).join()
        await late.ended("t2")
    assert offered(one) == [[{"name": "a"}], []]
    assert late.screen.commands == ()


async def test_function_of_the_app_runs_for_its_name_and_the_agent_for_all_others() -> None:
    """Where both have a name, the function runs: the session says only what is shown of it."""

    async def agent(turn: Turn) -> None:
        turn.set_commands([model("small"), Command("plugin:do.it")])
        await turn.say(f"agent {turn.command} {turn.arguments}|")

    async def switch(turn: Turn) -> None:
        await turn.say(f"function {turn.arguments}|")

    app = HubApp({"agent": agent}, command_handlers={"model": switch})
    store = HeldStore()
    await store.open()
    hub = Hub(store, MemoryBlobs(), app, HubSettings())
    await hub.start()
    one = await talked(hub, "hi", "/model large", "/plugin:do.it now", "/unknown")
    async with asyncio.timeout(WAIT_S):
        await hub.aclose()
    said = "agent None hi|function large|agent plugin:do.it now|agent unknown |"
    assert one.box.said() == said


CHOICE = "take 1 to 256 printable characters, without spaces around"


@pytest.mark.parametrize(
    ("commands", "wrong"),
    [
        ([Command("")], "command '': take 1 to 64 printable"),
        ([Command("a b")], "command 'a b': take 1 to 64 printable"),
        ([Command("/a")], "command '/a': take 1 to 64 printable"),
        ([Command("a\n")], r"command 'a\\n': take 1 to 64 printable"),
        ([Command("a\u202eb")], r"command 'a\\u202eb': take 1 to 64 printable"),
        ([Command("a" * 65)], "take 1 to 64 printable"),
        ([Command("a"), Command("a", "b")], "commands: two have the same name"),
        ([Command("a", choices=(CommandChoice(""),))], f"command 'a': choice '': {CHOICE}"),
        ([Command("a", choices=(CommandChoice(" b"),))], f"command 'a': choice ' b': {CHOICE}"),
        ([Command("a", choices=(CommandChoice("b\nc"),))], CHOICE),
        ([Command("a", choices=(CommandChoice("b" * 257),))], CHOICE),
        ([Command("a", choices=(CommandChoice("b"), CommandChoice("b")))], "have the same value"),
        (
            [Command("a", choices=tuple(CommandChoice(v, current=True) for v in "bc"))],
            "more than one choice is current",
        ),
        ([Command(3)], "Expected `str`, got `int`"),  # type: ignore[arg-type]
    ],
)
async def test_command_that_nobody_could_type_is_refused_where_it_is_set(
    commands: list[Command], wrong: str
) -> None:
    async def agent(turn: Turn) -> None:
        turn.set_commands([Command("kept")])
        with pytest.raises(ValueError, match=wrong):
            turn.set_commands(commands)

    renderer = await played(agent)
    assert renderer.box.of("turn")[-1]["status"] == "completed"
    assert offered(renderer) == [[{"name": "kept"}]]


async def test_what_is_no_command_or_too_much_or_too_late_is_refused() -> None:
    turns: list[Turn] = []

    async def agent(turn: Turn) -> None:
        turns.append(turn)
        with pytest.raises(TypeError, match="commands: expected Command, got str"):
            turn.set_commands(["model"])  # type: ignore[list-item]  # what is refused
        with pytest.raises(ResourceLimit, match="Shorten their descriptions"):
            turn.set_commands([Command("a", "x" * 70_000)])
        with pytest.raises(ProfileViolation):
            turn.record("session.updated", {"commands": []})

    async with running(agent) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        assert await renderer.ended("t1") == "completed"
        with pytest.raises(SurfaceDestroyed):
            turns[0].set_commands([Command("late")])
    assert offered(renderer) == []


async def test_half_a_surrogate_in_a_description_is_replaced() -> None:
    async def agent(turn: Turn) -> None:
        turn.set_commands([Command("a", "b\ud800")])

    assert offered(await played(agent)) == [[{"name": "a", "description": "b\ufffd"}]]
