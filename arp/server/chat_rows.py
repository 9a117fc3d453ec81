"""A chat in a list."""

from __future__ import annotations

from arp.protocol.json_value import JsonObject
from arp.protocol.screen import ToolRun
from arp.store.said import Match
from arp.store.store import SessionMeta


def chat_row(meta: SessionMeta) -> JsonObject:
    """Gives a chat as lists have it."""
    return {
        "id": meta.id,
        "workflow_name": meta.workflow,
        "workflow_path": f"/{meta.workflow}",
        "title": meta.title,
        "pinned": meta.pinned,
        "owner": meta.owner,
        "created_at": meta.created_at,
        "updated_at": meta.updated_at,
        "message_count": meta.turn_count,
    }


def found_row(match: Match) -> JsonObject:
    """Gives a chat that was found, and where."""
    row = chat_row(match.meta)
    if match.turn_id is not None:
        row["match"] = {"turn_id": match.turn_id, "text": match.excerpt}
    return row


def tool_object(run: ToolRun) -> JsonObject:
    """Return one use of a tool as JSON; what is not known is left out."""
    return {
        "tool": run.tool,
        "args": run.args,
        "ok": run.ok,
        **({} if run.error is None else {"error": run.error}),
        **({} if run.result is None else {"result": run.result}),
        **({} if run.result_ref is None else {"result_ref": run.result_ref}),
        **({} if run.duration_ms is None else {"duration_ms": run.duration_ms}),
    }
