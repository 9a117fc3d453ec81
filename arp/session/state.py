"""The state of a session as bytes, so that a session can continue without reading a long log.

The stored state is exactly what `recovery.apply_stored` builds from all facts up to a sequence
number. The same state gives the same bytes, and a session made from them continues as if it had
read those facts. It is a cache: bytes of another version, of another epoch of the session, or that
cannot be decoded are refused, and the log is read from the first fact.

What a crash loses by design is not stored: text that is held because it may be a secret, typed
input that the ledger does not have, and the usage of a turn that has not ended.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec
from msgspec import Struct

from arp.protocol.components import Component
from arp.protocol.connection.screen import ClosedSurface, SurfaceEntry, TurnScreen
from arp.protocol.errors import ErrorPayload, LocalError
from arp.protocol.json_value import JsonObject
from arp.protocol.messages import Command, RendererInfo
from arp.protocol.objects.messages import SurfaceTransferRequest
from arp.protocol.tree import Node, RemovedComponent, Tree
from arp.redact.redactor import Redactor
from arp.session.approval import Grant
from arp.session.attempts import TurnAttempt
from arp.session.questions import Question
from arp.session.session import Head, Session
from arp.session.session_settings import Rules, SessionSettings
from arp.session.tracking.branches import Branches, KeptBranches
from arp.session.tracking.input_log import GivenAnswer, InputLog
from arp.session.tracking.threads import KeptThreads
from arp.session.tracking.window import RECENT_TURNS, REMEMBERED_IDS, RecentTree, Window

STATE_VERSION = 15
"""Version of the stored state. Increase it when the bytes change, or the effect of a fact on them.
"""

Kept: TypeAlias = tuple[int, int]
"""Values of `RECENT_TURNS` and `REMEMBERED_IDS`. With other values a session keeps other turns, so
a state with other values is refused."""


class UnreadableState(LocalError):
    """The bytes are not a state of this session written by this version."""


class NodeState(Struct, frozen=True, array_like=True):
    """A component and its descendants."""

    own: Component
    """The component without its children."""
    born: int
    seq: int
    children: list[NodeState]


class TreeState(Struct, frozen=True, array_like=True):
    """The components of a surface, and its history that lagging renderers need."""

    outputs: list[tuple[str, list[NodeState]]]
    """Root components by turn."""
    removed: dict[str, RemovedComponent]
    restructured: int
    reshaped: int
    left: list[str]
    """Ids of evicted components, oldest first (`RecentTree.left`)."""


class SettingsState(Struct, frozen=True, array_like=True):
    """Values of `SessionSettings`, and whether the queue is paused."""

    title: str
    """Name given to the session; empty if it has none."""
    pinned: bool
    grants: list[Grant]
    branches: KeptBranches | None
    paused: bool
    state: JsonObject
    """State of the agent."""
    chosen: JsonObject
    """Settings chosen by the user."""
    feedback: dict[str, JsonObject]
    """The user's feedback, by turn."""


class SurfacesState(Struct, frozen=True, array_like=True):
    """Surfaces, their descriptions, closed surfaces, and the state shared with renderers."""

    trees: list[tuple[str, TreeState]]
    infos: dict[str, SurfaceEntry]
    closings: dict[str, ClosedSurface]
    closings_forgotten: int
    shared_state: tuple[int, JsonObject]
    """Sequence number of its last change, and the shared state."""
    leaving: dict[str, SurfaceTransferRequest]
    """Pending transfers by surface."""


class StoredSession(Struct, frozen=True):
    """A whole session, except the rules and the head that the caller provides."""

    version: int
    kept: Kept
    session_id: str
    epoch: str
    sequence: int
    """Sequence number of the newest fact that it covers."""
    running: str | None
    queue: list[str]
    questions: list[Question]
    inputs: dict[str, str | None]
    files: list[str]
    renderers: dict[str, RendererInfo]
    traceparents: dict[str, str]
    answers: dict[str, GivenAnswer]
    title: str
    """Beginning of the user's first text (`SessionSettings.opening`)."""
    count: int
    """Number of turns of the whole session."""
    named: int
    """Value of `Window.named`."""
    turns: list[tuple[int, TurnScreen]]
    """Turns in memory, each with its number in the session."""
    errors: list[ErrorPayload]
    commands: tuple[int, tuple[Command, ...]]
    """Sequence number of their last change, and the session's own commands."""
    surfaces: SurfacesState
    settings: SettingsState
    threads: KeptThreads
    attempts: dict[str, TurnAttempt]


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(StoredSession)


def encode_state(session: Session) -> bytes:
    """Return the state of a session after everything that is recorded.

    The state is valid as soon as the fact with `session.sequence` is durable. The cost depends on
    what is in memory, not on the length of the history.
    """
    screen, seen = session.screen, session.input_log
    state = StoredSession(
        STATE_VERSION,
        (RECENT_TURNS, REMEMBERED_IDS),
        session.head.session_id,
        session.head.epoch,
        session.sequence,
        session.running,
        session.queue,
        list(session.questions.values()),
        seen,
        list(seen.files),
        seen.renderers,
        seen.traceparents,
        seen.answers,
        session.settings.opening,
        screen.count,
        screen.named,
        [(screen.numbers[turn.id], turn) for turn in screen.turns.values()],
        screen.errors,
        (screen.commands_seq, screen.commands),
        _surfaces_state(screen, session.leaving),
        _settings_state(session),
        session.threads.kept,
        session.attempts,
    )
    return _encoder.encode(state)


def decode_state(data: bytes, head: Head, rules: Rules, redactor: Redactor | None) -> Session:
    """Return the session of a stored state.

    Args:
        data: Result of `encode_state`.
        head: Head of the expected session.
        rules: Rules of the session from now on.
        redactor: Redactor of the session from now on; `None` means that of the default settings.

    Raises:
        UnreadableState: The state is of another session or version, or cannot be decoded.
    """
    try:
        state = _decoder.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise UnreadableState(f"no session state: {error}") from None
    wanted = (STATE_VERSION, (RECENT_TURNS, REMEMBERED_IDS), head.session_id, head.epoch)
    found = (state.version, state.kept, state.session_id, state.epoch)
    if found != wanted:
        raise UnreadableState(f"a session state of {found}, not of {wanted}")
    session = Session(head, rules.limits, rules.policy, redactor, rules.traced)
    session.log.sequence = state.sequence
    session.questions.update({(one.surface, one.component_id): one for one in state.questions})
    _fill_input_log(session.input_log, state)
    _fill_screen(session.screen, state)
    session.leaving = state.surfaces.leaving
    _fill_settings(session.settings, state.settings, state.title)
    is_waiting = state.running is not None and session.status_of(state.running) == "waiting"
    session.turns.set(state.running, state.queue, state.settings.paused, is_waiting)
    session.threads.fill(state.threads)
    session.attempts.update(state.attempts)
    return session


def _surfaces_state(screen: Window, leaving: dict[str, SurfaceTransferRequest]) -> SurfacesState:
    return SurfacesState(
        [(name, _tree_state(tree)) for name, tree in screen.surfaces.items()],
        screen.infos,
        screen.closings,
        screen.closings_forgotten,
        (screen.state_seq, screen.shared_state),
        leaving,
    )


def _settings_state(session: Session) -> SettingsState:
    settings, is_paused = session.settings, session.turns.is_paused
    grants = sorted(settings.grants, key=lambda grant: (grant.tool, grant.rule))
    branches = settings.branches.kept if settings.branches is not None else None
    return SettingsState(
        settings.name,
        settings.pinned,
        grants,
        branches,
        is_paused,
        settings.state,
        settings.chosen,
        settings.feedback,
    )


def _fill_settings(settings: SessionSettings, kept: SettingsState, opening: str) -> None:
    settings.restore(kept.title, opening)
    settings.pinned, settings.state = kept.pinned, kept.state
    settings.chosen, settings.feedback = kept.chosen, kept.feedback
    settings.grants = set(kept.grants)
    if kept.branches is not None:
        settings.branches = Branches.of(kept.branches)


def _fill_input_log(log: InputLog, state: StoredSession) -> None:
    log.update(state.inputs)
    log.remember_files(state.files)
    log.renderers, log.traceparents = state.renderers, state.traceparents
    log.answers = state.answers


def _fill_screen(screen: Window, state: StoredSession) -> None:
    screen.errors, screen.count, screen.named = state.errors, state.count, state.named
    screen.commands_seq, screen.commands = state.commands
    surfaces = state.surfaces
    screen.infos, screen.closings = surfaces.infos, surfaces.closings
    screen.closings_forgotten = surfaces.closings_forgotten
    screen.state_seq, screen.shared_state = surfaces.shared_state
    for name, kept in surfaces.trees:
        tree = screen.surfaces.setdefault(name, Tree())
        _fill_tree(tree, kept)
    for number, turn in state.turns:
        screen.turns[turn.id] = turn
        screen.numbers[turn.id] = number
        for mark in turn.marks:
            screen.main.marks.add(mark)


def _fill_tree(tree: Tree, kept: TreeState) -> None:
    for turn, roots in kept.outputs:
        tree.outputs[turn] = [_add_node(tree, root, turn, None).id for root in roots]
    tree.removed = kept.removed
    tree.restructured, tree.reshaped = kept.restructured, kept.reshaped
    if isinstance(tree, RecentTree):
        tree.left = dict.fromkeys(kept.left)


def _add_node(tree: Tree, state: NodeState, turn: str, parent: Node | None) -> Node:
    node = tree.nodes[state.own.id] = Node(state.own, turn, parent, state.born)
    node.seq = state.seq
    node.children = [_add_node(tree, child, turn, node).id for child in state.children]
    return node


def _tree_state(tree: Tree) -> TreeState:
    outputs = [
        (turn, [_node_state(tree, tree.nodes[root]) for root in roots])
        for turn, roots in tree.outputs.items()
    ]
    left = list(tree.left) if isinstance(tree, RecentTree) else []
    return TreeState(outputs, tree.removed, tree.restructured, tree.reshaped, left)


def _node_state(tree: Tree, node: Node) -> NodeState:
    node.join()  # the content of a text part may be in pieces; the bytes must not show that
    children = [_node_state(tree, tree.nodes[child]) for child in node.children]
    return NodeState(node.component, node.born, node.seq, children)
