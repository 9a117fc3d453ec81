"""The draft's workflow stream: one turn as server-sent events with the draft's event names.

It reads the frames of a renderer that knows only the draft and writes them in the older form; the
turn's end ends the stream. Source: protocol.md 6 (workflow SSE).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from arp.protocol.codec import agent_decoder
from arp.protocol.component import Component
from arp.protocol.json_value import JsonObject
from arp.protocol.messages import (
    AgentMessage,
    Commit,
    Delta,
    ErrorMessage,
    Patch,
    Render,
    ToolEnd,
    ToolStart,
)
from arp.protocol.screen import Screen


class WorkflowWriter:
    """Turns a draft renderer's frames into workflow events."""

    def __init__(self, run_id: str, turn_id: str) -> None:
        self.done = False
        self._run_id = run_id
        self._turn_id = turn_id
        self._decoder = agent_decoder("json")
        self._screen = Screen()
        """The draft's stream has no patches: a patched component is rendered again, whole."""
        self._pending: list[Render | Patch] = []

    def prime(self, messages: Sequence[AgentMessage]) -> None:
        """Learns what stood there before: this turn may patch it."""
        for message in messages:
            if getattr(message, "turn_id", None) != self._turn_id:
                self._screen.apply(message)

    def begin(self) -> bytes:
        """Gives the first event."""
        return _event("run_id", {"run_id": self._run_id})

    def event(self, frame: bytes) -> bytes:
        """Gives the events of one frame."""
        return b"".join(self._one(message) for message in self._decoder.decode(frame))

    def end(self, code: int, reason: str) -> bytes:
        """Gives nothing: the draft has no event for it."""
        return b""

    def _one(self, message: object) -> bytes:
        if getattr(message, "turn_id", None) not in (self._turn_id, None):
            return b""
        self._screen.apply(message)
        match message:
            case Delta(payload=payload):
                return _event("delta", {"delta": payload.delta})
            case ToolStart(payload=start):
                return _event("tool_start", {"tool": start.tool, "args": start.args})
            case ToolEnd(payload=end):
                return _event("tool_end", {"tool": end.tool, "ok": end.ok})
            case ErrorMessage(payload=error):
                return _event("error", {"error": error.error, "code": error.code})
            case Render() | Patch():
                self._pending.append(message)
            case Commit():
                return self._commit(message)
        return b""

    def _commit(self, commit: Commit) -> bytes:
        pending, self._pending = self._pending, []
        shown = b"".join(event for change in pending for event in self._renders(change))
        if not commit.final:
            return shown
        self.done = True
        if commit.usage:
            shown += _event("usage", commit.usage)
        return shown + b"event: done\ndata: [DONE]\n\n"

    def _renders(self, change: Render | Patch) -> list[bytes]:
        tree = self._screen.surfaces[change.surface]
        if isinstance(change, Render):
            tool, ids = change.tool_name or "", [component.id for component in change.components]
        else:
            tool, ids = "", [_target(op) for op in change.ops]
        roots: dict[str, None] = {}
        out: list[bytes] = []
        for name in ids:
            node = tree.nodes.get(name) or tree.gone.get(name)
            while node is not None and node.parent is not None:
                node = node.parent
            if node is not None and node.id in tree.nodes:
                roots[node.id] = None
            elif node is not None:
                out.append(_event("tool_remove", {"id": node.id}))
        return out + [_shown(tree.component(root), tool) for root in roots]


def _shown(component: Component, tool: str) -> bytes:
    props = component.props
    told = {"tool": tool, "component": component.type, "props": props, "id": component.id}
    return _event("tool_render", told)


def _target(op: object) -> str:
    component = getattr(op, "component", None)
    return component.id if component is not None else getattr(op, "target", "")


def _event(name: str, data: JsonObject) -> bytes:
    return f"event: {name}\ndata: ".encode() + msgspec.json.encode(data) + b"\n\n"
