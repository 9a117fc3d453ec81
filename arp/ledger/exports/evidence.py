"""What a pack of evidence holds, made of a session's facts in one pass.

Theory of operation. Facts come in order, from the first of the session: the chain and the read
models need all of them. Those of the range go into the pack, whole; the sections, the timeline and
the correlation tell of those that carry the ids of the scope. What grows with the session (facts,
timeline) leaves as lines at once; the rest is documents at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec
from msgspec import Struct

from arp.ledger import chain
from arp.ledger.exports.correlation import Spine
from arp.ledger.exports.fact_line import fact_line
from arp.ledger.exports.gaps import Gaps
from arp.ledger.exports.manifest import Chain, Gap, Output, Scope
from arp.ledger.exports.scope import is_of
from arp.ledger.exports.sections import ROWS, Section
from arp.ledger.exports.timeline import Timeline
from arp.ledger.fact import Fact, decode
from arp.ledger.models.read_model import ReadModel
from arp.ledger.models.reading import whole
from arp.ledger.payload_fields import Export
from arp.protocol.json_value import Json, JsonObject

THREAD_PART = "thread.json"
SESSION_PART = "session.json"


class Lines(Struct, frozen=True):
    """What a page of facts adds to the two parts that grow."""

    facts: bytes
    timeline: bytes


class Also(Protocol):
    """Makes further parts of a pack, of the facts of its scope."""

    def take(self, fact: Fact) -> None:
        """Takes the next fact."""
        ...

    def documents(self) -> dict[str, bytes]:
        """Gives the parts by their names."""
        ...


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
        """Tells whether a fact lies behind the last one that is wanted."""
        return self._through is not None and fact.sequence > self._through

    def line(self, fact: Fact, body: bytes) -> bytes | None:
        """Gives the line of the next fact; `None` if it lies before what is wanted."""
        self._head = chain.link(self._head, body)
        if fact.sequence < self._first:
            self._previous = self._head
            return None
        self._last = fact.sequence
        return fact_line(self._head, body)

    def told(self) -> Chain:
        previous, head = self._previous.hex(), self._head.hex()
        return Chain(self._session_id, self._epoch, self._first, self._last, previous, head)


class Evidence:
    """A pack of evidence, fact by fact.

    Args:
        session_id: Whose facts they are.
        epoch: Of its log.
        scope: What the sections tell of.
        first: First fact that goes into the pack.
        through: Last fact that goes into it; `None` means all that come.
        also: Who makes further parts.
    """

    def __init__(
        self,
        session_id: str,
        epoch: str,
        scope: Scope | None = None,
        first: int = 1,
        through: int | None = None,
        also: Sequence[Also] = (),
    ) -> None:
        self.scope = scope or Scope()
        self.model = ReadModel()
        self.spine = Spine()
        self._links = _Links(session_id, epoch, first, through)
        self._timeline = Timeline()
        self._gaps = Gaps()
        self._sections = [Section(part, row) for part, row in ROWS.items()]
        self._by_type: dict[str, list[Section]] = {}
        self._outputs: dict[str, Output] = {}
        self._also = also

    def take(self, page: list[bytes]) -> Lines:
        """Takes the next facts, as the store holds them; gives the lines that they add.

        Raises:
            FactOutOfOrder: They are not the next facts of the session.
            msgspec.DecodeError: One is no fact.
        """
        lines: list[bytes] = []
        told: list[bytes] = []
        for body in page:
            fact = decode(body)
            if self._links.is_over(fact):
                break
            self.model.fold(fact)
            line = self._links.line(fact, body)
            if line is None:
                continue
            lines.append(line)
            if is_of(fact, self.scope):
                told.append(self._tell(fact))
        return Lines(b"".join(lines), b"".join(told))

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

    def _about(self, fact_type: str) -> list[Section]:
        """Gives the sections that a type of facts stands in."""
        known = self._by_type.get(fact_type)
        if known is None:
            known = [section for section in self._sections if section.is_about(fact_type)]
            self._by_type[fact_type] = known
        return known

    def _output(self, fact: Fact, ref: str) -> None:
        if fact.type == "output.expired":
            reason = "it has expired"
            self._outputs[ref] = Output(ref, "not_applicable", reason=reason)
        elif ref not in self._outputs:
            size = whole(fact.payload, "bytes")
            reason = "it is named here, and lies beside the ledger"
            self._outputs[ref] = Output(ref, "unsupported", bytes=size, reason=reason)

    def finish(self) -> Lines:
        """Gives the lines that were held back."""
        return Lines(b"", self._timeline.finish())

    @property
    def chain(self) -> Chain:
        """Gives which facts went into the pack, and the hashes at both ends."""
        return self._links.told()

    @property
    def outputs(self) -> list[Output]:
        """Gives the large outputs that the facts name, none of them taken in yet."""
        return list(self._outputs.values())

    def gaps(self) -> list[Gap]:
        """Gives the known gaps that apply."""
        unjoined = [gap for section in self._sections for gap in section.gaps()]
        return self._gaps.all() + unjoined

    def states(self) -> dict[str, Export]:
        """Gives of each section whether there is something in it."""
        return {section.part: section.state for section in self._sections}

    def sections(self) -> dict[str, JsonObject]:
        """Gives the sections in which there is something."""
        applicable = [one for one in self._sections if one.state != "not_applicable"]
        return {one.part: one.document() for one in applicable}

    def documents(self) -> dict[str, bytes]:
        """Gives the parts that are one document each; none for a section with nothing in it."""
        documents: dict[str, Json] = {**self.sections()}
        documents[THREAD_PART] = self.model.thread(self.scope.thread_id)
        documents[SESSION_PART] = self.model.snapshot()
        parts = {part: readable(value) for part, value in documents.items()}
        for maker in self._also:
            parts |= maker.documents()
        return parts


def readable(value: Json) -> bytes:
    """Gives a value as JSON that people can read: the same bytes for the same value."""
    return msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n"
