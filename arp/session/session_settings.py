"""Rules of a session, and its state besides turns and surfaces.

That is its title, its branches, the user's grants, settings and feedback, and the agent's state.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from arp.protocol.json_value import JsonObject
from arp.protocol.limits import Limits
from arp.session.approval import Grant
from arp.session.tracking.branches import Branches, BranchNotLoaded, forks
from arp.session.turn_states import Policy

TITLE_CHARACTERS = 80
"""Maximum length of a title, in characters. The title of a session without a name is the beginning
of its first text."""

MAX_STATE_BYTES = 64 << 10
"""Maximum size of an agent's state of a session, as JSON. Each change is one fact, and every
restart reads it; larger data belongs in a file."""

MAX_FEEDBACK = 1_000
"""Number of turns with feedback in memory; the ledger has all feedback."""

MAX_COMMANDS_BYTES = 64 << 10
"""Maximum size of a session's own slash commands, as JSON. Every renderer receives them when it
joins. An agent CLI with a hundred commands has 20 KiB."""


class Rules(Struct, frozen=True):
    """Rules of a session."""

    limits: Limits = Limits()
    policy: Policy = "queue"
    """Treatment of an input while a turn runs."""
    traced: bool = False
    """Whether the first fact of each turn names its trace."""


class SessionSettings:
    """State of a session besides its turns and surfaces, built from facts."""

    __slots__ = (
        "branches",
        "chosen",
        "feedback",
        "grants",
        "name",
        "opening",
        "pinned",
        "plan",
        "state",
        "title",
    )

    def __init__(self) -> None:
        self.name = ""
        """Name given to the session; empty if it has none."""
        self.opening = ""
        """Beginning of the user's first text on the shown branch."""
        self.title = ""
        """The name; without a name, the opening."""
        self.pinned = False
        self.state: JsonObject = {}
        """State of the agent on the shown branch. It is replaced, never modified."""
        self.chosen: JsonObject = {}
        """Settings chosen by the user, for all branches. They are replaced, never modified."""
        self.feedback: dict[str, JsonObject] = {}
        """The user's feedback by turn; the newest `MAX_FEEDBACK`."""
        self.grants: set[Grant] = set()
        self.branches: Branches | None = None
        """Turns of all branches; `None` while there is only one branch."""
        self.plan: frozenset[str] | None = None
        """Turns to show, while a session with branches is built from all its facts."""

    def begin_plan(self, shown: Iterable[str]) -> None:
        """Set the turns to show, before the first fact is applied."""
        self.plan, self.branches = frozenset(shown), Branches()

    def shows(self, turn_id: str | None) -> bool:
        """Return whether the newest fact belongs to a shown turn.

        A fact without a turn belongs to the last turn that was shown when the fact was recorded.
        """
        if self.plan is None:
            return True
        if turn_id is None and self.branches is not None:
            turn_id = self.branches.last
        return turn_id is None or turn_id in self.plan

    def restore(self, name: str, opening: str) -> None:
        """Restore the title from a stored state."""
        self.name, self.opening, self.title = name, opening, name or opening

    def open_with(self, submitted: JsonObject) -> None:
        """Set the opening from a stored input; an input without text changes nothing."""
        if isinstance(text := submitted["data"].get("text"), str):
            self.opening = one_line(text)
            self.title = self.name or self.opening

    def switch_to(self, other: SessionSettings) -> None:
        """Adopt the branch-dependent settings of `other`, the session of another branch."""
        self.branches, self.state = other.branches, other.state
        self.restore(self.name, other.opening)

    def update(self, turn_id: str | None, payload: JsonObject) -> None:
        """Apply the payload of a `session.updated`, except a change of branch."""
        if isinstance(title := payload.get("title"), str):
            self.name = one_line(title)
            self.title = self.name or self.opening
        self.pinned = bool(payload.get("pinned", self.pinned))
        if isinstance(state := payload.get("state"), dict) and self.shows(turn_id):
            self.state = state
        if isinstance(chosen := payload.get("settings"), dict):
            self.chosen = chosen
        if turn_id is not None and isinstance(given := payload.get("feedback"), dict):
            self._rate(turn_id, given)

    def follow_branches(
        self, type_name: str, turn_id: str | None, payload: JsonObject, sequence: int
    ) -> None:
        """Apply a `turn.submitted` or a `session.updated` to the branches.

        Raises:
            BranchNotLoaded: The fact changes to another branch, and the other branches are not in
                memory.
        """
        if self.branches is not None:
            self.branches.follow(type_name, turn_id, payload, sequence)
        elif forks(type_name, payload):
            raise BranchNotLoaded(f"fact {sequence} turns to another branch")

    def _rate(self, turn_id: str, given: JsonObject) -> None:
        self.feedback.pop(turn_id, None)  # new feedback on a turn makes it the newest one
        if given.get("rating") != "none":
            self.feedback[turn_id] = given
        if len(self.feedback) > MAX_FEEDBACK:
            del self.feedback[next(iter(self.feedback))]


def one_line(text: str) -> str:
    """Return the first words of a text on one line, cut to `TITLE_CHARACTERS`."""
    # The title has fewer words than characters, so the rest of a long text need not be split.
    words = text.split(maxsplit=TITLE_CHARACTERS)[:TITLE_CHARACTERS]
    return " ".join(words)[:TITLE_CHARACTERS]
