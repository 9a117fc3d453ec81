"""Keep one session connected: open links, send and receive frames, reconnect after a loss.

Theory of operation. A *connection* lasts from the `hello` on a link to the loss of that link. It is
*ready* after the server has answered with `session`. Then all inputs without an answer are sent
again, and new inputs are sent immediately. While the connection is not ready, inputs wait with
their ids in the `RendererConnection`. Four tasks serve a connection: the reader, the writer, the
uploads, and the check for signs of life. When one of them ends, the connection ends. Frames of a
lost link are never read, so the screen receives all messages in order.
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
from arp.protocol.connection.renderer_connection import RendererConnection
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

_log = logging.getLogger(__name__)

SHOWN_BYTES = 75
"""Number of bytes of a frame that a log line shows; frames are logged only at DEBUG."""

ASK_AFTER_S = 10.0
"""Silence after which the driver sends a ping, if the server has the feature `ping`."""

ANSWER_WITHIN_S = 10.0
"""Time to wait for any frame after a ping; without one the connection is dead."""

MOST_PATIENCE_S = 80.0
"""Maximum time to wait after a ping; it doubles after each connection that ended by silence."""

DRAFT_AFTER_S = 1.0
"""Time for the agent side to answer our `hello` after it has sent its own `hello`.

An agent side that does not answer in this time supports only the draft of the protocol.
"""

LATE_S = 1.0
"""Delay of a timer that shows that this process was blocked, so the server may not be silent."""

Outgoing: TypeAlias = bytes | Callable[[], Awaitable[None]]
"""A frame, or a function that sends one."""

Dial = Callable[[bytes], Awaitable[Link]]
"""Function that sends a `hello` on a new link and returns the link."""
Listen = Callable[[Event, int], None]
"""Function that receives an event and its size in bytes."""


class Driver:
    """Input and output for one `RendererConnection`.

    Args:
        connection: State of the session; survives lost connections.
        dial: Opens a link.
        listen: Called with each event.
        backoff: Waits between attempts to connect.
        answer_timeout_s: Time for the answer to a `hello`, in seconds.
        acks: Whether to acknowledge displayed frames.
    """

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
        """Set while a connection is ready."""
        self.reconnects = True
        """Whether to connect again after a loss."""
        self._dial = dial
        self._listen = listen
        self._backoff = backoff
        self._answer_timeout_s = answer_timeout_s
        self._outbox = FrameQueue()
        self._acks = acks
        """Whether to acknowledge displayed frames."""
        self._uncommitted: list[AgentMessage] = []
        """Messages that take effect with the next commit; listeners receive them then."""
        self._deadline: asyncio.Timeout | None = None
        """Time limit for `session` from the agent side; `None` outside of a connection."""
        self._draft_timer: asyncio.TimerHandle | None = None
        """Timer that switches to the draft if the agent side does not answer our `hello`."""
        self._received_at = 0.0
        """Time of the last received frame, on the clock of the event loop."""
        self._patience_s = ANSWER_WITHIN_S / 2
        """Time to wait for a frame after a ping, if it is more than `ANSWER_WITHIN_S`.

        It is doubled after each connection that ended by silence, and reset by a frame in time.
        """

    async def run(self, upload: Callable[[str], Awaitable[None]]) -> ArpError:
        """Connect, and reconnect after every loss that may be temporary.

        Args:
            upload: Sends files to the session with the given id, while the connection is ready.

        Returns:
            Why it does not reconnect. The last event was a `Disconnected` without retry.

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
        """Send the frame of an input if the connection is ready.

        Otherwise the `RendererConnection` still has the input, and it is sent after `session`.
        """
        if self.ready.is_set():
            self._outbox.enqueue(frame)
            self._emit_echoes()

    def enqueue_send(self, send: Callable[[], Awaitable[None]]) -> None:
        """Call `send`, which sends a frame with files, after the frames before it are sent."""
        if self.ready.is_set():
            self._outbox.enqueue(send)

    def receive_json(self, frame: bytes) -> None:
        """Apply a JSON frame that was not received over the link, such as an answer to a POST."""
        try:
            self._receive(frame, is_json=True)
        except msgspec.DecodeError:
            _log.debug("ignored a frame that is not JSON: %r", frame[:SHOWN_BYTES])

    # -- one connection --------------------------------------------------------------------------

    async def _connect_once(
        self, upload: Callable[[str], Awaitable[None]]
    ) -> tuple[bool, LinkLost]:
        """Open one connection and serve it to its end.

        Returns:
            Whether the connection was ever ready, and how it ended.
        """
        self._outbox.clear()
        self._uncommitted.clear()
        try:
            link = await self._dial(self.connection.hello())
        except LinkLost as lost:
            _log.info("no connection: %s", lost.reason)
            return False, lost
        _log.info("connection opened")
        try:
            loss = await self._serve(link, upload)
        finally:
            # A connection that ended because a message could not be applied counts as a failure.
            # If a server sends such a message each time, the waits between attempts must grow.
            was_ready = self.ready.is_set() and not self.connection.is_desynchronised
            self.ready.clear()
            self._deadline = None
            if self._draft_timer is not None:
                self._draft_timer.cancel()
            await link.aclose()
        _log.info("connection closed: %s", loss.reason)
        return was_ready, loss

    async def _serve(self, link: Link, upload: Callable[[str], Awaitable[None]]) -> LinkLost:
        # Not a TaskGroup: before Python 3.13, a cancellation is lost if a task of the group fails
        # at the same moment.
        tasks = [
            asyncio.create_task(self._read(link)),
            asyncio.create_task(self._write(link)),
            asyncio.create_task(self._upload(upload)),
            asyncio.create_task(self._check_alive(link)),
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
        # Several tasks may report the loss. Prefer a loss with an error: otherwise the client
        # would reconnect to a server that has refused it.
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
            for frame in await self._outbox.dequeue_all():
                if not isinstance(frame, bytes):
                    await frame()
                    continue
                _log.debug("> %.75r", frame)
                answer = await link.send(frame)
                if answer is not None:
                    self._receive(answer)

    async def _check_alive(self, link: Link) -> None:
        """Send a ping after a silence.

        Raises:
            LinkLost: No frame came after the ping.
        """
        await self.ready.wait()
        if not (link.is_remote and self._has_feature(PING)):
            await asyncio.Event().wait()  # until another task ends the connection
        clock = asyncio.get_running_loop().time
        while True:
            silent_s = clock() - self._received_at
            if silent_s < ASK_AFTER_S:
                await asyncio.sleep(ASK_AFTER_S - silent_s)
                continue
            asked_at = clock()
            self._outbox.enqueue(self.connection.ping(secrets.token_hex(8)))
            wait_s = max(self._patience_s, ANSWER_WITHIN_S)
            await asyncio.sleep(wait_s)
            if self._received_at >= asked_at:
                self._patience_s = ANSWER_WITHIN_S / 2
            # If the wait took much longer than planned, the event loop was blocked or the machine
            # was asleep. Then the answer may be there unread, so the next pass asks again.
            elif clock() - asked_at < wait_s + LATE_S:
                # A large message on a slow network looks like silence until it is complete. The
                # time is doubled, so that the message arrives on one of the next connections.
                self._patience_s = min(2 * self._patience_s, MOST_PATIENCE_S)
                raise LinkLost(
                    f"the server has been silent for {clock() - self._received_at:.0f} s"
                )

    async def _upload(self, upload: Callable[[str], Awaitable[None]]) -> None:
        await self.ready.wait()
        session_id = self.connection.session_id
        assert session_id is not None
        await upload(session_id)

    # -- frames ----------------------------------------------------------------------------------

    def _receive(self, frame: bytes, acks: bool = False, *, is_json: bool = False) -> None:
        """Apply a frame to the screen, emit its events and enqueue the replies.

        Args:
            frame: The frame.
            acks: Whether the link carries acknowledgements.
            is_json: Whether the frame is JSON, whatever the encoding of the link.
        """
        _log.debug("< %r", frame[:SHOWN_BYTES])
        self._received_at = asyncio.get_running_loop().time()
        seq = self.connection.seq
        connection = self.connection
        messages = (connection.receive_json if is_json else connection.receive)(frame)
        for reply in connection.replies():
            self._outbox.enqueue(reply)
        size = len(frame) // max(1, len(messages))
        for message in messages:
            self._handle(message, size)
        # Commits without a `seq`, as within a snapshot, are not acknowledged.
        committed = any(isinstance(message, Commit) for message in messages)
        if acks and committed and self.connection.seq != seq and self._wants_acks():
            self._outbox.enqueue_ack(self.connection.ack(self.connection.seq))
        # Later patches of a screen that missed one would also be wrong. A new connection asks the
        # server for the whole screen, which only a server with `resume` can send.
        if (
            self.ready.is_set()
            and self.connection.is_desynchronised
            and self._has_feature("resume")
        ):
            raise LinkLost("the server sent a message that cannot be applied; reloading the screen")

    def _wants_acks(self) -> bool:
        return self._acks and self._has_feature("frame-ack")

    def _has_feature(self, feature: str) -> bool:
        """Return whether the agent side has a feature."""
        agent = self.connection.agent
        return agent is not None and feature in agent.capabilities.features

    def _handle(self, message: AgentMessage, size: int) -> None:
        """Answer a message or emit it as an event."""
        match message:
            case Render() | Patch():
                self._uncommitted.append(message)
            case Commit():
                uncommitted, self._uncommitted = self._uncommitted, []
                for each in (*uncommitted, message):
                    self._listen(each, size)
            case SessionReady():
                self._start_session(message)
            case AgentHello() if self.connection.is_undecided:
                self._listen(message, size)
                self._start_draft_timer()
            case Ping():
                self._outbox.enqueue(self.connection.pong(message))
            case Pong():
                pass  # `_received_at` is set
            # An error that names no input, before `session`, refuses our `hello`.
            case ErrorMessage(payload=payload) if not self.ready.is_set() and payload.id is None:
                self._listen(message, size)
                raise lost_by_refusal(payload)
            case _:
                self._listen(message, size)

    def _start_draft_timer(self) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time() + DRAFT_AFTER_S
        self._draft_timer = loop.call_at(due, self._assume_draft, due)

    def _assume_draft(self, due: float) -> None:
        # If the event loop was blocked, the answer may be there unread, so wait again.
        if asyncio.get_running_loop().time() - due > LATE_S / 4:
            self._start_draft_timer()
            return
        for message in self.connection.assume_draft():
            self._handle(message, 0)

    def _start_session(self, message: SessionReady) -> None:
        self.ready.set()
        if self._deadline is not None:
            self._deadline.reschedule(None)
        for frame in self.connection.resend():
            self._outbox.enqueue(frame)
        self._listen(Connected(message.session_id, message.resume), 0)
        self._emit_echoes()

    def _emit_echoes(self) -> None:
        """Emit the echoes of inputs that the agent side does not echo."""
        for message in self.connection.echoes():
            self._handle(message, 0)


class FrameQueue:
    """A queue of outgoing frames with one reader.

    The queue has no limit, because `Inputs` limits the number of inputs. Of acknowledgements, only
    the newest is kept.
    """

    def __init__(self) -> None:
        self._frames: list[Outgoing] = []
        self._ack: bytes | None = None
        self._not_empty = asyncio.Event()

    def enqueue(self, frame: Outgoing) -> None:
        """Add a frame at the end; ignore an empty frame."""
        if frame != b"":
            self._frames.append(frame)
            self._not_empty.set()

    def enqueue_ack(self, frame: bytes) -> None:
        """Add an acknowledgement; it replaces an older one in the queue."""
        if frame:
            self._ack = frame
            self._not_empty.set()

    def clear(self) -> None:
        """Remove everything, because it was for another connection."""
        self._frames.clear()
        self._ack = None
        self._not_empty.clear()

    async def dequeue_all(self) -> list[Outgoing]:
        """Wait until the queue is not empty; remove and return everything, acknowledgement last.

        Cancel: safe; nothing is removed.
        """
        await self._not_empty.wait()
        self._not_empty.clear()
        frames, self._frames = self._frames, []
        if self._ack is not None:
            frames.append(self._ack)
            self._ack = None
        return frames
