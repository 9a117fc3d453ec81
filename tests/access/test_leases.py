"""What stays open lasts as long as what let it in."""

from __future__ import annotations

import asyncio
import time
from functools import partial

import pytest

from arp.access import leases
from arp.access.leases import CHECK_S, HookFailed, Lease, Leases
from arp.access.principal import Principal

ANN = Principal("ann", credential="token:a")


class Door:
    """Says who is still let in."""

    def __init__(self) -> None:
        self.shut: set[str] = set()
        self.asked: list[str] = []

    def is_valid(self, principal: Principal) -> bool:
        self.asked.append(principal.credential)
        until = principal.expires_at
        return principal.credential not in self.shut and (until is None or until > time.time())


async def test_lease_ends_within_a_check_after_its_token() -> None:
    door, ended = Door(), asyncio.Event()
    leases = Leases(door.is_valid)
    lease = Lease(leases)
    lease.when_ended(ended.set)
    lease.begin(ANN)
    door.shut.add("token:a")
    async with asyncio.timeout(CHECK_S * 4):
        await ended.wait()
    assert lease.is_over


async def test_known_end_is_met_without_waiting_for_the_next_check() -> None:
    ended = asyncio.Event()
    lease = Lease(Leases(Door().is_valid))
    lease.when_ended(ended.set)
    began, until = time.monotonic(), time.time() + 0.05
    lease.begin(Principal("ann", expires_at=until))
    await ended.wait()
    assert time.monotonic() - began < CHECK_S
    assert time.time() >= until


async def test_others_stay_and_each_credential_is_asked_once() -> None:
    door, ended = Door(), list[str]()
    leases = Leases(door.is_valid)
    for name in ("a", "a", "b"):
        lease = Lease(leases)
        lease.when_ended(partial(ended.append, name))
        lease.begin(Principal(name, credential=f"token:{name}"))
    door.shut.add("token:a")
    leases.check()
    assert ended == ["a", "a"]
    assert sorted(door.asked) == ["token:a", "token:b"]


async def test_released_lease_calls_nobody() -> None:
    door, ended = Door(), list[str]()
    leases = Leases(door.is_valid)
    lease = Lease(leases)
    lease.when_ended(lambda: ended.append("x"))
    lease.begin(ANN)
    lease.release()
    door.shut.add("token:a")
    leases.check()
    assert (ended, lease.is_over, door.asked) == ([], False, [])


async def test_what_nothing_can_end_is_not_watched() -> None:
    door = Door()
    leases = Leases(door.is_valid)
    for principal in (None, Principal(), Principal("ann")):
        Lease(leases).begin(principal)
    leases.check()
    assert door.asked == []


async def test_lease_that_is_over_says_so_to_who_comes_late() -> None:
    ended = list[str]()
    lease = Lease(Leases(Door().is_valid))
    lease.end()
    lease.when_ended(lambda: ended.append("x"))
    assert ended == ["x"]


async def test_hook_is_asked_again_and_its_new_answer_counts() -> None:
    answers: list[Principal | None] = [Principal("ann"), Principal("ann"), None]
    ended = asyncio.Event()
    lease = Lease(Leases(Door().is_valid, recheck_s=0.01))
    lease.when_ended(ended.set)

    async def ask() -> Principal | None:
        return answers.pop(0)

    lease.begin(Principal("ann"), ask)
    assert lease.may_end
    await ended.wait()
    assert answers == []


@pytest.mark.parametrize("other", [Principal("bob"), Principal("ann", is_admin=True)])
async def test_hook_that_knows_somebody_else_now_ends_it(other: Principal) -> None:
    ended = asyncio.Event()
    lease = Lease(Leases(Door().is_valid, recheck_s=0.01))
    lease.when_ended(ended.set)

    async def ask() -> Principal | None:
        return other

    lease.begin(Principal("ann"), ask)
    await ended.wait()


async def test_hook_that_fails_has_not_refused() -> None:
    answers: list[Principal | None] = [None, Principal("ann")]
    ended = asyncio.Event()
    lease = Lease(Leases(Door().is_valid, recheck_s=0.001))
    lease.when_ended(ended.set)
    failed = 0

    async def ask() -> Principal | None:
        nonlocal failed
        if failed < 3:
            failed += 1
            raise HookFailed
        return answers.pop()

    lease.begin(Principal("ann"), ask)
    await ended.wait()
    assert (failed, answers) == (3, [])


async def test_hook_that_fails_for_too_long_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """So does one that never answers."""
    monkeypatch.setattr(leases, "GRACE_S", 0.0)
    monkeypatch.setattr(leases, "ANSWER_S", 0.001)
    ended = asyncio.Event()
    lease = Lease(Leases(Door().is_valid, recheck_s=0.001))
    lease.when_ended(ended.set)

    async def ask() -> Principal | None:
        await asyncio.Event().wait()
        raise AssertionError

    lease.begin(Principal("ann"), ask)
    await ended.wait()


async def test_released_lease_asks_no_hook() -> None:
    asked = list[str]()
    lease = Lease(Leases(Door().is_valid, recheck_s=0.001))

    async def ask() -> Principal | None:
        asked.append("ann")
        return Principal("ann")

    lease.begin(Principal("ann"), ask)
    lease.release()
    other, ended = Lease(Leases(Door().is_valid)), asyncio.Event()
    other.when_ended(ended.set)
    other.begin(Principal("bob", expires_at=time.time() + 0.02))  # later than it would have asked
    await ended.wait()
    assert (asked, lease.may_end) == ([], False)
