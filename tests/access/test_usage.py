"""What is in use counts for a user and an address before it counts for all."""

from __future__ import annotations

import pytest

from arp.access.principal import Principal
from arp.access.usage import Slot, UsageCounter, UsageLimits
from arp.protocol.errors import RateLimited

ADA, BOB = ("user 'ada'", "address 1"), ("user 'bob'", "address 2")


def test_user_and_address_are_refused_before_all_are() -> None:
    counter = UsageCounter("things", UsageLimits(2, 3, 4))
    counter.acquire(ADA, 2)
    with pytest.raises(RateLimited, match="user 'ada' has things up to the bound"):
        counter.acquire(ADA)
    counter.acquire(ADA[1:])
    with pytest.raises(RateLimited, match="address 1 has things up to the bound"):
        counter.acquire(("user 'eve'", "address 1"))
    counter.acquire(BOB)
    with pytest.raises(RateLimited, match="there are things up to the bound"):
        counter.acquire(BOB)
    counter.release(BOB)
    counter.acquire(("user 'eve'", "address 3"))
    assert counter.used == 4


def test_what_is_given_back_leaves_nothing() -> None:
    counter = UsageCounter("things", UsageLimits(9, 9, 9))
    counter.acquire(ADA, 3)
    counter.release(ADA, 3)
    assert (counter.used, len(counter._by_key)) == (0, 0)


def test_slot_counts_for_the_user_as_soon_as_that_is_known() -> None:
    counter = UsageCounter("slots", UsageLimits(1, 9, 9))
    first, second = Slot(counter, Principal("", "1")), Slot(counter, Principal("", "1"))
    first.assign("ada")
    with pytest.raises(RateLimited, match="user 'ada'"):
        second.assign("ada")
    first.release()
    second.assign("ada")
    second.release()
    assert (counter.used, len(counter._by_key)) == (0, 0)
