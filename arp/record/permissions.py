"""What rules and people allow."""

from __future__ import annotations

from typing import Literal

from arp.ledger.payload_fields import Authority, AuthorityKind, Verdict
from arp.protocol.json_value import Json
from arp.record.scope import FactScope


class Permission:
    """One use of a tool that needs a permission."""

    __slots__ = ("_scope", "_tool", "request_id")

    def __init__(self, scope: FactScope, tool: str, request_id: str | None) -> None:
        self.request_id = request_id
        """Joins its facts; made with the first of them."""
        self._tool = tool
        self._scope = scope

    def evaluated(self, decision: Verdict, kind: AuthorityKind, name: str) -> None:
        """Record what a rule, mode, hook or host policy says: `allow`, `deny` or `ask`.

        Args:
            decision: What it says.
            kind: What says so.
            name: Its name.
        """
        self._tell("evaluated", decision=decision, decidedBy=Authority(kind, name))

    def requested(self, reason: str | None = None) -> None:
        """Record that somebody is asked."""
        self._tell("requested", reason=reason)

    def allowed(self) -> None:
        """Record that it was given."""
        self._tell("resolved", decision="allow")

    def denied(self, kind: AuthorityKind, name: str) -> None:
        """Record that it was not, and which rule, mode, hook, host policy or person denied it."""
        self._tell("resolved", decision="deny", deniedBy=Authority(kind, name))

    def unanswered(self, decision: Literal["cancelled", "expired"]) -> None:
        """Record that nobody answered, which is no approval."""
        self._tell("resolved", decision=decision)

    def _tell(self, what: str, **payload: Json) -> None:
        if self.request_id is None:
            self.request_id = self._scope.new_id("permission")
        payload = {"tool": self._tool, **payload}
        self._scope(f"permission.{what}", payload, request_id=self.request_id)
