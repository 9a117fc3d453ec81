"""What a session keeps of its conversation in memory: the recent turns, and what is still open.

Theory of operation. When a turn ends, turns *leave* that are over, are not among the newest
`RECENT_TURNS` which are, have no open question, and of which nothing has changed since the oldest
of those began. That follows from facts alone, so a session that is read from its log keeps the
same turns. With a turn its output leaves: it cannot be patched any more, and its ids are free. A
renderer that was there all the time still shows it; when an id comes back, such a renderer needs
a snapshot, so the ids that left are remembered for a while.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from msgspec import Struct

from arp.protocol.components import Component
from arp.protocol.messages import AgentMessage
from arp.protocol.screen import Screen, TurnScreen, is_text_part
from arp.protocol.tree import Node, Tree

RECENT_TURNS = 50
"""Turns that are over and stay; older ones are paged over HTTP (protocol.md 2.3)."""

REMEMBERED_IDS = 4096
"""Ids of components that left. One that is forgotten and comes back stands in its new place on
every screen but those that showed the old one all the time."""


class PastTurn(Struct, frozen=True):
    """A turn with its output. One that has left does not change any more."""

    number: int
    """Its place in the session, from 1."""
    turn: TurnScreen
    output: list[Component]

    @property
    def text(self) -> str:
        """What the agent said in it, joined."""
        parts = (part for part in self.output if is_text_part(part, self.turn.id))
        return "".join(part.props["content"] for part in parts)


class RecentTree(Tree):
    """A tree whose outputs leave with their turns."""

    __slots__ = ("back", "left")

    def __init__(self) -> None:
        super().__init__()
        self.left: dict[str, None] = {}
        """Ids that are free again, in the order in which they left; not those named after turns."""
        self.back: list[str] = []
        """Of those, which came back with the newest change."""

    def begin(self, seq: int = 0) -> None:
        """As `Tree.begin`."""
        self.back.clear()
        super().begin(seq)

    def keep(self) -> None:
        """As `Tree.keep`."""
        for component_id in self.back:
            self.left.pop(component_id, None)
        super().keep()

    def _add(self, component: Component, turn: str, parent: Node | None, level: int) -> Node:
        node = super()._add(component, turn, parent, level)
        if component.id in self.left or self._left_with_its_turn(component.id, turn):
            self.back.append(component.id)
            self._mark("restructured")
        return node

    def _left_with_its_turn(self, component_id: str, turn: str) -> bool:
        """Return whether an id is named after a turn that is not here; one that is replaced is."""
        giver = _giver(component_id)
        if giver is None or giver == turn or giver in self.outputs:
            return False
        return component_id not in self.gone

    def let_go(self, turn: TurnScreen) -> list[str]:
        """Forget a turn's output and marks, outside of any change.

        Returns:
            The ids of its root components.
        """
        roots = self.outputs.pop(turn.id, [])
        changed = turn.seq
        for root in roots:
            changed = max(changed, self.nodes[root].seq)
            self._let_go(self.nodes[root])
        self.marks.drop(turn.marks)
        self.restructured = max(self.restructured, changed)
        while len(self.left) > REMEMBERED_IDS:
            del self.left[next(iter(self.left))]
        return roots

    def _let_go(self, node: Node) -> None:
        for child in node.children:
            self._let_go(self.nodes[child])
        del self.nodes[node.id]
        if "/" not in node.id and _giver(node.id) != node.turn:  # those tell where they were
            self.left[node.id] = None

    def last_change(self, turn: TurnScreen) -> int:
        """Return the sequence of the newest change of a turn or of anything in its output."""
        roots = self.outputs.get(turn.id, ())
        return max((self.nodes[root].seq for root in roots), default=turn.seq)


def _giver(component_id: str) -> str | None:
    """Return the turn that an id of the form `t12-3` is named after; `None` for other ids."""
    giver, _, number = component_id.rpartition("-")
    is_named = giver[:1] == "t" and giver[1:].isdigit() and number.isdigit()
    return giver if is_named else None


class Window(Screen):
    """A screen that older turns leave. Whoever applies messages calls `begin_turn` before."""

    __slots__ = ("count", "departed", "main", "named", "numbers")

    def __init__(self) -> None:
        super().__init__()
        self.main = RecentTree()
        self.surfaces["main"] = self.main
        self.count = 0
        """Turns of the whole session."""
        self.named = 0
        """Of those, turns whose ids are not the session's own, `t` and their number."""
        self.numbers: dict[str, int] = {}
        """The place of each turn that is here among them, from 1."""
        self.departed: list[PastTurn] | None = None
        """What has left, if somebody wants to have it and takes it from here."""

    def begin_turn(self, turn_id: str | None, messages: Sequence[AgentMessage]) -> None:
        """Number the turn of a fact, if it is new here and these messages are to show it."""
        if turn_id is not None and turn_id not in self.numbers and messages:
            self.count += 1
            self.named += turn_id != f"t{self.count}"
            self.numbers[turn_id] = self.count

    @property
    def older(self) -> int:
        """How many turns came before the first that is here."""
        return next(iter(self.numbers.values()), 1) - 1

    @property
    def gaps(self) -> dict[str, int]:
        """Before which turns that are here others have left, and how many; not before the first."""
        return {
            turn_id: number - before - 1
            for (_, before), (turn_id, number) in pairwise(self.numbers.items())
            if number > before + 1
        }

    def collect_departed(self, turns: Iterable[PastTurn] = ()) -> None:
        """Collect the turns that leave from now on, behind these, for `take_departed`."""
        self.departed = [*turns, *(self.departed or ())]

    def take_departed(self) -> list[PastTurn]:
        """Return what has left since this was last asked, or since somebody wants to have it."""
        taken, self.departed = self.departed or [], []
        return taken

    def past(self, turn: TurnScreen) -> PastTurn:
        """Return a turn that is here with its output."""
        return PastTurn(self.numbers[turn.id], turn, self.main.output(turn.id))

    def let_go(self, asking: Iterable[tuple[str, str]]) -> list[str]:
        """Let turns leave; to be called when one has ended.

        Args:
            asking: The turn and the component of each question on `main` that is open; of one on
                another surface, its turn and an empty name.

        Returns:
            The ids of the root components that left with them.
        """
        over = [turn for turn in self.turns.values() if turn.final]
        if len(over) <= RECENT_TURNS:
            return []
        inputs = over[-RECENT_TURNS].inputs
        since = (inputs[0].seq or 0) if inputs else 0
        open_turns = self._of(asking)
        gone: list[str] = []
        for turn in over[:-RECENT_TURNS]:
            if turn.id not in open_turns and self._unchanged(turn, since):
                gone += self._leave(turn)
        return gone

    def _of(self, asking: Iterable[tuple[str, str]]) -> set[str]:
        """Return the turns that have to do with open questions."""
        turns: set[str] = set()
        for turn_id, component_id in asking:
            turns.add(turn_id)
            node = self.main.nodes.get(component_id)
            if node is not None:
                turns.add(node.root.turn)
        return turns

    def _unchanged(self, turn: TurnScreen, since: int) -> bool:
        return max(turn.seq, self.main.last_change(turn)) <= since

    def _leave(self, turn: TurnScreen) -> list[str]:
        if self.departed is not None:
            self.departed.append(self.past(turn))
        del self.turns[turn.id], self.numbers[turn.id]
        return self.main.let_go(turn)
