"""What is kept: what is open and what ended lately, bounded; steps that change it; times."""

from __future__ import annotations

import pytest

from arp.audit.models.records import Durations, Record, RecordUpdate, RecordWindow
from arp.ledger.families.decisions import OPERATION
from arp.ledger.families.results import VERIFICATION
from arp.ledger.families.tools import CHARACTERS, PID, PREVIEW
from arp.ledger.payload_fields import BYTES, ERROR
from arp.ledger.record_steps import (
    AddTo,
    Clear,
    Copy,
    CopyFactField,
    End,
    RecordStep,
    Reopen,
    SetTime,
    SetTypeWord,
    SetWord,
    copies,
    fact_fields,
)
from tests.audit.models.story import Story


def entry(sequence: int) -> Record:
    return Record(first_sequence=sequence)


def full() -> RecordWindow[Record]:
    """Two that are open and two that ended, as many as are kept."""
    window = RecordWindow[Record]()
    for place, name in enumerate(["a", "b", "c", "d"], 1):
        window.begin(name, entry(place), 4)
    window.end("b", 2)
    window.end("a", 2)
    return window


def test_entries_come_in_the_order_in_which_they_began() -> None:
    assert [one.first_sequence for one in full().entries()] == [1, 2, 3, 4]


def test_the_one_that_ended_first_leaves_when_another_ends() -> None:
    window = full()
    window.end("c", 2)
    assert list(window.closed) == ["a", "c"]
    assert list(window.open) == ["d"]
    assert window.older == 1


def test_the_oldest_that_is_open_leaves_when_there_are_too_many() -> None:
    window = full()
    window.begin("e", entry(5), 2)
    assert list(window.open) == ["d", "e"]
    assert window.older == 1


def test_what_ended_never_pushes_out_what_is_open() -> None:
    window = RecordWindow[Record]()
    window.begin("open", entry(1), 2)
    for number in range(2, 50):
        window.begin(f"n{number}", entry(number), 2)
        window.end(f"n{number}", 3)
    assert list(window.open) == ["open"]
    assert list(window.closed) == ["n47", "n48", "n49"]
    assert window.older == 45


def test_what_begins_again_under_its_id_is_kept_once() -> None:
    window = full()
    again = entry(9)
    window.begin("a", again, 4)
    assert window.get("a") is again
    assert "a" not in window.closed


def test_what_is_not_kept_is_not_there() -> None:
    window = full()
    window.end("nobody", 2)
    window.reopen("nobody", 4)
    assert window.get("nobody") is None
    assert window.get(None) is None
    assert window.older == 0


def test_what_is_opened_again_is_open() -> None:
    window = full()
    window.reopen("a", 4)
    assert list(window.open) == ["c", "d", "a"]
    assert list(window.closed) == ["b"]


def test_spans_add_up_and_leave_out_what_is_not_known() -> None:
    spans = Durations()
    for ended in ("2026-01-02T03:04:07Z", "never", "2026-01-02T03:04:06Z"):
        spans.add("2026-01-02T03:04:05Z", ended)
    assert spans == Durations(count=2, total_ms=3000, max_ms=2000)


# -- steps -----------------------------------------------------------------------------------------


def changed(
    steps: list[RecordStep], record: dict[str, object] | None = None, /, **payload: object
) -> dict[str, object]:
    """Return a record after a fact has changed it by steps."""
    fact = Story().tell("tool.result", {**CALL, "output_ref": "o1"}, **payload)
    found = dict(record or {})
    RecordUpdate(*steps).change(found, fact, fact.payload)
    return found


CALL = {"thread_id": "main", "turn_id": "t1", "step_id": "c1", "tool_call_id": "c1"}


@pytest.mark.parametrize(
    ("steps", "before", "after"),
    [
        ([Copy(PREVIEW)], {}, {"preview": "four"}),
        ([Copy(ERROR)], {"error": "old"}, {}),
        ([Copy(ERROR, keep_old="if_empty")], {"error": "old"}, {"error": "old"}),
        ([Copy(BYTES, keep_old="if_empty")], {"bytes": 4}, {"bytes": 4}),
        ([Copy(BYTES, keep_old="if_absent")], {"bytes": 4}, {"bytes": 0}),
        ([Copy(ERROR, to="said", or_else=(PREVIEW,))], {}, {"said": "four"}),
        ([Copy("other", or_else=("preview",))], {}, {"other": "four"}),
        ([Copy(OPERATION, read="text_or_unknown")], {}, {"operation": "unknown"}),
        ([Copy(PID)], {}, {}),
        (
            list(fact_fields("turn_id", "output_ref", "job_id")),
            {"jobId": "j1"},
            {"turnId": "t1", "outputRef": "o1"},
        ),
        ([CopyFactField("job_id", keep_old="if_empty")], {"jobId": "j1"}, {"jobId": "j1"}),
        ([AddTo("count"), AddTo("count")], {}, {"count": 2}),
        ([AddTo("size", CHARACTERS)], {"size": 2}, {"size": 5}),
        ([AddTo("size", BYTES)], {}, {}),
        (
            [SetTypeWord("status"), SetWord("how", "done")],
            {},
            {"status": "result", "how": "done"},
        ),
        ([Copy(VERIFICATION, read="object")], {}, {"verification": {}}),
        ([SetTime("endedAt")], {}, {"endedAt": "2026-01-02T03:00:01.000000Z"}),
        ([Clear("reason"), Clear("never")], {"reason": "old"}, {}),
        ([Reopen("running")], {"status": "failed"}, {"status": "running"}),
        ([End()], {"status": "running"}, {"status": "result"}),
        ([End("lost")], {"status": "running"}, {"status": "lost"}),
    ],
)
def test_a_step_changes_its_field(
    steps: list[RecordStep], before: dict[str, object], after: dict[str, object]
) -> None:
    payload = {"preview": "four", "characters": 3, "bytes": 0, "pid": "seven"}
    assert changed(steps, before, **payload) == after


def test_fields_stand_in_the_order_of_the_steps() -> None:
    steps: list[RecordStep] = [
        SetTime("endedAt"),
        Copy(PREVIEW),
        CopyFactField("turn_id"),
        SetWord("status", "done"),
    ]
    assert list(changed(steps, preview="four")) == ["endedAt", "preview", "turnId", "status"]


def test_steps_read_what_stands_beside_the_payload() -> None:
    fact = Story().tell("tool.result", CALL, preview="four")
    record = {"preview": "old"}
    steps: list[RecordStep] = [Copy(PREVIEW), CopyFactField("turn_id")]
    RecordUpdate(*steps).change(record, fact, {"preview": "beside"})
    assert record == {"preview": "beside", "turnId": "t1"}


def test_steps_of_a_new_record_set_what_is_known() -> None:
    fact = Story().tell("tool.result", CALL, preview="four")
    record: dict[str, object] = {}
    steps: list[RecordStep] = [*fact_fields("job_id", "turn_id"), *copies(PREVIEW, ERROR, PID)]
    RecordUpdate(*steps, is_first=True).change(record, fact, fact.payload)
    assert record == {"preview": "four", "turnId": "t1"}


def test_an_error_in_steps_names_their_fields() -> None:
    fact = Story().tell("tool.result", CALL)
    with pytest.raises(TypeError) as raised:
        RecordUpdate(AddTo("done")).change({"done": "text"}, fact, fact.payload)
    assert any("<steps for done>" in str(one.path) for one in raised.traceback)
