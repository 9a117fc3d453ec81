"""Exports of a session: evidence packs, replay cases and reviews.

Theory of operation. Facts are read in pages and processed in a thread, so the server keeps
answering other clients. An export is written to a temporary directory. When it is complete, it
becomes a blob of the session, and a fact names the blob. If the server is killed before that, there
is no fact about the export and no file that a client could fetch.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from asyncio import to_thread
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from arp.audit.evidence.checking import check_pack
from arp.audit.evidence.export import ExportRun, MadeExport, NothingToExport, Order
from arp.audit.evidence.manifest import Manifest, Scope, TrialOf
from arp.audit.evidence.pack import Pack
from arp.audit.evidence.pack_writer import PackUnwritable
from arp.audit.evidence.replay_case import CASE
from arp.audit.evidence.review import REVIEW
from arp.audit.evidence.sections import CorrelationIds
from arp.audit.evidence.trials import refs_of_pack
from arp.control.context import ControlContext
from arp.control.facts import feed
from arp.control.method import Id, SessionParams, method
from arp.ledger.chain import ChainBroken, KeptCheck
from arp.ledger.fact import ATTRIBUTES
from arp.ledger.payload_fields import Export, ExportKind, Verification
from arp.live.live_session import LiveSession
from arp.protocol.blob_path import blob_path
from arp.protocol.errors import InternalError, InvalidMessage
from arp.protocol.json_value import Json, JsonObject
from arp.store.store import Page

logger = logging.getLogger(__name__)

MOST_BYTES: Final = 4 << 30
"""Largest exported file, in bytes."""

MOST_DOCUMENT: Final = 1 << 20
"""Largest document in the answer itself, in bytes; a larger document must be fetched."""

_CHUNK: Final = 1 << 20

_DOCUMENTS: Final[dict[ExportKind, str]] = {"replay": CASE, "review": REVIEW}
"""File names of the exports that are documents. The other exports are packs."""

_FACT_IDS: Final = ("threadId", "turnId", "taskId", "runId", "traceId")
"""Ids that `evidence.changed` carries if all exported facts share them."""


# -- requests and answers --------------------------------------------------------------------------


class ScopeParams(SessionParams, frozen=True, kw_only=True):
    """Parameters of an export of a session, or of one turn or task."""

    turn_id: Id | None = None
    task_id: Id | None = None
    evidence_id: Id | None = None
    """Id of the export. A call with an existing id changes nothing. `None` makes an id."""


class ExportEvidence(ScopeParams, frozen=True, kw_only=True):
    """Parameters of `evidence/export`."""

    thread_id: Id | None = None
    outputs: bool = True
    """Whether the pack contains large outputs. If not, it names them, and its `gaps` say so."""


class ExportReplay(ScopeParams, frozen=True, kw_only=True):
    """Parameters of `replay/export`."""


class ExportReview(ScopeParams, frozen=True, kw_only=True):
    """Parameters of `review/export`."""


class ExportedFile(Struct, frozen=True):
    """A file of an export; the owner of the session can fetch it."""

    name: str
    bytes: int
    sha256: str
    path: str
    """Path of the file, relative to the address of the server."""


class ExportState(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Result of an export; the fact `evidence.changed` has the same fields."""

    session_id: str
    evidence_id: str
    kind: ExportKind
    state: Export
    """`exported`; `not_applicable`: the session has no facts for this export; `unsupported`: such
    a session cannot be exported; `missing_correlation`: no fact has the requested ids.

    These are states, not errors: the ledger also records that there was nothing to export."""
    reason: str | None = None
    sha256: str | None = None
    """SHA-256 of the manifest of a pack, or of the document."""
    through_sequence: int | None = None
    """Sequence number of the last fact that was read for the export."""
    gaps: list[str] = []
    verification: Verification | None = None
    """Result of checking the pack right after the export."""
    file: ExportedFile | None = None
    runtime_correlation: JsonObject = {}
    manifest: Manifest | None = None
    """Manifest of a pack."""
    document: str | None = None
    """The replay case as JSON, or the review as Markdown."""
    sequence: int
    """Sequence number of the session's newest fact at the time of the answer."""
    repeated: bool = False
    """Whether the export existed before; then the call changed nothing."""


class Exports:
    """Exports of the sessions of one principal. When a method returns, its facts are durable.

    Source: evidence.md 2.

    Args:
        context: Context of the call.
        ids: Additional correlation ids of the fact about an export, by field name.
    """

    def __init__(self, context: ControlContext, ids: Mapping[str, Json] | None = None) -> None:
        self._context = context
        self._ids = dict(ids or {})

    @method("evidence/export")
    async def evidence(self, request: ExportEvidence) -> ExportState:
        """Export an evidence pack as a zip file, and check it."""
        scope = Scope(request.thread_id, request.turn_id, request.task_id)
        return await self.export(request, "evidence", scope, outputs=request.outputs)

    @method("replay/export")
    async def replay(self, request: ExportReplay) -> ExportState:
        """Export a replay case: the inputs, and the results that a new run must reproduce."""
        return await self.export(request, "replay")

    @method("review/export")
    async def review(self, request: ExportReview) -> ExportState:
        """Export a review in Markdown, with the parts that the facts can fill."""
        return await self.export(request, "review")

    async def export(
        self,
        request: ScopeParams,
        kind: ExportKind,
        scope: Scope | None = None,
        *,
        outputs: bool = True,
        trial: TrialOf | None = None,
    ) -> ExportState:
        """Export facts, or find out why that is not possible; record the result.

        Args:
            request: Session and id of the export.
            kind: Kind of the export.
            scope: Part of the session to export; `None` means the turn or task in `request`.
            outputs: Whether a pack contains large outputs.
            trial: Benchmark trial of the pack.

        Raises:
            InternalError: The disk refuses the write. Nothing is recorded.
        """
        live = await self._context.to_change(request.session_id)
        async with self._context.plane.lock(f"{live.id}\0exports"):
            await live.written()
            existing = await self._existing(live, request.evidence_id)
            if existing is not None:
                return existing
            order = Order(
                session_id=live.id,
                epoch=live.session.epoch,
                evidence_id=request.evidence_id or f"{kind}-{secrets.token_hex(8)}",
                created_at=self._context.now(),
                kind=kind,
                scope=scope or Scope(turn_id=request.turn_id, task_id=request.task_id),
                has_outputs=outputs,
            )
            return await self._export(live, order, trial)

    async def _export(self, live: LiveSession, order: Order, trial: TrialOf | None) -> ExportState:
        state = ExportState(
            session_id=live.id,
            evidence_id=order.evidence_id,
            kind=order.kind,
            state="exported",
            through_sequence=live.stored,
            sequence=0,
        )
        with self._context.hub.blobs.temporary_directory() as directory:
            target = directory / _DOCUMENTS.get(order.kind, f"{order.kind}.zip")
            run = ExportRun(order, target, self._output_reader(live.id), trial)
            try:
                async with self._context.plane.exporting:
                    made = await self._run(run, order, live.stored)
                    if made.manifest is not None:
                        state = replace(state, verification=await to_thread(_verified, target))
            except (NothingToExport, ChainBroken) as error:
                # The answer and the ledger must show why there is no evidence; see `state`.
                why = "unsupported" if isinstance(error, ChainBroken) else error.state
                return await self._record(live, replace(state, state=why, reason=error.message), {})
            except PackUnwritable as error:
                logger.error("export of session %s: %s", live.id, error)
                raise InternalError(
                    "the export cannot be written; the server log shows the reason"
                ) from None
            file = await self._store_file(live, target)
        is_short = made.manifest is None and len(made.document) <= MOST_DOCUMENT
        exported = replace(
            state,
            sha256=made.sha256,
            gaps=made.gaps,
            file=file,
            runtime_correlation=made.correlation.document(),
            manifest=made.manifest,
            document=made.document.decode() if is_short else None,
        )
        return await self._record(live, exported, fact_ids(order.scope, made.correlation))

    async def _run(self, run: ExportRun, order: Order, through: int) -> MadeExport:
        """Pass all facts up to `through` to an export, in a thread, once per pass.

        Raises:
            ChainBroken: A fact does not match the hash that the ledger keeps of it.
        """
        store = self._context.hub.store
        heads, passes = await store.heads(order.session_id), run.passes()
        try:
            while (read_page := await to_thread(next, passes, None)) is not None:
                check = KeptCheck(order.session_id, order.epoch, heads)
                checked = partial(_check_and_read, check, read_page)
                await feed(store, order.session_id, through, checked)
                check.finish()
        finally:
            with suppress(ValueError):  # after a cancellation the thread still runs the generator
                passes.close()
        assert run.made is not None
        return run.made

    def _output_reader(self, session_id: str) -> Callable[[str], bytes]:
        """Return a function that reads a large output; threads may call it."""
        loop, files = asyncio.get_running_loop(), self._context.hub.blobs.of(session_id)
        return lambda ref: asyncio.run_coroutine_threadsafe(files.read(ref), loop).result()

    async def _existing(self, live: LiveSession, evidence_id: str | None) -> ExportState | None:
        """Return the recorded export with that id; `None` if there is none."""
        model = await self._context.model(live.id)
        known = model.state.records.read("exports").get(evidence_id)
        return _repeated(live, known) if known is not None else None

    async def _store_file(self, live: LiveSession, path: Path) -> ExportedFile:
        """Copy a file from the temporary directory to the blobs of the session."""
        with await to_thread(path.open, "rb") as file:
            files = self._context.hub.blobs.of(live.id)
            blob = await files.put(_chunks(file), max_bytes=MOST_BYTES)
        address = blob_path(live.id, blob.sha256, path.name)
        return ExportedFile(path.name, blob.size, blob.sha256, address)

    async def _record(
        self, live: LiveSession, state: ExportState, ids: Mapping[str, Json]
    ) -> ExportState:
        """Record the result of an export, wait until the fact is durable, and return the result."""
        ids = {**ids, **self._ids}
        if state.file is not None:
            refs = msgspec.to_builtins(state.file)
            if state.kind == "benchmark":
                refs |= refs_of_pack(state.file.path)
            ids |= {"output_ref": state.file.sha256, "refs": refs}
        payload = {
            "kind": state.kind,
            "state": state.state,
            "reason": state.reason,
            "sha256": state.sha256,
            "throughSequence": state.through_sequence,
            "gaps": state.gaps or None,
            "verification": state.verification,
        }
        record = self._context.hub.recorder(live).within(**ids)
        record("evidence.changed", payload, evidence_id=state.evidence_id)
        sequence = live.session.sequence
        await live.written()
        return replace(state, sequence=sequence)


def _check_and_read(check: KeptCheck, read_page: Callable[[Page], object], page: Page) -> None:
    # A page is checked first, so that no changed fact gets into an export.
    check.compare(fact for _, fact in page)
    read_page(page)


def fact_ids(scope: Scope, correlation: CorrelationIds) -> dict[str, Json]:
    """Return the ids that all exported facts share; for a whole session only its thread id."""
    document = correlation.document()
    names = _FACT_IDS[:1] if scope.is_all else _FACT_IDS
    return {ATTRIBUTES[name]: document[name] for name in names if name in document}


def _repeated(live: LiveSession, known: JsonObject) -> ExportState:
    """Return the state of a recorded export.

    Raises:
        InvalidMessage: The record with that id is not an export.
    """
    names = "evidenceId", "kind", "state", "reason", "sha256", "throughSequence", "verification"
    stored: JsonObject = {
        **{name: known[name] for name in names if name in known},
        "sessionId": live.id,
        "gaps": known.get("gaps", []),
        "file": known.get("refs"),
        "sequence": live.session.sequence,
        "repeated": True,
    }
    try:
        return msgspec.convert(stored, ExportState)
    except msgspec.ValidationError:
        raise InvalidMessage(
            f"evidenceId {known['evidenceId']:.80}: something else has that id; use another id",
            detail="evidenceId",
        ) from None


async def _chunks(file: BinaryIO) -> AsyncGenerator[bytes, None]:
    while chunk := await to_thread(file.read, _CHUNK):
        yield chunk


def _verified(path: Path) -> Verification:
    with Pack(path) as pack:
        report = check_pack(pack)
    return Verification("failed" if report.broken else "passed", report.first_bad)
