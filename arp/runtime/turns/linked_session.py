"""`LinkedSession`: the session of a runtime behind one thread of a session of ARP.

The part that a restart needs is in `turn.state`: the id, the user's choices, the agent's list of
tasks, the newest turns that the runtime knows, and the open questions with their answers. The rest
is only in memory.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from arp.protocol.json_value import Json, JsonObject
from arp.runtime.contract import types as ari
from arp.runtime.contract.errors import AriError, FailedPrecondition
from arp.runtime.contract.services import EventSubscription, RuntimeService
from arp.runtime.turns.run_facts import record_warning

if TYPE_CHECKING:
    from arp.record.recorder import Recorder
    from arp.turn.turn import Turn

logger = logging.getLogger(__name__)

STATE_KEY = "arp.runtime"
"""Key of the link of the first thread in `turn.state` and `turn.cache`. The key of another thread
ends with its name."""
FIRST_THREAD = "main"
"""Thread that a session begins with."""
MAX_KNOWN_TURNS = 20
"""Number of the newest known turns that are stored. They show whether the runtime knows the branch
of a turn, and which messages it has missed because others have answered since. Usually the newest
turn is enough for both; if it was cancelled at once, the turn before it counts."""
MAX_CALLERS = 1_000
"""Number of calls of sub-agents that a session remembers."""
MAX_ASKED = 50
"""Number of open permissions with stored file marks. If there are more, the oldest are asked again
after a restart."""
MAX_ANSWERED = 8
"""Number of answers that are stored during a turn. If there are more, the oldest requests are asked
again after a restart."""
MAX_WARNINGS = 100
"""Number of warnings that a session remembers."""
SUBAGENT = "agent"
"""Name of a sub-agent without a name."""


def key_of(thread_id: str) -> str:
    """Return the key of a thread's link in `turn.state` and `turn.cache`."""
    return STATE_KEY if thread_id == FIRST_THREAD else f"{STATE_KEY}.{thread_id}"


class RuntimeHandle:
    """A runtime with its name and its capabilities, each requested only once."""

    def __init__(self, service: RuntimeService) -> None:
        self.service = service
        self.name = ""
        """Name of the runtime; empty until `learn_name`."""
        self._capabilities: frozenset[str] | None = None
        self._was_closed = False

    async def open(self) -> None:
        """Make the runtime accept calls; an earlier run of the app may have closed it.

        Raises:
            FailedPrecondition: It cannot be opened again; the message says what to do.
        """
        open_again = getattr(self.service, "open", None)
        if open_again is not None:
            await open_again()
        elif self._was_closed:
            try:
                await self.service.version(ari.VersionRequest())
            except FailedPrecondition as closed:
                name = self.name or type(self.service).__name__
                raise FailedPrecondition(
                    f"{name} was closed with the app and has no method `open`; make a new App "
                    "with a new runtime, or give the runtime that method"
                ) from closed

    async def aclose(self) -> None:
        """Close the runtime."""
        self._was_closed = True
        await self.service.close(ari.CloseRequest())

    async def learn_name(self) -> None:
        """Request the runtime's name if it is not known yet."""
        if not self.name:
            self.name = (await self.service.version(ari.VersionRequest())).runtime_name

    async def can(self, capability: str) -> bool:
        """Return whether the runtime has a capability."""
        if self._capabilities is None:
            status = await self.service.status(ari.StatusRequest())
            self._capabilities = frozenset(one.name for one in status.capabilities if one.enabled)
        return capability in self._capabilities

    async def session(self, session_id: str) -> ari.RuntimeSession:
        """Return a session of the runtime.

        Raises:
            NotFound: The session does not exist.
        """
        return (await self.service.get_session(ari.GetSessionRequest(session_id))).session

    async def events(self, session_id: str, after: int | None) -> EventSubscription:
        """Return the events of a session after a sequence number; `None` means only new events."""
        return await self.service.session_events(ari.SessionEventsRequest(session_id, after))

    async def cancel(self, session_id: str, turn_id: str = "") -> None:
        """Cancel a turn of the runtime if it is active; an empty id means any active turn."""
        with suppress(AriError):
            await self.service.cancel_turn(ari.CancelTurnRequest(session_id, turn_id))


class LinkedSession:
    """The session of a runtime behind a thread of a session of ARP.

    Args:
        key: Key of the link in `turn.state` and `turn.cache`.
        session_id: Id of the runtime's session.
    """

    def __init__(self, key: str, session_id: str) -> None:
        self.key = key
        self.session_id = session_id
        self.cursor = 0
        """Sequence number of the last event that was shown."""
        self.cwd = ""
        """Directory that the agent works in; empty if it is on another machine or unknown."""
        self.model = ""
        """Model in use, as the runtime last reported it."""
        self.tasks: dict[str, Json] = {}
        """The agent's list of tasks as recorded in the ledger: task id → status."""
        self.switched: dict[str, str] = {}
        """The user's choices, by "model", "mode" and "provider"."""
        self.limits: dict[str, JsonObject] = {}
        """Limits that the runtime reported between turns, by name; the next turn shows them."""
        self.knows_past = False
        """Whether the runtime's session already has the earlier conversation."""
        self.watcher: asyncio.Task[None] | None = None
        """Task that handles the runtime's events between turns."""
        self.turns = 0
        """Number of turns of ARP that use the session now."""
        self.used_at = 0.0
        """Time of the last use, on the loop's clock."""
        self.known_turns: list[str] = []
        """Newest turns of ARP that the runtime has received, oldest first."""
        self.asked: dict[str, str] = {}
        """Mark of the files that the input of an open permission names, by `asked_key`."""
        self.answered: dict[str, Json] = {}
        """Answers to requests of the active turn. The runtime may lose them if it ends before the
        turn does."""
        self.taken: list[str] = []
        """Turns with nothing to do, because an earlier turn has used their input as an answer."""
        self.answering: list[str] = []
        """Turns that began with an answer that the runtime may not have received yet."""
        self.sent_turn = ""
        """Id of the runtime's turn that our newest message began."""
        self._callers: dict[str, tuple[str, str]] = {}
        self._warned: dict[str, None] = {}
        """Newest warnings that were recorded, so that each is recorded once."""

    def warn(self, record: Recorder, warnings: Iterable[str]) -> None:
        """Record what was left out or shortened; the same warning is recorded once."""
        for warning in warnings:
            if warning not in self._warned:
                self._warned[warning] = None
                logger.warning("session %s: %s", self.session_id, warning)
                record_warning(record, warning)
            if len(self._warned) > MAX_WARNINGS:
                del self._warned[next(iter(self._warned))]

    def began(self, turn: Turn) -> None:
        """Record that the runtime has received a turn.

        Recorded before the end of the turn, because a restart may come while a question is open.
        """
        self.known_turns = [*self.known_turns, turn.id][-MAX_KNOWN_TURNS:]
        if turn.input.source_component is not None:
            self.answering = [*self.answering, turn.id][-MAX_ASKED:]
        self.remember(turn)

    def remember(self, turn: Turn) -> None:
        """Write the part that a restart needs into `turn.state`."""
        turn.state[self.key] = {
            "session_id": self.session_id,
            "turns": list(self.known_turns),
            "switched": dict(self.switched),
            "tasks": dict(self.tasks),
            **({"asked": dict(self.asked)} if self.asked else {}),
            **({"answered": dict(self.answered)} if self.answered else {}),
            **({"taken": list(self.taken)} if self.taken else {}),
            **({"answering": list(self.answering)} if self.answering else {}),
        }

    def asks_for(self, key: str, files: str) -> None:
        """Record an open permission with the mark of the files that its input names."""
        self.asked[key] = files
        if len(self.asked) > MAX_ASKED:
            del self.asked[next(iter(self.asked))]

    def keep_answer(self, key: str, answer: JsonObject) -> None:
        """Store an answer that the runtime has received, until the runtime's turn ends."""
        self.answered[key] = answer
        if len(self.answered) > MAX_ANSWERED:
            del self.answered[next(iter(self.answered))]

    def forget_questions(self, *, is_asking: bool) -> None:
        """Forget the questions of a turn of the runtime that has ended.

        Args:
            is_asking: Whether questions of earlier turns are open; their files are still needed.
        """
        self.answered.clear()
        self.answering.clear()
        if not is_asking:
            self.asked.clear()

    def mark_answer_used(self, turn_id: str) -> None:
        """Record that the input of a queued turn was used as an answer."""
        self.taken = [*self.taken, turn_id][-MAX_ASKED:]

    def answer_received(self, turn_id: str) -> None:
        """Record that the runtime has received the answer that a turn began with."""
        self.answering = [one for one in self.answering if one != turn_id]

    def is_at(self, state: JsonObject) -> bool:
        """Return whether the runtime has received exactly the turns of a branch's state."""
        return self.session_id == state.get("session_id") and self.known_turns == _turns_of(state)

    def recall(self, state: JsonObject, *, same_session: bool) -> None:
        """Load what `remember` has written.

        Args:
            state: State that `remember` has written.
            same_session: Whether the state describes this session of the runtime. A new session
                has received no turns and has no tasks.
        """
        switched, tasks = state.get("switched"), state.get("tasks")
        self.switched = {
            name: value
            for name, value in (switched.items() if isinstance(switched, dict) else ())
            if isinstance(value, str)
        }
        # The user's choices hold for every session; the rest describes one session of the runtime.
        if same_session:
            self.known_turns = _turns_of(state)
            self.tasks = dict(tasks) if isinstance(tasks, dict) else {}
            asked, answered, taken = map(state.get, ("asked", "answered", "taken"))
            self.asked = dict(asked) if isinstance(asked, dict) else {}
            self.answered = dict(answered) if isinstance(answered, dict) else {}
            self.taken = [str(one) for one in taken] if isinstance(taken, list) else []
            answering = state.get("answering")
            self.answering = [str(one) for one in answering] if isinstance(answering, list) else []

    def caller(self, event: ari.Event) -> tuple[str, str]:
        """Return id and name of the sub-agent that makes a call; empty for the agent itself.

        The result is remembered by call id: if a question outlives its turn, agents repeat the call
        without these details.
        """
        subagent_id = event.details.get("subagent_id")
        if isinstance(subagent_id, str) and subagent_id:
            name = event.details.get("subagent")
            shown = name if isinstance(name, str) and name else SUBAGENT
            self._callers[event.tool_call_id] = subagent_id, shown
            if len(self._callers) > MAX_CALLERS:
                del self._callers[next(iter(self._callers))]
        return self._callers.get(event.tool_call_id, ("", ""))


def _turns_of(state: JsonObject) -> list[str]:
    """Return the known turns of a state; an older version stored all turns."""
    turns = state.get("turns")
    return [str(one) for one in turns][-MAX_KNOWN_TURNS:] if isinstance(turns, list) else []
