"""Turns of a session for pages of history, including turns that are no longer in memory.

Theory of operation. The recent turns are in memory. A turn does not change after it left memory, so
it is read from the archive. If the archive lacks it, the log is read from its beginning until all
wanted turns have been evicted again, and the archive is filled on the way. The archive stores turns
by number, and a number means different turns on different branches. So a session with branches
reads its log instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import aclosing

import msgspec
from msgspec import Struct

from arp.hub.readers.session_reader import ReadableSession
from arp.live.archive import PAGE_TURNS
from arp.live.states import MANY_TURNS, States
from arp.session.session import Session
from arp.session.tracking.branches import Branches
from arp.session.tracking.window import PastTurn
from arp.store.store import Store

PAGE = 1000
"""Facts per read of the store."""


class _FactTime(Struct):
    timestamp: str


_timed_decoder = msgspec.json.Decoder(_FactTime)


class History:
    """Past turns of a hub's sessions."""

    def __init__(self, store: Store, states: States) -> None:
        self._store = store
        self._states = states
        self._archive = states.archive

    async def page(self, source: ReadableSession, before: str | None, limit: int) -> list[PastTurn]:
        """Return a page of turns in order.

        Args:
            source: The session.
            before: Id of the turn after the page; `None` or an unknown id means the newest page.
            limit: Most turns of the page.

        Raises:
            StoreError: The log cannot be read.
        """
        end = await self._number_of(source, before) if before is not None else None
        if end is None:
            end = source.session.screen.count + 1
        found = await self._by_number(source, set(range(max(1, end - limit), end)))
        return [found[number] for number in sorted(found)]

    async def turn(self, source: ReadableSession, turn_id: str) -> PastTurn | None:
        """Return a turn; `None` if it does not exist.

        Raises:
            StoreError: The log cannot be read.
        """
        screen = source.session.screen
        here = screen.turns.get(turn_id)
        if here is not None:
            return screen.past(here)
        branches = source.session.branches
        if branches is not None:
            # The screen and the archive know only turns of the shown branch.
            return await self._on_any_branch(source, branches, turn_id)
        number = _number_in(turn_id)
        if number is None and not screen.named:
            return None
        if number is not None and not 0 < number <= screen.count:
            return None
        if number is not None:
            past = (await self._by_number(source, {number})).get(number)
            return past if past is not None and past.turn.id == turn_id else None
        return await self._by_chosen_id(source, turn_id)

    async def _on_any_branch(
        self, source: ReadableSession, branches: Branches, turn_id: str
    ) -> PastTurn | None:
        if turn_id not in branches:
            return None
        branch = [*branches.before(turn_id), turn_id]
        found = await self._read(source, lambda one: one.turn.id == turn_id, 1, branch)
        return found[0] if found else None

    async def _number_of(self, source: ReadableSession, turn_id: str) -> int | None:
        branches = source.session.branches
        if branches is not None:
            shown = branches.shown
            return shown.index(turn_id) + 1 if turn_id in shown else None
        screen = source.session.screen
        number = screen.numbers.get(turn_id) or _number_in(turn_id)
        if number is not None:
            return number if 0 < number <= screen.count else None
        past = await self.turn(source, turn_id)
        return past.number if past is not None else None

    async def _by_number(self, source: ReadableSession, wanted: set[int]) -> dict[int, PastTurn]:
        """Return the turns with these numbers, from memory, the archive or the log."""
        screen = source.session.screen
        departed = screen.departed or ()
        here = [*departed, *(screen.past(turn) for turn in screen.turns.values())]
        found = {past.number: past for past in here if past.number in wanted}
        if wanted - found.keys() and source.session.branches is None:
            found |= await self._archive.read(source.session.head, wanted - found.keys())
        if missing := wanted - found.keys():
            loaded = await self._read(source, lambda past: past.number in missing, len(missing))
            found |= {past.number: past for past in loaded}
        return found

    async def _by_chosen_id(self, source: ReadableSession, turn_id: str) -> PastTurn | None:
        """Return an evicted turn with an id that a client chose.

        Such an id does not contain the number, so the archive is searched from its newest page.
        """
        screen = source.session.screen
        last = min(screen.numbers.values(), default=screen.count)
        matches = [past for past in screen.departed or () if past.turn.id == turn_id]
        for end in range(last, 0, -PAGE_TURNS):
            if matches:
                return matches[0]
            numbers = range(max(1, end - PAGE_TURNS + 1), end + 1)
            page = await self._archive.read(source.session.head, numbers)
            matches = [past for past in page.values() if past.turn.id == turn_id]
        matches = matches or await self._read(source, lambda past: past.turn.id == turn_id, 1)
        return matches[0] if matches else None

    async def _read(
        self,
        source: ReadableSession,
        is_wanted: Callable[[PastTurn], bool],
        most: int,
        shown: list[str] | None = None,
    ) -> list[PastTurn]:
        """Return wanted turns of one branch, read from the log.

        Args:
            source: The session.
            is_wanted: Returns whether a turn is wanted.
            most: Number of wanted turns. Reading stops when this number is found; the result may
                have a few more.
            shown: Ids of the turns of the branch; all of them can be found. `None` means the branch
                that is shown; then only evicted turns can be found.
        """
        found: list[PastTurn] = []
        to_archive: list[PastTurn] = []
        branches, durable = source.session.branches, source.stored
        session = self._empty_branch(source, shown)
        through = self._states.readable_through(session.id)
        async with aclosing(self._states.follow(session, through)) as pieces:
            async for _ in pieces:
                departed = session.screen.take_departed()
                found += filter(is_wanted, departed)
                # Without branches the numbers are unambiguous, so these turns can be archived.
                to_archive += departed if branches is None else ()
                if len(to_archive) >= MANY_TURNS:
                    await self._states.store_turns(session.head, durable, to_archive)
                    to_archive.clear()
                if len(found) >= most:
                    return found
        if shown is not None:
            screen = session.screen
            found += filter(is_wanted, [screen.past(turn) for turn in screen.turns.values()])
        return found

    def _empty_branch(self, source: ReadableSession, shown: list[str] | None) -> Session:
        """Return an empty session that will show the same branch, or the turns of `shown`."""
        branches = source.session.branches
        if shown is None and branches is not None:
            shown = branches.shown
        head = source.session.head
        return self._states.new(head) if shown is None else self._states.planned(head, shown)

    async def times(self, session_id: str, turns: Iterable[PastTurn]) -> dict[int, tuple[str, str]]:
        """Return when turns began and when they last changed, by number, as RFC 3339.

        A time is empty if its fact is not durable yet.

        Raises:
            StoreError: The log cannot be read.
        """
        sequences = {one.number: _first_and_last(one) for one in turns}
        wanted = sorted({sequence for pair in sequences.values() for sequence in pair if sequence})
        times: dict[int, str] = {0: ""}
        while wanted:
            chunk = await self._store.read(session_id, wanted[0] - 1, PAGE)
            if not chunk:
                break
            first, last = chunk[0][0], chunk[-1][0]
            for sequence in wanted:
                if sequence <= last:
                    times[sequence] = _timed_decoder.decode(chunk[sequence - first][1]).timestamp
            wanted = [sequence for sequence in wanted if sequence > last]
        return {
            number: (times.get(began, ""), times.get(ended, ""))
            for number, (began, ended) in sequences.items()
        }


def _first_and_last(past: PastTurn) -> tuple[int, int]:
    """Return the sequences of a turn's first fact and of its last change; 0 if there is none."""
    inputs = past.turn.inputs
    return (inputs[0].seq or 0) if inputs else 0, past.turn.seq


def _number_in(turn_id: str) -> int | None:
    """Return the number in a turn id that the session generated (`t7`); `None` for other ids."""
    number = turn_id[1:]
    is_own = turn_id[:1] == "t" and number.isascii() and number.isdigit() and len(number) < 16
    return int(number) if is_own else None
