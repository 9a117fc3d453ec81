"""Subagents, jobs with their items, and channels."""

from __future__ import annotations

from typing import Any

import pytest

from arp.audit.models import entities
from tests.audit.models.story import Story

MOST_CHANNELS = entities.CHANNELS.most[0]
MOST_ITEMS = entities.ITEMS.most[0]
MOST_JOBS = entities.JOBS.most[0]
MOST_SUBAGENTS = entities.SUBAGENTS.most[0]

SUB, JOB, CHANNEL = {"subagent_id": "sub1"}, {"job_id": "j1"}, {"channel_id": "ch1"}


def only(story: Story, name: str) -> dict[str, Any]:
    (found,) = story.snapshot[name]
    return dict(found)


def test_a_subagent_is_told_from_its_start_to_its_end() -> None:
    story = Story()
    story.in_turn("subagent.spawned", SUB | {"task_id": "k1"}, name="counter", objective="Count")
    story.in_turn("subagent.status", SUB | {"status": "waiting"}, message="for input")
    story.in_turn("subagent.input", SUB, text="go on")
    assert only(story, "subagents")["status"] == "waiting"
    story.in_turn("subagent.status", SUB, message="counting")
    story.in_turn("subagent.completed", SUB, outputs=[3])
    story.in_turn("subagent.closed", SUB, reason="done with it")
    story.in_turn("subagent.status", SUB | {"status": "running"})
    assert only(story, "subagents") == {
        "subagentId": "sub1",
        "status": "completed",
        "name": "counter",
        "objective": "Count",
        "message": "counting",
        "inputs": 1,
        "outputs": [3],
        "threadId": "main",
        "turnId": "t1",
        "taskId": "k1",
        "firstSequence": 2,
        "lastSequence": 8,
    }


@pytest.mark.parametrize("how", ["failed", "closed"])
def test_a_subagent_that_ends_otherwise_says_how_and_why(how: str) -> None:
    story = Story()
    story.in_turn("subagent.spawned", SUB)
    story.in_turn(f"subagent.{how}", SUB, reason="no budget")
    found = only(story, "subagents")
    assert (found["status"], found["reason"]) == (how, "no budget")


def test_one_failed_item_of_a_job_is_retried_alone() -> None:
    """ledger.md 6."""
    story = Story()
    story.tell("job.created", JOB | {"task_id": "k1"}, name="import", total=2)
    assert only(story, "jobs")["status"] == "created"
    story.tell("job.started", JOB)
    for name in ("i1", "i2"):
        story.tell("job.item.started", JOB | {"job_item_id": name}, attempt=1)
    story.tell("job.item.completed", JOB | {"job_item_id": "i1"}, attempt=1)
    story.tell("job.item.failed", JOB | {"job_item_id": "i2"}, attempt=1, reason="bad row")
    story.tell("job.item.started", JOB | {"job_item_id": "i2"}, attempt=2)
    running = {item["jobItemId"]: item["status"] for item in only(story, "jobs")["items"]}
    assert running == {"i1": "completed", "i2": "running"}
    story.tell("job.item.completed", JOB | {"job_item_id": "i2"}, attempt=2)
    story.tell("job.progress", JOB, done=2, total=2, message="last row")
    story.tell("job.completed", JOB, done=2, failed=0)
    job = only(story, "jobs")
    assert job["items"] == [
        {
            "jobItemId": "i1",
            "status": "completed",
            "attempt": 1,
            "firstSequence": 4,
            "lastSequence": 6,
        },
        {
            "jobItemId": "i2",
            "status": "completed",
            "attempt": 2,
            "failures": 1,
            "firstSequence": 5,
            "lastSequence": 9,
        },
    ]
    assert (job["status"], job["name"], job["taskId"]) == ("completed", "import", "k1")
    assert (job["done"], job["total"], job["failed"], job["message"]) == (2, 2, 0, "last row")
    assert [one["jobItemId"] for one in story.snapshot["incidents"]] == ["i2"]


@pytest.mark.parametrize("how", ["failed", "cancelled"])
def test_a_job_that_ends_otherwise_says_how_and_may_start_again(how: str) -> None:
    story = Story()
    story.tell("job.started", JOB)
    story.tell(f"job.{how}", JOB, reason="no disk")
    job = only(story, "jobs")
    assert (job["status"], job["reason"]) == (how, "no disk")
    story.tell("job.started", JOB)
    assert only(story, "jobs")["status"] == "running"


def test_a_channel_comes_and_goes_and_comes_back() -> None:
    story = Story()
    story.tell("channel.connected", CHANNEL, features=[], encoding="json")
    story.tell("channel.message", CHANNEL, direction="in", text="hi")
    story.tell("channel.disconnected", CHANNEL, reason="no network")
    assert only(story, "channels") == {
        "channelId": "ch1",
        "status": "disconnected",
        "encoding": "json",
        "reason": "no network",
        "messages": 1,
        "firstSequence": 2,
        "lastSequence": 4,
    }
    story.tell("channel.resumed", CHANNEL, features=[], encoding="cbor")
    channel = only(story, "channels")
    assert (channel["status"], channel["encoding"]) == ("connected", "cbor")
    assert "reason" not in channel


def test_what_is_kept_of_each_is_bounded() -> None:
    story = Story()
    for number in range(120):
        story.in_turn("subagent.spawned", {"subagent_id": f"s{number}"})
        story.in_turn("subagent.completed", {"subagent_id": f"s{number}"})
        story.tell("job.started", {"job_id": f"j{number}"})
        story.tell("job.completed", {"job_id": f"j{number}"}, done=1)
        told = {"job_id": "many", "job_item_id": f"i{number}"}
        story.tell("job.item.completed", told, attempt=1)
        story.tell("channel.connected", {"channel_id": f"c{number}"})
        story.tell("channel.disconnected", {"channel_id": f"c{number}"})
    snapshot = story.snapshot
    assert len(snapshot["subagents"]) == MOST_SUBAGENTS
    assert len(snapshot["jobs"]) == MOST_JOBS + 1
    (many,) = [job for job in snapshot["jobs"] if job["jobId"] == "many"]
    assert len(many["items"]) == MOST_ITEMS
    assert len(snapshot["channels"]) == MOST_CHANNELS
