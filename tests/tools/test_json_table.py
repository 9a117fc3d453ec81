"""Rows of a JSON file: found, added, changed and removed by their key."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from msgspec import field
from msgspec.structs import replace

from arp.tools.errors import DataFileDamaged
from arp.tools.registry.json_table import JsonTable, TableDocument


class Shelf(msgspec.Struct, frozen=True):
    """A row."""

    name: str
    books: int = 0


class Library(TableDocument[Shelf], frozen=True):
    """A document with its own name for the rows."""

    rows: list[Shelf] = field(default_factory=list, name="shelves")
    version: str = "1.0"


def table_in(folder: Path, **options: object) -> JsonTable[Shelf]:
    return JsonTable(folder / "x.json", Library, lambda shelf: shelf.name, **options)  # type: ignore[arg-type]


def test_rows_are_added_changed_and_removed_in_their_order(tmp_path: Path) -> None:
    table = table_in(tmp_path)
    assert table.rows() == []
    assert all(table.add(Shelf(name)) for name in "abc")
    assert table.update("b", lambda shelf: replace(shelf, books=2)) == Shelf("b", 2)
    assert table.add(Shelf("a", 1), replace=True)
    assert table.rows() == [Shelf("a", 1), Shelf("b", 2), Shelf("c")]
    assert table.remove("b") == [Shelf("b", 2)]
    assert table.find("b") is None
    assert table_in(tmp_path).rows() == [Shelf("a", 1), Shelf("c")]
    assert msgspec.json.decode(table.path.read_bytes()) == {
        "shelves": [{"name": "a", "books": 1}, {"name": "c", "books": 0}],
        "version": "1.0",
    }


def test_what_changes_nothing_writes_nothing(tmp_path: Path) -> None:
    table = table_in(tmp_path)
    table.add(Shelf("a"))
    before = table.path.stat()
    assert not table.add(Shelf("a", 5))
    assert table.update("a", lambda shelf: shelf) == Shelf("a")
    assert table.update("b", lambda shelf: replace(shelf, books=1)) is None
    assert table.remove("b") == []
    assert table.path.stat() == before


def test_change_that_raises_changes_nothing(tmp_path: Path) -> None:
    table = table_in(tmp_path)
    table.add(Shelf("a"))

    def fails(shelf: Shelf) -> Shelf:
        raise KeyError(shelf.name)

    with pytest.raises(KeyError):
        table.update("a", fails)
    assert table.rows() == [Shelf("a")]


def test_rows_that_are_not_kept_are_dropped_by_each_change(tmp_path: Path) -> None:
    table = table_in(tmp_path, keep=lambda rows: rows[-2:])
    for name in "abc":
        table.add(Shelf(name))
    assert [shelf.name for shelf in table.rows()] == ["b", "c"]


def test_all_rows_of_a_key_are_removed_and_an_update_changes_the_first(tmp_path: Path) -> None:
    table = table_in(tmp_path)
    for books in (1, 2):
        table.change(lambda rows, books=books: ([*rows, Shelf("a", books)], None))  # type: ignore[misc]
    table.update("a", lambda shelf: replace(shelf, books=9))
    assert table.remove("a") == [Shelf("a", 9), Shelf("a", 2)]
    assert table.rows() == []


def test_list_of_rows_belongs_to_the_caller(tmp_path: Path) -> None:
    table = table_in(tmp_path)
    table.add(Shelf("a"))
    table.rows().clear()
    assert table.rows() == [Shelf("a")]


def test_damaged_file_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"shelves": [{"books": 1}]}')
    table = table_in(tmp_path)
    for use in (table.rows, lambda: table.find("a"), lambda: table.add(Shelf("a"))):
        with pytest.raises(DataFileDamaged, match=r"x\.json .*shelves\[0\]"):
            use()
    assert (tmp_path / "x.json").read_text() == '{"shelves": [{"books": 1}]}'
