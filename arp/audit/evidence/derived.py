"""Everything of a pack that is made of its facts, in one pass.

An export writes it, and a check of the pack makes it again and compares.

So only what facts of the pack say may go into it: not what lies before the first of them, not the
time, not settings. The read models of a part of a session tell of that part alone.
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


class Also(Protocol):
    """Makes further parts of a pack, of the facts of its scope."""

    def take(self, fact: Fact) -> None:
        """Take the next fact."""
        ...

    def documents(self) -> dict[str, bytes]:
        """Return the parts by their names."""
        ...


class Derived:
    """What the facts of a pack make, fact by fact.

    Args:
        session_id: Whose facts they are.
        scope: What the sections tell of.
        bounds: Which facts are in the pack.
        also: Who makes further parts.
    """

    def __init__(
        self,
        session_id: str,
        scope: Scope,
        bounds: FactRange = ALL,
        also: Sequence[Also] = (),
    ) -> None:
        self.scope = scope
        self.model = ReadModel.behind(session_id, bounds.first - 1)
        self.spine = CorrelationIds()
        self.sha256_of: dict[str, str] = {}
        """Large outputs by name → the SHA-256 that the facts tell of them."""
        self._turns = bounds.turns
        self._timeline = Timeline()
        self._gaps = Gaps()
        self._sections = [PackSection(part, row) for part, row in ROWS.items()]
        self._by_type: dict[str, list[PackSection]] = {}
        self._outputs: dict[str, Output] = {}
        self._also = also

    def fold(self, fact: Fact) -> bytes:
        """Take the next fact of the pack; give the lines that it adds to the timeline.

        Raises:
            FactOutOfOrder: It is not the next fact of the session.
        """
        self.model.fold(fact)
        return self._tell(fact) if is_of(fact, self.scope, self._turns) else b""

    def _tell(self, fact: Fact) -> bytes:
        self.spine.take(fact)
        self._gaps.take(fact)
        for section in self._about(fact.type):
            section.take(fact)
        for maker in self._also:
            maker.take(fact)
        if fact.output_ref is not None and fact.evidence_id is None:  # else: what was exported
            self._output(fact, fact.output_ref)
        return self._timeline.take(fact)

    def _about(self, fact_type: str) -> list[PackSection]:
        """Return the sections that contain a type of facts."""
        known = self._by_type.get(fact_type)
        if known is None:
            known = [section for section in self._sections if section.is_about(fact_type)]
            self._by_type[fact_type] = known
        return known

    def _output(self, fact: Fact, ref: str) -> None:
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
        """Return the lines of the timeline that were held back."""
        return self._timeline.finish()

    @property
    def outputs(self) -> list[Output]:
        """The large outputs that the facts name, none of them taken in yet."""
        return list(self._outputs.values())

    def gaps(self) -> list[Gap]:
        """Return the known gaps that apply."""
        unjoined = [gap for section in self._sections for gap in section.gaps()]
        return self._gaps.all() + unjoined

    def states(self) -> dict[str, Export]:
        """Return of each section whether there is something in it."""
        return {section.part: section.state for section in self._sections}

    def sections(self) -> dict[str, JsonObject]:
        """Return the sections in which there is something."""
        applicable = [one for one in self._sections if one.state != "not_applicable"]
        return {one.part: one.document() for one in applicable}

    def documents(self) -> dict[str, bytes]:
        """Return the parts that are one document each; none for a section with nothing in it."""
        documents: dict[str, Json] = {**self.sections()}
        documents[THREAD_PART] = self.model.thread(self.scope.thread_id)
        documents[SESSION_PART] = self.model.snapshot()
        parts = {part: readable(value) for part, value in documents.items()}
        for maker in self._also:
            parts |= maker.documents()
        return parts


def readable(value: Json) -> bytes:
    """Return a value as JSON that people can read: the same bytes for the same value."""
    return msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n"


class Lines(Struct, frozen=True):
    """What a page of facts adds to the two parts that grow."""

    facts: bytes
    timeline: bytes


class _Links:
    """The chain over a session's facts, and which of them go into the pack."""

    def __init__(self, session_id: str, epoch: str, first: int, through: int | None) -> None:
        self._session_id = session_id
        self._epoch = epoch
        self._first = first
        self._through = through
        self._previous = self._head = chain.genesis(session_id, epoch)
        self._last = first - 1

    def is_over(self, fact: Fact) -> bool:
        """Return whether a fact lies behind the last one that is wanted."""
        return self._through is not None and fact.sequence > self._through

    def line(self, fact: Fact, body: bytes) -> bytes | None:
        """Return the line of the next fact; `None` if it lies before what is wanted."""
        self._head = chain.link(self._head, body)
        if fact.sequence < self._first:
            self._previous = self._head
            return None
        self._last = fact.sequence
        return fact_line(self._head, body)

    def chain(self) -> Chain:
        """Return which facts have lines, and the hashes at both ends."""
        previous, head = self._previous.hex(), self._head.hex()
        return Chain(self._session_id, self._epoch, self._first, self._last, previous, head)


class Evidence(Derived):
    """A pack of evidence, from pages of facts.

    Args:
        session_id: Whose facts they are.
        epoch: Of its log.
        scope: What the sections tell of.
        bounds: Which facts go into the pack, as `scope.Range` finds them.
        also: Who makes further parts.
    """

    def __init__(
        self,
        session_id: str,
        epoch: str,
        scope: Scope | None = None,
        bounds: FactRange = ALL,
        also: Sequence[Also] = (),
    ) -> None:
        super().__init__(session_id, scope or Scope(), bounds, also)
        self._links = _Links(session_id, epoch, bounds.first, bounds.through)

    def take(self, page: list[bytes]) -> Lines:
        """Take the next facts, as the store holds them; return the lines that they add.

        Raises:
            FactOutOfOrder: They are not the next facts of the session.
            msgspec.DecodeError: One is no fact.
        """
        lines: list[bytes] = []
        timeline: list[bytes] = []
        for body in page:
            fact = decode(body)
            if self._links.is_over(fact):
                break
            line = self._links.line(fact, body)
            if line is None:
                continue
            lines.append(line)
            timeline.append(self.fold(fact))
        return Lines(b"".join(lines), b"".join(timeline))

    def finish(self) -> Lines:
        """Return the lines that were held back."""
        return Lines(b"", self.rest())

    @property
    def chain(self) -> Chain:
        """Which facts went into the pack, and the hashes at both ends."""
        return self._links.chain()
