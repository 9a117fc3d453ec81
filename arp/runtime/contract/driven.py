"""`DrivenRuntime`: the part of a runtime that is the same for all adapters.

Theory of operation. An adapter is a subclass. It starts the agent, implements the calls to one
native session (`NativeSession`), and adds the optional services that the agent supports. This class
and `SessionFeed` do the rest: ids, one turn at a time, the order of events, permissions,
idempotency keys, deadlines and consumers. A per-session lock serialises creating, resuming, closing
and deleting.
"""

from __future__ import annotations

import asyncio
import os
import time
import uuid
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, TypeVarTuple, Unpack
from weakref import WeakValueDictionary

import msgspec

from arp.runtime.contract import types as ari
from arp.runtime.contract.enum_values import check_values
from arp.runtime.contract.errors import (
    AlreadyExists,
    AriError,
    Canceled,
    DeadlineExceeded,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    RuntimeInternal,
    Unimplemented,
    status_of,
)
from arp.runtime.contract.event_log import EventLog, LogSubscription
from arp.runtime.contract.feed import PendingPermission, SessionFeed
from arp.runtime.contract.services import is_capability_name
from arp.runtime.contract.threads import ThreadsafeRuntime

Args = TypeVarTuple("Args")

CANCEL_GRACE_S = 10.0
"""Seconds that a runtime may take to stop a turn before its process is ended."""
HEARTBEAT_S = 15.0
"""Seconds without an event after which a heartbeat reports that the turn is active."""
MAX_IDEMPOTENCY_KEYS = 1_000
"""Number of idempotency keys that a session remembers."""


class NativeSession(Protocol):
    """One session of a runtime; each adapter implements it.

    The adapter reports the runtime's output to the `SessionFeed` that it received. An error of
    `send` ends the turn. An error of `respond` is raised to the caller; if the request has expired,
    it ends the turn. An `AriError` of `cancel` becomes a warning; the turn then ends when the
    runtime stops, at the latest after `cancel_grace_s`.
    """

    session_id: str
    """The runtime's own id."""
    model: str
    mode: str
    provider: str

    async def send(self, request: ari.SendMessageRequest) -> None:
        """Begin a turn; return when the runtime has received the message."""

    async def respond(self, pending: PendingPermission, response: ari.PermissionResponse) -> None:
        """Answer a permission request of the runtime."""

    async def cancel(self, open_requests: Sequence[PendingPermission]) -> None:
        """Ask the runtime to stop the turn, and deny its open requests."""

    async def aclose(self) -> None:
        """End what belongs only to this session. May be called again; must not raise."""

    async def abandon(self) -> None:
        """End the session as a crash would, so that resuming it finds the open requests.

        Called instead of `aclose` if the runtime is closed while a request of the session is open.
        The agent gets no answer: a denial or an interrupt would become part of the conversation.
        """


class OpenSession:
    """A session of this runtime object: its feed, its event log and its native session."""

    def __init__(self, runtime: DrivenRuntime, request: ari.CreateSessionRequest) -> None:
        self.log = EventLog()
        self.feed = SessionFeed(self._on_event, runtime.clock, runtime.new_id)
        self.feed.permission_timeout_ns = int(request.permission_timeout_s * 1e9)
        self.request = request
        """Request that created the session. If another process created it, this is made from the
        request that resumed it."""
        self.native: NativeSession | None = None
        self.turns_of_keys: OrderedDict[str, ari.SendMessageResponse] = OrderedDict()
        self.created_at_ns = runtime.clock()
        self.updated_at_ns = self.created_at_ns
        self.tasks: set[asyncio.Task[object]] = set()
        self._runtime = runtime
        self._heartbeat: asyncio.TimerHandle | None = None
        """Timer that runs as long as a turn is active and checks the time of the last event."""
        self._turn_timers: list[asyncio.TimerHandle] = []

    def _on_event(self, event: ari.Event) -> None:
        self.updated_at_ns = event.timestamp_ns
        self.log.append(event)
        if event.done:
            self.stop_timers()
        elif event.turn_id and self._heartbeat is None:
            self._beat_in(self._runtime.heartbeat_s)
        if event.permission is not None and event.permission.deadline_ns:
            wait = (event.permission.deadline_ns - event.timestamp_ns) / 1e9
            self.later(wait, self._expire, event.permission.request_id)

    def _beat_in(self, delay_s: float) -> None:
        self._heartbeat = asyncio.get_running_loop().call_later(delay_s, self._beat)

    def _beat(self) -> None:
        """Emit a heartbeat after `heartbeat_s` without an event; otherwise set the timer again."""
        quiet_s = (self._runtime.clock() - self.updated_at_ns) / 1e9
        left_s = self._runtime.heartbeat_s - quiet_s
        self._heartbeat = None
        if self.feed.turn is None:
            return
        if left_s > 0.001:
            self._beat_in(left_s)
        else:
            self.feed.tell(ari.Lifecycle.HEARTBEAT)  # `_on_event` then sets the timer again

    def _expire(self, request_id: str) -> None:
        pending = self.feed.expire(request_id)
        if pending is not None:
            denial = ari.PermissionResponse("deny")
            self.run(self._deny_to_native(pending, denial))

    async def _deny_to_native(
        self, pending: PendingPermission, response: ari.PermissionResponse
    ) -> None:
        try:
            if self.native is not None:
                await self.native.respond(pending, response)
        except AriError as failed:
            self.feed.error(failed.status())

    def later(self, delay_s: float, call: Callable[[Unpack[Args]], None], *args: *Args) -> None:
        """Call a function after a delay, unless the turn has ended by then."""
        loop = asyncio.get_running_loop()
        self._turn_timers.append(loop.call_later(max(delay_s, 0), call, *args))

    def run(self, work: Coroutine[Any, Any, object]) -> None:
        """Run a coroutine in a task that ends with the session."""
        task: asyncio.Task[object] = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def stop_timers(self) -> None:
        """Cancel the timers of the turn and the heartbeat."""
        for timer in self._turn_timers:
            timer.cancel()
        self._turn_timers.clear()
        if self._heartbeat is not None:
            self._heartbeat.cancel()
            self._heartbeat = None

    def value(self) -> ari.RuntimeSession:
        """Return the session as a value."""
        feed, native = self.feed, self.native
        return ari.RuntimeSession(
            session_id=feed.session_id,
            state=feed.state,
            runtime=self._runtime.name,
            cwd=self.request.cwd,
            title=self.request.title,
            created_at_ns=self.created_at_ns,
            updated_at_ns=self.updated_at_ns,
            turn_count=feed.turn_count,
            active_turn_id=feed.turn.id if feed.turn is not None else "",
            model=native.model if native is not None else self.request.model,
            mode=native.mode if native is not None else self.request.mode,
            provider=native.provider if native is not None else self.request.provider,
            metadata=self.request.metadata,
        )


class DrivenRuntime(ABC):
    """Base class of adapters: a `RuntimeService` that drives an agent.

    Args:
        cwd: Directory of the runtime. Sessions work in it by default, and always at or below it.
    """

    name: ClassVar[str]
    """Name of the runtime, such as `claude-code`."""
    permission: ClassVar[Literal["enforced", "advisory", "none"]] = "none"
    part_types: ClassVar[frozenset[str]] = frozenset({"text"})
    """Types of message parts that the adapter supports."""
    takes: ClassVar[frozenset[str]] = frozenset()
    """Names of the optional fields of `CreateSessionRequest` that the adapter supports."""
    runs_commands: bool = True
    """Whether the agents run commands. A command can connect to our server and answer the agent's
    own questions, so clients then need a token."""
    heartbeat_s: float = HEARTBEAT_S
    cancel_grace_s: float = CANCEL_GRACE_S

    def __init__(self, *, cwd: str | Path = ".") -> None:
        self.cwd = Path(cwd).resolve()
        self.clock = time.time_ns
        self._sessions: dict[str, OpenSession] = {}
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._is_closed = False

    # -- implemented by adapters -----------------------------------------------------------------

    @abstractmethod
    async def _create(self, request: ari.CreateSessionRequest, feed: SessionFeed) -> NativeSession:
        """Create a native session.

        `request.cwd` is an absolute path of an existing directory. If `request.session_id` is set,
        the session gets that id: the caller chose it, or a session without a turn is opened again.
        """

    @abstractmethod
    async def _resume(self, request: ari.ResumeSessionRequest, feed: SessionFeed) -> NativeSession:
        """Open a native session that has had a turn.

        `request.cwd` is an absolute path of an existing directory: the session's own, unless the
        caller named another one.

        Raises:
            NotFound: The runtime has no session with this id.
        """

    def _opened(self, session: OpenSession) -> None:
        """Report the initial state of a session, after `created` or `resumed`."""
        return

    async def _stored(self, cwd: str) -> Sequence[ari.RuntimeSession]:
        """Return the sessions that the runtime stores for a directory; all if `cwd` is empty."""
        return ()

    async def _find(self, session_id: str) -> ari.RuntimeSession | None:
        """Return a stored session of any directory; `None` if it does not exist."""
        stored = await self._stored("")
        return next((one for one in stored if one.session_id == session_id), None)

    async def _forget(self, session_id: str) -> None:
        """Remove what the runtime stores about a session, if it stores anything."""
        return

    def is_inside(self, stored: ari.RuntimeSession) -> bool:
        """Return whether a stored session worked at or below the directory of the runtime.

        The program of an agent stores all sessions of its user, in any directory. Sessions outside
        of the runtime's directory must not be reachable from here. Symbolic links are followed. A
        directory that no longer exists is judged by its path. A session without a known directory
        is outside.
        """
        if not os.path.isabs(stored.cwd):
            return False
        try:
            return Path(os.path.realpath(stored.cwd)).is_relative_to(self.cwd)
        except (OSError, ValueError):  # not a valid path
            return False

    def _check_message(self, message: ari.RuntimeMessage) -> None:
        """Raise for a message that cannot be sent, before a turn begins.

        Raises:
            InvalidArgument: The message cannot be sent; the text names the part.
        """
        check_message(message, self.part_types)

    async def _runtime_version(self) -> str:
        """Return the version of the agent."""
        return ""

    async def _problem(self) -> str:
        """Return what prevents new sessions and what to do about it; empty if nothing does."""
        return ""

    async def _shortcoming(self) -> str:
        """Return what does not work completely and what to do; empty if everything works."""
        return ""

    def _capabilities(self) -> Sequence[ari.Capability]:
        """Return the capabilities beyond level 1, by the names in `services.CAPABILITIES`."""
        return ()

    async def _info(self) -> Mapping[str, str]:
        """Return the `info` of `status` with `verbose`."""
        return {}

    async def _end(self) -> None:
        """End what the runtime started for all sessions."""
        return

    async def _begin(self) -> None:
        """Start again after `_end`, possibly in another event loop; create new locks.

        Raises:
            AriError: The runtime cannot be opened; the message says what to do.
        """
        return

    # -- the services ----------------------------------------------------------------------------

    def new_id(self, prefix: str) -> str:
        """Return a new id."""
        return f"{prefix}-{uuid.uuid4().hex[:16]}"

    def threadsafe(self) -> ThreadsafeRuntime:
        """Return a handle for other threads; call this in the loop of the runtime."""
        return ThreadsafeRuntime(self, asyncio.get_running_loop())

    async def version(self, request: ari.VersionRequest) -> ari.VersionResponse:
        """Return names and versions."""
        self._check_open()
        check_api_version(request)
        return ari.VersionResponse(self.name, await self._runtime_version())

    async def status(self, request: ari.StatusRequest) -> ari.StatusResponse:
        """Return health, readiness and capabilities."""
        self._check_open()
        problem = await self._problem()
        shortcoming = "" if problem else await self._shortcoming()
        return ari.StatusResponse(
            healthy=not problem and not shortcoming,
            ready=not problem,
            message=problem or shortcoming,
            capabilities=checked_capabilities(self._capabilities()),
            permission=self.permission,
            info=dict(await self._info()) if request.verbose else {},
        )

    async def create_session(self, request: ari.CreateSessionRequest) -> ari.CreateSessionResponse:
        """Create a session."""
        self._check_open()
        check_values(request)
        self._check_takes(request)
        request = msgspec.structs.replace(request, cwd=self._directory(request.cwd))
        if not request.session_id:
            return ari.CreateSessionResponse((await self._open_new(request)).value())
        async with self._lock(request.session_id):
            if request.session_id in self._sessions or await self._find(request.session_id):
                raise AlreadyExists(f"session_id: {request.session_id!r:.80} is taken")
            return ari.CreateSessionResponse((await self._open_new(request)).value())

    async def resume_session(self, request: ari.ResumeSessionRequest) -> ari.ResumeSessionResponse:
        """Open an existing session."""
        self._check_open()
        async with self._lock(request.session_id):
            known = self._sessions.get(request.session_id)
            # An open session only repeats its requests: a second native session would work on the
            # same conversation.
            if known is not None and known.feed.state not in (
                ari.SessionState.CLOSED,
                ari.SessionState.FAILED,
            ):
                before = known.log.last
                known.feed.ask_again()
                return ari.ResumeSessionResponse(known.value(), before)
            if not request.session_id:
                raise NotFound("session_id: it is empty")
            if request.cwd or known is None:
                cwd = self._directory(request.cwd) if request.cwd else ""
                stored = await self.find_inside(request.session_id) if known is None else None
                cwd = cwd or self._own_cwd(stored)
                request = msgspec.structs.replace(request, cwd=cwd)
            session = known or self._session_to_resume(request)
            before = session.log.last
            await self._reopen(session, request, known)
            return ari.ResumeSessionResponse(session.value(), before)

    async def get_session(self, request: ari.GetSessionRequest) -> ari.GetSessionResponse:
        """Return a session."""
        self._check_open()
        known = self._sessions.get(request.session_id)
        if known is not None:
            return ari.GetSessionResponse(known.value())
        stored = await self.find_inside(request.session_id)
        if stored is None:
            raise no_session(request.session_id)
        return ari.GetSessionResponse(stored)

    async def list_sessions(self, request: ari.ListSessionsRequest) -> ari.ListSessionsResponse:
        """Return the sessions that fit the filter, newest first."""
        self._check_open()
        check_values(request)
        wanted = request.filter
        if not 1 <= wanted.limit <= 1_000:
            raise InvalidArgument(f"filter.limit: expected 1 to 1000, got {wanted.limit}")
        stored = await self._stored(wanted.cwd)
        sessions = {one.session_id: one for one in stored if self.is_inside(one)}
        sessions |= {session_id: one.value() for session_id, one in self._sessions.items()}
        fitting = [one for one in sessions.values() if fits(one, wanted)]
        fitting.sort(key=lambda one: one.updated_at_ns, reverse=True)
        return ari.ListSessionsResponse(tuple(fitting[: wanted.limit]))

    async def close_session(self, request: ari.CloseSessionRequest) -> ari.CloseSessionResponse:
        """Close a session."""
        self._check_open()
        async with self._lock(request.session_id):
            session = self._sessions.get(request.session_id)
            if session is not None:
                await self._close_one(session)
        return ari.CloseSessionResponse()

    async def delete_session(self, request: ari.DeleteSessionRequest) -> ari.DeleteSessionResponse:
        """Close a session and remove everything that the runtime stored about it."""
        self._check_open()
        async with self._lock(request.session_id):
            session = self._sessions.get(request.session_id)
            if session is None:
                await self.find_inside(request.session_id)
            else:
                await self._close_one(session)
            await self._forget(request.session_id)
            self._sessions.pop(request.session_id, None)
        return ari.DeleteSessionResponse()

    async def send_message(self, request: ari.SendMessageRequest) -> ari.SendMessageResponse:
        """Begin a turn."""
        check_values(request)
        session = self.session(request.session_id)
        key = request.idempotency_key
        if key and (before := session.turns_of_keys.get(key)) is not None:
            return before
        feed = session.feed
        feed.check_can_begin()
        self._check_message(request.message)
        last = session.log.last
        # The turn begins before the runtime has the message: the feed drops reports outside of a
        # turn, and the first ones may arrive while `send` still waits.
        response = ari.SendMessageResponse(feed.begin(), last)
        if key:
            session.turns_of_keys[key] = response
            if len(session.turns_of_keys) > MAX_IDEMPOTENCY_KEYS:
                session.turns_of_keys.popitem(last=False)
        if request.timeout_s > 0:
            late = DeadlineExceeded(f"the turn took longer than {request.timeout_s:g} s")
            session.later(request.timeout_s, self._stop_late, session, response.turn_id, late)
        assert session.native is not None
        try:
            await session.native.send(request)
        except Exception as failed:  # noqa: BLE001 - the turn has begun: it ends with the error
            turn = feed.turn
            # The turn may have ended during `send`; the error must not end the next one.
            if turn is not None and turn.id == response.turn_id:
                feed.error(status_of(failed))
        return response

    async def respond_permission(
        self, request: ari.RespondPermissionRequest
    ) -> ari.RespondPermissionResponse:
        """Answer a permission request."""
        check_values(request)
        session = self.session(request.session_id)
        pending = session.feed.answer(request.request_id, request.response)
        assert session.native is not None
        await session.native.respond(pending, request.response)
        return ari.RespondPermissionResponse()

    async def cancel_turn(self, request: ari.CancelTurnRequest) -> ari.CancelTurnResponse:
        """Cancel the active turn."""
        session = self.session(request.session_id)
        why = Canceled("the turn was cancelled")
        return ari.CancelTurnResponse(await self._stop(session, request.turn_id, why))

    async def session_events(self, request: ari.SessionEventsRequest) -> LogSubscription:
        """Subscribe to a session."""
        return self.session(request.session_id).log.subscribe(request.after)

    async def open(self) -> None:
        """Accept calls again after `close`, also in another event loop.

        A new runtime is open already. Sessions from before `close` can be resumed like those of
        another process.

        Raises:
            AriError: The runtime cannot be opened here; it stays closed.
        """
        if self._is_closed:
            self._sessions, self._locks = {}, WeakValueDictionary()
            await self._begin()
            self._is_closed = False

    async def close(self, request: ari.CloseRequest | None = None) -> ari.CloseResponse:
        """Close all sessions and end what the runtime started; `open` accepts calls again."""
        if not self._is_closed:
            self._is_closed = True
            # Sessions without open requests come first: abandoning one of the others may kill a
            # process that both share, before these sessions are closed in order.
            asking = [one for one in self._sessions.values() if one.feed.pending]
            others = [one for one in self._sessions.values() if not one.feed.pending]
            await asyncio.gather(*map(self._close_one, others))
            await asyncio.gather(*(self._close_one(one, is_asking=True) for one in asking))
            await self._end()
        return ari.CloseResponse()

    # -- implementation --------------------------------------------------------------------------

    async def find_inside(self, session_id: str) -> ari.RuntimeSession | None:
        """Return a stored session; `None` if it does not exist.

        Raises:
            NotFound: The session worked outside of the directory of the runtime.
        """
        stored = await self._find(session_id)
        if stored is not None and not self.is_inside(stored):
            raise no_session(session_id)
        return stored

    def session(self, session_id: str) -> OpenSession:
        """Return a session that this runtime object created or resumed.

        Raises:
            NotFound: The session was not opened here; a stored session must be resumed first.
        """
        self._check_open()
        found = self._sessions.get(session_id)
        if found is None:
            raise no_session(session_id)
        return found

    def native_session(self, session_id: str) -> NativeSession:
        """Return the native session of an open session, for calls such as `set_model`.

        Raises:
            NotFound: The session does not exist.
            FailedPrecondition: The session is closed or failed.
        """
        session = self.session(session_id)
        state = session.feed.state
        if session.native is None or state in (ari.SessionState.CLOSED, ari.SessionState.FAILED):
            raise FailedPrecondition(f"the session is {state}: resume it first")
        return session.native

    async def _open_new(self, request: ari.CreateSessionRequest) -> OpenSession:
        session = OpenSession(self, request)
        session.native = await self._create(request, session.feed)
        await self._end_if_closed(session.native)
        session_id = session.native.session_id
        self._sessions[session_id] = session
        session.feed.opened(session_id, ari.Lifecycle.CREATED)
        self._opened(session)
        return session

    async def _end_if_closed(self, native: NativeSession) -> None:
        """End a native session and raise if the runtime was closed while the session was opened."""
        if self._is_closed:
            await native.aclose()
            self._check_open()

    def _session_to_resume(self, request: ari.ResumeSessionRequest) -> OpenSession:
        self._check_servers(request.mcp_servers)
        return OpenSession(
            self,
            ari.CreateSessionRequest(
                session_id=request.session_id,
                cwd=request.cwd,
                model=request.model,
                mode=request.mode,
                provider=request.provider,
                instructions=request.instructions,
                mcp_servers=request.mcp_servers,
                permission_timeout_s=request.permission_timeout_s,
            ),
        )

    def _own_cwd(self, stored: ari.RuntimeSession | None) -> str:
        """Return the directory of a stored session, or the runtime's own if it cannot be used."""
        if stored is not None and stored.cwd:
            with suppress(InvalidArgument):
                return self._directory(stored.cwd)
        return str(self.cwd)

    async def _reopen(
        self,
        session: OpenSession,
        request: ari.ResumeSessionRequest,
        known: OpenSession | None,
    ) -> None:
        """Open a session that is not open.

        A session without turns that the agent has not stored is created again.
        """
        created = session.request
        if known is not None:
            given = {
                name: getattr(request, name) or getattr(created, name)
                for name in request.__struct_fields__
            }
            request = ari.ResumeSessionRequest(**given)
            if session.native is not None:
                await session.native.aclose()
        feed = session.feed
        feed.permission_timeout_ns = int(request.permission_timeout_s * 1e9)
        # Many runtimes store a session only with its first turn. Without this branch, a session
        # that was closed before its first turn could not be resumed.
        if known is not None and feed.turn_count == 0 and not await self._find(request.session_id):
            again = msgspec.structs.replace(created, session_id=request.session_id, cwd=request.cwd)
            session.native = await self._create(again, feed)
            lifecycle = ari.Lifecycle.CREATED
        else:
            session.native = await self._resume(request, feed)
            lifecycle = ari.Lifecycle.RESUMED
        await self._end_if_closed(session.native)
        session.request = msgspec.structs.replace(session.request, cwd=request.cwd)
        session.log.reopen()
        self._sessions[request.session_id] = session
        feed.opened(request.session_id, lifecycle)
        self._opened(session)

    async def _close_one(self, session: OpenSession, *, is_asking: bool = False) -> None:
        session.feed.close()
        session.stop_timers()
        session.log.close()
        if session.native is not None:
            await (session.native.abandon() if is_asking else session.native.aclose())
        for task in list(session.tasks):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _stop(self, session: OpenSession, turn_id: str, why: AriError) -> str:
        feed = session.feed
        turn = feed.turn
        open_requests = feed.stop(why, turn_id)
        assert turn is not None
        assert session.native is not None
        # Started before the cancel, which may itself hang with an unresponsive runtime.
        session.later(self.cancel_grace_s, self._give_up, session, turn.id)
        try:
            await session.native.cancel(open_requests)
        except AriError as failed:
            feed.tell(ari.Lifecycle.WARNING, f"cancel: {failed.message}")
        return turn.id

    def _stop_late(self, session: OpenSession, turn_id: str, why: AriError) -> None:
        turn = session.feed.turn
        if turn is not None and turn.id == turn_id and turn.stopped_by is None:
            session.run(self._stop(session, turn_id, why))

    def _give_up(self, session: OpenSession, turn_id: str) -> None:
        """End the native session of a runtime that did not stop its turn in time."""
        turn = session.feed.turn
        if turn is not None and turn.id == turn_id:
            session.feed.lost("the runtime did not stop, so its process was ended")
            assert session.native is not None
            session.run(session.native.aclose())

    def _lock(self, session_id: str) -> asyncio.Lock:
        lock = self._locks.get(session_id)
        if lock is None:
            lock = self._locks[session_id] = asyncio.Lock()
        return lock

    def _check_open(self) -> None:
        if self._is_closed:
            raise FailedPrecondition("the runtime is closed")

    def _check_takes(self, request: ari.CreateSessionRequest) -> None:
        """Raise for a field that this runtime does not support, because it must not be ignored."""
        optional = (
            "session_id", "model", "mode", "provider", "instructions", "mcp_servers", "history",
            "fork_session_id",
        )  # fmt: skip
        for name in optional:
            if getattr(request, name) and name not in self.takes:
                raise Unimplemented(f"{name}: {self.name} cannot take one")
        self._check_servers(request.mcp_servers)

    def _check_servers(self, servers: Sequence[ari.McpServer]) -> None:
        for number, server in enumerate(servers):
            if server.shared:
                raise InvalidArgument(
                    f"mcp_servers[{number}].shared: {self.name} connects by itself, once for each "
                    "session; leave it out"
                )

    def _directory(self, cwd: str) -> str:
        """Return the absolute directory of a session; it must exist at or below the runtime's."""
        path = (self.cwd / cwd).resolve()
        if not path.is_relative_to(self.cwd):
            raise InvalidArgument(f"cwd: {cwd!r:.200} is not below the directory of the runtime")
        if not path.is_dir():
            raise InvalidArgument(f"cwd: there is no directory {cwd!r:.200}")
        return str(path)


def no_session(session_id: str) -> NotFound:
    """Return the error for a session that does not exist or is not open here."""
    return NotFound(f"there is no session {session_id!r:.80}; one that was stored must be resumed")


def checked_capabilities(listed: Sequence[ari.Capability]) -> tuple[ari.Capability, ...]:
    """Return the capabilities of an adapter after a check of their names.

    Raises:
        RuntimeInternal: A name is neither in `CAPABILITIES` nor `VENDOR/NAME`, so no caller could
            know its meaning.
    """
    for one in listed:
        if not is_capability_name(one.name):
            raise RuntimeInternal(
                f"capability {one.name!r:.80}: not in CAPABILITIES of arp.runtime.contract; "
                "call one of your own VENDOR/NAME"
            )
    return tuple(listed)


def check_api_version(request: ari.VersionRequest) -> None:
    """Raise if a caller uses another version of the interface.

    Raises:
        InvalidArgument: The version is another one.
    """
    if request.api_version != ari.API_VERSION:
        raise InvalidArgument(
            f"api_version: expected {ari.API_VERSION!r}, got {request.api_version!r:.40}"
        )


def check_message(message: ari.RuntimeMessage, part_types: frozenset[str]) -> None:
    """Raise if a message is empty or has a part that the runtime does not support.

    Raises:
        InvalidArgument: The message cannot be sent; the text names the part.
    """
    if message.role != "user":
        raise InvalidArgument(f"message.role: expected 'user', got {message.role!r}")
    if not message.content.strip() and not message.parts:
        raise InvalidArgument("message: it is empty")
    for number, part in enumerate(message.parts):
        place = f"message.parts[{number}]"
        if part.type not in part_types:
            taken = ", ".join(sorted(part_types))
            raise InvalidArgument(f"{place}: {part.type} parts cannot be taken, only {taken}")
        if part.type != "text" and not part.data and not part.uri:
            raise InvalidArgument(f"{place}: neither data nor uri")


def fits(session: ari.RuntimeSession, wanted: ari.SessionFilter) -> bool:
    """Return whether a session fits a filter."""
    return (
        (not wanted.session_ids or session.session_id in wanted.session_ids)
        and (not wanted.states or session.state in wanted.states)
        and (not wanted.cwd or session.cwd == wanted.cwd)
    )
