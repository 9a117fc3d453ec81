"""The line between the conversation and the prompt: what the agent is doing, and since when."""

from __future__ import annotations

from prompt_toolkit.formatted_text import StyleAndTextTuples

from arp.protocol.connection.screen import TurnScreen
from arp.protocol.safe_text import sanitise_line
from arp_terminal.programs.conversation import Conversation

SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
ASCII_SPINNER = "|/-\\"
TURNS_PER_S = 8
"""Steps of the spinner per second."""


def spinner(now: float, unicode: bool) -> str:
    """Return the sign of the spinner at a time, in seconds."""
    signs = SPINNER if unicode else ASCII_SPINNER
    return signs[int(now * TURNS_PER_S) % len(signs)]


class Status:
    """The status line; measures how long the current turn runs."""

    def __init__(self, conversation: Conversation, *, unicode: bool) -> None:
        self._conversation = conversation
        self._unicode = unicode
        self._turn_id: str | None = None
        self._since = 0.0

    def fragments(self, now: float) -> StyleAndTextTuples:
        """Return the current line; empty if the agent is idle.

        Args:
            now: Seconds of a monotonic clock.
        """
        turn = self._conversation.running
        if turn is None:
            self._turn_id = None
            if not self._conversation.client.connected:
                return [("class:warning", f"{spinner(now, self._unicode)} no connection")]
            return []
        if turn.id != self._turn_id:
            self._turn_id, self._since = turn.id, now
        return self._running(turn, now)

    def _running(self, turn: TurnScreen, now: float) -> StyleAndTextTuples:
        dot = "·" if self._unicode else "-"
        if not self._conversation.client.connected:
            return [
                ("class:warning", f"{spinner(now, self._unicode)} no connection; the agent goes on")
            ]
        if turn.status == "waiting":
            sign, words = "?", "waiting for your answer"
        else:
            sign, words = spinner(now, self._unicode), self._doing(turn)
        since = f" {dot} {now - self._since:.0f} s {dot} Ctrl-C stops"
        return [("class:spinner", f"{sign} "), ("", words), ("class:hint", since)]

    @staticmethod
    def _doing(turn: TurnScreen) -> str:
        tool = next((run.tool for run in reversed(turn.tools) if run.ok is None), None)
        if tool is not None:
            return f"using {sanitise_line(tool)[:40]}"
        return "thinking" if turn.thinking and not turn.parts else "answering"
