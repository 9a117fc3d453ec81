"""The states and transitions of objects in the object dialect, on one page.

Theory of operation. Rule 1: every state that decides which messages are allowed is in these tables,
in the manner of `h11/_state.py`. Rule 2: both sides apply the same tables (`model`): the sender
before it sends a message, the receiver on arrival. The two sides differ only by the messages in
transit. Rule 3: a refused message changes nothing.

The life of a surface, driven by requests of the agent side and events of the renderer:

    NEW ──role──► ROLED ──configure──► CONFIGURED ──commit──► SHOWN ◄──commit── RECONFIGURED
                                                                └───configure──────►│

NEW and ROLED surfaces accept content but show nothing. In CONFIGURED and RECONFIGURED the agent
side must answer a `configure` with a commit. CLOSED means that the user closed the surface, or
dismissed it as a popup or an overlay; the agent then destroys it. GONE means destroyed, or
transferred to another agent. For its new owner, a transferred surface is SHOWN and has no role yet.

A surface keeps its role for life; a role that the renderer refuses counts as never given. Commits
that the renderer has not displayed are pending: a BUSY surface has some, a FULL one the maximum. An
owner may transfer a surface: ASKED waits for the answer of the renderer.

The agent side proposes a session id, and the session is CREATED. If the renderer chooses another
session, the session is RESUMED. A FAILED connection cannot continue.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum, auto
from typing import TypeAlias

from msgspec import Struct


class SurfaceLife(StrEnum):
    """Life cycle of a surface."""

    NEW = auto()
    ROLED = auto()
    CONFIGURED = auto()
    SHOWN = auto()
    RECONFIGURED = auto()
    CLOSED = auto()
    GONE = auto()


class RoleState(StrEnum):
    """Role of a surface."""

    NONE = auto()
    TOPLEVEL = auto()
    POPUP = auto()
    OVERLAY = auto()


class CommitFlow(StrEnum):
    """Pending commits of a surface: none, some, or the maximum."""

    IDLE = auto()
    BUSY = auto()
    FULL = auto()


class Ownership(StrEnum):
    """Ownership of a surface, as its agent sees it."""

    OWNED = auto()
    ASKED = auto()
    HANDED_OVER = auto()


class SessionLife(StrEnum):
    """Life cycle of the session of a connection."""

    NONE = auto()
    CREATED = auto()
    RESUMED = auto()
    GONE = auto()


class ConnectionLife(StrEnum):
    """Life cycle of a connection."""

    OPEN = auto()
    FAILED = auto()


Moves: TypeAlias = Mapping[str, Mapping[str, str]]
"""State → allowed event → next state."""

_ENDS = {"destroy": SurfaceLife.GONE, "transferred": SurfaceLife.GONE}
_OPEN = {**_ENDS, "close": SurfaceLife.CLOSED}

SURFACE_LIFE: Moves = {
    SurfaceLife.NEW: {"role": SurfaceLife.ROLED, "commit": SurfaceLife.NEW, **_OPEN},
    SurfaceLife.ROLED: {
        "refused": SurfaceLife.NEW,  # the renderer refused the role
        "configure": SurfaceLife.CONFIGURED,
        "commit": SurfaceLife.ROLED,
        **_OPEN,
    },
    SurfaceLife.CONFIGURED: {
        "commit": SurfaceLife.SHOWN,
        # Only the newest `configure` counts; one commit answers all of them.
        "configure": SurfaceLife.CONFIGURED,
        **_OPEN,
    },
    SurfaceLife.SHOWN: {
        "role": SurfaceLife.SHOWN,  # a transferred surface has no role yet
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

_REFUSED = {"refused": RoleState.NONE}  # only on the agent side; the renderer never gave the role

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
"""`fill` is the commit that reaches the maximum, `drain` the `frame_ack` of all commits."""

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
    """A state machine: its initial state and its table of transitions."""

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
"""All tables, by their names in the docs."""

SUSPENDED = "suspended"
"""State of an invisible surface; the agent side skips intermediate commits."""
