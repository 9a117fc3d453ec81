"""Operations of programs on sessions, without a renderer.

Programs queue turns and may wait for their end, change shown components, offer commands, withdraw
the questions of interrupted turns, and list and delete sessions.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from arp.access.principal import Principal, User
from arp.live.live_session import LiveSession
from arp.protocol.errors import ResourceLimit
from arp.protocol.json_value import Json, JsonObject
from arp.protocol.messages import FINAL_STATUSES, MAX_ID_LENGTH, Command
from arp.protocol.patch import Update
from arp.record.wording import check_kind, encoded, plain, well_formed
from arp.session.asking import cancel_question
from arp.session.input.outside_change import change_shown
from arp.session.input.receive import PUSH_ID, InputSender, push
from arp.session.session_values import set_commands
from arp.store.session_list import MAX_PAGE, SessionMeta
from arp.turn.author_values import copied_json
from arp.turn.host import checked_commands

if TYPE_CHECKING:
    from arp.hub.hub import Hub
    from arp.hub.removal import Remainder

MAX_ORIGIN_CHARACTERS = 80
"""Most characters of a program's name, which every screen shows beside the input."""


_PUSH_ID = re.compile(rf"[ -~]{{1,{MAX_ID_LENGTH - len(PUSH_ID)}}}")
"""Ids that programs may give; with the prefix `PUSH_ID`, renderers see it as the id of an input."""


class PushedTurn:
    """Turn that a program queued."""

    __slots__ = ("_hub", "_owner", "id", "session_id")

    def __init__(self, hub: Hub, live: LiveSession, turn_id: str) -> None:
        self.id = turn_id
        self.session_id = live.id
        self._hub = hub
        self._owner = live.session.owner

    def __repr__(self) -> str:
        return f"PushedTurn(id={self.id!r}, session_id={self.session_id!r})"

    async def over(self) -> str:
        """Wait until the turn has ended; return `completed`, `failed` or `cancelled`.

        Raises:
            ArpError: The session was deleted, or left memory because it cannot be written.

        Cancel: Safe; the turn continues.
        """
        live = await self._hub.find(self.session_id, Principal(self._owner))
        with live.followed():
            while (status := live.session.status_of(self.id)) not in FINAL_STATUSES:
                # It has ended, and left memory or the shown branch.
                if status is None:
                    past = await self._hub.history.turn(live, self.id)
                    return past.turn.status if past and past.turn.status else "cancelled"
                await live.beyond(live.stored)
            await live.written()
        return status


class PushRequest(NamedTuple):
    """Arguments of `arp.app.App.push`."""

    text: str
    data: Mapping[str, Json] | None
    origin: str
    user: User | str | None
    push_id: str | None


async def push_turn(hub: Hub, session_id: str, request: PushRequest) -> PushedTurn:
    """Queue a turn in a session; load the session if needed.

    Raises:
        ArpError, TypeError, ValueError, StoreError: See `arp.app.App.push`.
    """
    text, data, origin, user, push_id = request
    for value, name in ((session_id, "session"), (text, "text"), (origin, "origin")):
        check_kind(value, str, name)
    if push_id is not None:
        check_kind(push_id, str, "id")
        if _PUSH_ID.fullmatch(push_id) is None:
            most = MAX_ID_LENGTH - len(PUSH_ID)
            raise ValueError(f"id: 1 to {most} printable ASCII characters, got {push_id!r:.100}")
    if user is not None and not isinstance(user, User | str):
        raise TypeError(f"user: expected a User, a name or None, got {type(user).__name__}")
    content: JsonObject = plain(dict(data or {}))
    text, origin = well_formed(text), " ".join(well_formed(origin).split())
    if not origin or len(origin) > MAX_ORIGIN_CHARACTERS:
        raise ValueError(f"origin: 1 to {MAX_ORIGIN_CHARACTERS} characters, got {origin!r:.100}")
    most = hub.settings.limits.max_message_bytes
    if len(encoded([content, text])) > most:
        raise ResourceLimit(f"push: more than {most} bytes", detail="max_message_bytes")
    hub.check_takes_input()
    known_as = User(user) if isinstance(user, str) else user
    live = await session_of(hub, session_id, known_as)
    sender = InputSender(user=known_as)
    turn_id, effects = push(live.session, text, content, origin, push_id, sender)
    hub.carry_out(live, effects)
    await live.written()
    return PushedTurn(hub, live, turn_id)


async def patch_shown(
    hub: Hub, session_id: str, surface: str, op: Update, user: User | str | None
) -> None:
    """Change a component of a session; load the session if needed.

    Raises:
        ArpError, TypeError, ValueError, StoreError: See `arp.app.App.patch`.
    """
    named = (session_id, "session"), (surface, "surface"), (op.target, "target"), (op.path, "path")
    for value, name in named:
        check_kind(value, str, name)
    hub.check_takes_input()
    live = await session_of(hub, session_id, User(user) if isinstance(user, str) else user)
    change_shown(live.session, surface, [copied_json(op)])
    live.mark()
    await live.written()


async def withdraw_questions(hub: Hub, session_id: str, turn_id: str) -> None:
    """Withdraw the open questions of a turn that a restart interrupted.

    Call it before the questions are asked again in another turn, so that no user answers in vain.

    Raises:
        SessionNotFound, StoreError: See `session_of`.
    """
    live = await session_of(hub, session_id, None)
    if turn_id == live.session.running:
        return
    for question in live.session.questions.of_turn(turn_id):
        cancel_question(live.session, question)
    live.mark()
    await live.written()


async def offer_commands(hub: Hub, session_id: str, commands: Iterable[Command]) -> None:
    """Offer slash commands in a session; load the session if needed.

    Raises:
        ArpError, TypeError, ValueError, StoreError: See `arp.app.App.set_commands`.
    """
    checked = checked_commands(commands)
    live = await session_of(hub, session_id, None)
    set_commands(live.session, None, checked)
    live.mark()
    await live.written()


async def all_sessions(hub: Hub, user: User | str | None) -> AsyncIterator[SessionMeta]:
    """Yield the rows of sessions; see `arp.app.App.sessions`.

    Raises:
        StoreError: The list cannot be read.
    """
    owner = user.name if isinstance(user, User) else user
    before: str | None = None
    while page := await hub.store.sessions(owner=owner, before=before, limit=MAX_PAGE):
        for one in page:
            yield one
        before = page[-1].cursor


async def delete_session(hub: Hub, session_id: str, user: User | str | None) -> list[Remainder]:
    """Delete a session; see `arp.app.App.delete_session`.

    Raises:
        SessionNotFound: It does not exist or belongs to another user.
        StoreError: See `Hub.delete`.
    """
    if user is None:
        owner = await hub.directory.owner(session_id) or ""
    else:
        owner = user if isinstance(user, str) else user.name
    return await hub.delete(session_id, Principal(owner))


async def session_of(hub: Hub, session_id: str, user: User | None) -> LiveSession:
    """Return a session of a user; with `None`, of any user.

    Raises:
        SessionNotFound: It does not exist or belongs to another user.
        StoreError: It cannot be read.
    """
    if user is not None:
        return await hub.find(session_id, Principal(user.name))
    live = hub.sessions.get(session_id)
    if live is not None:
        owner = live.session.owner
    else:
        meta = await hub.store.session(session_id)
        owner = meta.owner if meta is not None else ""
    return await hub.find(session_id, Principal(owner))
