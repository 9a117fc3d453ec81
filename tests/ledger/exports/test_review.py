"""The review is filled from the facts, and nothing in them becomes a part of the document."""

from __future__ import annotations

import pytest

from arp.ledger.exports.evidence import Evidence
from arp.ledger.exports.manifest import Scope
from arp.ledger.exports.review import MOST_ROWS, quoted, review
from arp.ledger.fact import encode
from tests.ledger.exports.test_evidence import TURN, story
from tests.ledger.historian import Historian

AT = "2026-02-03T04:05:06.000Z"


def reviewed(told: Historian, scope: Scope | None = None) -> str:
    evidence = Evidence("s", "e1", scope)
    evidence.take([encode(fact) for fact in told.facts])
    evidence.finish()
    return review(evidence, "review-1", AT)


def test_it_tells_what_a_reviewer_need_not_look_for() -> None:
    document = reviewed(story())
    lines = document.splitlines()
    assert lines[0] == "# Review of session `s`"
    assert "- runIds: `r1, r2`" in lines
    assert "| `t1` | `cancelled` | `cancelled` | `2` | `17` |" in lines
    assert "| `c1` | `tool.failed` | `denied by no-net` | `6 to 9` |" in lines
    assert "| `p1` | `permission.resolved` | `denied by rule no-net` | `7 to 8` |" in lines
    assert "In all: 1 EUR" in lines
    assert "1 facts cannot be joined to any id." in lines
    gap = "- cost.json: no turnId is known of these facts (missing_correlation; facts 16)"
    assert gap in lines
    assert "- [ ] Did the session do what was asked?" in lines
    assert "Decision: accept / change / reject" in lines


def test_it_names_incidents_and_only_the_turn_that_was_asked_for() -> None:
    told = story()
    told.add("turn.submitted", {"input": {"input_type": "text"}}, thread_id="main", turn_id="t2")
    told.add("runtime.error", {"error": "no | more", "code": 18, "retryable": False}, **TURN)
    document = reviewed(told, Scope(turn_id="t1"))
    assert "| `t2` |" not in document
    assert r"- fact 19, `runtime.error`: `no \| more`" in document
    assert "- fact 9, `tool.failed`: `denied by no-net`" in document


def test_without_gaps_and_incidents_it_says_so() -> None:
    told = Historian()
    document = reviewed(told)
    assert "None that the facts show." in document
    assert "Incidents" not in document
    assert "Thread `unavailable` is `idle`." in document
    assert "There is no such thread." in reviewed(told, Scope(thread_id="side"))


def test_a_long_table_ends_and_says_how_much_more_there_is() -> None:
    told = Historian()
    for number in range(MOST_ROWS + 3):
        told.add("task.created", {"objective": "count"}, task_id=f"k{number}")
    document = reviewed(told)
    assert "3 more are in the pack." in document
    assert f"| `k{MOST_ROWS - 1}` |" in document
    assert f"| `k{MOST_ROWS}` |" not in document


def test_what_says_nothing_leaves_its_place_empty() -> None:
    told = Historian()
    told.add("task.completed", {}, task_id="k1")
    assert "| `k1` | `task.completed` |  | `2 to 2` |" in reviewed(told)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("plain.word_1", "`plain.word_1`"),
        ("# no heading", "`# no heading`"),
        ("a\n# b", "`a # b`"),
        ("`tick`", "`` `tick` ``"),
        ("a``b", "```a``b```"),
        ("a|b", r"`a\|b`"),
        (None, ""),
        ("", ""),
        (7, "`7`"),
    ],
)
def test_nothing_that_was_said_becomes_markdown(value: object, shown: str) -> None:
    assert quoted(value) == shown
