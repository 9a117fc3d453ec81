"""A pack that is not what was exported is found, and the first bad fact is named."""

from __future__ import annotations

import json
import zipfile
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from arp.audit.evidence.checking import check_pack, compare_with_ledger
from arp.audit.evidence.export import EvidenceExport, Order
from arp.audit.evidence.fact_lines import fact_line
from arp.audit.evidence.manifest import FACTS, MANIFEST, Scope
from arp.audit.evidence.pack import Pack
from arp.ledger.chain import genesis, link, links
from arp.ledger.fact import decode, encode
from tests.audit.evidence.packs import bodies, exported
from tests.audit.evidence.ranges import range_of
from tests.audit.evidence.test_pages import TURN
from tests.ledger.historian import Historian

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
        same = compare_with_ledger(pack, "e1", facts)
        (wrong,) = compare_with_ledger(pack, "e1", changed).broken
        (short,) = compare_with_ledger(pack, "e1", facts[:-2]).broken
        (other,) = compare_with_ledger(pack, "e2", facts).broken
    assert (same.broken, same.is_noted) == ([], False)
    assert wrong.sequence == 10
    assert short.sequence == len(facts) - 1
    assert other.part == MANIFEST


# -- parts made again from the facts ---------------------------------------------------------------


def forged(target: Path, part: str, data: bytes) -> None:
    """Change a part as somebody does who mends its hash in the manifest too."""
    (target / part).write_bytes(data)
    manifest = json.loads((target / MANIFEST).read_bytes())
    listed = {"name": part, "bytes": len(data), "sha256": sha256(data).hexdigest()}
    manifest["parts"] = [one for one in manifest["parts"] if one["name"] != part] + [listed]
    (target / MANIFEST).write_text(json.dumps(manifest))


def changed(target: Path, **fields: Any) -> None:
    manifest = json.loads((target / MANIFEST).read_bytes())
    (target / MANIFEST).write_text(json.dumps(manifest | fields))


def wrong_in(target: Path) -> list[tuple[str, str]]:
    with Pack(target) as pack:
        report = check_pack(pack)
    assert report.unproven is None
    return [(one.part, one.reason) for one in report.broken]


def parts_of(target: Path) -> list[str]:
    return sorted(one.name for one in target.iterdir() if one.name not in (FACTS, MANIFEST))


def test_each_part_that_was_forged_with_its_hash_mended_is_found(tmp_path: Path) -> None:
    exported(bodies(400), tmp_path / "pack")
    parts = parts_of(tmp_path / "pack")
    assert {"tool_calls.json", "timeline.jsonl", "session.json", "thread.json"} < set(parts)
    assert len(parts) > 15, "the history has something of almost every section"
    for part in parts:
        before = (tmp_path / "pack" / part).read_bytes()
        manifest = (tmp_path / "pack" / MANIFEST).read_bytes()
        forged(tmp_path / "pack", part, before.replace(b"a", b"b", 1))
        assert wrong_in(tmp_path / "pack") == [(part, "is not what the facts make of it")]
        (tmp_path / "pack" / part).write_bytes(before)
        (tmp_path / "pack" / MANIFEST).write_bytes(manifest)
    assert wrong_in(tmp_path / "pack") == []


def test_a_part_that_no_facts_make_and_one_that_is_gone_are_found(tmp_path: Path) -> None:
    exported(bodies(60), tmp_path / "pack")
    forged(tmp_path / "pack", "approval.json", b"{}")
    assert wrong_in(tmp_path / "pack") == [("approval.json", "is nothing that the facts make")]
    (tmp_path / "pack" / "approval.json").unlink()
    (tmp_path / "pack" / "thread.json").unlink()
    manifest = json.loads((tmp_path / "pack" / MANIFEST).read_bytes())
    gone = ("approval.json", "thread.json")
    left = [one for one in manifest["parts"] if one["name"] not in gone]
    changed(tmp_path / "pack", parts=left)
    assert wrong_in(tmp_path / "pack") == [("thread.json", "is missing; the facts make it")]


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("runtimeCorrelation", {"turnId": "t99"}, "runtimeCorrelation: it is not what the facts"),
        ("correlationStates", {}, "correlationStates: it is not what the facts make of it"),
        ("sections", {"tool_calls.json": "not_applicable"}, "sections: it is not what the facts"),
        ("gaps", [], "gaps: it is not what the facts make of it"),
        ("outputs", [], "outputs: they are not those that the facts name"),
    ],
)
def test_what_the_manifest_says_of_the_facts_is_compared(
    tmp_path: Path, field: str, value: Any, reason: str
) -> None:
    exported(bodies(400), tmp_path / "pack")
    changed(tmp_path / "pack", **{field: value})
    found = wrong_in(tmp_path / "pack")
    assert found[0][0] == MANIFEST
    assert found[0][1].startswith(reason)


def with_output(target: Path) -> str:
    """Export a session with one large output; give its part."""
    digest = sha256(b"whole").hexdigest()
    told = Historian()
    told.add("output.spilled", {"bytes": 5, "sha256": digest}, output_ref="o1", **TURN)
    exported([encode(fact) for fact in told.facts], target, read=lambda _: b"whole")
    return f"outputs/{digest}"


@pytest.mark.parametrize(
    "output",
    [
        {"state": "not_applicable", "reason": "it has expired"},
        {"state": "exported", "bytes": 5},
        {"state": "exported", "bytes": 4, "part": "{part}"},
        {"state": "exported", "bytes": 5, "part": "thread.json"},
        {"state": "unsupported", "part": "{part}"},
    ],
)
def test_what_the_manifest_says_of_an_output_is_compared(
    tmp_path: Path, output: dict[str, Any]
) -> None:
    part = with_output(tmp_path / "pack")
    assert wrong_in(tmp_path / "pack") == []
    named = {**output, "outputRef": "o1"}
    if "part" in output:
        named["part"] = output["part"].format(part=part)
    changed(tmp_path / "pack", outputs=[named])
    reason = "output 'o1' is not what the facts say of it"
    assert (MANIFEST, reason) in wrong_in(tmp_path / "pack")


def test_an_output_of_other_bytes_under_its_own_hash_is_found(tmp_path: Path) -> None:
    part = with_output(tmp_path / "pack")
    other = f"outputs/{sha256(b'other').hexdigest()}"
    (tmp_path / "pack" / part).unlink()
    manifest = json.loads((tmp_path / "pack" / MANIFEST).read_bytes())
    left = [one for one in manifest["parts"] if one["name"] != part]
    output = {"outputRef": "o1", "state": "exported", "bytes": 5, "part": other}
    changed(tmp_path / "pack", parts=left, outputs=[output])
    forged(tmp_path / "pack", other, b"other")
    assert wrong_in(tmp_path / "pack") == [
        (MANIFEST, "output 'o1' is not what the facts say of it")
    ]


@pytest.mark.parametrize(
    ("derivation", "words"),
    [(None, "a version of arp that did not name its rules"), (99, "rules 99, this arp has rules")],
)
def test_parts_that_other_rules_made_are_unproven_and_not_bad(
    tmp_path: Path, derivation: int | None, words: str
) -> None:
    exported(bodies(60), tmp_path / "pack")
    manifest = json.loads((tmp_path / "pack" / MANIFEST).read_bytes())
    del manifest["derivation"]
    more = {"derivation": derivation} if derivation is not None else {}
    (tmp_path / "pack" / MANIFEST).write_text(json.dumps(manifest | more))
    with Pack(tmp_path / "pack") as pack:
        report = check_pack(pack)
    assert report.broken == []
    assert report.unproven is not None
    assert words in report.unproven


@pytest.mark.parametrize("seed", range(20))
def test_a_pack_of_any_turn_or_task_is_made_again_from_its_own_facts(
    tmp_path: Path, seed: int
) -> None:
    facts = list(enumerate(bodies(300, seed), 1))
    read = [decode(body) for _, body in facts]
    turns = sorted({one.turn_id for one in read if one.turn_id} - {"unknown"})
    tasks = sorted({one.task_id for one in read if one.task_id} - {"unknown"})
    scopes = [Scope(turn_id=turns[0]), Scope(turn_id=turns[-1]), Scope(task_id=tasks[-1])]
    for number, scope in enumerate(scopes):
        order = Order(session_id="s", epoch="e1", evidence_id="v", created_at="now", scope=scope)
        target = tmp_path / f"pack{number}"
        with EvidenceExport(order, target, range_of(scope, [facts])) as under_way:
            under_way.add_page(facts)
            under_way.finish()
        assert wrong_in(target) == []
        part = "thread.json"
        forged(target, part, (target / part).read_bytes().replace(b"a", b"b", 1))
        assert wrong_in(target) == [(part, "is not what the facts make of it")]


def test_facts_of_which_nothing_can_be_made_are_no_export(tmp_path: Path) -> None:
    exported(bodies(60), tmp_path / "pack")
    facts = [b'{"sequence":1,"sessionId":"s"}']
    lines = [fact_line(link(genesis("s", "e1"), facts[0]), facts[0])]
    data = b"".join(lines)
    manifest = json.loads((tmp_path / "pack" / MANIFEST).read_bytes())
    head = link(genesis("s", "e1"), facts[0]).hex()
    changed(tmp_path / "pack", chain=manifest["chain"] | {"through": 1, "head": head})
    forged(tmp_path / "pack", FACTS, data)
    with Pack(tmp_path / "pack") as pack:
        (wrong,) = check_pack(pack).broken
    assert str(wrong) == "fact 1: nothing can be made of it, so no export has written this pack"


# -- beside the ledger -----------------------------------------------------------------------------


def noting(facts: list[bytes], digest: str, evidence_id: str = "evidence-1") -> list[bytes]:
    """Return the facts of a session whose ledger noted an export."""
    last = decode(facts[-1])
    payload = {"kind": "evidence", "state": "exported", "sha256": digest}
    noted = msgspec.structs.replace(
        last,
        sequence=last.sequence + 1,
        type="evidence.changed",
        payload=payload,
        evidence_id=evidence_id,
    )
    return [*facts, encode(noted)]


def test_the_manifest_is_compared_with_the_hash_that_the_ledger_noted(tmp_path: Path) -> None:
    facts = bodies(60)
    made = exported(facts, tmp_path / "pack")
    with Pack(tmp_path / "pack") as pack:
        same = compare_with_ledger(pack, "e1", noting(facts, made.sha256))
        other = compare_with_ledger(pack, "e1", noting(facts, "0" * 64))
        else_where = compare_with_ledger(pack, "e1", noting(facts, "0" * 64, "evidence-2"))
        no_fact = b'{"type":"evidence.changed"}'
        unread = compare_with_ledger(pack, "e1", [*facts, no_fact])
    assert (same.broken, same.is_noted) == ([], True)
    assert [str(one) for one in other.broken] == [
        f"manifest.json: the ledger noted the SHA-256 {'0' * 64}"
    ]
    assert (else_where.broken, else_where.is_noted) == ([], False)
    assert (unread.broken, unread.is_noted) == ([], False)


def test_a_fresh_pack_of_a_ledger_whose_chain_is_broken_is_bad(tmp_path: Path) -> None:
    facts = bodies(60)
    kept = [(9, list(links(genesis("s", "e1"), facts))[8]), (20, b"other")]
    exported(facts, tmp_path / "pack")
    with Pack(tmp_path / "pack") as pack:
        assert compare_with_ledger(pack, "e1", facts, kept[:1]).broken == []
        (wrong,) = compare_with_ledger(pack, "e1", facts, kept).broken
    assert (wrong.part, wrong.sequence) == ("ledger", 10)
    assert wrong.reason.startswith("one of the facts 10 to 20 is not what it was when its hash")
