"""Checks that all stores share: find the sessions of a batch that can be stored."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from arp.store.errors import InvalidWrite, SequenceConflict, StoreError
from arp.store.store import Refusals, SessionWrite, check_append


def refuse_invalid(batch: Sequence[SessionWrite]) -> Refusals:
    """Return the sessions of a batch that have an invalid write, each with its `InvalidWrite`."""
    refused: Refusals = {}
    for write in batch:
        try:
            check_append(write)
        except InvalidWrite as error:
            refused.setdefault(write.session_id, error)
    return refused


def plan_batch(
    batch: Sequence[SessionWrite],
    together: Sequence[frozenset[str]],
    refused: Refusals,
    last_of: Callable[[str], int],
) -> tuple[Sequence[SessionWrite], dict[str, int]]:
    """Find the writes of a batch that can be stored.

    A batch may write to a session several times: a later write follows the earlier ones.

    Args:
        batch: The writes.
        together: See `Store.append`.
        refused: The sessions that are refused already; more are added.
        last_of: Function that returns the sequence of a session's newest stored fact, or raises
            the `StoreError` that refuses the session.

    Returns:
        The writes to store, and the new last sequence of each of their sessions.
    """
    planned: dict[str, int] = {}
    for write in batch:
        session_id, expected = write.session_id, write.expected_sequence
        if session_id in refused:
            continue
        last = planned.get(session_id)
        if last is None:
            try:
                last = last_of(session_id)
            except StoreError as error:
                refused[session_id] = error
                continue
        if last != expected:
            refused[session_id] = SequenceConflict(session_id, expected, last)
        else:
            planned[session_id] = last + len(write.facts)
    if not refused:
        return batch, planned
    refuse_units(refused, together)
    for session_id in refused:
        planned.pop(session_id, None)
    return [write for write in batch if write.session_id not in refused], planned


def refuse_units(refused: Refusals, together: Sequence[frozenset[str]]) -> None:
    """Refuse the other sessions of each unit that has a refused session, with the same error."""
    for unit in merge_units(together):
        error = next((refused[name] for name in sorted(unit) if name in refused), None)
        if error is not None:
            for name in unit:
                refused.setdefault(name, error)


def merge_units(together: Iterable[frozenset[str]]) -> list[frozenset[str]]:
    """Merge sets that share a session, so that the results are disjoint."""
    out: list[frozenset[str]] = []
    for unit in together:
        shared = [one for one in out if one & unit]
        out = [*(one for one in out if not one & unit), unit.union(*shared)]
    return out
