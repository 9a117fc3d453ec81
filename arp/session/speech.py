"""What a session's agent is saying: the open text, and the text part that it goes to.

Theory of operation. Text is the hot path. While a text is open it is a list of chunks; when it
closes it becomes one fact, and goes to the end of the turn's output: into the part that is last
there, or a new one. The part's node is remembered, so that going on with it costs nothing but the
text.
"""

from __future__ import annotations

from arp.protocol.delta_writer import DeltaWriter
from arp.protocol.node import Node
from arp.protocol.screen import Screen
from arp.session.emission import THINKING, Text
from arp.surface.snapshot import Place


class Speech:
    """The text side of one session."""

    __slots__ = (
        "_characters",
        "_node",
        "_screen",
        "_thinking",
        "_turn",
        "deltas",
        "is_last",
        "open",
    )

    def __init__(self, screen: Screen, session_id: str) -> None:
        self.deltas = DeltaWriter(session_id)
        self.open: Text | None = None
        """What neighbouring text may still join."""
        self.is_last = True
        """Nothing but text was recorded since the part was last looked at."""
        self._screen = screen
        self._turn: str | None = None
        self._node: Node | None = None
        self._characters = 0
        self._thinking = 0

    def begin_turn(self, turn_id: str) -> None:
        """Forgets the turn before."""
        self._turn = turn_id
        self._node = None
        self._characters = self._thinking = 0

    def place(self, sequence: int) -> Place:
        """Gives how far a renderer is that has been told everything up to a sequence."""
        return Place(sequence, self._part(), self._characters, self._turn, self._thinking)

    def close(self) -> None:
        """Ends the open text, if there is one, and shows it."""
        spoken = self.open
        if spoken is None:
            return
        self.open = None
        text = spoken.close()
        if spoken.type == THINKING:
            self._screen.apply(spoken.messages[0])
            self._thinking += len(text)
            spoken.part = self._part()
        else:
            node = self._node
            if node is None or not self._goes_on(node) or node.turn != spoken.turn_id:
                node = self._begin_part(spoken)
            else:
                node.tail.append(text)
                node.seq = spoken.sequence
                self._characters += len(text)
            spoken.part = node.id
        spoken.characters = self._characters
        spoken.thinking = self._thinking

    def _part(self) -> str | None:
        """Gives the text part that the next text would join."""
        node = self._node
        if node is None:
            return None
        if self._goes_on(node):
            return node.id
        self._node = None
        self._characters = 0
        return None

    def _begin_part(self, spoken: Text) -> Node:
        """Shows a text the general way, and remembers where it went."""
        self._screen.apply(spoken.messages[0])
        main = self._screen.surfaces["main"]
        node = self._node = main.nodes[main.outputs[spoken.turn_id][-1]]
        self._characters = len(main.component(node.id).props["content"])
        return node

    def _goes_on(self, node: Node) -> bool:
        """Tells whether a part is still the last of its turn's output."""
        if self.is_last:
            return True
        self.is_last = True
        items = self._screen.surfaces["main"].outputs.get(node.turn)
        return bool(items) and items[-1] == node.id  # type: ignore[index]  # bool() says so
