"""`LinkedSession`: the session of a runtime behind one thread of a session of ARP.

What a restart must find of it is in `turn.state`: its id, what its user has switched, the agent's
list of tasks, and the newest turns that it knows. The rest is in memory only.
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
"""Where `turn.state` and `turn.cache` keep the link of the first thread. The key of another thread
ends with its name."""
FIRST_THREAD = "main"
"""The thread with which a session begins."""
MAX_KNOWN_TURNS = 20
"""How many of the turns that the runtime knows are kept, the newest. They show whether the branch
of a turn is the one that the runtime has heard, and since when others have answered the user. The
newest alone says both, unless it was cancelled at once: then the one before it counts."""
MAX_CALLERS = 1_000
"""How many calls of sub-agents a session remembers."""
MAX_ASKED = 50
"""Open permissions whose files are remembered; the others are asked again after a restart."""
MAX_ANSWERED = 8
"""Answers of a turn that are remembered; the others are asked again after a restart."""
MAX_WARNINGS = 100
"""Warnings of a session that are remembered."""
SUBAGENT = "agent"
"""What a sub-agent without a name is called."""


def key_of(thread_id: str) -> str:
    """Return the key under which `turn.state` and `turn.cache` keep the link of a thread."""
    return STATE_KEY if thread_id == FIRST_THREAD else f"{STATE_KEY}.{thread_id}"


class RuntimeHandle:
    """A runtime, with its name and its capabilities, for which it is asked once."""

    def __init__(self, service: RuntimeService) -> None:
        self.service = service
        self.name = ""
        """The runtime's name; empty until `learn_name`."""
        self._capabilities: frozenset[str] | None = None
        self._was_closed = False

    async def open(self) -> None:
        """Let the runtime take calls, which an earlier life of the app may have closed.

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
        """Ask the runtime for its name, if it is not known yet."""
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
            NotFound: There is none with this id.
        """
        return (await self.service.get_session(ari.GetSessionRequest(session_id))).session

    async def events(self, session_id: str, after: int | None) -> EventSubscription:
        """Return the events of a session after a sequence number; `None`: those that come."""
        return await self.service.session_events(ari.SessionEventsRequest(session_id, after))

    async def cancel(self, session_id: str, turn_id: str = "") -> None:
        """Cancel a turn of the runtime if it is active; an empty id: whichever is active."""
        with suppress(AriError):
            await self.service.cancel_turn(ari.CancelTurnRequest(session_id, turn_id))


class LinkedSession:
    """The session of a runtime behind a thread of a session of ARP.

    Args:
        key: Where `turn.state` and `turn.cache` keep it.
        session_id: The runtime's own id.
    """

    def __init__(self, key: str, session_id: str) -> None:
        self.key = key
        self.session_id = session_id
        self.cursor = 0
        """The sequence number of the last event that was shown."""
        self.cwd = ""
        """The directory where its agent works; empty: on another machine, or not known."""
        self.model = ""
        """The model that answers, as the runtime said last."""
        self.tasks: dict[str, Json] = {}
        """The agent's list, as it is in the ledger: the status of each task by its id."""
        self.switched: dict[str, str] = {}
        """What its user has chosen, by "model", "mode" and "provider"."""
        self.limits: dict[str, JsonObject] = {}
        """Limits that the runtime reported between turns, for the next turn to show, by name."""
        self.knows_past = False
        """Whether it began with the conversation before its first turn."""
        self.watcher: asyncio.Task[None] | None = None
        """Takes what the runtime does between turns."""
        self.turns = 0
        """How many turns of ARP use it now."""
        self.used_at = 0.0
        """When a turn used it last, on the loop's clock."""
        self.known_turns: list[str] = []
        """The newest turns of ARP that the runtime has heard, oldest first."""
        self.asked: dict[str, str] = {}
        """Permissions that are asked now: by the tool and the digest of its input a mark of the
        files that the input names."""
        self.answered: dict[str, Json] = {}
        """Answers of the runtime's turn: while it asks something else too, it may lose them."""
        self.taken: list[str] = []
        """Turns whose input an earlier turn has taken as an answer: they have nothing to do."""
        self.answering: list[str] = []
        """Turns that began with an answer which the runtime may not have taken yet."""
        self.sent_turn = ""
        """The runtime's turn that began with the newest message of ours."""
        self._callers: dict[str, tuple[str, str]] = {}
        self._warned: dict[str, None] = {}
        """The newest warnings that are recorded; each counts once."""

    def warn(self, record: Recorder, warnings: Iterable[str]) -> None:
        """Record what of the runtime is left out or shortened; the same is said once."""
        for warning in warnings:
            if warning not in self._warned:
                self._warned[warning] = None
                logger.warning("session %s: %s", self.session_id, warning)
                record_warning(record, warning)
            if len(self._warned) > MAX_WARNINGS:
                del self._warned[next(iter(self._warned))]

    def began(self, turn: Turn) -> None:
        """Note that the runtime has heard a turn: a restart while it asks must find it."""
        self.known_turns = [*self.known_turns, turn.id][-MAX_KNOWN_TURNS:]
        if turn.input.source_component is not None:
            self.answering = [*self.answering, turn.id][-MAX_ASKED:]
        self.remember(turn)

    def remember(self, turn: Turn) -> None:
        """Write into `turn.state` what a restart must find."""
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
        """Note a permission that is asked, with a mark of the files that its input names."""
        self.asked[key] = files
        if len(self.asked) > MAX_ASKED:
            del self.asked[next(iter(self.asked))]

    def keep_answer(self, key: str, answer: JsonObject) -> None:
        """Keep an answer that the runtime was given, until its turn ends."""
        self.answered[key] = answer
        if len(self.answered) > MAX_ANSWERED:
            del self.answered[next(iter(self.answered))]

    def forget_questions(self, *, is_asking: bool) -> None:
        """Forget what a turn of the runtime asked, which is over.

        Args:
            is_asking: Whether questions of earlier turns are open: their answers have to fit.
        """
        self.answered.clear()
        self.answering.clear()
        if not is_asking:
            self.asked.clear()

    def take_answer_of(self, turn_id: str) -> None:
        """Note that the input of a turn that waits was taken as an answer."""
        self.taken = [*self.taken, turn_id][-MAX_ASKED:]

    def answer_taken(self, turn_id: str) -> None:
        """Note that the runtime has the answer with which a turn began."""
        self.answering = [one for one in self.answering if one != turn_id]

    def is_at(self, state: JsonObject) -> bool:
        """Return whether the runtime has heard exactly the turns behind the state of a branch."""
        return self.session_id == state.get("session_id") and self.known_turns == _turns_of(state)

    def recall(self, state: JsonObject, *, same_session: bool) -> None:
        """Take over what was written down.

        Args:
            state: What `remember` has written.
            same_session: Whether the session of the runtime is still the one that wrote it. A new
                one has heard no turn, and has no tasks.
        """
        switched, tasks = state.get("switched"), state.get("tasks")
        self.switched = {
            name: value
            for name, value in (switched.items() if isinstance(switched, dict) else ())
            if isinstance(value, str)
        }
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
        """Return id and name of the sub-agent that makes a call; empty: the agent itself does.

        An agent repeats a call without them when its question outlives its turn, so they are
        remembered.
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
    """Return the turns of a state; an older version wrote all of them."""
    turns = state.get("turns")
    return [str(one) for one in turns][-MAX_KNOWN_TURNS:] if isinstance(turns, list) else []
