"""User actions outside of turns: rating answers and changing settings."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from arp.access.principal import Principal, User
from arp.protocol.components import Component
from arp.protocol.errors import InvalidMessage, UnknownObject
from arp.protocol.json_value import Json, JsonObject
from arp.session.session_values import choose_settings
from arp.turn.feedback import MAX_COMMENT_CHARACTERS, Feedback, Rating
from arp.turn.user_settings import UserSettings

if TYPE_CHECKING:
    from arp.hub.hub import Hub

logger = logging.getLogger(__name__)


async def give_feedback(
    hub: Hub, principal: Principal, session_id: str, turn_id: str, rating: Rating, comment: str
) -> Feedback:
    """Record a user's rating of a turn, durably, and pass it to the app.

    Raises:
        SessionNotFound: The session does not exist or belongs to another user.
        UnknownObject: The turn does not exist.
        InvalidMessage: The comment is too long.
        PermissionDenied: The session is a recording.
    """
    if len(comment) > MAX_COMMENT_CHARACTERS:
        raise InvalidMessage(f"comment: more than {MAX_COMMENT_CHARACTERS} characters")
    hub.check_takes_input()
    live = await hub.find(session_id, principal)
    past = await hub.history.turn(live, turn_id)
    if past is None:
        raise UnknownObject(f"no turn {turn_id!r:.80}", detail=turn_id)
    payload: JsonObject = {"rating": rating}
    if comment.strip():
        payload["comment"] = comment.strip()
    live.session.in_turn("session.updated", turn_id, {"feedback": payload})
    live.mark()
    await live.written()
    echo = next(iter(past.turn.inputs), None)
    typed = echo.data.get("text", "") if echo is not None else ""
    question = typed if isinstance(typed, str) else ""
    given = live.session.settings.feedback.get(turn_id, payload)
    made = Feedback(
        session_id,
        turn_id,
        rating,
        str(given.get("comment", "")),
        User(principal.name),
        question,
        past.text,
    )
    for handler in hub.app.feedback_handlers:
        hub.runner.start_handler(_call_handler(handler, made))
    return made


async def _call_handler(handler: Callable[[Feedback], Any], feedback: Feedback) -> None:
    """Call a handler of the app; it may be a plain function, and its errors are logged."""
    try:
        if inspect.iscoroutinefunction(handler):
            await handler(feedback)
        else:
            made = await asyncio.to_thread(handler, feedback)
            if inspect.isawaitable(made):
                await made
    except Exception:
        logger.exception("on_feedback failed for turn %s", feedback.turn_id)


def _settings(hub: Hub) -> UserSettings:
    if hub.app.user_settings is None:
        raise UnknownObject("the app has no settings for sessions", detail="settings")
    return hub.app.user_settings


async def settings_form(hub: Hub, principal: Principal, session_id: str) -> Component:
    """Return a form with the settings of a session.

    Raises:
        SessionNotFound: The session does not exist or belongs to another user.
        UnknownObject: The app has no settings.
    """
    source = await hub.reader.read(session_id, principal)
    return _settings(hub).form(source.session.chosen_settings)


async def change_settings(
    hub: Hub, principal: Principal, session_id: str, fields: Json
) -> JsonObject:
    """Apply an answer to the settings form, durably; return the new settings.

    Raises:
        InvalidAnswer: A field has an invalid value; nothing changed.
        SessionNotFound, UnknownObject: See `settings_form`.
        PermissionDenied: The session is a recording.
    """
    hub.check_takes_input()
    live = await hub.find(session_id, principal)
    chosen = _settings(hub).read(live.session.chosen_settings, fields)
    choose_settings(live.session, chosen)
    live.mark()
    await live.written()
    return chosen
