"""Another version of a turn: what shows is one branch, and nothing of the others is lost.

Source: protocol.md 2.4.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from arp import ui
from arp.access.principal import Principal
from arp.hub.hub import Hub
from arp.ledger.fact import decode
from arp.protocol.connection.screen import Screen
from arp.protocol.messages import Input
from arp.session.input.receive import NewTurnOptions, submit
from arp.session.state import decode_state, encode_state
from arp.turn.turn import Turn
from tests.hub.rig import HeldStore, Renderer, running, settled

BRANCHES = ["streaming", "input", "resume", "patch-append", "multi-surface", "branches"]


async def draws(turn: Turn) -> None:
    """Shows things under ids of its own, changes what was there, and says what it knows."""
    before = [f"{role[0]}:{text}" for role, text in turn.history()]
    board = turn._session.tree("board")
    if board is None or "note" not in board.nodes:
        turn.show(ui.text(turn.text, id="note"), surface="board")
    else:
        turn.patch("note", "props.content", f"{turn.text}!", surface="board")
    turn.show(ui.table(["n"], [[turn.text]], id="chart"))
    await turn.say(f"{turn.text} after [{', '.join(before)}]")


def told(screen: Screen) -> list[tuple[str, str]]:
    """Return the turns that show: what began each, and what it said."""
    return [(turn.inputs[0].data["text"], screen.text(turn.id)) for turn in screen.turns.values()]


def board(screen: Screen) -> str:
    """Return what stands on the other surface."""
    (note,) = screen.surfaces["board"].output()
    return str(note.props["content"])


def versions(screen: Screen) -> dict[str, Sequence[str] | None]:
    """Return the versions that each turn names."""
    return {turn.id: turn.inputs[0].versions for turn in screen.turns.values()}


async def talked(hub: Hub, *texts: str, features: Sequence[str] = BRANCHES) -> Renderer:
    """Lets a renderer say things, one after the other is answered."""
    renderer = await Renderer(hub, features=features).join()
    for number, text in enumerate(texts, 1):
        await renderer.say(text)
        await renderer.ended(f"t{number}")
    return renderer


async def turns_to(renderer: Renderer, action: str, turn_id: str, **more: Any) -> None:
    """Asks for a version, and waits until the renderer shows another branch."""
    before = len(renderer.box.of("session"))
    await renderer.send("action", {"action": action, "payload": {"turn_id": turn_id}}, **more)
    await renderer.box.until(lambda: len(renderer.box.of("session")) > before)
    await settled(renderer.hub)


async def edits(renderer: Renderer, turn_id: str, text: str, as_turn: str) -> None:
    """Says something else in the place of a turn, and waits for the answer."""
    await renderer.say(text, edits=turn_id, id=f"edit-{as_turn}")
    await renderer.box.has("ack", id=f"edit-{as_turn}", turn_id=as_turn)
    await renderer.ended(as_turn)


async def test_an_edit_goes_on_from_what_stood_before_it() -> None:
    """Neither the old version nor what followed it shows, and the agent knows of neither."""
    async with running(draws) as hub:
        one = await talked(hub, "a", "b", "c")
        await edits(one, "t2", "B", "t4")
        assert told(one.screen) == [
            ("a", "a after []"),
            ("B", "B after [u:a, a:a after []]"),
        ]
        assert versions(one.screen) == {"t1": None, "t4": ["t2", "t4"]}
        assert board(one.screen) == "B!"


async def test_components_of_a_version_that_does_not_show_are_not_there_for_the_new_one() -> None:
    """A table under the same id stands in the new turn, not in the old one's place."""
    async with running(draws) as hub:
        one = await talked(hub, "a")
        await edits(one, "t1", "A", "t2")
        shown = [part.id for part in one.screen.output("t2")]
    assert shown == ["chart", "t2/1"]


async def test_a_version_is_shown_again_with_what_followed_it() -> None:
    async with running(draws) as hub:
        one = await talked(hub, "a", "b", "c")
        before = one.screen.canonical()
        await edits(one, "t2", "B", "t4")
        await one.say("d")
        await one.ended("t5")
        newer = one.screen.canonical()
        await turns_to(one, "arp.branch", "t2")
        assert one.screen.canonical() == before
        assert versions(one.screen) == {"t1": None, "t2": ["t2", "t4"], "t3": None}
        await turns_to(one, "arp.branch", "t5")
        assert one.screen.canonical() == newer


async def test_a_version_is_chosen_with_the_branch_on_which_it_was_seen_last() -> None:
    """Choosing a turn in the middle brings back its newest end."""
    async with running(draws) as hub:
        one = await talked(hub, "a", "b")
        await edits(one, "t2", "B", "t3")
        await edits(one, "t1", "A", "t4")
        await turns_to(one, "arp.branch", "t1")
        assert [text for text, _ in told(one.screen)] == ["a", "B"]


async def test_the_same_input_is_answered_again() -> None:
    async with running(draws) as hub:
        one = await talked(hub, "a", "b")
        await turns_to(one, "arp.regenerate", "t2", id="again")
        await one.ended("t3")
        assert told(one.screen)[1] == ("b", "b after [u:a, a:a after []]")
        assert versions(one.screen)["t3"] == ["t2", "t3"]
        assert one.box.of("ack")[-1]["turn_id"] == "t3"


async def test_every_renderer_shows_the_branch_whatever_it_knows() -> None:
    """Also one that came late, one that comes back from before, and one that knows text alone."""
    async with running(draws) as hub:
        one = await talked(hub, "a", "b")
        plain = await Renderer(hub, components=["text"], features=["streaming"]).join()
        place = one.box.of("commit")[-1]["seq"]
        epoch = one.box.of("session")[0]["epoch"]
        gone = await Renderer(hub).join()
        gone.leave()
        await edits(one, "t2", "B", "t3")
        late = await Renderer(hub).join()
        back = await Renderer(hub).join(epoch, place)
        await settled(hub)
        assert back.box.of("session")[0]["resume"] == "snapshot"
        assert late.screen.canonical() == one.screen.canonical()
        assert back.screen.canonical() == one.screen.canonical()
        assert [text for text, _ in told(plain.screen)] == ["a", "B"]


async def test_a_branch_outlives_a_restart() -> None:
    """What is made of the ledger is what showed, ids of new turns go on, versions are there."""
    store = HeldStore()
    async with running(draws, store=store) as hub:
        one = await talked(hub, "a", "b", "c")
        await edits(one, "t2", "B", "t4")
        before = one.screen.canonical()
    async with running(draws, store=store) as hub:
        again = await Renderer(hub, features=BRANCHES).join()
        assert again.screen.canonical() == before
        assert versions(again.screen) == {"t1": None, "t4": ["t2", "t4"]}
        await again.say("d")
        await again.ended("t5")
        await turns_to(again, "arp.branch", "t2")
        assert [text for text, _ in told(again.screen)] == ["a", "b", "c"]
    async with running(draws, store=store) as hub:
        third = await Renderer(hub, features=BRANCHES).join()
        assert third.screen.canonical() == again.screen.canonical()


async def test_the_ledger_says_what_no_longer_counts_and_what_counts_again() -> None:
    store = HeldStore()
    async with running(draws, store=store) as hub:
        one = await talked(hub, "a", "b")
        await edits(one, "t2", "B", "t3")
        await turns_to(one, "arp.branch", "t2")
        all_facts = await store.facts()
    facts = [fact for fact in all_facts if fact.type.startswith("history.rollback")]
    begun, ended, shown, over = facts
    assert begun.payload["reason"] == "edit"
    assert ended.payload["removedTurns"] == ["t2"]
    assert shown.payload["reason"] == "branch"
    assert over.payload["removedTurns"] == ["t3"]
    assert over.payload["restoredTurns"] == ["t2"]
    assert begun.request_id == ended.request_id != over.request_id
    submitted = [fact for fact in all_facts if fact.type == "turn.submitted"]
    assert [fact.payload.get("edits") for fact in submitted] == [None, None, "t2"]


async def test_the_same_edit_twice_is_one_version() -> None:
    async with running(draws) as hub:
        one = await talked(hub, "a")
        await edits(one, "t1", "A", "t2")
        await one.say("A", edits="t1", id="edit-t2")
        await settled(hub)
        assert versions(one.screen) == {"t2": ["t1", "t2"]}
        assert [ack["turn_id"] for ack in one.box.of("ack")] == ["t2", "t2"]


@pytest.mark.parametrize(
    ("input_type", "data", "edited", "code"),
    [
        ("text", {"text": "x"}, "t9", 1),
        ("action", {"action": "arp.regenerate", "payload": {"turn_id": "t9"}}, None, 1),
        ("action", {"action": "arp.branch", "payload": {"turn_id": 7}}, None, 1),
        ("action", {"action": "arp.branch"}, None, 1),
        ("selection", {"selected": ["x"]}, "t1", 11),
        ("text", {}, "t1", 11),
    ],
)
async def test_what_makes_no_sense_is_refused_and_changes_nothing(
    input_type: str, data: Any, edited: str | None, code: int
) -> None:
    async with running(draws) as hub:
        one = await talked(hub, "a")
        before = one.screen.canonical()
        await one.send(input_type, data, edits=edited, id="x")
        refused = await one.box.has("error")
        await settled(hub)
        assert (refused["payload"]["code"], refused["payload"]["id"]) == (code, "x")
        assert one.screen.canonical() == before


async def waits(turn: Turn) -> None:
    """Runs until it is stopped, unless it is told to end."""
    if turn.text == "wait":
        await asyncio.Event().wait()
    await turn.say(f"{turn.text}; {[text for _, text in turn.history()]}")


async def test_while_a_turn_runs_there_is_no_other_branch() -> None:
    """BUSY; once it is stopped there is."""
    async with running(waits) as hub:
        one = await talked(hub, "a")
        await one.say("wait")
        await one.box.has("turn", turn_id="t2", status="running")
        await one.say("A", edits="t1", id="early")
        assert (await one.box.has("error"))["payload"]["code"] == 17
        await one.cancel()
        await one.ended("t2")
        await edits(one, "t1", "A", "t3")
        assert told(one.screen) == [("A", "A; []")]


async def fails_at_first(turn: Turn) -> None:
    """Fails until somebody tries again, and says who was heard before."""
    if turn.text == "hold":
        await turn.ask(ui.confirm("Go on?", id="go"))
    elif turn.text == "fail" and turn.id == "t1":
        await turn.ask(ui.confirm("Fail?", id="go"))
        raise RuntimeError("no")
    await turn.say(f"{turn.text} after {[text for role, text in turn.history() if role == 'user']}")


async def with_a_line(hub: Hub, *waiting: str) -> Renderer:
    """A turn failed while others stood in line, which waits since."""
    one = await Renderer(hub, features=[*BRANCHES, "line-pause"]).join()
    await one.say("fail")
    await one.box.has("turn", turn_id="t1", status="waiting")
    for number, text in enumerate(waiting, 2):
        await one.say(text, id=f"said-{number}")
        await one.box.has("ack", id=f"said-{number}")
    await one.send("action", {"action": "confirm"}, source_component="go")
    await one.box.has("turn", status="queued", paused=True)
    return one


@pytest.mark.parametrize("way", ["again", "in other words"])
async def test_a_line_that_waits_goes_on_behind_another_version_of_what_failed(way: str) -> None:
    """Nobody needs to say again what waited, and nothing of it is answered twice."""
    async with running(fails_at_first) as hub:
        one = await with_a_line(hub, "two", "three")
        first = "fail" if way == "again" else "try"
        if way == "again":
            await turns_to(one, "arp.regenerate", "t1")
        else:
            await one.say("try", edits="t1")
        await one.ended("t6")
        await settled(hub)
        assert told(one.screen) == [
            (first, f"{first} after []"),
            ("two", f"two after ['{first}']"),
            ("three", f"three after ['{first}', 'two']"),
        ]
        assert versions(one.screen) == {"t4": ["t1", "t4"], "t5": None, "t6": None}
        late = await Renderer(hub, features=BRANCHES).join()
        await settled(hub)
        assert late.screen.canonical() == one.screen.canonical()
        await turns_to(one, "arp.branch", "t1")
        statuses = {turn.id: turn.status for turn in one.screen.turns.values()}
        assert statuses == {"t1": "failed", "t2": "cancelled", "t3": "cancelled"}


async def test_a_line_that_waits_stands_behind_the_version_while_that_is_answered() -> None:
    async with running(fails_at_first) as hub:
        one = await with_a_line(hub, "two", "three")
        await one.say("hold", edits="t1")
        await one.box.has("turn", turn_id="t4", status="waiting")
        await settled(hub)
        line = {turn.id: (turn.status, turn.position) for turn in one.screen.turns.values()}
        assert line == {"t4": ("waiting", None), "t5": ("queued", 1), "t6": ("queued", 2)}


async def test_two_edits_at_once_are_two_versions_one_after_the_other_or_busy() -> None:
    """Each takes effect whole or not at all."""
    async with running(draws) as hub:
        one = await talked(hub, "a")
        two = await Renderer(hub, features=BRANCHES).join()
        await asyncio.gather(one.say("b", edits="t1"), two.say("c", edits="t1"))
        await one.ended("t2")
        await settled(hub)
        assert len(one.screen.turns) == 1
        assert two.screen.canonical() == one.screen.canonical()


# -- a long conversation ---------------------------------------------------------------------------


async def echoes(turn: Turn) -> None:
    """Says little."""
    await turn.say(f"re {turn.text}")


LONG = [f"m{number}" for number in range(1, 61)]


async def pages(hub: Hub) -> list[str]:
    """Return what began each turn of the branch, by pages of its history."""
    live = await hub.find("s", Principal())
    out: list[str] = []
    before: str | None = None
    while page := await hub.history.page(live, before, 25):
        out = [past.turn.inputs[0].data["text"] for past in page] + out
        before = page[0].turn.id
        if page[0].number == 1:
            break
    return out


async def test_turns_that_left_the_memory_are_edited_and_paged_like_others() -> None:
    """From the log, in the middle of it, and after a restart."""
    store = HeldStore()
    async with running(echoes, store=store) as hub:
        one = await talked(hub, *LONG)
        assert await pages(hub) == LONG
        await edits(one, "t3", "other", "t61")
        assert await pages(hub) == ["m1", "m2", "other"]
        await turns_to(one, "arp.branch", "t60")
        assert await pages(hub) == LONG
        assert len(one.screen.turns) == 50
        await one.say("end")
        await one.ended("t62")
        live = await hub.find("s", Principal())
        hidden = await hub.history.turn(live, "t61")
        assert hidden is not None
        assert (hidden.number, hidden.text) == (3, "re other")
        assert await hub.history.turn(live, "t99") is None
    async with running(echoes, store=store) as hub:
        again = await Renderer(hub, features=BRANCHES).join()
        assert again.screen.canonical()["turns"].keys() == {
            *(f"t{number}" for number in range(12, 61)),
            "t62",
        }
        assert await pages(hub) == [*LONG, "end"]
        await turns_to(again, "arp.branch", "t61")
        assert await pages(hub) == ["m1", "m2", "other"]
        assert versions(again.screen)["t61"] == ["t3", "t61"]


async def test_a_stored_state_has_the_branches() -> None:
    """A session that is read from one goes on as if it had read all facts."""
    store = HeldStore()
    async with running(echoes, store=store) as hub:
        one = await talked(hub, *LONG[:20])
        await edits(one, "t20", "other", "t21")
        await hub.rename("s", Principal(), "Name", True)
        states = hub.directory.states
    async with running(echoes, store=store) as hub:
        live = await hub.find("s", Principal())
        head = live.session.head
        data = encode_state(live.session)
        rules = live.session.rules
        made = decode_state(data, head, rules, None)
        assert encode_state(made) == data
        assert (made.title, made.settings.pinned) == ("Name", True)
        assert made.branches is not None
        assert made.branches.shown[-2:] == ["t19", "t21"]
        fresh = await states.read(head)
        assert encode_state(fresh) == data


# -- the line --------------------------------------------------------------------------------------


async def lined_up(hub: Hub, features: Sequence[str] = BRANCHES) -> Renderer:
    """Lets one turn run and two wait in line."""
    renderer = await Renderer(hub, features=features).join()
    for text in ("wait", "b", "c"):
        await renderer.say(text)
    await renderer.box.has("turn", turn_id="t3", status="queued", position=2)
    return renderer


@pytest.mark.parametrize("features", [BRANCHES, BRANCHES[:-1]])
async def test_a_turn_in_line_is_edited_where_it_stands(features: Sequence[str]) -> None:
    """A renderer that does not know of it gets a snapshot; the screens are the same."""
    async with running(waits) as hub:
        one = await lined_up(hub, features)
        other = await Renderer(hub, features=BRANCHES).join()
        await one.say("B", edits="t2", id="e")
        await one.box.has("ack", id="e", turn_id="t2")
        await settled(hub)
        snapshots = [s for s in one.box.of("session") if s["resume"] == "snapshot"]
        assert len(snapshots) == (0 if "branches" in features else 1)
        assert other.box.of("input")[-1]["edited"] is True
        await one.cancel()
        await one.ended("t3")
        await settled(hub)
        assert told(one.screen)[1:] == [("B", "B; []"), ("c", "c; ['B', 'B; []']")]
        assert other.screen.canonical() == one.screen.canonical()


async def test_a_turn_in_line_that_is_edited_outlives_a_restart() -> None:
    store = HeldStore()
    async with running(waits, store=store) as hub:
        one = await lined_up(hub)
        await one.say("B", edits="t2")
        await settled(hub)
    async with running(waits, store=store) as hub:
        again = await Renderer(hub, features=BRANCHES).join()
        await again.ended("t3")
        assert [text for text, _ in told(again.screen)] == ["wait", "B", "c"]


async def test_a_renderer_that_comes_back_is_told_of_an_edit_in_line_or_gets_a_snapshot() -> None:
    async with running(waits) as hub:
        one = await lined_up(hub)
        epoch, seq = hub.sessions["s"].session.head.epoch, hub.sessions["s"].session.sequence
        await settled(hub)
        await one.say("B", edits="t2")
        await settled(hub)
        knows = await Renderer(hub, features=BRANCHES).join(epoch, seq)
        other = await Renderer(hub).join(epoch, seq)
        assert [s["resume"] for s in knows.box.of("session")] == ["replay"]
        assert knows.box.of("input")[0]["edited"] is True
        assert [s["resume"] for s in other.box.of("session")] == ["replay", "snapshot"]


async def test_a_turn_is_put_first_in_line() -> None:
    async with running(waits) as hub:
        one = await lined_up(hub)
        await one.send("action", {"action": "arp.promote", "payload": {"turn_id": "t3"}}, id="p")
        await one.box.has("ack", id="p", turn_id="t3")
        await one.box.has("turn", turn_id="t2", position=2)
        await one.send("action", {"action": "arp.promote", "payload": {"turn_id": "t1"}})
        assert (await one.box.has("error"))["payload"]["code"] == 1


async def test_the_line_is_empty_in_the_ledger_when_the_last_turn_has_left_it() -> None:
    """And no turn on the screen is said to wait."""
    store = HeldStore()
    async with running(waits, store=store) as hub:
        one = await lined_up(hub)
        await one.cancel("t3")
        await one.cancel()
        await one.ended("t2")
        await settled(hub)
        assert {turn.id: turn.position for turn in one.screen.turns.values()} == dict.fromkeys(
            ("t1", "t2", "t3")
        )
        assert told(one.screen)[1] == ("b", "b; []")
        facts = await store.facts()
    lines = [fact.payload for fact in facts if fact.type == "queue.changed"]
    assert [line["queued"] for line in lines] == [["t2"], ["t2", "t3"], ["t2"], []]


async def test_a_version_of_a_turn_belongs_to_its_thread_and_so_do_those_that_waited() -> None:
    async with running(draws) as hub:
        one = await talked(hub, "a")
        live = hub.sessions["s"]
        live.session.begin_thread("side")
        for number, words in enumerate(("b", "c"), 2):
            asked = Input(input_type="text", data={"text": words})
            hub.carry_out(live, submit(live.session, asked, NewTurnOptions(thread="side")))
            await one.ended(f"t{number}")
        assert told(one.screen)[2] == ("c", "c after [u:b, a:b after []]")
        await edits(one, "t2", "B", "t4")
        assert told(one.screen) == [("a", "a after []"), ("B", "B after []")]
        log = [decode(body) for _, body in await hub.store.read("s", 0, 1000)]
        rolled = [fact for fact in log if fact.type.startswith("history.rollback")]
        assert {fact.thread_id for fact in rolled} == {"side"}
        assert live.session.threads.turns == {"t4": "side"}
        await turns_to(one, "arp.branch", "t3")
        assert live.session.threads.turns == {"t2": "side", "t3": "side"}
        model = await hub.models.read(live.id)
        beside = model.thread("side")
        assert beside is not None
        assert {turn["turnId"]: turn.get("removed", False) for turn in beside["turns"]} == {
            "t2": False,
            "t3": False,
            "t4": True,
        }
