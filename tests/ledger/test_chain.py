"""The hash chain: whatever happens to a fact shows, at its sequence."""

from __future__ import annotations

import random
from collections.abc import Sequence
from hashlib import sha256
from itertools import zip_longest

import pytest

from arp.ledger.chain import ChainBroken, KeptCheck, genesis, head, link, links

FACTS = [b'{"sequence":%d,"text":"what was said, number %d"}' % (n, n) for n in range(1, 21)]
START = genesis("s1", "e1")
HASHES = list(links(START, FACTS))


def first_break(
    previous: bytes, facts: Sequence[bytes], hashes: Sequence[bytes], first: int = 1
) -> int | None:
    """Return the first sequence at which facts are not those whose hashes were kept."""
    pairs = zip_longest(links(previous, facts), hashes)
    return next((place for place, (found, kept) in enumerate(pairs, first) if found != kept), None)


def test_a_hash_covers_the_fact_and_the_hash_before() -> None:
    assert sha256(b"11:arp-chain-1" + b"2:s1" + b"2:e1").digest() == START
    assert link(START, b"{}") == sha256(START + b"{}").digest()
    assert HASHES[0] == sha256(START + FACTS[0]).digest()
    assert HASHES[1] == sha256(HASHES[0] + FACTS[1]).digest()
    assert head(START, FACTS) == HASHES[-1]
    assert head(START, []) == START


def test_no_two_sessions_or_lives_of_one_begin_alike() -> None:
    """Also where the names of both, written one behind the other, are the same text."""
    begins = {genesis("ab", "c"), genesis("a", "bc"), genesis("", "abc"), genesis("abc", "")}
    assert len(begins) == 4


def test_facts_that_are_as_they_were_have_no_break() -> None:
    assert first_break(START, FACTS, HASHES) is None
    assert first_break(START, [], []) is None
    assert first_break(HASHES[9], FACTS[10:], HASHES[10:], first=11) is None


def test_a_tail_cut_off_is_named_by_the_first_that_is_missing() -> None:
    assert first_break(START, FACTS[:15], HASHES) == 16
    assert first_break(START, [], HASHES) == 1


def test_facts_added_behind_are_named_by_the_first_of_them() -> None:
    assert first_break(START, [*FACTS, b"{}"], HASHES) == 21


def test_facts_of_another_session_break_at_the_first() -> None:
    assert first_break(genesis("s2", "e1"), FACTS, HASHES) == 1
    assert first_break(genesis("s1", "e2"), FACTS, HASHES) == 1
    other = list(links(genesis("s2", "e1"), FACTS))
    assert first_break(START, FACTS, [*HASHES[:6], *other[6:]]) == 7


@pytest.mark.parametrize("seed", range(200))
def test_any_change_is_found_where_it_is(seed: int) -> None:
    """One bit flipped, one fact left out, two swapped: the hashes stay as they were kept."""
    chance = random.Random(seed)
    facts, place = list(FACTS), chance.randrange(len(FACTS) - 1)
    match chance.randrange(3):
        case 0:
            changed = bytearray(facts[place])
            changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
            facts[place] = bytes(changed)
        case 1:
            del facts[place]
        case _:
            other = chance.randrange(place + 1, len(facts))
            facts[place], facts[other] = facts[other], facts[place]
    assert first_break(START, facts, HASHES) == place + 1


@pytest.mark.parametrize("place", range(20))
def test_a_fact_taken_out_with_its_hash_breaks_at_the_next(place: int) -> None:
    facts = FACTS[:place] + FACTS[place + 1 :]
    hashes = HASHES[:place] + HASHES[place + 1 :]
    found = first_break(START, facts, hashes)
    assert found == (place + 1 if place < 19 else None)
    assert (head(START, facts) == HASHES[-1]) is False


# -- hashes that were kept -------------------------------------------------------------------------

KEPT = [(5, HASHES[4]), (12, HASHES[11])]


def test_facts_are_compared_at_each_hash_that_was_kept() -> None:
    check = KeptCheck("s1", "e1", KEPT)
    check.compare(FACTS[:7])
    assert (check.sequence, check.kept_through) == (7, 5)
    check.compare(FACTS[7:])
    check.finish()
    found = check.checked("s1")
    assert (found.facts, found.kept_through, found.broken) == (20, 12, None)
    assert found.head == HASHES[-1].hex()


@pytest.mark.parametrize(("changed", "first", "through"), [(1, 1, 5), (5, 1, 5), (6, 6, 12)])
def test_a_fact_that_was_changed_is_found_at_the_next_kept_hash(
    changed: int, first: int, through: int
) -> None:
    facts = [*FACTS[: changed - 1], b'{"forged":1}', *FACTS[changed:]]
    check = KeptCheck("s1", "e1", KEPT)
    with pytest.raises(ChainBroken, match=f"one of the facts {first} to {through} is not what it"):
        check.compare(facts)


def test_a_fact_behind_the_last_kept_hash_cannot_be_compared() -> None:
    check = KeptCheck("s1", "e1", KEPT)
    check.compare([*FACTS[:12], b'{"forged":1}'])
    check.finish()
    assert check.checked("s1").kept_through == 12


def test_facts_whose_hashes_were_kept_and_that_are_gone_are_missing() -> None:
    check = KeptCheck("s1", "e1", [(1, HASHES[0])])
    with pytest.raises(ChainBroken, match="fact 1 is missing; restore the ledger"):
        check.finish()
    check = KeptCheck("s1", "e1", KEPT)
    check.compare(FACTS[:7])
    with pytest.raises(ChainBroken) as found:
        check.finish()
    broken = found.value.broken
    assert (broken.sequence, broken.through) == (8, 12)
    assert check.checked("s1", broken).broken is broken


def test_a_hash_that_was_removed_among_others_is_found() -> None:
    check = KeptCheck("s1", "e1", [KEPT[0], (12, None)])
    with pytest.raises(ChainBroken, match="facts 6 to 12 cannot be checked: its hash was removed"):
        check.compare(FACTS)


def test_of_a_session_without_kept_hashes_nothing_is_compared() -> None:
    check = KeptCheck("s1", "e1", [(5, None), (12, None)])
    check.compare(FACTS)
    check.finish()
    assert check.checked("s1").kept_through == 0
