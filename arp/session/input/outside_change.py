"""Changes of a surface by a program outside of any turn: the progress of a job, a new row.

A program can only change properties of components that are shown. New components and questions
belong to a turn: what a person is about to allow must not change while they read it.
"""

from __future__ import annotations

from collections.abc import Sequence

from arp.protocol.errors import InvalidPatch, SurfaceDestroyed
from arp.protocol.patch import OP_NAMES, Append, Update
from arp.protocol.tree import Node, Tree
from arp.session.session import Session
from arp.surface.change import PatchChange


def change_shown(session: Session, surface: str, ops: Sequence[Update | Append]) -> None:
    """Set or extend properties of components, as one commit that belongs to no turn.

    Args:
        session: The session; not changed if an operation is refused.
        surface: Name of the surface.
        ops: Operations, in order.

    Raises:
        SurfaceDestroyed: There is no such surface (any more).
        InvalidPatch, ResourceLimit: An operation does not fit, or changes a question.
    """
    session.log.check_open()
    tree = session.tree(surface)
    if tree is None:
        raise SurfaceDestroyed(f"surface {surface!r:.80} is closed, or was never there")
    asking = _asking(session, surface, tree)
    for number, op in enumerate(ops):
        where = f"ops[{number}] {OP_NAMES[type(op)]}"
        if op.target in asking:
            raise InvalidPatch(
                f"{where}: a question is open in {op.target!r:.80}; only its turn changes it",
                detail=op.target,
            )
        # A secret may arrive in two pieces. A turn holds back the first piece until its end; here
        # there is no end, so the text would be shown with half of the secret or never.
        if isinstance(op, Append) and isinstance(op.value, str):
            raise InvalidPatch(
                f"{where}: extends arrays only; set the whole text with update", detail=op.target
            )
    session.commit(None, surface, [PatchChange(list(ops))])


def _asking(session: Session, surface: str, tree: Tree) -> set[str]:
    """Return the ids of the open questions of a surface, and of the components around them."""
    found: set[str] = set()
    for question in session.questions.values():
        node: Node | None = tree.nodes.get(question.component_id)
        while question.surface == surface and node is not None:
            found.add(node.id)
            node = node.parent
    return found
