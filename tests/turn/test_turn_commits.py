"""What happens between two awaits of an agent is one commit, which stands whole or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from arp import Component, Turn, ui
from arp.protocol.errors import (
    ArpError,
    ComponentUnsupported,
    InvalidComponent,
    InvalidPatch,
    ResourceLimit,
)
from tests.hub.rig import ALL, HeldStore, Renderer, played, running, settled


def commits(renderer: Renderer) -> list[list[str]]:
    """Return what each commit carries, without the one that ends the turn."""
    out: list[list[str]] = []
    pending: list[str] = []
    for message in renderer.box.messages:
        if message["type"] == "render":
            pending += [part["id"] for part in message["components"]]
        elif message["type"] == "patch":
            pending += [f"{op['op']} {op.get('target', '')}".strip() for op in message["ops"]]
        elif message["type"] == "commit" and not message["final"]:
            out.append(pending)
            pending = []
    return out


async def test_what_happens_between_two_awaits_is_one_commit() -> None:
    """architecture.md, how a turn flows, 3."""

    async def agent(turn: Turn) -> None:
        turn.show(ui.text("a", id="a"))
        turn.show(ui.text("b", id="b"))
        turn.patch("a", "props.content", "A")
        await turn.say("then ")
        turn.show(ui.text("c", id="c"))

    renderer = await played(agent)
    assert commits(renderer) == [["a", "b", "update a"], ["c"]]


async def test_show_without_an_await_is_committed_when_the_loop_runs() -> None:
    """The writer comes by while the agent awaits something else."""
    seen = asyncio.Event()

    async def agent(turn: Turn) -> None:
        turn.show(ui.text("a", id="a"))
        await seen.wait()

    async with running(agent) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        await renderer.box.has("render")
        await renderer.box.has("commit", final=False)
        seen.set()
        await renderer.ended("t1")
    assert commits(renderer) == [["a"]]


async def test_frame_is_one_commit_of_more() -> None:
    """`async with turn.frame()`: nothing of it is seen before all of it."""

    async def agent(turn: Turn) -> None:
        async with turn.frame():
            turn.show(ui.text("a", id="a"))
            await asyncio.sleep(0)
            await turn.say("inside")
            await asyncio.sleep(0)
            async with turn.frame():
                turn.show(ui.text("b", id="b"))
            turn.patch("a", "props.content", "A")

    renderer = await played(agent)
    assert commits(renderer) == [["a", "t1-1", "b", "update a"]]
    assert [part.id for part in renderer.screen.output("t1")] == ["a", "t1-1", "b"]


async def broken(turn: Turn) -> None:
    async with turn.frame():
        turn.show(ui.text("never", id="never"))
        raise ZeroDivisionError


async def test_frame_that_raises_shows_nothing_of_itself() -> None:
    """If the inside raises, none of it is shown, and what came before is."""

    async def agent(turn: Turn) -> None:
        turn.show(ui.text("before", id="before"))
        with pytest.raises(ZeroDivisionError):
            await broken(turn)
        turn.show(ui.text("after", id="after"))

    renderer = await played(agent)
    assert commits(renderer) == [["before"], ["after"]]


async def test_refused_commit_raises_at_the_next_await_and_shows_nothing_of_itself() -> None:
    """protocol.md 4: a commit applies whole or not at all; the agent gets the error."""
    errors: list[ArpError] = []

    async def agent(turn: Turn) -> None:
        turn.show(ui.text("x", id="x"))
        await turn.say("")
        turn.show(ui.text("y", id="y"))
        turn.patch("nobody", "props.content", "?")
        try:
            await turn.say("never said")
        except ArpError as error:
            errors.append(error)
        await turn.say("goes on")

    renderer = await played(agent)
    assert isinstance(errors[0], InvalidPatch)
    assert "nobody" in errors[0].message
    assert commits(renderer) == [["x"]]
    assert renderer.box.said() == "goes on"


async def test_commit_that_is_refused_while_the_loop_runs_raises_at_the_next_await() -> None:
    """The agent learns of it where it next awaits the turn, once."""
    errors: list[str] = []

    async def agent(turn: Turn) -> None:
        turn.patch("nobody", "props.content", "?")
        await settled(hub)
        for _ in range(2):
            try:
                await turn.say("x")
            except InvalidPatch:
                errors.append("refused")

    async with running(agent) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        status = await renderer.ended("t1")
    assert errors == ["refused"]
    assert renderer.box.said() == "x"
    assert status == "completed"


async def test_commit_that_is_refused_at_the_end_fails_the_turn() -> None:
    """Nobody awaits any more, and it must not pass unseen."""

    async def agent(turn: Turn) -> None:
        turn.show(ui.text("good", id="good"))
        await turn.say("")
        turn.patch("nobody", "props.content", "?")

    renderer = await played(agent)
    assert renderer.screen.turns["t1"].status == "failed"
    assert commits(renderer) == [["good"]]


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda turn: turn.patch("x", "props.__class__", 1), InvalidPatch),
        (lambda turn: turn.append("x", "props.content", 3), InvalidPatch),
        (lambda turn: turn.insert(ui.text("y"), after="nobody"), InvalidPatch),
        (lambda turn: turn.remove("nobody"), InvalidPatch),
        (lambda turn: turn.replace("nobody", ui.text("y")), InvalidPatch),
        (lambda turn: turn.reorder("x", "nobody"), InvalidPatch),
        (lambda turn: turn.show(Component("h", "hologram", {})), ComponentUnsupported),
        (lambda turn: turn.show(Component("t", "table", {"rows": 1})), InvalidComponent),
        (lambda turn: turn.show(*[ui.text("y")] * 101), ResourceLimit),
        (lambda turn: turn.show(ui.text("y", id="a/b")), InvalidComponent),
    ],
)
async def test_each_bad_change_is_refused_with_its_code(
    change: Callable[[Turn], object], kind: type[ArpError]
) -> None:
    """One bad op and the committed state stays as it was."""
    errors: list[type[ArpError]] = []

    async def agent(turn: Turn) -> None:
        turn.show(ui.text("x", id="x"))
        await turn.say("")
        try:
            change(turn)
            await turn.say("")
        except ArpError as error:
            errors.append(type(error))

    renderer = await played(agent)
    assert errors == [kind]
    assert [part.props["content"] for part in renderer.screen.output("t1")] == ["x"]


async def test_component_that_is_no_json_is_refused_where_it_is_shown() -> None:
    """The author's line is in the traceback."""

    async def agent(turn: Turn) -> None:
        with pytest.raises(TypeError):
            turn.show(Component("x", "text", {"content": object()}))
        await turn.say("fine")

    renderer = await played(agent)
    assert renderer.box.said() == "fine"


async def test_what_the_author_does_to_a_shown_component_later_changes_nothing() -> None:
    """A shown component is a value: it shares nothing with the author's."""

    async def agent(turn: Turn) -> None:
        rows = [[1]]
        table = ui.table(["n"], rows, id="table")
        turn.show(table)
        rows.append([2])
        table.props["rows"] = "broken"
        await turn.say("")

    renderer = await played(agent)
    assert renderer.screen.output("t1")[0].props["rows"] == [[1]]


async def test_components_without_ids_get_some_also_inside_layouts() -> None:
    """Ids are unique across levels, and stay through the turn."""

    async def agent(turn: Turn) -> None:
        last = turn.show(ui.text("a"), ui.group([ui.text("b"), ui.text("c")]))
        again = turn.show(ui.text("d"))
        await turn.say(f"{last} {again}")

    renderer = await played(agent)
    group = renderer.screen.output("t1")[1]
    ids = ["t1-1", "t1-4", "t1-5"]
    assert [part.id for part in renderer.screen.output("t1")][:3] == ids
    assert [child["id"] for child in group.props["children"]] == ["t1-2", "t1-3"]
    assert renderer.box.said() == "t1-4 t1-5"


def show_three(turn: Turn) -> None:
    turn.show(ui.text("one", id="one"), ui.text("two", id="two"), ui.text("gone", id="gone"))


def change_all(turn: Turn) -> None:
    """Makes one change of each kind, and two inserts."""
    turn.patch("one", "props.content", "eins")
    turn.append("two", "props.content", "!")
    turn.insert(ui.text("zero", id="zero"), after=None)
    turn.insert(ui.text("last", id="last"))
    turn.remove("gone")
    turn.reorder("one", after="two")


def replace_last(turn: Turn) -> None:
    turn.replace("last", ui.text("letzte", id="end"))


CHANGED = [("zero", "zero"), ("two", "two!"), ("one", "eins"), ("end", "letzte")]


@pytest.mark.parametrize(
    "commits",
    [
        [[show_three], [change_all], [replace_last]],
        [[show_three, change_all], [replace_last]],
        [[show_three], [change_all, replace_last]],
        [[show_three, change_all, replace_last]],
    ],
    ids=["three commits", "shown and changed", "inserted and replaced", "one commit"],
)
@pytest.mark.parametrize("components", [["text"], ALL], ids=["text", "all"])
async def test_every_kind_of_change_reaches_the_screen(
    commits: list[list[Callable[[Turn], None]]], components: list[str]
) -> None:
    """protocol.md 4: the six ops, however they are spread over commits; then from the log."""
    store = HeldStore()

    async def agent(turn: Turn) -> None:
        for commit in commits:
            for change in commit:
                change(turn)
            await turn.say("")

    async with running(agent, store=store) as hub:
        renderer = await Renderer(hub, components=components).join()
        epoch = renderer.box.of("session")[0]["epoch"]
        await renderer.say("go")
        await renderer.ended("t1")
        replayed = await Renderer(hub, components=components).join(epoch, 2)
    async with running(agent, store=store) as again:
        restored = await Renderer(again, components=components).join()
    for seen in (renderer, replayed, restored):
        shown = [(part.id, part.props["content"]) for part in seen.screen.output("t1")]
        assert shown == CHANGED


async def test_other_surfaces_stand_beside_the_conversation() -> None:
    """Feature `multi-surface`: what is shown there belongs to no turn."""

    async def agent(turn: Turn) -> None:
        turn.show(ui.text("aside", id="aside"), surface="side")
        turn.patch("aside", "props.content", "changed", surface="side")
        await turn.say("main")

    async with running(agent) as hub:
        renderer = await Renderer(hub).join()
        await renderer.say("go")
        await renderer.ended("t1")
        await renderer.say("again")
        await renderer.ended("t2")
        late = await Renderer(hub).join()
    shown = renderer.screen.surfaces["side"].output()
    assert [(part.id, part.props["content"]) for part in shown] == [("aside", "changed")]
    assert late.screen.canonical() == renderer.screen.canonical()
