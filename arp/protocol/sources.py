"""Sources of what was said: an experimental component, with a list to fall back to.

Text names a source by its place: `[2]` is the second. Renderers that know the type may make links
of such marks in the same turn; for all others the list stands below the text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from arp.protocol.components import Link
from arp.protocol.json_value import JsonObject

SOURCES = "x-arp-sources"
"""The type of the component."""

_MARKUP = re.compile(r"([\\`*_\[\]<>#|~])")


class Source(Struct, frozen=True, omit_defaults=True):
    """Something that was read."""

    title: str
    url: Link | None = None
    excerpt: str | None = None
    """The passage that counts."""


def as_markdown(sources: Sequence[JsonObject]) -> str:
    """Return a numbered list of sources as `Source` has them."""
    return "\n".join(f"{number}. {_line(source)}" for number, source in enumerate(sources, 1))


def _line(source: JsonObject) -> str:
    title, url, excerpt = _plain(source["title"]), source.get("url"), source.get("excerpt")
    named = f"[{title}](<{url}>)" if url else title
    return f"{named}: {_plain(excerpt)}" if excerpt else named


def _plain(text: str) -> str:
    """Return a text on one line in which nothing is markup."""
    return _MARKUP.sub(r"\\\1", " ".join(text.split()))
