"""The list of chats: named, pinned, searched, and told when it changes."""

from __future__ import annotations

import pytest

from arp.access.principal import Principal
from arp.hub.hub import Hub
from arp.hub.runner import HubApp
from arp.live.listing import ChatListQuery
from arp.protocol.errors import InvalidMessage, SessionNotFound
from arp.store.session_list import SessionMeta
from arp.turn.turn import Turn
from tests.hub.rig import HeldStore, Renderer, running, settled

ADA = Principal("ada")


async def answers(turn: Turn) -> None:
    """Says what it heard."""
    await turn.say(f"Über {turn.text}")


async def talked(hub: Hub, session_id: str, *texts: str) -> Renderer:
    """Lets Ada say things in a session."""
    renderer = await Renderer(hub, session_id, owner="ada").join()
    for number, text in enumerate(texts, 1):
        await renderer.say(text)
        await renderer.ended(f"t{number}")
    await settled(hub)
    return renderer


async def ids(hub: Hub, query: str = "", **more: object) -> list[str]:
    """Return the chats of a page."""
    asked = ChatListQuery("ada", query, **more)  # type: ignore[arg-type]
    matches, _ = await hub.listing.page(asked)
    return [match.meta.id for match in matches]


async def test_pinned_chats_come_first_and_pages_have_each_once() -> None:
    async with running(answers) as hub:
        for name in "abcde":
            await talked(hub, name, name)
        await hub.rename("b", ADA, None, True)
        await hub.rename("d", ADA, None, True)
        assert await ids(hub) == ["d", "b", "e", "c", "a"]
        pages, before = list[list[str]](), None
        while True:
            found, before = await hub.listing.page(ChatListQuery("ada", before=before, limit=2))
            pages.append([match.meta.id for match in found])
            if before is None:
                break
        assert [name for page in pages for name in page] == ["d", "b", "e", "c", "a"]
        await hub.rename("d", ADA, None, False)
        assert await ids(hub) == ["b", "e", "d", "c", "a"]


async def test_a_name_is_kept_and_an_empty_one_gives_back_the_first_words() -> None:
    """Over a restart too."""
    store = HeldStore()
    async with running(answers, store=store) as hub:
        await talked(hub, "s", "first words")
        row = await hub.rename("s", ADA, "  My\n name ", None)
        assert (row.title, row.is_named) == ("My name", True)
    async with running(answers, store=store) as hub:
        await talked(hub, "s")
        assert (await hub.metas(ADA))[0].title == "My name"
        row = await hub.rename("s", ADA, "", None)
        assert (row.title, row.is_named) == ("first words", False)


async def test_naming_pinning_and_looking_leave_the_place_in_the_list() -> None:
    """Only what was said is news."""
    store = HeldStore()
    async with running(answers, store=store) as hub:
        await talked(hub, "old", "one")
    app, year = HubApp({"agent": answers}), "2027-01-01T00:00:00.000000Z"
    hub = Hub(store, hub.blobs, app, now=lambda: year)
    await store.open()
    await hub.start()
    before = (await hub.metas(ADA))[0].updated_at
    await talked(hub, "old")
    row = await hub.rename("old", ADA, "Name", True)
    assert row.updated_at == before == "2026-01-02T03:04:05.000000Z"
    one = await Renderer(hub, "old", owner="ada").join()
    await one.say("two")
    await one.ended("t2")
    await settled(hub)
    assert (await hub.metas(ADA))[0].updated_at == "2027-01-01T00:00:00.000000Z"
    await hub.aclose()


async def test_nobody_names_what_is_not_theirs_and_nothing_is_no_change() -> None:
    async with running(answers) as hub:
        await talked(hub, "s", "one")
        with pytest.raises(SessionNotFound):
            await hub.rename("s", Principal("bob"), "mine", None)
        with pytest.raises(InvalidMessage):
            await hub.rename("s", ADA, None, None)
        assert (await hub.metas(ADA))[0].title == "one"


async def test_chats_are_found_by_their_title_and_by_what_either_side_said() -> None:
    """Each word somewhere, in any case, also inside of words."""
    async with running(answers) as hub:
        await talked(hub, "a", "Sales in Oslo", "and the costs")
        await talked(hub, "b", "Weather")
        await hub.rename("b", ADA, "Skies over Oslo", None)
        assert await ids(hub, "oslo") == ["b", "a"]
        assert await ids(hub, "OSLO cost") == ["a"]
        assert await ids(hub, "über weath") == ["b"]
        assert await ids(hub, "oslo snow") == []
        (found,) = (await hub.listing.page(ChatListQuery("ada", "costs")))[0]
        assert (found.turn_id, found.excerpt) == ("t2", "and the costs Über and the costs")
        assert (await hub.listing.page(ChatListQuery("bob", "oslo")))[0] == []


async def test_changes_of_the_list_are_told_to_their_owner_alone() -> None:
    """A new chat, a name, a pin, a chat that is gone."""
    told: list[str] = []
    others: list[object] = []

    def hear(changed: SessionMeta | str) -> None:
        if isinstance(changed, SessionMeta):
            told.append(f"{changed.title}/{changed.pinned}")
        else:
            told.append(f"gone {changed}")

    async with running(answers) as hub:
        stop = hub.listing.listen("ada", hear)
        end = hub.listing.listen("bob", others.append)
        await talked(hub, "s", "one")
        assert told[-1] == "one/False"
        await hub.rename("s", ADA, "Name", True)
        await hub.delete("s", ADA)
        assert told[-2:] == ["Name/True", "gone s"]
        stop()
        end()
        await talked(hub, "other", "two")
        assert told[-1] == "gone s"
    assert others == []


async def test_a_secret_in_a_name_is_taken_out() -> None:
    async with running(answers) as hub:
        await talked(hub, "s", "one")
        row = await hub.rename("s", ADA, "key ghp_" + "a1B2" * 9, None)
        assert row.title == "key ghp_[redacted]"
