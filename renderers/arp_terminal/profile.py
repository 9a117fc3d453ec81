"""What this renderer says of itself in its `hello`."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path

from arp.protocol.capabilities import LEVELS, PING
from arp.protocol.messages import RendererCapabilities, Viewport

FEATURES = (
    "streaming",
    "input",
    "resume",
    "file-upload",
    "patch-append",
    "thinking",
    "tool-detail",
    "batch",
    PING,
)
"""What the terminal does (protocol.md 2.2)."""

_ZONEINFO = "zoneinfo/"


def capabilities(level: str) -> RendererCapabilities:
    """Return what a terminal of a conformance level shows by itself.

    Raises:
        ValueError: No such level; names those that there are.
    """
    if level not in LEVELS:
        raise ValueError(f"no level {level!r}; there are {', '.join(LEVELS)}")
    return RendererCapabilities(dict.fromkeys(LEVELS[level], 1), list(FEATURES))


def viewport() -> Viewport:
    """Return the size of the terminal in cells."""
    size = shutil.get_terminal_size()
    return Viewport(size.columns, size.lines)


def locale_tag(environ: Mapping[str, str]) -> str | None:
    """Return the language of the system as `de-CH`; `None` where it is not set."""
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if value := environ.get(name):
            tag = value.partition(".")[0].partition("@")[0]
            return None if tag in ("C", "POSIX") else tag.replace("_", "-")[:64]
    return None


def time_zone(environ: Mapping[str, str], localtime: Path = Path("/etc/localtime")) -> str | None:
    """Return the system's time zone, such as `Europe/Zurich`; `None` where it has no name."""
    named = environ.get("TZ", "").removeprefix(":")
    if named and not named.startswith("/"):
        return named[:64]
    try:
        target = os.path.realpath(localtime)
    except OSError:
        target = ""
    if _ZONEINFO in target:
        return target.partition(_ZONEINFO)[2][:64]
    return "UTC" if time.timezone == 0 and not time.daylight else None
