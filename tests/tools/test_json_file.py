"""Documents on disk: whole or not at all, whoever changes them, and never lost in silence."""

from __future__ import annotations

import json
import multiprocessing
import os
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest

from arp.tools.errors import DataFileDamaged
from arp.tools.registry.json_file import JsonFile


class Counted(msgspec.Struct, frozen=True):
    """A document that is counted up."""

    count: int = 0
    names: list[str] = []


def add(file: JsonFile[Counted], name: str) -> int:
    def make(document: Counted) -> tuple[Counted, int]:
        after = Counted(document.count + 1, [*document.names, name])
        return after, after.count

    return file.change(make)


def add_many(path: str, name: str, times: int) -> None:
    for _ in range(times):
        add(JsonFile(Path(path), Counted), name)


def test_a_file_that_is_not_there_is_an_empty_document(tmp_path: Path) -> None:
    file = JsonFile(tmp_path / "below" / "x.json", Counted)
    assert file.read() == Counted()
    assert add(file, "a") == 1
    assert file.read() == Counted(1, ["a"])


def test_threads_and_processes_lose_nothing(tmp_path: Path) -> None:
    path = str(tmp_path / "x.json")
    threads = [threading.Thread(target=add_many, args=(path, f"t{n}", 10)) for n in range(4)]
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=add_many, args=(path, f"p{n}", 10)) for n in range(2)]
    both: list[Any] = [*processes, *threads]
    for one in both:
        one.start()
    for one in both:
        one.join(50)
    document = JsonFile(Path(path), Counted).read()
    assert document.count == 60
    assert {name: document.names.count(name) for name in document.names} == dict.fromkeys(
        ["t0", "t1", "t2", "t3", "p0", "p1"], 10
    )
    assert {one.name for one in tmp_path.iterdir()} == {"x.json", ".x.json.lock"}


def test_a_reader_never_sees_half_a_document(tmp_path: Path) -> None:
    file = JsonFile(tmp_path / "x.json", Counted)
    add(file, "a")
    done = threading.Event()

    def change() -> None:
        for number in range(80):
            add(file, "x" * number)
        done.set()

    changing = threading.Thread(target=change)
    changing.start()
    seen = set()
    while not done.is_set():
        document = JsonFile(file.path, Counted).read()
        assert len(document.names) == document.count
        seen.add(document.count)
    changing.join()
    assert len(seen) > 1


@pytest.mark.parametrize(
    "text", [b"{", b"", b"  \n", b"[]", b"null", b'{"count": "x"}', b"\xff\xfe", b"[" * 100_000]
)
def test_a_damaged_file_stays_and_refuses_reads_and_changes(tmp_path: Path, text: bytes) -> None:
    """An empty document in its place would forget everything; a person decides that."""
    path = tmp_path / "x.json"
    path.write_bytes(text)
    file = JsonFile(path, Counted)
    for use in (file.read, lambda: add(file, "on"), JsonFile(path, Counted).read):
        with pytest.raises(DataFileDamaged, match=r"x\.json cannot be read .*move it away"):
            use()
    assert path.read_bytes() == text
    path.unlink()
    assert add(file, "on") == 1


def test_a_damaged_file_is_replaced_when_that_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(b"{")
    file = JsonFile(path, Counted)
    aside = file.replace_damaged(Counted(3, []))
    assert aside is not None
    assert aside.read_bytes() == b"{"
    assert file.read() == Counted(3, [])
    assert file.replace_damaged(Counted(4, [])) is None
    assert file.read() == Counted(4, [])


def test_a_file_that_is_too_large_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arp.tools.registry.json_file.MAX_BYTES", 100)
    path = tmp_path / "x.json"
    path.write_text('{"count": 1}' + " " * 100)
    with pytest.raises(DataFileDamaged, match="more than 100 bytes"):
        JsonFile(path, Counted).read()


def test_a_change_of_a_damaged_file_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text("{")
    with pytest.raises(DataFileDamaged):
        add(JsonFile(path, Counted), "a")
    assert path.read_text() == "{"


def test_what_make_raises_changes_nothing(tmp_path: Path) -> None:
    file = JsonFile(tmp_path / "x.json", Counted)
    add(file, "a")
    before = file.path.stat()

    def fails(document: Counted) -> tuple[Counted, None]:
        raise KeyError("no")

    with pytest.raises(KeyError):
        file.change(fails)
    assert file.path.stat() == before
    assert add(file, "b") == 2


def test_a_full_disk_leaves_the_old_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = JsonFile(tmp_path / "x.json", Counted)
    add(file, "a")

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        add(file, "b")
    assert file.read() == Counted(1, ["a"])
    assert {one.name for one in tmp_path.iterdir()} == {"x.json", ".x.json.lock"}


def test_unknown_fields_are_written_back(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"count": 1, "names": ["a"], "owner": {"of": "another version"}}))
    add(JsonFile(path, Counted), "b")
    assert json.loads(path.read_text()) == {
        "count": 2,
        "names": ["a", "b"],
        "owner": {"of": "another version"},
    }


def test_what_another_process_wrote_is_read(tmp_path: Path) -> None:
    """What was read before is remembered, but not for another file under this name."""
    mine, theirs = (JsonFile(tmp_path / "x.json", Counted) for _ in range(2))
    add(mine, "a")
    assert mine.read().count == 1
    add(theirs, "b")
    assert mine.read().count == 2
    theirs.path.unlink()
    assert mine.read() == Counted()


def test_own_change_is_read_though_the_file_has_the_identity_of_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a file system that uses inodes again and has coarse times."""
    file = JsonFile(tmp_path / "x.json", Counted)
    add(file, "a")
    monkeypatch.setattr(JsonFile, "_key", lambda _: (1, 1, 1))
    assert file.read().count == 1
    add(file, "b")
    assert file.read().count == 2


def test_rights_of_the_file_are_kept(tmp_path: Path) -> None:
    file = JsonFile(tmp_path / "x.json", Counted)
    add(file, "a")
    assert file.path.stat().st_mode & 0o777 == 0o600
    file.path.chmod(0o640)
    add(file, "b")
    assert file.path.stat().st_mode & 0o777 == 0o640
