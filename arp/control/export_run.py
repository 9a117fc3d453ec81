"""How an export is made: aside, checked, kept beside the ledger, recorded in it.

Theory of operation. Facts are read in pages and taken in a thread, so that others are served
meanwhile. What is made lies in a directory of its own until it is whole; then it becomes a blob,
and a fact names it. A server that is killed in between leaves no fact of it and nothing that could
be fetched.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, Final

import msgspec
from msgspec import Struct

from arp.control.desk import Desk
from arp.control.export_requests import ExportedFile, ExportState, OfScope
from arp.control.pages import fed
from arp.evidence.export import NothingToExport, Order, checked
from arp.evidence.pack_writer import PackUnwritable
from arp.hub.live import LiveSession
from arp.ledger.chain import ChainBroken, Kept, KeptCheck
from arp.ledger.exports.correlation import Spine
from arp.ledger.exports.manifest import Manifest, Scope
from arp.ledger.exports.scope import Range
from arp.ledger.models import evidence
from arp.ledger.payload_fields import Export, ExportKind, Verification
from arp.protocol.blob_path import blob_path
from arp.protocol.errors import InternalError, InvalidMessage
from arp.protocol.json_value import Json, JsonObject

logger = logging.getLogger(__name__)

MOST_BYTES: Final = 4 << 30
"""Of a pack."""

_CHUNK: Final = 1 << 20

_SPINE: Final = {
    "threadId": "thread_id",
    "turnId": "turn_id",
    "taskId": "task_id",
    "runId": "run_id",
    "traceId": "trace_id",
}
"""Ids that `evidence.changed` carries, where the export is about one of them."""


class Job(Struct, frozen=True):
    """An export that is to be made."""

    order: Order
    through: int
    """The last fact that is looked at."""
    aside: Path
    """A directory for what is made."""
    kept: Kept = ()
    """The hashes that the ledger keeps of the session's chain."""


class Exported(Struct, frozen=True, kw_only=True):
    """What became of an export, as the fact of it holds it."""

    kind: ExportKind
    state: Export
    """`not_applicable`: nothing to export; `unsupported`: not here; `missing_correlation`: what it
    would be about is not known."""
    reason: str | None = None
    sha256: str | None = None
    """Of the pack."""
    through_sequence: int
    """The last fact that was looked at."""
    gaps: Sequence[str] = ()
    """Known gaps that apply."""
    verification: Verification | None = None


class Made(Struct, frozen=True):
    """An export that was made, aside."""

    path: Path
    spine: Spine
    sha256: str
    gaps: list[str] = []
    verification: Verification | None = None
    manifest: Manifest | None = None
    document: str | None = None


Make = Callable[[Job], Awaitable[Made]]


class ExportRun:
    """Makes exports of sessions that belong to one principal.

    Args:
        desk: Who asks.
        ids: Correlations that the fact of it carries besides, by field name.
    """

    def __init__(self, desk: Desk, ids: Mapping[str, Json] | None = None) -> None:
        self._desk = desk
        self._ids = dict(ids or {})

    async def run(
        self, asked: OfScope, kind: ExportKind, make: Make, scope: Scope | None = None
    ) -> ExportState:
        """Makes an export, or says why there is none; either is a fact when this returns.

        Args:
            asked: Whose facts, and under which id.
            kind: Of the export.
            make: Makes it; raises `NothingToExport` for one that cannot be.
            scope: What it is about; `None`: as `asked` says.

        Raises:
            SessionNotFound: There is no such session.
            ArpError: The ledger cannot be read, the disk refuses. There is no fact of it then.
        """
        live = await self._desk.to_change(asked.session_id)
        async with self._desk.plane.lock(f"{live.id}\0exports"):
            await live.written()
            before = await self._before(live, asked.evidence_id)
            if before is not None:
                return before
            order = Order(
                session_id=live.id,
                epoch=live.session.head.epoch,
                evidence_id=asked.evidence_id or f"{kind}-{secrets.token_hex(8)}",
                created_at=self._desk.now(),
                kind=kind,
                scope=scope or Scope(turn_id=asked.turn_id, task_id=asked.task_id),
            )
            kept = await self._desk.hub.store.heads(live.id)
            through = live.session.log.stored
            with self._desk.hub.blobs.aside() as aside:
                try:
                    async with self._desk.plane.exporting:
                        made = await make(Job(order, through, aside, kept))
                except (NothingToExport, ChainBroken) as error:
                    state = Exported(
                        kind=kind,
                        state="unsupported" if isinstance(error, ChainBroken) else error.state,
                        reason=error.message,
                        through_sequence=through,
                    )
                    return await self._recorded(live, order, state)
                except PackUnwritable as error:
                    logger.error("export of session %s: %s", live.id, error)
                    raise InternalError("the export cannot be written; the log has why") from None
                file = await self._kept(live, made.path)
            return await self._told(live, order, made, file, through)

    async def _before(self, live: LiveSession, evidence_id: str | None) -> ExportState | None:
        """Gives what became of an export of that id."""
        model = await self._desk.model(live.id)
        known = model.state.evidence.exports.get(evidence_id)
        return _again(live, known) if known is not None else None

    async def _kept(self, live: LiveSession, path: Path) -> ExportedFile:
        """Makes what lies aside a file of the session."""
        with await asyncio.to_thread(path.open, "rb") as file:
            files = self._desk.hub.blobs.of(live.id)
            blob = await files.put(_chunks(file), max_bytes=MOST_BYTES)
        address = blob_path(live.id, blob.sha256, path.name)
        return ExportedFile(path.name, blob.size, blob.sha256, address)

    async def _told(
        self, live: LiveSession, order: Order, made: Made, file: ExportedFile, through: int
    ) -> ExportState:
        exported = Exported(
            kind=order.kind,
            state="exported",
            sha256=made.sha256,
            through_sequence=through,
            gaps=made.gaps,
            verification=made.verification,
        )
        state = await self._recorded(live, order, exported, made.spine, file)
        return msgspec.structs.replace(
            state,
            manifest=made.manifest,
            document=made.document,
            runtime_correlation=made.spine.document(),
        )

    async def _recorded(
        self,
        live: LiveSession,
        order: Order,
        exported: Exported,
        spine: Spine | None = None,
        file: ExportedFile | None = None,
    ) -> ExportState:
        """Records what became of an export; gives it when the fact is durable."""
        ids = {**joined(order.scope, spine), **self._ids}
        if file is not None:
            live.session.seen.remember_files([file.sha256])
            ids |= {"output_ref": file.sha256, "refs": msgspec.to_builtins(file)}
        recorder = self._desk.hub.recorder(live).within(**ids)
        payload = {
            "kind": exported.kind,
            "state": exported.state,
            "reason": exported.reason,
            "sha256": exported.sha256,
            "throughSequence": exported.through_sequence,
            "gaps": list(exported.gaps) or None,
            "verification": exported.verification,
        }
        recorder("evidence.changed", payload, evidence_id=order.evidence_id)
        sequence = live.session.sequence
        await live.written()
        return ExportState(
            session_id=live.id,
            evidence_id=order.evidence_id,
            kind=order.kind,
            state=exported.state,
            reason=exported.reason,
            sha256=exported.sha256,
            through_sequence=exported.through_sequence,
            gaps=list(exported.gaps),
            verification=exported.verification,
            file=file,
            sequence=sequence,
        )

    async def found(self, job: Job) -> Range | None:
        """Gives which facts an export is about; `None` means all.

        Raises:
            NoSuchScope: No fact carries its ids.
        """
        scope = job.order.scope
        if scope.is_all:
            return None
        found = Range(scope)
        await self.feed(job, found.take)
        return checked(found, scope)

    async def feed(self, job: Job, take: Callable[[list[tuple[int, bytes]]], object]) -> None:
        """Hands every fact up to the last one of a job to somebody, page by page, in a thread.

        Raises:
            ChainBroken: One is not what it was when the ledger kept its hash.
        """
        check = KeptCheck(job.order.session_id, job.order.epoch, job.kept)

        def compared(page: list[tuple[int, bytes]]) -> None:
            check.take(fact for _, fact in page)
            take(page)

        await fed(self._desk.hub.store, job.order.session_id, job.through, compared)
        check.finish()


def joined(scope: Scope, spine: Spine | None) -> dict[str, Json]:
    """Gives the ids that everything exported has in common; of a whole session its thread alone."""
    if spine is None:
        return {}
    document = spine.document()
    names = ["threadId"] if scope.is_all else list(_SPINE)
    return {_SPINE[name]: document[name] for name in names if name in document}


def _again(live: LiveSession, known: evidence.Export) -> ExportState:
    """Gives what the ledger has of an export."""
    told: JsonObject = {
        "sessionId": live.id,
        "evidenceId": known.evidence_id,
        "kind": known.kind,
        "state": known.state,
        "reason": known.reason,
        "sha256": known.sha256,
        "throughSequence": known.through_sequence,
        "gaps": known.gaps,
        "verification": known.verification or None,
        "file": known.refs,
        "sequence": live.session.sequence,
        "repeated": True,
    }
    try:
        return msgspec.convert(told, ExportState)
    except msgspec.ValidationError:
        raise InvalidMessage(
            f"evidenceId {known.evidence_id:.80}: something else has that id; take another",
            detail="evidenceId",
        ) from None


async def _chunks(file: BinaryIO) -> AsyncGenerator[bytes, None]:
    while chunk := await asyncio.to_thread(file.read, _CHUNK):
        yield chunk
