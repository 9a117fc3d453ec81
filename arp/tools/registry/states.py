"""The two state machines of a tool: its life cycle, and its running state.

Theory of operation. This file defines all legal transitions of a tool, in the manner of
`h11/_state.py`. A new entry of the registry brings its own `ToolMeta.status` and
`ToolScheduling.state`; only these tables change them.

The life cycle of a tool (`status`):

    STAGING ──build──► BUILDING ──activate──► ACTIVE ──disable──► INACTIVE
      ▲ ▲                │  ▲                 │ │ ▲                 │
      │ └──────fail──────┘  └──────build──────┘ │ └─────enable──────┘
      └─────────────────change──────────────────┘

A person disables and enables a tool; no task registers a disabled one. After a task has changed the
program of a tool (`change`), it must register the tool again.

Its running state (`scheduling.state`):

    STOPPED ──start──► RUNNING ──sleep──► SLEEPING      fail: RUNNING, SLEEPING → DEGRADED
       ▲                │   ▲ ──fail──► DEGRADED        stop: every state → STOPPED
       └──────stop──────┘   └──start──── SLEEPING, DEGRADED

Only an active tool can be called. A call starts a tool that is stopped, sleeping or degraded. A
tool that has ended by itself may still be RUNNING in this table; the call then starts it again.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import msgspec

from arp.tools.errors import ToolConflict
from arp.tools.registry.models import ToolMeta, ToolState, ToolStatus

LifeEvent: TypeAlias = Literal["build", "fail", "activate", "disable", "enable", "change"]
StateEvent: TypeAlias = Literal["start", "sleep", "fail", "stop"]

_STAGING, _BUILDING = ToolStatus.STAGING, ToolStatus.BUILDING
_ACTIVE, _INACTIVE = ToolStatus.ACTIVE, ToolStatus.INACTIVE
_RUNNING, _SLEEPING = ToolState.RUNNING, ToolState.SLEEPING
_STOPPED, _DEGRADED = ToolState.STOPPED, ToolState.DEGRADED

LIFE: Final[dict[ToolStatus, dict[LifeEvent, ToolStatus]]] = {
    _STAGING: {"build": _BUILDING, "activate": _ACTIVE},  # activate: a repair found it working
    _BUILDING: {"activate": _ACTIVE, "fail": _STAGING},
    _ACTIVE: {"disable": _INACTIVE, "build": _BUILDING, "change": _STAGING},
    _INACTIVE: {"enable": _ACTIVE},
}
"""Transitions of the life cycle: status → event → next status."""

STATES: Final[dict[ToolState, dict[StateEvent, ToolState]]] = {
    _STOPPED: {"start": _RUNNING, "stop": _STOPPED, "fail": _DEGRADED},
    _RUNNING: {"start": _RUNNING, "sleep": _SLEEPING, "stop": _STOPPED, "fail": _DEGRADED},
    _SLEEPING: {"start": _RUNNING, "stop": _STOPPED, "fail": _DEGRADED},
    _DEGRADED: {"start": _RUNNING, "stop": _STOPPED, "fail": _DEGRADED},
}
"""Transitions of the running state: state → event → next state."""


def with_life(tool: ToolMeta, event: LifeEvent) -> ToolMeta:
    """Return the tool after an event of its life cycle.

    Raises:
        ToolConflict: The tool's status does not permit the event.
    """
    after = LIFE[tool.status].get(event)
    if after is None:
        possible = ", ".join(LIFE[tool.status])
        raise ToolConflict(
            f"{event} is not possible: tool {tool.tool_id} is {tool.status}; possible: {possible}"
        )
    return msgspec.structs.replace(tool, status=after)


def with_state(tool: ToolMeta, event: StateEvent) -> ToolMeta:
    """Return the tool after an event of its running state.

    Raises:
        ToolConflict: The tool's state does not permit the event.
    """
    scheduling = tool.scheduling
    after = STATES[scheduling.state].get(event)
    if after is None:
        raise ToolConflict(
            f"{event} is not possible: tool {tool.tool_id} is {scheduling.state}; "
            f"possible: {', '.join(STATES[scheduling.state])}"
        )
    return msgspec.structs.replace(
        tool, scheduling=msgspec.structs.replace(scheduling, state=after)
    )
