"""One use of a tool, as its author sees it."""

from __future__ import annotations

from typing import NoReturn

import msgspec

from arp.hub.wording import well_formed
from arp.protocol.errors import AgentFailed
from arp.protocol.json_value import Json, JsonObject
from arp.session.session import Session

PREVIEW_CHARACTERS = 2_000
"""Of a result kept in the ledger; the whole of it is the agent's own."""


class ToolFailed(AgentFailed):
    """A tool could not do what it was asked; the message is shown to everyone.

    An agent that lets it through ends its turn with the same message.
    """


class ToolCall:
    """A tool that runs; given by `async with turn.tool(name, args) as tool`."""

    def __init__(self, session: Session, turn_id: str, number: int, name: str) -> None:
        self.name = well_formed(name)
        self.call_id = f"{turn_id}.{number}"
        self._session = session
        self._turn_id = turn_id
        self._result: JsonObject = {}

    def progress(self, text: str) -> None:
        """Notes how far the tool is, in the ledger."""
        self._record("tool.progress", {"text": well_formed(text)})

    def result(self, value: Json) -> None:
        """Notes what came of it; a preview goes into the ledger.

        Args:
            value: Anything that can be written as JSON; what cannot is noted by its `repr`.
        """
        try:
            text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        except (TypeError, ValueError):
            text = repr(value)
        text = well_formed(text)
        self._result = {"preview": text[:PREVIEW_CHARACTERS], "characters": len(text)}

    def fail(self, message: str) -> NoReturn:
        """Ends the tool as failed, and shows why.

        Args:
            message: What went wrong, for those who watch.

        Raises:
            ToolFailed: Always, with the message; catch it around the `async with` to go on.
        """
        raise ToolFailed(well_formed(message))

    def start(self, args: Json) -> None:
        """Tells everyone that the tool begins."""
        self._record("tool.started", {"tool": self.name})
        self._record("tool.args", {"tool": self.name, "args": _as_json(args)})

    def end(self, error: str | None = None) -> None:
        """Tells everyone that it is done."""
        if error is None:
            self._record("tool.result", {"tool": self.name, **self._result})
        else:
            self._record("tool.failed", {"tool": self.name, "error": well_formed(error)})

    def _record(self, type_name: str, payload: JsonObject) -> None:
        ids = {"step_id": self.call_id, "tool_call_id": self.call_id}
        self._session.in_turn(type_name, self._turn_id, payload, **ids)


def _as_json(args: Json) -> str:
    """Gives arguments as JSON; a string that is JSON already stays as it is."""
    if isinstance(args, str) and _is_json(args):
        return args
    try:
        return msgspec.json.encode(args).decode()
    except (TypeError, ValueError):
        return msgspec.json.encode(well_formed(repr(args))).decode()


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return False
    return True
