"""One user, or one address, is refused before there is no room for the others."""

from __future__ import annotations

import pytest

from arp.access.principal import Principal, keys_of
from arp.live.quotas import SessionQuota
from arp.live.settings import HubSettings
from arp.protocol.errors import RateLimited
from tests.hub.rig import Renderer, running

ADA = Principal("ada", "192.0.2.1")
BOB = Principal("bob", "192.0.2.2")


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_user_without_a_name_counts_by_address_alone() -> None:
    assert keys_of(Principal("ada", "192.0.2.1")) == ("user 'ada'", "address 192.0.2.1")
    assert keys_of(Principal("", "192.0.2.1")) == ("address 192.0.2.1",)
    assert keys_of(Principal()) == ()


@pytest.mark.parametrize(
    ("other", "is_refused"),
    [
        (Principal("ada", "192.0.2.9"), True),
        (Principal("eve", "192.0.2.1"), True),
        (Principal("eve", "192.0.2.9"), False),
        (Principal(), False),
    ],
)
async def test_open_sessions_count_for_the_user_and_for_the_address(
    other: Principal, is_refused: bool
) -> None:
    """The others find room as long as there is any."""
    settings = HubSettings(
        max_sessions=10, max_sessions_per_user=2, max_sessions_per_address=2, stop_grace_s=0.05
    )
    async with running(settings=settings) as hub:
        for name in ("a", "b"):
            renderer = Renderer(hub, name)
            renderer.principal = ADA
            await renderer.join()
        if is_refused:
            with pytest.raises(RateLimited, match="has 2 open sessions"):
                await hub.open("c", other, "agent")
        else:
            await hub.open("c", other, "agent")
        again = await hub.open("a", ADA, "agent")
    assert again.id == "a"


async def test_idle_sessions_of_a_user_leave_the_memory_for_a_new_one_of_the_same_user() -> None:
    """Those of others stay."""
    settings = HubSettings(max_sessions=10, max_sessions_per_user=2, stop_grace_s=0.05)
    async with running(settings=settings) as hub:
        for name, who in (("a", ADA), ("b", ADA), ("c", BOB)):
            live = await hub.open(name, who, "agent")
            await live.written()
            live.used_at -= 30
        await hub.open("d", ADA, "agent")
        assert sorted(hub.sessions) == ["b", "c", "d"]


async def test_sessions_made_within_a_minute_are_bounded() -> None:
    settings = HubSettings(max_new_sessions_per_minute=2, stop_grace_s=0.05)
    async with running(settings=settings) as hub:
        for name in ("a", "b"):
            await hub.delete((await hub.open(name, ADA, "agent")).id, ADA)
        with pytest.raises(RateLimited, match="user 'ada' made 2 sessions within a minute"):
            await hub.open("c", ADA, "agent")
        await hub.open("c", BOB, "agent")


async def test_session_that_nobody_used_does_not_count() -> None:
    """Not as an open one; nor as made, if it went before anything of it was written."""
    settings = HubSettings(
        max_new_sessions_per_minute=5, max_sessions_per_user=1, stop_grace_s=0.05
    )
    async with running(settings=settings) as hub:
        renderer = Renderer(hub, None)
        renderer.principal = ADA
        for _ in range(100):
            await hub.hello(renderer.viewer, renderer.hello, ADA, "agent")
        for _ in range(5):
            await renderer.join()
        assert len(hub.sessions) == 1
        with pytest.raises(RateLimited, match="made 5 sessions"):
            await renderer.join()


def test_next_minute_begins_anew() -> None:
    clock = Clock()
    shares = SessionQuota(HubSettings(max_new_sessions_per_minute=1), clock)
    keys = keys_of(ADA)
    shares.check(keys)
    shares.made(keys)
    clock.now = 59.0
    with pytest.raises(RateLimited):
        shares.check(keys)
    clock.now = 60.0
    shares.check(keys)


def test_shares_that_are_given_back_take_no_room() -> None:
    """Addresses come and go for years."""
    shares = SessionQuota(HubSettings(max_sessions_per_user=1), Clock())
    keys = keys_of(ADA)
    shares.opened(keys)
    shares.made(keys)
    assert shares.full(keys) == "user 'ada'"
    shares.left(keys)
    shares.unmade(keys)
    assert (shares.full(keys), len(shares._open), len(shares._made)) == (None, 0, 0)
