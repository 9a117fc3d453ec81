"""What a second process does with its store: `python -m arp.conformance.store.writer_roles …`.

Arguments: ROLE MODULE:FACTORY DIRECTORY. The process prints a line for what the store acknowledged,
and writes or waits until it is killed.
"""

from __future__ import annotations

import asyncio
import pkgutil
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Final

from arp.conformance.store.sample_facts import facts, last_of, meta, put
from arp.store.session_list import TurnText
from arp.store.store import SessionWrite, Store, append_all

UNITS: Final = tuple(frozenset({f"s{number}", f"s{number + 1}"}) for number in range(0, 8, 2))
"""Pairs of sessions that `stream` writes together."""

GROUPS: Final = (UNITS[:2], UNITS[2:])
"""Units that `stream` writes in one call; the calls of different groups overlap."""

APPENDED: Final = 5
"""Number of facts that `append` and `save` append."""

MODEL: Final = b"\x00model" * 1000
"""Model that `save` stores."""


async def hold(_: Store) -> None:
    """Only keep the store open."""
    say("open")


async def append(store: Store) -> None:
    """Append facts, a row and a text once."""
    write = SessionWrite("s1", 0, facts(1, APPENDED), meta("s1"), [TurnText("t1", "violet")])
    await append_all(store, [write])
    say("appended")


async def save(store: Store) -> None:
    """Save a model once."""
    await put(store, 1, APPENDED)
    await store.save_model("s1", "thread", APPENDED, MODEL)
    say("saved")


async def delete(store: Store) -> None:
    """Delete a session and note a removal."""
    await store.note_removal("files", "s1")
    await store.delete("s1")
    say("deleted")


async def stream(store: Store) -> None:
    """Append to several sessions for ever; print the acknowledged sequence of each."""
    await asyncio.gather(*(_stream_to(store, group) for group in GROUPS))


async def _stream_to(store: Store, units: tuple[frozenset[str], ...]) -> None:
    names = sorted(name for unit in units for name in unit)
    last = {name: await last_of(store, name) for name in names}
    turn = 0
    while True:
        turn += 1
        # Both sessions of a unit get the same number of facts, so they always have the same length.
        batch = [
            SessionWrite(name, last[name], facts(last[name] + 1, last[name] + turn % 5 + 1, name))
            for name in names
        ]
        refused = await store.append(batch, units)
        if refused:
            raise next(iter(refused.values()))
        last = {name: sequence + turn % 5 + 1 for name, sequence in last.items()}
        say(" ".join(f"{name}={sequence}" for name, sequence in last.items()))


ROLES: Final[Mapping[str, Callable[[Store], Awaitable[None]]]] = {
    role.__name__: role for role in (hold, append, save, delete, stream)
}


def say(line: str) -> None:
    """Write a line to the suite."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


async def main(role: str, factory: str, directory: str) -> None:
    """Open a store object, play a role, and wait to be killed."""
    store = pkgutil.resolve_name(factory)(Path(directory)).make()
    await store.open()
    await ROLES[role](store)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
