"""The part of a conversation that a session keeps in memory: recent turns, and what is still open.

Theory of operation. When a turn ends, older turns are *evicted*. A turn is evicted if it is over,
is not among the newest `RECENT_TURNS` that are over, has no open question, popup or overlay, and
has not changed since the oldest of these recent turns began. This rule depends on facts alone, so a
session that is replayed from its log keeps the same turns.

The output of a turn is evicted with it: it can no longer be patched, and its ids are free. A
renderer that was connected all the time still shows it. If an id is reused, such a renderer needs a
snapshot, so the session remembers evicted ids for a while.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from msgspec import Struct

from arp.protocol.components import Component
from arp.protocol.connection.screen import Screen, TurnScreen, is_text_part
from arp.protocol.tree import Node, Tree

RECENT_TURNS = 50
"""Number of ended turns in memory; older turns are paged over HTTP (protocol.md 2.3)."""

REMEMBERED_IDS = 4096
"""Number of evicted component ids that are remembered. If an older id is reused, only the renderers
that showed the old component all the time show the new one in the wrong position."""


class PastTurn(Struct, frozen=True):
    """A turn with its output. It no longer changes once it is evicted."""

    number: int
    """Number of the turn in the session, from 1."""
    turn: TurnScreen
    output: list[Component]

    @property
    def text(self) -> str:
        """Text that the agent output in the turn, joined."""
        parts = (part for part in self.output if is_text_part(part, self.turn.id))
        return "".join(part.props["content"] for part in parts)


class RecentTree(Tree):
    """A tree from which the output of evicted turns is removed."""

    __slots__ = ("back", "left")

    def __init__(self) -> None:
        super().__init__()
        self.left: dict[str, None] = {}
        """Evicted ids, oldest first. Ids named after their own turn are not included: the id itself
        shows that its turn was evicted."""
        self.back: list[str] = []
        """Evicted ids that the current change reuses."""

    def begin(self, seq: int = 0) -> None:
        """Open the tree for a change, as `Tree.begin`, with no reused ids so far."""
        self.back.clear()
        super().begin(seq)

    def keep(self) -> None:
        """Close the tree after a change, as `Tree.keep`; its reused ids are no longer evicted."""
        for component_id in self.back:
            self.left.pop(component_id, None)
        super().keep()

    def _add(self, component: Component, turn: str, parent: Node | None, level: int) -> Node:
        node = super()._add(component, turn, parent, level)
        # A lagging renderer may still show the evicted component under this id. A catch-up would
        # change that one instead of adding the new one, so the renderer needs a snapshot.
        if component.id in self.left or self._left_with_its_turn(component.id, turn):
            self.back.append(component.id)
            self._mark("restructured")
        return node

    def _left_with_its_turn(self, component_id: str, turn: str) -> bool:
        """Return whether an id is named after a turn that was evicted.

        An id that the same change removes is not evicted: its component is only replaced or moved.
        """
        namesake = _turn_in_id(component_id)
        if namesake is None or namesake == turn or namesake in self.outputs:
            return False
        return component_id not in self.gone

    def evict(self, turn: TurnScreen) -> list[str]:
        """Remove the output and the anchors of an evicted turn. No change may be open.

        Returns:
            The ids of its root components.
        """
        # A lagging renderer cannot receive changes of components that are gone. `restructured`
        # makes it take a snapshot if it has not seen the last change of this turn.
        roots = self.outputs.pop(turn.id, [])
        changed = turn.seq
        for root in roots:
            changed = max(changed, self.nodes[root].seq)
            self._evict_node(self.nodes[root])
        self.marks.drop(turn.marks)
        self.restructured = max(self.restructured, changed)
        while len(self.left) > REMEMBERED_IDS:
            del self.left[next(iter(self.left))]
        return roots

    def _evict_node(self, node: Node) -> None:
        """Remove a node and its descendants, and remember their ids."""
        for child in node.children:
            self._evict_node(self.nodes[child])
        del self.nodes[node.id]
        # Ids of text parts (with a slash) and ids like `t12-3` contain their turn, so they need not
        # be remembered.
        if "/" not in node.id and _turn_in_id(node.id) != node.turn:
            self.left[node.id] = None

    def last_change(self, turn: TurnScreen) -> int:
        """Return the sequence number of the newest change of a turn or of its output."""
        roots = self.outputs.get(turn.id, ())
        return max((self.nodes[root].seq for root in roots), default=turn.seq)


def _turn_in_id(component_id: str) -> str | None:
    """Return the turn that an id of the form `t12-3` is named after; `None` for other ids."""
    if component_id[:1] != "t":
        return None
    turn_id, _, number = component_id.rpartition("-")
    return turn_id if turn_id[1:].isdigit() and number.isdigit() else None


class Window(Screen):
    """A screen that numbers its turns, and evicts older ones."""

    __slots__ = ("count", "departed", "main", "named", "numbers")

    def __init__(self) -> None:
        super().__init__()
        self.main = RecentTree()
        self.surfaces["main"] = self.main
        self.count = 0
        """Number of turns of the whole session."""
        self.named = 0
        """Number of turns whose id is not `t` and their number, because the caller chose it."""
        self.numbers: dict[str, int] = {}
        """Number of each turn in memory, counted from 1 over the whole session."""
        self.departed: list[PastTurn] | None = None
        """Evicted turns for `take_departed`; `None` if they are not collected."""

    def turn(self, turn_id: str) -> TurnScreen:
        """Return a turn; create it with the next number if it is unknown."""
        found = self.turns.get(turn_id)
        if found is None:
            found = self.turns[turn_id] = TurnScreen(turn_id)
            self.count += 1
            self.named += turn_id != f"t{self.count}"
            self.numbers[turn_id] = self.count
        return found

    @property
    def older(self) -> int:
        """Number of turns before the first turn in memory."""
        return next(iter(self.numbers.values()), 1) - 1

    @property
    def gaps(self) -> dict[str, int]:
        """Number of evicted turns directly before each turn in memory, where there are any.

        For the first turn in memory, see `older`.
        """
        return {
            turn_id: number - before - 1
            for (_, before), (turn_id, number) in pairwise(self.numbers.items())
            if number > before + 1
        }

    def collect_departed(self, turns: Iterable[PastTurn] = ()) -> None:
        """Start to collect evicted turns, after the given ones, for `take_departed`."""
        self.departed = [*turns, *(self.departed or ())]

    def take_departed(self) -> list[PastTurn]:
        """Return and remove the turns that were collected since the last call."""
        departed, self.departed = self.departed or [], []
        return departed

    def past(self, turn: TurnScreen) -> PastTurn:
        """Return a turn in memory with its output."""
        return PastTurn(self.numbers[turn.id], turn, self.main.output(turn.id))

    def evict_ended(self, asking: Iterable[tuple[str, str]]) -> list[str]:
        """Evict turns, by the rule at the top of this file; call it after the end of each turn.

        Args:
            asking: Turn and component id of each open question on `main`; turn and an empty string
                for a question on another surface, and for an open popup or overlay.

        Returns:
            The ids of the evicted root components.
        """
        over = [turn for turn in self.turns.values() if turn.final]
        if len(over) <= RECENT_TURNS:
            return []
        # A turn of another program's ledger may have no input, and so no known beginning. Nothing
        # is evicted then.
        inputs = over[-RECENT_TURNS].inputs
        since = (inputs[0].seq or 0) if inputs else 0
        open_turns = self._turns_with_questions(asking)
        gone: list[str] = []
        for turn in over[:-RECENT_TURNS]:
            if turn.id not in open_turns and self._unchanged(turn, since):
                gone += self._evict(turn)
        return gone

    def _turns_with_questions(self, asking: Iterable[tuple[str, str]]) -> set[str]:
        """Return the turns that asked an open question or have one in their output.

        These may be two turns: a question may be put into a component of an earlier turn.
        """
        turns: set[str] = set()
        for turn_id, component_id in asking:
            turns.add(turn_id)
            node = self.main.nodes.get(component_id)
            if node is not None:
                turns.add(node.root.turn)
        return turns

    def _unchanged(self, turn: TurnScreen, since: int) -> bool:
        """Return whether neither a turn nor its output has changed since a sequence number.

        Another turn or a program may still update components of an old turn; such a turn stays.
        """
        return max(turn.seq, self.main.last_change(turn)) <= since

    def _evict(self, turn: TurnScreen) -> list[str]:
        if self.departed is not None:
            self.departed.append(self.past(turn))
        del self.turns[turn.id], self.numbers[turn.id]
        return self.main.evict(turn)
