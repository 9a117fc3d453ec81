"""A session as components alone, for a renderer of the object dialect that shows no conversation.

Theory of operation. The messages of the session are applied to a `Screen`, as a renderer would do.
What they touch becomes *dirty*; when a surface may get a commit, its dirty root components are
written as they are then. So whatever came while it was not allowed to is merged by itself, and the
cost follows the change. The output of all turns stands on `main` in order: the text that began a
turn, its output, and its errors as text. Tools and reasoning are not shown.

Older turns leave the memory by the rule of the session (`Window`), which can change nothing of them
either, and once nothing of them waits to be written. The renderer goes on showing them. A turn that
stays remembers the root behind which it begins, where the turn before it has left. The session may
keep a turn longer, since it knows more changes of it; when it changes that, a snapshot is needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

from arp.protocol.components import Component
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
from arp.protocol.screen import TurnScreen
from arp.protocol.tree import Tree
from arp.session.window import REMEMBERED_IDS, Window

INPUT: Final = "input"
"""The component `TURN/input` is what began a turn."""
ERROR: Final = "error"
"""The component `TURN/error/N` is an error of a turn."""


class _Shown(Struct):
    """What a renderer has of one surface."""

    roots: dict[str, int] = {}
    """Root components → for a text part how many characters, else -1."""
    born: dict[str, int] = {}
    """Of those, the commit that put each there: one that comes back under its id is another."""
    gone: dict[str, str] = {}
    """What went away or was replaced since the last commit here → the root that held it then."""
    dirty: dict[str, None] = {}
    """Roots that differ, in the order in which they were touched."""
    moved: dict[str, None] = {}
    is_new: bool = True
    """Whether the next commit replaces everything."""


class _Requests:
    """The requests of one commit, neighbouring changes of one kind in one request."""

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
    """What one renderer shows of a session.

    Args:
        connection: To the renderer.
        features: Of the renderer.
    """

    def __init__(self, connection: ObjectAgentConnection, features: frozenset[str]) -> None:
        self._connection = connection
        self.appends = "patch-append" in features
        """Whether the renderer takes `append` ops."""
        self._screen = Window()
        self._left: dict[str, None] = {}
        """The newest turns that have left."""
        self._begins_behind: dict[str, str] = {}
        """Turns of which the one before has left → the last root before them that shows."""
        self._shown: dict[str, _Shown] = {}
        self._touched: dict[str, dict[str, None]] = {}
        """By surface: components that changes name which wait for their commit."""
        self._replaced: set[str] = set()
        """Surfaces that the next commit empties first."""
        self._holds = False
        """Whether a snapshot is coming, of which nothing shows before its last commit."""
        self.is_desynchronised = False
        """Whether the session has changed what is not known here: a snapshot is needed."""
        self._is_final = False
        """Whether a turn has ended since the last commit."""
        self._seq = 0

    def changed(self) -> list[str]:
        """Return the surfaces that are to be committed; none while a snapshot is incomplete."""
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
        """Take a message of the session."""
        match message:
            case SessionReady():
                self._begin(message)
                return
            case Render() | Patch():
                self._note(message)
            case _:
                pass
        self._screen.begin_turn(getattr(message, "turn_id", None), [message])
        # What a snapshot shows counts as new: when it changed last is not said.
        refused = self._screen.apply(message, self._seq if self._holds else None)
        self.is_desynchronised = self.is_desynchronised or refused is not None
        self._seq = max(self._seq, getattr(message, "seq", None) or 0)
        match message:
            case Delta() if message.payload.kind is None:
                self._extend(message)
            case Commit() if refused is None:
                self._settle(message)
            case InputEcho() if message.input_type == "text":
                self._touch(MAIN, f"{message.turn_id}/{INPUT}")
            case ErrorMessage() if message.turn_id is not None:
                count = len(self._screen.turn(message.turn_id).errors)
                self._touch(MAIN, f"{message.turn_id}/{ERROR}/{count}")
            case _:
                pass

    def forget(self, surface: str) -> None:
        """Forget what the renderer had of a surface that it shows no longer."""
        self._shown.pop(surface, None)

    def _begin(self, ready: SessionReady) -> None:
        self._screen = Window()
        self._left, self._begins_behind = {}, {}
        self.is_desynchronised = False
        # What shows stays until the first commit of what follows.
        self._shown = {name: _Shown() for name in (MAIN, *self._shown)}
        self._touched, self._replaced = {}, set()
        self._holds, self._is_final = ready.resume == "snapshot", False
        self._seq = ready.seq

    def _note(self, change: Render | Patch) -> None:
        """Remember which components a change names, and where they stand now."""
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
            moved = self._shown.setdefault(change.surface, _Shown()).moved
            moved.update({op.target: None for op in change.ops if isinstance(op, Reorder)})

    def _settle(self, commit: Commit) -> None:
        """Make dirty what a commit has changed."""
        for surface, names in self._touched.items():
            tree = self._screen.surfaces.get(surface, Tree())
            shown = self._shown.setdefault(surface, _Shown())
            if surface in self._replaced:
                self._empty(surface, shown)
            for name, before in tree.gone.items():
                shown.gone.setdefault(name, before.root.id)
            for name in names:
                node = tree.nodes.get(name)
                self._touch(surface, name if node is None else node.root.id)
        self._touched, self._replaced = {}, set()
        self._is_final = self._is_final or commit.final
        if commit.seq is not None:
            self._holds = False
        if commit.final:
            self._evict()

    def _empty(self, surface: str, shown: _Shown) -> None:
        """Write a surface again whole, also where it shows what has left."""
        if surface != MAIN or not self._left:
            shown.dirty.update(dict.fromkeys(shown.roots))
            return
        self._left, self._begins_behind = {}, {}
        shown.is_new, shown.roots = True, {}
        shown.dirty = dict.fromkeys(self._in_order(surface))

    # -- turns that leave --------------------------------------------------------------------------

    def _evict(self) -> None:
        """Forget older turns that are over, of which all is written and nothing is asked."""
        turns, shown = self._turns(), self._shown.setdefault(MAIN, _Shown())
        roots = {turn_id: self._roots_of(turn_id) for turn_id in turns}
        self._screen.let_go([(turn_id, "") for turn_id in self._in_use()])
        behind: str | None = None
        here = frozenset(self._turns())
        for turn_id in turns:
            if turn_id in here:
                if behind is not None:
                    self._begins_behind[turn_id] = behind
                behind = None
                continue
            begins = self._begins_behind.pop(turn_id, behind)
            behind = _last_shown(roots[turn_id], shown) or begins
            for root in roots[turn_id]:
                shown.roots.pop(root, None)
                shown.born.pop(root, None)
            self._left[turn_id] = None
        while len(self._left) > REMEMBERED_IDS:
            del self._left[next(iter(self._left))]

    def _in_use(self) -> set[str]:
        """Return the turns that stay: something waits to be written, or to be answered."""
        tree, screen = self._screen.main, self._screen
        used = {entry.turn_id for entry in screen.infos.values() if entry.turn_id is not None}
        waiting = self._shown.get(MAIN, _Shown())
        used |= {self._turn_of(MAIN, root) for root in (*waiting.dirty, *waiting.moved)}
        used |= {node.turn for node in tree.nodes.values() if node.own.get("state") == "open"}
        return used

    def _extend(self, delta: Delta) -> None:
        tree = self._screen.surfaces[delta.surface]
        target = delta.payload.target
        if target is None:
            output = (delta.turn_id or "") if delta.surface == MAIN else ""
            self._touch(delta.surface, tree.outputs[output][-1])
        elif target in tree.nodes:
            self._touch(delta.surface, tree.nodes[target].root.id)

    def _touch(self, surface: str, root: str) -> None:
        shown = self._shown.setdefault(surface, _Shown())
        shown.dirty[root] = None

    # -- writing -----------------------------------------------------------------------------------

    def write(self, surface: str, surface_id: int) -> SurfaceCommitRequest | None:
        """Send what is dirty of a surface, as much as one commit may carry.

        Returns:
            The commit to send behind it; `None` if there is nothing to commit.
        """
        shown = self._shown.setdefault(surface, _Shown())
        if not (shown.dirty or shown.moved or (surface == MAIN and self._is_final)):
            return None
        requests = _Requests(shown.is_new)
        shown.is_new = False
        limits = self._connection.objects.limits
        components, ops = limits.max_components_per_commit, limits.max_patch_ops
        stale = self._stale(surface, shown)
        for root in stale[:ops]:
            requests.add(Remove(root))
            del shown.roots[root]
        if len(stale) <= ops:
            shown.gone = {}
        ops -= len(stale)
        for root in list(shown.dirty) if ops >= 0 else ():
            change, weight = self._change(surface, shown, root)
            if weight > limits.max_components_per_commit:  # this renderer can never show it
                change, weight = None, 0
            ops -= change is not None and not isinstance(change, Component)
            components -= weight
            if components < 0 or ops < 0:
                break
            del shown.dirty[root]
            if change is not None:
                requests.add(change)
                self._note_shown(surface, shown, root)
        if not shown.dirty:
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
        self, surface: str, shown: _Shown, root: str
    ) -> tuple[Component | PatchOp | None, int]:
        """Return what makes one root component equal, and how many components that has."""
        component = self._component(surface, root)
        known = shown.roots.get(root)
        if component is None:
            return (Remove(root) if known is not None else None), 0
        if known is not None and known >= 0 and self.appends:
            text = component.props.get("content", "")
            return (Append(root, "props.content", text[known:], known) if text[known:] else None), 0
        weight = component_count([component])
        if known is None and surface == MAIN and self._turn_of(surface, root) in self._left:
            return component, weight  # it takes the place of what the renderer still shows
        if known is None and (before := self._before(surface, shown, root)) is not _LAST:
            return Insert(component, before), weight
        return component, weight

    def _stale(self, surface: str, shown: _Shown) -> list[str]:
        """Return the roots that have to be removed before anything is added.

        Those that come back under their ids somewhere else; and all that differ if an id has moved
        from one root to another, since an id stands once on a surface at any moment.
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

    def _note_shown(self, surface: str, shown: _Shown, root: str) -> None:
        component = self._component(surface, root)
        if component is None:
            shown.roots.pop(root, None)
            shown.born.pop(root, None)
            return
        shown.born[root] = self._born(surface, root) or 0
        is_part = "/" in root and component.type == "text"
        shown.roots[root] = len(component.props.get("content", "")) if is_part else -1

    def _moves(self, surface: str, shown: _Shown, room: int) -> Iterator[Reorder]:
        """Yield what puts components in their places that changed them.

        In the order of those places, so that what one comes behind is where it belongs.
        """
        if not shown.moved:
            return
        places = {root: place for place, root in enumerate(self._in_order(surface))}
        moved = [root for root in shown.moved if root in shown.roots and root in places]
        moved.sort(key=places.__getitem__)
        for root in moved[: max(0, room)]:
            yield Reorder(root, self._shown_before(surface, shown, root))
        shown.moved = dict.fromkeys(moved[max(0, room) :])

    def _in_order(self, surface: str) -> list[str]:
        """Return all roots of a surface."""
        if surface != MAIN:
            return self._screen.surfaces[surface].outputs.get("", [])
        return [root for turn_id in self._turns() for root in self._roots_of(turn_id)]

    # -- the order of root components --------------------------------------------------------------

    def _component(self, surface: str, root: str) -> Component | None:
        """Return a root component as it is now; `None` if there is none."""
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

    def _shown_before(self, surface: str, shown: _Shown, root: str) -> str | None:
        """Return the last root before this one that the renderer has; `None` = it comes first."""
        if surface != MAIN:
            own = self._screen.surfaces[surface].outputs.get("", [])
            return _last_shown(own[: own.index(root)], shown)
        turn_id = self._turn_of(surface, root)
        own = self._roots_of(turn_id)
        found = _last_shown(own[: own.index(root)], shown)
        if found is not None:
            return found
        turns = self._turns()
        for earlier in reversed(turns[: turns.index(turn_id) + 1]):
            if earlier != turn_id:
                found = _last_shown(self._roots_of(earlier), shown)
            found = found or self._begins_behind.get(earlier)
            if found is not None:
                return found
        return None

    def _before(self, surface: str, shown: _Shown, root: str) -> str | None:
        """Return behind which root a new one comes; `_LAST` if it comes behind all."""
        if all(False for _ in self._shown_behind(surface, shown, root)):
            return _LAST
        return self._shown_before(surface, shown, root)

    def _shown_behind(self, surface: str, shown: _Shown, root: str) -> Iterator[str]:
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
        """Return every turn in order, those without a status too."""
        known = dict.fromkeys(self._screen.turns)
        known.update(dict.fromkeys(self._screen.surfaces[MAIN].outputs))
        return list(known)


def _begins_with_text(turn: TurnScreen) -> bool:
    return bool(turn.inputs) and turn.inputs[0].input_type == "text"


_LAST: Final = "\0"
"""Stands for the end of a surface; no component has this id."""


def _last_shown(roots: list[str], shown: _Shown) -> str | None:
    return next((one for one in reversed(roots) if one in shown.roots), None)


def _plain(component_id: str, text: str) -> Component:
    return Component(component_id, "text", {"content": text, "format": "plain"})


def _names_in(op: PatchOp) -> list[str]:
    """Return the components that an op names, itself and where it goes."""
    found: list[str] = []
    if isinstance(op, Insert | Replace):
        found.append(op.component.id)
    if isinstance(op, Insert):
        found += [op.parent] if op.parent is not None else []
    else:
        found.append(op.target)
    return found
