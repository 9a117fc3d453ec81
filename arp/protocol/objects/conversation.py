"""Conversion between messages of the session dialect and requests of `ArpConversation`.

Both sides use this module, so that a conversation is the same in both dialects. The content of
surfaces (`ArpSurface`) and acknowledgements (`ArpInput`) have operations of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from msgspec import UNSET, Struct

from arp.protocol.messages import (
    AgentMessage,
    CommandsMessage,
    Delta,
    DeltaPayload,
    ErrorMessage,
    InputEcho,
    SessionReady,
    SurfaceMessage,
    ToolEnd,
    ToolProgress,
    ToolStart,
    ToolStartPayload,
    TurnMessage,
)
from arp.protocol.objects.messages import (
    ConversationCommandsRequest,
    ConversationDeltaRequest,
    ConversationErrorRequest,
    ConversationInputRequest,
    ConversationOpenedRequest,
    ConversationSurfaceRequest,
    ConversationToolEndRequest,
    ConversationToolProgressRequest,
    ConversationToolStartRequest,
    ConversationTurnRequest,
)

MAIN = "main"

IdOf: TypeAlias = Callable[[str], int | None]
"""Function from the name of a surface to its id; `None` for `main`."""

NameOf: TypeAlias = Callable[[int | None], str]
"""Function from the id of a surface to its name."""


def as_request(message: AgentMessage, id_of: IdOf) -> Struct | None:
    """Return a message as a request of `ArpConversation`; `None` if there is no such request."""
    match message:
        case SessionReady():
            return ConversationOpenedRequest(
                message.session_id,
                message.epoch,
                message.seq,
                message.resume,
                message.workflow,
                message.older,
                None if message.state is UNSET else message.state,
                message.gaps or None,
            )
        case Delta(payload=text):
            return ConversationDeltaRequest(
                text.delta,
                message.seq,
                message.turn_id,
                id_of(message.surface),
                text.target,
                text.kind,
                message.behind,
            )
        case ToolStart(payload=start):
            return ConversationToolStartRequest(
                start.tool, start.args, start.call_id, message.seq, message.turn_id, message.behind
            )
        case ToolProgress(payload=progress):
            return ConversationToolProgressRequest(progress, message.seq, message.turn_id)
        case ToolEnd(payload=end):
            return ConversationToolEndRequest(end, message.seq, message.turn_id)
        case TurnMessage():
            return ConversationTurnRequest(
                message.status,
                message.turn_id or "",
                message.seq,
                message.position,
                message.permission,
                message.paused,
            )
        case InputEcho():
            return _input(message, id_of)
        case ErrorMessage():
            return ConversationErrorRequest(
                message.payload, message.seq, message.turn_id, message.behind
            )
        case CommandsMessage():
            return ConversationCommandsRequest(message.commands, message.seq)
        case SurfaceMessage():
            return ConversationSurfaceRequest(
                message.surface, message.payload, message.seq, message.turn_id, message.closed
            )
        case _:
            return None


def _input(message: InputEcho, id_of: IdOf) -> ConversationInputRequest:
    return ConversationInputRequest(
        message.input_type,
        message.data,
        message.seq,
        message.turn_id,
        id_of(message.surface),
        message.source_component,
        message.id,
        message.behind,
        message.versions,
        message.edited,
        message.at,
        message.origin,
    )


def as_message(request: Struct, session_id: str, name_of: NameOf) -> AgentMessage | None:
    """Return a request of `ArpConversation` as a message; `None` for other requests."""
    match request:
        case ConversationOpenedRequest():
            return _ready(request)
        case ConversationDeltaRequest():
            return Delta(
                session_id=session_id,
                seq=request.seq,
                turn_id=request.turn_id,
                surface=name_of(request.surface_id),
                payload=DeltaPayload(request.delta, request.target, request.kind),
                behind=request.behind,
            )
        case ConversationToolStartRequest():
            return ToolStart(
                session_id=session_id,
                seq=request.seq,
                turn_id=request.turn_id,
                payload=ToolStartPayload(request.tool, request.args, request.call_id or ""),
                behind=request.behind,
            )
        case ConversationToolProgressRequest(progress, seq, turn_id):
            return ToolProgress(session_id=session_id, seq=seq, turn_id=turn_id, payload=progress)
        case ConversationToolEndRequest(end, seq, turn_id):
            return ToolEnd(session_id=session_id, seq=seq, turn_id=turn_id, payload=end)
        case ConversationTurnRequest():
            return TurnMessage(
                session_id=session_id,
                seq=request.seq,
                turn_id=request.turn_id,
                status=request.status,
                position=request.position,
                permission=request.permission,
                paused=request.paused,
            )
        case ConversationInputRequest():
            return _echo(request, session_id, name_of)
        case ConversationErrorRequest(error, seq, turn_id, behind):
            return ErrorMessage(
                payload=error, session_id=session_id, seq=seq, turn_id=turn_id, behind=behind
            )
        case ConversationCommandsRequest(commands, seq):
            return CommandsMessage(session_id=session_id, seq=seq, commands=commands)
        case ConversationSurfaceRequest(name, info, seq, turn_id, closed):
            return SurfaceMessage(
                session_id=session_id,
                seq=seq,
                turn_id=turn_id,
                surface=name,
                payload=info,
                closed=closed,
            )
        case _:
            return None


def _ready(request: ConversationOpenedRequest) -> SessionReady:
    return SessionReady(
        session_id=request.session_id,
        epoch=request.epoch,
        seq=request.seq,
        resume=request.resume,
        workflow=request.workflow,
        older=request.older,
        state=UNSET if request.state is None else request.state,
        gaps=request.gaps or {},
    )


def _echo(request: ConversationInputRequest, session_id: str, name_of: NameOf) -> InputEcho:
    return InputEcho(
        session_id=session_id,
        seq=request.seq,
        turn_id=request.turn_id,
        surface=name_of(request.surface_id),
        input_type=request.input_type,
        data=request.data,
        source_component=request.source_component,
        id=request.input_id,
        behind=request.behind,
        versions=request.versions,
        edited=request.edited,
        at=request.at,
        origin=request.origin,
    )
