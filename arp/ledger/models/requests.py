"""What waits for a decision, what was decided and by whom, and what the sandbox allows.

A request stays pending until a fact resolves it: nothing that is unresolved counts as approved,
and a crash leaves it pending under the same id.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct, field

from arp.ledger.fact import Fact
from arp.ledger.models.reading import brief, flag, part, text, texts
from arp.ledger.models.span import Spans
from arp.ledger.models.window import Record, Window, keep
from arp.protocol.json_value import Json, JsonObject

MOST_PENDING: Final = 100
MOST_DECISIONS: Final = 50
MOST_VIOLATIONS: Final = 20
MOST_POLICIES: Final = 20


class Request(Record, rename="camel", omit_defaults=True, kw_only=True):
    """Something that waits for a person, or for whoever may decide."""

    kind: str
    """action or permission."""
    action_id: str | None = None
    request_id: str | None = None
    thread_id: str | None = None
    turn_id: str | None = None
    tool_call_id: str | None = None
    tool: str | None = None
    prompt: str | None = None
    component: str | None = None
    """Type of the component that asks."""
    component_id: str | None = None
    surface: str | None = None
    requested_at: str | None = None
    turn_ended: bool = False
    """Its turn is over; the request still stands."""
    forwarded_to: str | None = None
    """The channel that was asked to decide."""


class Decision(Record, rename="camel", omit_defaults=True, kw_only=True):
    """A permission that was evaluated or resolved."""

    type: str
    decision: str
    tool: str | None = None
    denied_by: Json = None
    """Which rule, mode, hook or host policy; only where the decision is `deny`."""
    decided_by: Json = None
    request_id: str | None = None
    action_id: str | None = None
    thread_id: str | None = None
    turn_id: str | None = None
    tool_call_id: str | None = None
    at: str


class Sandbox(Struct, rename="camel", omit_defaults=True):
    """The sandbox that was applied last."""

    sandbox: str
    mode: str | None = None
    network: bool | None = None
    readable: list[str] = []
    writable: list[str] = []
    turn_id: str | None = None
    sequence: int = 0


class Violation(Record, rename="camel", omit_defaults=True, kw_only=True):
    """Something that the sandbox did not let happen."""

    sandbox: str | None = None
    operation: str
    target: str | None = None
    turn_id: str | None = None
    tool_call_id: str | None = None


class Requests(Struct, rename="camel", omit_defaults=True):
    """Requests, decisions, sandbox and policies of a session."""

    pending: Window[Request] = field(default_factory=lambda: Window[Request]())
    decisions: list[Decision] = []
    older_decisions: int = 0
    counts: dict[str, int] = {}
    """How many permissions were allowed, denied … by `permission.*`."""
    answered: int = 0
    unanswered: int = 0
    """Questions that closed without an answer."""
    wait: Spans = field(default_factory=Spans)
    sandbox: Sandbox | None = None
    violations: list[Violation] = []
    older_violations: int = 0
    policies: dict[str, Json] = {}
    hooks: dict[str, int] = {}
    """How many hooks started, completed, failed."""

    def find(self, fact: Fact) -> tuple[str, Request] | None:
        """Return the pending request that a fact is about, with its key."""
        for key, request in self.pending.open.items():
            if fact.action_id and request.action_id == fact.action_id:
                return key, request
            if fact.request_id and request.request_id == fact.request_id:
                return key, request
        return None


# -- asking ----------------------------------------------------------------------------------------


def _asked(requests: Requests, fact: Fact) -> None:
    """An action and a permission that share their id are one request."""
    found = requests.find(fact)
    if found is None:
        kind = "action" if fact.type == "action.required" else "permission"
        request = Request(kind=kind, first_sequence=fact.sequence, requested_at=fact.timestamp)
        key = f"{kind}:{fact.action_id or fact.request_id or fact.tool_call_id or fact.turn_id}"
        requests.pending.begin(key, request, MOST_PENDING)
    else:
        request = found[1]
    _tell(request, fact)


def _tell(request: Request, fact: Fact) -> None:
    component = part(fact.payload, "component")
    props = part(component, "props")
    request.last_sequence = fact.sequence
    request.action_id = fact.action_id or request.action_id
    request.request_id = fact.request_id or request.request_id
    request.thread_id, request.turn_id = fact.thread_id, fact.turn_id
    request.tool_call_id = fact.tool_call_id or request.tool_call_id
    request.tool = text(fact.payload, "tool") or request.tool
    asks = text(fact.payload, "prompt", "reason") or text(props, "title", "label")
    request.prompt = asks or request.prompt
    request.component = text(component, "type") or request.component
    request.component_id = text(component, "id") or request.component_id
    request.surface = text(fact.payload, "surface") or request.surface


def _forwarded(requests: Requests, fact: Fact) -> None:
    found = requests.find(fact)
    if found is not None:
        found[1].forwarded_to = text(fact.payload, "to") or fact.channel_id


def _turn_ended(requests: Requests, fact: Fact) -> None:
    for request in requests.pending.open.values():
        if request.turn_id == fact.turn_id and request.thread_id == fact.thread_id:
            request.turn_ended = True


# -- deciding --------------------------------------------------------------------------------------


def _answered(requests: Requests, fact: Fact) -> None:
    if fact.payload.get("decision") == "answered":
        requests.answered += 1
    else:
        requests.unanswered += 1
    _close(requests, fact)


def _resolved(requests: Requests, fact: Fact) -> None:
    _decide(requests, fact)
    _close(requests, fact)


def _close(requests: Requests, fact: Fact) -> None:
    found = requests.find(fact)
    if found is not None:
        key, request = found
        requests.wait.add(request.requested_at, fact.timestamp)
        del requests.pending.open[key]


def _decide(requests: Requests, fact: Fact) -> None:
    payload = fact.payload
    decision = text(payload, "decision") or "unknown"
    entry = Decision(
        type=fact.type,
        decision=decision,
        tool=text(payload, "tool"),
        denied_by=_denier(payload) if decision == "deny" else None,
        decided_by=brief(payload.get("decidedBy")) if decision != "deny" else None,
        request_id=fact.request_id,
        action_id=fact.action_id,
        thread_id=fact.thread_id,
        turn_id=fact.turn_id,
        tool_call_id=fact.tool_call_id,
        at=fact.timestamp,
        first_sequence=fact.sequence,
        last_sequence=fact.sequence,
    )
    known = decision if decision in _DECISIONS else "unknown"
    requests.counts[known] = requests.counts.get(known, 0) + 1
    requests.older_decisions += keep(requests.decisions, entry, MOST_DECISIONS)


_DECISIONS: Final = frozenset(("allow", "deny", "ask", "cancelled", "expired"))


def _denier(payload: JsonObject) -> Json:
    """Name who denied; `unknown` where the fact does not say, since somebody did."""
    return brief(payload.get("deniedBy") or payload.get("decidedBy")) or "unknown"


# -- sandbox, policies, hooks ----------------------------------------------------------------------


def _applied(requests: Requests, fact: Fact) -> None:
    payload = fact.payload
    requests.sandbox = Sandbox(
        sandbox=text(payload, "sandbox") or "unknown",
        mode=text(payload, "mode"),
        network=flag(payload, "network"),
        readable=texts(payload, "readable"),
        writable=texts(payload, "writable"),
        turn_id=fact.turn_id,
        sequence=fact.sequence,
    )


def _violated(requests: Requests, fact: Fact) -> None:
    entry = Violation(
        sandbox=text(fact.payload, "sandbox"),
        operation=text(fact.payload, "operation") or "unknown",
        target=text(fact.payload, "target"),
        turn_id=fact.turn_id,
        tool_call_id=fact.tool_call_id,
        first_sequence=fact.sequence,
        last_sequence=fact.sequence,
    )
    requests.older_violations += keep(requests.violations, entry, MOST_VIOLATIONS)


def _policy(requests: Requests, fact: Fact) -> None:
    name = text(fact.payload, "policy")
    if name is not None and (name in requests.policies or len(requests.policies) < MOST_POLICIES):
        requests.policies[name] = brief(fact.payload.get("value"))


def _hook(requests: Requests, fact: Fact) -> None:
    step = fact.type.removeprefix("hook.")
    requests.hooks[step] = requests.hooks.get(step, 0) + 1


RULES: Final[dict[str, Callable[[Requests, Fact], None]]] = {
    "action.required": _asked,
    "action.resolved": _answered,
    "permission.requested": _asked,
    "permission.evaluated": _decide,
    "permission.resolved": _resolved,
    "channel.permission_forwarded": _forwarded,
    "turn.completed": _turn_ended,
    "turn.failed": _turn_ended,
    "sandbox.applied": _applied,
    "sandbox.violation": _violated,
    "policy.changed": _policy,
    "hook.started": _hook,
    "hook.completed": _hook,
    "hook.failed": _hook,
}
"""Type of a fact → what it changes here."""
