"""The manifest of a pack: what it is about, what lies in it, and by which hashes that is known."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import UNSET, Struct, UnsetType, field

from arp.ledger.fact import SCHEMA_VERSION
from arp.ledger.payload_fields import Count, Export, ExportKind, Name, Ordinal, Sha256
from arp.protocol.errors import LocalError
from arp.protocol.json_value import JsonObject

FORMAT: Final = "arp-pack-1"
"""Of packs written here. A reader refuses another one: its parts may mean something else."""

DERIVATION: Final = 1
"""Of the rules by which the parts of a pack are made of its facts.

To be raised with every change of the bytes that `derived.Derived` makes of the same facts: only a
pack of this number can be made again here and compared.
"""

MANIFEST: Final = "manifest.json"
FACTS: Final = "facts.jsonl"


MOST_PARTS: Final = 10_000
"""Of a pack: who opens one reads the list of them whole. Outputs beyond are named, not taken in."""

MOST_MANIFEST: Final = 16 << 20
"""Bytes of `manifest.json`, for the same reason."""


class NoManifest(LocalError):
    """Bytes that are no manifest of this format."""


class Part(Struct, frozen=True):
    """A file of the pack."""

    name: Name
    """Path inside the pack, with `/`."""
    bytes: Count
    sha256: Sha256


class Scope(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What of a session is exported: all of it, or what belongs to one of its ids."""

    thread_id: str | None = None
    turn_id: str | None = None
    task_id: str | None = None

    @property
    def is_all(self) -> bool:
        """Whether the whole session is meant."""
        return self.thread_id is None and self.turn_id is None and self.task_id is None


class Chain(Struct, frozen=True, rename="camel"):
    """Which facts are in the pack, and the hashes at both ends of them."""

    session_id: Name
    epoch: str
    first: Ordinal
    """Sequence of the first fact."""
    through: Count
    """Sequence of the last one; one less than `first` if there is none."""
    previous: Sha256
    """Hash before the first one; of fact 1 it is what the session and its epoch make."""
    head: Sha256
    """Hash of the last one."""


class Gap(Struct, frozen=True, omit_defaults=True):
    """Something that is not there as one could expect, and why."""

    part: Name
    """Of the pack."""
    state: Export
    reason: Name
    count: Count = 0
    """How many facts it is about."""
    sequences: tuple[int, ...] = ()
    """The first of them."""

    @property
    def sentence(self) -> str:
        """The gap as `evidence.changed` has it."""
        return f"{self.part}: {self.reason}"


class Output(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A large output that lies beside the ledger."""

    output_ref: Name
    state: Export
    """`exported`: it is a part of the pack; `unsupported`: only its name is; `not_applicable`: it
    has expired; `missing_correlation`: it should be there and is not."""
    bytes: Count | None = None
    part: str | None = None
    reason: str | None = None


class TrialOf(Struct, frozen=True, rename="camel"):
    """The benchmark trial that a pack is about."""

    trial_id: Name
    agent: Name
    """The name of the agent in `trajectory.json`."""


class Manifest(Struct, frozen=True, kw_only=True, rename="camel"):
    """What `manifest.json` of a pack says."""

    format: str = FORMAT
    derivation: Count = 0
    """`DERIVATION` of the version that wrote it; 0: a version that did not say."""
    schema_version: str = SCHEMA_VERSION
    kind: ExportKind
    evidence_id: Name
    created_at: str
    """RFC 3339."""
    scope: Scope
    trial: TrialOf | UnsetType = UNSET
    runtime_correlation: JsonObject
    """Ids that everything in the pack is joined by; see `correlation`."""
    correlation_states: dict[str, Export]
    """Each of the seven ids → whether it is present."""
    chain: Chain
    sections: dict[str, Export]
    """Part → whether there is something in it."""
    outputs: list[Output] = field(default_factory=lambda: list[Output]())
    gaps: list[Gap] = field(default_factory=lambda: list[Gap]())
    """Known gaps that apply, and no others."""
    parts: list[Part]
    """Every file of the pack but this one."""


_decoder = msgspec.json.Decoder(Manifest)


def encode_manifest(manifest: Manifest) -> bytes:
    """Return the bytes of `manifest.json`: readable, and the same for the same manifest."""
    return msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n"


def decode_manifest(data: bytes) -> Manifest:
    """Read `manifest.json`.

    Raises:
        NoManifest: It is not JSON, lacks something, or is of another format.
    """
    try:
        manifest = _decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise NoManifest(f"{MANIFEST}: {error}") from None
    if manifest.format != FORMAT:
        raise NoManifest(f"{MANIFEST}: a pack of format {manifest.format!r:.40}, not {FORMAT}")
    return manifest
