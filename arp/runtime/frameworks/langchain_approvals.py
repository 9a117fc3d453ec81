"""Asks people about the tool calls that LangChain's `HumanInTheLoopMiddleware` interrupts.

The middleware asks about all calls of an answer together (`batched`) or about each call separately
(`per_call`). It names the decisions that a call allows: `approve`, `edit`, `reject` and `respond`.
With `respond`, a person answers in place of the tool. LangChain is not imported here: interrupts
are plain objects.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from arp.protocol.json_value import Json, JsonObject
from arp.runtime.contract.task_runtime import TaskTurn

DENIED = "The user denied it."
ALL = frozenset(("approve", "edit", "reject"))
"""Decisions that are allowed if the middleware does not name any."""


async def decided_by_person(turn: TaskTurn, interrupt_id: str, value: Any, schema: Json) -> Json:
    """Return the answer to an interrupt of the middleware; `None` for any other interrupt.

    Args:
        turn: Turn that asks.
        interrupt_id: Id that stays the same for the same interrupt, also after a restart.
        value: Value of the interrupt.
        schema: JSON Schema of the answer; `None` if there is none.
    """
    if not isinstance(value, Mapping):
        return None
    if value.get("type") == "tool_approval":
        call_id = str(value.get("tool_call_id") or interrupt_id)
        return await _decision(turn, call_id, value, _decisions_of_schema(schema))
    requests = value.get("action_requests")
    if not isinstance(requests, list):
        return None
    configs = {one.get("action_name"): one for one in value.get("review_configs") or ()}
    decisions = []
    for number, action in enumerate(requests):
        allowed = configs.get(action["name"], {}).get("allowed_decisions")
        call_id = _open_call(turn, action) or f"{interrupt_id}-{number}"
        decisions.append(_decision(turn, call_id, action, frozenset(allowed or ALL)))
    return {"decisions": await asyncio.gather(*decisions)}


async def _decision(
    turn: TaskTurn, call_id: str, action: Mapping[str, Any], allowed: frozenset[str]
) -> JsonObject:
    name, args = str(action["name"]), dict(action["args"])
    message = str(action.get("description") or "")
    if not allowed & {"approve", "edit"}:  # the person answers in place of the tool
        question = {**args, "question": message or f"Answer for {name}"}
        answer = await turn.answered(f"{call_id}-answer", question)
        if answer is None and "reject" in allowed:
            return {"type": "reject", "message": DENIED}
        return {"type": "respond", "message": DENIED if answer is None else str(answer)}
    response = await turn.allowed(
        call_id, name, args, message=message, takes_updated_input="edit" in allowed
    )
    if response.decision == "deny":
        # If the middleware allows no `reject`, the denial is sent as the result of the tool.
        kind = "reject" if "reject" in allowed or "respond" not in allowed else "respond"
        return {"type": kind, "message": response.message or DENIED}
    if response.updated_input is not None:
        return {"type": "edit", "edited_action": {"name": name, "args": response.updated_input}}
    # If only edits are allowed, an approval is an edit that changes nothing.
    if "approve" not in allowed:
        return {"type": "edit", "edited_action": {"name": name, "args": args}}
    return {"type": "approve"}


def _open_call(turn: TaskTurn, action: Mapping[str, Any]) -> str:
    """Return the id of an action's open call; empty if the call was not emitted."""
    wanted = (action["name"], action["args"])
    return next((call_id for call_id, call in turn.open_calls.items() if call == wanted), "")


def _decisions_of_schema(schema: Json) -> frozenset[str]:
    """Return the decisions that the schema of an answer allows."""
    if not isinstance(schema, dict):
        return ALL
    mapping = (schema.get("discriminator") or {}).get("mapping")
    if isinstance(mapping, dict):
        return frozenset(mapping)
    one = (schema.get("properties") or {}).get("type") or {}
    return frozenset([one["const"]]) if "const" in one else ALL
