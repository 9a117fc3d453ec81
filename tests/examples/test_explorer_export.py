"""An export stays in its directory, overwrites nothing, and leaves nothing half."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from connection import Cell, Result
from errors import ExportFailed
from export import export_directory, free_path, safe_file_name, write_csv

RESULT = Result("SELECT", ("a", "b"), [[1, "x\ny"], [None, 'say "hi"']], False, 0.0)


@pytest.mark.parametrize(
    ("wanted", "name"),
    [
        ("hot days", "hot-days.csv"),
        ("hot.csv", "hot.csv"),
        ("Hot.CSV", "Hot.csv"),
        ("../../etc/passwd", "etc-passwd.csv"),
        ("/etc/passwd", "etc-passwd.csv"),
        ("..\\..\\windows", "windows.csv"),
        ("C:\\x", "C-x.csv"),
        ("a/../b", "a-.-b.csv"),
        ("..", "export.csv"),
        ("", "export.csv"),
        (".hidden", "hidden.csv"),
        ("nul\0byte", "nul-byte.csv"),
        ("line\nbreak", "line-break.csv"),
        ("CON", "export-CON.csv"),
        ("lpt1.txt", "export-lpt1.txt.csv"),
        ("größe – 大小", "größe-大小.csv"),
        ("\u2024\u2024/x", "x.csv"),  # one-dot leaders: dots once Unicode has had its way
        ("\uff0e\uff0e\uff0fx", "x.csv"),  # full-width dots and slash
        ("\u202egnp.exe", "gnp.exe.csv"),
        ("x" * 300, "x" * 80 + ".csv"),
        ("Average temp_max by month", "Average-temp_max-by-month.csv"),
    ],
)
def test_a_name_cannot_leave_the_directory(wanted: str, name: str, tmp_path: Path) -> None:
    assert safe_file_name(wanted) == name
    assert free_path(tmp_path, wanted).resolve().parent == tmp_path.resolve()


def test_a_taken_name_gets_the_first_free_number(tmp_path: Path) -> None:
    (tmp_path / "x.csv").touch()
    (tmp_path / "x-2.csv").symlink_to(tmp_path / "nowhere")
    assert free_path(tmp_path, "x") == tmp_path / "x-3.csv"


def test_rows_are_written_with_their_headers(tmp_path: Path) -> None:
    path = tmp_path / "new" / "x.csv"
    size = write_csv(RESULT, path)
    assert path.read_bytes() == b'a,b\r\n1,"x\ny"\r\n,"say ""hi"""\r\n'
    assert size == 29


def test_spreadsheets_compute_nothing_of_an_export(tmp_path: Path) -> None:
    texts = ["=1+1", "+1", "-1", "@x", "\t=1", "\n=1", "\r=1", "a;b", " =1", ""]
    rows: list[list[Cell]] = [[text, -1.5] for text in texts]
    write_csv(Result("SELECT", ("=h", "n"), rows, False, 0.0), tmp_path / "x.csv")
    written = ["'=1+1", "'+1", "'-1", "'@x", "'\t=1", '"\'\n=1"', '"\'\r=1"', '"a;b"', " =1", ""]
    expected = ["'=h,n", *(f"{text},-1.5" for text in written)]
    expected[expected.index('"a;b",-1.5')] = '"a;b","-1.5"'
    assert (tmp_path / "x.csv").read_bytes().decode() == "\r\n".join([*expected, ""])


def test_a_file_that_is_there_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("mine")
    with pytest.raises(ExportFailed, match="is there already"):
        write_csv(RESULT, path)
    assert path.read_text() == "mine"


def test_a_link_is_never_followed(tmp_path: Path) -> None:
    (tmp_path / "x.csv").symlink_to(tmp_path / "target")
    with pytest.raises(ExportFailed):
        write_csv(RESULT, tmp_path / "x.csv")
    assert not (tmp_path / "target").exists()


def test_a_directory_that_cannot_be_created_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ExportFailed, match="cannot be made"):
        write_csv(RESULT, tmp_path / "file" / "x.csv")


def test_of_an_export_that_breaks_off_nothing_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class FullDisk:
        """A writer on a disk without room."""

        def __init__(self, file: object) -> None:
            """Takes the file, as `csv.writer` does."""

        def writerow(self, row: object) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("export.csv.writer", FullDisk)
    with pytest.raises(ExportFailed, match="No space left"):
        write_csv(RESULT, tmp_path / "x.csv")
    assert list(tmp_path.iterdir()) == []


def test_exports_go_where_the_environment_says() -> None:
    assert export_directory({"EXPLORER_EXPORT": "/tmp/x"}) == Path("/tmp/x")
    assert export_directory({}) == Path("exports")
