"""Keep one session connected: open links, carry frames, connect again when a link is lost.

Theory of operation. A *connection* is one link, from the `hello` to its loss. It is *ready* once
the server has answered with `session`; then every input without an answer is sent (again), and new
ones are sent as they come. While it is not ready, inputs only gather, with their ids, in the
`RendererConnection`. Four tasks serve a connection: the reader, the writer, the uploads and the
watch for signs of life; what ends one of them ends all. Frames of a link that is lost are never
read again, so that what the screen is told stays in order.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import msgspec

from arp.client.errors import LinkLost, ServerUnreachable, lost_by_refusal
from arp.client.events import Connected, Disconnected, Event
from arp.client.link import Link
from arp.client.options import Backoff
from arp.protocol.capabilities import PING
from arp.protocol.errors import ArpError
from arp.protocol.messages import (
    AgentHello,
    AgentMessage,
    Commit,
    ErrorMessage,
    Patch,
    Ping,
    Pong,
    Render,
    SessionReady,
)
from arp.protocol.renderer_connection import RendererConnection

_log = logging.getLogger(__name__)

SHOWN_BYTES = 75
"""How much of a frame a line of the log repeats, at DEBUG only."""

ASK_AFTER_S = 10.0
"""A server that is silent for so long is asked for a sign of life, if it has the feature `ping`."""

ANSWER_WITHIN_S = 10.0
"""Without one for so long the connection is dead."""

MOST_PATIENCE_S = 80.0
"""How long it may take at most, when connections were lost for that again and again."""

DRAFT_AFTER_S = 1.0
"""An agent side that says `hello`, and does not answer ours for so long, knows the draft alone."""

LATE_S = 1.0
"""A wait that took so much longer says nothing about the server: it is asked again."""

Outgoing: TypeAlias = bytes | Callable[[], Awaitable[None]]
"""A frame, or what sends one."""

Dial = Callable[[bytes], Awaitable[Link]]
Listen = Callable[[Event, int], None]
"""Takes an event, and the bytes that it came in."""


class Driver:
    """The I/O of one `RendererConnection`."""

    def __init__(
        self,
        connection: RendererConnection,
        dial: Dial,
        listen: Listen,
        *,
        backoff: Backoff,
        answer_timeout_s: float,
        acks: bool,
    ) -> None:
        self.connection = connection
        self.ready = asyncio.Event()
        """Set while there is a connection with a session."""
        self.reconnects = True
        """Whether to connect again after a loss."""
        self._dial = dial
        self._listen = listen
        self._backoff = backoff
        self._answer_timeout_s = answer_timeout_s
        self._outbox = FrameQueue()
        self._acks = acks
        """Whether this renderer says what it has displayed."""
        self._held: list[AgentMessage] = []
        """Messages that take effect with their commit; callbacks get them then."""
        self._deadline: asyncio.Timeout | None = None
        """When the agent side must have sent `session`; `None` outside of a connection."""
        self._assumption: asyncio.TimerHandle | None = None
        """Treats an agent side that does not answer our `hello` as one of the draft."""
        self._heard_at = 0.0
        """When the last frame came, on the loop's clock."""
        self._patience_s = ANSWER_WITHIN_S / 2
        """How long an answer may take, if that is more than `ANSWER_WITHIN_S`: twice as long after
        each connection that ended without one, until one comes."""

    async def run(self, upload: Callable[[str], Awaitable[None]]) -> ArpError:
        """Connect, and connect again after every loss, until that makes no sense.

        Args:
            upload: Sends files to the session of that id, for as long as the connection is ready.

        Returns:
            Why it does not connect again. The last event was a `Disconnected` without retry.

        Cancel: safe; the link is closed.
        """
        attempt = 0
        while True:
            was_ready, lost = await self._connect_once(upload)
            if lost.error is not None or not self.reconnects:
                self._listen(Disconnected(lost.reason, None), 0)
                return lost.error or ServerUnreachable(lost.reason)
            attempt = 0 if was_ready else attempt
            delay_s = self._backoff.delay_s(attempt)
            attempt += 1
            self._listen(Disconnected(lost.reason, delay_s), 0)
            await self._backoff.sleep(delay_s)

    def send(self, frame: bytes) -> None:
        """Send the frame of an input as soon as there is a session."""
        if self.ready.is_set():
            self._outbox.put(frame)
            self._echo()

    def send_by(self, send: Callable[[], Awaitable[None]]) -> None:
        """Call what sends a frame with files, when the frames before it have left."""
        if self.ready.is_set():
            self._outbox.put(send)

    def receive_json(self, frame: bytes) -> None:
        """Take a frame that came beside the link, as JSON."""
        try:
            self._receive(frame, beside=True)
        except msgspec.DecodeError:
            _log.debug("not JSON, passed over: %r", frame[:SHOWN_BYTES])

    # -- one connection --------------------------------------------------------------------------

    async def _connect_once(
        self, upload: Callable[[str], Awaitable[None]]
    ) -> tuple[bool, LinkLost]:
        """Return whether the connection ever was ready, and how it ended."""
        self._outbox.clear()
        self._held.clear()
        try:
            link = await self._dial(self.connection.hello())
        except LinkLost as lost:
            _log.info("no connection: %s", lost.reason)
            return False, lost
        _log.info("connection opened")
        try:
            loss = await self._serve(link, upload)
        finally:
            # After a server that desynchronises us each time the waits grow too.
            was_ready = self.ready.is_set() and not self.connection.is_desynchronised
            self.ready.clear()
            self._deadline = None
            if self._assumption is not None:
                self._assumption.cancel()
            await link.aclose()
        _log.info("connection closed: %s", loss.reason)
        return was_ready, loss

    async def _serve(self, link: Link, upload: Callable[[str], Awaitable[None]]) -> LinkLost:
        # Not a TaskGroup: before Python 3.13 one that fails just then forgets it was cancelled.
        tasks = [
            asyncio.create_task(self._read(link)),
            asyncio.create_task(self._write(link)),
            asyncio.create_task(self._upload(upload)),
            asyncio.create_task(self._watch(link)),
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            ends = await asyncio.gather(*tasks, return_exceptions=True)
        losses = [end for end in ends if isinstance(end, LinkLost)]
        for end in ends:
            if isinstance(end, Exception) and end not in losses:
                raise end
        return next((lost for lost in losses if lost.error is not None), losses[0])

    async def _read(self, link: Link) -> None:
        try:
            async with asyncio.timeout(self._answer_timeout_s) as self._deadline:
                while True:
                    self._receive(await link.receive(), link.carries_acks)
        except TimeoutError:
            reason = f"no answer to our hello within {self._answer_timeout_s:g} s"
            raise LinkLost(reason) from None

    async def _write(self, link: Link) -> None:
        while True:
            for frame in await self._outbox.take():
                if not isinstance(frame, bytes):
                    await frame()
                    continue
                _log.debug("> %.75r", frame)
                answer = await link.send(frame)
                if answer is not None:
                    self._receive(answer)

    async def _watch(self, link: Link) -> None:
        """Ask for a sign of life after a silence, and end a link on which none comes."""
        await self.ready.wait()
        if not (link.is_remote and self._offers(PING)):
            await asyncio.Event().wait()  # until another task ends the connection
        clock = asyncio.get_running_loop().time
        while True:
            silent_s = clock() - self._heard_at
            if silent_s < ASK_AFTER_S:
                await asyncio.sleep(ASK_AFTER_S - silent_s)
                continue
            asked_at = clock()
            self._outbox.put(self.connection.ping(secrets.token_hex(8)))
            wait_s = max(self._patience_s, ANSWER_WITHIN_S)
            await asyncio.sleep(wait_s)
            if self._heard_at >= asked_at:
                self._patience_s = ANSWER_WITHIN_S / 2
            # Else the answer may be there unread: this loop was blocked, or the machine asleep.
            elif clock() - asked_at < wait_s + LATE_S:
                # One large message on a slow way is silence too: it must get through some time.
                self._patience_s = min(2 * self._patience_s, MOST_PATIENCE_S)
                raise LinkLost(f"the server has been silent for {clock() - self._heard_at:.0f} s")

    async def _upload(self, upload: Callable[[str], Awaitable[None]]) -> None:
        await self.ready.wait()
        session_id = self.connection.session_id
        assert session_id is not None
        await upload(session_id)

    # -- frames ----------------------------------------------------------------------------------

    def _receive(self, frame: bytes, acks: bool = False, *, beside: bool = False) -> None:
        _log.debug("< %r", frame[:SHOWN_BYTES])
        self._heard_at = asyncio.get_running_loop().time()
        seq = self.connection.seq
        connection = self.connection
        messages = (connection.receive_json if beside else connection.receive)(frame)
        for reply in connection.replies():
            self._outbox.put(reply)
        weight = len(frame) // max(1, len(messages))
        for message in messages:
            self._tell(message, weight)
        committed = any(isinstance(message, Commit) for message in messages)
        if acks and committed and self.connection.seq != seq and self._wants_acks():
            self._outbox.put_ack(self.connection.ack(self.connection.seq))
        if self.ready.is_set() and self.connection.is_desynchronised and self._offers("resume"):
            raise LinkLost("the server sent what cannot be applied; its screen is asked for anew")

    def _wants_acks(self) -> bool:
        return self._acks and self._offers("frame-ack")

    def _offers(self, feature: str) -> bool:
        agent = self.connection.agent
        return agent is not None and feature in agent.capabilities.features

    def _tell(self, message: AgentMessage, weight: int) -> None:
        match message:
            case Render() | Patch():
                self._held.append(message)
            case Commit():
                held, self._held = self._held, []
                for each in (*held, message):
                    self._listen(each, weight)
            case SessionReady():
                self._begin(message)
            case AgentHello() if self.connection.is_undecided:
                self._listen(message, weight)
                self._expect_answer()
            case Ping():
                self._outbox.put(self.connection.pong(message))
            case Pong():
                pass  # it was heard
            case ErrorMessage(payload=payload) if not self.ready.is_set() and payload.id is None:
                self._listen(message, weight)
                raise lost_by_refusal(payload)
            case _:
                self._listen(message, weight)

    def _expect_answer(self) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time() + DRAFT_AFTER_S
        self._assumption = loop.call_at(due, self._assume_draft, due)

    def _assume_draft(self, due: float) -> None:
        if asyncio.get_running_loop().time() - due > LATE_S / 4:
            self._expect_answer()  # the loop was blocked: the answer may be there unread
            return
        for message in self.connection.assume_draft():
            self._tell(message, 0)

    def _begin(self, message: SessionReady) -> None:
        self.ready.set()
        if self._deadline is not None:
            self._deadline.reschedule(None)
        for frame in self.connection.resend():
            self._outbox.put(frame)
        self._listen(Connected(message.session_id, message.resume), 0)
        self._echo()

    def _echo(self) -> None:
        """Tell of inputs that the agent side does not echo."""
        for message in self.connection.echoes():
            self._tell(message, 0)


class FrameQueue:
    """A queue with one reader.

    Whoever makes the inputs bounds their number; of acknowledgements it keeps the newest.
    """

    def __init__(self) -> None:
        self._frames: list[Outgoing] = []
        self._ack: bytes | None = None
        self._news = asyncio.Event()

    def put(self, frame: Outgoing) -> None:
        """Add a frame at the end; an empty one is nothing to send."""
        if frame != b"":
            self._frames.append(frame)
            self._news.set()

    def put_ack(self, frame: bytes) -> None:
        """Add an acknowledgement in place of one that has not left yet."""
        if frame:
            self._ack = frame
            self._news.set()

    def clear(self) -> None:
        """Forget everything: it was for another connection."""
        self._frames.clear()
        self._ack = None
        self._news.clear()

    async def take(self) -> list[Outgoing]:
        """Return all that waits, the acknowledgement last, as soon as there is anything.

        Cancel: safe; nothing is taken.
        """
        await self._news.wait()
        self._news.clear()
        frames, self._frames = self._frames, []
        if self._ack is not None:
            frames.append(self._ack)
            self._ack = None
        return frames
