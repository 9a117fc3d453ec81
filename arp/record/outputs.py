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
"""Does what takes long without keeping others waiting."""


class Shelf(Struct, frozen=True):
    """Where whole outputs lie, beside the ledger."""

    keep: Callable[[AsyncIterator[bytes]], Awaitable[str]]
    """Makes bytes durable and gives their SHA-256; raises `ArpError` if it cannot."""
    read: Callable[[str], Awaitable[bytes]]
    """Gives bytes by their SHA-256; raises `ArpError` if there are none (any more)."""
    aside: Aside


class Kept(Struct, frozen=True):
    """What the ledger has of an output."""

    preview: str
    bytes: int
    """Of the whole."""
    output_ref: str | None = None
    """Where the whole is; `None`: the preview is the whole, or the rest could not be kept."""


class Outputs:
    """The outputs of one session."""

    __slots__ = ("_scope", "_shelf")

    def __init__(self, scope: FactScope, shelf: Shelf) -> None:
        self._scope = scope
        self._shelf = shelf

    def within(self, scope: FactScope) -> Outputs:
        """Gives outputs whose facts carry the ids of another scope."""
        return Outputs(scope, self._shelf)

    async def keep(self, data: bytes | str, mime: str | None = None) -> Kept:
        """Keeps an output whole but for the secrets in it, if it is more than a preview.

        What cannot be kept is cut to its preview, and the ledger says so: an agent need not fail
        because a disk is full.

        Args:
            data: All of it. Bytes with a NUL in the first 8,192 are no text, and stay as they are.
            mime: Its media type.

        Cancel: Safe; nothing is noted, bytes that nobody refers to may stay.
        """
        whole = data if isinstance(data, bytes) else well_formed(data).encode()
        if preview_of(whole).encode() == whole:
            return Kept(preview_of(whole), len(whole))  # the fact that it stands in is cleaned
        whole, found = await self._cleaned(whole)
        preview = preview_of(whole)
        ref: str | None = None
        try:
            ref = await self._shelf.keep(_once(whole))
        except ArpError as error:
            self.truncated(len(whole), min(len(preview.encode()), len(whole)), error.message)
        else:
            payload = {"bytes": len(whole), "sha256": ref, "preview": preview, "mime": mime}
            self._scope.record("output.spilled", payload, output_ref=ref)
        if found:
            self.redacted([Finding(rule=rule, count=found[rule]) for rule in sorted(found)])
        return Kept(preview, len(whole), ref)

    async def _cleaned(self, data: bytes) -> tuple[bytes, Found]:
        if b"\0" in data[:8192]:
            return data, {}
        text = data.decode("utf-8", "surrogateescape")
        if len(data) < IN_A_THREAD:
            cleaned, found = self._scope.clean(text)
        else:
            cleaned, found = await self._shelf.aside(partial(self._scope.clean, text))
        return cleaned.encode("utf-8", "surrogateescape") if found else data, found

    async def read(self, output_ref: str) -> bytes:
        """Gives an output whole.

        Raises:
            ArpError: There is no such output (any more).
        """
        return await self._shelf.read(output_ref)

    def truncated(self, size: int, kept: int, reason: str) -> None:
        """Notes that only so many bytes of an output are kept, and why."""
        payload = {"bytes": size, "keptBytes": kept, "reason": reason}
        self._scope.record("output.truncated", payload)

    def redacted(self, findings: list[Finding]) -> None:
        """Notes how much was taken out of an output, by which rules; never what."""
        self._scope.record("output.redacted", {"findings": findings})

    def expired(self, output_ref: str, reason: str) -> None:
        """Notes that what was kept is gone."""
        self._scope.record("output.expired", {"reason": reason}, output_ref=output_ref)


def preview_of(data: bytes, margin: int = 0) -> str:
    """Gives the beginning of an output; bytes that are no UTF-8 become U+FFFD.

    Args:
        data: All of it.
        margin: Characters more, for who looks through it before it is cut.
    """
    most = PREVIEW_CHARACTERS + margin
    return data[: 4 * most].decode("utf-8", "replace")[:most]


async def _once(data: bytes) -> AsyncIterator[bytes]:
    yield data
