"""What a session's agent is saying: the open text, and the text part that it goes to.

Theory of operation. Text is the hot path. While a text is open it is a list of chunks; when it
closes it becomes one fact, and goes to the end of the turn's output: into the part that is last
there, or a new one. The part's node is remembered, so that going on with it costs nothing but the
text.
"""

from __future__ import annotations

from arp.protocol.screen import Screen
from arp.protocol.tree import Node
from arp.redact.redactor import Redactor
from arp.redact.stream import CONTEXT, SecretStream
from arp.session.growing import end_of
from arp.session.recorded import THINKING, Cursor, Text


class TextAssembler:
    """The text side of one session."""

    __slots__ = (
        "_characters",
        "_node",
        "_redactor",
        "_screen",
        "_thinking",
        "_turn",
        "is_last",
        "open",
        "stream",
    )

    def __init__(self, screen: Screen, redactor: Redactor) -> None:
        self.stream: SecretStream | None = None
        """Looks through what the turn says, while that goes on with what may be a secret."""
        self.open: Text | None = None
        """What neighbouring text may still join."""
        self.is_last = True
        """Nothing but text was recorded since the part was last looked at."""
        self._redactor = redactor
        self._screen = screen
        self._turn: str | None = None
        self._node: Node | None = None
        self._characters = 0
        self._thinking = 0

    def begin_turn(self, turn_id: str) -> None:
        """Forget the turn before."""
        self._turn = turn_id
        self.stream = None
        self._node = None
        self._characters = self._thinking = 0

    def show_on(self, screen: Screen) -> None:
        """Go on on another screen; nothing is being said."""
        self._screen, self._turn, self._node = screen, None, None
        self._characters = self._thinking = 0

    def cursor(self, sequence: int) -> Cursor:
        """Return how far a renderer is that has been told everything up to a sequence."""
        return Cursor(sequence, self._part(), self._characters, self._turn, self._thinking)

    def close(self, is_clean: bool = False) -> bool:
        """End the open text, if there is one, and show it.

        Args:
            is_clean: It has been looked through for secrets.

        Returns:
            Whether it was looked through now: then `stream` tells what was found, and there may be
            nothing to show yet.
        """
        spoken = self.open
        if spoken is None:
            return False
        self.open = None
        chunks = spoken.chunks
        text = chunks[0] if len(chunks) == 1 else "".join(chunks)
        is_looked_at = False
        if (self.stream is not None or text not in self._redactor.plain) and not is_clean:
            is_looked_at = self.stream is not None or self._redactor.has_sign(text)
            if is_looked_at:
                text = self._clean(spoken, text)
        spoken.close(text)
        text, node = spoken.text, self._node
        if not text:
            return is_looked_at
        if spoken.type == THINKING:
            self._screen.apply(spoken.messages[0])
            self._thinking += len(text)
            spoken.part = self._part()
        else:
            if (
                node is None
                or node.turn != spoken.turn_id
                or not (self.is_last or self._goes_on(node))
            ):
                node = self._begin_part(spoken)
            else:
                node.tail.append(text)
                node.seq = spoken.sequence
                self._characters += len(text)
            spoken.part = node.id
        spoken.characters, spoken.thinking = self._characters, self._thinking
        return is_looked_at

    def _clean(self, spoken: Text, text: str) -> str:
        """Return what of a text may be told now."""
        stream = self.stream
        if stream is None:
            stream = self.stream = SecretStream(self._redactor)
        return stream.admit(text, self._before(spoken))

    def _before(self, spoken: Text) -> str:
        """Return what was said last in the kind of a text."""
        if spoken.type == THINKING:
            return self._screen.turn(spoken.turn_id).thinking[-CONTEXT:]
        return end_of(self._node) if self._node is not None and self._part() else ""

    def finish(self, spoken: Text) -> str:
        """Return what is held of a text."""
        assert self.stream is not None
        return self.stream.finish(self._before(spoken))

    def calm(self) -> None:
        """Let go of what looks through the text, once nothing of that is left to follow."""
        if self.stream is not None and not self.stream.is_busy:
            self.stream = None

    def _part(self) -> str | None:
        """Return the text part that the next text would join."""
        node = self._node
        if node is None:
            return None
        if self._goes_on(node):
            return node.id
        self._node = None
        self._characters = 0
        return None

    def _begin_part(self, spoken: Text) -> Node:
        """Show a text the general way, and remember where it went."""
        self._screen.apply(spoken.messages[0])
        main = self._screen.surfaces["main"]
        node = self._node = main.nodes[main.outputs[spoken.turn_id][-1]]
        self._characters = len(main.component(node.id).props["content"])
        return node

    def _goes_on(self, node: Node) -> bool:
        """Return whether a part is still the last of its turn's output."""
        if self.is_last:
            return True
        self.is_last = True
        items = self._screen.surfaces["main"].outputs.get(node.turn)
        return bool(items) and items[-1] == node.id  # type: ignore[index]  # bool() says so
