"""Translation of one commit for the renderers of one profile.

Theory of operation. Changes that a profile shows natively pass unchanged. A root component that it
does not show natively is shown as one or more other components, its *pieces*. When a commit touches
or moves such a root, its pieces are rendered again from the state after the commit. If the ids of
the pieces are the same as before, they are replaced in place. Otherwise the old pieces are removed
and the new ones inserted. Single operations pass only in roots that are not rendered again.

The resulting changes therefore do not depend on each other's order, with one exception: if an id
has moved from one root to another, all touched roots are removed first and then rendered again,
because an id may exist only once on a surface.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from arp.protocol.components import Component
from arp.protocol.json_value import Json
from arp.protocol.patch import Append, Insert, PatchOp, Remove, Reorder, Replace, Update, parse_path
from arp.protocol.tree import Node, Tree
from arp.session.recording.recorded import AppliedCommit
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
    """No sequence of changes has the effect of this commit for this profile."""


def translated(commit: AppliedCommit, profile: Profile, shown: ShownRoots) -> list[Change] | None:
    """Return the changes of a commit for a profile.

    Args:
        commit: The commit, just applied to its tree.
        profile: Profile of the renderers.
        shown: How these renderers showed the roots of the surface before the commit.

    Returns:
        Changes with the same effect for those renderers. It is `commit.changes` itself if nothing
        differs; components in it may be shared with the tree. `None` if a snapshot is needed.
    """
    return _Translation(commit, profile, shown).changes()


def touched_roots(changes: Iterable[Change], tree: Tree) -> set[str]:
    """Return the roots that the newest change touched, including roots that it removed."""
    return {node.root.id for node in (*tree.gone.values(), *_roots(changes, tree))}


class _Translation:
    """The translation of one commit for one profile."""

    def __init__(self, commit: AppliedCommit, profile: Profile, shown: ShownRoots) -> None:
        self._changes = commit.changes
        self._output = commit.output
        self._seq = commit.at.seq
        self._tree = commit.tree
        self._profile = profile
        self._shown = shown
        self._oversized = self._oversized_before() | self._oversized_now() | self._with_large_ops()
        """Touched roots that must be rendered again because of the size limit of a message."""

    def changes(self) -> list[Change] | None:
        if not self._oversized and self._passes(self._changes):
            return self._changes
        try:
            return self._render_again(self._changes, self._output, self._seq)
        except NeedsSnapshot:
            return None

    # -- the size limit of a message ---------------------------------------------------------------

    def _oversized_before(self) -> set[str]:
        """Return the touched roots that were shortened before the commit.

        An operation does not have the same effect on the shortened component.
        """
        tree, shown = self._tree, self._shown
        touched = touched_roots(self._changes, tree) if shown else ()
        return {root for root in touched if (was := shown.before(root, tree)) and was.is_cut}

    def _oversized_now(self) -> set[str]:
        """Return the touched roots that must be shortened after the commit."""
        if room(self._profile.limits) is None:
            return set()
        roots = {root.id for root in _roots(self._changes, self._tree)}
        return {root for root in roots if not fits_in(self._tree.component(root), self._profile)}

    def _with_large_ops(self) -> set[str]:
        """Return the roots of operations that are too large for a message; their result may fit."""
        if room(self._profile.limits) is None:
            return set()
        return {
            self._root(op.component.id if isinstance(op, Insert) else op.target)
            for change in self._changes
            if isinstance(change, PatchChange)
            for op in change.ops
            if not fits_in(op, self._profile)
        }

    # -- changes that pass unchanged ---------------------------------------------------------------

    def _passes(self, changes: Iterable[Change]) -> bool:
        """Return whether every change passes unchanged."""
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
            # An update of all children replaced the component (see `Tree`). The operation has the
            # new children in its value, and these may not be native.
            node = self._tree.nodes.get(op.target)
            if node is not None and not is_native(self._tree.component(node.id), self._profile):
                return False
        named = (self._tree.nodes.get(name) for name in _names(op))
        return all(node is None or stands_native(node, self._profile) for node in named)

    # -- roots that are rendered again -------------------------------------------------------------

    def _render_again(self, changes: Sequence[Change], turn: str, seq: int) -> list[Change]:
        """Return changes in which touched roots are rendered again where necessary.

        Every touched root is removed, removed and inserted, replaced in place, or left to its own
        operations.

        Raises:
            NeedsSnapshot: The effect cannot be expressed as changes.
        """
        if any(isinstance(change, RenderChange) and change.replace for change in changes):
            return self._replace_surface(changes, turn)
        passes_by_root = self._judge_roots(changes)
        moved = _reordered(changes)
        has_moved_id = self._has_moved_id()
        stale: list[str] = []  # ids of old pieces to remove
        again = set[str]()  # ids in `stale` of roots that are inserted again
        in_place: list[str] = []  # roots with pieces under the same ids as before
        inserted: list[str] = []  # roots with pieces to insert at the right position
        for root, passes in passes_by_root.items():
            node = self._tree.nodes.get(root)
            old_ids = self._ids_before(root, seq)
            # The root was removed, or its id now belongs to a child of another root.
            if node is None or node.parent is not None:
                stale += old_ids
                continue
            keeps_position = not (has_moved_id or node.born == seq or root in moved)
            if keeps_position and passes:
                continue
            if keeps_position and self._ids(root) == old_ids:
                in_place.append(root)
            else:
                stale += old_ids
                again.update(old_ids)
                inserted.append(root)
        passing = {r for r, passes in passes_by_root.items() if passes and not has_moved_id}
        ops = [*self._passing_ops(changes, passing)]
        if not has_moved_id:
            ops += self._replace_roots(stale, inserted, moved, seq)
        self._check_marks(inserted, moved)
        # The marks of a removed root go to the root before it. A root that is inserted again must
        # be gone by then: it would take these marks along to its new position.
        stale.sort(key=lambda name: name not in again)
        ops += map(Remove, stale)
        tools = _tools(changes)
        out: list[Change] = [PatchChange(ops)] if ops else []
        out += self._renders(in_place, tools)
        for output in dict.fromkeys(self._tree.nodes[root].turn for root in inserted):
            roots = {root for root in inserted if self._tree.nodes[root].turn == output}
            out += self._insert_roots(output, roots, turn, tools)
        return out

    def _check_marks(self, inserted: Iterable[str], moved: set[str]) -> None:
        """Check that renderers move the marks of removed roots to the same roots as the tree.

        Args:
            inserted: Roots to insert.
            moved: Targets of all `reorder` operations of the commit.

        Raises:
            NeedsSnapshot: Renderers would show the marks in another position.
        """
        handed, gone = self._tree.marks.handed, self._tree.gone
        # In the tree, an inserted root received the marks of a removed one. A renderer removes
        # before it inserts: it would give these marks to the root before the inserted one, and show
        # the tool calls in the wrong position.
        if not handed.isdisjoint(inserted):
            raise NeedsSnapshot
        # In the tree, a root that was moved and then removed left its marks at its new position. A
        # renderer does not apply that move, so it would leave them at the old position.
        if handed and any(name in gone and gone[name].parent is None for name in moved):
            raise NeedsSnapshot

    def _replace_surface(self, changes: Sequence[Change], turn: str) -> list[Change]:
        """Render the whole surface; the first change removes everything before.

        Raises:
            NeedsSnapshot: An operation before the replacement has moved marks to a root that is
                shown again. A renderer removes all roots first and would move the marks to the
                beginning.
        """
        if self._tree.marks.handed - {None}:
            raise NeedsSnapshot
        roots = self._tree.outputs.get(turn, ())
        first, *rest = self._renders(roots, _tools(changes)) or [RenderChange([])]
        return [msgspec.structs.replace(first, replace=True), *rest]

    def _replace_roots(
        self, stale: list[str], inserted: list[str], moved: set[str], seq: int
    ) -> Iterator[PatchOp]:
        """Yield operations that replace removed roots by their successors, in their positions.

        Both are removed from the lists. Removing the old root and inserting the new one would move
        the marks of the old root to the root before it.

        Args:
            stale: Ids to remove.
            inserted: Roots to insert.
            moved: Targets of all `reorder` operations of the commit.
            seq: Number of the commit.
        """
        for old, node in self._tree.gone.items():
            new, old_ids = self._successor(node, moved), self._ids_before(old, seq)
            if new == old or new not in inserted or not old_ids or old_ids[-1] not in stale:
                continue
            inserted.remove(new)
            stale.remove(old_ids[-1])
            first, *rest = self._pieces(new)
            # A new piece may have the id of another removed root. That root must go first, because
            # an id may exist only once.
            new_ids = {first.id, *(piece.id for piece in rest)}
            for name in [name for name in stale if name in new_ids]:
                stale.remove(name)
                yield Remove(name)
            yield Replace(old_ids[-1], first)
            after = first.id
            for piece in rest:
                yield Insert(piece, after)
                after = piece.id

    def _successor(self, node: Node, moved: set[str]) -> str | None:
        """Return the root that is now in the position that a removed root had.

        One commit may replace a root several times.

        Returns:
            `None` if the root was not replaced, or if its last replacement is not in this position.
        """
        last = node
        while last.successor is not None:
            # A `replace` keeps the position, but a renderer has the old root in the position
            # before the `reorder`. Replacing it there would show the new root in the wrong order.
            if last.id in moved:
                return None
            last = last.successor
        # The last replacement may have been removed, and its id used again in another position.
        is_there = last.id not in moved and self._tree.nodes.get(last.id) is last
        return last.id if is_there else None

    def _has_moved_id(self) -> bool:
        """Return whether an id has moved from one root to another."""
        nodes = self._tree.nodes
        return any(
            name in nodes and nodes[name].root.id != node.root.id
            for name, node in self._tree.gone.items()
        )

    def _ids_before(self, root: str, seq: int) -> list[str]:
        """Return the ids of the components that showed a root before the commit."""
        was = self._shown.before(root, self._tree)
        if was is not None and was.pieces is not None:
            return was.pieces
        node = self._tree.gone.get(root) or self._tree.nodes[root]
        return [root] if node.born < seq and node.parent is None else []

    # -- operations that pass ----------------------------------------------------------------------

    def _judge_roots(self, changes: Sequence[Change]) -> dict[str, bool]:
        """For each touched root, return whether all its operations pass unchanged."""
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
                    root, passes = self._judge_op(op, updated)
                    verdicts[root] = verdicts.get(root, True) and passes
                    if isinstance(op, Replace):
                        verdicts[self._root(op.component.id)] = False
        for root in self._oversized & set(verdicts):
            verdicts[root] = False
        return verdicts

    def _judge_op(self, op: PatchOp, updated: set[str]) -> tuple[str, bool]:
        """Return the root of an operation, and whether the operation passes unchanged.

        Args:
            op: The operation.
            updated: Targets of all `update` operations of the commit.
        """
        name = op.component.id if isinstance(op, Insert) else op.target
        tree = self._tree
        node, gone = tree.nodes.get(name), tree.gone.get(name)
        root = self._root(name)
        if isinstance(op, Remove):
            parent = gone.parent if gone is not None else None
            # Removing a child passes if its parent is still the same native component. Removed
            # roots are handled by id, in `_render_again`.
            passes = node is None and parent is not None and self._stays_native(parent)
        elif node is None or gone is not None or isinstance(op, Replace):
            passes = False
        elif isinstance(op, Update):
            passes = stands_native(node, self._profile)
        elif isinstance(op, Append):
            # Without `append` the whole value is sent, as it is after the commit. An `update` of
            # the same component may have changed the value again, or removed it.
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
        """Return the root of a component; for a removed component, its previous root."""
        node = self._tree.nodes.get(name) or self._tree.gone[name]
        return node.root.id

    def _stays_native(self, node: Node) -> bool:
        """Return whether a component was not replaced by the commit and is shown natively."""
        return self._tree.nodes.get(node.id) is node and stands_native(node, self._profile)

    def _passing_ops(self, changes: Sequence[Change], roots: set[str]) -> Iterator[PatchOp]:
        for change in changes:
            if isinstance(change, RenderChange):
                continue
            for op in change.ops:
                name = op.component.id if isinstance(op, Insert) else op.target
                if self._root(name) in roots:
                    yield self._adapt_op(op)

    def _adapt_op(self, op: PatchOp) -> PatchOp:
        """Return an operation as this profile can apply it."""
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
        """Return render changes with the pieces of roots, one per run of roots of the same tool."""
        out: list[RenderChange] = []
        for root in roots:
            tool, pieces = tools.get(root), self._pieces(root)
            if out and out[-1].tool_name == tool:
                out[-1].components.extend(pieces)
            else:
                out.append(RenderChange(pieces, tool))
        return out

    def _insert_roots(
        self, output: str, roots: set[str], turn: str, tools: dict[str, str | None]
    ) -> Sequence[Change]:
        """Return changes that insert the pieces of roots at their positions in an output.

        Raises:
            NeedsSnapshot: A root is the first one of the output of another turn.
        """
        siblings = self._tree.outputs[output]
        last = siblings[-len(roots) :]
        if output == turn and roots.issuperset(last):
            return self._renders(last, tools)  # at the end: a render is enough
        ops: list[PatchOp] = []
        for index in sorted(map(siblings.index, roots)):
            after = self._ids(siblings[index - 1])[-1] if index else None
            if after is None and output != turn:
                # An insert without `after` goes to the turn of the commit, which is not this one.
                raise NeedsSnapshot
            for piece in self._pieces(siblings[index]):
                ops.append(Insert(piece, after))
                after = piece.id
        return [PatchChange(ops)]


def _names(op: PatchOp) -> Iterator[str]:
    """Yield the ids that an operation names."""
    if isinstance(op, Insert | Replace):
        yield op.component.id
    if not isinstance(op, Insert):
        yield op.target
    elif op.parent is not None:
        yield op.parent
    if isinstance(op, Insert | Reorder) and isinstance(op.after, str):
        yield op.after


def _roots(changes: Iterable[Change], tree: Tree) -> Iterator[Node]:
    """Yield the current roots of all components that changes name."""
    for change in changes:
        if isinstance(change, RenderChange):
            names = [component.id for component in change.components]
        else:
            names = [name for op in change.ops for name in _names(op)]
        for name in names:
            if name in tree.nodes:
                yield tree.root_of(name)


def _reordered(changes: Iterable[Change]) -> set[str]:
    """Return the targets of all `reorder` operations."""
    return {
        op.target
        for change in changes
        if isinstance(change, PatchChange)
        for op in change.ops
        if isinstance(op, Reorder)
    }


def _tools(changes: Iterable[Change]) -> dict[str, str | None]:
    """Return the tool name of each rendered component, by id."""
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
