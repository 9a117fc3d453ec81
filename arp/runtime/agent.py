"""`RuntimeAgent`: drives any runtime as an ARP agent, so that it is on every screen.

Theory of operation. A session of ARP has one session of the runtime; its id is in `turn.state`, so
that it is found after a restart, and each branch and each thread has its own. A turn sends the
message and shows the events of the runtime's turn until its end. Each permission request is asked
in a task of its own: the events go on meanwhile, and several can be open. What a runtime does by
itself between turns is noticed by a task that watches the session: a turn of its own begins one
that nobody typed, and what it tells besides is recorded, or changes the commands of the session.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Protocol

import msgspec

from arp.hub.past_messages import told
from arp.hub.question_outcome import DECLINED, Declined
from arp.hub.tool import MAX_RULE, Approval, SecondLook, ToolCall, ToolFailed, digest_of
from arp.protocol.components import Component
from arp.protocol.errors import ArpError, SurfaceDestroyed
from arp.protocol.json_value import Json, JsonObject
from arp.protocol.messages import Command, CommandChoice
from arp.protocol.validate import check_component
from arp.record.wording import encoded
from arp.runtime import types as ari
from arp.runtime.errors import (
    AriCode,
    AriError,
    ErrorStatus,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    Unavailable,
)
from arp.runtime.named_files import FileBinding
from arp.runtime.remote import RemoteRuntime
from arp.runtime.run_facts import (
    RunFacts,
    notice_of,
    record_event,
    record_mode,
    record_plan,
    record_warning,
)
from arp.runtime.services import (
    CommandManager,
    EventSubscription,
    ModelManager,
    ModeManager,
    ProviderManager,
    RuntimeService,
    SessionUtilityManager,
)
from arp.runtime.user_questions import (
    DECLINE,
    OTHER,
    AskedOnce,
    ask_user,
    asked_once,
    is_user_question,
    question_mark,
)
from arp.surface.answers import answer_value, check_answer, is_decline
from arp.values.cell import cell_of

if TYPE_CHECKING:
    from arp.hub.turn import Turn
    from arp.record.recorder import Recorder

logger = logging.getLogger(__name__)

STATE_KEY = "arp.runtime"
"""Where `turn.state` and `turn.cache` have what belongs to the runtime's session of the first
thread; of another thread, its name is behind it."""
MAX_SHOWN = 20_000
"""Characters of a command's output that are shown as a component; the tool's result has all."""
MAX_DIFF = 200_000
"""Characters of a file before and after a change; a larger one is shown by its name only."""
MAX_TOLD = 200
"""Earlier messages that a new session gets with its first one."""
MAX_MISSED = 2_000
"""Characters of a message in a turn that somebody else answered."""
BUSY_TRIES = 3
"""Turns of the runtime's own that a message waits for."""
OWN_TURN = "Goes on by itself."
"""The input of a turn that the runtime begins, as the screens show it beside the runtime's name."""
SWITCHES = ("model", "mode", "provider")
"""What users may switch, and the names of the commands for it."""
COMPACT = "compact"
"""The command that makes the conversation shorter."""
OURS = (*SWITCHES, COMPACT)
"""Commands that are carried out here: the agent is told nothing of them."""
SUBAGENT = "agent"
"""What a sub-agent without a name is called."""
MAX_CALLERS = 1_000
"""Calls of sub-agents that a session remembers."""
MAX_CANDIDATES = 50
"""Models that a fact lists."""
FIRST_THREAD = "main"
"""The thread with which a session begins."""
_CHANGES_COMMANDS = frozenset((ari.Lifecycle.COMMANDS, ari.Lifecycle.MODEL, ari.Lifecycle.MODE))
"""What changes the commands of a session, or which of their choices is the current one."""
_BETWEEN_TURNS = _CHANGES_COMMANDS | frozenset(
    (
        ari.Lifecycle.SUBAGENT,
        ari.Lifecycle.HOOK,
        ari.Lifecycle.RATE_LIMIT,
        ari.Lifecycle.COMPACTION,
        ari.Lifecycle.WARNING,
    )
)
"""What is taken while no turn runs."""
RULE = "runtime-permission"
"""The rule by which a person is asked, in facts."""
WHICH_RULE = "What may run without asking again?"
ONCE = "Nothing more than this call"
NO_ANSWER = "The user does not answer this question."
"""What the agent is told if its question is declined."""
MAX_FOLLOWING = 20
"""Messages of one turn that tell the runtime why something was denied."""

_PART = re.compile(r"message\.parts\[(\d+)\][.\w]*: ")
"""Before what is wrong with a part of a message."""


class RuntimeOffers(msgspec.Struct, frozen=True):
    """What users may switch, by slash commands and menus."""

    models: tuple[str, ...] = ()
    """Empty: the runtime's own list."""
    modes: tuple[str, ...] = ()
    """Empty: those of the runtime that ask before they change anything."""
    providers: tuple[str, ...] = ()
    """Empty: none."""


class RuntimeLimits(msgspec.Struct, frozen=True):
    """How many sessions of a runtime are open: each may be a process with hundreds of megabytes.

    A session that is closed is resumed with its next message.
    """

    max_open: int = 32
    """At most so many; the one that was used least recently is closed for a new one."""
    idle_s: float = 1_800.0
    """After how long without a turn one is closed."""


class AppCalls(Protocol):
    """What an app is asked to do between turns; an `App` can."""

    async def push(
        self,
        session: str,
        text: str = "",
        *,
        data: Mapping[str, Json] | None = None,
        origin: str = "app",
        id: str | None = None,
    ) -> object:
        """As `App.push`."""

    async def set_commands(self, session: str, commands: Iterable[Command]) -> None:
        """As `App.set_commands`."""

    async def recorder(self, session: str) -> Recorder:
        """As `App.recorder`."""


class LinkedSession:
    """The runtime's session behind a thread of a session of ARP, in memory."""

    def __init__(self, key: str, session_id: str) -> None:
        self.key = key
        """Where `turn.state` and `turn.cache` have it."""
        self.session_id = session_id
        self.cursor = 0
        """The last event that was shown."""
        self.cwd = ""
        """Where its agent works; empty: on another machine, or nobody knows."""
        self.model = ""
        """What answers, as the runtime said last."""
        self.tasks: dict[str, Json] = {}
        """The agent's list, as it is in the ledger: the status of each task by its id."""
        self.switched: dict[str, str] = {}
        """What its user has chosen: model, mode, provider."""
        self.limits: list[JsonObject] = []
        """Limits that were told between turns, for the next one to show."""
        self.callers: dict[str, tuple[str, str]] = {}
        """Id and name of the sub-agents that have made calls, by the ids of the calls."""
        self.turn_ids: list[str] = []
        """The turns of ARP that the runtime knows."""
        self.knows_past = False
        """Whether it began with the conversation before them."""
        self.watcher: asyncio.Task[None] | None = None
        self.turns = 0
        """Turns of ARP that use it now."""
        self.used_at = 0.0
        """When one did last, on the loop's clock."""

    def remember(self, turn: Turn) -> None:
        """Write down in `turn.state` what a restart must find."""
        turn.state[self.key] = {
            "session_id": self.session_id,
            "turns": list(self.turn_ids),
            "switched": dict(self.switched),
            "tasks": dict(self.tasks),
        }

    def recall(self, known: JsonObject, *, with_tasks: bool) -> None:
        """Take what was written down; the tasks only if it is the same session of the runtime."""
        switched, tasks = known.get("switched"), known.get("tasks")
        self.switched = dict(switched) if isinstance(switched, dict) else {}
        self.tasks = dict(tasks) if with_tasks and isinstance(tasks, dict) else {}


class RuntimeAgent:
    """An agent of ARP whose turns are those of a runtime: `app.agent(RuntimeAgent(runtime))`.

    Args:
        runtime: Who does the work.
        session: How sessions of the runtime are created.
        offers: What users may switch.
        limits: How many of its sessions are open.
        app: Where it is registered, for what the runtime does between turns; `None`: that shows
            with the next message.
    """

    def __init__(
        self,
        runtime: RuntimeService,
        *,
        session: ari.CreateSessionRequest | None = None,
        offers: RuntimeOffers | None = None,
        limits: RuntimeLimits | None = None,
        app: AppCalls | None = None,
    ) -> None:
        self.runtime = runtime
        self.request = session or ari.CreateSessionRequest()
        self.offers = offers or RuntimeOffers()
        self.limits = limits or RuntimeLimits()
        self._open: dict[str, LinkedSession] = {}
        """The sessions that are open, by the runtime's id."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._app = app
        self._known: frozenset[str] | None = None
        """What the runtime can do; `None`: it was not asked yet."""
        self.name = ""
        """The runtime's name; known with the first turn."""
        self.runtime_name = re.sub("[^!-~]+", "-", str(getattr(runtime, "name", "")))[:64]
        """The same, as far as it is known before: what `runtimeId` begins with in facts."""

    async def __call__(self, turn: Turn) -> None:
        """Run a turn."""
        try:
            await self._run(turn)
        except AriError as failed:
            raise ToolFailed(f"{self.name or 'the runtime'}: {failed.message}") from failed

    async def _run(self, turn: Turn) -> None:
        if not self.name:
            self.name = (await self.runtime.version(ari.VersionRequest())).runtime_name
        if turn.origin is not None and turn.origin == self.name:
            # Its session is open: the runtime works in it.
            link = self._open.get(str(turn.input.data.get("session")))
            if link is not None:
                self._began(turn, link)
                with self._using(link):
                    await self._play_own(turn, link)
            return
        link = await self._linked(turn)
        with self._using(link):
            await self._answer(turn, link)

    @contextmanager
    def _using(self, link: LinkedSession) -> Iterator[None]:
        """Keep a session open."""
        link.turns += 1
        try:
            yield
        finally:
            link.turns -= 1
            self._used(link)

    async def _answer(self, turn: Turn, link: LinkedSession) -> None:
        if turn.command in SWITCHES and await self._switched(turn, link):
            return
        if turn.command == COMPACT and await self._compacted(turn, link):
            return
        if turn.input.source_component is not None and (again := await self._active(link)):
            # The runtime has taken up the turn again that asked, and asks again: with this answer.
            self._began(turn, link)
            await self._play_rest(turn, link, again)
            return
        message = await self._message(turn, link)
        if message is None:
            await turn.say("Please write a message.")
            return
        try:
            subscription, turn_id = await self._begun(turn, link, message, turn.id)
        except InvalidArgument as refused:
            raise _about_file(turn, self.name, refused) from refused
        self._began(turn, link)
        await self._play(turn, link, subscription, turn_id)

    def _began(self, turn: Turn, link: LinkedSession) -> None:
        """Note that the runtime knows a turn: a restart while it asks something must find it."""
        link.turn_ids.append(turn.id)
        link.remember(turn)

    async def _active(self, link: LinkedSession) -> str:
        """Return the id of the runtime's active turn; empty without one."""
        got = await self.runtime.get_session(ari.GetSessionRequest(link.session_id))
        return got.session.active_turn_id

    async def _begun(
        self, turn: Turn, link: LinkedSession, message: ari.RuntimeMessage, key: str
    ) -> tuple[EventSubscription, str]:
        """Send a message; return the events of the turn that it begins, and its id."""
        try:
            sent = await self._sent(turn, link, message, key)
            return await self._events(link, sent.sequence), sent.turn_id
        except asyncio.CancelledError:
            # The runtime may have the message already: nobody would watch what it does.
            await asyncio.shield(self.cancel(link))
            raise

    async def _play(
        self, turn: Turn, link: LinkedSession, events: EventSubscription, turn_id: str
    ) -> None:
        """Show a turn of the runtime.

        Why something was denied follows as a message of its own, where a denial carries none.
        """
        for number in range(MAX_FOLLOWING + 1):
            shown = RuntimeTurn(self, turn, link)
            await shown.play(events, turn_id)
            if not shown.untold or number == MAX_FOLLOWING:
                shown.tell_fate("was not told")
                return
            message = ari.RuntimeMessage(content="\n\n".join(shown.reasons))
            key = f"{turn.id}.{number + 1}"
            events, turn_id = await self._begun(turn, link, message, key)
            shown.tell_fate("was told")

    async def cancel(self, link: LinkedSession, turn_id: str = "") -> None:
        """Cancel the runtime's turn, if it is active; an empty id stands for any."""
        with suppress(AriError):
            await self.runtime.cancel_turn(ari.CancelTurnRequest(link.session_id, turn_id))

    # -- the session -----------------------------------------------------------------------------

    async def _linked(self, turn: Turn) -> LinkedSession:
        """Return the runtime's session of this branch; open it, or create one."""
        key = STATE_KEY if turn.thread_id == FIRST_THREAD else f"{STATE_KEY}.{turn.thread_id}"
        kept = turn.state.get(key)
        known: JsonObject = kept if isinstance(kept, dict) else {}
        session_id, earlier = known.get("session_id"), known.get("turns", [])
        link: LinkedSession | None = turn.cache.get(key)
        if link is not None and link.session_id == session_id and link.turn_ids == earlier:
            return await self._reopened(turn, link)
        if link is not None and link.watcher is not None:
            link.watcher.cancel()
        if link is None:  # an edit after a restart: the runtime has heard the other version
            has_other_past = len(turn.input.versions or ()) > 1
        else:
            has_other_past = link.session_id == session_id and link.turn_ids != earlier
        if isinstance(session_id, str) and not has_other_past:
            with suppress(NotFound):
                link = LinkedSession(key, session_id)
                link.turn_ids = list(earlier)
                link.recall(known, with_tasks=True)
                return await self._reopened(turn, link)
            turn.record("runtime.warning", {"message": f"{self.name} has lost its session"})
        # The branch was left, or the runtime knows nothing of it. A new session gets what was said
        # with its first message: the agent knows this branch, and nothing that was edited away.
        await self._make_room()
        request = await self._seeded(turn, session_id)
        try:
            created = (await self.runtime.create_session(request)).session
        except NotFound:  # that turn left nothing to go on from
            request = msgspec.structs.replace(request, fork_session_id="", fork_after="")
            created = (await self.runtime.create_session(request)).session
        link = LinkedSession(key, created.session_id)
        link.knows_past = bool(request.history)
        link.recall(known, with_tasks=False)
        await self._keep(turn, link, created)
        about: JsonObject = {"runtime": self.name, "runtimeSessionId": link.session_id}
        turn.record("thread.started", correlation=about)
        return link

    async def _seeded(self, turn: Turn, left: Json) -> ari.CreateSessionRequest:
        """Return how a session is created that begins with the conversation of this branch.

        Where the runtime cannot begin so, the conversation comes with the first message.

        Args:
            turn: The first one of the session.
            left: The session of the runtime that knew the turns before; `None` without one.
        """
        past = _history_of(turn)
        if not past or not await self._can("history_seed"):
            return self.request
        request = msgspec.structs.replace(self.request, history=past)
        if isinstance(left, str) and turn.parent and await self._can("fork_session"):
            return msgspec.structs.replace(request, fork_session_id=left, fork_after=turn.parent)
        return request

    async def _can(self, name: str) -> bool:
        """Return whether the runtime has a capability."""
        if self._known is None:
            status = await self.runtime.status(ari.StatusRequest())
            self._known = frozenset(one.name for one in status.capabilities if one.enabled)
        return name in self._known

    async def _reopened(self, turn: Turn, link: LinkedSession) -> LinkedSession:
        """Return the link once its session is open."""
        try:
            got = await self.runtime.get_session(ari.GetSessionRequest(link.session_id))
            is_open = got.session.state not in (ari.SessionState.CLOSED, ari.SessionState.FAILED)
        except NotFound:
            is_open = False
        if not is_open or turn.cache.get(link.key) is not link:
            await self._make_room()
            request = self.request
            resumed = await self.runtime.resume_session(
                ari.ResumeSessionRequest(
                    link.session_id,
                    cwd=request.cwd,
                    model=request.model,
                    mode=request.mode,
                    provider=request.provider,
                    instructions=request.instructions,
                    mcp_servers=request.mcp_servers,
                    permission_timeout_s=request.permission_timeout_s,
                )
            )
            await self._keep(turn, link, resumed.session)
            link.cursor, link.knows_past = resumed.sequence, True
        return link

    async def _keep(self, turn: Turn, link: LinkedSession, session: ari.RuntimeSession) -> None:
        turn.cache[link.key] = link
        link.cwd = "" if isinstance(self.runtime, RemoteRuntime) else session.cwd
        link.remember(turn)
        before = self._open.get(link.session_id)
        if before is not None and before.watcher is not None:
            before.watcher.cancel()  # of a session of ARP that has left the memory since
        self._open[link.session_id] = link
        self._used(link)
        await self._switch_again(link)
        await self._announce(turn, link)
        if self._app is not None:
            subscription = await self._events(link, None)
            link.cursor = subscription.cursor
            watching = self._watch(self._app, turn.session_id, link, subscription)
            link.watcher = asyncio.get_running_loop().create_task(watching)
        await self._record_choices(turn, link, session)

    async def _record_choices(
        self, turn: Turn, link: LinkedSession, session: ari.RuntimeSession
    ) -> None:
        """Record which models there are, which one answers, and what the agent asks."""
        known = {name: (listed, now) for name, listed, now in await self.choices(link.session_id)}
        none: tuple[Sequence[ari.Choice], str] = ((), "")
        (choices, model), (_, mode) = known.get("model", none), known.get("mode", none)
        link.model = model or session.model
        record_mode(turn.record, mode or session.mode)
        if not link.model:
            return
        candidates = [one.id for one in choices if one.id != link.model]
        if turn.record.route([link.model, *candidates][:MAX_CANDIDATES]) is None:
            chosen = {"model": link.model, "reason": "the session has it"}
            turn.record("routing.decided", dict(chosen))

    async def _events(self, link: LinkedSession, after: int | None) -> EventSubscription:
        return await self.runtime.session_events(ari.SessionEventsRequest(link.session_id, after))

    async def _watch(
        self,
        app: AppCalls,
        session_id: str,
        link: LinkedSession,
        subscription: EventSubscription,
    ) -> None:
        """Take what the runtime does between turns: begin a turn for each that it begins."""
        with suppress(AriError):
            async for event in subscription:
                is_own = event.details.get("origin") == "runtime"
                try:
                    if event.lifecycle is ari.Lifecycle.TURN_STARTED and is_own:
                        await self._push(app, session_id, link, event)
                    elif not event.turn_id and event.lifecycle in _BETWEEN_TURNS:
                        await self._take_between(app, session_id, link, event)
                except Exception:
                    logger.exception("session %s: what %s does by itself", session_id, self.name)

    async def _push(
        self, app: AppCalls, session_id: str, link: LinkedSession, event: ari.Event
    ) -> None:
        data: JsonObject = {
            "turn": event.turn_id,
            "after": event.sequence - 1,
            "session": link.session_id,
        }
        await app.push(session_id, OWN_TURN, data=data, origin=self.name, id=event.turn_id)

    async def _take_between(
        self, app: AppCalls, session_id: str, link: LinkedSession, event: ari.Event
    ) -> None:
        if event.lifecycle in _CHANGES_COMMANDS:
            await app.set_commands(session_id, await self.commands(link.session_id))
        if event.lifecycle is ari.Lifecycle.RATE_LIMIT:
            link.limits.append(event.details)
        record_event(await app.recorder(session_id), event)

    def _used(self, link: LinkedSession) -> None:
        """Close the session later, unless it is used again by then."""
        loop = asyncio.get_running_loop()
        link.used_at = loop.time()
        loop.call_later(self.limits.idle_s, self._close_if_idle, link, link.used_at)

    def _close_if_idle(self, link: LinkedSession, used_at: float) -> None:
        if link.turns or link.used_at != used_at or self._open.get(link.session_id) is not link:
            return
        task = asyncio.get_running_loop().create_task(self._close(link))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _close(self, link: LinkedSession) -> None:
        """Close a session, unless the runtime works in it by itself."""
        with suppress(AriError):
            got = await self.runtime.get_session(ari.GetSessionRequest(link.session_id))
            if got.session.active_turn_id:
                self._used(link)
                return
            if self._open.get(link.session_id) is link and not link.turns:
                del self._open[link.session_id]
                await self.runtime.close_session(ari.CloseSessionRequest(link.session_id))

    async def _make_room(self) -> None:
        """Close the session that was used least recently, if as many as may are open.

        Raises:
            Unavailable: All of them are at work.
        """
        most = self.limits.max_open
        for link in sorted(self._open.values(), key=lambda one: one.used_at):
            if len(self._open) < most:
                return
            if not link.turns:
                await self._close(link)
        if len(self._open) >= most:
            raise Unavailable(f"{most} sessions are at work already; try again when one is done")

    # -- a turn ----------------------------------------------------------------------------------

    async def _message(self, turn: Turn, link: LinkedSession) -> ari.RuntimeMessage | None:
        parts: list[ari.ContentPart] = []
        for ref in turn.files:
            kind = ref.mime.partition("/")[0]
            parts.append(
                ari.ContentPart(
                    kind if kind in ("image", "audio") else "file",  # type: ignore[arg-type]  # narrowed to two literals
                    mime_type=ref.mime,
                    name=ref.name,
                    data=await turn.read_file(ref),
                )
            )
        text = turn.text
        if not text and not parts:
            text = _answered_late(turn)
        if not text and not parts:
            return None
        if link.turn_ids:
            before = _missed(turn, link)
            heading = "Since your last answer, others have answered the user"
        else:
            before = [] if link.knows_past else _without_switches(turn.history(MAX_TOLD))
            heading = "The conversation so far"
        if before:
            lines = "\n\n".join(f"{role}: {said}" for role, said in before)
            text = f"{heading}:\n\n{lines}\n\nNow the user says:\n\n{text}"
        return ari.RuntimeMessage(content=text, parts=tuple(parts))

    async def _sent(
        self, turn: Turn, link: LinkedSession, message: ari.RuntimeMessage, key: str
    ) -> ari.SendMessageResponse:
        """Send the message; a turn that the runtime has begun by itself is shown before."""
        request = ari.SendMessageRequest(link.session_id, message, idempotency_key=key)
        for _ in range(BUSY_TRIES):
            try:
                return await self.runtime.send_message(request)
            except FailedPrecondition:
                active = await self._active(link)
                if not active:
                    raise
                await self._play_rest(turn, link, active)
        return await self.runtime.send_message(request)

    async def _play_own(self, turn: Turn, link: LinkedSession) -> None:
        """Show a turn that the runtime began by itself, unless an earlier turn has shown it."""
        after, turn_id = turn.input.data.get("after"), turn.input.data.get("turn")
        if not isinstance(after, int) or not isinstance(turn_id, str) or after < link.cursor:
            return
        await self._play(turn, link, await self._events(link, after), turn_id)

    async def _play_rest(self, turn: Turn, link: LinkedSession, turn_id: str) -> None:
        await self._play(turn, link, await self._events(link, link.cursor), turn_id)

    async def _compacted(self, turn: Turn, link: LinkedSession) -> bool:
        """Carry out `/compact`; return `False` if the runtime has such a command of its own."""
        if not await self._offers_compact(link.session_id):
            return False
        assert isinstance(self.runtime, SessionUtilityManager)
        subscription = await self._events(link, None)
        request = ari.CompactSessionRequest(link.session_id, turn.arguments)
        begun = await self.runtime.compact_session(request)
        await RuntimeTurn(self, turn, link).play(subscription, begun.turn_id)
        return True

    async def _offers_compact(self, session_id: str) -> bool:
        """Return whether `/compact` is ours: the runtime can do it, and has no command for it."""
        if not isinstance(self.runtime, SessionUtilityManager):
            return False
        listed = [one.name for one in await self._listed(session_id)]
        return COMPACT not in listed and await self._can("compaction")

    # -- switches --------------------------------------------------------------------------------

    async def _announce(self, turn: Turn, link: LinkedSession) -> None:
        commands = await self.commands(link.session_id)
        if commands:
            turn.set_commands(commands)

    async def commands(self, session_id: str) -> list[Command]:
        """Return what a session offers: the runtime's own commands, and what can be switched."""
        commands = {one.name: one for one in await self._listed(session_id)}
        if await self._offers_compact(session_id):
            commands[COMPACT] = Command(COMPACT, "Make the conversation shorter")
        for name, choices, current in await self.choices(session_id):
            offered = tuple(
                CommandChoice(one.id, one.label, one.description, one.id == current)
                for one in choices
            )
            commands[name] = Command(name, f"Switch the {name}", name, offered)
        return list(commands.values())

    async def _listed(self, session_id: str) -> list[Command]:
        """Return the runtime's own commands."""
        if not isinstance(self.runtime, CommandManager):
            return []
        try:
            listed = await self.runtime.list_commands(ari.ListItemsRequest(session_id))
        except AriError:
            return []
        return [
            Command(one.name.removeprefix("/"), one.description, one.hint) for one in listed.items
        ]

    async def choices(self, session_id: str) -> list[tuple[str, Sequence[ari.Choice], str]]:
        """Return what users may switch: its name, the choices, and the current one."""
        runtime, offers = self.runtime, self.offers
        found: list[tuple[str, Sequence[ari.Choice], str]] = []
        if isinstance(runtime, ModelManager):
            with suppress(AriError):
                models = (await runtime.list_models(ari.ListModelsRequest(session_id))).models
                model = (await runtime.get_model(ari.GetModelRequest(session_id))).model
                found.append(("model", _listed(models, offers.models), model))
        if isinstance(runtime, ModeManager):
            with suppress(AriError):
                modes = (await runtime.list_modes(ari.ListModesRequest(session_id))).modes
                mode = (await runtime.get_mode(ari.GetModeRequest(session_id))).mode
                # Never a mode without approvals, unless the operator lists it.
                safe = [one for one in modes if one.asks]
                found.append(("mode", _listed(modes, offers.modes) if offers.modes else safe, mode))
        if isinstance(runtime, ProviderManager) and offers.providers:
            with suppress(AriError):
                listed = await runtime.list_providers(ari.ListProvidersRequest(session_id))
                active = await runtime.get_active_provider(ari.GetActiveProviderRequest(session_id))
                providers = _listed(listed.providers, offers.providers)
                found.append(("provider", providers, active.provider))
        return found

    async def _switched(self, turn: Turn, link: LinkedSession) -> bool:
        """Carry out `/model`, `/mode` or `/provider`; return whether it was one of ours."""
        name, wanted = turn.command, turn.arguments.strip()
        offered = {
            kind: (choices, now) for kind, choices, now in await self.choices(link.session_id)
        }
        if name not in offered:
            return False
        choices, current = offered[name]
        if not wanted:
            rows = [
                f"- `{one.id}` {one.label}{' (current)' * (one.id == current)}" for one in choices
            ]
            await turn.say("\n".join([f"The {name} can be:", "", *rows]))
            return True
        # A runtime that lists no models takes any; of modes and providers nothing is taken that
        # is not offered, also where nothing is.
        is_any = name == "model" and not choices
        if not is_any and wanted not in {one.id for one in choices}:
            known = ", ".join(one.id for one in choices)
            await turn.say(f"There is no {name} {wanted!r} here; choose one of: {known or 'none'}.")
            return True
        taken = await self._switch(name, link.session_id, wanted)
        link.switched[name] = wanted
        link.remember(turn)
        await turn.say(f"The {name} is now {taken}.")
        if name == "model":
            link.model = taken
        await self._announce(turn, link)
        return True

    async def _switch_again(self, link: LinkedSession) -> None:
        """Switch a session that is opened to what its user has chosen, as far as it is offered."""
        switches = await self.choices(link.session_id) if link.switched else ()
        for name, choices, current in switches:
            wanted = link.switched.get(name)
            if wanted is None or wanted == current:
                continue
            if wanted in {one.id for one in choices} or (name == "model" and not choices):
                with suppress(AriError):
                    await self._switch(name, link.session_id, wanted)

    async def _switch(self, name: str | None, session_id: str, wanted: str) -> str:
        runtime = self.runtime
        if name == "model" and isinstance(runtime, ModelManager):
            return (await runtime.set_model(ari.SetModelRequest(session_id, wanted))).model
        if name == "mode" and isinstance(runtime, ModeManager):
            return (await runtime.set_mode(ari.SetModeRequest(session_id, wanted))).mode
        assert isinstance(runtime, ProviderManager)
        request = ari.SetActiveProviderRequest(session_id, wanted)
        return (await runtime.set_active_provider(request)).provider


class RuntimeTurn:
    """One turn of a runtime, on the screens."""

    def __init__(self, agent: RuntimeAgent, turn: Turn, link: LinkedSession) -> None:
        self.agent = agent
        self.runtime = agent.runtime
        self.turn = turn
        self.link = link
        self.calls: dict[str, ToolCall] = {}
        self.inputs: dict[str, ari.Event] = {}
        self.used_late = False
        """Whether the input of the turn has answered a permission that an earlier turn asked."""
        self.asking: dict[str, asyncio.Task[None]] = {}
        self.looking = asyncio.Lock()
        """Held while files are looked at: questions come in the order of their requests."""
        self.refused: dict[str, str] = {}
        """Why a call was not run although it was allowed, by its id."""
        self.facts = RunFacts(turn.record, link.model)
        self.plan = ""
        self.retry = ""
        self.retries = 0
        """Since the model answered last."""
        self.untold: dict[str, str] = {}
        """Why something was denied, as the runtime could not be told it; by what shows it."""
        self.reasons: list[str] = []
        """The same, as the runtime is told it by a message."""
        self.limits: dict[str, str] = {}
        """The components that tell of limits, by the name of the limit."""

    async def play(self, events: EventSubscription, turn_id: str) -> None:
        """Show a turn to its end; a cancel of ours cancels the runtime's."""
        try:
            while self.link.limits:
                self._show_limit(self.link.limits.pop(0))
            async for event in events:
                self.link.cursor = event.sequence
                if event.turn_id != turn_id:
                    continue
                await self._show(event)
                if event.done:
                    await self._finish(event)
                    return
            raise ToolFailed(f"{self.agent.name}: the session was closed")
        except BaseException:
            # Nobody watches it any more, so nobody could answer what it asks. First the questions
            # end: the runtime may need some time to stop, and no answer may come before that.
            self._stop_asking()
            await asyncio.shield(self.agent.cancel(self.link, turn_id))
            raise
        finally:
            self._stop_asking()
            await events.aclose()
            self.link.model = self.facts.model
            self.link.remember(self.turn)

    def _stop_asking(self) -> None:
        for task in list(self.asking.values()):
            task.cancel()

    async def _show(self, event: ari.Event) -> None:
        if self.retries and event.type is not ari.EventType.LIFECYCLE:
            self._end_retry(event)
        match event.type:
            case _ if event.lifecycle is ari.Lifecycle.COMPONENT:
                self._show_component(event.details.get("component"))
            case _ if event.lifecycle is ari.Lifecycle.SPEAKER:
                self._show_speaker(event.content)
            case ari.EventType.TEXT:
                await self.turn.say(event.content)
            case ari.EventType.THINKING:
                self.turn.think(event.content)
            case ari.EventType.TOOL_CALL:
                self._begin_call(event)
            case ari.EventType.TOOL_RESULT:
                await self._end_call(event)
            case ari.EventType.PERMISSION_REQUEST:
                self._ask(event)
            case ari.EventType.LIFECYCLE:
                self._tell(event)
                if event.lifecycle in _CHANGES_COMMANDS:
                    self.turn.set_commands(await self.agent.commands(self.link.session_id))

    # -- tools -----------------------------------------------------------------------------------

    def _begin_call(self, event: ari.Event) -> None:
        subagent_id, subagent = self._caller(event)
        call = self.turn.start_tool(
            f"{subagent}: {event.tool_name}" if subagent_id else event.tool_name,
            event.tool_input_raw or {},
            id=event.tool_call_id,
            subagent_id=subagent_id or None,
        )
        self.calls[event.tool_call_id] = call
        self.inputs[event.tool_call_id] = event

    def _caller(self, event: ari.Event) -> tuple[str, str]:
        """Return id and name of the sub-agent that makes a call; empty: the agent itself does.

        A call whose question outlives its turn is told again, without them.
        """
        callers, details = self.link.callers, event.details
        subagent_id = details.get("subagent_id")
        if isinstance(subagent_id, str) and subagent_id:
            name = details.get("subagent")
            shown = name if isinstance(name, str) and name else SUBAGENT
            callers[event.tool_call_id] = subagent_id, shown
            if len(callers) > MAX_CALLERS:
                del callers[next(iter(callers))]
        return callers.get(event.tool_call_id, ("", ""))

    async def _end_call(self, event: ari.Event) -> None:
        call = self.calls.pop(event.tool_call_id, None)
        begun = self.inputs.pop(event.tool_call_id, None)
        if call is None or begun is None:
            return
        self._record_process(call, begun, event)
        refused = self.refused.pop(event.tool_call_id, "")
        if event.is_error:
            call.failed(refused or event.content or "failed")
        else:
            await call.done(event.content)
        self._show_output(begun, event)

    def _record_process(self, call: ToolCall, begun: ari.Event, event: ari.Event) -> None:
        command = begun.tool_input_summary
        ran = not event.details.get("denied") and not event.synthetic
        if begun.details.get("kind") == ari.PermissionKind.COMMAND and command and ran:
            process = call.record.process(command)
            exit_code = event.details.get("exit_code")
            if isinstance(exit_code, int):
                process.completed(exit_code)
            elif event.is_error:
                process.failed("the command failed")
            else:
                process.completed(0)

    def _show_output(self, begun: ari.Event, event: ari.Event) -> None:
        if event.details.get("denied") or event.details.get("no_output"):
            return
        diffs = event.details.get("diffs") or begun.details.get("diffs")
        if isinstance(diffs, list) and not event.is_error:
            for diff in diffs:
                self._show_diff(diff)
        elif begun.details.get("kind") == ari.PermissionKind.COMMAND and event.content.strip():
            shown = event.content[:MAX_SHOWN]
            props: JsonObject = {"title": begun.tool_input_summary, "code": shown}
            self.turn.show(Component("", "code-block", props))

    def _show_diff(self, diff: Json) -> None:
        if not isinstance(diff, dict):
            return
        path, before, after = (str(diff.get(name) or "") for name in ("path", "before", "after"))
        if len(before) + len(after) > MAX_DIFF:
            before, after = "", f"({len(after):,} characters)"
        self.turn.show(Component("", "diff", {"title": path, "before": before, "after": after}))

    # -- permissions -----------------------------------------------------------------------------

    def _ask(self, event: ari.Event) -> None:
        request = event.permission
        assert request is not None
        is_question = (
            request.kind is ari.PermissionKind.QUESTION
            and request.takes_updated_input
            and is_user_question(request.tool_input_raw)
        )
        ask = self._question if is_question else self._permission
        if request.kind is ari.PermissionKind.QUESTION and request.takes_updated_input:
            once = asked_once(request.tool_input_raw, request.tool_call_id, self.turn.id)
            ask = partial(self._asked_once, once) if once is not None else ask
        task = asyncio.get_running_loop().create_task(self._asked(request, ask))
        self.asking[request.request_id] = task
        task.add_done_callback(lambda _: self.asking.pop(request.request_id, None))

    async def _question(self, request: ari.PermissionRequest) -> ari.PermissionResponse:
        """Ask what the agent wants to know."""
        answered = await ask_user(self.turn, request.tool_input_raw)
        if answered is not None:
            return ari.PermissionResponse("allow", updated_input=answered)
        return ari.PermissionResponse("deny", NO_ANSWER if request.takes_message else "")

    async def _asked_once(
        self, once: AskedOnce, request: ari.PermissionRequest
    ) -> ari.PermissionResponse:
        """Ask one thing, unless the input of the turn is its answer already."""
        late = self._late_answer(once, request)
        if late is None:
            if once.about:
                items = [{"key": name, "value": cell_of(one)} for name, one in once.about.items()]
                self.turn.show(Component("", "key-value", {"items": items}))
            late = await self.turn.ask(once.component, can_decline=once.can_decline)
        if late is DECLINED:
            return ari.PermissionResponse("deny", NO_ANSWER)
        answered = {**request.tool_input_raw, "answer": once.answer(late)}
        return ari.PermissionResponse("allow", updated_input=answered)

    def _late_answer(self, once: AskedOnce, request: ari.PermissionRequest) -> Json | Declined:
        """Return the turn's input if it answers this question, which an earlier turn asked."""
        echo = self.turn.input
        asked_by = echo.source_component or ""
        if not asked_by.startswith(question_mark(request.tool_call_id)):
            return None
        try:
            fitting = check_answer(once.component, echo.input_type, echo.data)
        except ArpError:  # the agent asks something else by now
            return None
        if is_decline(once.component, echo.input_type, echo.data):
            return DECLINED
        return answer_value(once.component, echo.input_type, fitting)

    async def _permission(self, request: ari.PermissionRequest) -> ari.PermissionResponse:
        """Ask a person whether a tool may run: what it runs is what was approved."""
        rules = {one.label: one for one in request.rules if len(one.label) <= MAX_RULE}
        call = self.calls[request.tool_call_id]
        title = f"{call.name}: {request.tool_input_summary}".rstrip(": ")
        binding = FileBinding(request, self.link.cwd, call.hides)
        rule: ari.PermissionRule | None = None

        async def still_fits(approval: Approval) -> SecondLook:
            nonlocal rule
            if approval.scope == "session":
                rule = await self._rule(rules)
            return await binding.again(approval)

        async with self.looking:
            files = await binding.look()
        if not files and (late := self._late_permission(request, call)) is not None:
            return late
        approval = await call.ask_permission(
            title,
            rule=RULE,
            reason=request.message or None,
            input=request.tool_input_raw,
            session_rule=_offered(list(rules)),
            keeps_grant=False,
            editable=request.takes_updated_input,
            timeout_s=_seconds_until(request),
            files=files,
            recheck=still_fits,
            message=request.message or None,
        )
        if binding.refusal:
            self.refused[request.tool_call_id] = binding.refusal
        if approval.allowed:
            return ari.PermissionResponse(
                "allow",
                updated_input=approval.updated_input,
                rule_id=rule.rule_id if rule is not None else "",
            )
        if approval.reason and not request.takes_message:
            if approval.decision == "deny":
                self._tell_later(title, approval.reason)
            return ari.PermissionResponse("deny")
        return ari.PermissionResponse("deny", message=approval.reason)

    def _late_permission(
        self, request: ari.PermissionRequest, call: ToolCall
    ) -> ari.PermissionResponse | None:
        """Return what the turn's input says of exactly this call; `None`: nothing, so ask.

        The question was asked by a turn that a restart cut off. Its answer names the input that was
        shown by its digest, and counts once.
        """
        data = self.turn.input.data
        payload, action = data.get("payload"), data.get("action")
        given: JsonObject = payload if isinstance(payload, dict) else {}
        shown = encoded(request.tool_input_raw).decode()
        is_it = given.get("digest") == digest_of(shown) and "updated_input" not in given
        if self.used_late or action not in ("confirm", "deny") or not is_it:
            return None
        self.used_late = True
        permission = call.record.permission(call.name)
        if action == "confirm":
            permission.evaluated("allow", "person", "user", digest=digest_of(shown))
            return ari.PermissionResponse("allow")
        permission.evaluated("deny", "person", "user", digest=digest_of(shown))
        reason = str(given.get("reason") or "") if request.takes_message else ""
        return ari.PermissionResponse("deny", reason)

    async def _rule(self, rules: Mapping[str, ari.PermissionRule]) -> ari.PermissionRule | None:
        """Return which rule is to hold; of several, the person chooses one."""
        if len(rules) == 1:
            return next(iter(rules.values()))
        props: JsonObject = {"title": WHICH_RULE, "options": [*rules, ONCE], "style": "list"}
        return rules.get(str(await self.turn.ask(Component("", "choices", props))))

    async def _asked(
        self,
        request: ari.PermissionRequest,
        ask: Callable[[ari.PermissionRequest], Awaitable[ari.PermissionResponse]],
    ) -> None:
        """Ask a person, and give the runtime the answer."""
        try:
            response = await ask(request)
            await self.runtime.respond_permission(
                ari.RespondPermissionRequest(self.link.session_id, request.request_id, response)
            )
        except InvalidArgument as refused:
            # Such as an agent of ACP that offers no permission for one call alone.
            self.turn.show(Component("", "text", {"content": f"Nothing ran: {refused.message}"}))
            await self._deny(request)
        except AriError as failed:  # the runtime has withdrawn it: nothing runs
            logger.debug("permission %s: %s", request.request_id, failed.message)
        except SurfaceDestroyed:  # the turn was over before the answer counted
            await self._deny(request)
        except Exception:
            # Nobody can be asked: the runtime must not wait for ever, and nothing may run.
            logger.exception("permission %s cannot be asked", request.request_id)
            await self._deny(request)

    async def _deny(self, request: ari.PermissionRequest) -> None:
        """Deny what cannot be answered otherwise."""
        denial = ari.PermissionResponse("deny")
        with suppress(AriError):
            await self.runtime.respond_permission(
                ari.RespondPermissionRequest(self.link.session_id, request.request_id, denial)
            )

    def _tell_later(self, title: str, reason: str) -> None:
        """Keep why something was denied, for a message when the runtime has stopped."""
        shown = Component("", "text", {"content": f"{self.agent.name} is told next: {reason}"})
        self.untold[self.turn.show(shown)] = reason
        self.reasons.append(f"I have denied {title!r}: {reason}")

    def tell_fate(self, what: str) -> None:
        """Show what became of the reasons that were to be told."""
        for shown, reason in self.untold.items():
            props: JsonObject = {"content": f"{self.agent.name} {what}: {reason}"}
            self.turn.show(Component(shown, "text", props))
        self.untold.clear()

    # -- the rest --------------------------------------------------------------------------------

    def _tell(self, event: ari.Event) -> None:
        details = event.details
        match event.lifecycle:
            case ari.Lifecycle.TOOL_PROGRESS:
                call = self.calls.get(event.tool_call_id)
                if call is not None:
                    call.progress(event.content.rstrip().rpartition("\n")[2][-200:])
            case ari.Lifecycle.PERMISSION_RESOLVED:
                task = self.asking.pop(event.request_id, None)
                if task is not None and details.get("outcome") in ("cancelled", "expired"):
                    task.cancel()
            case ari.Lifecycle.PLAN:
                self._show_plan(details.get("todos"))
            case ari.Lifecycle.RETRYING:
                self._show_retry(event)
            case ari.Lifecycle.USAGE:
                self.facts.usage(details)
            case ari.Lifecycle.RATE_LIMIT:
                self._show_limit(details)
        record_event(self.turn.record, event)

    def _show_speaker(self, name: str) -> None:
        """Say who speaks from now on, unless it is the one who spoke before."""
        self.turn._speak_as(name)

    def _show_component(self, given: Json) -> None:
        """Show a component of the agent; one that is wrong is recorded."""
        try:
            shown = check_component({"id": "", **given}, empty_ids=True)
        except (TypeError, ArpError) as wrong:
            told = f"{self.agent.name} has shown what is no component: {wrong}"
            record_warning(self.turn.record, told)
        else:
            self.turn.show(shown)

    def _show_plan(self, todos: Json) -> None:
        steps: list[Json] = []
        for todo in todos if isinstance(todos, list) else ():
            if isinstance(todo, dict):
                status = todo.get("status")
                known = status if status in ("active", "done") else "pending"
                steps.append({"name": str(todo.get("text") or ""), "status": known})
        if steps:
            plan = Component(self.plan, "progress", {"title": "Plan", "steps": steps})
            self.plan = self.turn.show(plan)
        record_plan(self.turn.record, todos, self.link.tasks, f"plan-{self.link.session_id}")

    def _show_retry(self, event: ari.Event) -> None:
        """Show that the model is asked again: a card, for as long as it does not answer."""
        attempt, attempts, status, delay = map(
            event.details.get, ("attempt", "attempts", "http_status", "delay_ms")
        )
        self.retries += 1
        answered = f"answered {status}" if status else "did not answer"
        wait = f" in {delay / 1000:.0f} s" if isinstance(delay, int | float) else ""
        message = f"The model {answered}; it is asked again{wait}."
        told = f"{message}\n{event.content}" if event.content else message
        of = f" of {attempts}" if attempts else ""
        props: JsonObject = {
            "status": "warning",
            "title": f"Retry {attempt or self.retries}{of}",
            "message": told,
        }
        self.retry = self.turn.show(Component(self.retry, "status-card", props))
        self.facts.retried(event, event.content or message)
        record_warning(self.turn.record, told)

    def _end_retry(self, event: ari.Event) -> None:
        """Let the card become a line: nothing is tried again any more."""
        many = "1 retry" if self.retries == 1 else f"{self.retries} retries"
        is_over = event.type is ari.EventType.ERROR
        content = f"No answer after {many}." if is_over else f"The model answered after {many}."
        self.turn.show(Component(self.retry, "text", {"content": content}))
        self.retry, self.retries = "", 0

    def _show_limit(self, details: JsonObject) -> None:
        """Say that a limit is reached, or nearly, and when it resets."""
        notice = notice_of(details)
        props: JsonObject = {
            "status": "error" if notice.is_reached else "warning",
            "title": notice.title,
            "message": notice.message,
        }
        limit = str(details.get("limit"))
        known = self.limits.get(limit, "")
        self.limits[limit] = self.turn.show(Component(known, "status-card", props))

    async def _finish(self, event: ari.Event) -> None:
        used = event.usage
        if used is not None:
            given = msgspec.to_builtins(used)
            self.turn.usage(**{name: value for name, value in given.items() if value})
        self.facts.ended(event)
        if event.type is ari.EventType.ERROR:
            error = event.error or ErrorStatus(AriCode.INTERNAL)
            if error.code is AriCode.CANCELED:
                # Some agents cancel their turn by themselves when something is denied.
                if not self.untold:
                    await self.turn.say("\n\n*Cancelled.*")
                return
            self.tell_fate("was not told")
            raise ToolFailed(f"{self.agent.name}: {error.message}")


def _answered_late(turn: Turn) -> str:
    """Return what the agent is told if a permission is answered after its turn is gone.

    Nothing runs by that answer: the runtime that had asked is gone, and asks again if it still
    wants to.
    """
    if turn.input.source_component is None:
        return ""
    action, selected = turn.input.data.get("action"), turn.input.data.get("selected")
    if isinstance(selected, list):
        taken = [str(one) for one in selected if one not in (OTHER, DECLINE)]
        said = f"answers: {', '.join(taken)}" if taken else "does not answer your question"
        return f"Your work was interrupted. The user {said}"
    if action not in ("confirm", "deny"):
        return ""
    if action == "confirm":
        return "Your work was interrupted. The user agrees to what you asked for last; go on."
    payload = turn.input.data.get("payload")
    reason = payload.get("reason") if isinstance(payload, dict) else None
    because = f": {reason}" if isinstance(reason, str) and reason else "."
    return f"Your work was interrupted. The user denies what you asked for last{because}"


def _without_switches(history: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return what was said without what was for us: `/model x`, and what we answered."""
    kept: list[tuple[str, str]] = []
    is_ours = False
    for role, said in history:
        if role == "user":
            is_ours = said.split(maxsplit=1)[:1] in [[f"/{name}"] for name in OURS]
        if not is_ours:
            kept.append((role, said))
    return kept


def _missed(turn: Turn, link: LinkedSession) -> list[tuple[str, str]]:
    """Return what was said since the last turn that the runtime knows, without what was for us.

    An app can answer some turns by functions of its own: commands, or an agent that hands only
    some turns to this one.
    """
    known = frozenset(link.turn_ids)
    missed: list[tuple[str, str]] = []
    for message in reversed(turn.messages(MAX_TOLD)):
        if message.turn_id in known:
            break
        missed.append((message.role, told(message)[:MAX_MISSED]))
    return _without_switches(missed[::-1])


def _history_of(turn: Turn) -> tuple[ari.RuntimeMessage, ...]:
    """Return the conversation before a turn as messages of a runtime, without what was for us."""
    past = turn.messages(MAX_TOLD)
    ours = {
        message.turn_id
        for message in past
        if message.text.split(maxsplit=1)[:1] in [[f"/{name}"] for name in OURS]
    }
    return tuple(
        ari.RuntimeMessage(
            message.role,
            told(message),
            tool_calls=tuple(
                ari.PastToolCall(call.id, call.name, call.args, call.result, not call.ok)
                for call in message.calls
            ),
        )
        for message in past
        if message.turn_id not in ours
    )


def _about_file(turn: Turn, name: str, refused: InvalidArgument) -> AriError:
    """Return the error of a message, in words for who has sent it: which file is refused."""
    found = _PART.match(refused.message)
    if found is None or int(found[1]) >= len(turn.files):
        return refused
    ref = turn.files[int(found[1])]
    why = refused.message[found.end() :]
    return InvalidArgument(f"the file {ref.name!r} ({ref.mime}) was not sent: {why}")


def _listed(choices: Sequence[ari.Choice], ids: Sequence[str]) -> Sequence[ari.Choice]:
    """Return the choices that are listed, in that order; all without a list."""
    if not ids:
        return choices
    known = {choice.id: choice for choice in choices}
    return [known.get(one, ari.Choice(one)) for one in ids]


def _offered(labels: Sequence[str]) -> str | None:
    """Return what is offered for the session, in one sentence; of several, which one is asked."""
    if len(labels) < 2:
        return labels[0] if labels else None
    text = f"One of these, which you choose next: {'; '.join(labels)}"
    return text if len(text) <= MAX_RULE else f"One of {len(labels)} rules, which are shown next"


def _seconds_until(request: ari.PermissionRequest) -> float | None:
    """Return how long a request may stay open, in seconds; `None`: for ever."""
    if not request.deadline_ns:
        return None

    return max((request.deadline_ns - time.time_ns()) / 1e9, 0.001)
