"""Detects the encoding, the delimiter and the header of a CSV file."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from errors import DataUnreadable

DELIMITERS = (",", ";", "\t", "|")
"""The delimiters to try; the one that cuts most rows into the same number of cells is chosen."""

SAMPLE_CHARACTERS = 64 * 2**10
"""Characters at the start of a file that show its delimiter and whether it has a header."""

MAX_COLUMNS = 1_000
"""Most columns; SQLite's own limit is 2,000."""

_NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?%?")
_YEAR = re.compile(r"(18|19|20)\d\d")
_DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}.*")

_OTHER_FORMATS = {
    b"PK\x03\x04": "an Excel workbook or a zip file; save the sheet as CSV",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook; save the sheet as CSV",
    b"PAR1": "a Parquet file; convert it to CSV or SQLite",
    b"%PDF": "a PDF",
    b"\x1f\x8b": "a gzip file; unpack it first",
}


@dataclass(frozen=True)
class CsvText:
    """A decoded CSV file with its delimiter and header."""

    text: str
    delimiter: str
    columns: tuple[str, ...]
    """Distinct names; generated if the file has none."""
    has_header: bool

    def records(self) -> Iterator[list[str]]:
        """Yield the cells of each row as text, without the header and empty lines.

        Raises:
            DataUnreadable: A row cannot be read; the message names the line.
        """
        reader = csv.reader(io.StringIO(self.text, newline=""), delimiter=self.delimiter)
        skip = self.has_header
        try:
            for record in reader:
                if not record or record == [""]:
                    continue
                if skip:
                    skip = False
                    continue
                yield record
        except csv.Error as error:
            raise DataUnreadable(
                f"Line {reader.line_num}: {error}.", "Look for a quotation mark that is not closed."
            ) from error


def read_csv_text(content: bytes) -> CsvText:
    """Detect how to read the bytes of a CSV file.

    Raises:
        DataUnreadable: It is empty, is not text, or has more than `MAX_COLUMNS` columns.
    """
    text = _decode(content)
    if not text.strip():
        raise DataUnreadable("The file is empty.")
    if text.lstrip()[0] in "{[":
        raise DataUnreadable("The file looks like JSON.", "Convert it to CSV.")
    declared = re.match(r"sep=(.)\r?\n", text)  # Excel declares the delimiter in this way
    if declared:
        text = text[declared.end() :]
    delimiter = declared[1] if declared else find_delimiter(text)
    sample = _sample(text, delimiter)
    if not sample:
        raise DataUnreadable("The file holds no row.")
    header = is_header(sample)
    width = max(len(sample[0]), Counter(map(len, sample)).most_common(1)[0][0])
    if width > MAX_COLUMNS:
        raise DataUnreadable(f"The file has {width:,} columns; {MAX_COLUMNS:,} are possible.")
    return CsvText(text, delimiter, column_names(sample[0] if header else [], width), header)


def _decode(content: bytes) -> str:
    for signature, name in _OTHER_FORMATS.items():
        if content.startswith(signature):
            raise DataUnreadable(f"This is no CSV: it looks like {name}.")
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return content.decode("utf-16", "replace")
    if b"\0" in content[:SAMPLE_CHARACTERS]:
        raise DataUnreadable("This is neither text nor SQLite.", "Send a CSV or a SQLite file.")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("cp1252", "replace")  # what spreadsheets on Windows write


def _sample(text: str, delimiter: str) -> list[list[str]]:
    """Return the first complete rows of the sample."""
    reader = csv.reader(io.StringIO(text[:SAMPLE_CHARACTERS], newline=""), delimiter=delimiter)
    records: list[list[str]] = []
    try:
        for record in reader:
            if record and record != [""]:
                records.append(record)
            if len(records) > 200:
                break
    except csv.Error:
        return records
    cut = len(text) > SAMPLE_CHARACTERS and len(records) <= 200
    return records[:-1] if cut and len(records) > 1 else records


def find_delimiter(text: str) -> str:
    """Return the delimiter that cuts most rows into the same number of cells; default: a comma."""
    best, best_score = ",", (0.0, 0)
    for delimiter in DELIMITERS:
        widths = Counter(len(record) for record in _sample(text, delimiter))
        if not widths:
            continue
        width, count = widths.most_common(1)[0]
        score = (round(count / widths.total(), 2), width) if width > 1 else (0.0, 0)
        if score > best_score:
            best, best_score = delimiter, score
    return best


def is_header(sample: list[list[str]]) -> bool:
    """Return whether the first row has column names: words, or years above numbers."""
    first = [cell.strip() for cell in sample[0]]
    if not any(first):
        return False
    values = [cell for cell in first if _NUMBER.fullmatch(cell) or _DATE.fullmatch(cell)]
    if not values:
        return True
    years = all(_YEAR.fullmatch(cell) for cell in values)
    return years and len(values) > 1 and len(set(values)) == len(values)


def column_names(header: list[str], width: int) -> tuple[str, ...]:
    """Return `width` distinct names; a missing one is `column_3`, the second `a` is `a_2`."""
    names: list[str] = []
    taken: set[str] = set()
    for index in range(width):
        written = " ".join(header[index].split())[:100] if index < len(header) else ""
        plain = written or f"column_{index + 1}"
        name, count = plain, 1
        while name.casefold() in taken:
            count += 1
            name = f"{plain}_{count}"
        taken.add(name.casefold())
        names.append(name)
    return tuple(names)
