"""The manifest of a pack: its subject, its parts and their hashes."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import UNSET, Struct, UnsetType, field

from arp.ledger.fact import SCHEMA_VERSION
from arp.ledger.payload_fields import Count, Export, ExportKind, Name, Ordinal, Sha256
from arp.protocol.errors import LocalError
from arp.protocol.json_value import JsonObject

FORMAT: Final = "arp-pack-1"
"""Format of the packs that this version writes. A reader refuses any other format, because the
parts may have another meaning there."""

DERIVATION: Final = 1
"""Version of the rules that derive the parts of a pack from its facts.

Increment it with every change of the bytes that `derived.DerivedParts` makes from the same facts. A
check derives a pack again only if the pack has this number.
"""

MANIFEST: Final = "manifest.json"
FACTS: Final = "facts.jsonl"


MOST_PARTS: Final = 10_000
"""Maximum number of parts in a pack, because a reader loads the whole list. Further outputs are
only named."""

MOST_MANIFEST: Final = 16 << 20
"""Maximum size of `manifest.json` in bytes, because a reader loads it whole."""


class NoManifest(LocalError):
    """The bytes are not a manifest of this format."""


class Part(Struct, frozen=True):
    """A file in the pack."""

    name: Name
    """Path inside the pack, separated by `/`."""
    bytes: Count
    sha256: Sha256


class Scope(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The exported part of a session: the facts that have all given ids; without ids, all facts."""

    thread_id: str | None = None
    turn_id: str | None = None
    task_id: str | None = None

    @property
    def is_all(self) -> bool:
        """Whether the scope is the whole session."""
        return self.thread_id is None and self.turn_id is None and self.task_id is None


class Chain(Struct, frozen=True, rename="camel"):
    """Range of the facts in the pack, with the chain hashes at both ends."""

    session_id: Name
    epoch: str
    first: Ordinal
    """Sequence number of the first fact."""
    through: Count
    """Sequence number of the last fact; `first - 1` if there are no facts."""
    previous: Sha256
    """Chain hash before the first fact; before fact 1 it is the genesis hash of session and epoch.
    """
    head: Sha256
    """Chain hash of the last fact."""


class Gap(Struct, frozen=True, omit_defaults=True):
    """Something that a reader may expect but that is missing or incomplete, with the reason."""

    part: Name
    """Part of the pack that has the gap."""
    state: Export
    reason: Name
    count: Count = 0
    """Number of facts or outputs concerned."""
    sequences: tuple[int, ...] = ()
    """Sequence numbers of the first facts concerned."""

    @property
    def sentence(self) -> str:
        """The gap in the form that `evidence.changed` records."""
        return f"{self.part}: {self.reason}"


class Output(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A large output, which is stored outside the ledger."""

    output_ref: Name
    state: Export
    """`exported`: the output is a part of the pack; `unsupported`: it is only named;
    `not_applicable`: it has expired; `missing_correlation`: it could not be read, or its bytes do
    not match the facts."""
    bytes: Count | None = None
    part: str | None = None
    reason: str | None = None


class TrialOf(Struct, frozen=True, rename="camel"):
    """The benchmark trial that a pack describes."""

    trial_id: Name
    agent: Name
    """Name of the agent in `trajectory.json`."""


class Manifest(Struct, frozen=True, kw_only=True, rename="camel"):
    """Content of `manifest.json`."""

    format: str = FORMAT
    derivation: Count = 0
    """`DERIVATION` of the version that wrote the pack; 0 if that version did not record it."""
    schema_version: str = SCHEMA_VERSION
    kind: ExportKind
    evidence_id: Name
    created_at: str
    """Time of the export, in RFC 3339."""
    scope: Scope
    trial: TrialOf | UnsetType = UNSET
    runtime_correlation: JsonObject
    """Correlation ids that join the facts in the pack; see `sections.CorrelationIds`."""
    correlation_states: dict[str, Export]
    """State of each of the seven correlation ids, by name."""
    chain: Chain
    sections: dict[str, Export]
    """State of each section, by part name."""
    outputs: list[Output] = field(default_factory=lambda: list[Output]())
    gaps: list[Gap] = field(default_factory=lambda: list[Gap]())
    """Known gaps that apply to this pack."""
    parts: list[Part]
    """Every file in the pack except the manifest."""


_decoder = msgspec.json.Decoder(Manifest)


def encode_manifest(manifest: Manifest) -> bytes:
    """Return the bytes of `manifest.json`, indented. Equal manifests give equal bytes."""
    return msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n"


def decode_manifest(data: bytes) -> Manifest:
    """Return the manifest from the bytes of `manifest.json`.

    Raises:
        NoManifest: It is not JSON, a field is missing or invalid, or the format is another one.
    """
    try:
        manifest = _decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise NoManifest(f"{MANIFEST}: {error}") from None
    if manifest.format != FORMAT:
        raise NoManifest(f"{MANIFEST}: a pack of format {manifest.format!r:.40}, not {FORMAT}")
    return manifest
