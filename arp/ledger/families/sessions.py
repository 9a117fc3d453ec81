"""Facts of sessions, threads and turns."""

from __future__ import annotations

from typing import Final, Literal

from arp.ledger.fact_family import FactFamily, FactType
from arp.ledger.payload_fields import (
    INPUT,
    REASON,
    STATE,
    USAGE,
    Name,
    PayloadField,
    TurnFeedback,
    optional,
)
from arp.ledger.record_steps import CustomRule
from arp.protocol.json_value import JsonObject

ANSWERS: Final = PayloadField(
    "answers",
    JsonObject,
    "Answer that began the turn, if its question outlived the turn that asked it: `actionId`, "
    "`name`, `value`, `declined`.",
)
BRANCH: Final = PayloadField("branch", Name, "Id of a turn. Its branch is shown from now on.")
COMMANDS: Final = PayloadField(
    "commands",
    list[JsonObject],
    "Slash commands of the session: `name`, `description`, `hint`, `choices`.",
)
EDITS: Final = PayloadField("edits", Name, "Id of the turn that this turn is a new version of.")
EPOCH: Final = PayloadField("epoch", str, "Id of this log of the session, which no other log has.")
FEEDBACK: Final = PayloadField(
    "feedback", TurnFeedback, "A user's feedback on the answer of the turn."
)
ORIGIN: Final = PayloadField("origin", str, "The program that began the turn, if no user did.")
OWNER: Final = PayloadField("owner", str, "The user to whom a session belongs.")
PINNED: Final = PayloadField("pinned", bool, "Whether a session is pinned to the top of the list.")
RENDERER: Final = PayloadField(
    "renderer",
    JsonObject,
    "What the renderer sent about itself: locale, time zone, theme, viewport.",
)
SETTINGS: Final = PayloadField(
    "settings", JsonObject, "The user's settings of the session; see `App(session_settings=…)`."
)
SHARED_STATE: Final = PayloadField(
    "sharedState", JsonObject, "The `turn.shared_state` of the agent, which renderers receive."
)
STATUS: Final = PayloadField(
    "status",
    Literal["completed", "failed", "cancelled", "waiting"],
    "How a turn ended; `waiting`: a crash ended it while one of its questions was open.",
)
TITLE: Final = PayloadField("title", str, "Title for people.")
VIEWER: Final = PayloadField("viewer", Name, "An admin who read a session of another user.")
WORKFLOW: Final = PayloadField("workflow", str, "Name of the agent.")


SESSION_FACTS: Final = FactFamily(
    "session",
    (
        "A session is created, renamed or pinned, or shows another branch; its `turn.state`, its "
        "`turn.shared_state`, its commands or the user's settings change; a user gives feedback "
        "on a turn; an admin reads the session of another user."
    ),
    types=[
        FactType(
            "session.created",
            EPOCH,
            WORKFLOW,
            *optional(OWNER, TITLE),
            written_ids=["thread_id"],
            effects=[CustomRule("head"), CustomRule("threads")],
        ),
        FactType(
            "session.updated",
            *optional(
                TITLE,
                PINNED,
                BRANCH,
                STATE.typed(JsonObject),
                SHARED_STATE.typed(JsonObject),
                COMMANDS,
                VIEWER,
                SETTINGS,
                FEEDBACK,
            ),
            effects=[CustomRule("head")],
        ),
    ],
)

THREAD_FACTS: Final = FactFamily(
    "thread",
    "A thread of a session is started or changed.",
    required_ids=["thread_id"],
    types=[
        FactType("thread.started", TITLE.optional(), effects=[CustomRule("threads")]),
        FactType(
            "thread.updated",
            REASON.optional(),
            written_ids=["status"],
            effects=[CustomRule("threads")],
        ),
    ],
)

TURN_FACTS: Final = FactFamily(
    "turn",
    "An input is accepted; its turn begins and ends.",
    required_ids=["thread_id", "turn_id"],
    types=[
        FactType(
            "turn.submitted",
            INPUT,
            *optional(RENDERER, EDITS, ORIGIN, ANSWERS),
            effects=[CustomRule("head"), CustomRule("threads")],
        ),
        FactType("turn.started", effects=[CustomRule("threads")]),
        FactType(
            "turn.completed",
            STATUS,
            USAGE.optional(),
            written_ids=["status"],
            effects=[CustomRule("threads"), CustomRule("tools")],
        ),
        FactType(
            "turn.failed",
            STATUS,
            USAGE.optional(),
            written_ids=["status", "status_reason"],
            effects=[CustomRule("threads"), CustomRule("tools"), CustomRule("incidents")],
        ),
    ],
)

FAMILIES: Final = (SESSION_FACTS, THREAD_FACTS, TURN_FACTS)
