"""The fold itself, over generated histories: rebuilt by replay with the same result.

Source: ledger.md 4.
"""

from __future__ import annotations

import itertools
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arp.audit.models.document import THREAD_STATUSES
from arp.audit.models.read_model import FactOutOfOrder, ReadModel, UnreadableModel
from arp.audit.models.state import MODEL_VERSION
from arp.audit.models.tasks import STATUSES
from arp.ledger.fact import Fact
from arp.protocol.json_value import Json, JsonObject
from tests.ledger.histories import histories, long_history

MOST_BYTES = 1 << 20
"""However long a session is; the largest that the bounds of all parts allow is below it."""

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def folded(facts: list[Fact]) -> ReadModel:
    model = ReadModel()
    model.fold_all(facts)
    return model


@given(histories(), st.data())
def test_any_stored_model_and_the_facts_behind_it_equal_the_whole_log(
    facts: list[Fact], data: st.DataObject
) -> None:
    whole = folded(facts).encode()
    cut = data.draw(st.integers(0, len(facts)))
    stored = folded(facts[:cut]).encode()
    resumed = ReadModel.decode(stored)
    assert resumed.sequence == cut
    resumed.fold_all(facts[cut:])
    assert resumed.encode() == whole


@given(histories(30))
def test_a_model_that_is_stored_after_each_fact_equals_one_that_never_was(
    facts: list[Fact],
) -> None:
    model = ReadModel()
    for fact in facts:
        model.fold(fact)
        model = ReadModel.decode(model.encode())
    assert model.encode() == folded(facts).encode()


@given(histories(), st.lists(JSON, min_size=1, max_size=8), st.text())
def test_whatever_payloads_say_the_facts_are_taken(
    facts: list[Fact], values: list[Json], more: str
) -> None:
    """Facts of a tolerant log: right ids, and anything at all where something is expected."""
    model, odd = ReadModel(), itertools.cycle(values)
    for fact in facts:
        payload = {name: next(odd) for name in [*fact.payload, more]}
        model.fold(msgspec.structs.replace(fact, payload=payload, refs=next(odd)))
    assert ReadModel.decode(model.encode()).encode() == model.encode()
    msgspec.json.encode(model.snapshot())


@given(histories())
def test_a_document_has_what_it_must_have_and_no_status_of_its_own(facts: list[Fact]) -> None:
    """ledger.md 4: what a snapshot and a thread require."""
    document = folded(facts).snapshot("2026-06-01T00:00:00Z")
    assert {
        "schemaVersion",
        "runtimeId",
        "sessionId",
        "updatedAt",
        "threads",
        "tasks",
        "taskSummary",
        "routingLimitSummary",
        "telemetrySummary",
        "evidenceRefs",
    } <= document.keys()
    assert len(document["threads"]) >= 1
    for thread in document["threads"]:
        assert {
            "threadId",
            "status",
            "turns",
            "pendingRequests",
            "queuedTurns",
            "incidents",
            "evidenceSummary",
        } <= thread.keys()
        assert thread["status"] in THREAD_STATUSES
    assert {task["status"] for task in document["tasks"]} <= STATUSES
    assert sum(document["taskSummary"]["byStatus"].values()) == document["taskSummary"]["total"]
    assert msgspec.json.decode(msgspec.json.encode(document)) == document


@given(histories())
def test_pending_is_what_was_asked_and_not_resolved(facts: list[Fact]) -> None:
    asked: dict[str, int] = {}
    for fact in facts:
        if fact.type in ("action.required", "permission.requested"):
            asked[fact.action_id or fact.request_id or ""] = fact.sequence
        elif fact.type in ("action.resolved", "permission.resolved"):
            asked.pop(fact.action_id or fact.request_id or "", None)
    pending = [
        request.get("actionId") or request.get("requestId")
        for thread in folded(facts).snapshot()["threads"]
        for request in thread["pendingRequests"]
    ]
    assert set(pending) == set(asked)


@given(histories())
def test_one_turn_runs_and_the_others_wait_in_the_order_in_which_they_came(
    facts: list[Fact],
) -> None:
    line: list[str] = []
    running: str | None = None
    for fact in facts:
        turn_id = fact.turn_id or ""
        if fact.type == "turn.submitted":
            line.append(turn_id)
        elif fact.type == "turn.started":
            line.remove(turn_id)
            running = turn_id
        elif fact.type in ("turn.completed", "turn.failed"):
            running = None
    model = folded(facts)
    main = model.thread("main")
    if main is not None:
        assert main.get("activeTurnId") == running
        assert [turn["turnId"] for turn in main["queuedTurns"]] == line
    else:
        assert not line


def test_a_model_does_not_grow_with_the_history() -> None:
    facts = long_history(8_000)
    model, sizes = ReadModel(), []
    for fact in facts:
        model.fold(fact)
        if fact.sequence % 3_000 == 0:
            sizes.append(len(model.encode()))
    assert len(facts) > 11_000
    assert max(sizes) < MOST_BYTES
    assert sizes[-1] < 2 * sizes[0]
    document = model.snapshot()
    assert document["threads"][0]["history"]["olderTurns"] > 100
    assert document["taskSummary"]["older"] > 50


def test_a_long_text_in_every_field_does_not_make_it_grow() -> None:
    model, long = ReadModel(), "x" * 100_000
    for fact in long_history(400):
        payload: JsonObject = {name: _lengthened(fact, name, long) for name in fact.payload}
        model.fold(msgspec.structs.replace(fact, payload=payload))
    assert len(model.encode()) < MOST_BYTES


def _lengthened(fact: Fact, name: str, long: str) -> Any:
    """Return a value of the same kind that is far too long."""
    match fact.payload[name]:
        case str():
            return long
        case list():
            return [long] * 100
        case dict():
            return {f"key{number}": long for number in range(100)}
        case value:
            return value


# -- what is refused -------------------------------------------------------------------------------


@pytest.fixture
def facts() -> list[Fact]:
    return long_history(5)


@pytest.mark.parametrize("place", [0, 2])
def test_a_fact_that_is_not_the_next_is_refused_and_changes_nothing(
    facts: list[Fact], place: int
) -> None:
    model = folded(facts[:1])
    before = model.encode()
    with pytest.raises(FactOutOfOrder, match=f"fact {place + 1} of session 's' does not follow 1"):
        model.fold(facts[place])
    assert model.encode() == before


def test_a_fact_of_another_session_is_refused_and_changes_nothing(facts: list[Fact]) -> None:
    model = folded(facts[:1])
    before = model.encode()
    with pytest.raises(FactOutOfOrder, match="a fact of session 'other' in the model of 's'"):
        model.fold(msgspec.structs.replace(facts[1], session_id="other"))
    assert model.encode() == before


def test_facts_before_one_out_of_order_stay_folded(facts: list[Fact]) -> None:
    model = ReadModel()
    with pytest.raises(FactOutOfOrder, match="fact 9 of session 's' does not follow 5"):
        model.fold_all([*facts[:5], facts[8]])
    assert model.encode() == folded(facts[:5]).encode()
    model.fold_all(facts[5:7])
    with pytest.raises(FactOutOfOrder, match="a fact of session 'other' in the model of 's'"):
        model.fold_all([facts[7], msgspec.structs.replace(facts[8], session_id="other")])
    assert model.encode() == folded(facts[:8]).encode()


def test_a_type_of_a_newer_version_is_counted_and_changes_nothing_else(facts: list[Fact]) -> None:
    model = folded(facts[:1])
    model.fold(msgspec.structs.replace(facts[1], type="dream.started"))
    assert model.sequence == 2
    assert model.state.facts == {"session.created": 1, "other": 1}


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "no read model"),
        (b'{"version":2,"sequence":"two"}', "no read model"),
        (b'{"version":0}', f"of version 0, not of {MODEL_VERSION}"),
        (b'{"version":2,"sequence":5,"calls":{"outputs":[]}}', "of version 2, not of"),
    ],
)
def test_bytes_that_are_no_model_of_this_version_are_refused(data: bytes, says: str) -> None:
    with pytest.raises(UnreadableModel, match=says):
        ReadModel.decode(data)


def test_a_model_of_no_facts_says_so() -> None:
    document = ReadModel().snapshot()
    assert document["sequence"] == 0
    assert document["threads"] == [
        {
            "threadId": "unavailable",
            "status": "idle",
            "turns": [],
            "pendingRequests": [],
            "queuedTurns": [],
            "incidents": [],
            "diagnostics": [],
            "toolCalls": [],
            "evidenceSummary": {"status": "not_applicable"},
            "history": {"olderTurns": 0, "through": 0},
        }
    ]
    assert document["routingLimitSummary"] == {"status": "not_applicable"}


def test_only_the_last_trace_ids_are_kept(facts: list[Fact]) -> None:
    model = ReadModel()
    for number in range(1, 13):
        fact = msgspec.structs.replace(facts[0], sequence=number, trace_id=f"trace{number // 2}")
        model.fold(fact)
    assert model.state.trace_ids == [f"trace{number}" for number in range(7)]


def test_model_of_a_part_begins_behind_the_fact_before_it() -> None:
    """It takes the next fact and no other; behind nothing it is as new."""
    history = long_history(40)
    facts = history[3:5]
    model = ReadModel.behind(facts[0].session_id, 3)
    model.fold_all(facts)
    assert model.sequence == 5
    with pytest.raises(FactOutOfOrder):
        ReadModel.behind(facts[0].session_id, 3).fold(facts[1])
    assert ReadModel.behind("s", 0).sequence == 0
