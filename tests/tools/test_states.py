"""The tables of what may happen to a tool: each event in each state."""

from __future__ import annotations

import msgspec
import pytest

from arp.tools.errors import ToolConflict
from arp.tools.registry.models import ToolMeta, ToolScheduling, ToolState, ToolStatus
from arp.tools.registry.states import LIFE, STATES, with_life, with_state


def test_the_tables_have_every_state() -> None:
    assert set(LIFE) == set(ToolStatus)
    assert set(STATES) == set(ToolState)


@pytest.mark.parametrize(
    ("before", "event", "after"),
    [
        *(("staging", "build", "building"), ("building", "activate", "active")),
        *(("building", "fail", "staging"), ("active", "disable", "inactive")),
        *(("inactive", "enable", "active"), ("active", "build", "building")),
        *(("active", "change", "staging"), ("staging", "activate", "active")),
    ],
)
def test_a_tool_lives_so(before: str, event: str, after: str) -> None:
    tool = ToolMeta("x", "X", status=ToolStatus(before))
    assert with_life(tool, event).status == after  # type: ignore[arg-type] # one of the events


@pytest.mark.parametrize(
    ("before", "event"),
    [
        *(("staging", "enable"), ("building", "disable"), ("active", "activate")),
        *(("inactive", "fail"), ("inactive", "build"), ("inactive", "change")),
    ],
)
def test_what_is_not_in_the_table_of_life_is_refused(before: str, event: str) -> None:
    tool = ToolMeta("x", "X", status=ToolStatus(before))
    with pytest.raises(ToolConflict, match=f"tool x is {before}; possible: "):
        with_life(tool, event)  # type: ignore[arg-type] # one of the events


@pytest.mark.parametrize(
    ("before", "event", "after"),
    [
        *(("stopped", "start", "running"), ("running", "sleep", "sleeping")),
        *(("sleeping", "start", "running"), ("running", "fail", "degraded")),
        *(("degraded", "start", "running"), ("degraded", "stop", "stopped")),
        *(("running", "stop", "stopped"), ("running", "start", "running")),
        *(
            ("sleeping", "stop", "stopped"),
            ("degraded", "fail", "degraded"),
            ("sleeping", "stop", "stopped"),
        ),
    ],
)
def test_a_tool_runs_so(before: str, event: str, after: str) -> None:
    tool = ToolMeta("x", "X", scheduling=ToolScheduling(state=ToolState(before)))
    assert with_state(tool, event).scheduling.state == after  # type: ignore[arg-type] # one of them


@pytest.mark.parametrize(
    ("before", "event"),
    [("stopped", "sleep"), ("degraded", "sleep"), ("sleeping", "sleep")],
)
def test_what_is_not_in_the_table_of_states_is_refused(before: str, event: str) -> None:
    tool = ToolMeta("x", "X", scheduling=ToolScheduling(state=ToolState(before)))
    with pytest.raises(ToolConflict, match=f"tool x is {before}"):
        with_state(tool, event)  # type: ignore[arg-type] # one of the events
    assert msgspec.structs.asdict(tool)["scheduling"].state == before
