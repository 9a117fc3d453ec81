"""Cases about events: consumers, cursors, order, and calls from other threads."""

from __future__ import annotations

import asyncio
from typing import Any

from arp.conformance.cases import expect, expect_same
from arp.conformance.runtime.case import CaseRun, Cases, is_text, output_text, read_until, refused
from arp.runtime.contract import types as ari
from arp.runtime.contract.errors import InvalidArgument, NotFound

CASES = Cases()
EventType = ari.EventType


@CASES.add(1)
async def several_consumers(run: CaseRun) -> None:
    """Every consumer gets every event, in the same order."""
    session = await run.session()
    request = ari.SessionEventsRequest(session.id, 0)
    others = [await run.runtime.session_events(request) for _ in range(3)]
    own = session.until_done()
    reading = [read_until(events, lambda event: event.done) for events in others]
    await session.send(run.text_of("hello"))
    first, *rest = await asyncio.gather(own, *reading)
    for seen in rest:
        expect_same(seen, first, "events of another consumer")


@CASES.add(1)
async def unsubscribed(run: CaseRun) -> None:
    """Closing one subscription ends it, and does not affect the others."""
    session = await run.session()
    other = await run.runtime.session_events(ari.SessionEventsRequest(session.id))
    await other.aclose()
    await session.echo("still here")
    expect_same([event async for event in other], [], "events after `aclose`")


@CASES.add(1)
async def behind_a_cursor(run: CaseRun) -> None:
    """A subscription starts with the event after its cursor, which advances with each event."""
    session = await run.session()
    await session.turn(run.text_of("hello"))
    everything = run.seen
    after = everything[len(everything) // 2].sequence
    events = await run.runtime.session_events(ari.SessionEventsRequest(session.id, after))
    expect_same(events.cursor, after, "cursor")
    seen = await read_until(events, lambda event: event.done)
    wanted = [event for event in everything if event.sequence > after]
    expect_same(seen, wanted, "the events after the cursor")
    expect_same(events.cursor, seen[-1].sequence, "cursor after those events")


@CASES.add(1)
async def turn_from_its_beginning(run: CaseRun) -> None:
    """`send_message` returns the sequence of the last event before the turn."""
    session = await run.session()
    message = ari.RuntimeMessage(content=run.text_of("hello"))
    sent = await run.runtime.send_message(ari.SendMessageRequest(session.id, message))
    await session.until_done()
    request = ari.SessionEventsRequest(session.id, sent.sequence)
    events = await run.runtime.session_events(request)
    seen = await read_until(events, lambda event: event.done)
    expect_same({event.turn_id for event in seen}, {sent.turn_id}, "turn_id of the events")
    expect_same(seen[0].lifecycle, ari.Lifecycle.TURN_STARTED, "first event")


@CASES.add(1)
async def cursor_out_of_range(run: CaseRun) -> None:
    """A cursor out of range is refused."""
    session = await run.session()
    for after in (-1, 1_000_000):
        with refused(InvalidArgument, names="after"):
            await run.runtime.session_events(ari.SessionEventsRequest(session.id, after))


@CASES.add(1)
async def sequence_without_holes(run: CaseRun) -> None:
    """Sequences count from 1 without gaps, across turns, a cancel, a close and a resume."""
    session = await run.session()
    await session.turn(run.run_text("echo counted"))
    await session.send(run.text_of("slow"))
    await session.until(is_text)
    await session.cancel()
    await session.until_done()
    await session.close()
    run.seen += [event async for event in session.events]
    session = await run.resumed(session.id)
    await session.echo("on")
    last = run.seen[-1].sequence
    events = await run.runtime.session_events(ari.SessionEventsRequest(session.id, 0))
    counted = await read_until(events, lambda event: event.sequence >= last)
    numbers = [event.sequence for event in counted]
    expect_same(numbers, list(range(1, last + 1)), "sequences")
    times = [event.timestamp_ns for event in counted]
    expect_same(times, sorted(times), "timestamps")


@CASES.add(1, EventType.RESULT, EventType.ERROR)
async def one_terminal_event(run: CaseRun) -> None:
    """Each turn has exactly one terminal event, and it is the last one of the turn."""
    session = await run.session()
    turns = []
    for number in range(3):
        turns.append(await session.send(run.text_of("echo", text=f"turn {number}")))
        await session.until_done()
    for turn_id in turns:
        events = [event for event in run.seen if event.turn_id == turn_id]
        ends = [event for event in events if event.done]
        expect_same(ends, events[-1:], "terminal events")


@CASES.add(1)
async def every_event_has_its_place(run: CaseRun) -> None:
    """Each event has a session id and a timestamp; events of a turn have its turn id."""
    session = await run.session()
    events = await session.turn(run.run_text("echo ids"))
    expect_same({event.session_id for event in run.seen}, {session.id}, "session_id")
    expect(all(event.timestamp_ns for event in run.seen), "an event has no time")
    output = {EventType.TEXT, EventType.TOOL_CALL, EventType.TOOL_RESULT, EventType.RESULT}
    turn_ids = {event.turn_id for event in run.seen if event.type in output}
    expect_same(turn_ids, {events[-1].turn_id}, "turn_id")


@CASES.add(1)
async def threadsafe(run: CaseRun) -> None:
    """Another thread can use the runtime through its thread-safe handle."""
    session = await run.session()
    runtime: Any = run.runtime
    handle = runtime.threadsafe()
    message = ari.RuntimeMessage(content=run.text_of("hello"))

    def in_thread() -> list[ari.Event]:
        events = handle.events(ari.SessionEventsRequest(session.id))
        request = ari.SendMessageRequest(session.id, message)
        handle.call(lambda runtime: runtime.send_message(request), 30)
        seen: list[ari.Event] = []
        for event in events:
            seen.append(event)
            if event.done:
                break
        events.close()
        try:
            handle.call(lambda runtime: runtime.get_session(ari.GetSessionRequest("none")), 30)
        except NotFound:
            return seen
        return []

    seen = await asyncio.to_thread(in_thread)
    expect_same(output_text(seen), run.prompts.hello_text, "what the other thread read")


@CASES.add(1)
async def calls_at_once(run: CaseRun) -> None:
    """If two messages are sent at the same time, one starts a turn and the other is refused."""
    session = await run.session()
    text = run.text_of("slow")  # the turn must still be active when the second message arrives
    results = await asyncio.gather(session.send(text), session.send(text), return_exceptions=True)
    turns = [one for one in results if isinstance(one, str)]
    refusals = [getattr(one, "code", one) for one in results if not isinstance(one, str)]
    expect_same((len(turns), refusals), (1, ["FailedPrecondition"]), "turns and refusals")
    await session.cancel()
    await session.until_done()
