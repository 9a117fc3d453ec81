"""One session: its turns, its queue, its questions, its surfaces. Pure: no clock, no I/O.

Theory of operation. Everything that happens is *recorded*: it becomes a fact with the next
sequence, and the screen shows it. The driver *drains* what was recorded, makes it durable, and
only then delivers it. What the driver must do besides (start an agent, cancel it, hand over an
answer) comes back as effects.

What may happen to a turn now, `turn_states` says. Whatever a fact changes besides the screen, it
changes in `follow`, both when it is recorded and when it is read from the log. A question stays
open until it is answered, or its turn ends by itself; a turn that ended by a crash leaves its
questions open, and reads as waiting until the last of them is closed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Literal

import msgspec
from msgspec import Struct

from arp.ledger.tracing import Trace, turn_trace
from arp.protocol.catalog import asks
from arp.protocol.components import Component, as_object
from arp.protocol.errors import (
    ArpError,
    InvalidComponent,
    ResourceLimit,
    SurfaceDestroyed,
    error_payload,
)
from arp.protocol.json_value import Json, JsonObject
from arp.protocol.limits import MAX_LEVELS, Limits
from arp.protocol.messages import FINAL_STATUSES, Command, RendererInfo
from arp.protocol.objects.messages import SurfaceTransferRequest
from arp.protocol.patch import PatchOp, Update
from arp.protocol.tree import Tree
from arp.redact.redactor import Redactor, known_shapes
from arp.session.attempts import ATTEMPT_FACTS, TurnAttempt, TurnAttempts
from arp.session.branches import Branches
from arp.session.effects import Effect, RunTurn, StopTurn
from arp.session.input_log import GivenAnswer, InputLog
from arp.session.log import Log
from arp.session.popup_places import check_places
from arp.session.projection import At, commit_messages, stored, surface_message
from arp.session.recorded import (
    SAYING,
    AppliedCommit,
    Batch,
    Cursor,
    RecordedFact,
    SessionName,
    TextBatch,
    Watcher,
)
from arp.session.serials import Serials
from arp.session.session_settings import (
    MAX_COMMANDS_BYTES,
    MAX_STATE_BYTES,
    Grant,
    PermissionTerms,
    Rules,
    SessionSettings,
    terms_of,
)
from arp.session.threads import THREAD, Threads
from arp.session.turn_states import TURN_EVENTS, Policy, TurnQueue
from arp.session.window import Window
from arp.surface.change import Change, PatchChange, RenderChange
from arp.surface.degrade import answerable
from arp.surface.surface import Surface

RECORDING = "recording"
"""Stands for the turn that keeps a session busy in which a recording is played."""

TURN_ENDED_FIRST = "the turn ended first"
"""Of a tool that is open when its turn ends."""


class Head(Struct, frozen=True):
    """What never changes in a session's life."""

    session_id: str
    epoch: str
    owner: str = ""
    workflow: str = ""
    runtime_id: str = "arp"
    created_at: str = ""


class Question(Struct, frozen=True):
    """A component that waits for an answer."""

    action_id: str
    component_id: str
    surface: str
    turn_id: str
    terms: PermissionTerms | None = None
    """Of a permission."""
    name: str = ""
    """What the app calls it, to be called with its answer when its turn is gone."""
    expires_at: str | None = None
    """From when on no answer counts (RFC 3339)."""

    @property
    def asked_at(self) -> int:
        """The sequence of the fact that asked it."""
        return int(self.action_id.rpartition(".")[2])


class ClosedQuestion(Struct, frozen=True):
    """A question that takes no answer any more."""

    question: Question
    sequence: int
    """Of the fact that closed it."""


MAX_CLOSED = 16
"""Closed questions that a session remembers: a screen is behind by less."""


class QuestionTerms(Struct, frozen=True):
    """What is recorded of a question besides its component."""

    name: str = ""
    """As in `Question`."""
    expires_at: str | None = None
    """As in `Question`; of a permission, `ToolUse` has it."""


NO_TERMS = QuestionTerms()


class ToolUse(Struct, frozen=True):
    """The use of a tool that a question is about."""

    tool: str
    ids: Mapping[str, str]
    """Of the call, by field name."""
    rule: str
    """Which wants a person asked."""
    digest: str = ""
    """Of the input to be approved, secrets included."""
    args: str | None = None
    """That input as JSON; `None`: the arguments of the call."""
    session_rule: str | None = None
    """What a yes for the session allows; `None`: nothing."""
    editable: bool = False
    """Whether the answer may hold another input."""
    expires_at: str | None = None
    """From when on no answer counts (RFC 3339)."""


TURN_FACTS = frozenset(name for events in TURN_EVENTS.values() for name in events)
"""Facts by which a turn, or the queue, comes into another state."""

INPUT_FACTS = frozenset(
    ("turn.submitted", "queue.changed", "action.resolved", "artifact.changed", "run.status")
)
"""Facts that may hold an input, or the id of one."""

FOLLOWED = frozenset(
    (
        *INPUT_FACTS,
        *ATTEMPT_FACTS,
        "turn.completed",
        "turn.failed",
        "action.required",
        "session.updated",
        "thread.started",
        "output.spilled",
        "tool.result",
        "evidence.changed",
    )
)
"""Facts that change more than turns and screen."""


class Session:
    """The state machine of one session."""

    __slots__ = (
        "_ending",
        "_surfaces",
        "attempts",
        "closed",
        "head",
        "input_log",
        "leaving",
        "log",
        "questions",
        "screen",
        "serials",
        "settings",
        "threads",
        "turns",
        "unclear_turn",
        "watchers",
    )

    def __init__(
        self,
        head: Head,
        limits: Limits,
        policy: Policy = "queue",
        redactor: Redactor | None = None,
        traced: bool = False,
    ) -> None:
        self.head = head
        self.settings = SessionSettings(Rules(limits, policy, traced))
        self.screen = Window()
        self.threads = Threads()
        redactor = redactor or known_shapes()
        self.log = Log(head.runtime_id, head.session_id, self.screen, redactor, self.threads)
        self.turns = TurnQueue()
        self.questions: dict[tuple[str, str], Question] = {}
        """Open ones by surface and component id, in the order in which they were asked."""
        self.closed: deque[ClosedQuestion] = deque(maxlen=MAX_CLOSED)
        """The newest that were answered or have expired, in that order: a renderer may still show
        them as open."""
        self.unclear_turn: str | None = None
        """A turn in which several permissions were open at once, or one ended without an answer: a
        yes that names no question may mean another one than the newest."""
        self.input_log = InputLog()
        self.attempts = TurnAttempts()
        self.leaving: dict[str, SurfaceTransferRequest] = {}
        """Surfaces that renderers were asked to hand over, without a known outcome."""
        self.serials = Serials()
        self.watchers: list[Watcher] = []
        """Who is called after each commit."""
        self._surfaces: dict[str, Surface] = {}
        self._ending: list[tuple[str, Callable[[], None]]] = []
        """What is done before a turn ends, by turn."""

    # -- reading ---------------------------------------------------------------------------------

    @property
    def sequence(self) -> int:
        """Of the newest fact."""
        return self.log.sequence

    @property
    def name(self) -> SessionName:
        """What the wire calls this session now."""
        return SessionName(self.head.session_id, self.head.epoch, self.log.sequence)

    @property
    def cursor(self) -> Cursor:
        """How far a renderer is that has been told everything recorded so far."""
        return self.log.cursor()

    @property
    def running(self) -> str | None:
        """The turn that runs."""
        return self.turns.running

    @property
    def queue(self) -> list[str]:
        """The turns that are queued, in the order in which they will run."""
        return self.turns.queue

    @property
    def active(self) -> bool:
        """Whether a crash now would leave something to mend: a turn runs, or is about to."""
        return self.turns.is_active

    @property
    def rules(self) -> Rules:
        """How it behaves."""
        return self.settings.rules

    @property
    def branches(self) -> Branches | None:
        """The turns of all branches, where there is more than one; the screen has those of one."""
        return self.settings.branches

    @property
    def branched_at(self) -> int:
        """The fact that last changed which branch shows; 0: there was none."""
        branches = self.settings.branches
        return branches.changed_at if branches is not None else 0

    @property
    def turn_count(self) -> int:
        """How many turns there were, on all branches."""
        branches = self.settings.branches
        return self.screen.count if branches is None else len(branches)

    @property
    def title(self) -> str:
        """What somebody called it, else the beginning of the first text that the user said."""
        return self.settings.title

    def trace(self, turn_id: str) -> Trace:
        """Return the trace of a turn that is not over; only its first fact may name another."""
        traceparent = self.input_log.traceparents.get(turn_id)
        return turn_trace(self.head.session_id, self.head.epoch, turn_id, traceparent)

    def status_of(self, turn_id: str) -> str | None:
        """Return a turn's status; `None` if there is no such turn on the screen."""
        turn = self.screen.turns.get(turn_id)
        return turn.status if turn else None

    # -- recording -------------------------------------------------------------------------------

    def record(self, type_name: str, payload: JsonObject, **ids: Json) -> RecordedFact:
        """Write a fact, and show it. Of a turn, use `in_turn`.

        Raises:
            ReadOnly: Nothing is recorded any more.
        """
        fact = self._next_fact(type_name, None, payload, ids)
        self._record([fact])
        return fact

    def in_turn(
        self, type_name: str, turn_id: str, payload: JsonObject, **ids: Json
    ) -> RecordedFact:
        """Write a fact of a turn, and show it.

        Raises:
            IllegalTransition: The turn cannot have it now; nothing is recorded.
            ReadOnly: As `record`.
        """
        fact = self._next_fact(type_name, turn_id, payload, ids)
        self._record([fact])
        return fact

    def _next_fact(
        self, type_name: str, turn_id: str | None, payload: JsonObject, ids: dict[str, Json]
    ) -> RecordedFact:
        """Return a fact that is recorded next; its turn has followed it already."""
        self.log.check_open()
        if type_name in TURN_FACTS:
            self.turns.follow(type_name, turn_id, payload)
        if turn_id is not None:
            ids["thread_id"], ids["turn_id"] = self.threads.of(turn_id), turn_id
        return RecordedFact(type_name, payload, ids, turn_id=turn_id)

    def _record(self, facts: Sequence[RecordedFact]) -> None:
        """Write facts of `_next_fact`, all of them step by step: secrets, settings, screen."""
        self.log.add(facts)
        screen = self.screen
        for fact in facts:
            if fact.type in FOLLOWED:
                self.follow(fact.type, fact.turn_id, fact.payload, fact.ids, fact.sequence)
            screen.begin_turn(fact.ids.get("turn_id"), fact.messages)
        for fact in facts:
            for message in fact.messages:
                screen.apply(message, fact.sequence)

    def follow(
        self,
        type_name: str,
        turn_id: str | None,
        payload: JsonObject,
        ids: Mapping[str, Json],
        sequence: int,
    ) -> None:
        """Take over what a fact changes besides turns and screen: one just recorded, or of the log.

        Args:
            type_name: Of the fact; what is not among `FOLLOWED` changes nothing.
            turn_id: Of the fact, if the fact is about its turn.
            payload: Of the fact, as the ledger has it.
            ids: Its other correlation ids, by field name.
            sequence: Of the fact.

        Raises:
            Forked: It turns to another branch, and the others are not known.
        """
        seen = self.input_log
        self.attempts.follow(type_name, turn_id or ids.get("turn_id"), payload, ids)
        if type_name in INPUT_FACTS:
            self._follow_input(turn_id, payload, sequence)
        match type_name:
            case "turn.submitted" | "session.updated":
                self.settings.follow(type_name, turn_id, payload, sequence)
                if turn_id is not None and "renderer" in payload:
                    seen.renderers[turn_id] = msgspec.convert(payload["renderer"], RendererInfo)
                if turn_id is not None and "answers" in payload:
                    seen.answers[turn_id] = msgspec.convert(payload["answers"], GivenAnswer)
            case "turn.completed" | "turn.failed" if turn_id is not None:
                seen.forget_turn(turn_id)
            case "action.required" | "action.resolved" if turn_id is not None:
                self._follow_question(turn_id, payload, ids["action_id"], sequence)
            case "thread.started":
                self.threads.begin(ids.get("thread_id") or THREAD)
            case "output.spilled" if "file" in payload:  # what a tool wrote is no file of a user's
                seen.remember_files([payload["file"]["sha256"]])
            case "tool.result" | "evidence.changed" if ids.get("output_ref") is not None:
                # The whole result of a tool, or a pack: its owner may fetch it.
                seen.remember_files([ids["output_ref"]])
            case _:
                pass

    def _follow_input(self, turn_id: str | None, payload: JsonObject, sequence: int) -> None:
        """Take over an input that a fact holds, or by which a surface was closed."""
        self.input_log.remember_input(payload, turn_id)
        if "closed" in payload:
            surface = payload["surface"]
            self._surfaces.pop(surface, None)
            self.leaving.pop(surface, None)
            self.serials.forget(surface)
            self.log.growing.forget_surface(surface)
        elif "leaving" in payload:
            self.leaving.pop(payload["surface"], None)
            if payload["leaving"]:
                request = msgspec.convert(payload["leaving"], SurfaceTransferRequest)
                self.leaving[payload["surface"]] = request
        if (submitted := payload.get("input")) is None:
            return
        surface = submitted.get("surface", "main")
        # A program that begins a turn is no user; and a peer may name any surface.
        if "origin" not in payload and surface in self.screen.surfaces:
            self.serials.note(surface, sequence)
        if not self.settings.opening and self.settings.shows(turn_id):
            self.settings.open_with(submitted)

    def _follow_question(
        self, turn_id: str, payload: JsonObject, action_id: str, sequence: int
    ) -> None:
        if "component" not in payload:  # it is resolved
            for place, question in list(self.questions.items()):
                if question.action_id == action_id:
                    del self.questions[place]
                    if payload.get("decision") != "cancelled":  # of which its user knows
                        self.closed.append(ClosedQuestion(question, sequence))
            if "grant" in payload:
                self.settings.grants.add(msgspec.convert(payload["grant"], Grant))
        elif self.settings.shows(turn_id):
            component_id, surface = payload["component"]["id"], payload["surface"]
            opened = Question(
                action_id,
                component_id,
                surface,
                turn_id,
                terms_of(payload),
                payload.get("name", ""),
                payload.get("expiresAt"),
            )
            self.questions[surface, component_id] = opened

    def say(self, turn_id: str, text: str, type_name: str = SAYING) -> None:
        """Record text as one fact: of a turn's output, or of its thinking."""
        self.log.say(turn_id, text, type_name)

    def update_state(self, turn_id: str, state: JsonObject) -> None:
        """Record what the agent keeps for this session, if it is not what it was.

        Args:
            turn_id: The turn that changed it: it belongs to the branch of that turn.
            state: Plain JSON. Not changed by anyone afterwards.

        Raises:
            ResourceLimit: It has more than `MAX_STATE_BYTES`; nothing is recorded.
            ValueError: There is a secret in it; nothing is recorded. Redacted, it would be read
                back as something else than what was written.
        """
        if self._checked_state(state, self.settings.state, "turn.state"):
            self.in_turn("session.updated", turn_id, {"state": state})

    def update_shared_state(self, turn_id: str, state: JsonObject) -> None:
        """Record what the agent shares with renderers, as `update_state`."""
        if self._checked_state(state, self.screen.shared_state, "turn.shared_state"):
            self.in_turn("session.updated", turn_id, {"sharedState": state})

    def _checked_state(self, state: JsonObject, before: JsonObject, where: str) -> bool:
        """Return whether a state differs from the one before; refuse one that cannot be kept."""
        # As JSON: in Python 1 equals true.
        data = msgspec.json.encode(state)
        if data == msgspec.json.encode(before):
            return False
        if len(data) > MAX_STATE_BYTES:
            raise ResourceLimit(
                f"{where}: {len(data)} bytes as JSON; at most {MAX_STATE_BYTES}. Keep what is "
                "large as a file: await turn.save_file(…)",
                detail=where,
            )
        for name, value in state.items():
            if self.log.redactor.clean(name)[1]:
                raise ValueError(f"{where}: a key is a secret; keep secrets in the environment")
            _, found = self.log.redactor.clean({name: value})
            if found:
                raise ValueError(
                    f"{where}[{name!r:.60}] holds a secret ({', '.join(sorted(found))}); keep "
                    "secrets in the environment"
                )
        return True

    def choose_settings(self, chosen: JsonObject) -> None:
        """Record what the user set for the session, if it is not what it was.

        Raises:
            ResourceLimit: It has more than `MAX_STATE_BYTES`; nothing is recorded.
        """
        data = msgspec.json.encode(chosen)
        if data == msgspec.json.encode(self.settings.chosen):
            return
        if len(data) > MAX_STATE_BYTES:
            raise ResourceLimit(
                f"settings: {len(data)} bytes as JSON; at most {MAX_STATE_BYTES}", detail="settings"
            )
        self.record("session.updated", {"settings": chosen})

    def set_commands(self, turn_id: str | None, commands: tuple[Command, ...]) -> None:
        """Record the session's own slash commands, if they are not what they were.

        Args:
            turn_id: The turn that sets them: as `turn.state`, they belong to its branch. `None`:
                no turn does; they belong to the branch that shows.
            commands: All of them.

        Raises:
            ResourceLimit: They have more than `MAX_COMMANDS_BYTES`; nothing is recorded.
        """
        if commands == self.screen.commands:
            return
        data = msgspec.json.encode(commands)
        if len(data) > MAX_COMMANDS_BYTES:
            raise ResourceLimit(
                f"commands: {len(data)} bytes as JSON; at most {MAX_COMMANDS_BYTES}. Shorten their "
                "descriptions",
                detail="commands",
            )
        payload: JsonObject = {"commands": msgspec.json.decode(data)}
        known = turn_id or self._newest_turn()
        if known is None:
            self.record("session.updated", payload)
        else:
            self.in_turn("session.updated", known, payload)

    def _newest_turn(self) -> str | None:
        """Return the turn that runs, else the newest one that is over; `None`: there was none."""
        turns = self.screen.turns
        over = (name for name in reversed(turns) if turns[name].status in FINAL_STATUSES)
        return self.running or next(over, None)

    # -- surfaces --------------------------------------------------------------------------------

    def commit(
        self, turn_id: str | None, surface: str, changes: Sequence[Change], **payload: Json
    ) -> None:
        """Change a surface, all or nothing.

        Raises:
            ArpError: A component, op or limit; nothing has changed and nothing is recorded.
        """
        self.log.settle(turn_id)
        known = self.screen.surfaces.get(surface)
        changes = self.log.clean_changes(changes, surface, turn_id, known)
        self._commit(turn_id, surface, changes, payload)

    def _commit(
        self, turn_id: str | None, surface: str, changes: Sequence[Change], payload: JsonObject
    ) -> None:
        """Make a commit of changes that hold no secrets."""
        known = self.screen.surfaces.get(surface)
        turn, seq = _output_of(turn_id, surface), self.log.sequence + 1
        try:
            if surface == "main":
                check_places(changes, self.screen)
            target = self._surfaces.get(surface)
            if target is None:
                target = self._new_surface(surface, known or Tree(), payload)
            applied = target.commit(changes, turn, seq)
        except ArpError:
            self.log.forget_found()
            raise
        self.log.growing.keep()
        if known is None:
            self.screen.surfaces[surface] = target.tree
        self._surfaces[surface] = target
        at = At(self.head.session_id, seq, turn_id)
        ids = {"artifact_id": surface}
        if surface == "main" and self.screen.main.back:
            payload["anew"] = True
        if turn_id:
            ids |= {"thread_id": self.threads.of(turn_id), "turn_id": turn_id}
        changed = {"surface": surface, "changes": stored(applied), **payload}
        messages = commit_messages(at, surface, applied)
        if "info" in payload:
            described = surface_message(at, changed)
            self.screen.apply(described, seq)
            messages = [described, *messages]
        if self.screen.info(surface).is_transient:
            changed["role"] = self.screen.info(surface).role
            self.screen.touch_place(surface, seq)
        fact = RecordedFact("artifact.changed", changed, ids, messages)
        self.log.add_shown(fact)
        if "inputId" in payload:
            self.input_log.remember(payload["inputId"], turn_id)
        commit = AppliedCommit(at, fact, surface, turn, target.tree, applied, "anew" in payload)
        for watcher in self.watchers:
            watcher.committed(commit)

    def before_end(self, turn_id: str, action: Callable[[], None]) -> None:
        """Call something before a turn ends, while it may still record."""
        self._ending.append((turn_id, action))

    def show_held(self, turn_id: str) -> None:
        """Show what is held of texts that a turn appended to: nothing follows it for now."""
        self.log.settle(turn_id)
        for surface, op in self.log.let_go(turn_id, self.screen.surfaces):
            with suppress(ArpError):  # the component has no room left for it
                self._commit(turn_id, surface, [PatchChange([op])], {})

    def tree(self, surface: str) -> Tree | None:
        """Return a surface's components, if there is such a surface."""
        return self.screen.surfaces.get(surface)

    def _new_surface(self, name: str, tree: Tree, payload: JsonObject) -> Surface:
        most = self.rules.limits.max_surfaces
        if name not in self.screen.surfaces and len(self.screen.surfaces) >= most:
            raise ResourceLimit(
                f"surface {name!r} would be one more than {most}", detail="max_surfaces"
            )
        role = payload["info"].get("role") if "info" in payload else self.screen.info(name).role
        # Where a popup or an overlay shows in the output of its turn, a group holds its components.
        levels = MAX_LEVELS - 1 if role in ("popup", "overlay") else MAX_LEVELS
        return Surface(tree, self.rules.limits, levels)

    # -- turns -----------------------------------------------------------------------------------

    def begin_next(self) -> list[Effect]:
        """Start the first queued turn, if none runs and the queue is not paused."""
        facts: list[RecordedFact] = []
        effects = self._start(facts)
        self._record(facts)
        return effects

    def enqueue(
        self, turn_id: str, submitted: JsonObject, ids: dict[str, Json], resume: bool
    ) -> list[Effect]:
        """Put a new turn behind all others, and start the first one if that may start now.

        Args:
            turn_id: What it is called.
            submitted: Payload of its first fact.
            ids: Correlations of that fact, by field name.
            resume: Whether a paused queue goes on with it.
        """
        facts = [self._next_fact("turn.submitted", turn_id, submitted, ids)]
        if resume:
            self.turns.resume()
        effects = self._start(facts)
        if not effects:
            facts.append(self._queue_fact())
        self._record(facts)
        return effects

    def _start(self, facts: list[RecordedFact]) -> list[Effect]:
        """Append the facts of the first queued turn's start, if it may start."""
        if not self.turns.may("start"):
            return []
        turn_id = self.queue[0]
        self.log.assembler.begin_turn(turn_id)
        facts.append(self._next_fact("turn.started", turn_id, {}, {}))
        if self.queue or self.status_of(turn_id) == "queued":  # renderers show a queue
            facts.append(self._queue_fact())
        return [RunTurn(turn_id)]

    def leave(self) -> None:
        """Let no turn run any more: the session leaves the memory."""
        self.turns.set(None, self.queue, self.turns.is_paused, is_waiting=False)

    def begin_recording(self) -> None:
        """Be busy for good, so that every input is refused: a recording is played."""
        self.turns.set(RECORDING, self.queue, self.turns.is_paused, is_waiting=False)
        self.settings.rules = msgspec.structs.replace(self.rules, policy="reject")

    def record_queue(self, queue: list[str] | None = None, pause: bool = False) -> None:
        """Record the queue, as it is or in another order.

        Args:
            queue: The order; `None`: as it is.
            pause: It is paused from now on.
        """
        self._record([self._queue_fact(queue, pause)])

    def _queue_fact(self, queue: list[str] | None = None, pause: bool = False) -> RecordedFact:
        queue = self.queue if queue is None else queue
        thread = self.threads.of(queue[0] if queue else self.running)
        payload = self._queue_payload(queue, pause)
        return self._next_fact("queue.changed", None, payload, {"thread_id": thread})

    def _queue_payload(self, queue: list[str], pause: bool = False) -> JsonObject:
        is_paused = bool(queue) and (pause or self.turns.is_paused)
        return {"queued": list(queue), "paused": True} if is_paused else {"queued": list(queue)}

    def resume_queue(self) -> list[Effect]:
        """Start the first queued turn also if the queue is paused since a turn failed."""
        self.turns.resume()
        return self.begin_next()

    def promote(self, turn_id: str) -> None:
        """Put a queued turn first; another one is left where it is."""
        if turn_id in self.queue[1:]:
            self.record_queue([turn_id, *(other for other in self.queue if other != turn_id)])

    def edit_queued(self, turn_id: str, submitted: JsonObject) -> RecordedFact:
        """Replace the input of a queued turn."""
        changed: JsonObject = {**self._queue_payload(self.queue), "input": submitted}
        return self.in_turn("queue.changed", turn_id, changed)

    def begin_thread(self, name: str, title: str | None = None) -> None:
        """Begin a thread that there is not yet.

        Raises:
            ResourceLimit: There are too many; nothing is recorded.
        """
        self.threads.check_room()
        self.record("thread.started", {"title": title} if title else {}, thread_id=name)

    # -- branches --------------------------------------------------------------------------------

    def switch_to(self, other: Session) -> None:
        """Go on with what another one shows and asks, while no turn runs.

        Args:
            other: Made of the same facts, for another branch. Nobody else may go on with it.
        """
        self.screen, self.questions = other.screen, other.questions
        self.settings.switch_to(other.settings)
        self.threads.follow(other.threads)
        self.log.show_on(other.screen)
        self._surfaces.clear()
        for watcher in self.watchers:
            watcher.show_on(self.screen)

    def show_versions(self) -> None:
        """Show on the screen which versions of turns there are."""
        branches = self.settings.branches
        if branches is None:
            return
        for turn in self.screen.turns.values():
            if turn.id not in branches or not turn.inputs:
                continue  # a ledger that others wrote may lack the fact that began it
            versions = branches.versions(turn.id)
            listed = list(versions) if len(versions) > 1 else None
            turn.inputs[0] = msgspec.structs.replace(turn.inputs[0], versions=listed)

    def check_running(self, turn_id: str) -> None:
        """Raise `SurfaceDestroyed` unless the turn may still show something."""
        if self.running != turn_id:
            raise SurfaceDestroyed(
                f"turn {turn_id} is over; it can show nothing more", detail=turn_id
            )

    def _begin_end(self, turn_id: str) -> None:
        """Record what a turn has held back."""
        if self._ending:
            actions = [action for turn, action in self._ending if turn == turn_id]
            self._ending = [one for one in self._ending if one[0] != turn_id]
            for action in actions:
                with suppress(ArpError):  # a change that the turn made last is refused
                    action()
        self.show_held(turn_id)

    def end_turn(
        self,
        turn_id: str,
        status: Literal["completed", "failed", "cancelled"],
        error: BaseException | None = None,
        reason: str | None = None,
        usage: JsonObject | None = None,
        goes_on: bool = True,
    ) -> list[Effect]:
        """End a turn, once; its open questions close, and its open tools fail.

        Both stay open in a turn that was interrupted: readers show such a tool as interrupted too.
        With a question open it reads as waiting, until that is closed, and its error is not shown:
        nothing failed that anybody has to do again.

        Args:
            turn_id: A turn that runs or is queued; another one is left as it is.
            status: How it ended.
            error: Shown by its code; what is not an `ArpError` shows no internals.
            reason: `statusReason` of the fact.
            usage: What it took; told with the final commit.
            goes_on: The next queued turn begins; else it waits, as when the server stops. Behind an
                agent that failed it waits too, if a renderer is there that can let it go on.
        """
        if turn_id != self.running and turn_id not in self.queue:
            return []
        self._begin_end(turn_id)
        if reason != "interrupted":
            for question in [q for q in self.questions.values() if q.turn_id == turn_id]:
                self.cancel_question(question)
            self._close_tools(turn_id)
        waits = reason == "interrupted" and self.asks(turn_id)
        if error is not None and not waits:
            payload = error_payload(error)
            shown: JsonObject = {"error": payload.error, "code": payload.code}
            self.in_turn("runtime.error", turn_id, {**shown, "retryable": payload.retryable})
        type_name = "turn.completed" if status == "completed" else "turn.failed"
        ids = {"status_reason": reason or status} if status != "completed" else {}
        recorded = "waiting" if waits else status
        ended: JsonObject = {"status": recorded, "usage": usage} if usage else {"status": recorded}
        was_queued, attempt = turn_id in self.queue, self.attempts.get(turn_id)
        self.in_turn(type_name, turn_id, ended, status=recorded, **ids)
        if not waits:
            failed = None if status == "completed" else reason or status
            self._end_attempt(turn_id, attempt, failed)
        self.evict()
        if was_queued:
            self.record_queue()
        is_error = status == "failed" and reason != "interrupted"
        if is_error and self.turns.may("pause") and self._can_be_resumed():
            self.record_queue(pause=True)
        return self.begin_next() if goes_on else []

    def _close_tools(self, turn_id: str) -> None:
        """Show the tools of a turn as failed that nobody has ended."""
        turn = self.screen.turns.get(turn_id)
        for run in [] if turn is None else [one for one in turn.tools if one.ok is None]:
            ids = {"step_id": run.call_id, "tool_call_id": run.call_id}
            self.in_turn(
                "tool.failed", turn_id, {"tool": run.tool, "error": TURN_ENDED_FIRST}, **ids
            )

    def _can_be_resumed(self) -> bool:
        """Return whether a renderer is there that shows a paused queue and can resume it."""
        return any(watcher.resumes_queue for watcher in self.watchers)

    def evict(self) -> None:
        """Let turns leave the memory that are over and no longer recent."""
        asking = [
            (question.turn_id, question.component_id if question.surface == "main" else "")
            for question in self.questions.values()
        ]
        asking += [
            (entry.turn_id, "")
            for entry in self.screen.infos.values()
            if entry.turn_id is not None and entry.info.is_transient
        ]
        gone = self.screen.let_go(asking)
        self.threads.keep(self.screen.turns)
        if gone and "main" in self._surfaces:
            self._surfaces["main"].forget(gone)

    # -- questions -------------------------------------------------------------------------------

    def ask(
        self,
        turn_id: str,
        component: Component,
        surface: str = "main",
        about: ToolUse | None = None,
        terms: QuestionTerms = NO_TERMS,
    ) -> Question:
        """Show a component that waits for an answer.

        One that a turn before left open under the same id is over then.

        Args:
            turn_id: Of the turn that asks.
            component: What asks.
            surface: Where.
            about: The use of a tool that waits for the answer.
            terms: What is recorded of it besides.

        Raises:
            ArpError: The component is refused, or is a question of this turn that is still open;
                nothing has changed.
        """
        if component.type == "table" and not asks("table", component.props):
            raise InvalidComponent(
                'a table asks for rows with selectable: "one" or "many"', detail=component.id
            )
        self.show_held(turn_id)
        before = self.questions.get((surface, component.id))
        if before is not None and before.turn_id == turn_id:
            raise InvalidComponent(
                f"question {component.id!r} is still open: ask another one under another id",
                detail=component.id,
            )
        props = {**component.props, "state": "open"}
        asked = self.log.clean_component(
            msgspec.structs.replace(answerable(component), props=props)
        )
        self.commit(turn_id, surface, [RenderChange([asked])])
        if before is not None:
            self._resolved(before, {"decision": "expired"})
        action_id = f"{turn_id}.{component.id}.{self.log.sequence + 1}"
        payload = {"component": as_object(asked), "surface": surface}
        if terms.name:
            payload["name"] = terms.name
        if terms.expires_at is not None:
            payload["expiresAt"] = terms.expires_at
        ids = {"action_id": action_id}
        if about is not None:
            payload |= self._permission(turn_id, about)
            ids |= about.ids
        self.in_turn("action.required", turn_id, payload, **ids)
        return self.questions[surface, component.id]

    def _permission(self, turn_id: str, about: ToolUse) -> JsonObject:
        """Return what a fact says of a permission besides its component."""
        if any(one.terms is not None and one.turn_id == turn_id for one in self.questions.values()):
            self.unclear_turn = turn_id
        payload: JsonObject = {"tool": about.tool, "askedBy": about.rule}
        shown = {"args": about.args, "sessionRule": about.session_rule}
        payload |= self.log.clean_value({name: one for name, one in shown.items() if one})
        if about.digest:
            payload["digest"] = about.digest
        if about.editable:
            payload["editable"] = True
        if about.expires_at is not None:
            payload["expiresAt"] = about.expires_at
        return payload

    def answer_question(
        self,
        question: Question,
        answer: Json,
        submitted: JsonObject | None,
        grant: Grant | None = None,
    ) -> None:
        """Close a question for every renderer with its answer.

        Args:
            question: An open one.
            answer: As every renderer may see it.
            submitted: The input that has the answer, if it does not begin a turn of its own.
            grant: What the answer allows from now on.

        Raises:
            ResourceLimit: The answer does not fit the component; the question stays open.
        """
        self.mark(question.component_id, question.surface, "answered", answer, question.turn_id)
        input_of = {"answer": answer, "input": submitted} if submitted is not None else {}
        if grant is not None:
            input_of["grant"] = {"tool": grant.tool, "rule": grant.rule}
        self._resolved(question, {"decision": "answered", **input_of})

    def decline_question(self, question: Question, submitted: JsonObject | None) -> None:
        """Close a question for every renderer: somebody does not want to answer it.

        Args:
            question: An open one.
            submitted: As in `answer_question`.
        """
        with suppress(ArpError):  # as in `cancel_question`
            self.mark(question.component_id, question.surface, "declined", None, question.turn_id)
        input_of: JsonObject = {"input": submitted} if submitted is not None else {}
        self._resolved(question, {"decision": "declined", **input_of})

    def asks(self, turn_id: str) -> bool:
        """Return whether a question of a turn is open."""
        return any(one.turn_id == turn_id for one in self.questions.values())

    def is_open(self, question: Question) -> bool:
        """Return whether a question still waits for its answer."""
        return self.questions.get((question.surface, question.component_id)) == question

    def cancel_question(
        self, question: Question, outcome: Literal["cancelled", "expired"] = "cancelled"
    ) -> None:
        """Close a question for every renderer without an answer."""
        if question.terms is not None:
            self.unclear_turn = question.turn_id
        # Also one whose component has no room left for the word that says so.
        with suppress(ArpError):
            self.mark(question.component_id, question.surface, outcome, None, question.turn_id)
        self._resolved(question, {"decision": outcome})

    def replace_question(self, question: Question) -> None:
        """Close a question for every renderer: the running turn asks the same again.

        Its own turn reads as completed when that was its last question: it goes on elsewhere.
        """
        with suppress(ArpError):  # as in `cancel_question`
            self.mark(question.component_id, question.surface, "expired", None, question.turn_id)
        self._resolved(question, {"decision": "expired"}, goes_on=True)

    def _resolved(self, question: Question, payload: JsonObject, goes_on: bool = False) -> None:
        turn_id = question.turn_id
        is_last = not any(
            one.turn_id == turn_id and one.action_id != question.action_id
            for one in self.questions.values()
        )
        payload["resumes"] = turn_id == self.running and is_last
        if is_last and turn_id != self.running and self.status_of(turn_id) == "waiting":
            is_done = goes_on or payload["decision"] in ("answered", "declined")
            payload["ends"] = "completed" if is_done else "cancelled"
        attempt = self.attempts.get(turn_id) if "ends" in payload else None
        self.in_turn("action.resolved", turn_id, payload, action_id=question.action_id)
        reason = None if payload.get("ends") == "completed" else "cancelled"
        self._end_attempt(turn_id, attempt, reason)

    def _end_attempt(self, turn_id: str, attempt: TurnAttempt | None, reason: str | None) -> None:
        """Record the end of the attempt that began with a turn: the turn is over.

        Args:
            turn_id: The turn.
            attempt: `None`: the turn is for no task, or the attempt has ended.
            reason: Why it failed; `None` completes it.
        """
        if attempt is None or self.attempts.goes_on(attempt):
            return
        of_turn = {"thread_id": self.threads.of(turn_id), "turn_id": turn_id}
        for type_name, payload in attempt.end_facts(reason):
            self.record(type_name, payload, **attempt.ids, **of_turn)

    def mark(
        self, component_id: str, surface: str, state: str, answer: Json, turn_id: str | None
    ) -> None:
        """Set an input component's `state`, and its `answer` if there is one.

        What stands under that id now may be something else: that is left as it is.
        """
        tree = self.tree(surface)
        node = tree.nodes.get(component_id) if tree is not None else None
        if node is None or not asks(node.type, node.own):
            return
        ops: list[PatchOp] = [Update(component_id, "props.state", state)]
        if answer is not None:
            hidden, _ = self.log.redactor.clean(answer)  # told with the fact that has the answer
            ops.append(Update(component_id, "props.answer", hidden))
        self.commit(turn_id, surface, [PatchChange(ops)])

    # -- draining --------------------------------------------------------------------------------

    @property
    def has_recorded(self) -> bool:
        """Whether there is anything to drain."""
        return not self.log.is_empty

    def drain(self, at: str) -> TextBatch | Batch:
        """Take what was recorded since the last time, as facts of one moment (RFC 3339)."""
        return self.log.drain(at)

    def cancel(self, turn_id: str | None = None) -> list[Effect]:
        """Ask for a turn to stop: the running one if `None`. A queued one is over at once."""
        turn_id = turn_id or self.running
        if turn_id is None:
            return []
        if turn_id in self.queue:
            return self.end_turn(turn_id, "cancelled")
        return [StopTurn(turn_id)] if turn_id == self.running else []


def _output_of(turn_id: str | None, surface: str) -> str:
    """Name the list of a surface that new components of a turn join."""
    return (turn_id or "") if surface == "main" else ""
