"""The address of a session's file on a server: its session, its content, and a name to keep."""

from __future__ import annotations

import base64
import binascii
import re

from msgspec import Struct

PREFIX = "/_api/blobs/"
"""What the address of every file begins with, below that of the server."""

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


class BlobName(Struct, frozen=True):
    """What the address of a file says."""

    session_id: str
    sha256: str
    name: str


def blob_path(session_id: str, sha256: str, name: str) -> str:
    """Return the path under which a server gives a session's file.

    It holds letters, digits and `._-` alone, whatever the session and the file are called.
    """
    session = base64.urlsafe_b64encode(session_id.encode()).decode().rstrip("=")
    stem, _, ending = name.rpartition(".")
    if not stem.strip("."):  # a name such as `.hidden` has no ending
        stem, ending = name, ""
    shown = f"{_plain(stem) or 'file'}{'.' if ending else ''}{_plain(ending)}"
    return f"{PREFIX}s{session}/{sha256}/{shown}"


def parse_blob_path(path: str) -> BlobName | None:
    """Return what a path made by `blob_path` says; `None` for any other."""
    session, _, rest = path.removeprefix(PREFIX).partition("/")
    sha256, _, name = rest.partition("/")
    if not session.startswith("s") or not sha256 or not name or "/" in name:
        return None
    try:
        padded = session[1:] + "=" * (-len(session[1:]) % 4)
        session_id = base64.b64decode(padded, altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        return None
    return BlobName(session_id, sha256, name)


def _plain(text: str) -> str:
    """Return a text with letters, digits and `._-` alone, none of the latter at its ends."""
    return _UNSAFE.sub("-", text).strip("._-")[:100]
