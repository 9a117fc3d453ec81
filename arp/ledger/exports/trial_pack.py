"""A benchmark trial as its pack tells it, read again: by this project, or by another runtime."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from arp.protocol.errors import LocalError
from arp.protocol.json_value import JsonObject


class NoTrial(LocalError):
    """Bytes that are no trial of the profile."""


class TrialPack(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What `trial.json` says, in the profile's names; other fields are passed over."""

    schema_version: str
    benchmark: JsonObject
    """Dataset, task, trial, configuration, where Harbor keeps them."""
    runtime_correlation: JsonObject
    refs: JsonObject = {}
    metrics: JsonObject = {}
    decision_inputs: JsonObject = {}
    trajectory: JsonObject = {}
    reward: JsonObject = {}
    status: str | None = None
    missing: list[str] = []
    """What its evidence lacks, where somebody looked."""


_decoder = msgspec.json.Decoder(TrialPack)


def decode_trial(data: bytes) -> TrialPack:
    """Read a trial of a pack.

    Raises:
        NoTrial: It is not JSON, or lacks something that the profile wants.
    """
    try:
        return _decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise NoTrial(f"no trial of a benchmark: {error}") from None
