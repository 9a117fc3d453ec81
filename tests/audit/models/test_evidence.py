"""What was exported, and what the session made."""

from __future__ import annotations

from typing import Any

from arp.audit.models import entities
from tests.audit.models.story import Story

MOST_ARTIFACTS = entities.ARTIFACTS.most[0]
MOST_EXPORTS = entities.EXPORTS.most[0]


def exported(story: Story, name: str, kind: str, state: str = "exported", **more: Any) -> None:
    refs = more.pop("refs", None)
    ids = {"evidence_id": name, "thread_id": "main", "turn_id": "t1", "refs": refs}
    story.tell("evidence.changed", ids, kind=kind, state=state, **more)


def test_without_an_export_there_is_no_gap_and_no_evidence() -> None:
    """ledger.md 4: what does not apply is left out or `not_applicable`; no generic gaps."""
    story = Story()
    story.start()
    assert story.thread["evidenceSummary"] == {"status": "not_applicable"}
    assert story.snapshot["evidenceRefs"] == []


def test_each_kind_of_export_is_listed_with_its_refs() -> None:
    story = Story()
    exported(story, "e1", "evidence", refs={"pack": "e1.zip"}, sha256="a" * 64, throughSequence=1)
    exported(story, "e2", "replay")
    exported(story, "e3", "review")
    exported(story, "e4", "benchmark")
    summary = story.thread["evidenceSummary"]
    assert summary["status"] == "exported"
    assert [one["evidenceId"] for one in summary["packs"]] == ["e1"]
    assert [one["evidenceId"] for one in summary["replays"]] == ["e2"]
    assert [one["evidenceId"] for one in summary["reviews"]] == ["e3"]
    assert [one["evidenceId"] for one in summary["benchmarks"]] == ["e4"]
    assert summary["evidenceRefs"] == ["e1", "e2", "e3", "e4"]
    assert story.snapshot["evidenceRefs"] == ["e1", "e2", "e3", "e4"]
    assert summary["packs"][0] == {
        "evidenceId": "e1",
        "kind": "evidence",
        "state": "exported",
        "sha256": "a" * 64,
        "throughSequence": 1,
        "refs": {"pack": "e1.zip"},
        "threadId": "main",
        "turnId": "t1",
        "at": "2026-01-02T03:00:01.000000Z",
        "firstSequence": 2,
        "lastSequence": 2,
    }


def test_an_export_of_no_known_kind_is_told_among_the_others() -> None:
    story = Story()
    exported(story, "e1", "portrait")
    assert [one["evidenceId"] for one in story.thread["evidenceSummary"]["others"]] == ["e1"]


def test_the_states_of_an_export_are_told_apart() -> None:
    """ledger.md 5: exported, not_applicable, unsupported and missing_correlation."""
    story = Story()
    for state in ("exported", "not_applicable", "unsupported", "missing_correlation"):
        exported(story, f"e-{state}", "evidence", state)
        assert story.thread["evidenceSummary"]["status"] == state


def test_a_check_and_the_gaps_that_it_found_are_told_with_what_they_are_of() -> None:
    story = Story()
    exported(story, "e1", "evidence", gaps=["no trace id"], refs={"pack": "e1.zip"})
    exported(story, "e1", "evidence", verification={"outcome": "failed", "firstBad": 7})
    exported(story, "e2", "evidence", verification="nonsense")
    summary = story.thread["evidenceSummary"]
    assert summary["verifications"] == [{"evidenceId": "e1", "outcome": "failed", "firstBad": 7}]
    assert summary["knownGaps"] == [{"evidenceId": "e1", "gap": "no trace id"}]
    assert [one["refs"] for one in summary["packs"] if "refs" in one] == [{"pack": "e1.zip"}]


def test_a_thread_tells_its_own_exports_and_those_of_the_session() -> None:
    story = Story()
    story.start()
    side = {"evidence_id": "side", "thread_id": "side", "turn_id": "s1"}
    story.tell("evidence.changed", side, kind="evidence", state="exported")
    story.tell("evidence.changed", {"evidence_id": "all"}, kind="evidence", state="exported")
    assert [one["evidenceId"] for one in story.thread["evidenceSummary"]["packs"]] == ["all"]
    packs = story.snapshot["evidenceSummary"]["packs"]
    assert [one["evidenceId"] for one in packs] == ["side", "all"]


def test_an_artifact_tells_what_it_is_now() -> None:
    story = Story()
    ids = {"artifact_id": "file1", "task_id": "k1"}
    story.tell("artifact.changed", ids, name="a.csv", mime="text/csv", bytes=10, sha256="a" * 64)
    story.tell("artifact.changed", {"artifact_id": "file1", "output_ref": "b1"}, bytes=12)
    (artifact,) = story.snapshot["artifacts"]
    assert artifact == {
        "artifactId": "file1",
        "name": "a.csv",
        "mime": "text/csv",
        "bytes": 12,
        "sha256": "a" * 64,
        "outputRef": "b1",
        "changes": 2,
        "taskId": "k1",
        "firstSequence": 2,
        "lastSequence": 3,
    }


def test_exports_and_artifacts_that_are_kept_are_bounded() -> None:
    story = Story()
    for number in range(60):
        exported(story, f"e{number}", "evidence")
        story.tell("artifact.changed", {"artifact_id": f"f{number}"})
    assert len(story.snapshot["evidenceRefs"]) == MOST_EXPORTS
    assert story.snapshot["evidenceSummary"]["older"] == 60 - MOST_EXPORTS
    assert len(story.snapshot["artifacts"]) == MOST_ARTIFACTS
