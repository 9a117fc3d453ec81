"""A session as components only, for a renderer of the object dialect without `ArpConversation`.

Theory of operation. The messages of the session are applied to a `Screen`, as in a renderer.
Touched root components become *dirty*. When a surface may get a commit, its dirty roots are written
in their current state. Changes that arrive in between are thereby merged, and the cost depends on
the changes. `main` has the output of all turns in order: the text that started a turn, its output,
and its errors as text. Tool calls and reasoning are not shown.

Older turns are evicted by the rule of the session (`Window`), when nothing of them is dirty. The
renderer continues to show them. If the turn before a kept turn was evicted, the last root of the
evicted turn is remembered as the position of the kept turn. The session may keep a turn longer than
this object does. If it then changes that turn, a snapshot is needed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from msgspec import Struct

from arp.protocol.components import Component
from arp.protocol.connection.screen import TurnScreen
from arp.protocol.messages import (
    AgentMessage,
    Commit,
    Delta,
    ErrorMessage,
    InputEcho,
    Patch,
    Render,
    SessionReady,
)
from arp.protocol.objects.agent import ObjectAgentConnection
from arp.protocol.objects.conversation import MAIN
from arp.protocol.objects.messages import (
    SurfaceCommitRequest,
    SurfacePatchRequest,
    SurfaceRenderRequest,
)
from arp.protocol.objects.model import component_count
from arp.protocol.patch import Append, Insert, PatchOp, Remove, Reorder, Replace
from arp.protocol.tree import Tree
from arp.session.tracking.window import REMEMBERED_IDS, Window

INPUT: Final = "input"
"""`TURN/input` is the component with the text that started a turn."""
ERROR: Final = "error"
"""`TURN/error/N` is the component with an error of a turn."""


class _ShownSurface(Struct):
    """The content of one surface that the renderer has."""

    roots: dict[str, int] = {}
    """Root components: id → number of characters for a text part, -1 for other components."""
    born: dict[str, int] = {}
    """Commit that added each root. A root with the same id and another commit is a new one."""
    gone: dict[str, str] = {}
    """Components removed or replaced since the last written commit: id → previous root."""
    dirty: dict[str, None] = {}
    """Roots that differ from the session, in the order in which they were touched."""
    moved: dict[str, None] = {}
    """Roots with a new position."""
    is_new: bool = True
    """Whether the next commit replaces all content."""


class _Requests:
    """The requests of one commit; consecutive changes of the same kind share a request."""

    def __init__(self, is_new: bool) -> None:
        self.made: list[SurfaceRenderRequest | SurfacePatchRequest] = []
        if is_new:
            self.made.append(SurfaceRenderRequest([], replace=True))

    def add(self, change: Component | PatchOp) -> None:
        last = self.made[-1] if self.made else None
        if isinstance(change, Component):
            if isinstance(last, SurfaceRenderRequest):
                last.components.append(change)
            else:
                self.made.append(SurfaceRenderRequest([change]))
        elif isinstance(last, SurfacePatchRequest):
            last.ops.append(change)
        else:
            self.made.append(SurfacePatchRequest([change]))


class FlatContent:
    """The content of a session, as components for one renderer.

    Args:
        connection: Connection to the renderer.
        features: Features of the renderer.
    """

    def __init__(self, connection: ObjectAgentConnection, features: frozenset[str]) -> None:
        self._connection = connection
        self.appends = "patch-append" in features
        """Whether the renderer accepts `append` operations."""
        self._screen = Window()
        self._left: dict[str, None] = {}
        """The newest evicted turns."""
        self._begins_behind: dict[str, str] = {}
        """Turn → last visible root before it, if the previous turn was evicted."""
        self._shown: dict[str, _ShownSurface] = {}
        self._touched: dict[str, dict[str, None]] = {}
        """Components named by changes without a commit so far, by surface."""
        self._reordered: dict[str, dict[str, None]] = {}
        """Targets of `reorder` operations without a commit so far, by surface."""
        self._replaced: set[str] = set()
        """Surfaces that the next commit empties first."""
        self._holds = False
        """Whether a snapshot is incomplete; nothing of it is written before its last commit."""
        self.is_desynchronised = False
        """Whether the session has changed an evicted turn, so that a snapshot is needed."""
        self._is_final = False
        """Whether a turn has ended since the last written commit."""
        self._seq = 0

    def changed(self) -> list[str]:
        """Return the surfaces with changes to write; none while a snapshot is incomplete."""
        if self._holds:
            return []
        found = [
            name
            for name, one in self._shown.items()
            if one.dirty or one.moved or (name == MAIN and self._is_final)
        ]
        return [name for name in found if name == MAIN or name in self._screen.surfaces]

    # -- messages ----------------------------------------------------------------------------------

    def apply(self, message: AgentMessage) -> None:
        """Apply a message of the session."""
        match message:
            case SessionReady():
                self._reset(message)
                return
            case Render() | Patch():
                self._record_touched(message)
            case _:
                pass
        # The messages of a snapshot do not carry the time of their change: all of them count as
        # changed now.
        refused = self._screen.apply(message, self._seq if self._holds else None)
        self.is_desynchronised = self.is_desynchronised or refused is not None
        self._seq = max(self._seq, getattr(message, "seq", None) or 0)
        match message:
            case Delta() if message.payload.kind is None:
                self._touch_text(message)
            case Commit() if refused is None:
                self._touch_committed(message)
            case InputEcho() if message.input_type == "text":
                self._touch(MAIN, f"{message.turn_id}/{INPUT}")
            case ErrorMessage() if message.turn_id is not None:
                count = len(self._screen.turn(message.turn_id).errors)
                self._touch(MAIN, f"{message.turn_id}/{ERROR}/{count}")
            case _:
                pass

    def forget(self, surface: str) -> None:
        """Forget the content of a surface that the renderer no longer shows."""
        self._shown.pop(surface, None)

    def _reset(self, ready: SessionReady) -> None:
        self._screen = Window()
        self._left, self._begins_behind = {}, {}
        self.is_desynchronised = False
        # The renderer keeps its old content until the next commit, which replaces it (`is_new`).
        self._shown = {name: _ShownSurface() for name in (MAIN, *self._shown)}
        self._touched, self._reordered, self._replaced = {}, {}, set()
        self._holds, self._is_final = ready.resume == "snapshot", False
        self._seq = ready.seq

    def _record_touched(self, change: Render | Patch) -> None:
        """Record the components that a change names, and their roots before the change."""
        touched = self._touched.setdefault(change.surface, {})
        tree = self._screen.surfaces.get(change.surface)
        if isinstance(change, Render):
            if change.replace:
                self._replaced.add(change.surface)
            names: Iterable[str] = [one.id for one in change.components]
        else:
            names = [name for op in change.ops for name in _names_in(op)]
        for name in names:
            touched[name] = None
            if tree is not None and name in tree.nodes:
                touched[tree.nodes[name].root.id] = None
        if isinstance(change, Patch):
            reordered = self._reordered.setdefault(change.surface, {})
            reordered.update({op.target: None for op in change.ops if isinstance(op, Reorder)})

    def _touch_committed(self, commit: Commit) -> None:
        """Mark the roots that a commit has changed as dirty."""
        for surface, names in self._touched.items():
            tree = self._screen.surfaces.get(surface, Tree())
            shown = self._shown.setdefault(surface, _ShownSurface())
            if surface in self._replaced:
                self._empty(surface, shown)
            for name, before in tree.gone.items():
                shown.gone.setdefault(name, before.root.id)
                # The id of a removed root may now belong to a child of another root. Only the old
                # root's own entry removes it from the renderer.
                self._touch(surface, before.root.id)
            for name in names:
                node = tree.nodes.get(name)
                self._touch(surface, name if node is None else node.root.id)
            shown.moved.update(self._reordered.get(surface, {}))
        self._touched, self._reordered, self._replaced = {}, {}, set()
        self._is_final = self._is_final or commit.final
        if commit.seq is not None:
            self._holds = False
        if commit.final:
            self._evict()

    def _empty(self, surface: str, shown: _ShownSurface) -> None:
        """Mark all roots of an emptied surface as dirty, or rewrite the surface as a whole."""
        if surface != MAIN or not self._left:
            shown.dirty.update(dict.fromkeys(shown.roots))
            return
        # The renderer still shows evicted turns, and their roots are no longer known here. Only a
        # commit that replaces everything removes them.
        self._left, self._begins_behind = {}, {}
        shown.is_new, shown.roots = True, {}
        shown.dirty = dict.fromkeys(self._in_order(surface))

    # -- eviction of turns -------------------------------------------------------------------------

    def _evict(self) -> None:
        """Evict older turns that have ended, are written completely and have no open question."""
        turns, shown = self._turns(), self._shown.setdefault(MAIN, _ShownSurface())
        roots = {turn_id: self._roots_of(turn_id) for turn_id in turns}
        self._screen.evict_ended([(turn_id, "") for turn_id in self._in_use()])
        # Last visible root of the evicted turns directly before the current one. Without it, a new
        # root at the beginning of the next kept turn would be inserted before all of them.
        last_evicted: str | None = None
        kept = frozenset(self._turns())
        for turn_id in turns:
            if turn_id in kept:
                if last_evicted is not None:
                    self._begins_behind[turn_id] = last_evicted
                last_evicted = None
                continue
            begins = self._begins_behind.pop(turn_id, last_evicted)
            last_evicted = _last_shown(roots[turn_id], shown) or begins
            for root in roots[turn_id]:
                shown.roots.pop(root, None)
                shown.born.pop(root, None)
            self._left[turn_id] = None
        while len(self._left) > REMEMBERED_IDS:
            del self._left[next(iter(self._left))]

    def _in_use(self) -> set[str]:
        """Return the turns to keep: those with an open surface, dirty roots or an open question."""
        tree, screen = self._screen.main, self._screen
        used = {entry.turn_id for entry in screen.infos.values() if entry.turn_id is not None}
        waiting = self._shown.get(MAIN, _ShownSurface())
        used |= {self._turn_of(MAIN, root) for root in (*waiting.dirty, *waiting.moved)}
        used |= {node.turn for node in tree.nodes.values() if node.own.get("state") == "open"}
        return used

    def _touch_text(self, delta: Delta) -> None:
        tree = self._screen.surfaces[delta.surface]
        target = delta.payload.target
        if target is None:
            output = (delta.turn_id or "") if delta.surface == MAIN else ""
            self._touch(delta.surface, tree.outputs[output][-1])
        elif target in tree.nodes:
            self._touch(delta.surface, tree.nodes[target].root.id)

    def _touch(self, surface: str, root: str) -> None:
        shown = self._shown.setdefault(surface, _ShownSurface())
        shown.dirty[root] = None

    # -- writing -----------------------------------------------------------------------------------

    def write(self, surface: str, surface_id: int) -> SurfaceCommitRequest | None:
        """Send the dirty roots of a surface, as many as one commit may carry.

        Returns:
            The commit to send after them; `None` if there is nothing to commit.
        """
        shown = self._shown.setdefault(surface, _ShownSurface())
        if not (shown.dirty or shown.moved or (surface == MAIN and self._is_final)):
            return None
        requests = _Requests(shown.is_new)
        shown.is_new = False
        limits = self._connection.objects.limits
        components, ops = limits.max_components_per_commit, limits.max_patch_ops
        # Removals come first: an id may exist only once on a surface.
        stale = self._stale(surface, shown)
        for root in stale[:ops]:
            requests.add(Remove(root))
            del shown.roots[root]
        if len(stale) <= ops:
            shown.gone = {}
        ops -= len(stale)
        # While stale roots remain, nothing is added: a new root may have the id of one of them.
        for root in list(shown.dirty) if ops >= 0 else ():
            change, weight = self._change(surface, shown, root)
            if weight > limits.max_components_per_commit:
                # This renderer can never show it; kept dirty, it would block all roots after it.
                change, weight = None, 0
            ops -= change is not None and not isinstance(change, Component)
            components -= weight
            if components < 0 or ops < 0:
                break
            del shown.dirty[root]
            if change is not None:
                requests.add(change)
                self._note_shown(surface, shown, root)
        if not shown.dirty:  # all roots are there now, so that positions can be given by id
            for move in self._moves(surface, shown, ops):
                requests.add(move)
        for request in requests.made:
            self._connection.send(surface_id, request)
        is_done = not (shown.dirty or shown.moved)
        is_final = surface == MAIN and self._is_final and is_done
        if is_final:
            self._is_final = False
        return SurfaceCommitRequest(is_final, self._seq if is_done else None)

    def _change(
        self, surface: str, shown: _ShownSurface, root: str
    ) -> tuple[Component | PatchOp | None, int]:
        """Return the change that updates one root, and the number of components in it.

        The change is `None` if the renderer already has the current state. A `Component` replaces
        the root with the same id, or is added at the end.
        """
        component = self._component(surface, root)
        known = shown.roots.get(root)
        if component is None:
            return (Remove(root) if known is not None else None), 0
        if known is not None and known >= 0 and self.appends:
            text = component.props.get("content", "")
            return (Append(root, "props.content", text[known:], known) if text[known:] else None), 0
        weight = component_count([component])
        if known is None and surface == MAIN and self._turn_of(surface, root) in self._left:
            # The turn was evicted and changed again: the renderer still shows the root under its
            # id, although it is not in `roots`. A render replaces it in place.
            return component, weight
        before = self._before(surface, shown, root) if known is None else _LAST
        if before is not _LAST:
            return Insert(component, before), weight
        return component, weight

    def _stale(self, surface: str, shown: _ShownSurface) -> list[str]:
        """Return the roots that must be removed before anything is added.

        These are roots that were removed and added again at another position. If an id has moved
        from one root to another, these are all dirty roots, because an id may exist only once on a
        surface at any moment.
        """
        tree = self._screen.surfaces.get(surface, Tree())
        known = [root for root in shown.dirty if root in shown.roots]
        for name, root in shown.gone.items():
            node = tree.nodes.get(name)
            if node is not None and node.root.id != root:
                return known
        return [root for root in known if self._born(surface, root) not in (None, shown.born[root])]

    def _born(self, surface: str, root: str) -> int | None:
        tree = self._screen.surfaces.get(surface)
        node = tree.nodes.get(root) if tree is not None else None
        return None if node is None or node.parent is not None else node.born

    def _note_shown(self, surface: str, shown: _ShownSurface, root: str) -> None:
        component = self._component(surface, root)
        if component is None:
            shown.roots.pop(root, None)
            shown.born.pop(root, None)
            return
        shown.born[root] = self._born(surface, root) or 0
        is_part = "/" in root and component.type == "text"
        shown.roots[root] = len(component.props.get("content", "")) if is_part else -1

    def _moves(self, surface: str, shown: _ShownSurface, room: int) -> Iterator[Reorder]:
        """Yield operations that move roots to their new positions, at most `room` of them.

        They are in the order of the new positions, so that the root before each of them is already
        at its position.
        """
        if not shown.moved:
            return
        index_of = {root: index for index, root in enumerate(self._in_order(surface))}
        moved = [root for root in shown.moved if root in shown.roots and root in index_of]
        moved.sort(key=index_of.__getitem__)
        for root in moved[: max(0, room)]:
            yield Reorder(root, self._shown_before(surface, shown, root))
        shown.moved = dict.fromkeys(moved[max(0, room) :])

    def _in_order(self, surface: str) -> list[str]:
        """Return all roots of a surface, in order."""
        if surface != MAIN:
            return self._screen.surfaces[surface].outputs.get("", [])
        return [root for turn_id in self._turns() for root in self._roots_of(turn_id)]

    # -- the order of root components --------------------------------------------------------------

    def _component(self, surface: str, root: str) -> Component | None:
        """Return a root component in its current state; `None` if it does not exist."""
        tree = self._screen.surfaces.get(surface)
        node = tree.nodes.get(root) if tree is not None else None
        if tree is not None and node is not None:
            return tree.component(root) if node.parent is None else None
        turn_id, _, kind = root.partition("/")
        turn = self._screen.turns.get(turn_id)
        if turn is None or surface != MAIN:
            return None
        if kind == INPUT and _begins_with_text(turn):
            return _plain(root, f"> {turn.inputs[0].data.get('text', '')}")
        word, _, number = kind.partition("/")
        if word == ERROR and number.isdigit() and 0 < int(number) <= len(turn.errors):
            return _plain(root, f"Error: {turn.errors[int(number) - 1].error}")
        return None

    def _roots_of(self, turn_id: str) -> list[str]:
        """Return the roots of a turn on `main`, in order."""
        turn = self._screen.turns.get(turn_id)
        output = self._screen.surfaces[MAIN].outputs.get(turn_id, [])
        if turn is None:
            return list(output)
        first = [f"{turn_id}/{INPUT}"] if _begins_with_text(turn) else []
        errors = [f"{turn_id}/{ERROR}/{number}" for number in range(1, len(turn.errors) + 1)]
        return [*first, *output, *errors]

    def _turn_of(self, surface: str, root: str) -> str:
        node = self._screen.surfaces[surface].nodes.get(root)
        return node.turn if node is not None else root.partition("/")[0]

    def _shown_before(
        self, surface: str, shown: _ShownSurface, root: str, skip: Collection[str] = ()
    ) -> str | None:
        """Return the last visible root before this one; `None` if this one is the first.

        Args:
            surface: Name of the surface.
            shown: Content of the surface that the renderer has.
            root: Id of a root component.
            skip: Roots that do not count.
        """
        if surface != MAIN:
            own = self._screen.surfaces[surface].outputs.get("", [])
            return _last_shown(own[: own.index(root)], shown, skip)
        turn_id = self._turn_of(surface, root)
        own = self._roots_of(turn_id)
        found = _last_shown(own[: own.index(root)], shown, skip)
        if found is not None:
            return found
        turns = self._turns()
        for earlier in reversed(turns[: turns.index(turn_id) + 1]):
            if earlier != turn_id:
                found = _last_shown(self._roots_of(earlier), shown, skip)
            found = found or self._begins_behind.get(earlier)
            if found is not None:
                return found
        return None

    def _before(self, surface: str, shown: _ShownSurface, root: str) -> str | None:
        """Return the visible root before a new one; `_LAST` if no visible root comes after it."""
        if all(False for _ in self._shown_after(surface, shown, root)):
            return _LAST
        # Moved roots are still in their old positions. A root that is inserted after one of them
        # would stay there when that one moves.
        return self._shown_before(surface, shown, root, skip=shown.moved)

    def _shown_after(self, surface: str, shown: _ShownSurface, root: str) -> Iterator[str]:
        """Yield the visible roots after this one."""
        if surface != MAIN:
            own = self._screen.surfaces[surface].outputs.get("", [])
            yield from (one for one in own[own.index(root) + 1 :] if one in shown.roots)
            return
        turn_id = self._turn_of(surface, root)
        own = self._roots_of(turn_id)
        yield from (one for one in own[own.index(root) + 1 :] if one in shown.roots)
        turns = self._turns()
        for later in turns[turns.index(turn_id) + 1 :]:
            if later in self._begins_behind:
                yield self._begins_behind[later]
            yield from (one for one in self._roots_of(later) if one in shown.roots)

    def _turns(self) -> list[str]:
        """Return all turns in order, including turns without a status."""
        known = dict.fromkeys(self._screen.turns)
        known.update(dict.fromkeys(self._screen.surfaces[MAIN].outputs))
        return list(known)


def _begins_with_text(turn: TurnScreen) -> bool:
    return bool(turn.inputs) and turn.inputs[0].input_type == "text"


_LAST: Final = "\0"
"""Placeholder for the end of a surface; no component has this id."""


def _last_shown(roots: list[str], shown: _ShownSurface, skip: Collection[str] = ()) -> str | None:
    visible = (one for one in reversed(roots) if one in shown.roots and one not in skip)
    return next(visible, None)


def _plain(component_id: str, text: str) -> Component:
    return Component(component_id, "text", {"content": text, "format": "plain"})


def _names_in(op: PatchOp) -> list[str]:
    """Return the components that an operation names: its target and its parent."""
    found: list[str] = []
    if isinstance(op, Insert | Replace):
        found.append(op.component.id)
    if isinstance(op, Insert):
        found += [op.parent] if op.parent is not None else []
    else:
        found.append(op.target)
    return found
