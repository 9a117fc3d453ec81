"""Evidence, replay cases and reviews of sessions: made of the facts, kept beside them, recorded."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from pathlib import Path

from arp.control.desk import Desk
from arp.control.export_requests import ExportEvidence, ExportReplay, ExportReview, ExportState
from arp.control.export_run import ExportRun, Job, Made
from arp.evidence.checking import check_pack
from arp.evidence.documents import CaseExport, ReviewExport, write_new
from arp.evidence.export import EvidenceExport
from arp.evidence.pack import Pack
from arp.ledger.exports.manifest import Scope, TrialOf
from arp.ledger.exports.replay_case import CASE
from arp.ledger.exports.review import REVIEW
from arp.ledger.payload_fields import Verification

MOST_DOCUMENT = 1 << 20
"""Bytes of a document that stands in the answer itself; a larger one is fetched."""


class Exports:
    """Exports of sessions that belong to one principal. Answers are given when facts are durable.

    Source: ledger.md 5, export_evidence, export_replay, export_review.
    """

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._run = ExportRun(desk)

    async def evidence(self, asked: ExportEvidence) -> ExportState:
        """Makes a pack of evidence, a zip, and checks it.

        Raises:
            SessionNotFound, ArpError: As `ExportRun.run`.
        """
        scope = Scope(asked.thread_id, asked.turn_id, asked.task_id)
        make = partial(self.pack, outputs=asked.outputs)
        return await self._run.run(asked, "evidence", make, scope)

    async def replay(self, asked: ExportReplay) -> ExportState:
        """Makes a case: what was put in, and what must come of it again.

        Raises:
            SessionNotFound, ArpError: As `ExportRun.run`.
        """
        return await self._run.run(asked, "replay", self._case)

    async def review(self, asked: ExportReview) -> ExportState:
        """Makes a review in Markdown, filled from the facts.

        Raises:
            SessionNotFound, ArpError: As `ExportRun.run`.
        """
        return await self._run.run(asked, "review", self._review)

    async def pack(self, job: Job, *, outputs: bool = True, trial: TrialOf | None = None) -> Made:
        """Makes a pack aside.

        Args:
            job: What is wanted.
            outputs: Large outputs are taken in.
            trial: The benchmark trial that it is about.

        Raises:
            NothingToExport: There is nothing of this.
        """
        found = await self._run.found(job)
        target = job.aside / f"{job.order.kind}.zip"
        with EvidenceExport(job.order, target, found, trial) as making:
            await self._run.feed(job, making.take)
            read = self._reader(job.order.session_id) if outputs else None
            made = await asyncio.to_thread(making.finish, read)
        return Made(
            target,
            making.spine,
            made.sha256,
            [gap.told for gap in made.manifest.gaps],
            await asyncio.to_thread(_verified, target),
            made.manifest,
        )

    def _reader(self, session_id: str) -> Callable[[str], bytes]:
        """Gives what reads large outputs out of a thread."""
        loop, files = asyncio.get_running_loop(), self._desk.hub.blobs.of(session_id)
        return lambda ref: asyncio.run_coroutine_threadsafe(files.read(ref), loop).result()

    async def _case(self, job: Job) -> Made:
        making = CaseExport(job.order.scope, await self._run.found(job))
        await self._run.feed(job, making.take)
        return await _document(job.aside / CASE, making)

    async def _review(self, job: Job) -> Made:
        making = ReviewExport(job.order, await self._run.found(job))
        await self._run.feed(job, making.take)
        return await _document(job.aside / REVIEW, making)


def _verified(path: Path) -> Verification:
    with Pack(path) as pack:
        report = check_pack(pack)
    return Verification("failed" if report.broken else "passed", report.first_bad)


async def _document(target: Path, making: CaseExport | ReviewExport) -> Made:
    data = await asyncio.to_thread(making.finish)
    await asyncio.to_thread(write_new, target, data)
    document = data.decode() if len(data) <= MOST_DOCUMENT else None
    digest = sha256(data).hexdigest()
    return Made(target, making.spine, digest, making.gaps, document=document)
