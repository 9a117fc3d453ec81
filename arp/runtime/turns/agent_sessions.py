"""`AgentSessions`: finds, creates and closes the runtime's sessions behind a session of ARP.

Theory of operation. Each thread of a session of ARP has one session of the runtime. If that has
not received exactly the messages of a turn's branch, a new session is created with the conversation
of the branch. A session that is idle, or that must make room for another one, is closed; the next
turn resumes it. While a session is open, a task watches it between turns of ARP. If the runtime
begins a turn by itself, the task begins a turn of ARP without user input. The task records other
events, and updates the commands.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from arp.hub.removal import ExternalRecord, note_elsewhere
from arp.protocol.json_value import Json, JsonObject
from arp.protocol.messages import Command
from arp.runtime.contract import types as ari
from arp.runtime.contract.errors import AriError, NotFound, Unavailable, Unimplemented
from arp.runtime.contract.services import EventSubscription
from arp.runtime.remote.remote import RemoteRuntime
from arp.runtime.turns.linked_session import LinkedSession, RuntimeHandle, key_of
from arp.runtime.turns.run_facts import record_event, record_mode
from arp.runtime.turns.runtime_messages import history_of
from arp.runtime.turns.session_commands import CHANGES_COMMANDS, SessionCommands, Switch

if TYPE_CHECKING:
    from arp.record.recorder import Recorder
    from arp.turn.turn import Turn

logger = logging.getLogger(__name__)

OWN_TURN = "Goes on by itself."
"""Input text of a turn that the runtime begins; the screens show it beside the runtime's name."""
MAX_CANDIDATES = 50
"""Number of models that a fact lists."""
_BETWEEN_TURNS = CHANGES_COMMANDS | frozenset(
    (
        ari.Lifecycle.SUBAGENT,
        ari.Lifecycle.HOOK,
        ari.Lifecycle.RATE_LIMIT,
        ari.Lifecycle.COMPACTION,
        ari.Lifecycle.WARNING,
    )
)
"""Lifecycle events that are recorded while no turn is active."""


class RuntimeLimits(msgspec.Struct, frozen=True):
    """Limits for open sessions of a runtime.

    Each open session may be a process with hundreds of megabytes. A closed session is resumed with
    its next message.
    """

    max_open: int = 32
    """Largest number of open sessions. If it is reached, the least recently used session is
    closed."""
    idle_s: float = 1_800.0
    """Seconds without a turn after which a session is closed."""


class AppCalls(Protocol):
    """Calls to an app between turns; `App` implements them."""

    async def push(
        self,
        session: str,
        text: str = "",
        *,
        data: Mapping[str, Json] | None = None,
        origin: str = "app",
        id: str | None = None,
    ) -> object:
        """Begin a turn, as `App.push` does."""

    async def set_commands(self, session: str, commands: Iterable[Command]) -> None:
        """Replace the commands of a session, as `App.set_commands` does."""

    async def recorder(self, session: str) -> Recorder:
        """Return the recorder of a session, as `App.recorder` does."""


class AgentSessions:
    """The sessions of a runtime behind the sessions of ARP.

    Args:
        runtime: Runtime of the sessions.
        commands: Commands of the sessions.
        request: Request that creates a session.
        limits: Limits for open sessions.
        app: App that receives events between turns; `None` means that sessions are not watched.
    """

    def __init__(
        self,
        runtime: RuntimeHandle,
        commands: SessionCommands,
        request: ari.CreateSessionRequest,
        limits: RuntimeLimits,
        app: AppCalls | None,
    ) -> None:
        self._runtime = runtime
        self._commands = commands
        self._request = request
        self._limits = limits
        self._app = app
        self._open: dict[str, LinkedSession] = {}
        """Open sessions, by the runtime's id."""
        self._opening = 0
        """Number of sessions that are being opened; they count against the limit."""
        self._closing: set[asyncio.Task[None]] = set()

    def forget(self) -> None:
        """Forget the open sessions because the runtime was closed with all of them."""
        for link in self._open.values():
            if link.watcher is not None:
                link.watcher.cancel()
        for task in self._closing:
            task.cancel()
        self._open.clear()

    def opened(self, session_id: str) -> LinkedSession | None:
        """Return the open session with this id of the runtime, or `None`."""
        return self._open.get(session_id)

    @contextmanager
    def using(self, link: LinkedSession) -> Iterator[None]:
        """Keep a session open while it is in use."""
        link.turns += 1
        try:
            yield
        finally:
            link.turns -= 1
            self._note_use(link)

    async def linked(self, turn: Turn) -> LinkedSession:
        """Return the open session of a turn's branch; resume or create it if necessary."""
        key = key_of(turn.thread_id)
        kept = turn.state.get(key)
        state: JsonObject = kept if isinstance(kept, dict) else {}
        session_id = state.get("session_id")
        link: LinkedSession | None = turn.cache.get(key)
        if link is not None and link.is_at(state):
            return await self._ensure_open(turn, link)
        if link is not None and link.watcher is not None:
            link.watcher.cancel()
        # The runtime must not continue a conversation that differs from this branch. After a
        # restart there is no link: if the input has several versions, the runtime may have received
        # another one. A link to the same session has received turns of another branch, because
        # `is_at` is false.
        if link is None:
            has_other_past = len(turn.input.versions or ()) > 1
        else:
            has_other_past = link.session_id == session_id
        if isinstance(session_id, str) and not has_other_past:
            with suppress(NotFound):
                link = LinkedSession(key, session_id)
                link.recall(state, same_session=True)
                return await self._ensure_open(turn, link)
            turn.record(
                "runtime.warning", {"message": f"{self._runtime.name} has lost its session"}
            )
        return await self._create(turn, key, state)

    async def _create(self, turn: Turn, key: str, state: JsonObject) -> LinkedSession:
        """Create a session of the runtime for a branch.

        Called for the first turn, and for a branch that the runtime's session has left or does not
        know. The new session gets the conversation of the branch, so its agent does not know what
        was edited away.
        """
        async with self._reserve_room():
            request = await self._creation_request(turn, state.get("session_id"))
            try:
                created = await self._create_in_runtime(request)
            except NotFound:  # the runtime has no state of the previous turn to fork
                request = msgspec.structs.replace(request, fork_session_id="", fork_after="")
                created = await self._create_in_runtime(request)
        link = LinkedSession(key, created.session_id)
        # Noted at once: if the turn ends now, deleting the session of ARP must still find this one.
        note_elsewhere(turn.cache, ExternalRecord(self._runtime.name, link.session_id))
        about: JsonObject = {"runtime": self._runtime.name, "runtimeSessionId": link.session_id}
        turn.record("thread.started", correlation=about)
        link.knows_past = bool(request.history)
        link.recall(state, same_session=False)
        await self._register(turn, link, created)
        return link

    async def _create_in_runtime(self, request: ari.CreateSessionRequest) -> ari.RuntimeSession:
        """Create a session of the runtime; if this is cancelled, delete the session afterwards."""
        loop = asyncio.get_running_loop()
        creating = loop.create_task(self._runtime.service.create_session(request))
        try:
            return (await asyncio.shield(creating)).session
        except asyncio.CancelledError:
            self._run_in_background(self._delete_when_created(creating))
            raise

    async def _delete_when_created(self, creating: asyncio.Task[ari.CreateSessionResponse]) -> None:
        """Wait until a session has been created, and delete it, because no turn uses it."""
        with suppress(AriError):
            await self.remove((await creating).session.session_id)

    async def remove(self, session_id: str) -> None:
        """Close and delete a session of the runtime.

        Raises:
            Unimplemented: The runtime cannot delete sessions; it was only closed.
            AriError: `delete_session` raised it.
        """
        link = self._open.pop(session_id, None)
        if link is not None and link.watcher is not None:
            link.watcher.cancel()
        service = self._runtime.service
        try:
            await service.delete_session(ari.DeleteSessionRequest(session_id))
        except Unimplemented:
            await service.close_session(ari.CloseSessionRequest(session_id))
            raise

    async def _creation_request(self, turn: Turn, left: Json) -> ari.CreateSessionRequest:
        """Return the request that creates a session with the conversation of a branch.

        If the runtime cannot begin with a conversation, the first message contains it instead.

        Args:
            turn: First turn of the new session.
            left: Id of the runtime's session that has the earlier turns; `None` if there is none.
        """
        past = history_of(turn)
        if not past or not await self._runtime.can("history_seed"):
            return self._request
        request = msgspec.structs.replace(self._request, history=past)
        if isinstance(left, str) and turn.parent and await self._runtime.can("fork_session"):
            return msgspec.structs.replace(request, fork_session_id=left, fork_after=turn.parent)
        return request

    async def _ensure_open(self, turn: Turn, link: LinkedSession) -> LinkedSession:
        """Open the session of a link if necessary, and return the link."""
        try:
            state = (await self._runtime.session(link.session_id)).state
            is_open = state not in (ari.SessionState.CLOSED, ari.SessionState.FAILED)
        except NotFound:
            is_open = False
        # A link that is not in the cache is new. Resuming an open session emits its open requests
        # again, which this link has not seen.
        if not is_open or turn.cache.get(link.key) is not link:
            request = self._request
            resuming = ari.ResumeSessionRequest(
                link.session_id,
                cwd=request.cwd,
                model=request.model,
                mode=request.mode,
                provider=request.provider,
                instructions=request.instructions,
                mcp_servers=request.mcp_servers,
                permission_timeout_s=request.permission_timeout_s,
            )
            async with self._reserve_room():
                resumed = await self._runtime.service.resume_session(resuming)
            await self._register(turn, link, resumed.session)
            link.cursor, link.knows_past = resumed.sequence, True
        return link

    async def _register(self, turn: Turn, link: LinkedSession, session: ari.RuntimeSession) -> None:
        """Register a session that was opened, and watch it."""
        turn.cache[link.key] = link
        link.cwd = "" if isinstance(self._runtime.service, RemoteRuntime) else session.cwd
        link.remember(turn)
        before = self._open.get(link.session_id)
        if before is not None and before.watcher is not None:
            # The session of ARP was evicted and loaded again. Two watchers would begin each turn
            # of the runtime twice.
            before.watcher.cancel()
        self._open[link.session_id] = link
        self._note_use(link)
        await self._commands.switch_again(link)
        await self._commands.announce(turn, link)
        if self._app is not None:
            subscription = await self._runtime.events(link.session_id, None)
            link.cursor = subscription.cursor
            watching = self._watch(self._app, turn.session_id, link, subscription)
            link.watcher = asyncio.get_running_loop().create_task(watching)
        await self._record_choices(turn, link, session)

    async def _record_choices(
        self, turn: Turn, link: LinkedSession, session: ari.RuntimeSession
    ) -> None:
        """Record the available models, the model in use, and the mode."""
        known = {switch.name: switch for switch in await self._commands.switches(link.session_id)}
        _, choices, model = known.get("model", Switch("model", (), ""))
        _, _, mode = known.get("mode", Switch("mode", (), ""))
        link.model = model or session.model
        record_mode(turn.record, mode or session.mode)
        if not link.model:
            return
        candidates = [one.id for one in choices if one.id != link.model]
        if turn.record.route([link.model, *candidates][:MAX_CANDIDATES]) is None:
            chosen = {"model": link.model, "reason": "the session has it"}
            turn.record("routing.decided", dict(chosen))

    # -- between turns ---------------------------------------------------------------------------

    async def _watch(
        self,
        app: AppCalls,
        session_id: str,
        link: LinkedSession,
        subscription: EventSubscription,
    ) -> None:
        """Begin a turn of ARP for each turn that the runtime begins, and record other events."""
        with suppress(AriError):
            async for event in subscription:
                is_own = event.details.get("origin") == "runtime"
                try:
                    if event.lifecycle is ari.Lifecycle.TURN_STARTED and is_own:
                        await self._push(app, session_id, link, event)
                    elif not event.turn_id and event.lifecycle in _BETWEEN_TURNS:
                        await self._record_between(app, session_id, link, event)
                except Exception:
                    name = self._runtime.name
                    logger.exception("session %s: what %s does between turns", session_id, name)

    async def _push(
        self, app: AppCalls, session_id: str, link: LinkedSession, event: ari.Event
    ) -> None:
        data: JsonObject = {
            "turn": event.turn_id,
            "after": event.sequence - 1,
            "session": link.session_id,
        }
        origin = self._runtime.name
        await app.push(session_id, OWN_TURN, data=data, origin=origin, id=event.turn_id)

    async def _record_between(
        self, app: AppCalls, session_id: str, link: LinkedSession, event: ari.Event
    ) -> None:
        if event.lifecycle in CHANGES_COMMANDS:
            found = await self._commands.listed(link.session_id)
            await app.set_commands(session_id, found.commands)
            link.warn(await app.recorder(session_id), found.warnings)
        if event.lifecycle is ari.Lifecycle.RATE_LIMIT:
            link.limits[str(event.details.get("limit"))] = event.details
        record_event(await app.recorder(session_id), event)

    # -- limit of open sessions ------------------------------------------------------------------

    def _note_use(self, link: LinkedSession) -> None:
        """Record the use of a session, and close it after `idle_s` unless it is used again."""
        loop = asyncio.get_running_loop()
        link.used_at = loop.time()
        loop.call_later(self._limits.idle_s, self._close_if_idle, link, link.used_at)

    def _close_if_idle(self, link: LinkedSession, used_at: float) -> None:
        if link.turns or link.used_at != used_at or self._open.get(link.session_id) is not link:
            return
        self._run_in_background(self._close(link))

    def _run_in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def _close(self, link: LinkedSession) -> None:
        """Close a session, unless the runtime is working in it by itself."""
        with suppress(AriError):
            if (await self._runtime.session(link.session_id)).active_turn_id:
                self._note_use(link)
                return
            if self._open.get(link.session_id) is link and not link.turns:
                del self._open[link.session_id]
                request = ari.CloseSessionRequest(link.session_id)
                await self._runtime.service.close_session(request)

    @asynccontextmanager
    async def _reserve_room(self) -> AsyncIterator[None]:
        """Reserve room for a session while it is being opened.

        If the limit is reached, the least recently used session is closed. Turns of several
        sessions can be here at the same time, so sessions that are still being opened count too.

        Raises:
            Unavailable: All open sessions are at work.
        """
        most = self._limits.max_open
        for link in sorted(self._open.values(), key=lambda one: one.used_at):
            if len(self._open) + self._opening < most:
                break
            if not link.turns:
                await self._close(link)
        if len(self._open) + self._opening >= most:
            raise Unavailable(f"{most} sessions are at work already; try again when one is done")
        self._opening += 1
        try:
            yield
        finally:
            self._opening -= 1
