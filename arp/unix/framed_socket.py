"""Length-prefixed frames on a non-blocking Unix socket, with file descriptors.

Theory of operation. Reading: the received bytes are split into frames, which are queued for
`receive`. While the queue is full, nothing more is read, so a fast sender has to wait. Descriptors
arrive with a piece of the stream. They belong to the last frame that begins in that piece, because
the kernel ends a piece after the bytes that carry descriptors.

Writing: frames are written to the kernel at once as long as it accepts them. The rest is queued
unchanged, so that several sockets can share the frames. When the kernel has room again, queued
frames are joined to pieces of bounded size.
"""

from __future__ import annotations

import array
import asyncio
import os
import socket
import sys
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple, Protocol

from arp.protocol.framing.backlog import Backlog
from arp.protocol.framing.length_prefix import Farewell, FrameSplitter, farewell, prefixed

READ_BYTES = 64 << 10
PIECE_BYTES = 64 << 10
"""Largest number of bytes that are written in one call."""

MAX_WAITING_FRAMES = 64
MAX_WAITING_BYTES = 256 << 10
"""Limits of the queue for `receive`. While one of them is reached, nothing more is read."""

MAX_DESCRIPTORS = 20
"""Largest number of descriptors of one frame: the largest number of files in one upload."""

CHECKS_PER_STALL = 4
"""How often a connection with waiting bytes is checked within `stall_s`."""

_CONTROL_BYTES = socket.CMSG_SPACE(MAX_DESCRIPTORS * array.array("i").itemsize)
_CLOSE_ON_EXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)

TOO_BIG, PROTOCOL_ERROR, GONE, TRY_AGAIN = 1009, 1002, 1006, 1013
"""Close codes of WebSocket (RFC 6455, 7.4)."""


class ReceivedFrame(NamedTuple):
    """A frame and its descriptors, which the receiver must close."""

    data: bytes
    descriptors: tuple[int, ...] = ()


class DescriptorRoom(Protocol):
    """Counter of received descriptors that `receive` has not returned yet, with a limit."""

    def acquire(self, count: int) -> bool:
        """Count more descriptors; return `False` without counting if the limit is reached."""

    def release(self, count: int) -> None:
        """Stop counting descriptors."""


class FramedSocket:
    """Both directions of one connection. It belongs to the event loop that created it.

    Args:
        own: The socket; it is closed with this object.
        max_frame_bytes: Length of the longest accepted frame.
        room: Counter of the descriptors that `receive` has not returned yet. With `None`,
            descriptors are not read, and the kernel closes them.
        stall_s: Time in seconds without any read by the peer after which the connection is closed;
            `None` means no limit.
    """

    def __init__(
        self,
        own: socket.socket,
        max_frame_bytes: int,
        *,
        room: DescriptorRoom | None = None,
        stall_s: float | None = None,
    ) -> None:
        self.on_sent: Callable[[], object] = lambda: None
        """Called after queued bytes were sent."""
        self.ended: Farewell | None = None
        """Reason of the end: from the peer, or an error of the connection. `None` until the end."""
        self.is_closed_by_peer = False
        """Whether the peer sent the reason in `ended`."""
        self._socket = own
        self._loop = asyncio.get_running_loop()
        # inbound
        self._splitter = FrameSplitter(max_frame_bytes)
        self._received: deque[ReceivedFrame] = deque()
        self._received_bytes = 0
        self._completed = 0
        self._descriptors: dict[int, tuple[int, ...]] = {}
        """Descriptors of incomplete frames, by the number of the frame from 1."""
        self._room = room
        self.on_progress: Callable[[], object] = lambda: None
        """Called after bytes were received, because `is_unfinished` may have changed."""
        self._reader: asyncio.Future[None] | None = None
        self._is_reading = False
        # outbound
        self._backlog = Backlog()
        self._piece: memoryview | None = None
        """Rest of a piece that the kernel has accepted in part."""
        self._farewell: bytes | None = None
        self._is_writing = False
        self._empty: asyncio.Future[None] | None = None
        self._stall_s = stall_s
        self._stall_timer: asyncio.TimerHandle | None = None
        self._last_read_at = 0.0
        """Loop time at which the peer last read something."""
        self._unread = 0
        """Sent bytes that the peer had not read at the last check; the kernel holds them."""
        self._is_closed = False
        self._read_more()

    # -- inbound ---------------------------------------------------------------------------------

    async def receive(self) -> ReceivedFrame | None:
        """Wait for the next frame; return `None` at the end, with the reason in `ended`.

        Cancel: Safe; no frame is lost.
        """
        while not self._received:
            if self.ended is not None:
                return None
            self._reader = self._loop.create_future()
            await self._reader
        received = self._received.popleft()
        self._received_bytes -= len(received.data)
        self._release(received.descriptors)
        if not self._is_reading:
            self._read_more()
        return received

    def _read_more(self) -> None:
        if self.ended is None and not self._is_closed and not self._is_full():
            self._is_reading = True
            self._loop.add_reader(self._socket.fileno(), self._on_readable)

    def _is_full(self) -> bool:
        waiting = self._received
        return (
            len(waiting) >= MAX_WAITING_FRAMES
            or self._received_bytes >= MAX_WAITING_BYTES
            # Each frame with descriptors is processed before more are accepted, because the peer
            # could otherwise make this process hold many open files.
            or any(frame.descriptors for frame in waiting)
        )

    @property
    def is_unfinished(self) -> bool:
        """Whether a frame is incomplete and more of it may arrive."""
        return self.ended is None and not self._splitter.is_between_frames

    @property
    def is_held(self) -> bool:
        """Whether this side has paused reading."""
        return not self._is_reading

    def _release(self, descriptors: Sequence[int]) -> None:
        if self._room is not None and descriptors:
            self._room.release(len(descriptors))

    def _stop_reading(self) -> None:
        if self._is_reading:
            self._is_reading = False
            self._loop.remove_reader(self._socket.fileno())

    def _on_readable(self) -> None:
        """Read until no bytes are left, because uvloop reports a lost connection only once.

        If the peer closes without reading everything, `recv` first returns the bytes that the peer
        had sent, and then raises the error that ends the connection.
        """
        while self.ended is None and not self._is_full():
            try:
                data, descriptors, is_cut = self._read()
            except (BlockingIOError, InterruptedError):
                break
            except OSError as error:
                lost = Farewell(GONE, error.strerror or "the connection broke off")
                self._end(self._splitter.farewell or lost)
                return
            self._process(data, descriptors, is_cut)
        if self._is_full():
            self._stop_reading()

    def _process(self, data: bytes, descriptors: tuple[int, ...], is_cut: bool) -> None:
        """Split received bytes into frames. Empty `data` is the end of the stream."""
        before = self._splitter.begun
        frames = self._splitter.feed(data)
        if descriptors:
            # Descriptors that belong to no frame are closed here; otherwise they would stay open
            # until the process ends.
            begins = self._splitter.begun > before
            if not begins or is_cut or len(descriptors) > MAX_DESCRIPTORS:
                _close_all(descriptors)
                why = f"send at most {MAX_DESCRIPTORS} descriptors, with the first byte of a frame"
                self._end(Farewell(PROTOCOL_ERROR, why))
                return
            if self._room is not None and not self._room.acquire(len(descriptors)):
                _close_all(descriptors)
                why = "too many descriptors wait for the rest of their frames; try again later"
                self._end(Farewell(TRY_AGAIN, why))
                return
            self._descriptors[self._splitter.begun] = descriptors
        for frame in frames:
            self._completed += 1
            own = self._descriptors.pop(self._completed, ()) if self._descriptors else ()
            self._received.append(ReceivedFrame(frame, own))
            self._received_bytes += len(frame)
        self._check_end(data)
        if frames:
            self._wake()
        self.on_progress()

    def _read(self) -> tuple[bytes, tuple[int, ...], bool]:
        """Return bytes, their descriptors, and whether the kernel dropped some descriptors."""
        if self._room is None:
            return self._socket.recv(READ_BYTES), (), False
        data, messages, flags, _ = self._socket.recvmsg(READ_BYTES, _CONTROL_BYTES, _CLOSE_ON_EXEC)
        if not messages:
            return data, (), False
        found = array.array("i")
        for level, kind, content in messages:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                found.frombytes(content[: len(content) - len(content) % found.itemsize])
        return data, tuple(found), bool(flags & socket.MSG_CTRUNC)

    def _check_end(self, data: bytes) -> None:
        splitter = self._splitter
        if splitter.refused is not None:
            most = splitter.max_frame_bytes
            why = f"a frame of {splitter.refused} bytes; at most {most} are accepted"
            self._end(Farewell(TOO_BIG, why))
        elif not data:
            between = splitter.is_between_frames
            why = "the connection ended" if between else "the connection ended within a frame"
            self._end(splitter.farewell or Farewell(GONE, why))

    def _end(self, why: Farewell) -> None:
        self._stop_reading()
        if self.ended is None:
            self.ended = why
            self.is_closed_by_peer = why == self._splitter.farewell
        self._wake()

    def _wake(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None and not reader.done():
            reader.set_result(None)

    # -- outbound --------------------------------------------------------------------------------

    def send(self, frames: Sequence[bytes]) -> None:
        """Send frames now, or enqueue them. Never waits."""
        if self._is_closed or self._farewell is not None:
            return
        if not self._is_writing:
            size = len(frames[0]) if len(frames) == 1 else sum(map(len, frames))
            if size <= PIECE_BYTES:
                self.send_now(prefixed(frames))
                return
        self._backlog.add(frames)
        if not self._is_writing:
            self._flush()

    def send_now(self, piece: bytes) -> bool:
        """Send frames that already have their prefixes; return `False` if other frames are queued.

        The piece has at most `PIECE_BYTES`. Several sockets may share it.
        """
        if self._is_writing:
            return False
        if self._is_closed or self._farewell is not None:
            return True
        try:
            sent = self._socket.send(piece)
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError as error:
            self._connection_lost(error)
            return True
        if sent < len(piece):
            self._queue_rest(memoryview(piece)[sent:])
        return True

    def send_first(self, frame: bytes) -> None:
        """Send a frame before the queued ones; it replaces an earlier such frame."""
        if self._is_closed or self._farewell is not None:
            return
        if not self._is_writing:
            self.send_now(prefixed([frame]))
            return
        self._backlog.add_first(frame)

    def send_with(self, frame: bytes, descriptors: Sequence[int]) -> None:
        """Send a frame with descriptors; the caller closes the descriptors afterwards.

        No other frame may be queued.

        Raises:
            OSError: The kernel does not accept it.
        """
        assert not self._is_writing
        data = prefixed([frame])
        rights = array.array("i", descriptors)
        control = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)]
        sent = self._socket.sendmsg([data], control)
        if sent < len(data):
            self._queue_rest(memoryview(data)[sent:])

    def drop_waiting(self) -> None:
        """Drop the queued frames; a partly sent frame is completed."""
        self._backlog.clear()

    @property
    def buffered(self) -> int:
        """Bytes of the queued frames."""
        return self._backlog.size

    def waiting(self) -> list[bytes]:
        """Return the queued frames, without a partly sent one."""
        return self._backlog.frames()

    async def drained(self) -> None:
        """Wait until everything is written to the kernel, or the connection has ended."""
        while self._is_writing and not self._is_closed:
            if self._empty is None or self._empty.done():
                self._empty = self._loop.create_future()
            await asyncio.shield(self._empty)

    def _queue_rest(self, rest: memoryview) -> None:
        self._piece = rest
        self._is_writing = True
        self._last_read_at = self._loop.time()
        self._loop.add_writer(self._socket.fileno(), self._flush)
        if self._stall_s is not None and self._stall_timer is None:
            self._unread = self._bytes_unread()
            pause_s = self._stall_s / CHECKS_PER_STALL
            self._stall_timer = self._loop.call_later(pause_s, self._check_stall)

    def _flush(self) -> None:
        """Write queued frames until the kernel accepts no more."""
        try:
            while (piece := self._next_piece()) is not None:
                sent = self._socket.send(piece)
                self._last_read_at = self._loop.time()
                if sent < len(piece):
                    self._piece = piece[sent:]
                    break
        except (BlockingIOError, InterruptedError):
            self._piece = piece
        except OSError as error:
            self._connection_lost(error)
            return
        if self._piece is None:
            self._stop_writing()
        elif not self._is_writing:
            self._queue_rest(self._piece)
        self.on_sent()

    def _next_piece(self) -> memoryview | None:
        piece, self._piece = self._piece, None
        if piece is not None:
            return piece
        if self._backlog:
            return memoryview(prefixed(self._backlog.dequeue_most(PIECE_BYTES)))
        last, self._farewell = self._farewell, None
        return memoryview(last) if last else None

    def _stop_writing(self) -> None:
        if self._is_writing:
            self._is_writing = False
            self._loop.remove_writer(self._socket.fileno())
        if self._stall_timer is not None:
            self._stall_timer.cancel()
            self._stall_timer = None
        if self._empty is not None and not self._empty.done():
            self._empty.set_result(None)

    def _check_stall(self) -> None:
        assert self._stall_s is not None
        self._stall_timer = None
        now, unread = self._loop.time(), self._bytes_unread()
        # A slow peer is not a stalled one. The socket becomes writable only after the peer has read
        # most of the buffer, so reads are detected by the number of unread bytes.
        if unread < self._unread:
            self._last_read_at = now
        self._unread = unread
        idle_s = now - self._last_read_at
        if idle_s >= self._stall_s:
            self._end(Farewell(GONE, f"it read nothing for {idle_s:.3g} s"))
            self.abort()
            return
        pause_s = self._stall_s / CHECKS_PER_STALL
        self._stall_timer = self._loop.call_later(pause_s, self._check_stall)

    def _bytes_unread(self) -> int:
        """Return how many sent bytes the peer has not read; 0 if the system cannot report it."""
        import fcntl
        import termios

        try:
            found = fcntl.ioctl(self._socket.fileno(), termios.TIOCOUTQ, bytes(4))
        except OSError:  # not Linux
            return 0
        return int.from_bytes(found, sys.byteorder)

    def _connection_lost(self, error: OSError) -> None:
        self._drop()
        self._stop_writing()
        # Bytes that the peer sent earlier may still be unread, and no further event reports them.
        # While the queue is full, they stay unread: `receive` resumes reading and finds the error.
        if self._is_reading:
            self._on_readable()
        elif not self._is_full():
            self._end(Farewell(GONE, error.strerror or "the connection broke off"))

    def _drop(self) -> None:
        self._backlog.clear()
        self._piece = self._farewell = None

    # -- the end ---------------------------------------------------------------------------------

    async def close(self, code: int, reason: str, *, flush_s: float) -> None:
        """Send the queued frames and the reason, then close. After `flush_s`, close in any case."""
        if not self._is_closed and self._farewell is None:
            last = farewell(code, reason)
            if self._is_writing:
                self._farewell = last
            else:
                self.send_now(last)
            with suppress(TimeoutError):
                async with asyncio.timeout(flush_s):
                    await self.drained()
        self.abort()

    def fail(self, why: Farewell) -> None:
        """End the inbound direction, so that `receive` returns `None` with this reason."""
        self._end(why)

    def abort(self) -> None:
        """Close at once. A second call does nothing."""
        if self._is_closed:
            return
        self._stop_reading()
        self._drop()
        self._is_closed = True
        self._stop_writing()
        waiting = [received.descriptors for received in self._received]
        for descriptors in (*waiting, *self._descriptors.values()):
            self._release(descriptors)
            _close_all(descriptors)
        self._received.clear()
        self._descriptors.clear()
        self._socket.close()
        self._end(Farewell(GONE, "closed by this side"))
        self.on_progress()


def _close_all(descriptors: Sequence[int]) -> None:
    for descriptor in descriptors:
        with suppress(OSError):
            os.close(descriptor)
