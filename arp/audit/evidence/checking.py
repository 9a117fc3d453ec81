"""Verify that a pack is unchanged since its export, and find the first bad fact if it is not.

Theory of operation. There are three checks. The last one runs only if the others find no defect:

1. The facts match the hash chain.
2. Each part has the size and the SHA-256 that the manifest lists.
3. The parts, and what the manifest says about them, can be derived from the facts.

The third check derives everything again. A person who forges a part can also correct its hash in
the manifest, but cannot change the facts that the part is derived from. The check needs a pack that
was derived by the same rules. The parts of a pack with another `derivation` number are *unproven*,
unless the hash of the manifest is known from another source, because it covers the whole pack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256

import msgspec
from msgspec import UNSET, Struct

from arp.audit.evidence.derived import TIMELINE, DerivedParts
from arp.audit.evidence.export import OUTPUTS, output_gaps
from arp.audit.evidence.fact_lines import FactCheck, NoFactLine, PackDefect, split_line
from arp.audit.evidence.manifest import (
    DERIVATION,
    FACTS,
    MANIFEST,
    Chain,
    Manifest,
    Output,
    Part,
)
from arp.audit.evidence.pack import Pack, PartMissing
from arp.audit.evidence.scope import FactRange, Range
from arp.audit.evidence.trials import TrialParts
from arp.audit.models.reading import text
from arp.ledger import chain
from arp.ledger.fact import decode

LEDGER = "ledger"
"""Name used instead of a part when the ledger itself was changed."""


class Report(Struct, frozen=True):
    """Result of a check of a pack."""

    manifest_sha256: str
    """SHA-256 of the manifest; the ledger records it in `evidence.changed`."""
    facts: int
    """Number of good facts before the first bad one."""
    parts: int
    """Number of parts that were checked."""
    broken: list[PackDefect]
    """Defects; empty if the pack is unchanged, as far as that could be checked."""
    unproven: str | None = None
    """Why the parts were not derived again and compared; `None` if they were compared, or if the
    pack is broken."""

    @property
    def first_bad(self) -> int | None:
        """Sequence number of the first bad fact."""
        sequences = [one.sequence for one in self.broken if one.sequence is not None]
        return min(sequences, default=None)


def check_pack(pack: Pack, advance: Callable[[int], object] = lambda _: None) -> Report:
    """Check every fact and every part of a pack, then derive the parts from the facts and compare.

    Args:
        pack: An open pack.
        advance: Progress callback; receives the number of bytes checked since the last call.
    """
    facts, wrong = _check_facts(pack)
    broken = [wrong] if wrong is not None else []
    for part in pack.manifest.parts:
        reason = _check_part(pack, part.name, part.bytes, part.sha256, advance)
        if reason is not None and (part.name != FACTS or wrong is None):
            broken.append(PackDefect(part.name, reason))
    listed = {part.name for part in pack.manifest.parts} | {MANIFEST}
    broken += [PackDefect(name, "is not in the manifest") for name in sorted(pack.names() - listed)]
    if FACTS not in listed and wrong is None:
        broken.append(PackDefect(FACTS, "is not in the manifest"))
    unproven = None
    if not broken:
        unproven = _other_rules(pack.manifest)
        broken += _check_derived(pack) if unproven is None else ()
    digest = sha256(pack.manifest_bytes).hexdigest()
    return Report(digest, facts, len(pack.manifest.parts), broken, unproven)


def _check_facts(pack: Pack) -> tuple[int, PackDefect | None]:
    check, good = FactCheck(pack.manifest.chain), 0
    wrong = check.begin()
    if wrong is not None:
        return 0, wrong
    try:
        for line in pack.lines(FACTS):
            wrong = check.line(line)
            if wrong is not None:
                return good, wrong
            good += 1
    except PartMissing:
        pass  # every fact is missing; `check.end` reports that
    return good, check.end()


def _check_part(
    pack: Pack, name: str, size: int, expected: str, advance: Callable[[int], object]
) -> str | None:
    digest, found = sha256(), 0
    try:
        for chunk in pack.chunks(name):
            digest.update(chunk)
            found += len(chunk)
            advance(len(chunk))
            if found > size:  # stop early: a small zip may expand to an enormous part
                return f"has more than {size} bytes"
    except PartMissing as error:
        return error.message
    if found != size:
        return f"has {found} bytes that can be read, not {size}"
    return None if digest.hexdigest() == expected else "is not what was exported"


# -- parts derived from the facts ------------------------------------------------------------------


def _other_rules(manifest: Manifest) -> str | None:
    """Return why this version cannot derive the parts again; `None` if it can."""
    if manifest.derivation == DERIVATION:
        return None
    if manifest.derivation:
        made = f"rules {manifest.derivation}, this arp has rules {DERIVATION}"
    else:
        made = "a version of arp that did not name its rules"
    return f"the parts were made by {made}, so they were not compared with the facts"


def _check_derived(pack: Pack) -> list[PackDefect]:
    """Derive the parts from the facts, and compare. The facts and hashes are already verified."""
    manifest, timeline = pack.manifest, sha256()
    current = manifest.chain.first
    try:
        derived = _new_derived(pack)
        for sequence, body in _bodies(pack):
            current = sequence
            timeline.update(derived.fold(decode(body)))
        timeline.update(derived.rest())
        made = {name: sha256(data).hexdigest() for name, data in derived.documents().items()}
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        reason = "nothing can be made of it, so no export has written this pack"
        return [PackDefect(FACTS, reason, current)]
    made[TIMELINE] = timeline.hexdigest()
    return [*_check_parts(manifest, made), *_check_statements(manifest, derived)]


def _new_derived(pack: Pack) -> DerivedParts:
    manifest = pack.manifest
    found = Range(manifest.scope)
    if manifest.scope.task_id is not None:
        found.add_page(_bodies(pack))
    also = [TrialParts(manifest.trial)] if manifest.trial is not UNSET else []
    bounds = FactRange(manifest.chain.first, turns=frozenset(found.turns))
    return DerivedParts(manifest.chain.session_id, manifest.scope, bounds, also)


def _bodies(pack: Pack) -> Iterator[tuple[int, bytes]]:
    lines = enumerate(pack.lines(FACTS), pack.manifest.chain.first)
    return ((sequence, split_line(line)[1]) for sequence, line in lines)


def _check_parts(manifest: Manifest, made: dict[str, str]) -> Iterator[PackDefect]:
    """Compare the hashes of the parts with those of the derived parts."""
    outputs = {one.part for one in manifest.outputs}
    for part in manifest.parts:
        expected = made.pop(part.name, None)
        if expected is None and part.name != FACTS and part.name not in outputs:
            yield PackDefect(part.name, "is nothing that the facts make")
        elif expected not in (None, part.sha256):
            yield PackDefect(part.name, "is not what the facts make of it")
    for name in made:
        yield PackDefect(name, "is missing; the facts make it")


def _check_statements(manifest: Manifest, derived: DerivedParts) -> Iterator[PackDefect]:
    """Compare the statements of the manifest with those derived from the facts."""
    parts = {part.name: part for part in manifest.parts}
    if [one.output_ref for one in manifest.outputs] != [one.output_ref for one in derived.outputs]:
        yield PackDefect(MANIFEST, "outputs: they are not those that the facts name")
        return
    for declared, recorded in zip(manifest.outputs, derived.outputs, strict=True):
        digest = derived.sha256_of.get(declared.output_ref)
        if not _is_output(declared, recorded, parts.get(declared.part or ""), digest):
            yield PackDefect(
                MANIFEST, f"output {declared.output_ref!r:.80} is not what the facts say of it"
            )
    for name, value, made in (
        ("runtimeCorrelation", manifest.runtime_correlation, derived.spine.document()),
        ("correlationStates", manifest.correlation_states, derived.spine.states()),
        ("sections", manifest.sections, derived.states()),
        ("gaps", manifest.gaps, derived.gaps() + output_gaps(manifest.outputs)),
    ):
        if value != made:
            yield PackDefect(MANIFEST, f"{name}: it is not what the facts make of it")


def _is_output(declared: Output, recorded: Output, part: Part | None, digest: str | None) -> bool:
    """Return whether an output matches the facts. The part of an output is named by its hash."""
    if (declared.state == "not_applicable") != (recorded.state == "not_applicable"):
        return False
    if declared.state != "exported":
        return declared.part is None
    return (
        part is not None
        and part.name == f"{OUTPUTS}/{part.sha256}"
        and part.bytes == declared.bytes
        and part.sha256 == (digest or part.sha256)
    )


# -- comparison with the ledger --------------------------------------------------------------------


class LedgerComparison(Struct, frozen=True):
    """Result of comparing a pack with the ledger that it was exported from."""

    broken: list[PackDefect]
    is_noted: bool
    """Whether the ledger has recorded the SHA-256 of this manifest."""


def compare_with_ledger(
    pack: Pack, epoch: str, facts: Iterable[bytes], kept: chain.Kept = ()
) -> LedgerComparison:
    """Compare a pack with the ledger of the session that it was exported from.

    Args:
        pack: An open pack.
        epoch: Epoch of the session's log according to the ledger.
        facts: All facts of the session, in order.
        kept: Chain hashes that the ledger keeps.
    """
    packed: Chain = pack.manifest.chain
    if packed.epoch != epoch:
        reason = f"it is of epoch {packed.epoch!r:.80}, the ledger of {epoch!r:.80}"
        return LedgerComparison([PackDefect(MANIFEST, reason)], is_noted=False)
    check = chain.KeptCheck(packed.session_id, epoch, kept)
    lines, wrong = pack.lines(FACTS), list[PackDefect]()
    noted: set[str] = set()
    try:
        for body in facts:
            check.compare((body,))
            is_packed = not wrong and packed.first <= check.sequence <= packed.through
            if is_packed and not _matches(next(lines, b""), check.head, body):
                wrong.append(PackDefect(FACTS, "it is not what the ledger has", check.sequence))
            noted |= _recorded_hashes(pack.manifest, body)
        if not wrong and check.sequence < packed.through:
            first = max(check.sequence + 1, packed.first)
            wrong.append(PackDefect(FACTS, "the ledger does not have it", first))
        check.finish()
    except chain.ChainBroken as error:
        wrong.append(PackDefect(LEDGER, error.message, error.first))
    digest = sha256(pack.manifest_bytes).hexdigest()
    if noted and digest not in noted:
        wrong.append(PackDefect(MANIFEST, f"the ledger noted the SHA-256 {min(noted)}"))
    return LedgerComparison(wrong, digest in noted)


def _recorded_hashes(manifest: Manifest, body: bytes) -> set[str]:
    """Return the SHA-256 that a fact records for this pack's manifest, or an empty set."""
    if b'"evidence.changed"' not in body:
        return set()
    try:
        fact = decode(body)
    except msgspec.DecodeError:
        return set()
    if (fact.type, fact.evidence_id) != ("evidence.changed", manifest.evidence_id):
        return set()
    digest = text(fact.payload, "sha256")
    return {digest} if digest is not None else set()


def _matches(line: bytes, digest: bytes, body: bytes) -> bool:
    try:
        return split_line(line) == (digest, body)
    except NoFactLine:
        return False
