"""`AgentServer`: the process of an agent that speaks JSON-RPC, and the sessions in it.

Theory of operation. One process serves all sessions of a runtime object. Its messages name the
session that they are about, and a subclass passes each to that session. The first update about a
new session may arrive before the answer that contains the session's id. Such a message is kept
(`keep_early`), and handled when the session is added.

If the process ends, all its sessions are lost. The runtime then starts another process.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Generic, Protocol, TypeVar

from arp.process.program import ProgramStart
from arp.protocol.json_value import Json, JsonObject
from arp.runtime.contract.errors import AriError, Unavailable
from arp.runtime.programs.json_rpc_peer import JsonRpcChild, JsonRpcError, JsonRpcPeer, RequestId

logger = logging.getLogger(__name__)

CALL_S = 60.0
"""Seconds that an agent may take to answer a call; the end of a turn has no such limit."""
STOP_S = 5.0
"""Seconds that an agent may take to stop the turn of a closed session, and to end by itself."""
MAX_EARLY = 200
"""Number of messages that are kept for sessions that have not been added yet."""


class ServedSession(Protocol):
    """A session in the process."""

    def lost(self, reason: str) -> None:
        """Handle the end of the process."""


S = TypeVar("S", bound=ServedSession)


class AgentServer(ABC, Generic[S]):
    """The process of an agent, and its sessions; `start` starts it.

    A subclass is the `JsonRpcHandler` of the process: it handles notifications and requests.

    Args:
        name: Name of the agent, for messages.
    """

    start_s: ClassVar[float] = 60.0
    """Seconds that the agent may take to start; JavaScript agents take several on a busy
    machine."""
    has_version: ClassVar[bool] = True
    """Whether messages to the agent have `"jsonrpc": "2.0"`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.version = ""
        """Version of the agent; empty until it has reported one."""
        self.ended = asyncio.Event()
        """Set when the process has ended."""
        self.is_killed_at_end = False
        """Whether `stop` kills the agent: a request of a session must stay open, so the agent must
        not record the end of its turn."""
        self._child: JsonRpcChild | None = None
        self._sessions: dict[str, S] = {}
        self._early: dict[str, list[Callable[[], None]]] = {}
        """Kept messages, by the id of their unknown session; each is a call that handles it."""

    async def start(
        self, command: Sequence[str], environment: Mapping[str, str], cwd: Path
    ) -> None:
        """Start the process and wait until it is ready.

        Raises:
            Unavailable: The agent does not start; the message has its error text.
        """
        start = ProgramStart(command, environment, str(cwd), self.name)
        try:
            self._child = await JsonRpcChild.start(start, self, has_version=self.has_version)
        except OSError as failed:
            raise Unavailable(f"{self.name} cannot be started: {failed}") from failed
        try:
            async with asyncio.timeout(self.start_s):
                await self._introduce()
        except BaseException as failed:
            await self._child.stop(0)
            if isinstance(failed, TimeoutError):
                late = f"{self.name} did not start within {self.start_s:g} s"
                raise Unavailable(late) from failed
            raise

    @abstractmethod
    async def _introduce(self) -> None:
        """Exchange versions and capabilities with the agent.

        Raises:
            AriError: The agent refuses, or its version cannot be used.
        """

    @property
    def _started(self) -> JsonRpcChild:
        assert self._child is not None
        return self._child

    @property
    def is_running(self) -> bool:
        """Whether the agent can be called."""
        return self._child is not None and self._child.is_running

    @property
    def process_id(self) -> int:
        """Id of the process; 0 if it has ended."""
        return self._started.process.program_id

    @property
    def peer(self) -> JsonRpcPeer:
        """The connection to the agent. Its methods raise `PeerClosed` if the process has ended."""
        return self._started.peer

    async def call(self, method: str, params: JsonObject) -> Json:
        """Return the answer of the agent.

        Raises:
            AriError: The agent refused the call, has ended, or did not answer in time.
        """
        try:
            async with asyncio.timeout(CALL_S):
                return await self.peer.call(method, params)
        except JsonRpcError as refused:
            raise self.error_of(refused) from refused
        except TimeoutError as late:
            raise Unavailable(f"{self.name} did not answer {method} within {CALL_S:g} s") from late

    @abstractmethod
    def error_of(self, refused: JsonRpcError) -> AriError:
        """Return the error for a call that the agent refused."""

    async def stop(self, reason: str = "", grace_s: float = STOP_S) -> None:
        """End the process; sessions that are still in it are lost.

        Args:
            reason: Reason for the log; empty if the end is expected.
            grace_s: Seconds that the agent may take to end by itself.
        """
        if reason:
            logger.warning("%s is ended: %s", self.name, reason)
        if self.is_killed_at_end:
            self._started.process.kill()
        await self._started.stop(grace_s)

    # -- sessions --------------------------------------------------------------------------------

    def session(self, session_id: object) -> S | None:
        """Return the session with an id; `None` if there is none."""
        return self._sessions.get(session_id) if isinstance(session_id, str) else None

    def sessions(self) -> list[S]:
        """Return all sessions, each once."""
        return list(dict.fromkeys(self._sessions.values()))

    def add(self, session_id: str, session: S) -> None:
        """Deliver messages with an id to a session, including those that were kept.

        A session can have several ids, such as those of the agents that work for it.
        """
        self._sessions[session_id] = session
        for handle in self._early.pop(session_id, ()):
            handle()

    def drop(self, session: S) -> None:
        """Stop delivering messages to a session."""
        self._sessions = {key: one for key, one in self._sessions.items() if one is not session}

    def keep_early(self, session_id: str, handle: Callable[[], None]) -> bool:
        """Keep a message about an unknown session until the session is added.

        Returns:
            Whether the message is kept: at most `MAX_EARLY` messages are.
        """
        if sum(map(len, self._early.values())) >= MAX_EARLY:
            return False
        self._early.setdefault(session_id, []).append(handle)
        return True

    # -- messages of the agent -------------------------------------------------------------------

    @abstractmethod
    def notified(self, method: str, params: JsonObject) -> None:
        """Handle a notification of the agent."""

    @abstractmethod
    def requested(self, request_id: RequestId, method: str, params: JsonObject) -> None:
        """Handle a request of the agent: pass it to a user, or answer it at once."""

    def closed(self, reason: str) -> None:
        """Handle the end of the process."""
        self.ended.set()
        sessions = self.sessions()
        self._sessions.clear()
        for session in sessions:
            session.lost(reason)
