"""Where the stream of a renderer ends that knows only the draft (protocol.md 2, S6)."""

from __future__ import annotations

from typing import Any

import pytest

from arp.protocol.connection.screen import Screen, TurnScreen
from arp.protocol.messages import Commit, TurnMessage
from arp.view.stream_end import ends_stream, holds_queue, is_waiting, stream_end

ANSWER = {"input_type": "text", "data": {}}


@pytest.mark.parametrize(
    ("type_name", "payload", "ends"),
    [
        ("action.required", {}, True),
        ("action.resolved", {"input": ANSWER}, True),
        ("action.resolved", {"input": ANSWER, "resumes": True}, False),
        ("action.resolved", {"input": ANSWER, "ends": "completed"}, False),
        ("action.resolved", {}, False),
        ("turn.started", {}, False),
    ],
)
def test_stream_ends_where_nothing_comes_before_an_answer(
    type_name: str, payload: Any, ends: bool
) -> None:
    assert ends_stream(type_name, payload) is ends


def test_queue_is_held_while_a_turn_waits() -> None:
    screen = Screen()
    assert not holds_queue("queue.changed", {"queued": ["t2"]}, screen)
    screen.turns["t1"] = TurnScreen("t1", "waiting")
    assert holds_queue("queue.changed", {"queued": ["t2"]}, screen)
    assert not holds_queue("queue.changed", {"queued": []}, screen)
    assert not holds_queue("turn.started", {"queued": ["t2"]}, screen)


def test_turn_that_was_cut_off_does_not_go_on() -> None:
    turns = [TurnScreen("t", "waiting"), TurnScreen("t", "waiting", final=True), TurnScreen("t")]
    assert [is_waiting(turn) for turn in turns] == [True, False, False]


def test_commit_is_the_last_message_of_the_fact() -> None:
    status = TurnMessage(session_id="s", seq=4, turn_id="t1", status="waiting")
    end = Commit(session_id="s", turn_id="t1", final=True)
    assert stream_end([status]) == [status, end], "the status has used its seq"
