"""What a model reads, and what became of what was said before."""

from __future__ import annotations

from tests.record.rig import Notes


def test_a_compaction_is_one_from_its_beginning_to_its_end() -> None:
    notes = Notes()
    context = notes.record.context
    context.resolved(900, 1_000, ["history"])
    compaction = context.compaction("nearly full", 900)
    compaction.completed(tokens_before=900, tokens_after=100, through_sequence=40, summary="short")
    context.compaction().failed("the model refused")
    assert notes.told() == [
        ("context.resolved", {"tokens": 900, "maxTokens": 1_000, "sources": ["history"]}, {}),
        (
            "context.compaction.started",
            {"reason": "nearly full", "tokensBefore": 900},
            {"request_id": "compaction-2"},
        ),
        (
            "context.compaction.completed",
            {"tokensBefore": 900, "tokensAfter": 100, "throughSequence": 40, "summary": "short"},
            {"request_id": "compaction-2"},
        ),
        ("context.compaction.started", {}, {"request_id": "compaction-4"}),
        (
            "context.compaction.failed",
            {"reason": "the model refused"},
            {"request_id": "compaction-4"},
        ),
    ]


def test_history_is_loaded_rebuilt_and_taken_back() -> None:
    notes = Notes()
    history = notes.record.history
    history.loaded(5, 9, "resume")
    history.reconstructed(9, "ledger")
    history.rollback(4, "the user went back").completed(["t2", "t3"])
    assert notes.told() == [
        (
            "history.window.loaded",
            {"fromSequence": 5, "throughSequence": 9, "reason": "resume"},
            {},
        ),
        ("history.reconstructed", {"throughSequence": 9, "source": "ledger"}, {}),
        (
            "history.rollback.started",
            {"toSequence": 4, "reason": "the user went back"},
            {"request_id": "rollback-3"},
        ),
        (
            "history.rollback.completed",
            {"toSequence": 4, "removedTurns": ["t2", "t3"]},
            {"request_id": "rollback-3"},
        ),
    ]
