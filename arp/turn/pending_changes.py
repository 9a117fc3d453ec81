"""`PendingChanges`: the changes of a turn since its last commit, and the calls that made them.

A refused commit raises at the agent's next await of the turn, which may be many lines after the
invalid call. So each change remembers its call, and the error names it.
"""

from __future__ import annotations

import linecache
import re
import sys
from contextvars import ContextVar
from types import FrameType
from typing import NamedTuple

from arp.live.loop_watch import is_authors
from arp.protocol.errors import ArpError
from arp.surface.change import Change, PatchChange, RenderChange

_ITEM = re.compile(r"(?:ops|components)\[(\d+)\]")


_LOOP = ("asyncio.events", "asyncio.base_events", "asyncio.runners")
"""Modules of the event loop; frames below them belong to what started the loop."""


class CallPlace(NamedTuple):
    """Position of a call in the source."""

    path: str
    line: int
    function: str

    def __str__(self) -> str:
        """Return the position in the format of a traceback, with the source line."""
        written = linecache.getline(self.path, self.line).strip()
        return f'  File "{self.path}", line {self.line}, in {self.function}\n    {written}'.rstrip()


CALLED_FROM: ContextVar[CallPlace | None] = ContextVar("arp_called_from", default=None)
"""Position of the call of another thread that the event loop is running."""


def call_place() -> CallPlace | None:
    """Return the newest line of an author in the call stack; `None` if there is none."""
    if (place := CALLED_FROM.get()) is not None:
        return place
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__") not in _LOOP:
        code = frame.f_code
        if is_authors(code.co_filename):
            return CallPlace(code.co_filename, frame.f_lineno, code.co_name)
        frame = frame.f_back
    return None


class _ChangeCall(NamedTuple):
    """First item that a call added to a commit."""

    change: int
    item: int
    """Index of the operation or component within the change."""
    place: CallPlace


class PendingCommit:
    """Changes of one surface that will be committed together."""

    __slots__ = ("_calls", "changes")

    def __init__(self) -> None:
        self.changes: list[Change] = []
        self._calls: list[_ChangeCall] = []

    def add(self, change: Change) -> None:
        """Add a change; it is merged with the last one if both have the same kind."""
        place, item = call_place(), 0
        match self.changes[-1] if self.changes else None, change:
            case (RenderChange() as last, RenderChange()) if last.tool_name == change.tool_name:
                item = len(last.components)
                joined = [*last.components, *change.components]
                self.changes[-1] = RenderChange(joined, last.tool_name)
            case PatchChange() as last, PatchChange():
                item = len(last.ops)
                last.ops.extend(change.ops)
            case _:
                self.changes.append(change)
        if place is not None:
            self._calls.append(_ChangeCall(len(self.changes) - 1, item, place))

    def name_call(self, error: ArpError) -> None:
        """Add a note with the call to an error of this commit, if the error is about one item."""
        found = _ITEM.match(error.message)
        if error.change is None or found is None:
            return
        wrong = (error.change, int(found[1]))
        before = [call for call in self._calls if call[:2] <= wrong]
        if before:
            error.add_note(f"It was refused because of this call:\n{before[-1].place}")


class PendingChanges(dict[str, PendingCommit]):
    """Pending commits by surface."""

    __slots__ = ()

    def add(self, surface: str, change: Change) -> None:
        """Add a change of a surface."""
        self.setdefault(surface, PendingCommit()).add(change)

    def drop(self, surface: str) -> None:
        """Drop the changes of a surface."""
        self.pop(surface, None)

    def pop_all(self) -> dict[str, PendingCommit]:
        """Remove and return all commits, in the order of the surfaces' first changes."""
        taken = dict(self)
        self.clear()
        return taken
