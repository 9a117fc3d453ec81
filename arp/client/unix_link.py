"""Unix socket: one length-prefixed frame is one message; files go with it as descriptors.

Whoever dials: this side connects to a server, or it listens and a server connects to it. Either
way the other process must run as our own user. Source: protocol.md 6.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from tempfile import TemporaryFile

from arp.client.address import Address
from arp.client.errors import LinkLost, ServerRefused, lost_by_close, printable
from arp.client.link import MAX_FRAME_BYTES
from arp.protocol.errors import PermissionDenied
from arp.unix.framed_socket import GONE, TOO_BIG, FramedSocket
from arp.unix.peer_process import peer_of
from arp.unix.socket_path import SocketListener, SocketRefused, connect_to

CLOSE_S = 1.0
"""A server that does not read our goodbye is left without."""

BUSY = (1013, "this renderer has an agent already")


class UnixLink:
    """One connection."""

    carries_acks = True
    is_remote = False

    def __init__(self, framed: FramedSocket, name: str) -> None:
        self._framed = framed
        self._name = name

    async def receive(self) -> bytes:
        """Return the next frame."""
        received = await self._framed.receive()
        if received is None:
            raise self._lost()
        return received.data

    async def send(self, frame: bytes) -> None:
        """Send a frame; wait while the server is slower than we are."""
        if self._framed.ended is not None:
            raise self._lost()
        self._framed.send([frame])
        await self._framed.drained()

    async def send_files(self, frame: bytes, contents: Sequence[bytes]) -> None:
        """Send a frame with files, each as a descriptor.

        Raises:
            LinkLost: The connection is over; whether they arrived is not known.
        """
        if not frame:
            raise LinkLost(f"{self._name}: there is no surface that the files could be given to")
        with ExitStack() as stack:
            files = [stack.enter_context(TemporaryFile()) for _ in contents]
            for file, content in zip(files, contents, strict=True):
                await asyncio.to_thread(file.write, content)
                file.flush()
            await self._framed.drained()
            if self._framed.ended is not None:
                raise self._lost()
            try:
                self._framed.send_with(frame, [file.fileno() for file in files])
            except OSError as error:
                raise LinkLost(f"{self._name}: {error.strerror}") from None
        await self._framed.drained()

    async def aclose(self) -> None:
        """Say goodbye, and close."""
        await self._framed.close(1001, "going away", flush_s=CLOSE_S)

    def _lost(self) -> LinkLost:
        ended = self._framed.ended
        assert ended is not None
        cause = f"{self._name}: {printable(ended.reason)}"
        if ended.code == TOO_BIG and not self._framed.is_closed_by_peer:
            return LinkLost(cause, error=ServerRefused(cause))
        return LinkLost(cause) if ended.code == GONE else lost_by_close(ended.code, ended.reason)


async def open_unix(address: Address, hello: bytes) -> UnixLink:
    """Connect to the server at a path, and return the connection with `hello` sent.

    Raises:
        LinkLost: Nobody listens there, or it is not a process of our user.
    """
    try:
        own = connect_to(address.socket_path)
    except SocketRefused as error:
        raise LinkLost(error.message, error=ServerRefused(error.message)) from None
    except OSError as error:
        problem = f"unix:{address.socket_path}: {error.strerror}"
        if error.errno == errno.EACCES:
            raise LinkLost(problem, error=PermissionDenied(problem)) from None
        raise LinkLost(problem) from None
    return await _begin(own, f"unix:{address.socket_path}", hello)


async def _begin(own: socket.socket, name: str, hello: bytes) -> UnixLink:
    """Return a link with `hello` sent, or refuse the process at the other end."""
    try:
        uid = peer_of(own).uid
    except OSError as error:
        own.close()
        raise LinkLost(f"{name}: who is there is not known: {error.strerror}") from None
    if uid != os.geteuid():
        own.close()
        problem = f"{name}: the other process runs as user {uid}, not as ours"
        raise LinkLost(problem, error=PermissionDenied(problem))
    link = UnixLink(FramedSocket(own, MAX_FRAME_BYTES), name)
    try:
        if hello:
            await link.send(hello)
    except BaseException:
        await link.aclose()
        raise
    return link


class UnixListener:
    """Waits for servers that dial; talks to one at a time.

    Raises:
        SocketRefused: Somebody listens there, or the path is not safe to use.
    """

    def __init__(self, path: str) -> None:
        self._listener = SocketListener(path)
        self.name = f"unix:{self._listener.path}"
        self._waiting: asyncio.Future[socket.socket] | None = None
        self._goodbyes: set[asyncio.Task[None]] = set()
        asyncio.get_running_loop().add_reader(self._listener.socket.fileno(), self._accept)

    async def open(self, hello: bytes) -> UnixLink:
        """Return the connection of the next server that dials, with `hello` sent.

        Raises:
            LinkLost: It is not a process of our user; the next one may be.
        """
        waiting = self._waiting = asyncio.get_running_loop().create_future()
        try:
            own = await waiting
        except asyncio.CancelledError:
            if not waiting.cancelled():  # one has dialled at the same moment
                waiting.result().close()
            raise
        finally:
            self._waiting = None
        try:
            return await _begin(own, self.name, hello)
        except LinkLost as lost:
            raise LinkLost(lost.reason) from None  # another process may dial, so it goes on

    def _accept(self) -> None:
        try:
            own = self._listener.accept()
        except OSError:
            return
        waiting = self._waiting
        if waiting is not None and not waiting.done():
            waiting.set_result(own)
            return
        framed = FramedSocket(own, MAX_FRAME_BYTES)
        closing = framed.close(*BUSY, flush_s=CLOSE_S)
        task = asyncio.get_running_loop().create_task(closing)
        self._goodbyes.add(task)
        task.add_done_callback(self._goodbyes.discard)

    async def aclose(self) -> None:
        """Listen no longer."""
        with suppress(ValueError):
            asyncio.get_running_loop().remove_reader(self._listener.socket.fileno())
        self._listener.close()
        if self._goodbyes:
            await asyncio.wait(self._goodbyes)
