"""Build an export (evidence pack, replay case or review) from the facts of a session.

Theory of operation. This module does not read facts itself. The caller passes pages of facts, in
order from the first one, in any thread. So a server can export from its store and a command from a
file with the same code.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import ClassVar, Final

import msgspec
from msgspec import UNSET, Struct

from arp.audit.evidence.derived import TIMELINE, Evidence, Lines, PartMaker, readable
from arp.audit.evidence.manifest import (
    DERIVATION,
    FACTS,
    MOST_MANIFEST,
    MOST_PARTS,
    Chain,
    Gap,
    Manifest,
    Output,
    Scope,
    TrialOf,
    encode_manifest,
)
from arp.audit.evidence.pack_writer import UNFINISHED, PackUnwritable, PackWriter
from arp.audit.evidence.replay_case import CaseMaker, obstacle
from arp.audit.evidence.review import Words, review
from arp.audit.evidence.scope import ALL, Range, is_of
from arp.audit.evidence.sections import CorrelationIds
from arp.audit.evidence.trials import TrialParts
from arp.ledger.fact import decode
from arp.ledger.payload_fields import Export, ExportKind
from arp.protocol.errors import ArpError, LocalError
from arp.store.directory import sync_directory
from arp.store.store import Page

OUTPUTS: Final = "outputs"


class NothingToExport(LocalError):
    """The session has no facts for this export. Nothing is written."""

    state: ClassVar[Export] = "not_applicable"


class NoSuchScope(NothingToExport):
    """No fact has the given ids. Nothing is written."""

    state = "missing_correlation"


class NotExportable(NothingToExport):
    """This kind of export cannot represent the facts. Nothing is written."""

    state = "unsupported"


class Order(Struct, frozen=True, kw_only=True):
    """Request for an export."""

    session_id: str
    epoch: str
    evidence_id: str
    created_at: str
    """Time of the export, in RFC 3339."""
    kind: ExportKind = "evidence"
    scope: Scope = Scope()
    has_outputs: bool = True
    """Whether large outputs are included in the pack; otherwise they are only named."""


class ExportedPack(Struct, frozen=True):
    """A pack that was written."""

    path: Path
    sha256: str
    """SHA-256 of its manifest."""
    manifest: Manifest


class EvidenceExport:
    """An export of a pack in progress; leaving the context removes an unfinished pack.

    Args:
        order: Requested export.
        target: Path of the pack; a zip if it ends in `.zip`, else a directory.
        found: Range of facts to export; `None` means all facts.
        trial: Benchmark trial that the pack describes.

    Raises:
        PackUnwritable: The target exists, or the disk refuses the write.
    """

    def __init__(
        self,
        order: Order,
        target: Path,
        found: Range | None = None,
        trial: TrialOf | None = None,
    ) -> None:
        self._order = order
        self._trial = trial
        self._output_parts: set[str] = set()
        """Names of the written parts that hold outputs."""
        self._evidence = begun(order, found, [TrialParts(trial)] if trial is not None else [])
        self._writer = PackWriter(target)

    def __enter__(self) -> EvidenceExport:
        return self

    def __exit__(self, *exception: object) -> None:
        self._writer.__exit__(*exception)

    def add_page(self, page: Sequence[tuple[int, bytes]]) -> None:
        """Process the next page of facts.

        Raises:
            LocalError: These are not the next facts, or the disk refuses the write.
        """
        self._write(self._evidence.add_page([body for _, body in page]))

    def _write(self, lines: Lines) -> None:
        self._writer.add(FACTS, lines.facts)
        self._writer.add(TIMELINE, lines.timeline)

    @property
    def spine(self) -> CorrelationIds:
        """Correlation ids of the exported facts."""
        return self._evidence.spine

    @property
    def outputs(self) -> list[Output]:
        """Large outputs that the facts processed so far name."""
        return self._evidence.outputs

    def finish(self, read: Callable[[str], bytes] | None = None) -> ExportedPack:
        """Write the remaining parts and rename the pack to its target.

        Args:
            read: Returns the bytes of a large output by its `outputRef`, or raises `ArpError`;
                `None` if outputs cannot be read.

        Raises:
            NothingToExport: There are no facts. Nothing is written.
            NotExportable: The manifest would be too large. Nothing is written.
            PackUnwritable: The disk refuses the write. Nothing is written.
        """
        chain = self._evidence.chain
        if chain.through < chain.first:
            raise NothingToExport(f"session {chain.session_id} has no facts of this")
        self._write(self._evidence.finish())
        for part, data in self._evidence.documents().items():
            self._writer.add(part, data)
        is_included = read is not None and self._order.has_outputs
        outputs = [
            self._include(output, read) if is_included and read is not None else output
            for output in self._evidence.outputs
        ]
        manifest = self._manifest(chain, outputs)
        if len(encode_manifest(manifest)) > MOST_MANIFEST:
            raise NotExportable("so much cannot be listed in one pack; export turn by turn")
        return ExportedPack(self._writer.target, self._writer.finish(manifest), manifest)

    def _include(self, output: Output, read: Callable[[str], bytes]) -> Output:
        if output.state == "not_applicable":
            return output
        if self._writer.count >= MOST_PARTS - 1:  # the manifest needs an entry too
            return msgspec.structs.replace(output, reason=f"a pack has at most {MOST_PARTS} parts")
        try:
            data = read(output.output_ref)
        except ArpError as error:
            return msgspec.structs.replace(
                output, state="missing_correlation", reason=error.message
            )
        digest = sha256(data).hexdigest()
        if self._evidence.sha256_of.get(output.output_ref, digest) != digest:
            reason = "what lies beside the ledger is not what the facts tell of"
            return msgspec.structs.replace(output, state="missing_correlation", reason=reason)
        part = f"{OUTPUTS}/{digest}"
        # Two outputs may have the same bytes; adding them twice would double the part.
        if part not in self._output_parts:
            self._output_parts.add(part)
            self._writer.add(part, data)
        return Output(output.output_ref, "exported", bytes=len(data), part=part)

    def _manifest(self, chain: Chain, outputs: list[Output]) -> Manifest:
        order, evidence = self._order, self._evidence
        return Manifest(
            derivation=DERIVATION,
            kind=order.kind,
            evidence_id=order.evidence_id,
            created_at=order.created_at,
            scope=order.scope,
            trial=self._trial or UNSET,
            runtime_correlation=evidence.spine.document(),
            correlation_states=evidence.spine.states(),
            chain=chain,
            sections=evidence.states(),
            outputs=outputs,
            gaps=evidence.gaps() + output_gaps(outputs),
            parts=self._writer.close_parts(),
        )


def output_gaps(outputs: Iterable[Output]) -> list[Gap]:
    """Return one gap for each reason why outputs are not in the pack, with their number."""
    counts = Counter(
        (one.state, one.reason or "it is not in the pack")
        for one in outputs
        if one.state != "exported"
    )
    return [Gap(OUTPUTS, state, reason, count) for (state, reason), count in counts.items()]


def begun(order: Order, found: Range | None, also: Sequence[PartMaker] = ()) -> Evidence:
    """Return the empty evidence of a new export.

    Args:
        order: Requested export.
        found: Range of facts to export; `None` means all facts.
        also: Makers of additional parts.
    """
    bounds = found.bounds if found is not None else ALL
    return Evidence(order.session_id, order.epoch, order.scope, bounds, also)


def checked(found: Range, scope: Scope) -> Range:
    """Return the given range if it contains facts.

    Raises:
        NoSuchScope: It contains none.
    """
    if not found.first:
        named = ", ".join(f"{name} {value}" for name, value in msgspec.to_builtins(scope).items())
        raise NoSuchScope(f"the session has no fact of {named:.200}; see its ids: arp events")
    return found


class CaseExport:
    """Export of a replay case from pages of facts, in order from the first one.

    Args:
        scope: Scope that selects the turns of the case.
        found: Range of facts to export; `None` means all facts.
    """

    def __init__(self, scope: Scope, found: Range | None = None) -> None:
        self.spine = CorrelationIds()
        self.gaps: list[str] = []
        """Known gaps of the export."""
        self._scope = scope
        self._turns = found.turns if found is not None else frozenset[str]()
        self._maker = CaseMaker()

    def add_page(self, page: Sequence[tuple[int, bytes]]) -> None:
        """Process the next page of facts."""
        for _, body in page:
            fact = decode(body)
            is_in_scope = is_of(fact, self._scope, self._turns)
            if is_in_scope:
                self.spine.add(fact)
            # `session.created` names the workflow, which a case of any scope needs.
            if is_in_scope or fact.type == "session.created":
                self._maker.add(fact)

    def finish(self) -> bytes:
        """Return the case as JSON.

        Raises:
            NothingToExport: The case has no turn.
            NotExportable: A turn cannot be replayed from its facts alone.
        """
        case = self._maker.case()
        if not case.turns:
            raise NothingToExport(f"session {case.session_id} has no turn to be run again")
        reason = obstacle(case)
        if reason is not None:
            raise NotExportable(reason)
        return readable(case)


class ReviewExport:
    """Export of a review from pages of facts, in order from the first one.

    Args:
        order: Requested export.
        found: Range of facts to export; `None` means all facts.
    """

    def __init__(self, order: Order, found: Range | None = None) -> None:
        self._order = order
        self._words = Words()
        self._evidence = begun(order, found, [self._words])

    @property
    def spine(self) -> CorrelationIds:
        """Correlation ids of the reviewed facts."""
        return self._evidence.spine

    @property
    def gaps(self) -> list[str]:
        """Known gaps of the export."""
        return [gap.sentence for gap in self._evidence.gaps()]

    def add_page(self, page: Sequence[tuple[int, bytes]]) -> None:
        """Process the next page of facts."""
        self._evidence.add_page([body for _, body in page])

    def finish(self) -> bytes:
        """Return the review as Markdown.

        Raises:
            NothingToExport: There are no facts.
        """
        self._evidence.finish()
        chain, order = self._evidence.chain, self._order
        if chain.through < chain.first:
            raise NothingToExport(f"session {order.session_id} has no facts of this")
        words = self._words
        return review(self._evidence, order.evidence_id, order.created_at, words).encode()


class MadeExport(Struct, frozen=True):
    """A written export: a pack or a document."""

    path: Path
    sha256: str
    """SHA-256 of the manifest of a pack, or of the document."""
    correlation: CorrelationIds
    gaps: list[str]
    manifest: Manifest | None = None
    """Manifest of a pack; `None` for a document."""
    document: bytes = b""
    """Content of a document; empty for a pack."""


class ExportRun:
    """Makes an export of any kind, in one or two passes over all facts of the session.

    Args:
        order: Requested export.
        target: Path to write to.
        read: Returns the bytes of a large output, as in `EvidenceExport.finish`.
        trial: Benchmark trial that a pack describes.
    """

    def __init__(
        self,
        order: Order,
        target: Path,
        read: Callable[[str], bytes] | None = None,
        trial: TrialOf | None = None,
    ) -> None:
        self.made: MadeExport | None = None
        """Result; set after the last pass."""
        self._order = order
        self._target = target
        self._read = read
        self._trial = trial

    def passes(self) -> Generator[Callable[[Page], object], None, None]:
        """Yield one callback per pass.

        The caller passes every page to the callback, in order from the first one, before it
        resumes the generator.

        Raises:
            NothingToExport: There are no facts for this export. Nothing is written.
            PackUnwritable: The target exists, or the disk refuses the write. Nothing is written.
        """
        order, target, found = self._order, self._target, None
        if not order.scope.is_all:
            found = Range(order.scope)
            yield found.add_page
            checked(found, order.scope)
        if order.kind in ("replay", "review"):
            is_case = order.kind == "replay"
            export = CaseExport(order.scope, found) if is_case else ReviewExport(order, found)
            yield export.add_page
            data = export.finish()
            write_new(target, data)
            digest = sha256(data).hexdigest()
            self.made = MadeExport(target, digest, export.spine, export.gaps, document=data)
            return
        with EvidenceExport(order, target, found, self._trial) as pack:
            yield pack.add_page
            written = pack.finish(self._read)
        gaps = [gap.sentence for gap in written.manifest.gaps]
        self.made = MadeExport(target, written.sha256, pack.spine, gaps, written.manifest)


def write_new(target: Path, data: bytes) -> None:
    """Write a new file atomically: the target either is complete and durable or does not exist.

    Raises:
        PackUnwritable: The target exists, or the disk refuses the write.
    """
    if target.exists() or target.is_symlink():
        raise PackUnwritable(f"{target} is there already; name another, or remove it")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=UNFINISHED, dir=target.parent)
        temporary = Path(name)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(target)
            sync_directory(target.parent)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise PackUnwritable(f"{target} cannot be written: {error.strerror or error}") from error
