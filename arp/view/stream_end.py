"""The end of a stream for renderers of the draft.

A renderer of the draft sends nothing while a turn streams: it waits for a final commit. It
therefore also gets one when the agent waits for the user: at a question, after an answer while
another question is open, and after a text that is queued until a question is answered. Source:
protocol.md 2, S6.
"""

from __future__ import annotations

from typing import Any

from arp.protocol.connection.screen import Screen, TurnScreen
from arp.protocol.json_value import JsonObject
from arp.protocol.messages import AgentMessage, Commit


def is_waiting(turn: TurnScreen) -> bool:
    """Return whether a turn waits for an answer and will continue with it."""
    return turn.status == "waiting" and not turn.final


def ends_stream(type_name: str, payload: JsonObject) -> bool:
    """Return whether the agent waits for the user after this fact."""
    if type_name == "action.required":
        return True
    is_answer = type_name == "action.resolved" and payload.get("input") is not None
    return is_answer and not payload.get("resumes") and payload.get("ends") is None


def holds_queue(type_name: str, payload: JsonObject, screen: Screen) -> bool:
    """Return whether a fact queued turns that start only after an answer."""
    if type_name != "queue.changed" or not payload.get("queued"):
        return False
    return any(map(is_waiting, screen.turns.values()))


def stream_end(messages: list[AgentMessage]) -> list[AgentMessage]:
    """Return the messages of a fact with the commit that ends the stream.

    The commit has no `seq`: the messages before it carry the `seq` of the fact, and a renderer
    ignores a number that it has already applied.
    """
    last: Any = messages[-1]
    end = Commit(session_id=last.session_id, turn_id=last.turn_id, final=True)
    return [*messages, end]
