"""The JSON Schemas say of facts and snapshots what the code says of them."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from arp.audit.models.read_model import ReadModel
from arp.ledger.fact import Fact
from arp.ledger.fact_types import FACT_TYPES, PROFILE_TYPES, REQUIRED_IDS, ProfileViolation, check
from arp.ledger.payloads import check_payload, payload_struct
from tests.ledger import standard
from tests.ledger.histories import histories
from tests.ledger.test_payloads import FITTING, REFUSED
from tests.support import written_facts
from tools import gen_fixtures

SCHEMAS = Path(__file__).resolve().parents[2] / "arp/ledger/schemas"
FIXTURES = SCHEMAS / "fixtures/lime-profile"

HEAD = {
    "schemaVersion": "lime-profile-0.4.0",
    "runtimeId": "r",
    "sessionId": "s",
    "eventId": "s-1",
    "timestamp": "2026-11-21T08:00:00Z",
    "sequence": 1,
}

WRITTEN = {field.name: field.encode_name for field in msgspec.structs.fields(Fact)}

OBJECTS = {
    "benchmark": {"datasetId": "d", "datasetVersion": "1"},
    "refs": {"trajectoryRef": "t"},
    "comparison": {
        "baseline": "a",
        "candidate": "b",
        "meanRewardDelta": 0.5,
        "timeoutRateDelta": 0,
        "evidenceCompletenessRate": 1,
        "p0QcGateRegressionCount": 0,
        "decision": "promote",
    },
}


def validator(name: str) -> Draft202012Validator:
    schema = json.loads((SCHEMAS / f"{name}.schema.json").read_text(encoding="utf-8"))
    return Draft202012Validator(schema, format_checker=standard.FORMATS)


PUBLIC = validator("agentruntime-event")
PROFILE = validator("agentruntime-lime-profile-event")
STRICT = validator("arp-facts")
PUBLIC_SNAPSHOT = validator("agentruntime-snapshot")
SNAPSHOTS = {
    name: validator(name) for name in ("agentruntime-lime-profile-snapshot", "arp-snapshot")
}


@pytest.mark.parametrize(
    "schema",
    [PUBLIC, PROFILE, STRICT, PUBLIC_SNAPSHOT, *SNAPSHOTS.values()],
    ids=["public", "profile", "strict", "public snapshot", *SNAPSHOTS],
)
def test_each_schema_is_a_schema(schema: Draft202012Validator) -> None:
    Draft202012Validator.check_schema(schema.schema)


def wrong_with(schema: Draft202012Validator, document: Any) -> list[str]:
    return [f"{error.json_path}: {error.message}" for error in schema.iter_errors(document)]


def event(fact_type: str, payload: dict[str, Any], ids: dict[str, Any]) -> dict[str, Any]:
    """Return a fact with all ids that its type needs, as far as `ids` does not say otherwise."""
    needed = dict.fromkeys((*REQUIRED_IDS.get(fact_type, ()), *ids), "x") | OBJECTS
    used = {*REQUIRED_IDS.get(fact_type, ()), *ids}
    given = {WRITTEN[name]: ids.get(name, needed[name]) for name in used}
    return {**HEAD, "type": fact_type, "payload": payload, **given}


# -- facts -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("fact_type", "payload", "ids"), FITTING)
def test_what_the_ledger_takes_the_strict_schema_takes(
    fact_type: str, payload: dict[str, Any], ids: dict[str, Any]
) -> None:
    document = msgspec.to_builtins(event(fact_type, payload, ids))
    assert wrong_with(STRICT, document) == []
    assert wrong_with(PROFILE, document) == []
    assert wrong_with(PUBLIC, document) == []


@pytest.mark.parametrize(("fact_type", "payload", "ids", "told"), REFUSED)
def test_what_the_ledger_refuses_the_strict_schema_refuses(
    fact_type: str, payload: dict[str, Any], ids: dict[str, Any], told: str
) -> None:
    document = event(fact_type, payload, ids)
    assert wrong_with(STRICT, document)
    if not any(word in told for word in ("needs", "benchmark", "no type")):
        assert wrong_with(PROFILE, document) == []


@pytest.mark.parametrize("fact_type", REQUIRED_IDS)
def test_every_id_that_a_type_needs_the_strict_schema_needs(fact_type: str) -> None:
    """ledger.md 1, "Required besides, by family"."""
    ids = dict.fromkeys((*REQUIRED_IDS[fact_type], *FACT_TYPES[fact_type].written_ids), "x")
    document = event(fact_type, {}, ids | {k: v for k, v in OBJECTS.items() if k in ids})
    for name in ids:
        without = {key: value for key, value in document.items() if key != WRITTEN[name]}
        missing = f"'{WRITTEN[name]}' is a required"
        assert any(missing in one for one in wrong_with(STRICT, without))
        if name in REQUIRED_IDS[fact_type] and fact_type in PROFILE_TYPES:
            assert any(missing in one for one in wrong_with(PROFILE, without))


@pytest.mark.parametrize("name", [*HEAD, "type", "payload"])
def test_the_profile_needs_the_eight_fields_and_any_runtime_three(name: str) -> None:
    document = event("session.updated", {}, {})
    del document[name]
    assert wrong_with(STRICT, document)
    assert wrong_with(PROFILE, document)
    assert bool(wrong_with(PUBLIC, document)) is (name in ("type", "eventId", "timestamp"))


@pytest.mark.parametrize(
    ("change", "public", "profile"),
    [
        ({"galaxyId": {"a": 1}}, True, True),
        ({"sequence": 0}, True, True),
        ({"refs": {"packRef": "p"}, "traceId": ""}, True, True),
        ({"timestamp": "2026-05-11t10:00:00z"}, True, True),
        ({"timestamp": "2026-05-11 10:00"}, False, False),
        ({"type": "galaxy.seen"}, False, False),
        ({"schemaVersion": "lime-profile-9"}, True, False),
        ({"payload": []}, True, False),
        ({"payload": None}, True, False),
        ({"runtimeId": ""}, True, False),
        ({"type": "no family"}, False, False),
        ({"sequence": "1"}, False, False),
        ({"turnId": ""}, False, False),
        ({"refs": ["p"]}, False, False),
    ],
)
def test_the_profile_takes_what_is_published_and_this_project_promises_more(
    change: dict[str, Any], public: bool, profile: bool
) -> None:
    """Stricter rules of this project alone stand in `arp-facts.schema.json`."""
    document = event("session.updated", {}, {}) | change
    assert (wrong_with(PUBLIC, document) == []) is public
    assert (wrong_with(PROFILE, document) == []) is profile
    assert wrong_with(STRICT, document) or set(change) == {"refs", "traceId"}


def of_another_runtime(fact_type: str, payload: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A fact as another runtime of the profile writes it: its payloads are its own."""
    return {
        "type": fact_type,
        "eventId": "evt-7",
        "timestamp": "2026-05-11T10:05:00Z",
        "schemaVersion": "lime-profile-0.4.0",
        "runtimeId": "another_runtime",
        "sessionId": "sess-7",
        "sequence": 58,
        "payload": payload,
        **more,
    }


TURN_7 = {"threadId": "thread-7", "turnId": "turn-7"}


@pytest.mark.parametrize(
    "document",
    [
        of_another_runtime("turn.submitted", {"inputRef": "input://7"}, **TURN_7),
        of_another_runtime("evidence.changed", {"packRef": "p://7"}, evidenceId="e7", **TURN_7),
        of_another_runtime("action.required", {"actionType": "ask"}, actionId="a7", **TURN_7),
        of_another_runtime("routing.single_candidate", {"candidateCount": 1}, **TURN_7),
        of_another_runtime(
            "task.attempt.failed", {"failureCategory": "tool"}, taskId="k7", runId="r7"
        ),
        of_another_runtime(
            "benchmark.trial.started",
            {"timeoutSec": 300},
            benchmark={"datasetId": "d", "role": "control", "harborJobRef": "jobs/7"},
            refs={"taskTomlRef": "t.toml"},
            taskId="k7",
            runId="r7",
            **TURN_7,
        ),
        of_another_runtime(
            "benchmark.reward.recorded",
            {"reward": 1},
            benchmark={},
            refs={},
            reward={"value": 1, "criteria": ["a"], "failureCategory": "none"},
            trajectory={"schema": "ATIF-v1.4-compatible", "exportStatus": "not-supported"},
            taskId="k7",
            runId="r7",
        ),
        of_another_runtime(
            "benchmark.comparison.completed",
            {},
            benchmark={},
            refs={},
            comparison={"meanRewardDelta": 0.5, "timeoutRateDelta": -0.1, "decision": "wait"},
        ),
    ],
    ids=lambda document: document["type"],
)
def test_what_another_runtime_of_the_profile_writes_is_taken_under_its_name(
    document: dict[str, Any],
) -> None:
    assert wrong_with(PUBLIC, document) == []
    assert wrong_with(PROFILE, document) == []
    assert wrong_with(STRICT, document)


@pytest.mark.parametrize(
    "change",
    [
        {"benchmark": {"role": "judge"}},
        {"benchmark": {"datasetId": 1}},
        {"comparison": {"p0QcGateRegressionCount": -1}},
        {"reward": {"value": "1"}},
        {"trajectory": {"exportStatus": "lost"}},
    ],
    ids=str,
)
def test_objects_of_a_benchmark_are_typed_for_any_runtime(change: dict[str, Any]) -> None:
    document = event("session.updated", {}, {}) | change
    assert wrong_with(PUBLIC, document)
    assert wrong_with(PROFILE, document)


# -- the standard ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", standard.SCHEMAS)
def test_the_copy_of_the_standard_is_what_is_published(name: str) -> None:
    assert standard.digest(standard.SCHEMAS[name]()) == standard.DIGESTS[name]


def inlined(part: Any, root: dict[str, Any]) -> Any:
    """Return a schema with what its references name in their places."""
    if isinstance(part, list):
        return [inlined(one, root) for one in part]
    if not isinstance(part, dict):
        return part
    if "$ref" in part:
        return inlined(root["$defs"][part["$ref"].rpartition("/")[2]], root)
    return {name: inlined(value, root) for name, value in part.items() if name != "$defs"}


@pytest.mark.parametrize("kind", ["event", "snapshot"])
def test_the_base_schema_is_that_of_the_standard(kind: str) -> None:
    """It accepts the same documents; unknown types too are refused by both."""
    schema: Any = (PUBLIC if kind == "event" else PUBLIC_SNAPSHOT).schema
    assert standard.digest(inlined(schema, schema)) == standard.DIGESTS[f"base {kind}"]


NAMES = ["threadId", "turnId", "runId", "refs", "benchmark", "payload", "type", "sequence"]

MUTATIONS: Any = st.dictionaries(
    st.sampled_from(NAMES),
    st.sampled_from([None, "", "x", 0, -1, 1.5, [], {}, {"role": "judge"}, "galaxy.seen"]),
    max_size=2,
)


@given(st.sampled_from([*REQUIRED_IDS]), st.sets(st.sampled_from(NAMES)), MUTATIONS)
def test_the_profile_schema_of_an_event_judges_as_the_standard(
    fact_type: str, missing: set[str], changes: dict[str, Any]
) -> None:
    whole = event(fact_type, {}, {})
    document = {name: value for name, value in whole.items() if name not in missing} | changes
    assert bool(wrong_with(PROFILE, document)) is bool(standard.faults("event", document))


PLACES = [
    *[(name,) for name in ("threads", "tasks", "taskSummary", "evidenceRefs", "updatedAt")],
    *[("threads", 0, name) for name in ("status", "turns", "incidents", "evidenceSummary")],
    *[("tasks", 0, name) for name in ("status", "artifacts", "attempts", "title")],
]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(PLACES),
            st.sampled_from([..., None, "", "x", 1, [], [""], [{}], {}, "running"]),
        ),
        max_size=3,
    )
)
def test_the_profile_schema_of_a_snapshot_judges_as_the_standard(
    changes: list[tuple[tuple[Any, ...], Any]],
) -> None:
    document = fixture("thread-read-snapshot")
    for (*path, last), value in changes:
        place = document
        for step in path:
            place = (
                place[step]
                if isinstance(place, dict) and step in place
                else (place[0] if isinstance(place, list) and place else {})
            )
        if isinstance(place, dict):
            place.pop(last, None)
            place |= {} if value is ... else {last: value}
    schema = SNAPSHOTS["agentruntime-lime-profile-snapshot"]
    assert bool(wrong_with(schema, document)) is bool(standard.faults("snapshot", document))


VALUES: st.SearchStrategy[Any] = st.sampled_from(
    ["", "x", "deny", "EUR", 0, 1, -1, 0.5, 2.5, True, None, [], ["x"], [1], {}, "0" * 64]
)


def taken(document: dict[str, Any], ids: dict[str, Any]) -> bool:
    fact = msgspec.convert(copy.deepcopy(document), Fact)
    try:
        check(fact)
        check_payload(fact.type, fact.payload, ids)
    except ProfileViolation:
        return False
    return True


@given(st.sampled_from(list(FACT_TYPES)), st.data())
def test_schema_and_check_are_of_one_mind(fact_type: str, data: st.DataObject) -> None:
    """The check guards what is written, the schema what others read: neither may know better."""
    names = payload_struct(fact_type).__struct_fields__
    payload = {name: data.draw(VALUES, name) for name in names if data.draw(st.booleans(), name)}
    ids = {name: OBJECTS.get(name, "x") for name in REQUIRED_IDS[fact_type]}
    ids |= dict.fromkeys(FACT_TYPES[fact_type].written_ids, "x")
    document = event(fact_type, payload, ids)
    fits = wrong_with(STRICT, document) == []
    assert taken(document, ids) is fits
    if fits and fact_type in PROFILE_TYPES:
        assert wrong_with(PROFILE, document) == []


# -- snapshots and fixtures ------------------------------------------------------------------------


def fixture(name: str) -> Any:
    return json.loads((FIXTURES / f"{name}.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("name", "fact_type", "ids"),
    [
        ("submit-turn-event", "turn.submitted", {"threadId", "turnId"}),
        ("tool-approval-action-required-event", "action.required", {"actionId", "toolCallId"}),
        ("task-retry-attempt-failed-event", "task.attempt.failed", {"taskId", "runId"}),
        ("routing-single-candidate-event", "routing.single_candidate", {"threadId", "turnId"}),
        ("evidence-export-event", "evidence.changed", {"evidenceId", "turnId", "taskId"}),
    ],
)
def test_an_example_of_a_fact_is_one(name: str, fact_type: str, ids: set[str]) -> None:
    document = fixture(name)
    assert document["type"] == fact_type
    assert ids <= document.keys()
    for schema in (STRICT, PROFILE, PUBLIC):
        assert wrong_with(schema, document) == []


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_the_example_of_a_snapshot_is_one(name: str) -> None:
    document = fixture("thread-read-snapshot")
    assert document["threads"][0]["lastOutcome"]
    assert [task["status"] for task in document["tasks"]] == ["completed"]
    assert document["evidenceRefs"] == ["evidence-1", "benchmark-1"]
    assert [one["evidenceId"] for one in document["evidenceSummary"]["packs"]] == ["evidence-1"]
    assert wrong_with(SNAPSHOTS[name], document) == []
    assert wrong_with(PUBLIC_SNAPSHOT, document) == []


def test_the_example_of_a_trial_has_what_joins_it_and_facts_that_fit() -> None:
    """The profile, "Evidence boundary": what an export of a trial must name."""
    pack = fixture("benchmark-trial-pack")
    assert pack["runtimeCorrelation"] == {
        "runtimeId": "runtime-1",
        "sessionId": "session-1",
        "threadId": "main",
        "turnId": "trial-turn",
        "taskId": "count-files",
        "runId": "count-files.1",
        "traceId": "unavailable",
    }
    assert pack["benchmark"]["datasetId"] == "terminal-tasks"
    assert set(pack["refs"]) == {
        "trajectoryRef",
        "rewardRef",
        "rewardDetailsRef",
        "artifactManifestRef",
        "agentQcReportRef",
        "runtimeTranscriptRef",
        "harborTrialResultRef",
        "harborVerifierStdoutRef",
    }
    assert {"harborJobRef", "harborTrialRef", "taskTomlRef", "taskId"} <= pack["benchmark"].keys()
    assert {"reward", "durationMs", "timeout", "evidenceComplete"} <= pack["metrics"].keys()
    assert pack["decisionInputs"]["p0QcGateRegressionCount"] == 0
    assert pack["trajectory"]["exportStatus"] == "exported"
    assert (pack["reward"]["value"], pack["reward"]["failureCategory"]) == (1.0, "none")
    assert pack["reward"]["criteria"] == ["files-counted", "nothing-written"]
    assert pack["benchmark"]["datasetRef"] == "benchmarks/terminal-tasks"
    assert set(pack["trajectory"]["requiredFieldStatus"].values()) == {True}
    assert [one["type"] for one in pack["events"]] == [
        "benchmark.dataset.resolved",
        "benchmark.configuration.resolved",
        "benchmark.trial.started",
        "benchmark.trial.completed",
        "benchmark.reward.recorded",
    ]
    assert [wrong_with(STRICT, one) for one in pack["events"]] == [[]] * 5
    assert pack["missing"] == []
    trajectory = fixture("benchmark-trial-trajectory")
    assert pack["trajectory"]["schema"] == trajectory["schema_version"] == "ATIF-v1.8"
    assert trajectory["trajectory_id"] == "trial-1"


def test_there_is_an_example_of_each_kind_and_no_other() -> None:
    assert {path.stem for path in FIXTURES.iterdir()} == set(gen_fixtures.FIXTURES)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ((), "threads"),
        ((), "tasks"),
        ((), "taskSummary"),
        ((), "routingLimitSummary"),
        ((), "telemetrySummary"),
        ((), "evidenceRefs"),
        ((), "updatedAt"),
        (("threads", 0), "threadId"),
        (("threads", 0), "status"),
        (("threads", 0), "turns"),
        (("threads", 0), "pendingRequests"),
        (("threads", 0), "queuedTurns"),
        (("threads", 0), "incidents"),
        (("threads", 0), "evidenceSummary"),
    ],
)
@pytest.mark.parametrize("name", SNAPSHOTS)
def test_a_snapshot_without_what_it_must_have_is_refused(
    name: str, path: tuple[Any, ...], value: str
) -> None:
    """ledger.md 4."""
    document = part = fixture("thread-read-snapshot")
    for step in path:
        part = part[step]
    del part[value]
    assert wrong_with(SNAPSHOTS[name], document)


@pytest.mark.parametrize(
    ("change", "public", "profile"),
    [
        ({"workspaceId": "w", "galaxy": None}, True, True),
        ({"tasks": [{"taskId": "k", "status": "lost", "acceptance": [{}]}]}, True, True),
        ({"updatedAt": "2026-05-11t10:00:00z"}, True, True),
        ({"threads": []}, True, False),
        ({"evidenceRefs": [""]}, True, False),
        ({"schemaVersion": "lime-profile-9"}, True, False),
        ({"evidenceRefs": [{"evidenceId": "e"}]}, False, False),
        ({"tasks": [{"taskId": "k", "status": "dreaming"}]}, False, False),
        ({"tasks": [{"taskId": "k", "status": "running", "artifacts": ["f"]}]}, False, False),
        ({"threads": [{"threadId": "t", "status": "dreaming"}]}, False, False),
    ],
)
def test_a_snapshot_of_the_profile_is_what_is_published_as_one(
    change: dict[str, Any], public: bool, profile: bool
) -> None:
    document = fixture("thread-read-snapshot") | change
    assert (wrong_with(PUBLIC_SNAPSHOT, document) == []) is public
    assert (wrong_with(SNAPSHOTS["agentruntime-lime-profile-snapshot"], document) == []) is profile


def test_a_snapshot_without_any_thread_is_refused() -> None:
    document = fixture("thread-read-snapshot") | {"threads": []}
    assert all(wrong_with(schema, document) for schema in SNAPSHOTS.values())


def test_the_snapshot_of_a_session_of_which_nothing_is_known_is_one() -> None:
    first = msgspec.convert(event("session.created", {"epoch": "e", "workflow": "w"}, {}), Fact)
    model = ReadModel()
    model.fold(first)
    document = json.loads(json.dumps(model.snapshot()))
    assert [wrong_with(schema, document) for schema in SNAPSHOTS.values()] == [[], []]


@given(histories())
def test_the_snapshot_of_any_history_is_one_of_the_profile(facts: list[Fact]) -> None:
    model = ReadModel()
    model.fold_all(facts)
    document = json.loads(json.dumps(model.snapshot("2026-06-01T00:00:00Z")))
    assert [wrong_with(schema, document) for schema in SNAPSHOTS.values()] == [[], []]
    assert wrong_with(PUBLIC_SNAPSHOT, document) == []


def test_a_fact_that_does_not_fit_is_seen_wherever_a_test_makes_the_project_write_it() -> None:
    """What looks at the facts of all tests looks."""
    document = event("task.created", {"objective": ""}, {})
    written_facts.look_at(json.dumps(document).encode())
    written_facts.look_at(json.dumps(event("task.created", {"objective": "x"}, {})).encode())
    (unfit,) = written_facts.taken()
    assert unfit.startswith("profile validation failed: task.created: payload.objective")
