"""Writes a result to a CSV file that was not there before. Nothing is ever overwritten."""

from __future__ import annotations

import csv
import itertools
import os
import re
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path

from connection import Cell, QueryLimits, Result
from errors import ExportFailed

EXPORT_LIMITS = QueryLimits(max_rows=200_000, timeout_s=60.0, max_bytes=64 * 2**20)
"""Limits of an export; it may be larger than what is shown."""

MAX_NAME_CHARACTERS = 80
"""Longest name; leaves room for a number and `.csv` within 255 bytes of UTF-8."""

_DEVICES = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.I)


def export_directory(environ: Mapping[str, str]) -> Path:
    """Return the folder for exports: `EXPLORER_EXPORT`, or `exports` in the current directory."""
    return Path(environ.get("EXPLORER_EXPORT") or "exports")


def safe_file_name(wanted: str) -> str:
    """Return a file name that cannot leave its directory, ending in `.csv`.

    It keeps letters, digits, `-`, `_` and inner dots; it never begins with a dot, is never the
    name of a device, and has at most `MAX_NAME_CHARACTERS` before its ending.
    """
    plain = unicodedata.normalize("NFKC", wanted).strip()
    plain = re.sub(r"\.csv$", "", plain, flags=re.I)
    plain = re.sub(r"[^\w.-]+", "-", plain)
    plain = re.sub(r"\.{2,}", ".", plain)
    plain = re.sub(r"-{2,}", "-", plain).strip(".-")[:MAX_NAME_CHARACTERS].strip(".-")
    if not plain or _DEVICES.fullmatch(plain):
        plain = f"export-{plain}".rstrip("-")
    return plain + ".csv"


def free_path(directory: Path, wanted: str) -> Path:
    """Return the path for an export, with a number if the name is taken."""
    name = safe_file_name(wanted)
    stem = name.removesuffix(".csv")
    numbered = (f"{stem}-{number}.csv" for number in itertools.count(2))
    for candidate in itertools.chain([name], numbered):
        if not os.path.lexists(directory / candidate):
            return directory / candidate
    raise AssertionError("numbers do not end")


def write_csv(result: Result, path: Path) -> int:
    """Write a result to `path`, which must not exist, and return its size in bytes. Blocks.

    Raises:
        ExportFailed: It cannot be written, or a file of that name exists; nothing
            of it stays.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        folder = path.parent.name
        raise ExportFailed(f"The folder {folder} cannot be made: {error.strerror}.") from error
    try:
        file = path.open("x", encoding="utf-8", newline="")
    except FileExistsError as error:
        raise ExportFailed(f"{path.name} is there already.", "Choose another name.") from error
    except OSError as error:
        raise ExportFailed(f"{path.name} cannot be written: {error.strerror}.") from error
    try:
        with file:
            plain = csv.writer(file)
            for row in (result.columns, *result.rows):
                writer = csv.writer(file, quoting=csv.QUOTE_ALL) if _is_cut(row) else plain
                writer.writerow([_harmless(cell) for cell in row])
    except OSError as error:
        path.unlink(missing_ok=True)
        raise ExportFailed(f"{path.name} cannot be written: {error.strerror}.") from error
    return path.stat().st_size


_FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n")
"""First characters of texts that a spreadsheet would compute."""


def _harmless(cell: Cell) -> Cell:
    """Return a cell that no spreadsheet computes."""
    is_formula = isinstance(cell, str) and cell.startswith(_FORMULAS)
    return f"'{cell}" if is_formula else cell


def _is_cut(row: Sequence[Cell]) -> bool:
    """Return whether a spreadsheet with a decimal comma would cut a cell."""
    return any(isinstance(cell, str) and ";" in cell for cell in row)
