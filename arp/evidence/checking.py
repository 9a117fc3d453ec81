"""Whether a pack is what was exported; where it is not, which fact is the first bad one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from hashlib import sha256

from msgspec import Struct

from arp.evidence.pack import Pack, PartMissing
from arp.ledger import chain
from arp.ledger.exports.fact_line import NoFactLine, split_line
from arp.ledger.exports.manifest import FACTS, MANIFEST, Chain
from arp.ledger.exports.verify import Broken, FactCheck


class Report(Struct, frozen=True):
    """What a check of a pack found."""

    manifest_sha256: str
    """What the ledger has of the pack, in `evidence.changed`."""
    facts: int
    """That were found good, from the first on."""
    parts: int
    """That were looked at."""
    broken: list[Broken]
    """Empty: the pack is what was exported."""

    @property
    def first_bad(self) -> int | None:
        """Gives the sequence of the first fact that is not what it was."""
        places = [one.sequence for one in self.broken if one.sequence is not None]
        return min(places, default=None)


def check_pack(pack: Pack, advance: Callable[[int], object] = lambda _: None) -> Report:
    """Checks every fact and every part of a pack.

    Args:
        pack: An open one.
        advance: Is told how many bytes were looked at since the last call.
    """
    facts, wrong = _check_facts(pack)
    broken = [wrong] if wrong is not None else []
    for part in pack.manifest.parts:
        reason = _check_part(pack, part.name, part.bytes, part.sha256, advance)
        if reason is not None and (part.name != FACTS or wrong is None):
            broken.append(Broken(part.name, reason))
    listed = {part.name for part in pack.manifest.parts} | {MANIFEST}
    broken += [Broken(name, "is not in the manifest") for name in sorted(pack.names() - listed)]
    if FACTS not in listed and wrong is None:
        broken.append(Broken(FACTS, "is not in the manifest"))
    digest = sha256(pack.manifest_bytes).hexdigest()
    return Report(digest, facts, len(pack.manifest.parts), broken)


def _check_facts(pack: Pack) -> tuple[int, Broken | None]:
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
        pass  # every fact is missing then, which the end of the check tells
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
            if found > size:  # a small zip may hold more than anyone wants to read
                return f"has more than {size} bytes"
    except PartMissing as error:
        return error.message
    if found != size:
        return f"has {found} bytes that can be read, not {size}"
    return None if digest.hexdigest() == expected else "is not what was exported"


def compare_with_ledger(pack: Pack, epoch: str, facts: Iterable[bytes]) -> Broken | None:
    """Gives the first fact of a pack that is not the one of the ledger that it comes from.

    Args:
        pack: An open one.
        epoch: Of the session's log, as the ledger has it.
        facts: Of the session, from the first on.
    """
    told: Chain = pack.manifest.chain
    if told.epoch != epoch:
        return Broken(MANIFEST, f"it is of epoch {told.epoch!r:.80}, the ledger of {epoch!r:.80}")
    previous = chain.genesis(told.session_id, epoch)
    lines, sequence = pack.lines(FACTS), 0
    for sequence, (body, digest) in enumerate(_linked(previous, facts), 1):
        if sequence < told.first:
            continue
        if sequence > told.through:
            return None
        if not _is_same(next(lines, b""), digest, body):
            return Broken(FACTS, "it is not what the ledger has", sequence)
    if sequence < told.through:
        return Broken(FACTS, "the ledger does not have it", max(sequence + 1, told.first))
    return None


def _linked(previous: bytes, facts: Iterable[bytes]) -> Iterable[tuple[bytes, bytes]]:
    for body in facts:
        previous = chain.link(previous, body)
        yield body, previous


def _is_same(line: bytes, digest: bytes, body: bytes) -> bool:
    try:
        return split_line(line) == (digest, body)
    except NoFactLine:
        return False
