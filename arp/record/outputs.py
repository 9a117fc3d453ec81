"""Output that is too large for a fact: a preview stays in the ledger, the whole goes beside it."""

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
"""Bytes from which an output is looked through beside the loop."""


Cleaned: TypeAlias = tuple[str, Found]
"""A text without secrets, and what was found."""


Aside: TypeAlias = Callable[[Callable[[], Cleaned]], Awaitable[Cleaned]]
"""Run something slow without blocking the loop."""


class OutputStore(Struct, frozen=True):
    """Stores whole outputs, beside the ledger."""

    keep: Callable[[AsyncIterator[bytes]], Awaitable[str]]
    """Make bytes durable and return their SHA-256; raises `ArpError` if it cannot."""
    read: Callable[[str], Awaitable[bytes]]
    """Return bytes by their SHA-256; raises `ArpError` if there are none (any more)."""
    aside: Aside


class KeptOutput(Struct, frozen=True):
    """What the ledger has of an output."""

    preview: str
    bytes: int
    """Of the whole."""
    output_ref: str | None = None
    """Where the whole is; `None`: the preview is the whole, or the whole could not be stored."""


class Outputs:
    """Stores outputs, and records facts about them with the ids of a scope."""

    __slots__ = ("_scope", "store")

    def __init__(self, scope: FactScope, store: OutputStore) -> None:
        self.store = store
        self._scope = scope

    async def keep(self, data: bytes | str, mime: str | None = None) -> KeptOutput:
        """Keep an output whole but for the secrets in it, if it is more than a preview.

        What cannot be kept is cut to its preview, and the ledger says so: an agent need not fail
        because a disk is full.

        Args:
            data: All of it. Bytes with a NUL in the first 8,192 are no text, and stay as they are.
            mime: Its media type.

        Cancel: Safe; nothing is recorded, bytes that nobody refers to may stay.
        """
        content = data if isinstance(data, bytes) else well_formed(data).encode()
        if preview_of(content).encode() == content:
            return KeptOutput(
                preview_of(content), len(content)
            )  # secrets are taken out when its fact is recorded
        content, found = await self._cleaned(content)
        preview = preview_of(content)
        ref: str | None = None
        try:
            ref = await self.store.keep(_once(content))
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
        """Record how many secrets were removed from an output, by which rules."""
        if found:
            findings = [Finding(rule=rule, count=found[rule]) for rule in sorted(found)]
            self._scope("output.redacted", {"findings": findings})


def preview_of(data: bytes, margin: int = 0) -> str:
    """Return the beginning of an output; bytes that are no UTF-8 become U+FFFD.

    Args:
        data: All of it.
        margin: Characters more, to look through before it is cut.
    """
    most = PREVIEW_CHARACTERS + margin
    return data[: 4 * most].decode("utf-8", "replace")[:most]


async def _once(data: bytes) -> AsyncIterator[bytes]:
    yield data
