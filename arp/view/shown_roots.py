"""What root components stand as on the renderers of one profile, where that is something else.

A commit changes the tree, and what a renderer showed before cannot be read from it afterwards. For
most of it that does not matter: a root component stands under its own id, and is rendered again
under it. Two things are remembered: pieces that stand under other ids, which have to be removed,
and components that were cut to fit into a message, on which no operation has the same effect.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from arp.protocol.tree import Node, Tree
from arp.view.fitting import room
from arp.view.profile import Profile, fits_in, may_take_other_ids, shown_as, shows


class ShownRoot(NamedTuple):
    """A root component as renderers have it."""

    born: int
    """The commit that made it: an id may be used again, by another component."""
    pieces: list[str] | None
    """The ids of the components that replace it; `None`: it is shown itself."""
    is_cut: bool
    """Whether something shorter replaces it, since it does not fit into one message."""


class ShownRoots:
    """The root components of one surface that are shown as other components."""

    __slots__ = ("_profile", "_roots", "is_needed")

    def __init__(self, profile: Profile, tree: Tree | None = None) -> None:
        self._profile = profile
        self._roots: dict[str, ShownRoot] = {}
        self.is_needed = room(profile.limits) is not None or not shows(profile, "group", 1)
        """Whether there can be any."""
        if tree is not None and self.is_needed:
            for output in tree.outputs.values():
                # A text part is never patched.
                self.update(tree, [root for root in output if "/" not in root])

    def __bool__(self) -> bool:
        """Return whether there are any."""
        return bool(self._roots)

    def before(self, root: str, tree: Tree) -> ShownRoot | None:
        """Return what a root stood as before the newest commit on the tree, if it is known here."""
        shown = self._roots.get(root)
        if shown is None:
            return None
        node = tree.gone.get(root) or tree.nodes.get(root)
        return shown if node is not None and node.born == shown.born else None

    def update(self, tree: Tree, roots: Iterable[str]) -> None:
        """Take over how some roots are shown now.

        Args:
            tree: The surface after a commit.
            roots: What was touched; those that are no roots any more are forgotten.
        """
        for root in roots:
            node = tree.nodes.get(root)
            shown = self._shown(node, tree) if node is not None and node.parent is None else None
            if shown is not None:
                self._roots[root] = shown
            else:
                self._roots.pop(root, None)
        # Turns are evicted without a commit.
        if len(self._roots) > 2 * len(tree.nodes):
            self._roots = {root: one for root, one in self._roots.items() if root in tree.nodes}

    def _shown(self, node: Node, tree: Tree) -> ShownRoot | None:
        profile = self._profile
        has_parts = may_take_other_ids(node.type, profile)
        pieces = piece_ids(node.id, tree, profile) if has_parts else None
        is_cut = room(profile.limits) is not None and not fits_in(tree.component(node.id), profile)
        return ShownRoot(node.born, pieces, is_cut) if is_cut or pieces is not None else None


def piece_ids(root: str, tree: Tree, profile: Profile) -> list[str]:
    """Return the ids of the components that show a root after a commit."""
    if not may_take_other_ids(tree.nodes[root].type, profile):
        return [root]
    return [piece.id for piece in shown_as(tree.component(root), profile)]
