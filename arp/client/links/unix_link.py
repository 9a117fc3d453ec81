"""Unix socket: each message is one length-prefixed frame; files are sent as descriptors.

Either side may listen: this side connects to a server, or a server connects to this side. In both
cases the other process must run as the same user.

Source: protocol.md 6.
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
"""Time to send the reason for closing to a server that does not read."""

BUSY = (1013, "this renderer has an agent already")
"""Close code and reason for a second server that connects to a listening client."""


class UnixLink:
    """One connection over a Unix socket."""

    carries_acks = True
    is_remote = False

    def __init__(self, framed: FramedSocket, name: str) -> None:
        self._framed = framed
        self._name = name

    async def receive(self) -> bytes:
        """Wait for the next frame and return it."""
        received = await self._framed.receive()
        if received is None:
            raise self._lost()
        return received.data

    async def send(self, frame: bytes) -> None:
        """Send a frame; wait until the server has read enough."""
        if self._framed.ended is not None:
            raise self._lost()
        self._framed.send([frame])
        await self._framed.drained()

    async def send_files(self, frame: bytes, contents: Sequence[bytes]) -> None:
        """Send a frame with files, each as a descriptor.

        Raises:
            LinkLost: The connection has ended. It is unknown whether the files arrived.
        """
        if not frame:
            raise LinkLost(f"{self._name}: there is no surface to send the files to")
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
        """Send a reason, and close the connection."""
        await self._framed.close(1001, "going away", flush_s=CLOSE_S)

    def _lost(self) -> LinkLost:
        ended = self._framed.ended
        assert ended is not None
        cause = f"{self._name}: {printable(ended.reason)}"
        # The server sent a frame that is too large, and would send it again.
        if ended.code == TOO_BIG and not self._framed.is_closed_by_peer:
            return LinkLost(cause, error=ServerRefused(cause))
        return LinkLost(cause) if ended.code == GONE else lost_by_close(ended.code, ended.reason)


async def open_unix(address: Address, hello: bytes) -> UnixLink:
    """Connect to the server at a path and send `hello`.

    Raises:
        LinkLost: No process listens there, or it is a process of another user.
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
    """Check that the other process runs as the same user, send `hello` and return the link.

    Raises:
        LinkLost: It is a process of another user, or it cannot be identified.
    """
    try:
        uid = peer_of(own).uid
    except OSError as error:
        own.close()
        raise LinkLost(f"{name}: cannot identify the other process: {error.strerror}") from None
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
    """Listens for servers that connect; accepts one at a time.

    Raises:
        SocketRefused: Another process listens there, or the path is not safe to use.
    """

    def __init__(self, path: str) -> None:
        self._listener = SocketListener(path)
        self.name = f"unix:{self._listener.path}"
        self._waiting: asyncio.Future[socket.socket] | None = None
        self._refusals: set[asyncio.Task[None]] = set()
        """Tasks that close the connections of further servers."""
        asyncio.get_running_loop().add_reader(self._listener.socket.fileno(), self._accept)

    async def open(self, hello: bytes) -> UnixLink:
        """Wait for the next server that connects, send it `hello`, and return the link.

        Raises:
            LinkLost: It is a process of another user. The next one may be of the same user.
        """
        waiting = self._waiting = asyncio.get_running_loop().create_future()
        try:
            own = await waiting
        except asyncio.CancelledError:
            # A server may have connected just before the cancellation; do not leak its socket.
            if not waiting.cancelled():
                waiting.result().close()
            raise
        finally:
            self._waiting = None
        try:
            return await _begin(own, self.name, hello)
        except LinkLost as lost:
            # Without the error, so that the driver continues: another process may connect.
            raise LinkLost(lost.reason) from None

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
        self._refusals.add(task)
        task.add_done_callback(self._refusals.discard)

    async def aclose(self) -> None:
        """Stop listening."""
        with suppress(ValueError):
            asyncio.get_running_loop().remove_reader(self._listener.socket.fileno())
        self._listener.close()
        if self._refusals:
            await asyncio.wait(self._refusals)
