"""A fact: one thing that happened in a session, as the log keeps it."""

from __future__ import annotations

from typing import Final

import msgspec

from arp.protocol.json_value import Json, JsonObject

SCHEMA_VERSION = "lime-profile-0.4.0"
"""The profile that every fact written here follows (ledger.md 1)."""


class Fact(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """One event of the log: eight fields always, the others where they apply.

    A correlation that should be there and is not known is written as `unknown`, `unavailable` or
    `stale`; `None` means "does not apply" and is not written at all. Which type needs which id is
    in `fact_types.check`.

    Source: ledger.md 1.
    """

    schema_version: str
    """`SCHEMA_VERSION` in what we write; anything in what we read."""
    runtime_id: str
    """The process that wrote it."""
    session_id: str
    event_id: str
    """Unique over all sessions."""
    timestamp: str
    """RFC 3339, UTC; for people. Order comes from `sequence` alone."""
    sequence: int
    """From 1, per session, without holes."""
    type: str
    """One of `fact_types.REQUIRED_IDS`."""
    payload: JsonObject
    """What happened. Its values may be `msgspec.Raw`: JSON that is encoded goes in as it is."""

    thread_id: str | None = None
    turn_id: str | None = None
    step_id: str | None = None
    tool_call_id: str | None = None
    action_id: str | None = None
    task_id: str | None = None
    run_id: str | None = None
    subagent_id: str | None = None
    evidence_id: str | None = None
    attempt_id: str | None = None
    parent_task_id: str | None = None
    root_task_id: str | None = None
    artifact_id: str | None = None
    trace_id: str | None = None
    span_id: str | None = None
    request_id: str | None = None
    process_id: str | None = None
    channel_id: str | None = None
    job_id: str | None = None
    job_item_id: str | None = None
    output_ref: str | None = None
    """The blob that holds what the payload only previews."""
    model_request_id: str | None = None
    queue_id: str | None = None
    status: str | None = None
    phase: str | None = None
    status_reason: str | None = None
    """Why the status is what it is: `cancelled`, `interrupted` …"""
    native_status: str | None = None
    """The same in the words of the runtime that said it."""
    refs: Json = None
    correlation: Json = None
    telemetry: Json = None
    benchmark: Json = None
    comparison: Json = None


ATTRIBUTES: Final = {field.encode_name: field.name for field in msgspec.structs.fields(Fact)}
"""Name of a field in the log → the attribute of a fact."""

WRITTEN: Final = {name: written for written, name in ATTRIBUTES.items()}
"""Attribute of a fact → the name of the field in the log."""

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Fact)


def encode(fact: Fact) -> bytes:
    """Return the fact as one JSON object in the profile's spelling, without what does not apply.

    The answer is one line unless a `msgspec.Raw` in the payload has line breaks of its own.
    """
    return _encoder.encode(fact)


def decode(data: bytes) -> Fact:
    """Read a fact that this or a newer version wrote; fields that are not known are passed over.

    Raises:
        msgspec.DecodeError: Not JSON, or a required field is missing or of another type
            (`msgspec.ValidationError`). What the store gave back is damaged then.
    """
    return _decoder.decode(data)
