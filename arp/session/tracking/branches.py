"""The branches of a conversation: a tree of turns. The screen shows one path through it.

Theory of operation. Each turn follows another turn, or begins the conversation. Turns that follow
the same turn are *versions* of each other. In each group of versions, the one that was shown last
is *chosen*. The shown branch is the path of chosen versions from the beginning. Facts alone decide
it. A `turn.submitted` with `edits` adds a new version of that turn; without `edits` the new
turn follows the last shown turn. A `session.updated` with `branch` chooses a version.

Most sessions have one branch and no `Branches`. When a user asks for a second branch, a `Survey` of
all facts builds them.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import Struct

from arp.ledger.fact import Fact
from arp.protocol.connection.screen import TurnScreen
from arp.protocol.errors import LocalError
from arp.protocol.json_value import JsonObject
from arp.session.tracking.threads import Threads


class BranchNotLoaded(LocalError):
    """A fact changes to another branch, and the branches are not in memory."""


def forks(type_name: str, payload: JsonObject) -> bool:
    """Return whether a fact changes to another branch."""
    if type_name == "turn.submitted":
        return "edits" in payload
    return type_name == "session.updated" and "branch" in payload


class KeptBranches(Struct, frozen=True, array_like=True):
    """The branches in a stored state."""

    turns: list[tuple[str, str | None]]
    """Each turn with the turn that it follows, oldest first."""
    shown: list[str]
    """Turns of the shown branch, in order."""
    chosen: list[tuple[str | None, str]]
    """Each turn, or `None` for the beginning, with the chosen one of the turns that follow it."""
    changed_at: int
    """Value of `Branches.changed_at`."""


class Branches:
    """The tree of turns, and the chosen version at each position."""

    __slots__ = ("_before", "_chosen", "_path", "_versions", "changed_at")

    def __init__(self) -> None:
        self.changed_at = 0
        """Sequence number of the fact that last changed the shown turns, except by appending one.
        """
        self._before: dict[str, str | None] = {}
        """Turn → the turn that it follows; `None` if it begins the conversation."""
        self._chosen: dict[str | None, str] = {}
        """Turn → the chosen one of the turns that follow it."""
        self._path: dict[str, None] = {}
        """Turns of the shown branch, in order. It could be derived from `_chosen`, but then each
        edit would cost a walk over the whole branch when the log is read."""
        self._versions: dict[str | None, list[str]] = {}
        """Turn → all turns that follow it, oldest first."""

    def __contains__(self, turn_id: str) -> bool:
        """Return whether the turn exists on any branch."""
        return turn_id in self._before

    def __len__(self) -> int:
        """Return the number of turns on all branches."""
        return len(self._before)

    @property
    def shown(self) -> list[str]:
        """Turns of the shown branch, in order."""
        return list(self._path)

    @property
    def last(self) -> str | None:
        """Last turn of the shown branch."""
        return next(reversed(self._path), None)

    @property
    def kept(self) -> KeptBranches:
        """Plain values for a stored state."""
        turns = list(self._before.items())
        return KeptBranches(turns, self.shown, list(self._chosen.items()), self.changed_at)

    @staticmethod
    def of(kept: KeptBranches) -> Branches:
        """Return the branches of a stored state; the inverse of `kept`."""
        branches = Branches()
        for turn_id, before in kept.turns:
            branches._add(turn_id, before)
        branches._chosen = dict(kept.chosen)
        branches._path = dict.fromkeys(kept.shown)
        branches.changed_at = kept.changed_at
        return branches

    def before(self, turn_id: str) -> list[str]:
        """Return the turns that lead to a turn, in order, without the turn itself."""
        out: list[str] = []
        turn = self._before[turn_id]
        while turn is not None:
            out.append(turn)
            turn = self._before[turn]
        return out[::-1]

    def through(self, turn_id: str) -> list[str]:
        """Return the branch that choosing a turn would show; nothing is changed."""
        out = [*self.before(turn_id), turn_id]
        turn = self._chosen.get(turn_id)
        while turn is not None:
            out.append(turn)
            turn = self._chosen.get(turn)
        return out

    def versions(self, turn_id: str) -> list[str]:
        """Return all versions of a turn, itself included, oldest first."""
        return self._versions[self._before[turn_id]]

    def show_versions(self, turns: Iterable[TurnScreen]) -> None:
        """Write the versions of each turn into the turn's first input on the screen."""
        for turn in turns:
            if turn.id not in self or not turn.inputs:
                continue  # a ledger from another program may lack the fact that began the turn
            versions = self.versions(turn.id)
            listed = list(versions) if len(versions) > 1 else None
            turn.inputs[0] = msgspec.structs.replace(turn.inputs[0], versions=listed)

    def follow(
        self, type_name: str, turn_id: str | None, payload: JsonObject, sequence: int
    ) -> None:
        """Apply a fact; most facts do not change the branches.

        Args:
            type_name: Type of the fact.
            turn_id: Turn of the fact.
            payload: Payload of the fact.
            sequence: Sequence number of the fact.
        """
        if type_name == "turn.submitted" and turn_id is not None:
            self._begin(turn_id, payload.get("edits"), sequence)
        elif type_name == "session.updated" and payload.get("branch") in self._before:
            self.changed_at = sequence
            self.show(payload["branch"])

    def _begin(self, turn_id: str, edits: str | None, sequence: int) -> None:
        """Add a turn to the end of the shown branch, or as a new version of the turn `edits`."""
        is_hidden = edits in self._before and edits not in self._path
        if edits is not None:
            # The rollback facts directly before this one removed the old turns. A renderer that has
            # received those needs only this fact, and no snapshot. But a new version of a hidden
            # turn shows turns again, which only a snapshot can do.
            self.changed_at = sequence if is_hidden else sequence - 1
        if turn_id in self._before:
            return  # a ledger from another program may repeat the fact
        if edits is None or edits not in self._before:
            self._add(turn_id, self.last)
        else:
            self._add(turn_id, self._before[edits])
        if is_hidden:
            self.show(turn_id)
            return
        if edits in self._path:
            while self._path.popitem()[0] != edits:
                pass
        self._path[turn_id] = None

    def _add(self, turn_id: str, before: str | None) -> None:
        """Add a turn after another one, and choose it among the versions there."""
        self._before[turn_id] = before
        self._versions.setdefault(before, []).append(turn_id)
        self._chosen[before] = turn_id

    def show(self, turn_id: str) -> None:
        """Choose the branch of a turn."""
        turn: str | None = turn_id
        while turn is not None:
            before = self._before[turn]
            self._chosen[before] = turn
            turn = before
        self._path = dict.fromkeys(self.through(turn_id))


class Survey:
    """Branches and turns of a session, built from all its facts in order."""

    __slots__ = ("begun", "branches", "is_forked", "origins", "submitted", "threads")

    def __init__(self) -> None:
        self.branches = Branches()
        self.is_forked = False
        """Whether there is more than one branch."""
        self.begun: dict[str, int] = {}
        """Sequence number of each turn's first fact."""
        self.threads = Threads()
        """Threads of the turns."""
        self.submitted: dict[str, JsonObject] = {}
        """Input that began each turn, as stored."""
        self.origins: dict[str, str] = {}
        """Name of the program that began a turn, for each turn that no user began."""

    def add(self, fact: Fact) -> None:
        """Apply the next fact; facts that are not about turns may be left out."""
        payload, turn_id = fact.payload, fact.turn_id
        assert isinstance(payload, dict)
        self.is_forked = self.is_forked or forks(fact.type, payload)
        self.branches.follow(fact.type, turn_id, payload, fact.sequence)
        if turn_id is not None and fact.type == "turn.submitted":
            self.threads.join(turn_id, fact.thread_id)
        if turn_id is not None and fact.type in ("turn.submitted", "queue.changed"):
            self.begun.setdefault(turn_id, fact.sequence)
            if isinstance(submitted := payload.get("input"), dict):
                self.submitted[turn_id] = submitted
                # A user who edits the queued turn of a program becomes its author.
                self.origins.pop(turn_id, None)
                if isinstance(origin := payload.get("origin"), str):
                    self.origins[turn_id] = origin
