"""The review is filled from the facts, and nothing in them becomes a part of the document."""

from __future__ import annotations

import pytest

from arp.audit.evidence.derived import Evidence
from arp.audit.evidence.manifest import Scope
from arp.audit.evidence.review import MOST_ROWS, MOST_TEXT, Words, quoted, review
from arp.ledger.fact import encode
from tests.audit.evidence.test_pages import TURN, story
from tests.ledger.historian import Historian

AT = "2026-02-03T04:05:06.000Z"


def reviewed(told: Historian, scope: Scope | None = None) -> str:
    words = Words()
    evidence = Evidence("s", "e1", scope, also=[words])
    evidence.add_page([encode(fact) for fact in told.facts])
    evidence.finish()
    assert words.documents() == {}
    return review(evidence, "review-1", AT, words)


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
    assert "Thread `main` is `idle`." in document
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


# -- what was said ---------------------------------------------------------------------------------


def talk() -> Historian:
    """Three turns: a text with its answer, a form with components, one that waits."""
    told = Historian()
    turns = [{"thread_id": "main", "turn_id": f"t{number}"} for number in (1, 2, 3)]
    given = {"input_type": "text", "data": {"text": "Show ```the``` sales\n# now\x1b"}}
    told.add("turn.submitted", {"input": given}, **turns[0])
    told.add("model.delta", {"text": "Here "}, **turns[0])
    told.add("model.delta", {"text": "they are.\n# Review"}, **turns[0])
    form = {"input_type": "form_submit", "data": {"fields": {"a": 1}}}
    told.add("turn.submitted", {"input": form}, **turns[1])
    shown = {"id": "a", "type": "table", "props": {}}
    words = {"id": "b", "type": "text", "props": {"content": "3 rows"}}
    changes = [
        {"render": [shown, words, {"id": "c", "type": 5}]},
        {"patch": [{"op": "insert", "component": words}, {"op": "remove", "target": "a"}, 7]},
        "odd",
    ]
    told.add(
        "artifact.changed", {"surface": "main", "changes": changes}, artifact_id="m", **turns[1]
    )
    told.add("artifact.changed", {"name": "file"}, artifact_id="f", **turns[1])
    told.add("artifact.changed", {"changes": changes}, artifact_id="m")
    told.add("model.delta", {"text": 5}, **turns[1])
    told.add("turn.submitted", {"input": {"input_type": "text"}}, **turns[2])
    edited = {"queued": ["t3"], "input": {"data": {"text": "another"}}}
    told.add("queue.changed", edited, **turns[2])
    told.add("queue.changed", {"queued": []}, **turns[2])
    return told


def test_it_holds_the_input_and_the_answer_of_each_turn() -> None:
    lines = reviewed(talk()).split("## What was said\n")[1].split("\n## ")[0].splitlines()
    assert [line for line in lines if line] == [
        "### Turn `t1`",
        "Input:",
        "````text",
        "Show ```the``` sales",
        "# now␛",
        "````",
        "Answer:",
        "```text",
        "Here they are.",
        "# Review",
        "```",
        "### Turn `t2`",
        "Input:",
        "```text",
        '{"fields":{"a":1}}',
        "```",
        "Answer:",
        "```text",
        "3 rows",
        "3 rows",
        "```",
        "It showed: `table`, `unknown`",
        "### Turn `t3`",
        "Input:",
        "```text",
        "another",
        "```",
        "No text was answered.",
    ]


def test_a_long_answer_ends_and_says_how_much_more_there_is() -> None:
    told = Historian()
    for _ in range(5):
        told.add("model.delta", {"text": "x" * 1000}, **TURN)
    document = reviewed(told)
    assert f"{'x' * MOST_TEXT}\n```\n\n1000 more characters are in the pack." in document
    assert "x" * (MOST_TEXT + 1) not in document


def test_of_many_turns_the_first_are_told() -> None:
    told = Historian()
    for number in range(MOST_ROWS + 2):
        turn = {"thread_id": "main", "turn_id": f"t{number}"}
        told.add("turn.submitted", {"input": {"data": {"text": "x"}}}, **turn)
    assert "2 more turns are in the pack." in reviewed(told)
    assert "## What was said\n\nNothing." in reviewed(Historian())
