"""Root components that the renderers of one profile show in another form.

After a commit, the tree no longer shows what a renderer had before. Usually that does not matter: a
root component is shown under its own id and rendered again under it. Two kinds of roots must be
remembered: roots shown as pieces with other ids, which have to be removed, and roots shortened to
fit into a message, because operations do not have the same effect on them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from arp.protocol.tree import Node, Tree
from arp.view.fitting import room
from arp.view.profile import Profile, fits_in, may_take_other_ids, shown_as, shows


class ShownRoot(NamedTuple):
    """How the renderers show a root component."""

    born: int
    """Commit that added the root. It is needed because another component may use the id later."""
    pieces: list[str] | None
    """Ids of the pieces shown instead; `None` if the root is shown under its own id."""
    is_cut: bool
    """Whether it was shortened to fit into one message."""


class ShownRoots:
    """The root components of one surface that are shown in another form."""

    __slots__ = ("_profile", "_roots", "is_needed")

    def __init__(self, profile: Profile, tree: Tree | None = None) -> None:
        self._profile = profile
        self._roots: dict[str, ShownRoot] = {}
        self.is_needed = room(profile.limits) is not None or not shows(profile, "group", 1)
        """Whether this profile can have such roots at all."""
        if tree is not None and self.is_needed:
            for output in tree.outputs.values():
                # Text parts have a slash in their id; they are never patched.
                self.update(tree, [root for root in output if "/" not in root])

    def __bool__(self) -> bool:
        """Return whether there are such roots now."""
        return bool(self._roots)

    def before(self, root: str, tree: Tree) -> ShownRoot | None:
        """Return how a root was shown before the newest commit; `None` if under its own id."""
        shown = self._roots.get(root)
        if shown is None:
            return None
        node = tree.gone.get(root) or tree.nodes.get(root)
        return shown if node is not None and node.born == shown.born else None

    def update(self, tree: Tree, roots: Iterable[str]) -> None:
        """Record how roots are shown after a commit.

        Args:
            tree: The surface after the commit.
            roots: The touched roots; those that no longer exist are forgotten.
        """
        for root in roots:
            node = tree.nodes.get(root)
            shown = self._shown(node, tree) if node is not None and node.parent is None else None
            if shown is not None:
                self._roots[root] = shown
            else:
                self._roots.pop(root, None)
        # Turns are evicted without a commit: their roots would stay here for ever.
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
