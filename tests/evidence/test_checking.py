"""A pack that is not what was exported is found, and the first bad fact is named."""

from __future__ import annotations

import zipfile
from pathlib import Path
from random import Random

import pytest

from arp.evidence.checking import check_pack, compare_with_ledger
from arp.evidence.pack import Pack
from arp.ledger.chain import genesis, links
from arp.ledger.exports.fact_line import fact_line
from arp.ledger.exports.manifest import FACTS, MANIFEST
from tests.evidence.packs import bodies, exported

TRIALS = 200


def first_bad(path: Path) -> int | None:
    with Pack(path) as pack:
        report = check_pack(pack)
    assert report.broken, "the damage was not found"
    return report.first_bad


def flipped(lines: list[bytes], chance: Random) -> int:
    place = chance.randrange(len(lines))
    line = bytearray(lines[place])
    line[chance.randrange(len(line))] ^= 1 << chance.randrange(8)
    lines[place] = bytes(line)
    return place + 1


def removed(lines: list[bytes], chance: Random) -> int:
    place = chance.randrange(len(lines))
    del lines[place]
    return place + 1


def swapped(lines: list[bytes], chance: Random) -> int:
    one, other = sorted(chance.sample(range(len(lines)), 2))
    lines[one], lines[other] = lines[other], lines[one]
    return one + 1


def cut(lines: list[bytes], chance: Random) -> int:
    left = chance.randrange(len(lines))
    del lines[left:]
    return left + 1


def cut_inside(lines: list[bytes], chance: Random) -> int:
    place = chance.randrange(len(lines))
    lines[place:] = [lines[place][: chance.randrange(1, len(lines[place]))]]
    return place + 1


@pytest.fixture(scope="module")
def packs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[bytes], list[bytes]]:
    """A pack, the lines of its facts, and those of another session's pack."""
    place = tmp_path_factory.mktemp("packs")
    exported(bodies(400), place / "one")
    exported(bodies(400, 2, "t"), place / "two", session_id="t")
    one = (place / "one" / FACTS).read_bytes().splitlines(keepends=True)
    two = (place / "two" / FACTS).read_bytes().splitlines(keepends=True)
    assert len(one) > 200
    assert len(two) > 200
    return place / "one", one, two


@pytest.mark.parametrize("trial", range(TRIALS))
def test_damage_is_found_and_the_first_bad_sequence_named(
    packs: tuple[Path, list[bytes], list[bytes]], trial: int
) -> None:
    path, one, two = packs
    chance, lines = Random(trial), list(one)
    damages = (flipped, removed, swapped, cut, cut_inside)
    if trial % 6 < len(damages):
        expected = damages[trial % 6](lines, chance)
    else:
        place = chance.randrange(min(len(one), len(two)))
        lines[place:] = two[place:]
        expected = place + 1
    try:
        (path / FACTS).write_bytes(b"".join(lines))
        assert first_bad(path) == expected
    finally:
        (path / FACTS).write_bytes(b"".join(one))


def test_a_pack_that_nobody_touched_is_good(tmp_path: Path) -> None:
    facts = bodies(100)
    for name in ("pack", "pack.zip"):
        made = exported(facts, tmp_path / name)
        with Pack(tmp_path / name) as pack:
            report = check_pack(pack)
        assert report.broken == []
        assert report.first_bad is None
        assert report.facts == len(facts)
        assert report.manifest_sha256 == made.sha256


def test_a_whole_pack_of_another_session_under_this_manifest_is_bad_from_fact_1(
    packs: tuple[Path, list[bytes], list[bytes]], tmp_path: Path
) -> None:
    path, _, two = packs
    target = tmp_path / "pack"
    target.mkdir()
    for part in path.iterdir():
        (target / part.name).write_bytes(part.read_bytes())
    (target / FACTS).write_bytes(b"".join(two))
    assert first_bad(target) == 1


@pytest.mark.parametrize("seed", range(30))
def test_a_bit_flipped_in_the_packed_facts_of_a_zip_is_found(tmp_path: Path, seed: int) -> None:
    target, chance = tmp_path / "pack.zip", Random(seed)
    made = exported(bodies(300), target)
    with zipfile.ZipFile(target) as pack:
        entry = pack.getinfo(FACTS)
    data = bytearray(target.read_bytes())
    start = entry.header_offset + 30 + len(FACTS)
    place = start + chance.randrange(entry.compress_size)
    data[place] ^= 1 << chance.randrange(8)
    target.write_bytes(data)
    bad = first_bad(target)
    assert bad is not None
    assert 1 <= bad <= made.manifest.chain.through


def test_facts_with_new_hashes_are_found_by_the_sequences_that_they_tell(tmp_path: Path) -> None:
    facts = bodies(60)
    exported(facts, tmp_path / "true")
    forged = tmp_path / "true" / FACTS
    without = facts[:20] + facts[21:]

    hashes = links(genesis("s", "e1"), without)
    lines = [fact_line(digest, body) for digest, body in zip(hashes, without, strict=True)]
    forged.write_bytes(b"".join(lines))
    assert first_bad(tmp_path / "true") == 21


def test_a_part_that_was_changed_is_named_and_no_fact_is_blamed(tmp_path: Path) -> None:
    exported(bodies(60), tmp_path / "pack")
    part = tmp_path / "pack" / "thread.json"
    part.write_bytes(part.read_bytes().replace(b"main", b"mean", 1))
    with Pack(tmp_path / "pack") as pack:
        report = check_pack(pack)
    assert [(one.part, one.reason) for one in report.broken] == [
        ("thread.json", "is not what was exported")
    ]
    assert report.first_bad is None


def test_a_part_too_many_and_one_too_few_are_named(tmp_path: Path) -> None:
    exported(bodies(60), tmp_path / "pack")
    (tmp_path / "pack" / "session.json").unlink()
    (tmp_path / "pack" / "more.txt").write_text("more")
    with Pack(tmp_path / "pack") as pack:
        names = [one.part for one in check_pack(pack).broken]
    assert names == ["session.json", "more.txt"]


def test_of_a_part_that_has_grown_no_more_is_read_than_shows_it(tmp_path: Path) -> None:
    exported(bodies(60), tmp_path / "pack")
    part = tmp_path / "pack" / "thread.json"
    size = part.stat().st_size
    part.write_bytes(part.read_bytes() + b" " * (5 << 20))
    looked_at: list[int] = []
    with Pack(tmp_path / "pack") as pack:
        (wrong,) = check_pack(pack, looked_at.append).broken
    assert (wrong.part, wrong.reason) == ("thread.json", f"has more than {size} bytes")
    assert max(looked_at) == 1 << 20


def test_a_manifest_that_begins_the_chain_elsewhere_is_bad_at_fact_1(tmp_path: Path) -> None:
    exported(bodies(60), tmp_path / "pack")
    manifest = tmp_path / "pack" / MANIFEST
    manifest.write_bytes(manifest.read_bytes().replace(b'"epoch": "e1"', b'"epoch": "e2"'))
    assert first_bad(tmp_path / "pack") == 1


def test_a_pack_is_compared_with_the_ledger_fact_by_fact(tmp_path: Path) -> None:
    facts = bodies(60)
    exported(facts, tmp_path / "pack")
    changed = [*facts[:9], facts[9].replace(b'"s-10"', b'"s-ten"'), *facts[10:]]
    assert changed[9] != facts[9]
    with Pack(tmp_path / "pack") as pack:
        assert compare_with_ledger(pack, "e1", facts) is None
        wrong = compare_with_ledger(pack, "e1", changed)
        short = compare_with_ledger(pack, "e1", facts[:-2])
        other = compare_with_ledger(pack, "e2", facts)
    assert wrong is not None
    assert wrong.sequence == 10
    assert short is not None
    assert short.sequence == len(facts) - 1
    assert other is not None
    assert other.part == MANIFEST
