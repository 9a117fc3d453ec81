"""Options of drawings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from msgspec import Struct

from arp.protocol.components import Component

Simplify: TypeAlias = Callable[[Component], Sequence[Component]]
"""Function that returns the replacement of a component that a renderer lacks; never raises."""


class Options(Struct, frozen=True):
    """How to draw. Equal options and equal components result in equal lines."""

    width: int = 80
    """Maximum number of cells in a line; at least 1."""
    colour: bool = True
    """Whether to use styles (colours, bold, dim). Without them, words and signs say everything."""
    unicode: bool = True
    """Whether to draw signs beyond ASCII. Text of the agent is not changed by it."""
    level: str = "standard"
    """Conformance level (protocol.md 7). Other components are drawn as their fallback."""
    max_rows: int | None = 100
    """Maximum number of rows of a table; `None` means all."""
    server: str = ""
    """HTTP address of the server, without a slash at its end; empty if it has none."""
    simplify: Simplify | None = None
    """Replaces components beyond the level, if no agent side has done it."""
    depth: int = 0
    """Number of layout components around the drawing, which stops at `MAX_DEPTH`."""


MAX_DEPTH = 8
"""Maximum nesting of components. The protocol allows 3, so only a broken peer reaches it."""

MIN_WIDTH = 8
"""Minimum width of a layout; output for a narrower terminal is drawn for this width and cut."""
