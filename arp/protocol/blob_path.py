"""The address of a session's file on a server: the session, the hash of the content, and a name."""

from __future__ import annotations

import base64
import binascii
import re

from msgspec import Struct

PREFIX = "/_api/blobs/"
"""Prefix of the path of every file."""

MAX_NAME_BYTES = 255
"""Longest file name of common file systems."""

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


class BlobName(Struct, frozen=True):
    """The parts of a file's address."""

    session_id: str
    sha256: str
    name: str


def blob_path(session_id: str, sha256: str, name: str) -> str:
    """Return the path under which a server serves a session's file.

    The segments have only letters, digits and `._-`. The name of the session is always encoded. If
    the name of the file has other characters, an additional segment encodes it, and the last
    segment has hyphens in their place.
    """
    stem, _, ending = name.rpartition(".")
    if not stem.strip("."):  # a name such as `.hidden` has no ending
        stem, ending = name, ""
    shown = f"{_plain(stem) or 'file'}{'.' if ending else ''}{_plain(ending)}"
    exact = file_name(name)
    named = shown if exact in (shown, "") else f"n{_encoded(exact)}/{shown}"
    return f"{PREFIX}s{_encoded(session_id)}/{sha256}/{named}"


def parse_blob_path(path: str) -> BlobName | None:
    """Return the parts of a path made by `blob_path`; `None` for any other path."""
    session, _, rest = path.removeprefix(PREFIX).partition("/")
    sha256, _, name = rest.partition("/")
    exact, is_encoded, plain = name.rpartition("/")
    if not session.startswith("s") or not sha256 or not plain or "/" in exact:
        return None
    if is_encoded and not exact.startswith("n"):
        return None
    try:
        shown = _decoded(exact[1:]) if is_encoded else plain
        return BlobName(_decoded(session[1:]), sha256, file_name(shown) or "file")
    except (binascii.Error, ValueError):
        return None


def file_name(name: str) -> str:
    """Return a safe file name: no folders, no unprintable characters, at most `MAX_NAME_BYTES`.

    All other characters are kept. The result is empty if nothing is left, as for `..`.
    """
    last = name.replace("\\", "/").rpartition("/")[2]
    shown = "".join(char for char in last if char.isprintable()).strip()
    cut = shown.encode()[:MAX_NAME_BYTES].decode(errors="ignore")
    return cut if cut.strip(".") else ""


def _encoded(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _decoded(text: str) -> str:
    padded = text + "=" * (-len(text) % 4)
    return base64.b64decode(padded, altchars=b"-_", validate=True).decode()


def _plain(text: str) -> str:
    """Return a text as at most 100 letters, digits and `._-`, not beginning with `._-`."""
    return _UNSAFE.sub("-", text).strip("._-")[:100]
