"""Tasks are on disk, go through their table, and are found again after a restart."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from arp.tools.errors import DataFileDamaged, ToolConflict, UnknownTool
from arp.tools.tasks.task_book import MAX_FINISHED, NEXT, TaskBook, TaskStatus


def test_report_has_the_exact_shape_of_the_document(tmp_path: Path) -> None:
    book = TaskBook(tmp_path)
    task = book.add("a tool")
    assert task.report() == {"task_id": task.task_id, "status": "pending"}
    book.set(task.task_id, TaskStatus.RUNNING)
    done = book.set(task.task_id, TaskStatus.COMPLETED, tool_id="x", url="http://localhost:9001/x")
    assert done.report() == {
        "task_id": task.task_id,
        "status": "completed",
        "result": {"tool_id": "x", "url": "http://localhost:9001/x"},
    }


def test_waiting_task_says_what_it_waits_for_and_where(tmp_path: Path) -> None:
    book = TaskBook(tmp_path)
    task = book.add("a tool")
    book.set(task.task_id, TaskStatus.RUNNING)
    waiting = book.set(
        task.task_id, TaskStatus.WAITING_APPROVAL, waiting_for="Run it?", session_id="s"
    )
    assert waiting.report() == {
        "task_id": task.task_id,
        "status": "waiting_approval",
        "waiting_for": "Run it?",
        "session_id": "s",
    }


@pytest.mark.parametrize("status", list(TaskStatus))
def test_a_task_goes_only_where_the_table_says(tmp_path: Path, status: TaskStatus) -> None:
    for wanted in TaskStatus:
        book = TaskBook(tmp_path / wanted)
        task_id = book.add("x").task_id
        way = {"waiting_approval": ["running", "waiting_approval"], "pending": []}
        for step in way.get(status, [status]):
            book.set(task_id, TaskStatus(step))
        if wanted in NEXT[status] or wanted is status:
            assert book.set(task_id, wanted).status is wanted
        else:
            with pytest.raises(ToolConflict, match=status):
                book.set(task_id, wanted)
            assert book.get(task_id).status is status


def test_restart_makes_pending_again_what_was_cut_off(tmp_path: Path) -> None:
    book = TaskBook(tmp_path)
    waits, runs, asks, done = (book.add(word).task_id for word in ("waits", "runs", "asks", "done"))
    for task_id in (runs, asks, done):
        book.set(task_id, TaskStatus.RUNNING, attempts=1)
    book.set(asks, TaskStatus.WAITING_APPROVAL, waiting_for="Run it?", session_id="s1")
    book.set(done, TaskStatus.COMPLETED)
    again = TaskBook(tmp_path)
    assert [task.task_id for task in again.reopen()] == [waits, runs, asks]
    assert [again.get(one).attempts for one in (waits, runs, asks)] == [0, 1, 1]
    assert (again.get(asks).waiting_for, again.get(asks).session_id) == ("", "s1")
    kept = json.loads((tmp_path / "tasks.json").read_text())["tasks"]
    assert [task["status"] for task in kept] == ["pending", "pending", "pending", "completed"]


def test_failed_write_leaves_the_task_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = TaskBook(tmp_path)
    task = book.add("x")

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space"):
            book.set(task.task_id, TaskStatus.RUNNING)
        with pytest.raises(OSError, match="No space"):
            book.add("y")
    assert book.tasks() == [task]
    assert book.set(task.task_id, TaskStatus.RUNNING).status is TaskStatus.RUNNING


def test_two_books_of_a_directory_lose_nothing(tmp_path: Path) -> None:
    mine, theirs = TaskBook(tmp_path), TaskBook(tmp_path)
    first, second = mine.add("x"), theirs.add("y")
    theirs.set(first.task_id, TaskStatus.RUNNING)
    assert mine.get(first.task_id).status is TaskStatus.RUNNING
    assert mine.get(second.task_id) == second


def test_damaged_file_is_reported_at_once(tmp_path: Path) -> None:
    """A server does not start without its tasks."""
    (tmp_path / "tasks.json").write_text("{")
    with pytest.raises(DataFileDamaged, match=r"tasks\.json cannot be read"):
        TaskBook(tmp_path)


async def test_waiting_for_a_task_returns_when_it_is_over(tmp_path: Path) -> None:
    book = TaskBook(tmp_path)
    task_id = book.add("x").task_id
    waiting = asyncio.create_task(book.wait_for_end(task_id))
    await asyncio.sleep(0)
    book.set(task_id, TaskStatus.RUNNING)
    await asyncio.sleep(0)
    assert not waiting.done()
    book.set(task_id, TaskStatus.FAILED, error="no")
    assert (await waiting).error == "no"


def test_old_finished_tasks_go_and_open_ones_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arp.tools.tasks.task_book.MAX_FINISHED", 3)
    assert MAX_FINISHED == 1_000
    book = TaskBook(tmp_path)
    open_task = book.add("open").task_id
    done = [book.add(str(number)).task_id for number in range(5)]
    for task_id in done:
        book.set(task_id, TaskStatus.CANCELLED)
    assert [task.task_id for task in book.tasks()] == [open_task, *done[2:]]
    with pytest.raises(UnknownTool):
        book.get(done[0])
