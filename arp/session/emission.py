"""One fact on its way: what the ledger keeps of it, and what renderers are told.

Theory of operation. A session records facts; each has a sequence and at most one group of messages. While a
text fact is still *open*, neighbouring text joins it, so that a write to the ledger costs one fact, however
many tokens gathered. Frames are made once per profile and encoding and shared by all renderers of that kind.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec
from msgspec import Struct

from arp.protocol.codec import Encoding, encode_json, recode
from arp.protocol.json_value import JsonObject
from arp.protocol.messages import AgentMessage, Delta, DeltaPayload, InputEcho, Render
from arp.surface.profile import Profile


class Audience(NamedTuple):
    """Renderers that get the very same bytes."""

    profile: Profile
    encoding: Encoding
    part: str | None = None
    """A text part that they know by id (it came by a snapshot), not as the open one."""
    batch: bool = False
    """They take an array of messages in one frame."""


class Emission:
    """A recorded fact."""

    __slots__ = ("_frames", "chunks", "ids", "messages", "part", "payload", "sequence", "translated", "type")

    def __init__(
        self,
        sequence: int,
        type_name: str,
        payload: JsonObject,
        ids: dict[str, str],
        messages: list[AgentMessage],
    ) -> None:
        self.sequence = sequence
        self.type = type_name
        self.payload = payload
        self.ids = ids
        """Correlation ids of the fact, by field name."""
        self.messages = messages
        self.part: str | None = None
        """The text part that a closed delta belongs to."""
        self.chunks: list[str] | None = None
        """Text of an open delta; `None` for every other fact."""
        self.translated: dict[Profile, list[AgentMessage] | None] = {}
        """For profiles that do not take the messages as they are; `None`: needs a snapshot."""
        self._frames: dict[Audience, list[bytes] | None] = {}

    def close(self) -> None:
        """Ends an open delta: its text is what has gathered."""
        if self.chunks is None:
            return
        text = "".join(self.chunks)
        self.chunks = None
        delta = self.messages[0]
        assert isinstance(delta, Delta)
        payload = msgspec.structs.replace(delta.payload, delta=text)
        self.messages = [msgspec.structs.replace(delta, payload=payload)]
        self.payload["text"] = text

    def frames(self, audience: Audience) -> list[bytes] | None:
        """Gives the frames for an audience, made once; `None` if it needs a snapshot instead."""
        try:
            return self._frames[audience]
        except KeyError:
            frames = self._frames[audience] = self._make(audience)
            return frames

    def _make(self, audience: Audience) -> list[bytes] | None:
        messages = self.translated.get(audience.profile, self.messages)
        if messages is None:
            return None
        return [
            recode(encode_json(message), audience.encoding)
            for before in messages
            for message in addressed(before, audience, self.part)
        ]


def addressed(
    message: AgentMessage, audience: Audience, part: str | None = None
) -> list[AgentMessage]:
    """Gives a message as an audience takes it, apart from degrading.

    A renderer that knows only the draft is not told others' inputs and gets one component a `render`; only who asked for
    `thinking` sees it; a text part that came by a snapshot is named in its deltas.
    """
    profile = audience.profile
    match message:
        case Delta(payload=DeltaPayload(kind="thinking")):
            return [message] if profile.takes("thinking") else []
        case Delta() if part is not None and part == audience.part:
            payload = msgspec.structs.replace(message.payload, target=part)
            return [msgspec.structs.replace(message, payload=payload)]
        case InputEcho() if not profile.said_hello:
            return []
        case Render() if not profile.said_hello and len(message.components) > 1:
            return [msgspec.structs.replace(message, components=[one]) for one in message.components]
    return [message]


class Drained(Struct, frozen=True):
    """What a session recorded since it was last drained."""

    facts: list[bytes]
    emissions: list[Emission]
