"""Length-prefixed frames on a non-blocking Unix socket, with file descriptors.

Theory of operation. Reading: the received bytes are split into frames, which wait for `receive`.
While many are waiting, nothing more is read, so a fast sender has to wait. Descriptors arrive with
a piece of the stream, and belong to the last frame that begins in it: the kernel ends a piece after
bytes that carry descriptors. Writing: frames go to the kernel at once as long as it accepts them.
The rest is queued unchanged, so that several sockets can share the frames, and is joined to pieces
of a bounded size when the kernel has room again.
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

from arp.protocol.framing.length_prefix import Farewell, FrameSplitter, farewell, prefixed

READ_BYTES = 64 << 10
PIECE_BYTES = 64 << 10
"""Most bytes that are written in one call."""

MAX_WAITING_FRAMES = 64
MAX_WAITING_BYTES = 256 << 10
"""While this much is waiting for `receive`, nothing more is read."""

MAX_DESCRIPTORS = 20
"""Of one frame: the most files of one upload."""

LOOKS = 4
"""How often a connection is checked within the time that it may stall."""

_CONTROL_BYTES = socket.CMSG_SPACE(MAX_DESCRIPTORS * array.array("i").itemsize)
_CLOSE_ON_EXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)

TOO_BIG, PROTOCOL_ERROR, GONE, TRY_AGAIN = 1009, 1002, 1006, 1013
"""Close codes of WebSocket (RFC 6455, 7.4)."""


class ReceivedFrame(NamedTuple):
    """A frame, and the descriptors that came with it, which the receiver has to close."""

    data: bytes
    descriptors: tuple[int, ...] = ()


class DescriptorRoom(Protocol):
    """Counts the descriptors that connections hold for frames that nobody has received yet."""

    def acquire(self, count: int) -> bool:
        """Count more, unless there is no room; return whether there was."""

    def release(self, count: int) -> None:
        """Count less again."""


class FramedSocket:
    """Both directions of one connection. It belongs to the event loop that created it.

    Args:
        own: The socket; it is closed with this object.
        max_frame_bytes: The longest frame that is accepted.
        room: Where descriptors count until their frame is received; `None`: the kernel closes them.
        stall_s: Close the connection if the peer reads nothing for so long; `None`: never.
    """

    def __init__(
        self,
        own: socket.socket,
        max_frame_bytes: int,
        *,
        room: DescriptorRoom | None = None,
        stall_s: float | None = None,
    ) -> None:
        self.buffered = 0
        """Bytes of frames that wait to be sent."""
        self.on_sent: Callable[[], object] = lambda: None
        """Called after waiting bytes were sent."""
        self.ended: Farewell | None = None
        """Why `receive` returned `None`: the reason that the peer sent, or what went wrong."""
        self.is_closed_by_peer = False
        """Whether the peer sent that reason."""
        self._socket = own
        self._loop = asyncio.get_running_loop()
        # inbound
        self._splitter = FrameSplitter(max_frame_bytes)
        self._received: deque[ReceivedFrame] = deque()
        self._received_bytes = 0
        self._completed = 0
        self._descriptors: dict[int, tuple[int, ...]] = {}
        """Number of a frame → its descriptors, until the frame is complete."""
        self._room = room
        self.on_progress: Callable[[], object] = lambda: None
        """Called after bytes have come: `is_unfinished` may have changed."""
        self._reader: asyncio.Future[None] | None = None
        self._is_reading = False
        # outbound
        self._frames: deque[bytes] = deque()
        self._first: bytes | None = None
        self._piece: memoryview | None = None
        """The rest of a piece of which the kernel has accepted a part."""
        self._farewell: bytes | None = None
        self._is_writing = False
        self._empty: asyncio.Future[None] | None = None
        self._stall_s = stall_s
        self._stall_timer: asyncio.TimerHandle | None = None
        self._taken_at = 0.0
        """When the peer last read something."""
        self._unread = 0
        self._is_closed = False
        self._read_more()

    # -- inbound ---------------------------------------------------------------------------------

    async def receive(self) -> ReceivedFrame | None:
        """Return the next frame; `None` at the end, with the reason in `ended`.

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
            or any(frame.descriptors for frame in waiting)
        )

    @property
    def is_unfinished(self) -> bool:
        """Whether a frame has begun that is not complete, and more of it may come."""
        return self.ended is None and not self._splitter.is_between_frames

    @property
    def is_held(self) -> bool:
        """Whether this side does not read now."""
        return not self._is_reading

    def _release(self, descriptors: Sequence[int]) -> None:
        if self._room is not None and descriptors:
            self._room.release(len(descriptors))

    def _stop_reading(self) -> None:
        if self._is_reading:
            self._is_reading = False
            self._loop.remove_reader(self._socket.fileno())

    def _on_readable(self) -> None:
        """Read until nothing is left, because uvloop reports only once that the peer is gone.

        That happens if the peer closes and has not read everything: `recv` returns the bytes that
        it had sent, and then raises the error that ends the connection.
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
            self._take(data, descriptors, is_cut)
        if self._is_full():
            self._stop_reading()

    def _take(self, data: bytes, descriptors: tuple[int, ...], is_cut: bool) -> None:
        """Split received bytes into frames; no bytes are the end of the stream."""
        before = self._splitter.begun
        frames = self._splitter.feed(data)
        if descriptors:
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
        self._look_at_end(data)
        if frames:
            self._wake()
        self.on_progress()

    def _read(self) -> tuple[bytes, tuple[int, ...], bool]:
        """Return bytes, the descriptors that came with them, and whether some did not fit."""
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

    def _look_at_end(self, data: bytes) -> None:
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
        """Send frames now, or append them to the waiting ones. Never waits."""
        if self._is_closed or self._farewell is not None:
            return
        if not self._is_writing:
            size = len(frames[0]) if len(frames) == 1 else sum(map(len, frames))
            if size <= PIECE_BYTES:
                self.send_now(prefixed(frames))
                return
        self._frames.extend(frames)
        self.buffered += sum(map(len, frames))
        if not self._is_writing:
            self._flush()

    def send_now(self, piece: bytes) -> bool:
        """Send frames that already have their prefixes; return `False` if others are waiting.

        At most `PIECE_BYTES`. Several sockets may share the same bytes.
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
            self._broke_off(error)
            return True
        if sent < len(piece):
            self._wait_with(memoryview(piece)[sent:])
        return True

    def send_first(self, frame: bytes) -> None:
        """Send a frame before the waiting ones; a newer such frame replaces a waiting one."""
        if self._is_closed or self._farewell is not None:
            return
        if not self._is_writing:
            self.send_now(prefixed([frame]))
            return
        self.buffered += len(frame) - len(self._first or b"")
        self._first = frame

    def send_with(self, frame: bytes, descriptors: Sequence[int]) -> None:
        """Send a frame with descriptors, which the caller still has to close.

        No other frame may be waiting.

        Raises:
            OSError: The kernel does not accept it.
        """
        assert not self._is_writing
        data = prefixed([frame])
        rights = array.array("i", descriptors)
        control = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)]
        sent = self._socket.sendmsg([data], control)
        if sent < len(data):
            self._wait_with(memoryview(data)[sent:])

    def drop_waiting(self) -> None:
        """Drop the waiting frames; a frame that is partly sent is completed."""
        self.buffered -= sum(map(len, self.waiting()))
        self._first = None
        self._frames.clear()

    def waiting(self) -> list[bytes]:
        """Return the waiting frames, without one that is partly sent."""
        return [*(() if self._first is None else (self._first,)), *self._frames]

    async def drained(self) -> None:
        """Wait until everything is written to the kernel, or the connection has ended."""
        while self._is_writing and not self._is_closed:
            if self._empty is None or self._empty.done():
                self._empty = self._loop.create_future()
            await asyncio.shield(self._empty)

    def _wait_with(self, rest: memoryview) -> None:
        self._piece = rest
        self._is_writing = True
        self._taken_at = self._loop.time()
        self._loop.add_writer(self._socket.fileno(), self._flush)
        if self._stall_s is not None and self._stall_timer is None:
            self._unread = self._bytes_unread()
            self._stall_timer = self._loop.call_later(self._stall_s / LOOKS, self._check_stall)

    def _flush(self) -> None:
        """Write the waiting frames, as far as the kernel accepts them."""
        try:
            while (piece := self._next_piece()) is not None:
                sent = self._socket.send(piece)
                self._taken_at = self._loop.time()
                if sent < len(piece):
                    self._piece = piece[sent:]
                    break
        except (BlockingIOError, InterruptedError):
            self._piece = piece
        except OSError as error:
            self._broke_off(error)
            return
        if self._piece is None:
            self._stop_writing()
        elif not self._is_writing:
            self._wait_with(self._piece)
        self.on_sent()

    def _next_piece(self) -> memoryview | None:
        piece, self._piece = self._piece, None
        if piece is not None:
            return piece
        if self._first is not None:
            first, self._first = self._first, None
            self.buffered -= len(first)
            return memoryview(prefixed([first]))
        if not self._frames:
            last, self._farewell = self._farewell, None
            return memoryview(last) if last else None
        frames = [self._frames.popleft()]
        size = len(frames[0])
        while self._frames and size + len(self._frames[0]) <= PIECE_BYTES:
            size += len(self._frames[0])
            frames.append(self._frames.popleft())
        self.buffered -= size
        return memoryview(prefixed(frames))

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
        # The socket becomes writable only after the peer has read most of its buffer.
        if unread < self._unread:
            self._taken_at = now
        self._unread = unread
        idle_s = now - self._taken_at
        if idle_s >= self._stall_s:
            self._end(Farewell(GONE, f"it read nothing for {idle_s:.3g} s"))
            self.abort()
            return
        self._stall_timer = self._loop.call_later(self._stall_s / LOOKS, self._check_stall)

    def _bytes_unread(self) -> int:
        """Return how many bytes the peer has not read; 0 if the system does not say."""
        import fcntl
        import termios

        try:
            found = fcntl.ioctl(self._socket.fileno(), termios.TIOCOUTQ, bytes(4))
        except OSError:  # not Linux
            return 0
        return int.from_bytes(found, sys.byteorder)

    def _broke_off(self, error: OSError) -> None:
        self._drop()
        self._stop_writing()
        # Bytes that the peer sent before may still be unread, and no event may report them.
        if self._is_reading:
            self._on_readable()
        elif not self._is_full():
            self._end(Farewell(GONE, error.strerror or "the connection broke off"))

    def _drop(self) -> None:
        self._frames.clear()
        self._first = self._piece = self._farewell = None
        self.buffered = 0

    # -- the end ---------------------------------------------------------------------------------

    async def close(self, code: int, reason: str, *, flush_s: float) -> None:
        """Send the waiting frames and the reason, then close; after `flush_s` close in any case."""
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
        """End what is received, so that `receive` returns `None`."""
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
