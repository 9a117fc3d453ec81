"""A session's title and rules, which turns show, what people allowed, what its agent keeps."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from arp.protocol.json_value import JsonObject
from arp.protocol.limits import Limits
from arp.session.branches import Branches, Forked, forks
from arp.session.turn_states import Policy

TITLE_CHARACTERS = 80
"""A chat's title is the beginning of its first text."""

MAX_STATE_BYTES = 64 << 10
"""Of what an agent keeps for a session, as JSON: each change is one fact, and every restart reads
it. What is larger is a file."""

MAX_FEEDBACK = 1_000
"""Turns of a session whose feedback is in memory; the ledger has all of it."""

MAX_COMMANDS_BYTES = 64 << 10
"""Of a session's own slash commands, as JSON: every renderer that joins gets them. An agent CLI
with a hundred of them has 20 KiB."""


class Rules(Struct, frozen=True):
    """How a session behaves."""

    limits: Limits = Limits()
    policy: Policy = "queue"
    """What becomes of an input while a turn runs."""
    traced: bool = False
    """A turn's first fact names its trace."""


class Grant(Struct, frozen=True):
    """A person's leave for a tool, for as long as the session lives."""

    tool: str
    rule: str
    """What is allowed, in the words that the person saw."""


class PermissionTerms(Struct, frozen=True):
    """What the answer to a permission may say."""

    digest: str | None = None
    """Of the input that was shown."""
    grant: Grant | None = None
    """What a yes may allow for the whole session."""
    editable: bool = False
    """Whether a yes may have another input."""


def terms_of(payload: JsonObject) -> PermissionTerms | None:
    """Return what an `action.required` lets its answer say; `None`: it asks no permission."""
    if "askedBy" not in payload:
        return None
    rule = payload.get("sessionRule")
    grant = Grant(payload["tool"], rule) if rule is not None else None
    return PermissionTerms(payload.get("digest"), grant, payload.get("editable", False))


class SessionSettings:
    """Follows the facts that say how a session stands besides its turns and surfaces."""

    __slots__ = (
        "branches",
        "chosen",
        "feedback",
        "grants",
        "name",
        "opening",
        "pinned",
        "plan",
        "rules",
        "state",
        "title",
    )

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.name = ""
        """What it was called by somebody; empty: nothing."""
        self.opening = ""
        """The beginning of the first text that the user said, on the branch that shows."""
        self.title = ""
        """Its name, else its opening."""
        self.pinned = False
        self.state: JsonObject = {}
        """What the agent keeps, on the branch that shows; replaced, never changed."""
        self.chosen: JsonObject = {}
        """What the user set, on all branches; replaced, never changed."""
        self.feedback: dict[str, JsonObject] = {}
        """What the user thinks of turns, by turn; the newest `MAX_FEEDBACK`."""
        self.grants: set[Grant] = set()
        self.branches: Branches | None = None
        """The turns of all branches; `None` while there is one."""
        self.plan: frozenset[str] | None = None
        """While a session is made of all its facts: the turns that are to show."""

    def begin_plan(self, shown: Iterable[str]) -> None:
        """Say before the first fact which turns are to show."""
        self.plan, self.branches = frozenset(shown), Branches()

    def shows(self, turn_id: str | None) -> bool:
        """Return whether the newest fact shows.

        One without a turn belongs to the last turn that showed when it was written.
        """
        if self.plan is None:
            return True
        if turn_id is None and self.branches is not None:
            turn_id = self.branches.last
        return turn_id is None or turn_id in self.plan

    def restore(self, name: str, opening: str) -> None:
        """Take what a stored state holds of the title."""
        self.name, self.opening, self.title = name, opening, name or opening

    def open_with(self, submitted: JsonObject) -> None:
        """Take the opening from an input, as a fact has it; one without text has none."""
        if isinstance(text := submitted["data"].get("text"), str):
            self.opening = one_line(text)
            self.title = self.name or self.opening

    def switch_to(self, other: SessionSettings) -> None:
        """Take what depends on the branch that shows."""
        self.branches, self.state = other.branches, other.state
        self.restore(self.name, other.opening)

    def follow(self, type_name: str, turn_id: str | None, payload: JsonObject, place: int) -> None:
        """Take over what a `turn.submitted` or `session.updated` changes.

        Raises:
            Forked: It turns to another branch, and the others are not known.
        """
        if type_name == "session.updated":
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
        if self.branches is not None:
            self.branches.follow(type_name, turn_id, payload, place)
        elif forks(type_name, payload):
            raise Forked(f"fact {place} turns to another branch")

    def _rate(self, turn_id: str, given: JsonObject) -> None:
        self.feedback.pop(turn_id, None)
        if given.get("rating") != "none":
            self.feedback[turn_id] = given
        if len(self.feedback) > MAX_FEEDBACK:
            del self.feedback[next(iter(self.feedback))]


def one_line(text: str) -> str:
    """Return a text as a title; of a long text only the first words are looked at."""
    words = text.split(maxsplit=TITLE_CHARACTERS)[:TITLE_CHARACTERS]
    return " ".join(words)[:TITLE_CHARACTERS]
