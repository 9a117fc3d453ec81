"""Exports that are one document, and how a new file is written."""

from __future__ import annotations

import json
import os
from pathlib import Path

import msgspec
import pytest

from arp.audit.evidence.export import (
    CaseExport,
    NotExportable,
    NothingToExport,
    Order,
    ReviewExport,
    write_new,
)
from arp.audit.evidence.manifest import Scope
from arp.audit.evidence.pack_writer import PackUnwritable
from arp.ledger.fact import encode
from tests.audit.evidence.test_pages import story
from tests.ledger.historian import Historian

PAGE = list(enumerate((encode(fact) for fact in story().facts), 1))
ORDER = Order(session_id="s", epoch="e1", evidence_id="r-1", created_at="now")


def test_a_case_is_made_of_pages_of_facts() -> None:
    making = CaseExport(Scope())
    making.add_page(PAGE[:9])
    making.add_page(PAGE[9:])
    case = json.loads(making.finish())
    assert [turn["turnId"] for turn in case["turns"]] == ["t1"]
    assert making.spine.document()["turnId"] == "t1"


def test_a_case_of_what_has_no_turn_or_names_files_says_why_there_is_none() -> None:
    making = CaseExport(Scope(turn_id="t9"))
    making.add_page(PAGE)
    with pytest.raises(NothingToExport, match="session s has no turn to be run again"):
        making.finish()
    assert NothingToExport.state == "not_applicable"
    told = Historian()
    given = {"input_type": "text", "data": {"files": [{"sha256": "a"}]}}
    told.add("turn.submitted", {"input": given}, thread_id="main", turn_id="t1")
    with_files = CaseExport(Scope())
    with_files.add_page([(fact.sequence, encode(fact)) for fact in told.facts])
    with pytest.raises(NotExportable, match="the input of turn t1 names files"):
        with_files.finish()
    assert NotExportable.state == "unsupported"


def test_a_review_has_the_gaps_of_its_facts() -> None:
    making = ReviewExport(ORDER)
    making.add_page(PAGE)
    assert making.finish().startswith(b"# Review of session `s`")
    assert making.gaps == ["cost.json: no turnId is known of these facts"]
    assert making.spine.document()["taskId"] == "k1"


def test_a_review_of_nothing_is_none() -> None:
    making = ReviewExport(msgspec.structs.replace(ORDER))
    with pytest.raises(NothingToExport, match="session s has no facts of this"):
        making.finish()


def test_a_new_file_is_whole_and_nothing_else_is_left(tmp_path: Path) -> None:
    write_new(tmp_path / "deep" / "case.json", b"{}")
    assert [one.name for one in (tmp_path / "deep").iterdir()] == ["case.json"]
    assert (tmp_path / "deep" / "case.json").read_bytes() == b"{}"


def test_what_is_there_already_is_not_touched(tmp_path: Path) -> None:
    place = tmp_path / "case.json"
    place.write_text("mine")
    with pytest.raises(PackUnwritable, match="is there already"):
        write_new(place, b"{}")
    assert place.read_text() == "mine"


def test_a_disk_that_refuses_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(PackUnwritable, match="No space left on device"):
        write_new(tmp_path / "case.json", b"{}")
    assert list(tmp_path.iterdir()) == []
