from __future__ import annotations

import pytest

from arp.client.turns import is_over, latest_turn, when_over
from arp.protocol.errors import UnknownObject
from arp.protocol.messages import TurnStatus
from arp.protocol.screen import Screen, TurnScreen


@pytest.mark.parametrize(
    ("final", "status", "over"),
    [
        (False, None, False),
        (False, "running", False),
        (False, "completed", False),
        (True, "running", False),
        (True, "completed", True),
        (True, "failed", True),
        (True, "cancelled", True),
        (True, None, True),
    ],
)
def test_turn_is_over_with_its_final_commit_and_status(
    final: bool, status: TurnStatus | None, over: bool
) -> None:
    assert is_over(TurnScreen("t", status=status, final=final)) is over


def test_latest_turn_is_the_one_made_last() -> None:
    screen = Screen()
    assert latest_turn(screen) is None
    screen.turn("t1")
    screen.turn("t2")
    assert latest_turn(screen) == "t2"


def test_turn_may_not_show_yet() -> None:
    screen = Screen()
    look = when_over("t1", lambda: screen)
    assert look() is None
    turn = screen.turn("t1")
    assert look() is None
    turn.final = True
    assert look() is turn


def test_turn_that_a_snapshot_left_out_will_not_be_waited_for() -> None:
    screen = Screen()
    screen.turn("t1")
    look = when_over("t1", lambda: screen)
    assert look() is None
    screen = Screen()
    with pytest.raises(UnknownObject, match="t1 shows no more"):
        look()
