"""What may be exported, and what is answered."""

from __future__ import annotations

from msgspec import Struct

from arp.control.asked import Id, OfSession
from arp.ledger.exports.manifest import Manifest
from arp.ledger.payload_fields import Export, ExportKind, Verification
from arp.protocol.json_value import JsonObject


class OfScope(OfSession, frozen=True, kw_only=True):
    """Asks for an export of a session, or of what one of its ids stands for."""

    turn_id: Id | None = None
    task_id: Id | None = None
    evidence_id: Id | None = None
    """What the export is to be called. A call with an id that there is changes nothing. `None`
    makes one."""


class ExportEvidence(OfScope, frozen=True, kw_only=True):
    """Asks for a pack of evidence."""

    thread_id: Id | None = None
    outputs: bool = True
    """Large outputs are taken in; else they are only named, and a gap says so."""


class ExportReplay(OfScope, frozen=True, kw_only=True):
    """Asks for a case that an agent can run again."""


class ExportReview(OfScope, frozen=True, kw_only=True):
    """Asks for a review to fill in."""


class ExportedFile(Struct, frozen=True):
    """A file of an export, for those to whom its session belongs."""

    name: str
    bytes: int
    sha256: str
    path: str
    """Below the address of the server."""


class ExportState(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What became of an export; `evidence.changed` in the ledger says the same."""

    session_id: str
    evidence_id: str
    kind: ExportKind
    state: Export
    """`exported`; `not_applicable`: there is nothing of this kind; `unsupported`: not of such a
    session; `missing_correlation`: no fact has the ids that were given."""
    reason: str | None = None
    sha256: str | None = None
    """Of the manifest of a pack, or of the document."""
    through_sequence: int | None = None
    """The last fact that was looked at."""
    gaps: list[str] = []
    verification: Verification | None = None
    """What a check of the pack found right behind the export."""
    file: ExportedFile | None = None
    runtime_correlation: JsonObject = {}
    manifest: Manifest | None = None
    """Of a pack."""
    document: str | None = None
    """The replay case as JSON, or the review as Markdown."""
    sequence: int
    """The session's newest fact when this was said."""
    repeated: bool = False
    """It was exported before: the call changed nothing."""
