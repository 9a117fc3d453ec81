"""What may happen now in the object dialect: every state and every transition, on one page.

Theory of operation. Rule 1: whatever decides what may happen to an object stands in these tables,
in the manner of `h11/_state.py`. Rule 2: both ends walk the same tables (`object_model`): the one
that sends a message before it sends it, the other when it arrives. The two may differ by what is
under way, and by nothing else. Rule 3: what is refused changes nothing.

The life of a surface, as requests (of the agent side) and events (of the renderer) change it:

    NEW ──role──► ROLED ──configure──► CONFIGURED ──commit──► SHOWN ◄──commit── RECONFIGURED
                                                                └───configure──────►│

A surface that is NEW or ROLED takes content, and shows nothing. CONFIGURED and RECONFIGURED owe a
commit: that is how a `configure` is answered. CLOSED was closed by the user, or its popup or
overlay is done; the agent destroys it. GONE is destroyed, or belongs to another agent. A surface
that was handed over begins as SHOWN, without a role.

The role of a surface is for life; if the renderer refuses it, the surface never had one. Its
commits are counted: BUSY and FULL have some that the renderer has not displayed; FULL has as many
as there may be. Its owner may hand it over: ASKED waits for the renderer's answer.

A session is CREATED by the agent side under an id that it proposes; the renderer may then choose
another, which makes it RESUMED. A connection FAILED when going on makes no sense.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum, auto
from typing import TypeAlias

from msgspec import Struct


class SurfaceLife(StrEnum):
    """How far a surface is."""

    NEW = auto()
    ROLED = auto()
    CONFIGURED = auto()
    SHOWN = auto()
    RECONFIGURED = auto()
    CLOSED = auto()
    GONE = auto()


class RoleState(StrEnum):
    """What a surface is for."""

    NONE = auto()
    TOPLEVEL = auto()
    POPUP = auto()
    OVERLAY = auto()


class CommitFlow(StrEnum):
    """How many commits of a surface are not displayed yet."""

    IDLE = auto()
    BUSY = auto()
    FULL = auto()


class Ownership(StrEnum):
    """Whose a surface is."""

    OWNED = auto()
    ASKED = auto()
    HANDED_OVER = auto()


class SessionLife(StrEnum):
    """How far the session of a connection is."""

    NONE = auto()
    CREATED = auto()
    RESUMED = auto()
    GONE = auto()


class ConnectionLife(StrEnum):
    """Whether a connection is of use."""

    OPEN = auto()
    FAILED = auto()


Moves: TypeAlias = Mapping[str, Mapping[str, str]]
"""State → what may happen → state behind it."""

_ENDS = {"destroy": SurfaceLife.GONE, "transferred": SurfaceLife.GONE}
_OPEN = {**_ENDS, "close": SurfaceLife.CLOSED}

SURFACE_LIFE: Moves = {
    SurfaceLife.NEW: {"role": SurfaceLife.ROLED, "commit": SurfaceLife.NEW, **_OPEN},
    SurfaceLife.ROLED: {
        "refused": SurfaceLife.NEW,  # the role
        "configure": SurfaceLife.CONFIGURED,
        "commit": SurfaceLife.ROLED,
        **_OPEN,
    },
    SurfaceLife.CONFIGURED: {
        "commit": SurfaceLife.SHOWN,
        # The newest one counts; one commit answers all.
        "configure": SurfaceLife.CONFIGURED,
        **_OPEN,
    },
    SurfaceLife.SHOWN: {
        "role": SurfaceLife.SHOWN,  # of a surface that was handed over, which has none
        "commit": SurfaceLife.SHOWN,
        "configure": SurfaceLife.RECONFIGURED,
        **_OPEN,
    },
    SurfaceLife.RECONFIGURED: {
        "role": SurfaceLife.RECONFIGURED,
        "commit": SurfaceLife.SHOWN,
        "configure": SurfaceLife.RECONFIGURED,
        **_OPEN,
    },
    SurfaceLife.CLOSED: {"destroy": SurfaceLife.GONE},
    SurfaceLife.GONE: {},
}

_REFUSED = {"refused": RoleState.NONE}  # at the side that asked for it; the other never gave it

SURFACE_ROLE: Moves = {
    RoleState.NONE: {
        "toplevel": RoleState.TOPLEVEL,
        "popup": RoleState.POPUP,
        "overlay": RoleState.OVERLAY,
    },
    RoleState.TOPLEVEL: _REFUSED,
    RoleState.POPUP: _REFUSED,
    RoleState.OVERLAY: _REFUSED,
}

COMMIT_FLOW: Moves = {
    CommitFlow.IDLE: {"commit": CommitFlow.BUSY, "fill": CommitFlow.FULL},
    CommitFlow.BUSY: {
        "commit": CommitFlow.BUSY,
        "fill": CommitFlow.FULL,
        "ack": CommitFlow.BUSY,
        "drain": CommitFlow.IDLE,
    },
    CommitFlow.FULL: {"ack": CommitFlow.BUSY, "drain": CommitFlow.IDLE},
}
"""`fill` is the last commit that there is room for, `drain` the `frame_ack` of all."""

OWNERSHIP: Moves = {
    Ownership.OWNED: {"transfer": Ownership.ASKED},
    Ownership.ASKED: {"denied": Ownership.OWNED, "transferred": Ownership.HANDED_OVER},
    Ownership.HANDED_OVER: {},
}

SESSION_LIFE: Moves = {
    SessionLife.NONE: {"create": SessionLife.CREATED},
    SessionLife.CREATED: {
        "resumed": SessionLife.RESUMED,
        "state_update": SessionLife.CREATED,
        "destroy": SessionLife.GONE,
    },
    SessionLife.RESUMED: {
        "state_update": SessionLife.RESUMED,
        "destroy": SessionLife.GONE,
    },
    SessionLife.GONE: {},
}

CONNECTION_LIFE: Moves = {
    ConnectionLife.OPEN: {"fail": ConnectionLife.FAILED},
    ConnectionLife.FAILED: {},
}


class Machine(Struct, frozen=True):
    """One table with the state that it begins in."""

    start: str
    moves: Moves


TABLES: Mapping[str, Machine] = {
    "surface": Machine(SurfaceLife.NEW, SURFACE_LIFE),
    "role": Machine(RoleState.NONE, SURFACE_ROLE),
    "commits": Machine(CommitFlow.IDLE, COMMIT_FLOW),
    "ownership": Machine(Ownership.OWNED, OWNERSHIP),
    "session": Machine(SessionLife.NONE, SESSION_LIFE),
    "connection": Machine(ConnectionLife.OPEN, CONNECTION_LIFE),
}
"""Every table by the name that the docs use."""

SUSPENDED = "suspended"
"""The state of a surface of which nothing is seen: it is sent no intermediate commits."""
