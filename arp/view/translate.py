"""One commit as a renderer of some profile gets it.

Theory of operation. What a profile shows natively goes through as it is. A root component that it
does not show natively stands there as something else: one or more components, its *pieces*. When
such a root is touched, or its place changes, its pieces are rendered again from the state after the
commit: in their places where their ids are the same, else the old ones are removed and the new ones
put where they belong. Ops pass one by one only below roots that are not rendered again. So the
order in which a renderer does all this does not matter, but for one case: when an id has moved from
one root to another, all roots that the commit touched are removed first and then rendered again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from arp.protocol.components import Component
from arp.protocol.json_value import Json
from arp.protocol.patch import Append, Insert, PatchOp, Remove, Reorder, Replace, Update, parse_path
from arp.protocol.tree import Node, Tree
from arp.session.recorded import AppliedCommit
from arp.surface.change import Change, PatchChange, RenderChange
from arp.view.fitting import room
from arp.view.profile import (
    Profile,
    fits_in,
    is_native,
    shown_as,
    stands_native,
)
from arp.view.shown_roots import ShownRoots, piece_ids


class NeedsSnapshot(Exception):
    """Changes alone do not bring this profile up to date."""


def translated(commit: AppliedCommit, profile: Profile, shown: ShownRoots) -> list[Change] | None:
    """Return the changes of a commit for a profile.

    Args:
        commit: Just applied: the tree stands as it did right after.
        profile: Of the renderers.
        shown: What roots of the surface stood as before, where that is something else.

    Returns:
        Changes with the same effect for those renderers (the very same list where nothing
        differs); some components in them are the tree's own. `None` if they need a snapshot.
    """
    return _Translation(commit, profile, shown).changes()


def touched_roots(changes: Iterable[Change], tree: Tree) -> set[str]:
    """Return the roots that changes just touched, also those that are no roots any more."""
    return {node.root.id for node in (*tree.gone.values(), *_roots(changes, tree))}


class _Translation:
    """One commit on its way to one profile."""

    def __init__(self, commit: AppliedCommit, profile: Profile, shown: ShownRoots) -> None:
        self._changes = commit.changes
        self._output = commit.output
        self._seq = commit.at.seq
        self._tree = commit.tree
        self._profile = profile
        self._shown = shown
        self._tight = self._were_cut() | self._too_large() | self._with_large_ops()
        """Touched roots that do not fit into one message, before or after."""

    def changes(self) -> list[Change] | None:
        if not self._tight and self._passes(self._changes):
            return self._changes
        try:
            return self._rendered_again(self._changes, self._output, self._seq)
        except NeedsSnapshot:
            return None

    # -- what is too large -------------------------------------------------------------------------

    def _were_cut(self) -> set[str]:
        """Return the touched roots that stood as something shorter."""
        tree, shown = self._tree, self._shown
        touched = touched_roots(self._changes, tree) if shown else ()
        return {root for root in touched if (was := shown.before(root, tree)) and was.is_cut}

    def _too_large(self) -> set[str]:
        """Return the touched roots that exist now and are shown as something shorter."""
        if room(self._profile.limits) is None:
            return set()
        roots = {root.id for root in _roots(self._changes, self._tree)}
        return {root for root in roots if not fits_in(self._tree.component(root), self._profile)}

    def _with_large_ops(self) -> set[str]:
        """Return the roots of ops that do not go into a message, though what came of them does."""
        if room(self._profile.limits) is None:
            return set()
        return {
            self._root(op.component.id if isinstance(op, Insert) else op.target)
            for change in self._changes
            if isinstance(change, PatchChange)
            for op in change.ops
            if not fits_in(op, self._profile)
        }

    # -- what goes through as it is ----------------------------------------------------------------

    def _passes(self, changes: Iterable[Change]) -> bool:
        """Return whether this profile can take every change unchanged."""
        tree, profile = self._tree, self._profile
        if not all(stands_native(node, profile) for node in tree.gone.values()):
            return False
        for change in changes:
            if isinstance(change, RenderChange):
                if not all(is_native(component, profile) for component in change.components):
                    return False
            elif not all(self._op_passes(op) for op in change.ops):
                return False
        return True

    def _op_passes(self, op: PatchOp) -> bool:
        if isinstance(op, Append) and not self._profile.takes("patch-append"):
            return False
        if isinstance(op, Insert | Replace) and not is_native(op.component, self._profile):
            return False
        if isinstance(op, Update) and op.target in self._tree.gone:
            # It set children, whole: the component was replaced by one with others in it.
            node = self._tree.nodes.get(op.target)
            if node is not None and not is_native(self._tree.component(node.id), self._profile):
                return False
        named = (self._tree.nodes.get(name) for name in _names(op))
        return all(node is None or stands_native(node, self._profile) for node in named)

    # -- what is rendered again --------------------------------------------------------------------

    def _rendered_again(self, changes: Sequence[Change], turn: str, seq: int) -> list[Change]:
        if any(isinstance(change, RenderChange) and change.replace for change in changes):
            return self._replaced(changes, turn)
        verdicts = self._verdicts(changes)
        moved = _reordered(changes)
        forced = self._has_wandered()
        stale: list[str] = []
        again: list[str] = []
        places: list[str] = []
        for root, passes in verdicts.items():
            node = self._tree.nodes.get(root)
            stood = self._stood(root, seq)
            if node is None or node.parent is not None:
                stale += stood
            elif forced or node.born == seq or root in moved:
                stale += stood
                places.append(root)
            elif not passes and self._ids(root) == stood:
                again.append(root)
            elif not passes:
                stale += stood
                places.append(root)
        passing = {r for r, passes in verdicts.items() if passes and not forced}
        ops = [*self._passing_ops(changes, passing)]
        if not forced:
            ops += self._succeeding(stale, places, seq)
        if not self._tree.marks.handed.isdisjoint(places):
            # A renderer removes first and inserts then: at its removal the heir is not there yet,
            # and the tools behind the removed root would go to what stands before that.
            raise NeedsSnapshot
        ops += map(Remove, stale)
        tools = _tools(changes)
        out: list[Change] = [PatchChange(ops)] if ops else []
        out += self._renders(again, tools)
        for output in dict.fromkeys(self._tree.nodes[root].turn for root in places):
            here = {root for root in places if self._tree.nodes[root].turn == output}
            out += self._placed(output, here, turn, tools)
        return out

    def _replaced(self, changes: Sequence[Change], turn: str) -> list[Change]:
        """Render the whole surface again; it replaces all that was there."""
        roots = self._tree.outputs.get(turn, ())
        first, *rest = self._renders(roots, _tools(changes)) or [RenderChange([])]
        return [msgspec.structs.replace(first, replace=True), *rest]

    def _succeeding(self, stale: list[str], places: list[str], seq: int) -> Iterator[PatchOp]:
        """Place roots into the places of those that they replace, and takes both off the lists.

        To remove and to insert would hand what is marked behind the old one to the one before it.
        """
        for old, node in self._tree.gone.items():
            new, stood = self._successor(node), self._stood(old, seq)
            if new not in places or not stood or stood[-1] not in stale:
                continue
            places.remove(new)
            stale.remove(stood[-1])
            first, *rest = self._pieces(new)
            # What comes may have the id of another root that was removed: an id stands once.
            taken = {first.id, *(piece.id for piece in rest)}
            for name in [name for name in stale if name in taken]:
                stale.remove(name)
                yield Remove(name)
            yield Replace(stood[-1], first)
            after = first.id
            for piece in rest:
                yield Insert(piece, after)
                after = piece.id

    def _successor(self, node: Node) -> str | None:
        """Return the component that replaces a root component in the end."""
        gone, seen = self._tree.gone, set[str]()
        name = node.successor
        while name in gone and name not in seen:
            seen.add(name)
            name = gone[name].successor or name
        return name

    def _has_wandered(self) -> bool:
        """Return whether an id has moved from one root to another."""
        nodes = self._tree.nodes
        return any(
            name in nodes and nodes[name].root.id != node.root.id
            for name, node in self._tree.gone.items()
        )

    def _stood(self, root: str, seq: int) -> list[str]:
        """Return the ids that a root stood as before the commit."""
        was = self._shown.before(root, self._tree)
        if was is not None and was.pieces is not None:
            return was.pieces
        node = self._tree.gone.get(root) or self._tree.nodes[root]
        return [root] if node.born < seq and node.parent is None else []

    # -- judging the ops ---------------------------------------------------------------------------

    def _verdicts(self, changes: Sequence[Change]) -> dict[str, bool]:
        """Return of every root that was touched whether all ops below it pass one by one."""
        verdicts = {node.root.id: True for node in self._tree.gone.values()}
        updated = {
            op.target
            for change in changes
            if isinstance(change, PatchChange)
            for op in change.ops
            if isinstance(op, Update)
        }
        for change in changes:
            if isinstance(change, RenderChange):
                for component in change.components:
                    verdicts[self._root(component.id)] = False
            else:
                for op in change.ops:
                    root, passes = self._judged(op, updated)
                    verdicts[root] = verdicts.get(root, True) and passes
                    if isinstance(op, Replace):
                        verdicts[self._root(op.component.id)] = False
        for root in self._tight & set(verdicts):
            verdicts[root] = False
        return verdicts

    def _judged(self, op: PatchOp, updated: set[str]) -> tuple[str, bool]:
        """Return the root that an op touched, and whether the op passes unchanged."""
        name = op.component.id if isinstance(op, Insert) else op.target
        tree = self._tree
        node, gone = tree.nodes.get(name), tree.gone.get(name)
        root = self._root(name)
        if isinstance(op, Remove):
            parent = gone.parent if gone is not None else None
            passes = node is None and parent is not None and self._stays_native(parent)
        elif node is None or gone is not None or isinstance(op, Replace):
            passes = False
        elif isinstance(op, Update):
            passes = stands_native(node, self._profile)
        elif isinstance(op, Append):
            exact = self._profile.takes("patch-append") or op.target not in updated
            passes = exact and stands_native(node, self._profile)
        else:
            after = op.after if isinstance(op.after, str) else None
            passes = (
                node.parent is not None
                and self._stays_native(node.parent)
                and (after is None or (after in tree.nodes and after not in tree.gone))
            )
        return root, passes

    def _root(self, name: str) -> str:
        """Return the root of a component that is there, or else was there."""
        node = self._tree.nodes.get(name) or self._tree.gone[name]
        return node.root.id

    def _stays_native(self, node: Node) -> bool:
        """Return whether the commit left a component in its place, shown as it is."""
        return self._tree.nodes.get(node.id) is node and stands_native(node, self._profile)

    def _passing_ops(self, changes: Sequence[Change], roots: set[str]) -> Iterator[PatchOp]:
        for change in changes:
            if isinstance(change, RenderChange):
                continue
            for op in change.ops:
                name = op.component.id if isinstance(op, Insert) else op.target
                if self._root(name) in roots:
                    yield self._in_their_words(op)

    def _in_their_words(self, op: PatchOp) -> PatchOp:
        if isinstance(op, Append) and not self._profile.takes("patch-append"):
            return Update(op.target, op.path, _value_at(self._tree.nodes[op.target], op.path))
        if isinstance(op, Insert):
            (piece,) = shown_as(op.component, self._profile)
            return msgspec.structs.replace(op, component=piece)
        return op

    # -- pieces ------------------------------------------------------------------------------------

    def _pieces(self, root: str) -> list[Component]:
        return shown_as(self._tree.component(root), self._profile)

    def _ids(self, root: str) -> list[str]:
        return piece_ids(root, self._tree, self._profile)

    def _renders(self, roots: Iterable[str], tools: dict[str, str | None]) -> list[RenderChange]:
        """Return the pieces of some roots, those of one tool together."""
        out: list[RenderChange] = []
        for root in roots:
            tool, pieces = tools.get(root), self._pieces(root)
            if out and out[-1].tool_name == tool:
                out[-1].components.extend(pieces)
            else:
                out.append(RenderChange(pieces, tool))
        return out

    def _placed(
        self, output: str, roots: set[str], turn: str, tools: dict[str, str | None]
    ) -> Sequence[Change]:
        """Place the pieces of some roots where they belong in their output."""
        places = self._tree.outputs[output]
        last = places[-len(roots) :]
        if output == turn and roots.issuperset(last):
            return self._renders(last, tools)
        ops: list[PatchOp] = []
        for index in sorted(map(places.index, roots)):
            after = self._ids(places[index - 1])[-1] if index else None
            if after is None and output != turn:
                raise NeedsSnapshot
            for piece in self._pieces(places[index]):
                ops.append(Insert(piece, after))
                after = piece.id
        return [PatchChange(ops)]


def _names(op: PatchOp) -> Iterator[str]:
    """Return the ids that an op names."""
    if isinstance(op, Insert | Replace):
        yield op.component.id
    if not isinstance(op, Insert):
        yield op.target
    elif op.parent is not None:
        yield op.parent
    if isinstance(op, Insert | Reorder) and isinstance(op.after, str):
        yield op.after


def _roots(changes: Iterable[Change], tree: Tree) -> Iterator[Node]:
    """Return the roots that are there now and that changes name, or something in them."""
    for change in changes:
        if isinstance(change, RenderChange):
            names = [component.id for component in change.components]
        else:
            names = [name for op in change.ops for name in _names(op)]
        for name in names:
            if name in tree.nodes:
                yield tree.root_of(name)


def _reordered(changes: Iterable[Change]) -> set[str]:
    """Return what was moved among its siblings."""
    return {
        op.target
        for change in changes
        if isinstance(change, PatchChange)
        for op in change.ops
        if isinstance(op, Reorder)
    }


def _tools(changes: Iterable[Change]) -> dict[str, str | None]:
    """Return the tool that made each component which was shown."""
    return {
        component.id: change.tool_name
        for change in changes
        if isinstance(change, RenderChange)
        for component in change.components
    }


def _value_at(node: Node, path: str) -> Json:
    node.join()
    value: Json = node.own
    for segment in parse_path(path):
        value = value[segment if isinstance(value, list) else str(segment)]
    return value
