"""What lasts: files, exports, read models, policies."""

from __future__ import annotations

from arp.ledger.payload_fields import Verification
from arp.record.lasting import Exported
from arp.record.outputs import Kept
from tests.record.rig import Notes

SHA = "0" * 64


def test_a_file_says_where_its_bytes_are() -> None:
    notes = Notes()
    notes.record.lasting.file("report", "r.md", mime="text/markdown", kept=Kept("#", 9_000, SHA))
    notes.record.lasting.file("report", "r.md", sha256=SHA)
    whole = {"name": "r.md", "mime": "text/markdown", "sha256": SHA, "bytes": 9_000}
    ids = {"artifact_id": "report"}
    assert notes.told() == [
        ("artifact.changed", whole, {**ids, "output_ref": SHA}),
        ("artifact.changed", {"name": "r.md", "sha256": SHA}, ids),
    ]


def test_a_file_is_on_no_screen() -> None:
    notes = Notes()
    notes.record.lasting.file("report", "r.md")
    assert list(notes.session.screen.surfaces) == ["main"]
    assert notes.session.screen.surfaces["main"].nodes == {}


def test_an_export_and_its_check_carry_one_id() -> None:
    notes = Notes()
    lasting = notes.record.lasting
    pack = Exported(
        kind="evidence", state="exported", sha256=SHA, through_sequence=9, gaps=["no trace"]
    )
    name = lasting.evidence(pack)
    failed = Verification("failed", 4)
    lasting.evidence(Exported(kind="evidence", state="exported", verification=failed), name)
    lasting.evidence(Exported(kind="replay", state="not_applicable", reason="no turn"))
    assert notes.told() == [
        (
            "evidence.changed",
            {
                "kind": "evidence",
                "state": "exported",
                "sha256": SHA,
                "throughSequence": 9,
                "gaps": ["no trace"],
            },
            {"evidence_id": "evidence-1"},
        ),
        (
            "evidence.changed",
            {
                "kind": "evidence",
                "state": "exported",
                "verification": {"outcome": "failed", "firstBad": 4},
            },
            {"evidence_id": "evidence-1"},
        ),
        (
            "evidence.changed",
            {"kind": "replay", "state": "not_applicable", "reason": "no turn"},
            {"evidence_id": "evidence-3"},
        ),
    ]


def test_read_models_policies_and_warnings_have_their_facts() -> None:
    notes = Notes()
    lasting = notes.record.lasting
    lasting.snapshot_updated("session", 9, 120)
    lasting.snapshot_repaired("session", 9, "checksum")
    lasting.policy_changed("permissionMode", "ask", "allow")
    lasting.titled("Sales")
    lasting.thread("stale", "nobody answers")
    lasting.warning("the clock went back", {"ms": 3})
    assert notes.told() == [
        ("snapshot.updated", {"readModel": "session", "throughSequence": 9, "bytes": 120}, {}),
        (
            "snapshot.repaired",
            {"readModel": "session", "throughSequence": 9, "reason": "checksum"},
            {},
        ),
        ("policy.changed", {"policy": "permissionMode", "value": "ask", "previous": "allow"}, {}),
        ("session.updated", {"title": "Sales"}, {}),
        ("thread.updated", {"reason": "nobody answers"}, {"status": "stale"}),
        ("runtime.warning", {"message": "the clock went back", "detail": {"ms": 3}}, {}),
    ]
