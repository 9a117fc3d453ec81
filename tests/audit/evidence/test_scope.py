"""An export of a part of a session is about its facts and what lies between them."""

from __future__ import annotations

from arp.audit.evidence.manifest import Scope
from arp.audit.evidence.scope import FactRange, Range, is_of
from arp.ledger.fact import encode
from tests.audit.evidence.test_pages import story
from tests.ledger.historian import Historian


def found(scope: Scope, told: Historian | None = None) -> Range:
    found = Range(scope)
    for fact in (told or story()).facts:
        found.add_page([(fact.sequence, encode(fact))])
    return found


def range_of(scope: Scope, told: Historian | None = None) -> tuple[int, int]:
    of_scope = found(scope, told)
    return of_scope.first, of_scope.last


def test_a_range_is_from_the_first_to_the_last_fact_of_what_is_meant() -> None:
    assert range_of(Scope(turn_id="t1")) == (2, 17)
    assert range_of(Scope(task_id="k1")) == (2, 17)
    assert range_of(Scope(turn_id="t1", task_id="k1")) == (2, 17)


def test_ids_that_no_fact_carries_have_no_range() -> None:
    assert range_of(Scope(turn_id="shell")) == (0, 0)
    assert range_of(Scope(task_id="k9")) == (0, 0)
    assert range_of(Scope(turn_id="t2", task_id="k1")) == (0, 0)


def two_tasks() -> Historian:
    """Three turns, of which the second has attempts of two tasks."""
    told = Historian()  # fact 1
    told.add("task.created", {"objective": "a"}, task_id="a")
    told.add("task.created", {"objective": "b"}, task_id="b")
    for turn_id in ("t1", "t2", "t3"):  # from facts 4, 7 and 11 on
        turn = {"thread_id": "main", "turn_id": turn_id}
        told.add("turn.submitted", {"input": {"input_type": "text"}}, **turn)
        told.add("reasoning.delta", {"text": "x"}, **turn)
        if turn_id == "t2":
            told.add("task.attempt.started", {"attempt": 1}, task_id="a", run_id="a.1", **turn)
            told.add("task.progress", {"fraction": 1}, task_id="b", **turn)
        told.add("turn.completed", {"status": "completed"}, status="completed", **turn)
    return told


def test_a_task_has_the_facts_of_the_turns_of_its_attempts() -> None:
    told, scope = two_tasks(), Scope(task_id="a")
    assert range_of(scope, told) == (2, 11)
    turns = found(scope, told).turns
    assert turns == {"t2"}
    assert found(scope, told).bounds == FactRange(2, 11, frozenset({"t2"}))
    places = [fact.sequence for fact in told.facts if is_of(fact, scope, turns)]
    assert places == [2, 7, 8, 9, 11], "10 names another task"


def test_a_turn_that_a_task_only_names_in_passing_is_not_of_the_task() -> None:
    told, scope = two_tasks(), Scope(task_id="b")
    assert found(scope, told).turns == set()
    assert range_of(scope, told) == (3, 10)


def test_an_attempt_whose_turn_is_not_known_joins_none() -> None:
    told = Historian()
    unknown = {"thread_id": "main", "turn_id": "unavailable"}
    told.add("cost.recorded", {"model": "m", "inputTokens": 1, "outputTokens": 1}, **unknown)
    told.add("task.attempt.started", {"attempt": 1}, task_id="a", run_id="a.1", **unknown)
    assert range_of(Scope(task_id="a"), told) == (3, 3)
