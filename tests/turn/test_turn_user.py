"""`turn.user`: who began a turn, also of one that waited."""

from __future__ import annotations

import msgspec

from arp import ui
from arp.access.principal import Principal, User
from arp.hub.hub import Hub
from arp.protocol.messages import Input
from arp.turn.turn import Turn
from tests.hub.rig import Renderer, running

ADMIN = User("ada", "Ada L.", ["admin"], {"team": 7})
FEATURES = ["streaming", "input", "resume", "branches", "line-pause"]
READER = User("ada", roles=["reader"])


async def names(turn: Turn) -> None:
    """Says who it works for; the first turn fails and another waits where their texts say so."""
    if turn.text in ("hold", "fail"):
        await turn.ask(ui.confirm("Go on?", id="go"))
    if turn.text == "fail":
        raise RuntimeError("no")
    await turn.say(f"{turn.user.name}/{turn.user.display_name}/{','.join(turn.user.roles)}")


async def of(hub: Hub, user: User) -> Renderer:
    renderer = Renderer(hub, owner=user.name, features=FEATURES)
    renderer.principal = Principal(user.name, known_as=user)
    return await renderer.join()


def said(renderer: Renderer, turn_id: str) -> str:
    return renderer.screen.text(turn_id)


async def test_turn_has_the_user_whose_input_began_it() -> None:
    """Two connections of one user may be known by different roles."""
    async with running(names) as hub:
        admin, reader = await of(hub, ADMIN), await of(hub, READER)
        await admin.say("x")
        await admin.ended("t1")
        await reader.say("x")
        await reader.ended("t2")
        assert (said(reader, "t1"), said(reader, "t2")) == ("ada/Ada L./admin", "ada/ada/reader")


async def test_posted_input_has_its_user_too() -> None:
    async with running(names) as hub:
        asked = Input(input_type="text", data={"text": "x"}, session_id="s")
        await hub.submit(asked, Principal("ada", known_as=ADMIN), "agent")
        renderer = await of(hub, READER)
        await renderer.ended("t1")
        assert said(renderer, "t1") == "ada/Ada L./admin"


async def test_turns_that_wait_keep_their_users_also_behind_an_edit() -> None:
    """The edit takes them out of the queue and puts them back under new names."""
    async with running(names) as hub:
        admin, reader = await of(hub, ADMIN), await of(hub, READER)
        await admin.say("fail")
        await admin.box.has("turn", turn_id="t1", status="waiting")
        await admin.say("x", id="t2")
        await reader.say("x", id="t3")
        await reader.box.has("ack", id="t3", turn_id="t3")
        await admin.send("action", {"action": "confirm"}, source_component="go")
        await admin.box.has("turn", status="queued", paused=True)
        await reader.say("hold", edits="t1", id="e")
        await reader.box.has("turn", turn_id="t4", status="waiting")
        users = hub.sessions["s"].session.input_log.users
        assert users == {"t4": READER, "t5": ADMIN, "t6": READER}


async def test_user_without_more_than_a_name_costs_nothing() -> None:
    async with running(names) as hub:
        renderer = await Renderer(hub, owner="bob").join()
        await renderer.say("x")
        await renderer.ended("t1")
        assert said(renderer, "t1") == "bob/bob/"
        assert hub.sessions["s"].session.input_log.users == {}


async def test_users_of_turns_that_are_over_are_forgotten() -> None:
    async with running(names) as hub:
        admin = await of(hub, ADMIN)
        for number in range(1, 4):
            await admin.say("x")
            await admin.ended(f"t{number}")
        assert hub.sessions["s"].session.input_log.users == {}


async def test_nothing_of_a_user_but_the_name_is_recorded() -> None:
    """Roles and claims are the hook's to give, each time."""
    async with running(names) as hub:
        user = msgspec.structs.replace(ADMIN, claims={"secret": "swordfish"})
        renderer = await of(hub, user)
        await renderer.send("text", {"text": "x"})
        await renderer.ended("t1")
        facts = b"".join(body for _, body in await hub.store.read("s", 0, 1000))
        assert b"swordfish" not in facts
        assert b'"owner":"ada"' in facts
