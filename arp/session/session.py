"""One session: its turns, its queue, its questions, its surfaces. Pure: no clock, no I/O.

Theory of operation. Everything that happens is *recorded*: it becomes a fact with the next
sequence number, and the screen shows it. The driver *drains* the recorded facts, makes them
durable, and only then delivers them. Everything else that the driver must do (start an agent, stop
it, pass it an answer) is returned as effects.

A step has three parts. What it needs is *checked*, and nothing has changed if that fails. Its facts
are *decided*. Then each fact is *applied*: `turn_states` has the legal transitions of a turn,
`FACT_HANDLERS` has one function per fact type for everything else except the screen. Both run when
a fact is recorded and again when it is replayed from the log.

A question stays open until it is answered or its turn ends normally. If a crash ended the turn, its
questions stay open and the turn is shown as waiting until the last one is closed.

The steps themselves are functions in other modules, one module for each subject: `turn_queue`,
`turn_end`, `asking` (questions), `surfaces`, `session_values`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

import msgspec
from msgspec import Struct

from arp.ledger.tracing import Trace, turn_trace
from arp.protocol.connection.screen import TurnScreen
from arp.protocol.errors import (
    ArpError,
    ResourceLimit,
    SurfaceDestroyed,
)
from arp.protocol.json_value import Json, JsonObject
from arp.protocol.limits import MAX_LEVELS, Limits
from arp.protocol.objects.messages import SurfaceTransferRequest
from arp.protocol.tree import Tree
from arp.redact.redactor import Redactor, known_shapes
from arp.session.approval import ApprovalRequest, Grant
from arp.session.attempts import TurnAttempts
from arp.session.questions import Questions
from arp.session.recording.log import Log, ReadOnly
from arp.session.recording.projection import At, commit_messages, stored, surface_message
from arp.session.recording.recorded import (
    OUTPUT_TEXT,
    AppliedCommit,
    Batch,
    Cursor,
    RecordedFact,
    SessionName,
    TextBatch,
    Watcher,
)
from arp.session.session_settings import (
    Rules,
    SessionSettings,
)
from arp.session.tracking.branches import Branches
from arp.session.tracking.input_log import InputLog
from arp.session.tracking.popup_places import check_places
from arp.session.tracking.serials import Serials
from arp.session.tracking.threads import THREAD, Threads
from arp.session.tracking.window import Window
from arp.session.turn_states import TURN_EVENTS, Policy, TurnQueue
from arp.surface.change import Change, PatchChange
from arp.surface.surface import Surface

RECORDING = "recording"
"""Id of the pretended turn that keeps a session busy while it plays a recording."""


class Head(Struct, frozen=True):
    """Properties of a session that never change."""

    session_id: str
    epoch: str
    owner: str = ""
    workflow: str = ""
    runtime_id: str = "arp"
    created_at: str = ""


class QuestionOptions(Struct, frozen=True):
    """Recorded options of a question, besides its component."""

    name: str = ""
    """Name of the `@app.on_answer` handler that receives the answer if the turn has ended."""
    expires_at: str | None = None
    """Deadline (RFC 3339); later answers are refused. `None` means the end of the turn."""
    request: ApprovalRequest | None = None
    """Permission that the question asks for; `None` if it asks for no permission."""


NO_OPTIONS = QuestionOptions()


TURN_FACTS = frozenset(name for events in TURN_EVENTS.values() for name in events)
"""Facts that change the state of a turn or of the queue."""


class Session:
    """The state machine of one session."""

    __slots__ = (
        "_before_end",
        "_surfaces",
        "attempts",
        "epoch",
        "head",
        "id",
        "input_log",
        "leaving",
        "log",
        "owner",
        "questions",
        "redactor",
        "rules",
        "screen",
        "serials",
        "settings",
        "threads",
        "turns",
        "watchers",
        "workflow",
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
        self.id, self.epoch = head.session_id, head.epoch
        self.owner, self.workflow = head.owner, head.workflow
        self.rules = Rules(limits, policy, traced)
        self.settings = SessionSettings()
        self.screen = Window()
        self.threads = Threads()
        self.redactor = redactor or known_shapes()
        self.log = Log(head.runtime_id, head.session_id, self.screen, self.redactor, self.threads)
        self.turns = TurnQueue()
        self.questions = Questions()
        """Open questions, and those that were closed last."""
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
        """Fields by which messages name the session, with its current sequence number."""
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

    @property
    def chosen_settings(self) -> JsonObject:
        """Settings chosen by the user. They are replaced, never modified."""
        return self.settings.chosen

    @property
    def sealed(self) -> ReadOnly | None:
        """Error that says why the session is read-only; `None` if it can be continued."""
        return self.log.sealed

    def trace(self, turn_id: str) -> Trace:
        """Return the trace of a turn that is not over.

        The external span of a turn is forgotten when the turn ends. For an ended turn, use
        `arp.ledger.tracing.trace_of` with its first fact.
        """
        traceparent = self.input_log.traceparents.get(turn_id)
        return turn_trace(self.head.session_id, self.head.epoch, turn_id, traceparent)

    def turn(self, turn_id: str) -> TurnScreen | None:
        """Return a turn as the screen shows it; `None` if the screen has no such turn."""
        return self.screen.turns.get(turn_id)

    def status_of(self, turn_id: str) -> str | None:
        """Return a turn's status; `None` if the screen has no such turn."""
        turn = self.screen.turns.get(turn_id)
        return turn.status if turn else None

    @property
    def has_recorded(self) -> bool:
        """Whether there is anything to drain."""
        return not self.log.is_empty

    def drain(self, at: str) -> TextBatch | Batch:
        """Return and remove what was recorded since the last call; `at` is its time (RFC 3339)."""
        return self.log.drain(at)

    # -- recording -------------------------------------------------------------------------------

    def record(self, type_name: str, payload: JsonObject, **ids: Json) -> RecordedFact:
        """Record a fact that belongs to no turn, and show it on the screen.

        Raises:
            ReadOnly: The log is sealed; nothing is recorded.
        """
        fact = RecordedFact(type_name, payload, ids)
        self.record_step([fact])
        return fact

    def in_turn(
        self, type_name: str, turn_id: str, payload: JsonObject, **ids: Json
    ) -> RecordedFact:
        """Record a fact of a turn, and show it on the screen.

        Raises:
            IllegalTransition: The fact is not legal in the turn's state; nothing is recorded.
            ReadOnly: The log is sealed; nothing is recorded.
        """
        ids["thread_id"], ids["turn_id"] = self.threads.of(turn_id), turn_id
        fact = RecordedFact(type_name, payload, ids, turn_id=turn_id)
        self.record_step([fact])
        return fact

    def record_step(self, facts: Sequence[RecordedFact]) -> None:
        """Record the facts of one step, and show them on the screen.

        Raises:
            IllegalTransition: The first fact is not legal in the state of its turn; nothing is
                recorded. The caller decides on the others such that they are legal after it.
            ReadOnly: The log is sealed; nothing is recorded.
        """
        self.log.check_open()
        # The transitions come before everything else: an illegal fact must raise while nothing has
        # changed yet.
        for fact in facts:
            if fact.type in TURN_FACTS:
                self.turns.follow(fact.type, fact.turn_id, fact.payload)
        self.log.add(facts)
        for fact in facts:
            if (apply := FACT_HANDLERS.get(fact.type)) is not None:
                apply(self, fact)
            for message in fact.messages:
                self.screen.apply(message, fact.sequence)

    def say(self, turn_id: str, text: str, type_name: str = OUTPUT_TEXT) -> None:
        """Record a piece of a turn's output, or of its reasoning, without its secrets.

        An end of the piece that may begin a secret is not recorded yet. It is recorded together
        with the next piece, or before the next fact of the turn.
        """
        self.log.say(turn_id, text, type_name)

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
        if self.is_transient(surface):
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
        """Show the text that is held back for a turn, because no more text follows it for now."""
        self.log.settle(turn_id)
        for surface, op in self.log.flush(turn_id, self.screen.surfaces):
            with suppress(ArpError):  # the component has no room left for it
                self._commit(turn_id, surface, [PatchChange([op])], {})

    def is_transient(self, surface: str) -> bool:
        """Return whether a surface is a popup or an overlay."""
        return self.screen.info(surface).is_transient

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

    def begin_recording(self) -> None:
        """Keep the session busy for good, because it plays a recording; new turns are refused."""
        self.turns.set(RECORDING, self.turns.queue, self.turns.is_paused, is_waiting=False)
        self.rules = msgspec.structs.replace(self.rules, policy="reject")

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
        self.screen = other.screen
        self.questions.adopt(other.questions)
        self.settings.switch_to(other.settings)
        self.threads.follow(other.threads)
        self.log.show_on(other.screen)
        self._surfaces.clear()
        for watcher in self.watchers:
            watcher.show_on(self.screen)

    # -- ends of turns ---------------------------------------------------------------------------

    def check_running(self, turn_id: str) -> None:
        """Raise `SurfaceDestroyed` if the turn is not running and may show nothing more."""
        if self.turns.running != turn_id:
            raise SurfaceDestroyed(
                f"turn {turn_id} is over; it can show nothing more", detail=turn_id
            )

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
        gone = self.screen.evict_ended(pinned)
        self.threads.keep(self.screen.turns)
        if gone and "main" in self._surfaces:
            self._surfaces["main"].forget(gone)

    def begin_end(self, turn_id: str) -> None:
        """Run the callbacks of `before_end`, and record text that is still held back."""
        if self._before_end:
            actions = [action for turn, action in self._before_end if turn == turn_id]
            self._before_end = [one for one in self._before_end if one[0] != turn_id]
            for action in actions:
                # A refused last change must not keep the turn from ending.
                with suppress(ArpError):
                    action()
        self.show_held(turn_id)


def _output_of(turn_id: str | None, surface: str) -> str:
    """Return the key in `Tree.outputs` of the list that receives new components of a turn."""
    return (turn_id or "") if surface == "main" else ""


# -- what each type of fact changes ----------------------------------------------------------------


def _turn_submitted(session: Session, fact: RecordedFact) -> None:
    turn_id, payload = fact.turn_id, fact.payload
    _apply_input(session, fact)
    session.settings.follow_branches(fact.type, turn_id, payload, fact.sequence)
    if turn_id is not None:
        session.input_log.remember_turn(turn_id, payload)
        if fact.ids.get("task_id"):
            session.attempts.add_turn(turn_id, fact.ids)


def _turn_ended(session: Session, fact: RecordedFact) -> None:
    if fact.turn_id is not None:
        session.input_log.forget_turn(fact.turn_id)
        # A crash ended this turn, but not its questions: its attempt ends with the last of them.
        if fact.payload.get("status") != "waiting":
            session.attempts.remove_turn(fact.turn_id)


def _action_required(session: Session, fact: RecordedFact) -> None:
    if fact.turn_id is None or "component" not in fact.payload:
        return  # another program's ledger may have such a fact; it opens no question that is shown
    if session.settings.shows(fact.turn_id):
        session.questions.open(fact.turn_id, fact.ids["action_id"], fact.payload)


def _action_resolved(session: Session, fact: RecordedFact) -> None:
    payload = fact.payload
    _apply_input(session, fact)
    if fact.turn_id is None:
        return
    if "ends" in payload:
        session.attempts.remove_turn(fact.turn_id)
    session.questions.close(fact.ids["action_id"], payload, fact.sequence)
    if "grant" in payload:
        session.settings.grants.add(msgspec.convert(payload["grant"], Grant))


def _artifact_changed(session: Session, fact: RecordedFact) -> None:
    payload = fact.payload
    session.input_log.remember_input(payload, fact.turn_id)
    if "closed" in payload:
        surface = payload["surface"]
        session._surfaces.pop(surface, None)
        session.leaving.pop(surface, None)
        session.serials.forget(surface)
        session.log.growing.forget_surface(surface)
    elif "leaving" in payload:
        session.leaving.pop(payload["surface"], None)
        if payload["leaving"]:
            request = msgspec.convert(payload["leaving"], SurfaceTransferRequest)
            session.leaving[payload["surface"]] = request


def _apply_input(session: Session, fact: RecordedFact) -> None:
    """Apply the input that a fact contains; some facts contain only the id of their input."""
    session.input_log.remember_input(fact.payload, fact.turn_id)
    if (submitted := fact.payload.get("input")) is None:
        return
    surface = submitted.get("surface", "main")
    # A serial proves that a user did something on a surface. An input of a program proves nothing,
    # and an unknown surface named by a peer would fill the memory.
    if "origin" not in fact.payload and surface in session.screen.surfaces:
        session.serials.note(surface, fact.sequence)
    if not session.settings.opening and session.settings.shows(fact.turn_id):
        session.settings.open_with(submitted)


def _session_updated(session: Session, fact: RecordedFact) -> None:
    session.settings.update(fact.turn_id, fact.payload)
    session.settings.follow_branches(fact.type, fact.turn_id, fact.payload, fact.sequence)


def _thread_started(session: Session, fact: RecordedFact) -> None:
    session.threads.begin(fact.ids.get("thread_id") or THREAD)


def _file_saved(session: Session, fact: RecordedFact) -> None:
    # Inputs may name a saved file. The spilled output of a tool has no `file`.
    if "file" in fact.payload:
        session.input_log.remember_files([fact.payload["file"]["sha256"]])


def _output_stored(session: Session, fact: RecordedFact) -> None:
    # The full result of a tool, or an evidence pack, which the owner may download.
    if fact.ids.get("output_ref") is not None:
        session.input_log.remember_files([fact.ids["output_ref"]])


def _attempt_changed(session: Session, fact: RecordedFact) -> None:
    turn_id = fact.turn_id or fact.ids.get("turn_id")
    session.attempts.apply_attempt(fact.type, turn_id, fact.payload, fact.ids)


FACT_HANDLERS: Mapping[str, Callable[[Session, RecordedFact], None]] = {
    "action.required": _action_required,
    "action.resolved": _action_resolved,
    "artifact.changed": _artifact_changed,
    "evidence.changed": _output_stored,
    "output.spilled": _file_saved,
    "queue.changed": _apply_input,
    "run.status": _apply_input,
    "session.updated": _session_updated,
    "task.attempt.completed": _attempt_changed,
    "task.attempt.failed": _attempt_changed,
    "task.attempt.started": _attempt_changed,
    "thread.started": _thread_started,
    "tool.result": _output_stored,
    "turn.completed": _turn_ended,
    "turn.failed": _turn_ended,
    "turn.submitted": _turn_submitted,
}
"""Fact type → function that applies such a fact to everything except turn states (`TurnQueue`)
and the screen (`project`). Types that change nothing else are missing."""
