"""The list of chats: its pages, and notification of changed rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct

from arp.protocol.connection.screen import TurnScreen
from arp.protocol.errors import InvalidMessage
from arp.protocol.tree import Node, Tree
from arp.session.recording.recorded import Batch, RecordedFact, TextBatch
from arp.session.session import Session
from arp.store.session_list import MAX_TURN_TEXT, Match, SessionMeta, TurnText, words_of
from arp.store.store import Store

_ENDS = frozenset(("turn.completed", "turn.failed"))

_TEXT_PROPS = {"text": "content", "markdown": "content"}
"""Prop that contains the text, by type of component; of the other types the title is used."""

Changed: TypeAlias = Callable[[SessionMeta | str], None]
"""Called with a new or changed row, or with the id of a deleted session."""


class ChatListQuery(Struct, frozen=True):
    """Query for a page of the list of chats."""

    owner: str
    query: str = ""
    workflow: str | None = None
    before: str | None = None
    """Position at which the previous page ended."""
    limit: int = 50


class Listing:
    """The chats of all users; each user sees their own."""

    def __init__(self, store: Store) -> None:
        self.rows: dict[str, SessionMeta] = {}
        """Stored rows of sessions in memory, by id."""
        self._store = store
        self._listeners: dict[str, dict[int, Changed]] = {}

    async def page(self, query: ChatListQuery) -> tuple[list[Match], str | None]:
        """Return a page of chats and the position of the next page.

        Pinned chats come first, then the others, both newest first.
        """
        # A position is `1~` (pinned) or `0~` (others), then the position in that group.
        group, _, before = (query.before or "1~").partition("~")
        matches: list[Match] = []
        for pinned in (True, False) if group != "0" else (False,):
            rest = query.limit - len(matches)
            found, more = await self._page_part(query, pinned, before or None, rest)
            matches += found
            if more is not None:
                return matches, f"{pinned:d}~{more}"
            before = ""
        return matches, None

    async def _page_part(
        self, query: ChatListQuery, pinned: bool, before: str | None, limit: int
    ) -> tuple[list[Match], str | None]:
        words, owner, workflow = words_of(query.query), query.owner, query.workflow
        if words:
            found = await self._store.search(
                words, owner=owner, workflow=workflow, pinned=pinned, before=before, limit=limit
            )
            return found.matches, found.next
        metas = await self._store.sessions(
            owner=owner, workflow=workflow, pinned=pinned, before=before, limit=limit
        )
        more = metas[-1].cursor if len(metas) == limit else None
        return [Match(meta) for meta in metas], more

    # -- listeners -------------------------------------------------------------------------------

    def listen(self, owner: str, listener: Changed) -> Callable[[], None]:
        """Call a listener when rows of an owner change; return a function that stops this."""
        mine = self._listeners.setdefault(owner, {})
        mine[id(listener)] = listener

        def stop() -> None:
            mine.pop(id(listener), None)
            # Another `listen` may have created a new entry for this owner since.
            if not mine and self._listeners.get(owner) is mine:
                del self._listeners[owner]

        return stop

    def changed(self, owner: str, change: SessionMeta | str) -> None:
        """Notify an owner's listeners of a durable row or of a deleted session."""
        for listener in list(self._listeners.get(owner, {}).values()):
            listener(change)


def rename(session: Session, title: str | None, pinned: bool | None) -> None:
    """Set the title or the pin of a session; `None` and equal values change nothing.

    Raises:
        InvalidMessage: Both are `None`.
    """
    if title is None and pinned is None:
        raise InvalidMessage("give title, pinned, or both", detail="title")
    changed: dict[str, str | bool] = {}
    if title is not None and " ".join(title.split()) != session.settings.name:
        changed["title"] = title[:1000]
    if pinned is not None and pinned != session.settings.pinned:
        changed["pinned"] = pinned
    if changed:
        session.record("session.updated", {**changed})


def texts_in(session: Session, batch: TextBatch | Batch) -> list[TurnText]:
    """Return the texts of the turns that ended in a batch."""
    if isinstance(batch, TextBatch):
        return []
    texts: list[TurnText] = []
    for one in batch.recorded:
        if isinstance(one, RecordedFact) and one.type in _ENDS:
            turn = session.turn(str(one.ids["turn_id"]))
            if turn is not None:
                texts.append(TurnText(turn.id, _text_of(turn, session.screen.main)))
    return texts


def _text_of(turn: TurnScreen, tree: Tree) -> str:
    """Return the input and output of a turn as text, at most `MAX_TURN_TEXT` characters."""
    pieces: list[str] = []
    for echo in turn.inputs:
        typed = echo.data.get("text") or echo.data.get("transcript")
        if isinstance(typed, str):
            pieces.append(typed[:MAX_TURN_TEXT])
    for root in tree.outputs.get(turn.id, ()):
        if sum(map(len, pieces)) < MAX_TURN_TEXT:
            pieces.append(_beginning(tree.nodes[root]))
    return "\n".join(filter(None, pieces))[:MAX_TURN_TEXT]


def _beginning(node: Node) -> str:
    """Return the beginning of a component's text or title, without joining the whole text."""
    path = _TEXT_PROPS.get(node.type, "title")
    value = node.own.get(path)
    pieces = [value[:MAX_TURN_TEXT]] if isinstance(value, str) else []
    size = sum(map(len, pieces))
    for piece in node.tail if path == "content" else ():
        if size >= MAX_TURN_TEXT:
            break
        pieces.append(piece)
        size += len(piece)
    return "".join(pieces)
