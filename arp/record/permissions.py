"""What rules and people allow, what a sandbox keeps in, and what hooks do about it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Literal

from arp.ledger.payload_fields import Authority, AuthorityKind, Verdict
from arp.protocol.errors import SurfaceDestroyed
from arp.protocol.json_value import Json
from arp.record.scope import FactScope
from arp.record.tasks import reason_of


class Permission:
    """One use of a tool that needs leave; given by `turn.record.permission(tool)`."""

    __slots__ = ("_scope", "_tool", "request_id")

    def __init__(self, scope: FactScope, tool: str, request_id: str | None) -> None:
        self.request_id = request_id
        """Joins its facts; made with the first of them."""
        self._tool = tool
        self._scope = scope

    def evaluated(self, decision: Verdict, kind: AuthorityKind, name: str) -> None:
        """Notes what a rule, mode, hook or host policy says: `allow`, `deny` or `ask`.

        Args:
            decision: What it says.
            kind: What says so.
            name: Its name.
        """
        by = Authority(kind, name)
        self._record("permission.evaluated", decision=decision, decidedBy=by)

    def requested(self, reason: str | None = None) -> None:
        """Notes that somebody is asked for leave."""
        self._record("permission.requested", reason=reason)

    def allowed(self) -> None:
        """Notes that leave was given."""
        self._record("permission.resolved", decision="allow")

    def denied(self, kind: AuthorityKind, name: str) -> None:
        """Notes that it was not, and which rule, mode, hook, host policy or person denied it."""
        by = Authority(kind, name)
        self._record("permission.resolved", decision="deny", deniedBy=by)

    def unanswered(self, decision: Literal["cancelled", "expired"]) -> None:
        """Notes that nobody answered, which is no approval."""
        self._record("permission.resolved", decision=decision)

    def _record(self, type_name: str, **payload: Json) -> None:
        if self.request_id is None:
            self.request_id = self._scope.new_id("permission")
        told = {"tool": self._tool, **payload}
        self._scope.record(type_name, told, request_id=self.request_id)


class Sandbox:
    """What keeps a tool in; given by `turn.record.sandbox(name)`."""

    __slots__ = ("_scope", "name")

    def __init__(self, scope: FactScope, name: str) -> None:
        self.name = name
        self._scope = scope

    def applied(
        self,
        mode: str | None = None,
        *,
        network: bool | None = None,
        readable: Sequence[str] | None = None,
        writable: Sequence[str] | None = None,
    ) -> None:
        """Notes what the sandbox lets through; `None` where that is not known."""
        payload = {
            "mode": mode,
            "network": network,
            "readable": None if readable is None else list(readable),
            "writable": None if writable is None else list(writable),
        }
        self._scope.record("sandbox.applied", {"sandbox": self.name, **payload})

    def violated(self, operation: str, target: str | None = None) -> None:
        """Notes what was tried and not let through."""
        payload = {"sandbox": self.name, "operation": operation, "target": target}
        self._scope.record("sandbox.violation", payload)


class Hook:
    """A hook that runs; as a context manager it notes its own end."""

    __slots__ = ("_ended", "_name", "_scope")

    def __init__(self, scope: FactScope, name: str, event: str | None) -> None:
        self._name = name
        self._scope = scope.within(request_id=scope.new_id("hook"))
        self._ended = False
        self._record("hook.started", event=event)

    def completed(self, decision: Verdict | None = None, duration_ms: float | None = None) -> None:
        """Notes that it ran, and what it decided if that was asked of it."""
        self._ended = True
        self._record("hook.completed", decision=decision, durationMs=duration_ms)

    def failed(self, reason: str, duration_ms: float | None = None) -> None:
        """Notes that it did not run to its end."""
        self._ended = True
        self._record("hook.failed", reason=reason, durationMs=duration_ms)

    def __enter__(self) -> Hook:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._ended:
            return
        if error is None:
            self.completed()
            return
        with suppress(SurfaceDestroyed):  # the turn is over: what was raised says more
            self.failed(reason_of(error))

    def _record(self, type_name: str, **payload: Json) -> None:
        self._scope.record(type_name, {"hook": self._name, **payload})
