"""Records facts of agents and of the server around them, each checked where it is made.

Theory of operation. If the writer had to refuse a fact when it encodes it, the session would have
to be evicted from memory. So each value from outside is converted to plain JSON and checked here,
in the call of the author who made the mistake. A refused fact is not recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from arp.ledger.fact_types import REQUIRED_IDS, ProfileViolation, check_ids
from arp.ledger.payloads import check_payload
from arp.protocol.json_value import Json, JsonObject
from arp.record.wording import plain, well_formed
from arp.redact.redactor import Found
from arp.redact.stream import RedactedPiece, flush, grow
from arp.session.session import Session
from arp.session.tracking.threads import THREAD

UNAVAILABLE: Final = "unavailable"
"""Value of a correlation id that does not exist (ledger.md 1)."""

OWN: Final = frozenset(
    (
        "session.created",
        "turn.submitted",
        "turn.started",
        "turn.completed",
        "turn.failed",
        "queue.changed",
        "model.delta",
        "reasoning.delta",
        "tool.started",
        "tool.args",
        "tool.progress",
        "tool.result",
        "tool.failed",
        "action.required",
        "action.resolved",
        "channel.connected",
        "channel.resumed",
        "channel.disconnected",
        "runtime.error",
    )
)
"""Types that the session records itself. Its state is built from them, and screens show them."""


OWN_FIELDS: Final = {
    "artifact.changed": frozenset(("changes", "info", "closed", "leaving", "inputId")),
    "run.status": frozenset(("inputId",)),
    "output.spilled": frozenset(("file",)),
    "session.updated": frozenset(
        ("pinned", "branch", "state", "sharedState", "commands", "viewer")
    ),
}
"""Type → fields from which a session is rebuilt. Only the session records facts with these fields.
"""


class FactScope:
    """Records facts of one session that carry the same ids."""

    __slots__ = ("_after", "_before", "_session", "ids")

    def __init__(
        self,
        session: Session,
        ids: Mapping[str, Json],
        before: Callable[[], None],
        after: Callable[[], None],
    ) -> None:
        """Create a scope.

        Args:
            session: Session of the facts.
            ids: Correlation ids that every fact carries, by field name.
            before: Called before each fact; raises if nothing may be recorded (any more).
            after: Called after each fact that was recorded.
        """
        self.ids = dict(ids)
        self._session = session
        self._before = before
        self._after = after

    def __call__(
        self, type_name: str, payload: Mapping[str, Json] | None = None, **ids: Json
    ) -> None:
        """Record a fact.

        Args:
            type_name: A type of the closed list, but not one in `OWN`.
            payload: Values that JSON can express, without the session's own fields (`OWN_FIELDS`);
                `None` means that a field does not apply.
            ids: Correlation ids by field name; `None` means that an id does not apply.

        Raises:
            ProfileViolation: The type, an id or a field is wrong or missing; nothing is recorded.
            SurfaceDestroyed: The turn has ended; nothing is recorded.
            TypeError, ValueError: JSON cannot express a value; nothing is recorded.
        """
        type_name = well_formed(type_name)
        payload = {} if payload is None else payload
        if not isinstance(payload, Mapping):
            raise TypeError(f"payload: expected a dict, got {type(payload).__name__}")
        if type_name in OWN or not OWN_FIELDS.get(type_name, frozenset()).isdisjoint(payload):
            raise ProfileViolation(
                f"profile validation failed: {type_name} is recorded by the session itself"
            )
        self._before()
        plain_payload = plain(_without_none(payload))
        named = plain({**self._ids_outside_turns(type_name), **self.ids, **_without_none(ids)})
        check_ids(type_name, named)
        check_payload(type_name, plain_payload, named)
        self._session.record(type_name, plain_payload, **named)
        self._after()

    def clean(self, text: str) -> tuple[str, Found]:
        """Return a text without secrets, and what was found; a text that is JSON is parsed as JSON.

        Use it for texts that are cut or stored beside the ledger. The session itself cleans the
        texts in facts.
        """
        cleaned, found = self._session.redactor.clean(text)
        return str(cleaned), found

    def grow(self, held: str, piece: str, before: str) -> RedactedPiece:
        """Remove secrets from a text that arrives in pieces; see `arp.redact.stream.grow`."""
        return grow(self._session.redactor, held, piece, before)

    def flush(self, held: str, before: str) -> RedactedPiece:
        """Return the held end of such a text, because nothing follows."""
        return flush(self._session.redactor, held, before)

    def before_end(self, action: Callable[[], None]) -> None:
        """Call an action before the end of the turn that these facts belong to, if it is active."""
        turn_id = self.ids.get("turn_id")
        if turn_id is not None and turn_id == self._session.running:
            self._session.before_end(turn_id, action)

    def within(self, **ids: Json) -> FactScope:
        """Return a scope that adds these ids to its facts."""
        joined = {**self.ids, **_without_none(ids)}
        return FactScope(self._session, joined, self._before, self._after)

    def new_id(self, kind: str) -> str:
        """Return an id that no fact of the session carries yet.

        It contains the sequence number of the next fact, which must be the first one to carry it:
        the caller records that fact before any other.
        """
        self._before()
        return f"{kind}-{self._session.sequence + 1}"

    @staticmethod
    def _ids_outside_turns(type_name: str) -> JsonObject:
        """Return the ids of a fact outside of any turn, as far as its type requires them."""
        wanted = REQUIRED_IDS.get(type_name, ())
        outside = {"thread_id": THREAD, "turn_id": UNAVAILABLE}
        return {name: value for name, value in outside.items() if name in wanted}


def _without_none(values: Mapping[str, Json]) -> JsonObject:
    return {name: value for name, value in values.items() if value is not None}
