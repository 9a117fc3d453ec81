"""Where the facts of a pack begin not to be what was exported."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from arp.audit.evidence.fact_lines import FactCheck, PackDefect, fact_line
from arp.audit.evidence.manifest import Chain
from arp.ledger.chain import genesis, links
from arp.ledger.fact import encode
from tests.audit.evidence.test_pages import story

BODIES = [encode(fact) for fact in story().facts]
HASHES = list(links(genesis("s", "e1"), BODIES))
LINES = [fact_line(digest, body) for digest, body in zip(HASHES, BODIES, strict=True)]
WHOLE = Chain("s", "e1", 1, 17, genesis("s", "e1").hex(), HASHES[-1].hex())
AGAIN = "from somewhere up to here it was made again"


@dataclass
class Found:
    good: int = 0
    wrong: PackDefect | None = field(default=None)


def checked(lines: list[bytes], expected: Chain = WHOLE) -> Found:
    check, found = FactCheck(expected), Found()
    found.wrong = check.begin()
    for line in lines:
        if found.wrong is not None:
            return found
        found.wrong = check.line(line)
        found.good += found.wrong is None
    found.wrong = found.wrong or check.end()
    return found


def rehashed(bodies: list[bytes]) -> list[bytes]:
    """Gives lines of somebody who makes the hashes anew."""
    hashes = links(genesis("s", "e1"), bodies)
    return [fact_line(digest, body) for digest, body in zip(hashes, bodies, strict=True)]


def test_what_was_exported_is_good() -> None:
    assert checked(LINES) == Found(17)


def test_a_part_of_the_chain_is_checked_from_the_hash_before_it() -> None:
    part = Chain("s", "e1", 5, 12, HASHES[3].hex(), HASHES[11].hex())
    assert checked(LINES[4:12], part) == Found(8)
    wrong = Chain("s", "e1", 5, 12, HASHES[4].hex(), HASHES[11].hex())
    assert checked(LINES[4:12], wrong) == Found(
        0, PackDefect("facts.jsonl", "it is not what it was when its hash was made", 5)
    )


@pytest.mark.parametrize(
    ("lines", "sequence", "reason"),
    [
        ([*LINES[:4], b"{}\n"], 5, "its line is damaged"),
        ([*LINES, LINES[0]], 18, "was added; the pack ends at 17"),
        (LINES[:9], 10, "it is missing, and all up to 17"),
        ([], 1, "it is missing, and all up to 17"),
        (rehashed([*BODIES[:6], *BODIES[7:]]), 7, "fact 8 is in its place"),
        (rehashed([BODIES[0], b"[]"]), 2, "it cannot be read"),
        (
            rehashed([BODIES[0], BODIES[1].replace(b'"sessionId":"s"', b'"sessionId":"z"')]),
            2,
            "it is of session 'z'",
        ),
        (
            rehashed([*BODIES[:8], BODIES[8].replace(b"no-net", b"no-gos"), *BODIES[9:]]),
            17,
            f"the chain does not end as the manifest says: {AGAIN}",
        ),
    ],
)
def test_each_kind_of_damage_has_its_place_and_its_sentence(
    lines: list[bytes], sequence: int, reason: str
) -> None:
    found = checked(lines)
    assert found.wrong == PackDefect("facts.jsonl", reason, sequence)
    assert found.good == sequence - 1 or "made again" in reason


def test_a_manifest_of_another_session_does_not_begin_this_chain() -> None:
    other = Chain("z", "e1", 1, 17, genesis("s", "e1").hex(), HASHES[-1].hex())
    reason = "the chain does not begin as that of this session and epoch"
    assert checked(LINES, other) == Found(0, PackDefect("facts.jsonl", reason, 1))


def test_what_is_broken_is_told_with_its_place() -> None:
    assert str(PackDefect("facts.jsonl", "it is missing", 3)) == "fact 3: it is missing"
    assert str(PackDefect("a.json", "is gone")) == "a.json: is gone"
