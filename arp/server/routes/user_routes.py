"""Routes for settings of a session and for feedback on answers.

The form of the settings is fetched and saved over HTTP; it is not a surface of the session. A
surface would have to belong to a turn, and clients of the protocol's v0.1 draft would draw the form
but could not send its values. All settings are saved together, because a validator may read several
fields.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from arp.hub.user_actions import change_settings, give_feedback, settings_form
from arp.protocol.components import as_object
from arp.protocol.errors import InvalidMessage
from arp.protocol.json_value import JsonObject
from arp.protocol.validate import explain, fits
from arp.server.answers import json_response, shown_response
from arp.server.state import requester
from arp.turn.feedback import Rating

MAX_BODY_BYTES = 64 << 10


class FeedbackBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Body of a request with feedback on an answer."""

    turn_id: str
    rating: Rating
    comment: str = ""


class SettingsBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Body of a request that changes settings: fields of the form by name."""

    fields: JsonObject


async def _body(request: Request, kind: type[Struct]) -> Struct:
    body = await requester(request).state.intake.body(request, MAX_BODY_BYTES)
    try:
        given = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        raise InvalidMessage("body: expected a JSON object") from None
    if not fits(given, kind):
        raise InvalidMessage(explain(given, kind, "body"))
    return msgspec.convert(given, kind)


async def _settings(request: Request) -> Response:
    asker, session_id = requester(request), request.path_params["session_id"]
    form = await settings_form(await asker.hub(), asker.principal, session_id)
    return shown_response(as_object(form))


async def _set(request: Request) -> Response:
    asker, session_id = requester(request), request.path_params["session_id"]
    given = await _body(request, SettingsBody)
    assert isinstance(given, SettingsBody)
    chosen = await change_settings(await asker.hub(), asker.principal, session_id, given.fields)
    return shown_response(chosen)


async def _feedback(request: Request) -> Response:
    asker, session_id = requester(request), request.path_params["session_id"]
    source = await asker.read(session_id)
    return json_response(source.session.settings.feedback)


async def _rate(request: Request) -> Response:
    asker, session_id = requester(request), request.path_params["session_id"]
    given = await _body(request, FeedbackBody)
    assert isinstance(given, FeedbackBody)
    made = await give_feedback(
        await asker.hub(), asker.principal, session_id, given.turn_id, given.rating, given.comment
    )
    return json_response({"rating": made.rating, "comment": made.comment})


USER_ROUTES = [
    Route("/_api/settings/{session_id:path}", _settings, methods=["GET"]),
    Route("/_api/settings/{session_id:path}", _set, methods=["PUT"]),
    Route("/_api/feedback/{session_id:path}", _feedback, methods=["GET"]),
    Route("/_api/feedback/{session_id:path}", _rate, methods=["POST"]),
]
