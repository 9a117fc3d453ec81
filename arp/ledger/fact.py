"""A fact: one event in the log of a session."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import msgspec

from arp.protocol.json_value import Json, JsonObject

SCHEMA_VERSION = "lime-profile-0.4.0"
"""Profile of every fact that this version writes (ledger.md 1)."""


class Fact(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """One event of the log. It always has the first eight fields, the others where they apply.

    A required correlation id that is not known is written as `unknown`, `unavailable` or `stale`.
    `None` means "does not apply" and is not written. `fact_types.check` knows the ids that each
    type needs.

    Source: ledger.md 1.
    """

    schema_version: str
    """`SCHEMA_VERSION` when we write it; facts that we read may have any value."""
    runtime_id: str
    """Id of the runtime that wrote it; by default it belongs to the ledger, not to a process."""
    session_id: str
    event_id: str
    """Id that is unique over all sessions."""
    timestamp: str
    """Time for people, RFC 3339 in UTC. Only `sequence` defines the order of facts."""
    sequence: int
    """Sequence number in the session, from 1, without holes."""
    type: str
    """Type, one of `fact_types.FACT_TYPES`."""
    payload: JsonObject
    """Content of the event. A value may be `msgspec.Raw`, JSON that is encoded already."""

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
    """SHA-256 of the stored output, if the payload has only a preview of it."""
    model_request_id: str | None = None
    queue_id: str | None = None
    status: str | None = None
    phase: str | None = None
    status_reason: str | None = None
    """Reason of the status: `cancelled`, `interrupted` …"""
    native_status: str | None = None
    """Status in the words of the runtime that reported it."""
    refs: Json = None
    correlation: Json = None
    telemetry: Json = None
    benchmark: Json = None
    comparison: Json = None


FactField: TypeAlias = Literal[
    "type", "sequence", "thread_id", "turn_id", "step_id", "tool_call_id", "action_id", "task_id",
    "run_id", "subagent_id", "evidence_id", "attempt_id", "parent_task_id", "root_task_id",
    "artifact_id", "trace_id", "span_id", "request_id", "process_id", "channel_id", "job_id",
    "job_item_id", "output_ref", "model_request_id", "queue_id", "status", "phase",
    "status_reason", "native_status", "refs", "correlation", "telemetry", "benchmark", "comparison",
]  # fmt: skip
"""Attributes of `Fact` that rows of fact types and of records may name."""

ATTRIBUTES: Final = {field.encode_name: field.name for field in msgspec.structs.fields(Fact)}
"""Name of a field in the log → attribute of `Fact`."""

WRITTEN: Final = {name: written for written, name in ATTRIBUTES.items()}
"""Attribute of `Fact` → name of the field in the log."""

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Fact)


def encode(fact: Fact) -> bytes:
    """Return the fact as one JSON object with the field names of the profile, without `None`.

    The result is one line unless a `msgspec.Raw` in the payload contains line breaks.
    """
    return _encoder.encode(fact)


def decode(data: bytes) -> Fact:
    """Decode a fact that this or a newer version wrote; unknown fields are ignored.

    Raises:
        msgspec.DecodeError: The data is not JSON, or a required field is missing or has the wrong
            type (`msgspec.ValidationError`). The stored data is then damaged.
    """
    return _decoder.decode(data)
