"""Which turns of a session show: one branch of a tree of turns.

Theory of operation. Each turn follows another one, or begins the conversation. Turns that follow
the same one are *versions* of each other. Of each place the version that was shown last is chosen;
from the beginning along what is chosen is the branch that shows. Facts alone decide it:
`turn.submitted` with `edits` puts a new version beside that turn, without it the turn follows the
last one that shows; `session.updated` with `branch` chooses.

Most sessions have one branch, and nothing of this is kept for them: a `Survey` of all facts makes
it when somebody wants a second one.
"""

from __future__ import annotations

from msgspec import Struct

from arp.ledger.fact import Fact
from arp.protocol.errors import LocalError
from arp.protocol.json_value import JsonObject
from arp.session.threads import Threads


class Forked(LocalError):
    """A fact turns to another branch, and what it needs to know of the others is not at hand."""


def forks(type_name: str, payload: JsonObject) -> bool:
    """Return whether a fact turns to another branch."""
    if type_name == "turn.submitted":
        return "edits" in payload
    return type_name == "session.updated" and "branch" in payload


class KeptBranches(Struct, frozen=True, array_like=True):
    """Branches as a stored state has them."""

    turns: list[tuple[str, str | None]]
    """Each with the one before it, in the order in which they came."""
    shown: list[str]
    chosen: list[tuple[str | None, str]]
    changed_at: int


class Branches:
    """The tree of turns, and what is chosen in it."""

    __slots__ = ("_before", "_chosen", "_versions", "changed_at", "last")

    def __init__(self) -> None:
        self.changed_at = 0
        """The fact that last changed which turns show, apart from a new one at the end."""
        self.last: str | None = None
        """The last turn that shows."""
        self._before: dict[str, str | None] = {}
        self._chosen: dict[str | None, str] = {}
        self._versions: dict[str | None, list[str]] = {}

    def __contains__(self, turn_id: str) -> bool:
        """Return whether there is such a turn, on any branch."""
        return turn_id in self._before

    def __len__(self) -> int:
        """Count the turns of all branches."""
        return len(self._before)

    @property
    def shown(self) -> list[str]:
        """The turns of the branch that shows, in order."""
        out: list[str] = []
        turn = self._chosen.get(None)
        while turn is not None:
            out.append(turn)
            turn = self._chosen.get(turn)
        return out

    @property
    def kept(self) -> KeptBranches:
        """All of it, as plain values."""
        turns = list(self._before.items())
        return KeptBranches(turns, self.shown, list(self._chosen.items()), self.changed_at)

    @staticmethod
    def of(kept: KeptBranches) -> Branches:
        """Do the inverse of `kept`."""
        branches = Branches()
        for turn_id, before in kept.turns:
            branches.add(turn_id, before)
        branches._chosen = dict(kept.chosen)
        branches.changed_at = kept.changed_at
        branches.last = kept.shown[-1] if kept.shown else None
        return branches

    def before(self, turn_id: str) -> list[str]:
        """Return the turns that lead to one, in order, without it."""
        out: list[str] = []
        turn = self._before[turn_id]
        while turn is not None:
            out.append(turn)
            turn = self._before[turn]
        return out[::-1]

    def through(self, turn_id: str) -> list[str]:
        """Return the branch that shows when a turn is chosen; nothing has changed."""
        out = [*self.before(turn_id), turn_id]
        turn = self._chosen.get(turn_id)
        while turn is not None:
            out.append(turn)
            turn = self._chosen.get(turn)
        return out

    def versions(self, turn_id: str) -> list[str]:
        """Return the versions of a turn, oldest first; itself is among them."""
        return self._versions[self._before[turn_id]]

    def follow(self, type_name: str, turn_id: str | None, payload: JsonObject, place: int) -> None:
        """Take what a fact says of branches; most say nothing.

        Args:
            type_name: Of the fact.
            turn_id: Of the fact.
            payload: Of the fact.
            place: Its sequence.
        """
        if type_name == "turn.submitted" and turn_id is not None:
            edits = payload.get("edits")
            if edits is not None:
                self.changed_at = place - 1
            self.add(turn_id, self.last if edits is None else self._before.get(edits, self.last))
        elif type_name == "session.updated" and payload.get("branch") in self._before:
            self.changed_at = place
            self.show(payload["branch"])

    def add(self, turn_id: str, before: str | None) -> None:
        """Take a turn that follows another one, and show it."""
        if turn_id not in self._before:
            self._before[turn_id] = before
            self._versions.setdefault(before, []).append(turn_id)
            self._chosen[before] = self.last = turn_id

    def show(self, turn_id: str) -> None:
        """Choose the branch that a turn is on."""
        turn: str | None = turn_id
        while turn is not None:
            before = self._before[turn]
            self._chosen[before] = turn
            turn = before
        self.last = self.shown[-1]


class Survey:
    """What all facts of a session, in order, make of its branches, and where its turns begin."""

    __slots__ = ("begun", "branches", "is_forked", "origins", "threads", "told")

    def __init__(self) -> None:
        self.branches = Branches()
        self.is_forked = False
        """There is more than one branch."""
        self.begun: dict[str, int] = {}
        """The sequence of each turn's first fact."""
        self.threads = Threads()
        """To which thread each turn belongs."""
        self.told: dict[str, JsonObject] = {}
        """What began each turn."""
        self.origins: dict[str, str] = {}
        """The programs that began turns which nobody typed."""

    def take(self, fact: Fact) -> None:
        """Take the next fact that says anything of turns; others may be left out."""
        payload, turn_id = fact.payload, fact.turn_id
        assert isinstance(payload, dict)
        self.is_forked = self.is_forked or forks(fact.type, payload)
        self.branches.follow(fact.type, turn_id, payload, fact.sequence)
        if turn_id is not None and fact.type == "turn.submitted":
            self.threads.join(turn_id, fact.thread_id)
        if turn_id is not None and fact.type in ("turn.submitted", "queue.changed"):
            self.begun.setdefault(turn_id, fact.sequence)
            if isinstance(submitted := payload.get("input"), dict):
                self.told[turn_id] = submitted
                self.origins.pop(turn_id, None)  # who edits a queued turn has typed it
                if isinstance(origin := payload.get("origin"), str):
                    self.origins[turn_id] = origin
