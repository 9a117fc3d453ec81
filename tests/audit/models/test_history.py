"""Context, compaction, and what was done to the history."""

from __future__ import annotations

from typing import Any

from arp.audit.models import entities
from tests.audit.models.story import Story

MOST_MODELS = entities.MOST_STORED_MODELS


def history(story: Story) -> dict[str, Any]:
    return dict(story.snapshot["history"])


def test_a_context_tells_how_full_it_is() -> None:
    story = Story()
    story.in_turn("context.resolved", tokens=700, maxTokens=1000)
    story.in_turn("context.resolved", tokens=800)
    assert history(story) == {"tokens": 800, "maxTokens": 1000}


def test_a_compaction_is_told_from_its_start_to_its_end() -> None:
    story = Story()
    ids = {"request_id": "r"}
    story.in_turn("context.compaction.started", ids, tokensBefore=900, reason="full")
    assert history(story)["compaction"]["status"] == "running"
    told = {"tokensAfter": 200, "throughSequence": 7, "summary": "they said hello"}
    story.in_turn("context.compaction.completed", ids, **told)
    assert history(story) == {
        "tokens": 200,
        "compactions": 1,
        "compaction": {
            "status": "completed",
            "sequence": 3,
            "turnId": "t1",
            "tokensBefore": 900,
            "tokensAfter": 200,
            "throughSequence": 7,
            "summary": "they said hello",
        },
    }


def test_a_compaction_that_fails_changes_no_context_and_is_an_incident() -> None:
    story = Story()
    ids = {"request_id": "r"}
    story.in_turn("context.resolved", tokens=900)
    story.in_turn("context.compaction.failed", ids, reason="no model")
    assert history(story)["tokens"] == 900
    assert "compactions" not in history(story)
    assert [one["type"] for one in story.thread["incidents"]] == ["context.compaction.failed"]


def test_a_compaction_without_sizes_changes_no_size() -> None:
    story = Story()
    story.in_turn("context.resolved", tokens=900)
    story.in_turn("context.compaction.completed", {"request_id": "r"})
    assert (history(story)["tokens"], history(story)["compactions"]) == (900, 1)


def test_the_last_boundary_of_the_history_is_told() -> None:
    story = Story()
    story.tell("history.window.loaded", fromSequence=1, throughSequence=9, reason="resume")
    assert history(story)["boundary"] == {
        "type": "history.window.loaded",
        "sequence": 2,
        "fromSequence": 1,
        "throughSequence": 9,
        "reason": "resume",
    }
    story.tell("history.rollback.started", {"request_id": "r"}, toSequence=4)
    assert "rollbacks" not in history(story)
    story.tell("history.rollback.completed", {"request_id": "r"}, toSequence=4, removedTurns=[])
    assert history(story)["rollbacks"] == 1
    assert history(story)["boundary"]["throughSequence"] == 4
    story.tell("history.reconstructed", throughSequence=0, source="a copy")
    assert history(story)["boundary"] == {
        "type": "history.reconstructed",
        "sequence": 5,
        "throughSequence": 0,
        "source": "a copy",
    }


def test_stored_read_models_are_told_with_what_they_cover() -> None:
    story = Story()
    story.tell("snapshot.updated", readModel="session", throughSequence=1, bytes=300)
    story.tell("snapshot.repaired", readModel="session", throughSequence=2, reason="damaged")
    story.tell("snapshot.updated", readModel="session")
    for number in range(MOST_MODELS + 5):
        story.tell("snapshot.updated", readModel=f"m{number}", throughSequence=1)
    stored = history(story)["storedModels"]
    assert stored["session"] == 2
    assert len(stored) == MOST_MODELS
