"""What a drawing depends on besides the component."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from msgspec import Struct

from arp.protocol.components import Component

Simplify: TypeAlias = Callable[[Component], Sequence[Component]]
"""Returns what replaces a component that a renderer does not know; never raises."""


class Options(Struct, frozen=True):
    """How to draw; equal options and equal components give equal lines."""

    width: int = 80
    """Cells in a line; at least 1. No line gets longer."""
    colour: bool = True
    """Whether styles are sent at all (colours, bold, dim); without them words and signs
    show everything."""
    unicode: bool = True
    """Whether signs beyond ASCII may be drawn; the agent's own text is not changed by it."""
    level: str = "standard"
    """Conformance level (protocol.md 7): components beyond it show their fallback."""
    max_rows: int | None = 100
    """Rows of a table that are shown; `None` = all."""
    server: str = ""
    """Address of the server over HTTP, without a slash at its end; empty: it has none."""
    simplify: Simplify | None = None
    """How a component beyond the level is degraded, where no agent side has done it."""
    depth: int = 0
    """How many layout components are around it; drawing stops at `MAX_DEPTH`."""


MAX_DEPTH = 8
"""More than the protocol allows (3), so that only a broken peer meets it."""

MIN_WIDTH = 8
"""Below this nothing can be laid out; a narrower terminal is drawn for this width and cut."""
