"""What a session has recorded and not yet handed over: facts in order, the last text still open."""

from __future__ import annotations

from arp.ledger.fact_writer import FactWriter
from arp.protocol.json_value import Json, JsonObject
from arp.protocol.messages import AgentMessage
from arp.protocol.screen import Screen
from arp.session.emission import Drained, Emission, Recorded, Said, Text
from arp.session.projection import At, project
from arp.session.speech import Speech
from arp.surface.snapshot import Place

THREAD = "main"
"""A session has one thread; the profile wants it named."""


class Log:
    """Numbers facts, and shows them on the session's screen."""

    __slots__ = ("_recorded", "_screen", "_session_id", "_writer", "sequence", "speech", "stored")

    def __init__(self, runtime_id: str, session_id: str, screen: Screen) -> None:
        self.sequence = 0
        """Of the newest fact."""
        self.stored = 0
        """How far the ledger holds them."""
        self.speech = Speech(screen, session_id)
        self._session_id = session_id
        self._screen = screen
        self._writer = FactWriter(runtime_id, session_id, THREAD)
        self._recorded: list[Recorded] = []

    @property
    def is_empty(self) -> bool:
        """Tells whether there is nothing to drain."""
        return not self._recorded

    def add(
        self,
        type_name: str,
        payload: JsonObject,
        ids: dict[str, Json],
        messages: list[AgentMessage] | None = None,
    ) -> Emission:
        """Records a fact with the next sequence.

        Args:
            type_name: Of the closed list of the profile.
            payload: Values that encode to JSON. Not changed by anyone afterwards.
            ids: Correlation ids by field name.
            messages: What shows it, when the screen shows that already; `None` = by `project`.
        """
        self.speech.close()
        self.speech.is_last = False
        self.sequence += 1
        if messages is None:
            at = At(self._session_id, self.sequence, ids.get("turn_id"))
            messages = project(at, type_name, payload, ids)
            for message in messages:
                self._screen.apply(message, self.sequence)
        emission = Emission(self.sequence, type_name, payload, ids, messages)
        self._recorded.append(emission)
        return emission

    def say(self, turn_id: str, text: str, type_name: str) -> None:
        """Records text; neighbouring text of one kind and turn shares one fact."""
        speech = self.speech
        spoken = speech.open
        if spoken is None or spoken.type != type_name or spoken.turn_id != turn_id:
            if spoken is not None:
                speech.close()
            self.sequence += 1
            spoken = speech.open = Text(self.sequence, type_name, turn_id, speech.deltas)
            self._recorded.append(spoken)
        spoken.chunks.append(text)

    def place(self) -> Place:
        """Gives how far a renderer is that has been told everything; closes the open text."""
        self.speech.close()
        return self.speech.place(self.sequence)

    def drain(self, at: str) -> Said | Drained:
        """Takes what was recorded since the last time, as facts of one moment.

        Args:
            at: RFC 3339.
        """
        recorded, speech = self._recorded, self.speech
        self._recorded = []
        text = speech.open
        speech.close()
        if text is not None and len(recorded) == 1:
            return Said([text.fact(self._writer, at)], text)
        facts = [one.fact(self._writer, at) for one in recorded]
        return Drained(facts, recorded, speech.place(self.sequence))
