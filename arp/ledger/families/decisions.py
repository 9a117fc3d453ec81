"""Facts of questions, permissions, sandboxes, hooks, policies and the queue of turns."""

from __future__ import annotations

from typing import Final, Literal

from arp.ledger.fact_family import FactFamily, FactType, OnlyIf
from arp.ledger.payload_fields import (
    ARGS,
    DECISION,
    DURATION_MS,
    INPUT,
    NAME,
    PREVIOUS,
    REASON,
    SURFACE,
    TOOL,
    VALUE,
    ApprovedFile,
    Authority,
    Name,
    PayloadField,
    Resolution,
    Scope,
    Sha256,
    Verdict,
    optional,
)
from arp.ledger.record_steps import AddRecord, CustomRule
from arp.protocol.json_value import Json, JsonObject

ANSWER: Final = PayloadField(
    "answer", Json, "The answer as renderers may see it. A password is in no fact."
)
ASKED_BY: Final = PayloadField("askedBy", Name, "The rule that requires a person's decision.")
COMPONENT: Final = PayloadField(
    "component", JsonObject, "The input component that asks the question."
)
DECIDED_BY: Final = PayloadField(
    "decidedBy", Authority, "The rule, mode, hook, policy or person that decided."
)
DENIED_BY: Final = PayloadField(
    "deniedBy", Authority, "What or who denied. Present if and only if the decision is `deny`."
)
DIGEST: Final = PayloadField(
    "digest",
    Sha256,
    "SHA-256 of the shown or approved input as JSON; salted if the input has a secret.",
)
EDITABLE: Final = PayloadField(
    "editable", bool, "Whether the answer may change the input that was shown."
)
EDITED: Final = PayloadField(
    "edited", bool, "True if the approved input differs from the one shown."
)
ENDS: Final = PayloadField(
    "ends",
    Literal["completed", "cancelled"],
    "Final status of a turn that a crash ended while this question was open.",
)
EVENT: Final = PayloadField("event", str, "The event for which a hook was called.")
EXPIRES_AT: Final = PayloadField(
    "expiresAt", str, "Deadline (RFC 3339); later answers are refused."
)
FILES: Final = PayloadField(
    "files",
    list[ApprovedFile],
    "Files that are named in the input of a permission request: `path`, `bytes`, `sha256`.",
)
GRANT: Final = PayloadField(
    "grant", JsonObject, "Permission for the rest of the session: `tool`, `rule`."
)
HOOK: Final = PayloadField("hook", Name, "Name of a hook.")
MODE: Final = PayloadField("mode", str, "Mode of a sandbox, in the host's words.")
NETWORK: Final = PayloadField("network", bool, "Whether the sandbox allows network access.")
OPERATION: Final = PayloadField("operation", Name, "The operation that was attempted.")
PAUSED: Final = PayloadField("paused", bool, "Whether the queue is paused until a user resumes it.")
POLICY: Final = PayloadField("policy", Name, "Name of a policy.")
QUEUED: Final = PayloadField("queued", list[Name], "Ids of the queued turns, in order.")
READABLE: Final = PayloadField("readable", list[str], "Paths that a sandbox may read.")
RESUMES: Final = PayloadField("resumes", bool, "Whether the turn continues with this answer.")
SANDBOX: Final = PayloadField("sandbox", Name, "Name of a sandbox profile.")
SCOPE: Final = PayloadField(
    "scope", Scope, "Scope of an approval: this call, or the rest of the session."
)
SESSION_RULE: Final = PayloadField(
    "sessionRule", Name, "What an approval for the session allows, as it was shown."
)
TARGET: Final = PayloadField("target", str, "The object of the attempted operation.")
WRITABLE: Final = PayloadField("writable", list[str], "Paths that a sandbox may write.")


ACTION_FACTS: Final = FactFamily(
    "action",
    "A question to the user, and its answer.",
    required_ids=["thread_id", "turn_id", "action_id"],
    types=[
        FactType(
            "action.required",
            COMPONENT,
            SURFACE,
            *optional(NAME, TOOL, ASKED_BY, ARGS, DIGEST, SESSION_RULE, EDITABLE, EXPIRES_AT),
            effects=[CustomRule("requests")],
        ),
        FactType(
            "action.resolved",
            DECISION,
            RESUMES,
            *optional(ENDS, ANSWER, INPUT, GRANT),
            effects=[CustomRule("threads"), CustomRule("requests")],
        ),
    ],
)

PERMISSION_FACTS: Final = FactFamily(
    "permission",
    "A tool needs a permission: what the rules say, the request, and the decision.",
    required_ids=["thread_id", "turn_id"],
    types=[
        FactType(
            "permission.evaluated",
            TOOL,
            DECISION.typed(Verdict),
            DECIDED_BY,
            *optional(SCOPE, DIGEST),
            written_ids=["request_id"],
            effects=[CustomRule("requests"), CustomRule("incidents")],
        ),
        FactType(
            "permission.requested",
            TOOL,
            *optional(REASON, DIGEST, FILES, SESSION_RULE, EDITABLE, EXPIRES_AT),
            written_ids=["request_id"],
            effects=[CustomRule("requests")],
        ),
        FactType(
            "permission.resolved",
            TOOL,
            DECISION.typed(Resolution),
            *optional(DENIED_BY, SCOPE, DIGEST, FILES, EDITED, REASON),
            written_ids=["request_id"],
            relation=OnlyIf(DENIED_BY, DECISION, "deny"),
            effects=[CustomRule("requests"), CustomRule("incidents")],
        ),
    ],
)

SANDBOX_FACTS: Final = FactFamily(
    "sandbox",
    "A sandbox is applied, or prevents an operation.",
    required_ids=["thread_id", "turn_id"],
    types=[
        FactType(
            "sandbox.applied",
            SANDBOX,
            *optional(MODE, NETWORK, READABLE, WRITABLE),
            effects=[CustomRule("requests")],
        ),
        FactType(
            "sandbox.violation",
            SANDBOX,
            OPERATION,
            TARGET.optional(),
            effects=[AddRecord("violations"), AddRecord("incidents")],
        ),
    ],
)

HOOK_FACTS: Final = FactFamily(
    "hook",
    "A hook runs.",
    required_ids=["thread_id", "turn_id"],
    types=[
        FactType(
            "hook.started",
            HOOK,
            EVENT.optional(),
            written_ids=["request_id"],
            effects=[CustomRule("requests")],
        ),
        FactType(
            "hook.completed",
            HOOK,
            *optional(DECISION.typed(Verdict), DURATION_MS),
            written_ids=["request_id"],
            effects=[CustomRule("requests")],
        ),
        FactType(
            "hook.failed",
            HOOK,
            REASON,
            DURATION_MS.optional(),
            written_ids=["request_id"],
            effects=[CustomRule("requests"), AddRecord("incidents")],
        ),
    ],
)

POLICY_FACTS: Final = FactFamily(
    "policy",
    "A policy has a new value.",
    types=[
        FactType(
            "policy.changed", POLICY, VALUE, PREVIOUS.optional(), effects=[CustomRule("requests")]
        ),
    ],
)

QUEUE_FACTS: Final = FactFamily(
    "queue",
    "The queue of turns changes.",
    types=[
        FactType(
            "queue.changed",
            QUEUED,
            *optional(INPUT, PAUSED),
            written_ids=["thread_id"],
            effects=[CustomRule("threads")],
        ),
    ],
)

FAMILIES: Final = (
    ACTION_FACTS,
    PERMISSION_FACTS,
    SANDBOX_FACTS,
    HOOK_FACTS,
    POLICY_FACTS,
    QUEUE_FACTS,
)
