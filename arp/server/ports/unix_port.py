"""Renderers over Unix sockets: the server listens at a path, or connects to a renderer.

Theory of operation. The kernel reports the user of the other process, and the guard checks this
user before anything is sent. After that the connection is like any other: if the app has a token,
the `hello` must contain it. If the renderer is the side that listens, the server connects to it. It
repeats failed attempts, and reconnects after each end, with growing pauses.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import random
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from arp.access.leases import Lease
from arp.access.principal import Key, Principal
from arp.access.usage import Slot, UsageCounter, UsageLimits
from arp.hub.peers.object_peer import peer_speaking
from arp.hub.peers.peer import Peer
from arp.net.connections import FULL, ConnectionWatch, MessageProgress, descriptor_limit
from arp.protocol.codec import Encoding
from arp.protocol.errors import RateLimited
from arp.protocol.framing.envelope import Dialect
from arp.protocol.framing.length_prefix import Farewell, farewell
from arp.server.ports.descriptor_uploads import receive_files
from arp.server.ports.sockets import MAX_UNKNOWN_PEERS, PATH
from arp.server.state import Requester, ServerState, expel, log_arrival
from arp.store.errors import StoreError
from arp.transport.unix_socket import FLUSH_S, UnixOutbox, talk_framed
from arp.unix.framed_socket import MAX_DESCRIPTORS, FramedSocket
from arp.unix.peer_process import peer_of
from arp.unix.socket_path import SocketListener, SocketRefused, connect_to

logger = logging.getLogger(__name__)

FRAME_FACTOR = 4
"""Factor for the protocol's message limit: a larger frame closes the connection, as on a WebSocket.

For a frame between the limit and this size, the sender gets a coded error and the connection stays
open.
"""

FULL_S = 1.0
"""Pause in seconds before the next accept, if the process has no descriptors left."""

FIRST_WAIT_S, MOST_WAIT_S = 0.5, 30.0
"""Upper limits in seconds of the first pause between two attempts to connect, and of all pauses."""

STEADY_S = 60.0
"""Length in seconds of a connection after which the pauses start again at `FIRST_WAIT_S`."""

RESTARTING = (1012, "restarting")

LATE = Farewell(1008, "the rest of a frame did not come in time")

MAX_HELD_DESCRIPTORS = 256
"""Largest number of descriptors in frames that are not yet processed; one user may hold half.

If an eighth of the descriptors that the process may open is less, that is the limit.
"""


class UnixSettings(Struct, frozen=True):
    """Encoding and dialect of a Unix socket; the framing does not carry them."""

    encoding: Encoding = "msgpack"
    dialect: Dialect = "session"


class _HeldDescriptors:
    """Counter of the descriptors of one connection; a `DescriptorRoom`."""

    def __init__(self, counter: UsageCounter, keys: tuple[Key, ...]) -> None:
        self._counter = counter
        self._keys = keys

    def acquire(self, count: int) -> bool:
        """Reserve descriptors if the limits allow it; see `DescriptorRoom.acquire`."""
        try:
            self._counter.acquire(self._keys, count)
        except RateLimited:
            return False
        return True

    def release(self, count: int) -> None:
        """Release descriptors; see `DescriptorRoom.release`."""
        self._counter.release(self._keys, count)


def _address(own: socket.socket) -> str:
    """Return the user at the other end as an address for the connection limits."""
    try:
        return f"uid {peer_of(own).uid}"
    except OSError:
        return "uid unknown"


class UnixConversations:
    """All connections of one server over Unix sockets."""

    def __init__(self, state: ServerState, settings: UnixSettings) -> None:
        self._state = state
        self._settings = settings
        self._running: dict[asyncio.Task[None], FramedSocket] = {}
        bounds, limit = state.served.access.bounds, descriptor_limit()
        self._watch = ConnectionWatch(bounds, limit)
        most = MAX_HELD_DESCRIPTORS if limit is None else min(MAX_HELD_DESCRIPTORS, limit // 8)
        limits = UsageLimits(most, max(most // 2, MAX_DESCRIPTORS), most)
        self._held = UsageCounter("descriptors of unfinished frames", limits)

    def refuse(self, own: socket.socket) -> bool:
        """Close a new connection if a limit is reached; return whether it was closed."""
        refusal = self._watch.refusal(_address(own), own.fileno())
        if refusal is None:
            return False
        # These sentences name who has to close connections: the user, or all users together.
        reason = "too many connections of this user; close one, or try again later"
        if refusal is FULL:
            reason = "too many connections; try again later"
        with suppress(OSError):  # does not block: the send buffer of a new connection is empty
            own.send(farewell(1013, reason))
        own.close()
        return True

    def begin(self, own: socket.socket, way: str) -> asyncio.Task[None]:
        """Serve a connection in a new task.

        Args:
            own: Socket of the connection.
            way: Name of the transport in the log.
        """
        limits, settings = self._state.served.settings.limits, self._state.served.settings
        address = _address(own)
        room = _HeldDescriptors(self._held, (f"address {address}",))
        framed = FramedSocket(
            own,
            FRAME_FACTOR * limits.max_message_bytes,
            room=room,
            stall_s=settings.stall_s,
        )
        progress = MessageProgress(
            self._watch, address, lambda: framed.fail(LATE), lambda: framed.is_held
        )
        framed.on_progress = lambda: progress.note(is_unfinished=framed.is_unfinished)
        self._watch.joined(address)
        task = asyncio.get_running_loop().create_task(self._serve(own, framed, way))
        self._running[task] = framed
        task.add_done_callback(partial(self._ended, address))
        return task

    def _ended(self, address: str, task: asyncio.Task[None]) -> None:
        framed = self._running.pop(task)
        framed.abort()
        self._watch.left(address)
        if not task.cancelled() and task.exception() is not None:
            logger.error("a connection over a Unix socket failed", exc_info=task.exception())

    async def stop(self) -> None:
        """Ask every renderer to reconnect, and close its connection."""
        running = dict(self._running)
        closings = [framed.close(*RESTARTING, flush_s=FLUSH_S) for framed in running.values()]
        await asyncio.gather(*closings)
        if running:
            _, late = await asyncio.wait(running, timeout=FLUSH_S)
            for task in late:  # for example, a task that copies a large file
                task.cancel()

    async def _serve(self, own: socket.socket, framed: FramedSocket, way: str) -> None:
        state = self._state
        try:
            uid = peer_of(own).uid
        except OSError as error:
            logger.warning("a client without a known user was refused on a Unix socket: %s", error)
            return
        scope: dict[str, Any] = {"type": "unix", "path": PATH, "headers": [], "uid": uid}
        denial = state.guard.check_peer(scope)
        if denial is not None:
            logger.warning("user %d was refused on a Unix socket", uid)
            await framed.close(1008, denial.reason, flush_s=FLUSH_S)
            return
        principal = await state.guard.principal(scope)
        address = f"uid {uid}"
        try:
            slot = Slot(state.conversations, replace(principal or Principal(), address=address))
        except RateLimited as error:
            await framed.close(1013, error.message, flush_s=FLUSH_S)
            return
        if principal is not None:
            principal = replace(principal, address=address)
        lease = Lease(state.leases)
        scope["arp"] = Requester(state, slot, lease, principal)
        state.begin_lease(lease, principal, partial(state.guard.recheck, scope))
        try:
            await self._talk(framed, scope, way)
        finally:
            lease.release()
            slot.release()

    async def _talk(self, framed: FramedSocket, scope: dict[str, Any], way: str) -> None:
        state, known, encoding = self._state, scope["arp"].known, self._settings.encoding
        waiting = state.unknown_peers
        # Clients without a token must not occupy all connections while they wait.
        if known is None and len(waiting) >= MAX_UNKNOWN_PEERS:
            await framed.close(1013, "too many connections without a token", flush_s=FLUSH_S)
            return
        try:
            hub = await state.hub()
        except StoreError:
            reason = "the ledger cannot be opened; the server's log says why"
            await framed.close(1013, reason, flush_s=FLUSH_S)
            return
        peers: list[Peer] = []

        def make(outbox: UnixOutbox) -> Peer:
            check = partial(state.admit_token, scope)
            workflow, dialect = state.workflow, self._settings.dialect
            peer = peer_speaking(dialect)(hub, outbox, encoding, workflow, known, check)
            log_arrival(peer.viewer, way)
            if known is None:
                waiting.add(peer)
                peer.on_trusted = lambda: waiting.discard(peer)
            peers.append(peer)
            scope["arp"].lease.when_ended(partial(expel, peer, outbox))
            return peer

        await talk_framed(framed, make, lambda one: receive_files(state.intake, peers[0], one))


class UnixPort:
    """A Unix socket that listens at a path.

    Raises:
        SocketRefused: Another server listens there, or the path is not safe to use.
    """

    def __init__(self, state: ServerState, path: str, settings: UnixSettings) -> None:
        self._listener = SocketListener(path, is_shared=bool(state.served.access.uids))
        self._conversations = UnixConversations(state, settings)
        self._again: asyncio.TimerHandle | None = None

    @property
    def address(self) -> str:
        """Address for clients."""
        return f"unix:{self._listener.path}"

    async def start(self) -> None:
        """Start accepting connections.

        Raises:
            SocketRefused: The port was stopped before.
        """
        if self._listener.socket.fileno() < 0:
            raise SocketRefused(f"{self.address} was closed; make a new UnixPort to listen again")
        loop = asyncio.get_running_loop()
        loop.add_reader(self._listener.socket.fileno(), self._accept)

    def _accept(self) -> None:
        while True:
            try:
                own = self._listener.accept()
            except (BlockingIOError, ConnectionAbortedError, InterruptedError):
                return
            except OSError as error:
                # The connection stays in the listener's queue until descriptors are free again.
                if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                    self._pause(error)
                return
            if not self._conversations.refuse(own):
                self._conversations.begin(own, "Unix socket")

    def _pause(self, error: OSError) -> None:
        """Stop accepting for `FULL_S`.

        The connection stays in the queue of the listener, so the event loop would call `_accept`
        again at once, without end.
        """
        logger.warning("%s: cannot accept: %s", self.address, error.strerror)
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._listener.socket.fileno())
        self._again = loop.call_later(
            FULL_S, loop.add_reader, self._listener.socket.fileno(), self._accept
        )

    async def stop(self) -> None:
        """Stop listening, and ask every renderer to reconnect."""
        if self._again is not None:
            self._again.cancel()
        if self._listener.socket.fileno() >= 0:
            asyncio.get_running_loop().remove_reader(self._listener.socket.fileno())
        self._listener.close()
        await self._conversations.stop()


class UnixDialler:
    """Connects to a renderer that listens at a path, and reconnects after each end."""

    def __init__(
        self,
        state: ServerState,
        path: str,
        settings: UnixSettings,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._path = path
        self._conversations = UnixConversations(state, settings)
        self._draw = draw
        self._task: asyncio.Task[None] | None = None

    @property
    def address(self) -> str:
        """Address of the renderer."""
        return f"unix:{self._path}"

    async def start(self) -> None:
        """Start connecting."""
        self._task = asyncio.get_running_loop().create_task(self._run(), name="arp-dial")

    async def _run(self) -> None:
        clock = asyncio.get_running_loop().time
        attempt = 0
        reported = ""
        while True:
            began = clock()
            try:
                own = connect_to(self._path)
            except (OSError, SocketRefused) as error:
                problem = str(error.strerror if isinstance(error, OSError) else error)
                if problem != reported:  # log a problem once, not at every attempt
                    logger.info("cannot connect to %s: %s; trying again", self.address, problem)
                    reported = problem
            else:
                reported = ""
                await asyncio.wait([self._conversations.begin(own, "Unix socket, dialled")])
            if clock() - began > STEADY_S:
                attempt = 0
            ceiling_s = min(MOST_WAIT_S, FIRST_WAIT_S * 2.0 ** min(attempt, 16))
            attempt += 1
            # Random pauses, so that several servers do not all connect at the same moment.
            await asyncio.sleep(ceiling_s * (0.5 + 0.5 * self._draw()))

    async def stop(self) -> None:
        """Stop connecting, and close the connection."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        await self._conversations.stop()
