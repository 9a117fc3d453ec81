"""A client without a server: tests say what the agent tells, and read what the user sent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

from arp.client.events import Connected, Disconnected, Event
from arp.protocol.components import Component
from arp.protocol.connection.screen import Screen
from arp.protocol.errors import ErrorPayload
from arp.protocol.json_value import Json, JsonObject
from arp.protocol.messages import (
    AgentHello,
    Command,
    Commit,
    Delta,
    DeltaPayload,
    ErrorMessage,
    InputAck,
    InputEcho,
    Patch,
    Render,
    ToolEnd,
    ToolEndPayload,
    ToolStart,
    ToolStartPayload,
    TurnMessage,
    TurnStatus,
)
from arp.protocol.patch import PatchOp, Update

SESSION = "s1"


class FakeClient:
    """Does what a chat needs of `ArpClient`; the verbs of the agent are below."""

    def __init__(self) -> None:
        self.screen = Screen()
        self.session_id: str | None = SESSION
        self.connected = True
        self.agent: AgentHello | None = None
        self.sent: list[tuple[str, JsonObject, str | None]] = []
        """Type, data and source of each input, in order."""
        self.arrived: asyncio.Queue[str] = asyncio.Queue()
        """Ids of the inputs, for a scripted agent."""
        self.seq = 0
        self._events: asyncio.Queue[Event | Exception | None] = asyncio.Queue()

    @property
    def commands(self) -> Sequence[Command]:
        """Those of the app; those of a session are the client's to add."""
        return self.agent.capabilities.commands if self.agent is not None else ()

    # -- what the chat calls ---------------------------------------------------------------------

    async def events(self) -> AsyncIterator[Event]:
        while (event := await self._events.get()) is not None:
            if isinstance(event, Exception):
                raise event
            yield event

    async def send_text(self, text: str, *, source: str | None = None) -> str:
        return self._send("text", {"text": text}, source)

    async def send_action(
        self, action: str, payload: Json = None, *, source: str | None = None
    ) -> str:
        data = {"action": action} if payload is None else {"action": action, "payload": payload}
        return self._send("action", data, source)

    async def send_form(
        self, fields: JsonObject, *, source: str | None = None, action: str | None = None
    ) -> str:
        return self._send("form_submit", {"fields": fields}, source)

    async def send_selection(self, selected: Sequence[Json], *, source: str | None = None) -> str:
        return self._send("selection", {"selected": list(selected)}, source)

    async def send_files(self, sources: Sequence[str], text: str | None = None) -> str:
        return self._send("file", {"paths": list(sources), "text": text}, None)

    async def cancel(self) -> str:
        return self._send("action", {"action": "arp.cancel"}, None)

    def _send(self, input_type: str, data: JsonObject, source: str | None) -> str:
        self.sent.append((input_type, data, source))
        input_id = f"i{len(self.sent)}"
        self.arrived.put_nowait(input_id)
        return input_id

    # -- what the agent does ---------------------------------------------------------------------

    def tell(self, *messages: Any) -> None:
        """Applies messages as one batch: all of them before the first is heard."""
        for message in messages:
            self.screen.apply(message)
        self.receive(*messages)

    def receive(self, *messages: Any) -> None:
        """Tells of messages that are on the screen already."""
        for message in messages:
            self._events.put_nowait(message)

    def input(self, text: str, turn: str = "t1", input_id: str | None = None) -> None:
        self.tell(
            InputEcho(
                session_id=SESSION,
                turn_id=turn,
                input_type="text",
                data={"text": text},
                id=input_id,
                seq=self._next(),
            )
        )

    def ack(self, input_id: str, turn: str = "t1") -> None:
        self.tell(InputAck(id=input_id, session_id=SESSION, turn_id=turn))

    def turn(self, status: TurnStatus, turn: str = "t1") -> None:
        self.tell(self.turn_message(status, turn))

    def turn_message(self, status: TurnStatus, turn: str = "t1") -> TurnMessage:
        return TurnMessage(session_id=SESSION, turn_id=turn, status=status, seq=self._next())

    def say(self, text: str, turn: str = "t1") -> None:
        self.tell(self.delta(text, turn))

    def delta(self, text: str, turn: str = "t1") -> Delta:
        return Delta(session_id=SESSION, turn_id=turn, payload=DeltaPayload(text), seq=self._next())

    def think(self, text: str, turn: str = "t1") -> None:
        payload = DeltaPayload(text, kind="thinking")
        self.tell(Delta(session_id=SESSION, turn_id=turn, payload=payload, seq=self._next()))

    def show(self, *components: Component, turn: str = "t1") -> None:
        self.tell(*self.rendered(*components, turn=turn))

    def rendered(self, *components: Component, turn: str = "t1") -> tuple[Render, Commit]:
        seq = self._next()
        return (
            Render(session_id=SESSION, turn_id=turn, components=list(components), seq=seq),
            Commit(session_id=SESSION, turn_id=turn, seq=seq),
        )

    def patch(self, *ops: PatchOp, turn: str = "t1") -> None:
        seq = self._next()
        self.tell(
            Patch(session_id=SESSION, turn_id=turn, ops=list(ops), seq=seq),
            Commit(session_id=SESSION, turn_id=turn, seq=seq),
        )

    def answer(self, component_id: str, answer: Json, turn: str = "t1") -> None:
        """Closes a question as the server does, for an answer that belongs to `turn`."""
        self.patch(
            Update(component_id, "props.state", "answered"),
            Update(component_id, "props.answer", answer),
            turn=turn,
        )
        self.tell(
            InputEcho(
                session_id=SESSION,
                turn_id=turn,
                input_type="action",
                data={"action": "answer"},
                source_component=component_id,
            )
        )

    def tool_start(self, tool: str, args: str = "{}", turn: str = "t1") -> ToolStart:
        payload = ToolStartPayload(tool, args, tool)
        return ToolStart(session_id=SESSION, turn_id=turn, payload=payload, seq=self._next())

    def tool_end(self, tool: str, ok: bool = True, error: str | None = None) -> ToolEnd:
        payload = ToolEndPayload(tool, ok, tool, error)
        return ToolEnd(session_id=SESSION, turn_id="t1", payload=payload, seq=self._next())

    def refuse(self, input_id: str, error: str, detail: str | None = None) -> None:
        payload = ErrorPayload(error, 11, detail, input_id)
        self.tell(ErrorMessage(payload=payload, session_id=SESSION))

    def end(self, status: TurnStatus = "completed", turn: str = "t1") -> None:
        seq = self._next()
        self.tell(
            Commit(session_id=SESSION, turn_id=turn, final=True, seq=seq),
            self.turn_message(status, turn),
        )

    def tell_what_breaks_the_chat(self) -> None:
        """Puts a fault where the chat reads events."""
        self._events.put_nowait(ZeroDivisionError("a fault of ours"))

    def lose(self) -> None:
        self.connected = False
        self._events.put_nowait(Disconnected("closed with 1006", 1.0))

    def come_back(self) -> None:
        self.connected = True
        self._events.put_nowait(Connected(SESSION, "replay"))

    def close(self) -> None:
        self._events.put_nowait(None)

    def _next(self) -> int:
        self.seq += 1
        return self.seq
