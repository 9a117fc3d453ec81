"""What our stores do beyond the contract, which `tests/conformance/test_store_suite.py` checks."""

from __future__ import annotations

import pytest

from arp.store.errors import FactUnreadable
from arp.store.store import SessionWrite, Store, check_append, new_runtime_id
from arp.store.store import facts as facts_of
from tests.store.samples import MALFORMED, fact, facts, meta, numbered, put, slip_in


async def test_facts_before_one_that_nobody_can_read_are_yielded(store: Store) -> None:
    await put(store, 1, 2)
    await slip_in(store, "s1", 2, MALFORMED)
    found = facts_of(store, "s1")
    assert [await anext(found), await anext(found)] == numbered(1, 2)
    with pytest.raises(FactUnreadable):
        await anext(found)


async def test_a_fact_of_an_older_ledger_that_is_no_json_is_named(store: Store) -> None:
    """Those before it are given, and those of other sessions."""
    await put(store, 1, 2)
    await put(store, 1, 1, "b")
    await slip_in(store, "s1", 2, MALFORMED, fact(4))
    assert await store.read("s1") == numbered(1, 2)
    assert await store.read("s1", 3) == numbered(4, 4)
    with pytest.raises(FactUnreadable, match="session s1: fact 3 cannot be read") as error:
        await store.read("s1", 2)
    assert (error.value.after, error.value.sequence) == (2, 3)
    assert await store.read("b") == numbered(1, 1, "b")


def test_an_append_that_any_store_can_keep_passes() -> None:
    check_append(SessionWrite("s1", 0, [], meta("s1")))
    check_append(SessionWrite("s1", 0, []))


def test_ids_of_runtimes_are_recognised_and_differ() -> None:
    ids = {new_runtime_id() for _ in range(3)}
    assert len(ids) == 3
    assert all(one.startswith("arp-") for one in ids)


async def test_no_hash_is_kept_of_what_is_not_sorted(store: Store) -> None:
    await store.append([SessionWrite("s1", 0, facts(1, 3), meta())])
    assert await store.heads("s1") == []
    assert await store.heads("none") == []
