"""`RuntimeAgent`: an agent of ARP that runs any runtime, so that the runtime works on every screen.

Theory of operation. `AgentSessions` finds, creates and closes the session of the runtime behind a
thread of a session of ARP. A turn sends a message to the runtime, shows the events of the runtime's
turn until its end (`RuntimeTurn`) and asks its questions meanwhile (`TurnQuestions`).
`SessionCommands` carries out commands that switch a setting of the session; the runtime does not
receive them as messages.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

from arp.hub.removal import ExternalRecord, RemovalFailed
from arp.runtime.contract import types as ari
from arp.runtime.contract.errors import (
    AriError,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    Unimplemented,
)
from arp.runtime.contract.services import EventSubscription, RuntimeService, SessionUtilityManager
from arp.runtime.turns.agent_sessions import AgentSessions, AppCalls, RuntimeLimits
from arp.runtime.turns.linked_session import LinkedSession, RuntimeHandle
from arp.runtime.turns.runtime_messages import about_file, message_of
from arp.runtime.turns.runtime_turn import RuntimeTurn
from arp.runtime.turns.session_commands import COMPACT, SWITCHES, RuntimeOffers, SessionCommands
from arp.turn.tool import ToolFailed

if TYPE_CHECKING:
    from arp.turn.turn import Turn

BUSY_TRIES = 3
"""Number of active turns of the runtime that a message waits for before it is refused."""
MAX_FOLLOWING = 20
"""Largest number of messages in one turn that give the runtime the reasons of denials."""


class RuntimeAgent:
    """An agent of ARP with the turns of a runtime: `app.agent(RuntimeAgent(runtime))`.

    Args:
        runtime: Runtime that does the work.
        session: Request that creates sessions of the runtime.
        offers: What users may switch.
        limits: Limits for open sessions.
        app: App that receives events between turns; if `None`, they are shown with the next
            message.
    """

    def __init__(
        self,
        runtime: RuntimeService,
        *,
        session: ari.CreateSessionRequest | None = None,
        offers: RuntimeOffers | None = None,
        limits: RuntimeLimits | None = None,
        app: AppCalls | None = None,
    ) -> None:
        self._runtime = RuntimeHandle(runtime)
        self._commands = SessionCommands(self._runtime, offers or RuntimeOffers())
        self._sessions = AgentSessions(
            self._runtime,
            self._commands,
            session or ari.CreateSessionRequest(),
            limits or RuntimeLimits(),
            app,
        )
        self.runtime_name = re.sub("[^!-~]+", "-", str(getattr(runtime, "name", "")))[:64]
        """Name of the runtime if it is known before the first turn, otherwise empty. `runtimeId` in
        facts begins with it."""

    async def open(self) -> None:
        """Make the runtime accept calls; the app calls this at each start of its server.

        Raises:
            AriError: It cannot be opened again; the message says what to do.
        """
        await self._runtime.open()

    async def aclose(self) -> None:
        """Close the runtime, and forget its open sessions."""
        self._sessions.forget()
        await self._runtime.aclose()

    async def __call__(self, turn: Turn) -> None:
        """Run a turn."""
        try:
            await self._run(turn)
        except AriError as failed:
            name = self._runtime.name or "the runtime"
            raise ToolFailed(f"{name}: {failed.message}") from failed

    async def remove(self, kept: ExternalRecord) -> bool:
        """Delete a session of the runtime, as `SessionKeeper.remove` does."""
        if self.runtime_name not in ("", kept.keeper):
            return False
        try:
            await self._runtime.learn_name()
            if self._runtime.name != kept.keeper:
                return False
            await self._sessions.remove(kept.id)
        except Unimplemented:
            reason = f"{kept.keeper} cannot delete sessions"
            raise RemovalFailed(reason, can_retry=False) from None
        except NotFound as unknown:
            raise RemovalFailed(unknown.message, can_retry=False) from unknown
        except AriError as failed:
            raise RemovalFailed(failed.message, can_retry=True) from failed
        return True

    async def _run(self, turn: Turn) -> None:
        await self._runtime.learn_name()
        if turn.origin is not None and turn.origin == self._runtime.name:
            # The runtime began this turn in an open session. If the session was closed since then,
            # nothing is left to show.
            link = self._sessions.opened(str(turn.input.data.get("session")))
            if link is not None:
                link.began(turn)
                with self._sessions.using(link):
                    await self._play_own(turn, link)
            return
        link = await self._sessions.linked(turn)
        with self._sessions.using(link):
            await self._answer(turn, link)

    async def _answer(self, turn: Turn, link: LinkedSession) -> None:
        """Carry out a command, or send the user's message to the runtime."""
        if turn.id in link.taken:
            return  # an earlier turn has already given this answer to the runtime
        if turn.command in SWITCHES and await self._commands.carry_out(turn, link):
            return
        if turn.command == COMPACT and await self._compact(turn, link):
            return
        if turn.input.source_component is not None and (active := await self._active_turn(link)):
            # The runtime continues the turn that asked, and repeats its question: this input
            # answers it.
            link.began(turn)
            await self._play_rest(turn, link, active)
            return
        message = await message_of(turn, link)
        if message is None:
            await turn.say("Please write a message.")
            return
        try:
            events, turn_id = await self._send(turn, link, message, turn.id)
        except InvalidArgument as refused:
            raise about_file(turn, refused) from refused
        link.began(turn)
        await self._play(turn, link, events, turn_id)

    async def _compact(self, turn: Turn, link: LinkedSession) -> bool:
        """Carry out `/compact`; return `False` if the runtime has such a command of its own."""
        service = self._runtime.service
        if not await self._commands.offers_compact(link.session_id):
            return False
        assert isinstance(service, SessionUtilityManager)
        events = await self._runtime.events(link.session_id, None)
        request = ari.CompactSessionRequest(link.session_id, turn.arguments)
        begun = await service.compact_session(request)
        await self._runtime_turn(turn, link).play(events, begun.turn_id)
        return True

    async def _active_turn(self, link: LinkedSession) -> str:
        """Return the id of an active turn that the runtime itself began or continued, or `""`.

        If the active turn began with a message of ours, wait for its end first: it may have been
        cancelled and need some time to stop. Its events belong to the turn of ARP that sent the
        message.
        """
        active = (await self._runtime.session(link.session_id)).active_turn_id
        if not active or active != link.sent_turn:
            return active
        events = await self._runtime.events(link.session_id, link.cursor)
        try:
            async for event in events:
                link.cursor = event.sequence
                if event.done and event.turn_id == active:
                    break
        finally:
            await events.aclose()
        return (await self._runtime.session(link.session_id)).active_turn_id

    # -- turns of the runtime --------------------------------------------------------------------

    async def _send(
        self, turn: Turn, link: LinkedSession, message: ari.RuntimeMessage, key: str
    ) -> tuple[EventSubscription, str]:
        """Send a message; return the events of the turn that it begins, and the turn's id."""
        try:
            sent = await self._send_when_idle(turn, link, message, key)
            link.sent_turn = sent.turn_id
            return await self._runtime.events(link.session_id, sent.sequence), sent.turn_id
        except asyncio.CancelledError:
            # The runtime may already have the message, and no one would read the events of its
            # turn. If questions stay open, they belong to an earlier turn of the runtime, which the
            # next process continues: it must not be cancelled.
            if not turn._leaves_questions_open:
                await asyncio.shield(self._runtime.cancel(link.session_id))
            raise

    async def _send_when_idle(
        self, turn: Turn, link: LinkedSession, message: ari.RuntimeMessage, key: str
    ) -> ari.SendMessageResponse:
        """Send a message, after the turns that the runtime began by itself have been shown."""
        service = self._runtime.service
        metadata = {ari.RECORD_MESSAGES: "true"} if turn._host.services.records_messages else {}
        request = ari.SendMessageRequest(
            link.session_id, message, idempotency_key=key, metadata=metadata
        )
        for _ in range(BUSY_TRIES):
            try:
                return await service.send_message(request)
            except FailedPrecondition:
                if active := await self._active_turn(link):
                    await self._play_rest(turn, link, active)
        return await service.send_message(request)

    async def _play(
        self, turn: Turn, link: LinkedSession, events: EventSubscription, turn_id: str
    ) -> None:
        """Show a turn of the runtime.

        If a denial cannot carry its reason, the reason follows as a message of its own.
        """
        for number in range(MAX_FOLLOWING + 1):
            shown = self._runtime_turn(turn, link)
            await shown.play(events, turn_id)
            questions = shown.questions
            if not questions.unsent or number == MAX_FOLLOWING:
                questions.show_whether_sent("has not received")
                return
            message = ari.RuntimeMessage(content="\n\n".join(questions.messages))
            events, turn_id = await self._send(turn, link, message, f"{turn.id}.{number + 1}")
            questions.show_whether_sent("has received")

    async def _play_own(self, turn: Turn, link: LinkedSession) -> None:
        """Show a turn that the runtime began by itself, unless an earlier turn has shown it."""
        after, turn_id = turn.input.data.get("after"), turn.input.data.get("turn")
        if not isinstance(after, int) or not isinstance(turn_id, str) or after < link.cursor:
            return
        events = await self._runtime.events(link.session_id, after)
        await self._play(turn, link, events, turn_id)

    async def _play_rest(self, turn: Turn, link: LinkedSession, turn_id: str) -> None:
        """Show the rest of a turn of the runtime."""
        events = await self._runtime.events(link.session_id, link.cursor)
        await self._play(turn, link, events, turn_id)

    def _runtime_turn(self, turn: Turn, link: LinkedSession) -> RuntimeTurn:
        return RuntimeTurn(self._runtime, self._commands, turn, link)
