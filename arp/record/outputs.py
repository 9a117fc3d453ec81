"""Outputs that are too large for a fact: the ledger keeps a preview, a store keeps the whole."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Final, TypeAlias

from msgspec import Struct

from arp.ledger.payload_fields import Finding
from arp.protocol.errors import ArpError
from arp.record.scope import FactScope
from arp.record.wording import PREVIEW_CHARACTERS, well_formed
from arp.redact.redactor import Found

IN_A_THREAD: Final = 65_536
"""Size in bytes from which an output is searched for secrets in a thread."""


Cleaned: TypeAlias = tuple[str, Found]
"""A text without secrets, and the secrets that were found."""


Aside: TypeAlias = Callable[[Callable[[], Cleaned]], Awaitable[Cleaned]]
"""Function that runs slow work without blocking the loop."""


class OutputStore(Struct, frozen=True):
    """Storage for whole outputs, beside the ledger."""

    keep: Callable[[AsyncIterator[bytes]], Awaitable[str]]
    """Make bytes durable and return their SHA-256; raises `ArpError` if that fails."""
    read: Callable[[str], Awaitable[bytes]]
    """Return bytes by their SHA-256; raises `ArpError` if they are not stored, or no longer."""
    aside: Aside
    """Run slow work in a thread and return its result."""


class KeptOutput(Struct, frozen=True):
    """The parts of an output that a fact contains: its preview, its size, and a reference to it."""

    preview: str
    bytes: int
    """Size of the whole output."""
    output_ref: str | None = None
    """SHA-256 of the stored output; `None` if the preview is complete or the output could not be
    stored."""


class Outputs:
    """Stores outputs, and records facts about them with the ids of a scope."""

    __slots__ = ("_scope", "store")

    def __init__(self, scope: FactScope, store: OutputStore) -> None:
        self.store = store
        self._scope = scope

    async def keep(self, data: bytes | str, mime: str | None = None) -> KeptOutput:
        """Store an output without its secrets, if it is larger than a preview.

        If it cannot be stored, only the preview is kept and a fact says so: an agent must not fail
        because a disk is full.

        Args:
            data: The whole output. Bytes with a NUL in the first 8,192 are not text, and are not
                changed.
            mime: Media type of the output.

        Cancel: Safe; nothing is recorded, but unreferenced bytes may remain in the store.
        """
        content = data if isinstance(data, bytes) else well_formed(data).encode()
        if preview_of(content).encode() == content:
            # The session removes secrets when the fact with this preview is recorded.
            return KeptOutput(preview_of(content), len(content))
        content, found = await self._cleaned(content)
        preview = preview_of(content)
        ref: str | None = None
        try:
            ref = await self.store.keep(_single_chunk(content))
        except ArpError as error:
            kept_bytes = min(len(preview.encode()), len(content))
            cut = {"bytes": len(content), "keptBytes": kept_bytes, "reason": error.message}
            self._scope("output.truncated", cut)
        else:
            payload = {"bytes": len(content), "sha256": ref, "preview": preview, "mime": mime}
            self._scope("output.spilled", payload, output_ref=ref)
        self.redacted(found)
        return KeptOutput(preview, len(content), ref)

    async def _cleaned(self, data: bytes) -> tuple[bytes, Found]:
        if b"\0" in data[:8192]:
            return data, {}
        text = data.decode("utf-8", "surrogateescape")
        if len(data) < IN_A_THREAD:
            cleaned, found = self._scope.clean(text)
        else:
            cleaned, found = await self.store.aside(partial(self._scope.clean, text))
        return cleaned.encode("utf-8", "surrogateescape") if found else data, found

    def redacted(self, found: Found) -> None:
        """Record how many secrets were removed from an output, by rule."""
        if found:
            findings = [Finding(rule=rule, count=found[rule]) for rule in sorted(found)]
            self._scope("output.redacted", {"findings": findings})


def preview_of(data: bytes, margin: int = 0) -> str:
    """Return the beginning of an output; bytes that are not UTF-8 become U+FFFD.

    Args:
        data: The whole output.
        margin: Number of further characters to return, so that they can be searched before the cut.
    """
    most = PREVIEW_CHARACTERS + margin
    return data[: 4 * most].decode("utf-8", "replace")[:most]


async def _single_chunk(data: bytes) -> AsyncIterator[bytes]:
    yield data
