"""Recordings are what they say: the same each time, and not all right nor all wrong."""

from __future__ import annotations

import itertools
import json
from random import Random

from tests.web.recordings import recording
from tests.web.wrong_frames import LOST, frames


def test_a_recording_is_the_same_each_time() -> None:
    for number in (3, 4, 5):
        assert json.dumps(recording(number)) == json.dumps(recording(number))


def test_wrong_frames_lead_astray_now_and_then_and_show_something_besides() -> None:
    steps = [step for number in range(1, 90, 3) for step in recording(number)["steps"]]
    faults = sum(step["faults"] for step in steps)
    assert 0.02 < faults / len(steps) < 0.5
    assert any(
        len(turn["output"]) > 2 for step in steps for turn in step["state"]["turns"].values()
    )


def test_a_program_has_no_fault_and_tells_its_replay() -> None:
    told = recording(2)
    assert sum(step["faults"] for step in told["steps"]) == 0
    places = [place for place, _ in told["replay"]]
    assert places == list(range(1, len(places) + 1))


def test_every_lost_link_is_followed_by_a_session() -> None:
    for number in range(50):
        sent = frames(Random(number))
        behind = [after for before, after in itertools.pairwise(sent) if before is LOST]
        assert all(frame is not None and '"session"' in frame for frame in behind)
