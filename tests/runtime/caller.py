"""Somebody who uses one session of a runtime: sends, reads events, answers.

caller = await Caller.create(runtime, model="fake-1")
events = await caller.turn("hello")                  # all of the turn, the terminal event last
await caller.send("run: touch f")
question = await caller.until(has_question)          # the events up to the one that is wanted
await caller.answer(question[-1], ari.PermissionResponse("allow"))
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from arp.runtime.contract import types as ari
from arp.runtime.contract.services import EventSubscription, RuntimeService

WITHIN_S = 30.0
"""So long a caller waits for an event."""


@dataclass
class Caller:
    """One session, and a subscription to it that misses nothing."""

    runtime: RuntimeService
    session_id: str
    events: EventSubscription

    @classmethod
    async def create(cls, runtime: RuntimeService, **fields: object) -> Caller:
        """Create a session; its events are read from the first one."""
        request = ari.CreateSessionRequest(**fields)  # type: ignore[arg-type]  # a test's fields
        session = (await runtime.create_session(request)).session
        return await cls._of(runtime, session.session_id, 0)

    @classmethod
    async def resume(cls, runtime: RuntimeService, session_id: str, **fields: object) -> Caller:
        """Resume a session; its events are read from then on."""
        request = ari.ResumeSessionRequest(session_id, **fields)  # type: ignore[arg-type]
        await runtime.resume_session(request)
        return await cls._of(runtime, session_id, None)

    @classmethod
    async def _of(cls, runtime: RuntimeService, session_id: str, after: int | None) -> Caller:
        events = await runtime.session_events(ari.SessionEventsRequest(session_id, after))
        return cls(runtime, session_id, events)

    async def session(self) -> ari.RuntimeSession:
        """Return the session as it is now."""
        return (await self.runtime.get_session(ari.GetSessionRequest(self.session_id))).session

    async def send(
        self, text: str, parts: Sequence[ari.ContentPart] = (), timeout_s: float = 0.0
    ) -> str:
        """Begin a turn and return its id."""
        message = ari.RuntimeMessage(content=text, parts=tuple(parts))
        request = ari.SendMessageRequest(self.session_id, message, timeout_s=timeout_s)
        return (await self.runtime.send_message(request)).turn_id

    async def until(self, wanted: Callable[[ari.Event], object]) -> list[ari.Event]:
        """Return the next events up to the one that is wanted."""
        seen: list[ari.Event] = []
        try:
            async with asyncio.timeout(WITHIN_S):
                async for event in self.events:
                    seen.append(event)
                    if wanted(event):
                        return seen
        except TimeoutError:
            pass
        raise AssertionError(f"it did not come; seen: {[str(event)[:200] for event in seen]}")

    async def turn(
        self,
        text: str,
        parts: Sequence[ari.ContentPart] = (),
        *,
        respond: ari.PermissionResponse | None = None,
    ) -> list[ari.Event]:
        """Send a message and return the events of its turn; `respond` answers what is asked."""
        await self.send(text, parts)
        seen: list[ari.Event] = []
        while not (seen and seen[-1].done):
            seen += await self.until(lambda event: event.done or event.permission)
            if not seen[-1].done:
                assert respond is not None, "the runtime asks"
                await self.answer(seen[-1], respond)
        return seen

    async def answer(self, question: ari.Event, response: ari.PermissionResponse) -> None:
        """Answer a permission request."""
        request = ari.RespondPermissionRequest(self.session_id, question.request_id, response)
        await self.runtime.respond_permission(request)

    async def cancel(self) -> None:
        """Cancel the active turn."""
        await self.runtime.cancel_turn(ari.CancelTurnRequest(self.session_id))


def asks(event: ari.Event) -> bool:
    """Return whether an event asks for permission."""
    return event.permission is not None


def kinds(events: Sequence[ari.Event]) -> list[str]:
    """Return the kinds of events, without what comes as often as it likes."""
    often = {ari.Lifecycle.STDERR, ari.Lifecycle.HEARTBEAT, ari.Lifecycle.USAGE}
    return [event.lifecycle or event.type for event in events if event.lifecycle not in often]


def merged(events: Sequence[ari.Event]) -> list[str]:
    """Return the kinds of events, with deltas that follow each other as one."""
    result: list[str] = []
    for kind in kinds(events):
        if kind not in ("text", "thinking") or result[-1:] != [kind]:
            result.append(kind)
    return result


def text_of(events: Sequence[ari.Event]) -> str:
    """Return what the agent said."""
    return "".join(event.content for event in events if event.type is ari.EventType.TEXT)


def only(events: Sequence[ari.Event], kind: str) -> ari.Event:
    """Return the one event of a kind."""
    (found,) = [event for event in events if kind in (event.type, event.lifecycle)]
    return found
