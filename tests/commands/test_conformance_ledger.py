"""`arp conformance ledger`: which level a ledger reaches, and exactly what is in the way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from arp.cli import main
from tests.commands.ledgers import ledger
from tests.ledger.test_schemas import FIXTURES, event


def told(*words: str, given: str | None = None) -> Result:
    return CliRunner().invoke(main, ["conformance", "ledger", *words], input=given)


def lines(*documents: Any) -> str:
    return "".join(f"{json.dumps(one)}\n" for one in documents)


def facts() -> list[dict[str, Any]]:
    """Return four facts as they should be."""
    types = ("session.updated", "turn.started", "tool.progress", "runtime.warning")
    return [
        event(name, {}, {}) | {"sequence": place, "eventId": f"s-{place}"}
        for place, name in enumerate(types, 1)
    ]


def faults(result: Result) -> list[tuple[Any, ...]]:
    names = ("level", "sequence", "about", "where", "problem")
    return [
        tuple(fault.get(name, "") for name in names)
        for fault in json.loads(result.output)["faults"]
    ]


def test_a_ledger_of_this_project_reaches_every_level(tmp_path: Path) -> None:
    file = ledger(tmp_path / "l.db", "s")
    for words in ((f"sqlite:{file}",), (f"sqlite:{file}", "--session", "s")):
        result = told(*words)
        assert result.exit_code == 0, result.output
        assert [line.split()[-1] for line in result.output.splitlines()[:3]] == ["reached"] * 3
        assert result.output.splitlines()[-1].endswith("1 snapshots")


def test_the_commands_of_the_docs_run_where_an_app_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`app.py` names the ledger of that app; the file has one fact on each line."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".arp").mkdir()
    ledger(tmp_path / ".arp/app.db", "s")
    assert told("app.py").exit_code == 0
    (tmp_path / "facts.jsonl").write_text(lines(*facts()))
    assert json.loads(told("facts.jsonl", "--json").output)["level"] == "extension"


def test_a_wrong_type_a_missing_id_and_an_extension_are_exactly_what_is_told() -> None:
    """The lowest level that each costs is told with it."""
    documents = facts()
    documents[0]["type"] = "galaxy.seen"
    del documents[2]["stepId"]
    documents[3]["acme"] = {"a": 1}
    result = told("-", "--json", given=lines(*documents))
    assert result.exit_code == 1
    report = json.loads(result.output)
    assert (report["level"], report["facts"]) == (None, 4)
    assert faults(result) == [
        ("public core", 1, "galaxy.seen", "type", "'galaxy.seen' is not known"),
        ("profile core", 3, "tool.progress", "", "stepId missing"),
        ("extension", 4, "runtime.warning", "acme", EXTENSION),
    ]
    text = told("-", given=lines(*documents)).output
    assert text.startswith("public core   missed   1 faults\nprofile core  missed   1 faults\n")
    assert "  s 3 tool.progress: stepId missing\n" in text
    assert f"  s 4 runtime.warning: acme: {EXTENSION}\n" in text
    assert "4 facts of 4 types, 0 snapshots" in text


EXTENSION = "not in the standard; extensions belong in payload or refs"


@pytest.mark.parametrize(
    ("change", "level", "code"),
    [
        ({}, "extension", 0),
        ({"acme": 1}, "profile core", 0),
        ({"schemaVersion": "lime-profile-9"}, "public core", 1),
        ({"sequence": 1}, "public core", 1),
        ({"eventId": ""}, None, 1),
    ],
    ids=str,
)
def test_the_level_is_the_highest_below_which_nothing_is_wrong(
    change: dict[str, Any], level: str | None, code: int
) -> None:
    documents = facts()
    documents[1] |= change
    result = told("-", "--json", given=lines(*documents))
    assert (json.loads(result.output)["level"], result.exit_code) == (level, code)


def test_the_examples_of_the_profile_reach_all_levels(tmp_path: Path) -> None:
    file = tmp_path / "facts.jsonl"
    examples = [json.loads(path.read_text()) for path in sorted(FIXTURES.glob("*-event.json"))]
    ordered = sorted(examples, key=lambda one: int(one["sequence"]))
    snapshot = json.loads((FIXTURES / "thread-read-snapshot.json").read_text())
    file.write_text(lines(*ordered, snapshot))
    report = json.loads(told(str(file), "--json").output)
    assert (report["level"], report["facts"], report["snapshots"]) == ("extension", 5, 1)
    del snapshot["evidenceRefs"]
    file.write_text(lines(*ordered, snapshot))
    result = told(str(file), "--json")
    assert [one[:3] for one in faults(result)] == [
        ("profile core", snapshot["sequence"], "snapshot")
    ]


@pytest.mark.parametrize("line", ["no json", "[]", "1", "null", '"x"', "[" * 100_000])
def test_what_is_no_fact_costs_every_level(line: str) -> None:
    result = told("-", "--json", given=f"{line}\n\n")
    assert result.exit_code == 1
    report = json.loads(result.output)
    assert (report["level"], report["facts"]) == (None, 1)


def test_nothing_reaches_nothing_and_many_faults_are_counted(tmp_path: Path) -> None:
    assert told("-", given="").exit_code == 1
    result = told("-", given="1\n" * 30)
    assert "… and 10 more" in result.output
    missing = told(str(tmp_path / "none.jsonl"))
    assert (missing.exit_code, "none.jsonl" in missing.output) == (1, True)


def test_a_log_with_a_hole_is_judged_without_a_snapshot_of_it(tmp_path: Path) -> None:
    """No read model can be made of it; its facts are judged all the same."""
    from arp.commands.ledger.ledger_levels import _judge_session
    from arp.conformance.ledger.ledger_levels import LedgerJudge

    class Holed:
        def events(self, *_: Any) -> list[bytes]:
            return [json.dumps(one).encode() for one in facts()[1:]]

    judge = LedgerJudge()
    _judge_session(judge, Holed(), "s")  # type: ignore[arg-type]  # the one method that is used
    report = judge.report()
    assert (report.level, report.facts, report.snapshots) == ("extension", 3, 0)
