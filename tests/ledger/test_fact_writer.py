"""The facts of one session, as bytes."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arp.ledger.fact import Fact, decode
from arp.ledger.fact_types import ProfileViolation
from arp.ledger.fact_writer import FactWriter, TextFact

AT = "2026-11-21T08:00:00.000000Z"
TURN = {"thread_id": "main", "turn_id": "t1"}


def writer(session_id: str = "s1") -> FactWriter:
    return FactWriter("arp", session_id, "main")


def text(json: str, thread_id: str | None = None) -> TextFact:
    return TextFact(3, "model.delta", "t1", thread_id, json)


def test_fact_has_all_that_is_the_same_in_its_session() -> None:
    """ledger.md 1: eight fields stand in every fact; `eventId` is unique over all sessions."""
    assert writer().fact(AT, 7, "turn.submitted", {"input": {}}, TURN) == (
        b'{"schemaVersion":"lime-profile-0.4.0","runtimeId":"arp","sessionId":"s1",'
        b'"eventId":"s1-7","timestamp":"2026-11-21T08:00:00.000000Z","sequence":7,'
        b'"type":"turn.submitted","payload":{"input":{}},"threadId":"main","turnId":"t1"}'
    )


def test_fact_without_the_ids_of_its_type_is_refused() -> None:
    with pytest.raises(ProfileViolation, match=r"turn\.started needs threadId, turnId"):
        writer().fact(AT, 1, "turn.started", {}, {})


def test_text_is_a_fact_like_any_other() -> None:
    fact = decode(writer().text(AT, text('"a \\"b\\""')))
    assert fact == Fact(
        "lime-profile-0.4.0",
        "arp",
        "s1",
        "s1-3",
        AT,
        3,
        "model.delta",
        {"text": 'a "b"'},
        thread_id="main",
        turn_id="t1",
    )


def test_each_text_of_a_session_says_what_is_its_own() -> None:
    """What is the same in all of them is made once."""
    facts = writer()
    texts = [facts.text(AT, text('"a"'))]
    texts.append(facts.text(AT, TextFact(4, "reasoning.delta", "t2", None, '"b"')))
    read = [(f.event_id, f.type, f.turn_id, f.payload) for f in map(decode, texts)]
    assert read == [
        ("s1-3", "model.delta", "t1", {"text": "a"}),
        ("s1-4", "reasoning.delta", "t2", {"text": "b"}),
    ]


@given(st.text(min_size=1), st.text(), st.sampled_from(["model.delta", "reasoning.delta"]))
def test_text_written_by_hand_is_the_bytes_of_the_general_way(
    session_id: str, words: str, type_name: str
) -> None:
    """A name with quotes, slashes or newlines in it breaks no fact."""
    facts = writer(session_id)
    as_json = msgspec.json.encode(words).decode()
    by_hand = facts.text(AT, TextFact(12, type_name, "t1", None, as_json))
    assert by_hand == facts.fact(AT, 12, type_name, {"text": words}, TURN)


def test_text_that_was_never_made_into_json_is_refused() -> None:
    """`{"text":}` is no JSON, and with it nobody could read the session again."""
    with pytest.raises(ValueError, match="fact 3 of session s1: its text is missing"):
        writer().text(AT, text(""))


def test_a_text_may_be_of_another_thread() -> None:
    fact = decode(writer().text(AT, text('"a"', 'side "b"')))
    assert (fact.thread_id, fact.turn_id) == ('side "b"', "t1")
    assert writer().text(AT, text('"a"', "main")) == writer().text(AT, text('"a"'))
