"""Facts in, a pack out: whole under its name, or nothing is there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from arp.audit.evidence.checking import check_pack
from arp.audit.evidence.export import EvidenceExport, NotExportable, NothingToExport, Order
from arp.audit.evidence.manifest import FACTS, Gap, Scope
from arp.audit.evidence.pack import NoPack, Pack, PartMissing
from arp.audit.evidence.pack_writer import PackUnwritable
from arp.ledger.fact import encode
from arp.store.errors import BlobNotFound
from tests.audit.evidence.packs import bodies, exported
from tests.audit.evidence.ranges import range_of
from tests.audit.evidence.test_pages import TURN, story
from tests.ledger.historian import Historian

FACTS_OF_STORY = [encode(fact) for fact in story().facts]


def test_a_pack_holds_each_fact_byte_for_byte(tmp_path: Path) -> None:
    exported(FACTS_OF_STORY, tmp_path / "pack")
    lines = (tmp_path / "pack" / FACTS).read_bytes().splitlines()
    assert [line[82:-1] for line in lines] == FACTS_OF_STORY


def test_a_large_output_is_taken_in_where_it_can_be_read(tmp_path: Path) -> None:
    digest = sha256(b"whole o1").hexdigest().encode()
    facts = [fact.replace(b"a" * 64, digest) for fact in FACTS_OF_STORY]
    made = exported(facts, tmp_path / "pack.zip", read=lambda ref: f"whole {ref}".encode())
    (output,) = made.manifest.outputs
    assert (output.output_ref, output.state, output.bytes) == ("o1", "exported", 8)
    assert output.part is not None
    with Pack(tmp_path / "pack.zip") as pack:
        assert pack.read(output.part) == b"whole o1"
        assert check_pack(pack).broken == []


def test_an_output_that_is_not_what_the_facts_tell_of_is_not_taken_in(tmp_path: Path) -> None:
    made = exported(FACTS_OF_STORY, tmp_path / "pack", read=lambda _: b"forged")
    (output,) = made.manifest.outputs
    reason = "what lies beside the ledger is not what the facts tell of"
    assert (output.state, output.reason, output.part) == ("missing_correlation", reason, None)
    with Pack(tmp_path / "pack") as pack:
        assert check_pack(pack).broken == []


def test_two_outputs_of_the_same_bytes_are_one_part(tmp_path: Path) -> None:
    told = Historian()
    digest = sha256(b"whole").hexdigest()
    for ref in ("o1", "o2"):
        payload = {"bytes": 5, "sha256": digest, "preview": "w"}
        told.add("output.spilled", payload, output_ref=ref, **TURN)
    facts = [encode(fact) for fact in told.facts]
    made = exported(facts, tmp_path / "pack", read=lambda _: b"whole")
    assert [one.part for one in made.manifest.outputs] == [f"outputs/{digest}"] * 2
    with Pack(tmp_path / "pack") as pack:
        assert pack.read(f"outputs/{digest}") == b"whole"
        assert check_pack(pack).broken == []


def test_outputs_beyond_what_a_pack_may_have_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arp.audit.evidence.export.MOST_PARTS", 5)
    digest = sha256(b"whole o1").hexdigest().encode()
    facts = [fact.replace(b"a" * 64, digest) for fact in FACTS_OF_STORY]
    made = exported(facts, tmp_path / "pack", read=lambda ref: f"whole {ref}".encode())
    (output,) = made.manifest.outputs
    assert (output.state, output.reason) == ("unsupported", "a pack has at most 5 parts")


def test_a_pack_whose_manifest_could_not_be_read_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arp.audit.evidence.export.MOST_MANIFEST", 100)
    with pytest.raises(NotExportable, match="export turn by turn"):
        exported(FACTS_OF_STORY, tmp_path / "pack")
    assert list(tmp_path.iterdir()) == []


def test_an_output_that_is_gone_is_missing_and_one_that_nobody_reads_is_named(
    tmp_path: Path,
) -> None:
    def gone(ref: str) -> bytes:
        raise BlobNotFound

    made = exported(FACTS_OF_STORY, tmp_path / "gone", read=gone)
    assert made.manifest.outputs[0].state == "missing_correlation"
    named = exported(FACTS_OF_STORY, tmp_path / "named")
    assert named.manifest.outputs[0].state == "unsupported"
    reason = "it is named here, and lies beside the ledger"
    assert Gap("outputs", "unsupported", reason, 1) in named.manifest.gaps


def test_a_part_of_a_session_is_exported_and_can_be_checked_alone(tmp_path: Path) -> None:
    scope = Scope(task_id="k1")
    pages = [list(enumerate(FACTS_OF_STORY, 1))]
    found = range_of(scope, pages)
    order = Order(session_id="s", epoch="e1", evidence_id="v", created_at="now", scope=scope)
    with EvidenceExport(order, tmp_path / "pack", found) as under_way:
        under_way.add_page(pages[0])
        made = under_way.finish()
    assert (made.manifest.chain.first, made.manifest.chain.through) == (2, 17)
    assert made.manifest.runtime_correlation["taskId"] == "k1"
    with Pack(tmp_path / "pack") as pack:
        assert check_pack(pack).broken == []


def test_nothing_to_export_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(NothingToExport, match="turnId t9"):
        range_of(Scope(turn_id="t9"), [list(enumerate(FACTS_OF_STORY, 1))])
    with pytest.raises(NothingToExport):
        exported([], tmp_path / "pack")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["pack", "pack.zip"])
def test_what_is_there_already_is_not_touched(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    with pytest.raises(PackUnwritable, match="is there already"):
        exported(FACTS_OF_STORY, tmp_path / name)
    assert (tmp_path / name).read_text() == "mine"
    assert [one.name for one in tmp_path.iterdir()] == [name]


def test_what_is_no_pack_is_refused_with_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "text").write_text("no zip")
    for name in ("empty", "text", "nothing"):
        with pytest.raises(NoPack, match=name):
            Pack(tmp_path / name)


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "a/../../b", ""])
def test_a_path_out_of_the_pack_is_refused(tmp_path: Path, name: str) -> None:
    exported(FACTS_OF_STORY, tmp_path / "pack")
    with Pack(tmp_path / "pack") as pack, pytest.raises(PartMissing):
        pack.read(name)


CHILD = """
import sys
from pathlib import Path
from tests.audit.evidence.packs import bodies, exported
facts = bodies(2000)
print("begun", flush=True)
for number in range(10_000):
    exported(facts, Path(sys.argv[1]) / f"pack{number}{sys.argv[2]}")
    print("made", flush=True)
"""


@pytest.mark.parametrize("suffix", ["", ".zip"])
@pytest.mark.parametrize(
    "wait", [0, 1, *(pytest.param(number, marks=pytest.mark.slow) for number in (2, 3))]
)
def test_kill_9_leaves_no_half_pack_under_its_name(tmp_path: Path, suffix: str, wait: int) -> None:
    """The export is killed at some place in it; whatever has its final name is whole."""
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(tmp_path), suffix], stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    with child.stdout as told:
        for _ in range(wait + 1):
            assert told.readline()
        count = len(bodies(20 * wait + 1))  # another while of work, so that the places differ
        os.kill(child.pid, signal.SIGKILL)
    child.wait(10)
    assert count
    packs = [one for one in tmp_path.iterdir() if not one.name.startswith(".unfinished-")]
    assert len(packs) >= wait
    for path in packs:
        with Pack(path) as pack:
            assert check_pack(pack).broken == []
