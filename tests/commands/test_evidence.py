"""`arp evidence export`, `verify` and `show`, over a ledger file."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from arp.audit.evidence.manifest import FACTS
from arp.cli import main
from arp.commands.ledger.file_reader import FileReader
from arp.ledger.fact import encode
from arp.store.blobs import BlobStore
from tests.audit.evidence.packs import exported
from tests.audit.evidence.test_checking import changed, forged
from tests.audit.evidence.test_pages import TURN, story
from tests.commands.ledger_of_facts import written
from tests.store import tampering

WHOLE = b"a large output " * 1000


def run(*words: str) -> Result:
    return CliRunner().invoke(main, ["evidence", *words])


async def _once(data: bytes) -> AsyncIterator[bytes]:
    yield data


@pytest.fixture
def ledger(tmp_path: Path) -> str:
    """A ledger file with one session, and a large output beside it."""
    files = BlobStore(tmp_path / "ledger.blobs").of("s")
    blob = asyncio.run(files.put(_once(WHOLE), max_bytes=1 << 20))
    told = story()
    told.add(
        "output.spilled",
        {"bytes": len(WHOLE), "sha256": blob.sha256, "preview": "a"},
        output_ref=blob.id,
        **TURN,
    )
    return written(tmp_path / "ledger.db", [encode(fact) for fact in told.facts])


def test_the_target_that_was_served_names_the_ledger(
    ledger: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`app.py` is its file in `.arp`, for both commands."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".arp").mkdir()
    Path(ledger.removeprefix("sqlite:")).rename(tmp_path / ".arp" / "app.db")
    (tmp_path / "ledger.blobs").rename(tmp_path / ".arp" / "app.blobs")
    made = run("export", "s", "--ledger", "app.py", "--to", "s.zip")
    assert made.exit_code == 0, made.output
    checked = run("verify", "s.zip", "--ledger", "app.py:app", "--json")
    assert checked.exit_code == 0, checked.output
    assert json.loads(checked.stdout)["broken"] == []


def test_a_session_is_exported_checked_and_shown(ledger: str, tmp_path: Path) -> None:
    pack = str(tmp_path / "s.zip")
    made = run("export", "s", "--ledger", ledger, "--to", pack)
    assert made.exit_code == 0, made.output
    assert "session s, facts 1 to 18" in made.output
    checked = run("verify", pack, "--ledger", ledger, "--json")
    assert checked.exit_code == 0, checked.output
    found = json.loads(checked.stdout)
    assert (found["facts"], found["broken"], found["first_bad"]) == (18, [], None)
    assert found["manifest_sha256"] in made.output
    assert "tool_calls.json" in run("show", pack).output
    part = run("show", pack, "--part", "tool_calls.json")
    assert json.loads(part.stdout)["items"][0]["toolCallId"] == "c1"
    states = {one["outputRef"]: one["state"] for one in _manifest(pack)["outputs"]}
    assert states["o1"] == "missing_correlation"
    assert sorted(states.values()) == ["exported", "missing_correlation"]


def _manifest(pack: str) -> dict[str, list[dict[str, str]]]:
    told: dict[str, list[dict[str, str]]] = json.loads(run("show", pack, "--json").stdout)
    return told


def test_verify_names_the_first_bad_sequence(ledger: str, tmp_path: Path) -> None:
    pack = tmp_path / "s"
    assert run("export", "s", "--ledger", ledger, "-o", str(pack)).exit_code == 0
    facts = pack / FACTS
    facts.write_bytes(facts.read_bytes().replace(b"denied by no-net", b"denied by nobody"))
    checked = run("verify", str(pack))
    assert checked.exit_code == 1
    assert "first bad sequence: 9" in checked.output


def test_verify_takes_the_hash_that_the_exporter_told(ledger: str, tmp_path: Path) -> None:
    pack = str(tmp_path / "s")
    assert run("export", "s", "--ledger", ledger, "-o", pack).exit_code == 0
    assert run("verify", pack, "--sha256", "0" * 64).exit_code == 1


def test_a_turn_alone_is_exported(ledger: str, tmp_path: Path) -> None:
    pack = str(tmp_path / "t")
    made = run("export", "s", "--ledger", ledger, "-o", pack, "--task", "k1", "--json")
    assert json.loads(made.stdout)["chain"]["first"] == 2
    assert run("verify", pack).exit_code == 0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("export", "nobody"), "No session 'nobody'"),
        (("export", "s", "--turn", "t9"), "no fact of turnId t9"),
    ],
)
def test_what_is_not_there_is_one_sentence(
    ledger: str, tmp_path: Path, words: tuple[str, ...], sentence: str
) -> None:
    target = tmp_path / "pack"
    failed = run(*words, "--ledger", ledger, "-o", str(target))
    assert failed.exit_code == 1
    assert sentence in failed.stderr
    assert not target.exists()


def test_verify_of_what_is_no_pack_is_one_sentence(tmp_path: Path) -> None:
    failed = run("verify", str(tmp_path / "nothing"))
    assert failed.exit_code == 1
    assert "There is no pack" in failed.stderr


# -- forged, with every hash mended ----------------------------------------------------------------


def test_a_forged_part_is_bad_with_and_without_the_ledger(ledger: str, tmp_path: Path) -> None:
    pack = tmp_path / "s"
    assert run("export", "s", "--ledger", ledger, "-o", str(pack)).exit_code == 0
    calls = (pack / "tool_calls.json").read_bytes().replace(b"no-net", b"no-one")
    forged(pack, "tool_calls.json", calls)
    for words in ((), ("--ledger", ledger)):
        checked = run("verify", str(pack), *words)
        assert checked.exit_code == 1
        assert "tool_calls.json: is not what the facts make of it" in checked.output


def test_a_pack_that_says_nothing_of_its_rules_is_unproven_unless_its_hash_is_known(
    ledger: str, tmp_path: Path
) -> None:
    pack = tmp_path / "s"
    assert run("export", "s", "--ledger", ledger, "-o", str(pack)).exit_code == 0
    changed(pack, derivation=0)
    checked = run("verify", str(pack))
    assert checked.exit_code == 1
    assert "unproven  the parts were made by a version of arp that did not name" in checked.output
    assert "--sha256" in checked.output
    assert "good" not in checked.output
    found = json.loads(run("verify", str(pack), "--json").stdout)
    assert found["broken"] == []
    digest = found["manifest_sha256"]
    assert run("verify", str(pack), "--sha256", digest).exit_code == 0
    forged(pack, "tool_calls.json", b"{}")
    assert run("verify", str(pack), "--sha256", digest).exit_code == 1


@pytest.mark.parametrize("form", ["pack", "case", "review"])
def test_a_session_with_a_forged_fact_is_not_exported(
    ledger: str, tmp_path: Path, form: str
) -> None:
    place = Path(ledger.removeprefix("sqlite:"))
    assert tampering.change(place, b"denied by no-net", b"allowed by all!!") == 9
    target = tmp_path / "s"
    failed = run("export", "s", "--ledger", ledger, "-o", str(target), "--as", form)
    assert failed.exit_code == 1
    assert "One of the facts 1 to 18 is not what it was when its hash was kept" in failed.stderr
    assert not target.exists()


def test_a_pack_of_a_forged_fact_is_bad_beside_the_ledger(ledger: str, tmp_path: Path) -> None:
    """Also if whoever made it can do without `arp evidence export`."""
    place = Path(ledger.removeprefix("sqlite:"))
    tampering.change(place, b"denied by no-net", b"allowed by all!!")
    with closing(FileReader(ledger)) as reader:
        exported(list(reader.events("s", 0, ())), tmp_path / "pack")
    assert run("verify", str(tmp_path / "pack")).exit_code == 0, "nothing else is known of it"
    checked = run("verify", str(tmp_path / "pack"), "--ledger", ledger)
    assert checked.exit_code == 1
    assert "is not what it was when its hash was kept" in checked.output
