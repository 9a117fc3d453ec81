"""The recent events of a session, for consumers at their own pace."""

from __future__ import annotations

import asyncio

import pytest

from arp.runtime.contract import event_log
from arp.runtime.contract.errors import FailedPrecondition, InvalidArgument
from arp.runtime.contract.event_log import EventLog
from arp.runtime.contract.types import Event, EventType


def filled(count: int) -> EventLog:
    log = EventLog()
    for sequence in range(1, count + 1):
        log.append(Event(EventType.TEXT, "s", sequence, sequence, content="x" * 10))
    return log


async def test_consumer_that_falls_behind_what_is_kept_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(event_log, "MAX_KEPT_EVENTS", 3)
    log = filled(1)
    slow = log.subscribe(0)
    for sequence in range(2, 7):
        log.append(Event(EventType.TEXT, "s", sequence, sequence))
    with pytest.raises(InvalidArgument, match="the events 1 to 3 are no longer kept"):
        await anext(slow)
    assert (await anext(log.subscribe(3))).sequence == 4


async def test_closed_log_keeps_few_events_once_it_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(event_log, "MAX_CLOSED_EVENTS", 1)
    log = filled(3)
    reader = log.subscribe(1)
    log.close()
    assert [event.sequence async for event in reader] == [2, 3]
    with pytest.raises(FailedPrecondition):
        log.subscribe(None)
    log.reopen()
    assert log.last == 3
    with pytest.raises(InvalidArgument, match="the events 2 to 2 are no longer kept"):
        log.subscribe(1)
    following = log.subscribe(None)
    log.append(Event(EventType.TEXT, "s", 4, 4))
    async with asyncio.timeout(5):
        assert (await anext(following)).sequence == 4


def test_consumer_that_nobody_reads_any_more_keeps_nothing() -> None:
    log = filled(event_log.MAX_CLOSED_EVENTS + 1)
    log.subscribe(0)
    log.close()
    log.reopen()
    with pytest.raises(InvalidArgument, match="the events 1 to 1 are no longer kept"):
        log.subscribe(0)


def test_characters_of_a_closed_log_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_log, "MAX_CLOSED_CHARACTERS", 25)
    log = filled(5)
    log.close()
    log.reopen()
    with pytest.raises(InvalidArgument, match="the events 1 to 3 are no longer kept"):
        log.subscribe(0)
