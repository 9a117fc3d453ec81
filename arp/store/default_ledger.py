"""Which file is the ledger of a target (`app.py`, `app.py:NAME`, a module) where nobody names one.

Each target has a file of its own in `.arp` of the working directory, so that two agents can be
served side by side. Earlier versions had one file for all of them, `.arp/ledger.db`. It stays the
ledger of an app whose agents have sessions in it, until there is a file with the app's own name.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from arp.store.errors import StoreError
from arp.store.ledger_file import LedgerFile

DIRECTORY: Final = Path(".arp")
SHARED: Final = DIRECTORY / "ledger.db"
"""The file that all targets shared before each had its own."""

MAX_NAME: Final = 80
"""Characters of a name; file systems take 255 bytes, and `.blobs` or `.db-wal` stands behind it."""

_UNSAFE: Final = re.compile(r"[^\w.-]+")
_OBJECT: Final = re.compile(r"(?P<place>.{2,}):(?P<name>[^\W\d]\w*)", re.DOTALL)
"""Two characters at least in front of the colon, so that `C:app.py` is a path."""

_IS_FILE: Final = re.compile(r"\.py(:\w+)?$")
_SCHEMES: Final = ("sqlite:", "memory:", "nats:")


def ledger_of(target: str) -> Path:
    r"""Return the target's own ledger file, below the working directory; it need not exist.

    `app.py`, `./app.py`, `app` and `app.py:app` are one target: `.arp/app.db`. `demos/app.py` has
    `.arp/demos-app.db`, `app.py:sales` has `.arp/app-sales.db`. A file outside the working
    directory has a hash of its path in the name.
    """
    match = _OBJECT.fullmatch(target)
    place, name = (match["place"], match["name"]) if match else (target, "app")
    parts = list(_parts(place))
    if name != "app":
        parts.append(name)
    stem = _UNSAFE.sub("_", "-".join(parts)).lstrip(".-") or "app"
    if len(stem) > MAX_NAME:
        stem = f"{stem[: MAX_NAME - 9]}-{_hash(stem)}"
    return DIRECTORY / f"{stem}.db"


def default_ledger(target: str, agents: Iterable[str]) -> Path:
    """Return the ledger file with which a target is served.

    That is its own file; or `.arp/ledger.db` while the target has no file of its own and one of
    its agents has sessions in that one.

    Args:
        target: As on the command line.
        agents: Names of the agents of its app.
    """
    own = ledger_of(target)
    return SHARED if not own.exists() and _has_sessions_of(SHARED, agents) else own


def ledger_to_read(location: str) -> str:
    """Return the location of a ledger that somebody wants to read, by its place or its target.

    What ends in `.py` or `.py:NAME` is a target, and so is the name of a module that has a ledger
    here. The target need not be loaded: while it has no file of its own, `.arp/ledger.db` is meant
    if that exists. Everything else is returned as it is.
    """
    own = ledger_of(location)
    is_place = Path(location).exists() or not own.exists()
    if location.lower().startswith(_SCHEMES) or (is_place and not _IS_FILE.search(location)):
        return location
    return f"sqlite:{SHARED if not own.exists() and SHARED.exists() else own}"


def _parts(place: str) -> Iterable[str]:
    """Return the words of which the name is made."""
    path = Path(place)
    if path.suffix != ".py" and not path.is_file():  # a module
        return place.split(".")
    whole = Path(os.path.abspath(path))  # not resolve(): a link keeps its own name
    try:
        return whole.relative_to(Path.cwd()).with_suffix("").parts
    except ValueError:
        return (whole.stem, _hash(str(whole)))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:8]


def _has_sessions_of(path: Path, agents: Iterable[str]) -> bool:
    """Tell whether a ledger file has a session of one of these agents.

    Yes for a file that cannot be read: sessions of the app may be in it, so the server opens it
    and says what is wrong with it, rather than to begin a new file in silence.
    """
    try:
        if not path.stat().st_size:  # a server that was killed as it started
            return False
    except OSError:
        return False
    try:
        with LedgerFile(path) as ledger:
            return any(ledger.sessions(workflow=name, limit=1) for name in agents)
    except StoreError:
        return True
