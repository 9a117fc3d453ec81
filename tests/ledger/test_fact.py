"""A fact and its JSON."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arp.ledger.fact import SCHEMA_VERSION, Fact, decode, encode

SUBMITTED = Fact(
    schema_version="lime-profile-0.4.0",
    runtime_id="runtime_1",
    session_id="session_1",
    event_id="event_7",
    timestamp="2026-11-21T08:00:00.000Z",
    sequence=7,
    type="turn.submitted",
    payload={"text": "héllo"},
    thread_id="main",
    turn_id="turn_1",
)

SUBMITTED_JSON = (
    '{"schemaVersion":"lime-profile-0.4.0","runtimeId":"runtime_1","sessionId":"session_1",'
    '"eventId":"event_7","timestamp":"2026-11-21T08:00:00.000Z","sequence":7,'
    '"type":"turn.submitted","payload":{"text":"héllo"},"threadId":"main","turnId":"turn_1"}'
).encode()


def test_the_profile_is_the_one_of_the_design() -> None:
    assert SCHEMA_VERSION == "lime-profile-0.4.0"


def test_a_fact_is_written_in_the_profiles_spelling_without_what_does_not_apply() -> None:
    """ledger.md 1: JSON, camelCase."""
    assert encode(SUBMITTED) == SUBMITTED_JSON


def test_a_fact_is_read_as_it_was_written() -> None:
    assert decode(SUBMITTED_JSON) == SUBMITTED


def test_the_eight_required_fields_are_written_even_when_empty() -> None:
    empty = Fact("", "", "", "", "", 0, "", {})
    assert encode(empty) == (
        b'{"schemaVersion":"","runtimeId":"","sessionId":"","eventId":"","timestamp":"",'
        b'"sequence":0,"type":"","payload":{}}'
    )


def test_every_optional_correlation_has_the_profiles_name() -> None:
    """ledger.md 1, optional correlation."""
    written = (
        "threadId turnId stepId toolCallId actionId taskId runId subagentId evidenceId attemptId "
        "parentTaskId rootTaskId artifactId traceId spanId requestId processId channelId jobId "
        "jobItemId outputRef modelRequestId queueId status phase statusReason nativeStatus refs "
        "correlation telemetry benchmark comparison"
    )
    fields = msgspec.structs.fields(Fact)[8:]
    assert " ".join(field.encode_name for field in fields) == written
    assert all(field.default is None for field in fields)


def test_json_that_is_encoded_already_goes_into_the_payload_as_it_is() -> None:
    fact = msgspec.structs.replace(SUBMITTED, payload={"ops": msgspec.Raw(b'[{"op": 1}]')})
    assert b'"payload":{"ops":[{"op": 1}]}' in encode(fact)


def test_fields_of_a_newer_version_are_passed_over() -> None:
    newer = SUBMITTED_JSON.replace(b'"sequence":7', b'"sequence":7,"galaxyId":{"a":[1]}')
    assert decode(newer) == SUBMITTED


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b'{"schemaVersion":"lime-profile-0.4.0"}',
        SUBMITTED_JSON.replace(b'"sequence":7', b'"sequence":"7"'),
        SUBMITTED_JSON.replace(b'{"text":"h\xc3\xa9llo"}', b"null"),
        SUBMITTED_JSON[:-1],
    ],
)
def test_what_is_no_fact_is_refused(data: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode(data)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(),
    lambda children: st.lists(children) | st.dictionaries(st.text(), children),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), JSON_VALUES), st.none() | st.text(), JSON_VALUES)
def test_decode_gives_back_what_encode_took(
    payload: dict[str, object], task_id: str | None, refs: object
) -> None:
    fact = msgspec.structs.replace(SUBMITTED, payload=payload, task_id=task_id, refs=refs)
    assert decode(encode(fact)) == fact
    assert b"\n" not in encode(fact)
