"""Projects a fact to the messages that show it, when it is recorded and when it is replayed.

Theory of operation. A fact results in at most one group of messages, and the last message of the
group carries `seq`. The messages before it either take effect only together with it (`render`,
`patch`) or do no harm if they are received twice (`turn`). So a renderer whose connection breaks
anywhere resumes from its last `seq`, and neither misses nor repeats anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from arp.protocol.blob_path import blob_path
from arp.protocol.components import Component
from arp.protocol.errors import ErrorPayload
from arp.protocol.json_value import JsonObject
from arp.protocol.messages import (
    AgentMessage,
    Command,
    CommandsMessage,
    Commit,
    Delta,
    DeltaPayload,
    ErrorMessage,
    InputEcho,
    Patch,
    Permission,
    Render,
    StateMessage,
    SurfaceInfo,
    SurfaceMessage,
    ToolEnd,
    ToolEndPayload,
    ToolProgress,
    ToolProgressPayload,
    ToolStart,
    ToolStartPayload,
    TurnMessage,
    TurnStatus,
)
from arp.protocol.patch import PatchOp
from arp.surface.change import Change, PatchChange, RenderChange

RESULT_BYTES = 2 << 10
"""Maximum size of a tool's result in a message, in bytes of UTF-8. The full result is a file."""


class StoredChange(Struct, frozen=True, omit_defaults=True):
    """A change in the payload of `artifact.changed`: either `render` or `patch` is set."""

    render: list[Component] | None = None
    patch: list[PatchOp] | None = None
    tool: str | None = None
    replace: bool = False


class At(Struct, frozen=True):
    """Position of a fact: its session, sequence number, turn and time."""

    session_id: str
    seq: int
    turn_id: str | None = None
    time: str | None = None
    """Time of the fact (RFC 3339); `None` until the fact is drained."""


def stored(changes: Sequence[Change]) -> list[StoredChange]:
    """Return changes in the form in which the ledger stores them."""
    return [
        StoredChange(render=change.components, tool=change.tool_name, replace=change.replace)
        if isinstance(change, RenderChange)
        else StoredChange(patch=change.ops)
        for change in changes
    ]


def restored(changes: Sequence[StoredChange]) -> list[Change]:
    """Return the changes of a ledger; the inverse of `stored`."""
    return [
        RenderChange(change.render, change.tool, change.replace)
        if change.render is not None
        else PatchChange(change.patch or [])
        for change in changes
    ]


def commit_messages(at: At, surface: str, changes: Sequence[Change]) -> list[AgentMessage]:
    """Return the messages of one commit, to be delivered together."""
    session_id, seq, turn_id = at.session_id, at.seq, at.turn_id
    out: list[AgentMessage] = []
    for change in changes:
        if isinstance(change, PatchChange):
            ops = change.ops
            patch = Patch(session_id=session_id, seq=seq, turn_id=turn_id, surface=surface, ops=ops)
            out.append(patch)
        else:
            render = Render(
                session_id=session_id,
                seq=seq,
                turn_id=turn_id,
                surface=surface,
                components=change.components,
                tool_name=change.tool_name,
                replace=change.replace,
            )
            out.append(render)
    out.append(Commit(session_id=session_id, seq=seq, turn_id=turn_id, surface=surface))
    return out


def surface_message(at: At, payload: JsonObject) -> SurfaceMessage:
    """Return the message that describes a surface, or reports that it is closed.

    It carries the `seq` of its fact only if the fact changes no components: otherwise the commit
    completes the group.
    """
    return SurfaceMessage(
        session_id=at.session_id,
        seq=None if "changes" in payload else at.seq,
        turn_id=at.turn_id,
        surface=payload["surface"],
        payload=msgspec.convert(payload.get("info", {}), SurfaceInfo),
        closed=payload.get("closed"),
    )


def _echo(
    at: At, stored_input: JsonObject, origin: str | None = None, edited: bool = False
) -> InputEcho:
    """Return the message that shows an input to every renderer."""
    return InputEcho(
        session_id=at.session_id,
        seq=at.seq,
        turn_id=at.turn_id,
        surface=stored_input.get("surface", "main"),
        input_type=stored_input["input_type"],
        data=stored_input["data"],
        source_component=stored_input.get("source_component"),
        id=stored_input.get("id"),
        at=at.time,
        edited=edited,
        origin=origin,
    )


def _turn(
    at: At, status: TurnStatus, permission: Permission | None = None, is_last: bool = True
) -> TurnMessage:
    """Return the status of a turn; the message carries `seq` if it is the last of its group."""
    seq = at.seq if is_last else None
    return TurnMessage(
        session_id=at.session_id, seq=seq, turn_id=at.turn_id, status=status, permission=permission
    )


def _submitted(at: At, payload: JsonObject, _: Mapping[str, Any]) -> list[AgentMessage]:
    return [_echo(at, payload["input"], payload.get("origin"))]


def _updated(at: At, payload: JsonObject, _: Mapping[str, Any]) -> list[AgentMessage]:
    if isinstance(state := payload.get("sharedState"), dict):
        return [StateMessage(session_id=at.session_id, seq=at.seq, state=state)]
    try:
        commands = msgspec.convert(payload.get("commands"), tuple[Command, ...])
    except msgspec.ValidationError:  # no commands, or those of another program's ledger
        return []
    return [CommandsMessage(session_id=at.session_id, seq=at.seq, commands=commands)]


def _queue(at: At, payload: JsonObject, _: Mapping[str, Any]) -> list[AgentMessage]:
    edited, paused = payload.get("input"), payload.get("paused", False)
    # An edit also shows the new input, which then completes the group. 0 is no position, so none of
    # the turn messages carries `seq`.
    last = len(payload["queued"]) if edited is None else 0
    out: list[AgentMessage] = [
        TurnMessage(
            session_id=at.session_id,
            seq=at.seq if position == last else None,
            turn_id=turn_id,
            status="queued",
            position=position,
            paused=paused,
        )
        for position, turn_id in enumerate(payload["queued"], 1)
    ]
    return out if edited is None else [*out, _echo(at, edited, edited=True)]


def _started(at: At, _: JsonObject, __: Mapping[str, Any]) -> list[AgentMessage]:
    return [_turn(at, "running")]


def _delta(at: At, payload: JsonObject, _: Mapping[str, Any]) -> list[AgentMessage]:
    return [_text(at, DeltaPayload(payload.get("text", "")))]


def _thought(at: At, payload: JsonObject, _: Mapping[str, Any]) -> list[AgentMessage]:
    return [_text(at, DeltaPayload(payload.get("text", ""), kind="thinking"))]


def _text(at: At, payload: DeltaPayload) -> Delta:
    return Delta(session_id=at.session_id, seq=at.seq, turn_id=at.turn_id, payload=payload)


def _tool_started(at: At, payload: JsonObject, ids: Mapping[str, Any]) -> list[AgentMessage]:
    start = ToolStartPayload(payload["tool"], payload["args"], ids["tool_call_id"])
    return [ToolStart(session_id=at.session_id, seq=at.seq, turn_id=at.turn_id, payload=start)]


def _tool_progress(at: At, payload: JsonObject, ids: Mapping[str, Any]) -> list[AgentMessage]:
    progress = ToolProgressPayload(
        ids["tool_call_id"], payload["text"], payload.get("done"), payload.get("total")
    )
    return [
        ToolProgress(session_id=at.session_id, seq=at.seq, turn_id=at.turn_id, payload=progress)
    ]


def _result(preview: str, characters: int | None) -> str:
    """Return the part of a result that is sent to renderers; a final `…` marks a cut."""
    encoded = preview.encode()
    if len(encoded) <= RESULT_BYTES and (characters is None or characters <= len(preview)):
        return preview
    # The ellipsis takes three bytes. `ignore` drops a character that the cut divides.
    return encoded[: RESULT_BYTES - 3].decode(errors="ignore") + "…"


def _tool_result(at: At, payload: JsonObject, ids: Mapping[str, Any]) -> list[AgentMessage]:
    ref, preview = ids.get("output_ref"), payload.get("preview")
    end = ToolEndPayload(
        payload["tool"],
        ok=True,
        call_id=ids["tool_call_id"],
        result=None if preview is None else _result(preview, payload.get("characters")),
        result_ref=None if ref is None else blob_path(at.session_id, ref, f"{payload['tool']}.txt"),
        duration_ms=payload.get("durationMs"),
    )
    return [_tool_end(at, end)]


def _tool_failed(at: At, payload: JsonObject, ids: Mapping[str, Any]) -> list[AgentMessage]:
    end = ToolEndPayload(
        payload["tool"],
        ok=False,
        call_id=ids["tool_call_id"],
        error=payload.get("error", "failed"),
        duration_ms=payload.get("durationMs"),
    )
    return [_tool_end(at, end)]


def _tool_end(at: At, payload: ToolEndPayload) -> ToolEnd:
    return ToolEnd(session_id=at.session_id, seq=at.seq, turn_id=at.turn_id, payload=payload)


def _artifact(at: At, payload: JsonObject, _: Mapping[str, Any]) -> list[AgentMessage]:
    described: list[AgentMessage] = []
    if "info" in payload:
        described.append(surface_message(at, payload))
    if "changes" not in payload:  # only a description, or a file that no surface shows
        return described
    changes = restored(msgspec.convert(payload["changes"], list[StoredChange]))
    return [*described, *commit_messages(at, payload["surface"], changes)]


def _required(at: At, payload: JsonObject, ids: Mapping[str, Any]) -> list[AgentMessage]:
    permission = None
    if "askedBy" in payload:
        permission = Permission(
            payload["component"]["id"],
            payload["tool"],
            ids.get("tool_call_id") or "",
            payload["surface"],
            ["once", "session"] if "sessionRule" in payload else ["once"],
            payload.get("digest"),
            payload.get("args"),
            payload.get("sessionRule"),
            payload.get("editable", False),
            payload.get("expiresAt"),
        )
    return [_turn(at, "waiting", permission)]


def _resolved(at: At, payload: JsonObject, _: Mapping[str, Any]) -> list[AgentMessage]:
    out: list[AgentMessage] = []
    answer = payload.get("input")
    if payload.get("resumes"):
        out.append(_turn(at, "running", is_last=not answer))
    elif (ends := payload.get("ends")) is not None:
        out.append(_turn(at, ends, is_last=not answer))
    if answer:
        out.append(_echo(at, answer))
    return out


def _ended(at: At, payload: JsonObject, _: Mapping[str, Any]) -> list[AgentMessage]:
    commit = Commit(
        session_id=at.session_id,
        seq=at.seq,
        turn_id=at.turn_id,
        final=True,
        usage=payload.get("usage"),
        at=at.time,
    )
    return [_turn(at, payload["status"], is_last=False), commit]


def _error(at: At, payload: JsonObject, _: Mapping[str, Any]) -> list[AgentMessage]:
    error = msgspec.convert(payload, ErrorPayload)
    return [ErrorMessage(session_id=at.session_id, seq=at.seq, turn_id=at.turn_id, payload=error)]


_SHOWN: dict[str, Callable[[At, JsonObject, Mapping[str, Any]], list[AgentMessage]]] = {
    "session.updated": _updated,
    "turn.submitted": _submitted,
    "queue.changed": _queue,
    "turn.started": _started,
    "model.delta": _delta,
    "reasoning.delta": _thought,
    "tool.args": _tool_started,
    "tool.progress": _tool_progress,
    "tool.result": _tool_result,
    "tool.failed": _tool_failed,
    "artifact.changed": _artifact,
    "action.required": _required,
    "action.resolved": _resolved,
    "turn.completed": _ended,
    "turn.failed": _ended,
    "runtime.error": _error,
}


def project(
    at: At, type_name: str, payload: JsonObject, ids: Mapping[str, Any]
) -> list[AgentMessage]:
    """Return the messages that show a fact; an empty list for facts that are not shown.

    Args:
        at: Position of the fact.
        type_name: Type of the fact.
        payload: Payload of the fact, plain JSON.
        ids: Other correlation ids of the fact, by field name (`tool_call_id`, …).

    Source: ledger.md 2.
    """
    show = _SHOWN.get(type_name)
    return show(at, payload, ids) if show else []
