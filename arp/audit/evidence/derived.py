"""Derive the parts of a pack from its facts, in one pass.

An export writes these parts; a check of the pack derives them again and compares. Therefore they
may depend only on the facts of the pack: not on earlier facts, the current time or settings. If a
pack covers only part of a session, its read models describe only that part.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

import msgspec
from msgspec import Struct

from arp.audit.evidence.fact_lines import fact_line
from arp.audit.evidence.manifest import Chain, Gap, Output, Scope
from arp.audit.evidence.scope import ALL, FactRange, is_of
from arp.audit.evidence.sections import ROWS, CorrelationIds, Gaps, PackSection, Timeline
from arp.audit.models.read_model import ReadModel
from arp.audit.models.reading import text, whole
from arp.ledger import chain
from arp.ledger.fact import Fact, decode
from arp.ledger.payload_fields import Export
from arp.protocol.json_value import Json, JsonObject

TIMELINE: Final = "timeline.jsonl"
THREAD_PART: Final = "thread.json"
SESSION_PART: Final = "session.json"


class PartMaker(Protocol):
    """Makes additional parts of a pack from the facts of its scope."""

    def add(self, fact: Fact) -> None:
        """Process the next fact."""
        ...

    def documents(self) -> dict[str, bytes]:
        """Return the parts by name."""
        ...


class DerivedParts:
    """The derived parts of a pack, built fact by fact.

    Args:
        session_id: Session that the facts belong to.
        scope: Part of the session that the sections describe.
        bounds: Range of facts in the pack.
        also: Makers of additional parts.
    """

    def __init__(
        self,
        session_id: str,
        scope: Scope,
        bounds: FactRange = ALL,
        also: Sequence[PartMaker] = (),
    ) -> None:
        self.scope = scope
        self.model = ReadModel.behind(session_id, bounds.first - 1)
        self.spine = CorrelationIds()
        self.sha256_of: dict[str, str] = {}
        """SHA-256 that the facts record for each large output, by `outputRef`."""
        self._turns = bounds.turns
        self._timeline = Timeline()
        self._gaps = Gaps()
        self._sections = [PackSection(part, row) for part, row in ROWS.items()]
        self._by_type: dict[str, list[PackSection]] = {}
        self._outputs: dict[str, Output] = {}
        self._also = also

    def fold(self, fact: Fact) -> bytes:
        """Process the next fact of the pack and return the timeline lines that it completes.

        Raises:
            FactOutOfOrder: It is not the next fact of the session.
        """
        self.model.fold(fact)
        return self._add_to_parts(fact) if is_of(fact, self.scope, self._turns) else b""

    def _add_to_parts(self, fact: Fact) -> bytes:
        self.spine.add(fact)
        self._gaps.add(fact)
        for section in self._sections_of(fact.type):
            section.add(fact)
        for maker in self._also:
            maker.add(fact)
        # A fact with an evidence id names an export, which is not an output of the session.
        if fact.output_ref is not None and fact.evidence_id is None:
            self._add_output(fact, fact.output_ref)
        return self._timeline.add(fact)

    def _sections_of(self, fact_type: str) -> list[PackSection]:
        """Return the sections that contain facts of a type."""
        known = self._by_type.get(fact_type)
        if known is None:
            known = [section for section in self._sections if section.is_about(fact_type)]
            self._by_type[fact_type] = known
        return known

    def _add_output(self, fact: Fact, ref: str) -> None:
        digest = text(fact.payload, "sha256")
        if digest is not None and fact.type == "output.spilled":
            self.sha256_of.setdefault(ref, digest)
        if fact.type == "output.expired":
            reason = "it has expired"
            self._outputs[ref] = Output(ref, "not_applicable", reason=reason)
        elif ref not in self._outputs:
            size = whole(fact.payload, "bytes")
            reason = "it is named here, and lies beside the ledger"
            self._outputs[ref] = Output(ref, "unsupported", bytes=size, reason=reason)

    def rest(self) -> bytes:
        """Return the timeline lines that are still held back."""
        return self._timeline.finish()

    @property
    def outputs(self) -> list[Output]:
        """Large outputs that the facts name; none of them is a part of the pack yet."""
        return list(self._outputs.values())

    def gaps(self) -> list[Gap]:
        """Return the known gaps that apply."""
        unjoined = [gap for section in self._sections for gap in section.gaps()]
        return self._gaps.all() + unjoined

    def states(self) -> dict[str, Export]:
        """Return the state of each section, by part name."""
        return {section.part: section.state for section in self._sections}

    def sections(self) -> dict[str, JsonObject]:
        """Return the sections that are not empty, by part name."""
        applicable = [one for one in self._sections if one.state != "not_applicable"]
        return {one.part: one.document() for one in applicable}

    def documents(self) -> dict[str, bytes]:
        """Return the parts that are single documents, by name. An empty section has no part."""
        documents: dict[str, Json] = {**self.sections()}
        documents[THREAD_PART] = self.model.thread(self.scope.thread_id)
        documents[SESSION_PART] = self.model.snapshot()
        parts = {part: readable(value) for part, value in documents.items()}
        for maker in self._also:
            parts |= maker.documents()
        return parts


def readable(value: Json) -> bytes:
    """Return a value as indented JSON. Equal values give equal bytes."""
    return msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n"


class Lines(Struct, frozen=True):
    """Lines that a page of facts adds to `facts.jsonl` and `timeline.jsonl`."""

    facts: bytes
    timeline: bytes


class _PackChain:
    """Computes the hash chain of a session and selects the facts that go into the pack."""

    def __init__(self, session_id: str, epoch: str, first: int, through: int | None) -> None:
        self._session_id = session_id
        self._epoch = epoch
        self._first = first
        self._through = through
        self._previous = self._head = chain.genesis(session_id, epoch)
        self._last = first - 1

    def is_over(self, fact: Fact) -> bool:
        """Return whether a fact comes after the end of the range."""
        return self._through is not None and fact.sequence > self._through

    def line(self, fact: Fact, body: bytes) -> bytes | None:
        """Return the line of the next fact, or `None` if it comes before the range."""
        self._head = chain.link(self._head, body)
        if fact.sequence < self._first:
            self._previous = self._head
            return None
        self._last = fact.sequence
        return fact_line(self._head, body)

    def chain(self) -> Chain:
        """Return the range of the written facts and the chain hashes at both ends."""
        previous, head = self._previous.hex(), self._head.hex()
        return Chain(self._session_id, self._epoch, self._first, self._last, previous, head)


class Evidence(DerivedParts):
    """The content of an evidence pack, built from pages of facts.

    Args:
        session_id: Session that the facts belong to.
        epoch: Epoch of the session's log.
        scope: Part of the session that the sections describe.
        bounds: Range of facts that go into the pack, found by `scope.Range`.
        also: Makers of additional parts.
    """

    def __init__(
        self,
        session_id: str,
        epoch: str,
        scope: Scope | None = None,
        bounds: FactRange = ALL,
        also: Sequence[PartMaker] = (),
    ) -> None:
        super().__init__(session_id, scope or Scope(), bounds, also)
        self._chain = _PackChain(session_id, epoch, bounds.first, bounds.through)

    def add_page(self, page: list[bytes]) -> Lines:
        """Process the next page of facts, as stored, and return the lines that it adds.

        Raises:
            FactOutOfOrder: These are not the next facts of the session.
            msgspec.DecodeError: One of them cannot be decoded.
        """
        lines: list[bytes] = []
        timeline: list[bytes] = []
        for body in page:
            fact = decode(body)
            if self._chain.is_over(fact):
                break
            line = self._chain.line(fact, body)
            if line is None:
                continue
            lines.append(line)
            timeline.append(self.fold(fact))
        return Lines(b"".join(lines), b"".join(timeline))

    def finish(self) -> Lines:
        """Return the lines that are still held back."""
        return Lines(b"", self.rest())

    @property
    def chain(self) -> Chain:
        """Range of the facts in the pack, with the chain hashes at both ends."""
        return self._chain.chain()
