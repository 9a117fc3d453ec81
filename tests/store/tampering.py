"""Changes facts in a ledger file, as somebody does who makes their checksums anew."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from zlib import crc32


def change(path: Path, old: bytes, new: bytes, session_id: str = "s") -> int:
    """Replace bytes in the sorted facts of a session once; give the sequence of the fact."""
    with closing(sqlite3.connect(path)) as db:
        query = "SELECT first, CAST(facts AS BLOB) FROM segment WHERE session = ? ORDER BY first"
        for first, facts in db.execute(query, (session_id,)).fetchall():
            if old in facts:
                changed = facts.replace(old, new, 1)
                write = "UPDATE segment SET facts = ?, crc = ? WHERE session = ? AND first = ?"
                db.execute(write, (changed, crc32(changed), session_id, first))
                db.commit()
                return int(first + facts[: facts.index(old)].count(b"\n"))
    raise AssertionError(f"no sorted fact of session {session_id} holds {old!r}")


def run(path: Path, statement: str) -> None:
    """Run a statement against the file."""
    with closing(sqlite3.connect(path)) as db:
        db.execute(statement)
        db.commit()
