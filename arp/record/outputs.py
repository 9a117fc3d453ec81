"""Output that is too large for a fact: a preview stays in the ledger, the whole goes beside it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

from msgspec import Struct

from arp.ledger.payload_fields import Finding
from arp.protocol.errors import ArpError
from arp.record.recorder import Recorder
from arp.record.wording import PREVIEW_CHARACTERS, well_formed


class Shelf(Struct, frozen=True):
    """Where whole outputs lie, beside the ledger."""

    keep: Callable[[AsyncIterator[bytes]], Awaitable[str]]
    """Makes bytes durable and gives their SHA-256; raises `ArpError` if it cannot."""
    read: Callable[[str], Awaitable[bytes]]
    """Gives bytes by their SHA-256; raises `ArpError` if there are none (any more)."""


class Kept(Struct, frozen=True):
    """What the ledger has of an output."""

    preview: str
    bytes: int
    """Of the whole."""
    output_ref: str | None = None
    """Where the whole is; `None`: the preview is the whole, or the rest could not be kept."""


class Outputs:
    """The outputs of one session."""

    __slots__ = ("_recorder", "_shelf")

    def __init__(self, recorder: Recorder, shelf: Shelf) -> None:
        self._recorder = recorder
        self._shelf = shelf

    def within(self, recorder: Recorder) -> Outputs:
        """Gives outputs whose facts carry the ids of another recorder."""
        return Outputs(recorder, self._shelf)

    async def keep(self, data: bytes | str, mime: str | None = None) -> Kept:
        """Keeps an output whole, if it is more than a preview.

        What cannot be kept is cut to its preview, and the ledger says so: an agent need not fail
        because a disk is full.

        Args:
            data: All of it.
            mime: Its media type.

        Cancel: Safe; nothing is noted, bytes that nobody refers to may stay.
        """
        whole = data if isinstance(data, bytes) else well_formed(data).encode()
        preview = preview_of(whole)
        if preview.encode() == whole:
            return Kept(preview, len(whole))
        try:
            ref = await self._shelf.keep(_once(whole))
        except ArpError as error:
            self.truncated(len(whole), min(len(preview.encode()), len(whole)), error.message)
            return Kept(preview, len(whole))
        payload = {"bytes": len(whole), "sha256": ref, "preview": preview, "mime": mime}
        self._recorder.record("output.spilled", payload, output_ref=ref)
        return Kept(preview, len(whole), ref)

    async def read(self, output_ref: str) -> bytes:
        """Gives an output whole.

        Raises:
            ArpError: There is no such output (any more).
        """
        return await self._shelf.read(output_ref)

    def truncated(self, size: int, kept: int, reason: str) -> None:
        """Notes that only so many bytes of an output are kept, and why."""
        payload = {"bytes": size, "keptBytes": kept, "reason": reason}
        self._recorder.record("output.truncated", payload)

    def redacted(self, findings: list[Finding]) -> None:
        """Notes how much was taken out of an output, by which rules; never what."""
        self._recorder.record("output.redacted", {"findings": findings})

    def expired(self, output_ref: str, reason: str) -> None:
        """Notes that what was kept is gone."""
        self._recorder.record("output.expired", {"reason": reason}, output_ref=output_ref)


def preview_of(data: bytes) -> str:
    """Gives the beginning of an output; bytes that are no UTF-8 become U+FFFD."""
    return data[: 4 * PREVIEW_CHARACTERS].decode("utf-8", "replace")[:PREVIEW_CHARACTERS]


async def _once(data: bytes) -> AsyncIterator[bytes]:
    yield data
