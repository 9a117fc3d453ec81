"""One session: its turns, its queue, its questions, its surfaces. Pure: no clock, no I/O.

Theory of operation. Everything that happens is *recorded*: it becomes a fact with the next
sequence number, and the screen shows it. The driver *drains* the recorded facts, makes them
durable, and only then delivers them. Everything else that the driver must do (start an agent, stop
it, pass it an answer) is returned as effects.

`turn_states` defines the legal transitions of a turn. `follow` applies a fact to everything except
the screen; it runs when a fact is recorded and again when it is replayed from the log. A question
stays open until it is answered or its turn ends normally. If a crash ended the turn, its questions
stay open and the turn is shown as waiting until the last one is closed.
"""

from __future__ import annotations

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
"""Id of the pretended turn that keeps a session busy while it plays a recording."""

TURN_ENDED_FIRST = "the turn ended first"
"""Error of a tool call that is still open when its turn ends."""


class Head(Struct, frozen=True):
    """Properties of a session that never change."""

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
    """Terms of a permission; `None` if the question asks for no permission."""
    name: str = ""
    """Name of the `@app.on_answer` handler that receives the answer if the turn has ended."""
    expires_at: str | None = None
    """Deadline (RFC 3339); later answers are refused."""

    @property
    def asked_at(self) -> int:
        """Sequence number of the fact that asked the question."""
        return int(self.action_id.rpartition(".")[2])


class ClosedQuestion(Struct, frozen=True):
    """A question that no longer accepts an answer."""

    question: Question
    sequence: int
    """Sequence number of the fact that closed it."""


MAX_CLOSED = 16
"""Number of closed questions that a session remembers; no screen lags by as many."""


class QuestionTerms(Struct, frozen=True):
    """Recorded options of a question, besides its component."""

    name: str = ""
    """Name of the handler of a late answer, as in `Question`."""
    expires_at: str | None = None
    """Deadline (RFC 3339) of a question that is not a permission; see `ToolUse` for those."""


NO_TERMS = QuestionTerms()


class ToolUse(Struct, frozen=True):
    """The tool call that a question asks permission for."""

    tool: str
    ids: Mapping[str, str]
    """Correlation ids of the call, by field name."""
    rule: str
    """Name of the rule that requires a person's approval."""
    digest: str = ""
    """Digest of the input to be approved, secrets included."""
    args: str | None = None
    """Input to be approved, as JSON; `None` means the arguments of the call."""
    session_rule: str | None = None
    """Permission that a yes for the session gives; `None` if none is offered."""
    editable: bool = False
    """Whether the answer may contain a changed input."""
    expires_at: str | None = None
    """Deadline (RFC 3339); later answers are refused."""


TURN_FACTS = frozenset(name for events in TURN_EVENTS.values() for name in events)
"""Facts that change the state of a turn or of the queue."""

INPUT_FACTS = frozenset(
    ("turn.submitted", "queue.changed", "action.resolved", "artifact.changed", "run.status")
)
"""Facts that may contain an input, or the id of one."""

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
"""Facts that `Session.follow` applies: they change more than the turn states and the screen."""


class Session:
    """The state machine of one session."""

    __slots__ = (
        "_before_end",
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
        """Open questions by surface and component id, oldest first."""
        self.closed: list[ClosedQuestion] = []
        """The last `MAX_CLOSED` questions that were answered, declined or expired, oldest first. A
        lagging renderer may still show them as open."""
        self.unclear_turn: str | None = None
        """Turn in which a yes without a question's name is ambiguous: several permissions were
        open at once, or one ended without an answer."""
        self.input_log = InputLog()
        self.attempts = TurnAttempts()
        self.leaving: dict[str, SurfaceTransferRequest] = {}
        """Pending transfers by surface: a renderer was asked, and the outcome is not known."""
        self.serials = Serials()
        self.watchers: list[Watcher] = []
        """Observers that are called after each commit."""
        self._surfaces: dict[str, Surface] = {}
        self._before_end: list[tuple[str, Callable[[], None]]] = []
        """Callbacks of `before_end`, each with its turn."""

    # -- reading ---------------------------------------------------------------------------------

    @property
    def sequence(self) -> int:
        """Sequence number of the newest fact."""
        return self.log.sequence

    @property
    def name(self) -> SessionName:
        """Name of the session on the wire, with its current sequence number."""
        return SessionName(self.head.session_id, self.head.epoch, self.log.sequence)

    @property
    def cursor(self) -> Cursor:
        """Cursor of a renderer that has received everything recorded so far."""
        return self.log.cursor()

    @property
    def running(self) -> str | None:
        """Id of the running turn."""
        return self.turns.running

    @property
    def queue(self) -> list[str]:
        """Ids of the queued turns, in the order in which they will run."""
        return self.turns.queue

    @property
    def active(self) -> bool:
        """Whether a crash now would need recovery: a turn is running or about to start."""
        return self.turns.is_active

    @property
    def rules(self) -> Rules:
        """Rules of the session."""
        return self.settings.rules

    @property
    def branches(self) -> Branches | None:
        """Turns of all branches; `None` while there is only one. The screen shows one branch."""
        return self.settings.branches

    @property
    def branched_at(self) -> int:
        """Sequence number of the fact that last changed the shown branch; 0 if there is none."""
        branches = self.settings.branches
        return branches.changed_at if branches is not None else 0

    @property
    def turn_count(self) -> int:
        """Number of turns so far, on all branches."""
        branches = self.settings.branches
        return self.screen.count if branches is None else len(branches)

    @property
    def title(self) -> str:
        """Name given to the session; without one, the beginning of the user's first text."""
        return self.settings.title

    def trace(self, turn_id: str) -> Trace:
        """Return the trace of a turn that is not over; only its first fact may set another one."""
        traceparent = self.input_log.traceparents.get(turn_id)
        return turn_trace(self.head.session_id, self.head.epoch, turn_id, traceparent)

    def status_of(self, turn_id: str) -> str | None:
        """Return a turn's status; `None` if the screen has no such turn."""
        turn = self.screen.turns.get(turn_id)
        return turn.status if turn else None

    # -- recording -------------------------------------------------------------------------------

    def record(self, type_name: str, payload: JsonObject, **ids: Json) -> RecordedFact:
        """Record a fact that belongs to no turn, and show it on the screen.

        Raises:
            ReadOnly: The log is sealed; nothing is recorded.
        """
        fact = self._next_fact(type_name, None, payload, ids)
        self._record([fact])
        return fact

    def in_turn(
        self, type_name: str, turn_id: str, payload: JsonObject, **ids: Json
    ) -> RecordedFact:
        """Record a fact of a turn, and show it on the screen.

        Raises:
            IllegalTransition: The fact is not legal in the turn's state; nothing is recorded.
            ReadOnly: The log is sealed; nothing is recorded.
        """
        fact = self._next_fact(type_name, turn_id, payload, ids)
        self._record([fact])
        return fact

    def _next_fact(
        self, type_name: str, turn_id: str | None, payload: JsonObject, ids: dict[str, Json]
    ) -> RecordedFact:
        """Return the next fact, after applying it to the turn states. `_record` must follow."""
        self.log.check_open()
        # The transition comes before everything else: an illegal fact must raise while nothing has
        # changed yet.
        if type_name in TURN_FACTS:
            self.turns.follow(type_name, turn_id, payload)
        if turn_id is not None:
            ids["thread_id"], ids["turn_id"] = self.threads.of(turn_id), turn_id
        return RecordedFact(type_name, payload, ids, turn_id=turn_id)

    def _record(self, facts: Sequence[RecordedFact]) -> None:
        """Record facts of `_next_fact`: all pass redaction, then `follow`, then the screen."""
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
        """Apply a fact to everything except turn states and screen.

        It runs for a fact that was just recorded and for one that is replayed from the log.

        Args:
            type_name: Type of the fact; types outside `FOLLOWED` change nothing.
            turn_id: Turn of the fact; `None` if the fact is not about its turn.
            payload: Payload of the fact, as stored in the ledger.
            ids: Other correlation ids of the fact, by field name.
            sequence: Sequence number of the fact.

        Raises:
            Forked: The fact changes to another branch, and the other branches are not in memory.
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
            case "output.spilled" if "file" in payload:
                # A saved file, which inputs may name. The spilled output of a tool has no `file`.
                seen.remember_files([payload["file"]["sha256"]])
            case "tool.result" | "evidence.changed" if ids.get("output_ref") is not None:
                # The full result of a tool, or an evidence pack, which the owner may download.
                seen.remember_files([ids["output_ref"]])
            case _:
                pass

    def _follow_input(self, turn_id: str | None, payload: JsonObject, sequence: int) -> None:
        """Apply the input of a fact, and a surface that the fact closes or transfers."""
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
        # A serial proves that a user did something on a surface. An input of a program proves
        # nothing, and an unknown surface named by a peer would fill the memory.
        if "origin" not in payload and surface in self.screen.surfaces:
            self.serials.note(surface, sequence)
        if not self.settings.opening and self.settings.shows(turn_id):
            self.settings.open_with(submitted)

    def _follow_question(
        self, turn_id: str, payload: JsonObject, action_id: str, sequence: int
    ) -> None:
        """Apply `action.required` (it has a component) or `action.resolved` (it has none)."""
        if "component" not in payload:
            for key, question in list(self.questions.items()):
                if question.action_id == action_id:
                    del self.questions[key]
                    # `closed` catches answers from screens that still show the question. A user
                    # who cancelled the turn knows that its question is gone.
                    if payload.get("decision") != "cancelled":
                        self.closed.append(ClosedQuestion(question, sequence))
                        del self.closed[:-MAX_CLOSED]
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
        """Record text of a turn's output, or of its reasoning, as one fact."""
        self.log.say(turn_id, text, type_name)

    def update_state(self, turn_id: str, state: JsonObject) -> None:
        """Record the agent's state of this session if it has changed.

        Args:
            turn_id: The turn that changed it; the state belongs to the branch of that turn.
            state: Plain JSON. The caller must not change it afterwards.

        Raises:
            ResourceLimit: It is larger than `MAX_STATE_BYTES`; nothing is recorded.
            ValueError: It contains a secret; nothing is recorded. A redacted state would not be
                what the agent wrote when it is read back.
        """
        if self._check_state(state, self.settings.state, "turn.state"):
            self.in_turn("session.updated", turn_id, {"state": state})

    def update_shared_state(self, turn_id: str, state: JsonObject) -> None:
        """Record the state that the agent shares with renderers; limits as in `update_state`."""
        if self._check_state(state, self.screen.shared_state, "turn.shared_state"):
            self.in_turn("session.updated", turn_id, {"sharedState": state})

    def _check_state(self, state: JsonObject, before: JsonObject, where: str) -> bool:
        """Return whether a state differs from the previous one; refuse one that cannot be stored.

        Args:
            state: The new state.
            before: The previous state.
            where: Name of the state in error messages.

        Raises:
            ResourceLimit: As `update_state`.
            ValueError: As `update_state`.
        """
        # Compared as JSON, because in Python 1 == True: that change would be lost.
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
        """Record the user's settings of the session if they have changed.

        Raises:
            ResourceLimit: They are larger than `MAX_STATE_BYTES`; nothing is recorded.
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
        """Record the session's own slash commands if they have changed.

        Args:
            turn_id: The turn that sets them; like `turn.state`, they belong to its branch. `None`
                if no turn sets them; they then belong to the shown branch.
            commands: All commands of the session.

        Raises:
            ResourceLimit: They are larger than `MAX_COMMANDS_BYTES`; nothing is recorded.
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
        # Only a fact of a turn belongs to a branch. Without a turn, the commands would also show
        # on branches that never had them.
        setter = turn_id or self._newest_turn()
        if setter is None:
            self.record("session.updated", payload)
        else:
            self.in_turn("session.updated", setter, payload)

    def _newest_turn(self) -> str | None:
        """Return the running turn, else the newest one that is over; `None` if there is none."""
        turns = self.screen.turns
        over = (name for name in reversed(turns) if turns[name].status in FINAL_STATUSES)
        return self.running or next(over, None)

    # -- surfaces --------------------------------------------------------------------------------

    def commit(
        self, turn_id: str | None, surface: str, changes: Sequence[Change], **payload: Json
    ) -> None:
        """Apply changes to a surface, all or nothing, and record them as one fact.

        Raises:
            ArpError: A component or an operation is refused, or a limit is exceeded; nothing has
                changed and nothing is recorded.
        """
        self.log.settle(turn_id)
        known = self.screen.surfaces.get(surface)
        changes = self.log.clean_changes(changes, surface, turn_id, known)
        self._commit(turn_id, surface, changes, payload)

    def _commit(
        self, turn_id: str | None, surface: str, changes: Sequence[Change], payload: JsonObject
    ) -> None:
        """Commit changes that contain no secrets.

        Everything that can refuse the commit is in the `try` block. The surface has changed once
        `target.commit` returns, and nothing after it refuses the commit.
        """
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
            # The secrets found in refused changes must not be reported with the next fact.
            self.log.forget_found()
            raise
        self.log.growing.keep()
        # A new surface joins the screen only now, so that a refused first commit creates none.
        if known is None:
            self.screen.surfaces[surface] = target.tree
        self._surfaces[surface] = target
        at = At(self.head.session_id, seq, turn_id)
        ids = {"artifact_id": surface}
        # The commit reuses the id of an evicted component. A renderer may still show the old one
        # under that id, and needs a snapshot instead of this commit.
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
        """Call `action` before the turn ends, while the turn may still record facts."""
        self._before_end.append((turn_id, action))

    def show_held(self, turn_id: str) -> None:
        """Show the text that is held back for a turn: no more text follows it for now."""
        self.log.settle(turn_id)
        for surface, op in self.log.let_go(turn_id, self.screen.surfaces):
            with suppress(ArpError):  # the component has no room left for it
                self._commit(turn_id, surface, [PatchChange([op])], {})

    def tree(self, surface: str) -> Tree | None:
        """Return a surface's components; `None` if there is no such surface."""
        return self.screen.surfaces.get(surface)

    def _new_surface(self, name: str, tree: Tree, payload: JsonObject) -> Surface:
        most = self.rules.limits.max_surfaces
        if name not in self.screen.surfaces and len(self.screen.surfaces) >= most:
            raise ResourceLimit(
                f"surface {name!r} would be one more than {most}", detail="max_surfaces"
            )
        role = payload["info"].get("role") if "info" in payload else self.screen.info(name).role
        # A renderer without overlays shows a popup inside a group on `main`, one level deeper. A
        # popup with all levels would be refused there.
        levels = MAX_LEVELS - 1 if role in ("popup", "overlay") else MAX_LEVELS
        return Surface(tree, self.rules.limits, levels)

    # -- turns -----------------------------------------------------------------------------------

    def begin_next(self) -> list[Effect]:
        """Start the first queued turn if no turn is running and the queue is not paused."""
        facts: list[RecordedFact] = []
        effects = self._start(facts)
        self._record(facts)
        return effects

    def enqueue(
        self, turn_id: str, submitted: JsonObject, ids: dict[str, Json], resume: bool
    ) -> list[Effect]:
        """Append a new turn to the queue, and start the first queued turn if possible.

        Args:
            turn_id: Id of the new turn.
            submitted: Payload of its first fact.
            ids: Correlation ids of that fact, by field name.
            resume: Whether to resume a paused queue.
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
        """Append the facts that start the first queued turn to `facts`, if it may start."""
        if not self.turns.may("start"):
            return []
        turn_id = self.queue[0]
        self.log.assembler.begin_turn(turn_id)
        facts.append(self._next_fact("turn.started", turn_id, {}, {}))
        # Renderers were shown a queue that has just changed. A turn that starts at once was never
        # shown as queued, and needs no such fact.
        if self.queue or self.status_of(turn_id) == "queued":
            facts.append(self._queue_fact())
        return [RunTurn(turn_id)]

    def leave(self) -> None:
        """Clear the running turn without recording a fact: the session is removed from memory."""
        self.turns.set(None, self.queue, self.turns.is_paused, is_waiting=False)

    def begin_recording(self) -> None:
        """Make the session busy for good: it plays a recording, and refuses every input."""
        self.turns.set(RECORDING, self.queue, self.turns.is_paused, is_waiting=False)
        self.settings.rules = msgspec.structs.replace(self.rules, policy="reject")

    def record_queue(self, queue: list[str] | None = None, pause: bool = False) -> None:
        """Record the queue, unchanged or in another order.

        Args:
            queue: The new order; `None` means the current order.
            pause: Whether to pause the queue.
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
        """Resume a queue that a failed turn paused, and start its first turn."""
        self.turns.resume()
        return self.begin_next()

    def promote(self, turn_id: str) -> None:
        """Move a queued turn to the front of the queue; ignore a turn that is not queued."""
        if turn_id in self.queue[1:]:
            self.record_queue([turn_id, *(other for other in self.queue if other != turn_id)])

    def edit_queued(self, turn_id: str, submitted: JsonObject) -> RecordedFact:
        """Replace the input of a queued turn."""
        changed: JsonObject = {**self._queue_payload(self.queue), "input": submitted}
        return self.in_turn("queue.changed", turn_id, changed)

    def begin_thread(self, name: str, title: str | None = None) -> None:
        """Begin a new thread.

        Raises:
            ResourceLimit: The session has the maximum number of threads; nothing is recorded.
        """
        self.threads.check_room()
        self.record("thread.started", {"title": title} if title else {}, thread_id=name)

    # -- branches --------------------------------------------------------------------------------

    def switch_to(self, other: Session) -> None:
        """Adopt the state of another branch. No turn may be running.

        Args:
            other: Session built from the same facts for another branch. The caller must not use it
                afterwards.
        """
        self.screen, self.questions = other.screen, other.questions
        self.settings.switch_to(other.settings)
        self.threads.follow(other.threads)
        self.log.show_on(other.screen)
        self._surfaces.clear()
        for watcher in self.watchers:
            watcher.show_on(self.screen)

    def show_versions(self) -> None:
        """Write the versions of each turn into the turn's first input on the screen."""
        branches = self.settings.branches
        if branches is None:
            return
        for turn in self.screen.turns.values():
            if turn.id not in branches or not turn.inputs:
                continue  # a ledger from another program may lack the fact that began the turn
            versions = branches.versions(turn.id)
            listed = list(versions) if len(versions) > 1 else None
            turn.inputs[0] = msgspec.structs.replace(turn.inputs[0], versions=listed)

    def check_running(self, turn_id: str) -> None:
        """Raise `SurfaceDestroyed` if the turn is not running and may show nothing more."""
        if self.running != turn_id:
            raise SurfaceDestroyed(
                f"turn {turn_id} is over; it can show nothing more", detail=turn_id
            )

    def _begin_end(self, turn_id: str) -> None:
        """Run the callbacks of `before_end`, and record text that is still held back."""
        if self._before_end:
            actions = [action for turn, action in self._before_end if turn == turn_id]
            self._before_end = [one for one in self._before_end if one[0] != turn_id]
            for action in actions:
                # A refused last change must not keep the turn from ending.
                with suppress(ArpError):
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
        """End a turn: close its open questions and fail its open tool calls.

        An interrupted turn keeps both open, and readers show such a tool call as interrupted. If
        it has an open question, the turn is shown as waiting until that question is closed, and
        its error is not shown: nothing failed that the user has to repeat.

        Args:
            turn_id: A running or queued turn; a turn in another state is left unchanged.
            status: Outcome of the turn.
            error: Error to show. An exception that is not an `ArpError` is shown without details.
            reason: `statusReason` of the fact. `interrupted` means that a crash ended the turn.
            usage: Usage of the turn, sent with the final commit.
            goes_on: Whether to start the next queued turn; `False` when the server stops. After a
                failed turn the queue is paused anyway if a connected renderer can resume it.
        """
        # A turn ends exactly once: its agent may report the end after the user has cancelled it.
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
        # Read before the fact is recorded, which removes both.
        was_queued, attempt = turn_id in self.queue, self.attempts.get(turn_id)
        self.in_turn(type_name, turn_id, ended, status=recorded, **ids)
        if not waits:
            failed = None if status == "completed" else reason or status
            self._end_attempt(turn_id, attempt, failed)
        self.evict()
        if was_queued:
            self.record_queue()
        # After a failure the queued turns may be pointless, so the user decides. Without a renderer
        # that can resume the queue, a paused queue would never run again.
        is_error = status == "failed" and reason != "interrupted"
        if is_error and self.turns.may("pause") and self._can_be_resumed():
            self.record_queue(pause=True)
        return self.begin_next() if goes_on else []

    def _close_tools(self, turn_id: str) -> None:
        """Record every open tool call of a turn as failed."""
        turn = self.screen.turns.get(turn_id)
        for run in [] if turn is None else [one for one in turn.tools if one.ok is None]:
            ids = {"step_id": run.call_id, "tool_call_id": run.call_id}
            self.in_turn(
                "tool.failed", turn_id, {"tool": run.tool, "error": TURN_ENDED_FIRST}, **ids
            )

    def _can_be_resumed(self) -> bool:
        """Return whether a connected renderer shows a paused queue and can resume it."""
        return any(watcher.resumes_queue for watcher in self.watchers)

    def evict(self) -> None:
        """Evict turns that are over and no longer recent."""
        # A turn with an open question or an open popup must stay: an answer needs the component,
        # and the popup needs its group in the output of the turn.
        pinned = [
            (question.turn_id, question.component_id if question.surface == "main" else "")
            for question in self.questions.values()
        ]
        pinned += [
            (entry.turn_id, "")
            for entry in self.screen.infos.values()
            if entry.turn_id is not None and entry.info.is_transient
        ]
        gone = self.screen.let_go(pinned)
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

        A question with the same id that an earlier turn left open expires.

        Args:
            turn_id: The turn that asks.
            component: The question.
            surface: Surface that shows the question.
            about: Tool call that the question asks permission for.
            terms: Recorded options of the question.

        Raises:
            ArpError: The component is refused, or this turn has an open question with the same id;
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
        # Only now: a refused component must leave the earlier question open.
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
        """Return the payload of a permission request, besides its component."""
        # From the second open permission on, a yes without a name may be meant for the other one.
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
        """Close a question with its answer, for every renderer.

        Args:
            question: An open question.
            answer: The answer in the form that every renderer may see.
            submitted: The input with the answer; `None` if that input begins a turn of its own.
            grant: Permission for the rest of the session that the answer gives.

        Raises:
            ResourceLimit: The answer does not fit the component; the question stays open.
        """
        self.mark(question.component_id, question.surface, "answered", answer, question.turn_id)
        input_of = {"answer": answer, "input": submitted} if submitted is not None else {}
        if grant is not None:
            input_of["grant"] = {"tool": grant.tool, "rule": grant.rule}
        self._resolved(question, {"decision": "answered", **input_of})

    def decline_question(self, question: Question, submitted: JsonObject | None) -> None:
        """Close a question that the user declines, for every renderer.

        Args:
            question: An open question.
            submitted: The input that declines; `None` if that input begins a turn of its own.
        """
        with suppress(ArpError):  # as in `cancel_question`
            self.mark(question.component_id, question.surface, "declined", None, question.turn_id)
        input_of: JsonObject = {"input": submitted} if submitted is not None else {}
        self._resolved(question, {"decision": "declined", **input_of})

    def asks(self, turn_id: str) -> bool:
        """Return whether a turn has an open question."""
        return any(one.turn_id == turn_id for one in self.questions.values())

    def is_open(self, question: Question) -> bool:
        """Return whether a question still waits for its answer."""
        return self.questions.get((question.surface, question.component_id)) == question

    def cancel_question(
        self, question: Question, outcome: Literal["cancelled", "expired"] = "cancelled"
    ) -> None:
        """Close a question for every renderer without an answer."""
        # A late yes to this permission must not count for the next one of the turn.
        if question.terms is not None:
            self.unclear_turn = question.turn_id
        # The question must close even if the component has no room left for its new state.
        with suppress(ArpError):
            self.mark(question.component_id, question.surface, outcome, None, question.turn_id)
        self._resolved(question, {"decision": outcome})

    def replace_question(self, question: Question) -> None:
        """Close a question for every renderer, because the running turn asks it again.

        If it was the last open question of its turn, that turn is shown as completed: the running
        turn continues its work.
        """
        with suppress(ArpError):  # as in `cancel_question`
            self.mark(question.component_id, question.surface, "expired", None, question.turn_id)
        self._resolved(question, {"decision": "expired"}, goes_on=True)

    def _resolved(self, question: Question, payload: JsonObject, goes_on: bool = False) -> None:
        """Record the end of a question, and of its turn if the turn is only shown as waiting.

        Args:
            question: An open question.
            payload: Payload of `action.resolved` so far, with its `decision`.
            goes_on: Whether another turn continues the work of the question's turn.
        """
        turn_id = question.turn_id
        is_last = not any(
            one.turn_id == turn_id and one.action_id != question.action_id
            for one in self.questions.values()
        )
        payload["resumes"] = turn_id == self.running and is_last
        # A crash ended this turn earlier, and its open questions kept it waiting. With the last one
        # closed it needs a final status, or it would be shown as waiting for ever.
        if is_last and turn_id != self.running and self.status_of(turn_id) == "waiting":
            is_done = goes_on or payload["decision"] in ("answered", "declined")
            payload["ends"] = "completed" if is_done else "cancelled"
        attempt = self.attempts.get(turn_id) if "ends" in payload else None
        self.in_turn("action.resolved", turn_id, payload, action_id=question.action_id)
        reason = None if payload.get("ends") == "completed" else "cancelled"
        self._end_attempt(turn_id, attempt, reason)

    def _end_attempt(self, turn_id: str, attempt: TurnAttempt | None, reason: str | None) -> None:
        """Record the end of the attempt that began with a turn, because the turn is over.

        Args:
            turn_id: The turn.
            attempt: The attempt; `None` if the turn is for no task or the attempt has ended.
            reason: Reason of a failure; `None` completes the attempt.
        """
        # Another turn for the same run continues the attempt; that turn will end it.
        if attempt is None or self.attempts.goes_on(attempt):
            return
        of_turn = {"thread_id": self.threads.of(turn_id), "turn_id": turn_id}
        for type_name, payload in attempt.end_facts(reason):
            self.record(type_name, payload, **attempt.ids, **of_turn)

    def mark(
        self, component_id: str, surface: str, state: str, answer: Json, turn_id: str | None
    ) -> None:
        """Set an input component's `state`, and its `answer` if there is one.

        Nothing changes if the agent has replaced the question by a component of another kind.
        """
        tree = self.tree(surface)
        node = tree.nodes.get(component_id) if tree is not None else None
        if node is None or not asks(node.type, node.own):
            return
        ops: list[PatchOp] = [Update(component_id, "props.state", state)]
        if answer is not None:
            # The findings are reported with `action.resolved`, which contains the same answer.
            hidden, _ = self.log.redactor.clean(answer)
            ops.append(Update(component_id, "props.answer", hidden))
        self.commit(turn_id, surface, [PatchChange(ops)])

    # -- draining --------------------------------------------------------------------------------

    @property
    def has_recorded(self) -> bool:
        """Whether there is anything to drain."""
        return not self.log.is_empty

    def drain(self, at: str) -> TextBatch | Batch:
        """Return and remove what was recorded since the last call; `at` is its time (RFC 3339)."""
        return self.log.drain(at)

    def cancel(self, turn_id: str | None = None) -> list[Effect]:
        """Request the end of a turn; `None` means the running turn. A queued turn ends at once."""
        turn_id = turn_id or self.running
        if turn_id is None:
            return []
        if turn_id in self.queue:
            return self.end_turn(turn_id, "cancelled")
        return [StopTurn(turn_id)] if turn_id == self.running else []


def _output_of(turn_id: str | None, surface: str) -> str:
    """Return the name of the output list of a surface that new components of a turn join."""
    return (turn_id or "") if surface == "main" else ""
