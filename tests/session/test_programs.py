"""Whatever happens in a session, every screen ends up as one that never left.

Source: protocol.md 2.3; architecture.md, "What must always hold", 1 to 3.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from arp.protocol.codec import renderer_decoder
from arp.protocol.messages import Patch, Render, RendererHello, SessionReady
from arp.session.recording.recorded import Cursor
from arp.session.recovery import messages_of
from arp.session.session import Session
from tests.session.programs import (
    BEGIN,
    PROFILES,
    Run,
    Watcher,
    arrangements,
    encoded,
    fresh,
    state,
    steps,
)
from tests.support.examples import examples
from tests.support.restoring import restore

pytestmark = pytest.mark.timeout(120)
"""Hundreds of whole sessions each: five seconds on a quiet machine."""

Program = list[tuple[str, int]]


def played(program: Program, watching: Sequence[str] = ("full",)) -> Run:
    run = Run(watching)
    run.play(BEGIN)
    run.play(program)
    run.play([("return", 0)])
    return run


@settings(max_examples=examples(200))
@given(steps | arrangements)
@example([("show", 2802), ("tool", 0), ("show", 2119)])
@example([("show", 308), ("show", 546), ("frame", 177)])
@example([("popup", 1), ("show", 4775)])
def test_every_renderer_sees_at_every_moment_what_one_sees_that_joins_now(program: Program) -> None:
    """A degraded component stays patchable: what is live equals a fresh snapshot."""
    run = Run()
    run.play(BEGIN)
    for step in program:
        run.play([step])
        if step[0] in ("drain", "return", "rejoin"):
            run.check()
    run.play([("return", 0)])
    run.check()


@settings(max_examples=examples(200))
@given(steps)
def test_replaying_the_log_rebuilds_the_session(program: Program) -> None:
    """Screen, questions, queue and what was seen: architecture.md, 9."""
    run = played(program)
    again = restore(run.head, run.facts, run.limits)
    assert state(again.screen) == state(run.session.screen)
    assert facts_of(again) == facts_of(run.session)


def facts_of(session: Session) -> list[object]:
    questions = list(session.questions.items())
    rest = [session.running, session.queue, session.input_log, session.input_log.files]
    return [*rest, session.sequence, questions]


@settings(max_examples=examples(200))
@given(steps, st.lists(st.integers(0, 10_000), min_size=5, max_size=5))
@example([("rejoin", 0), ("say", 0), ("show", 241), ("say", 0)], [0, 0, 0, 0, 13])
@example(
    [("ask", 0), ("fall behind", 0), ("ask", 1), ("rejoin", 0), ("close", 1)], [5, 9, 14, 17, 20]
)
def test_cut_at_any_message_and_resumed_is_as_if_never_left(
    program: Program, cuts: list[int]
) -> None:
    """A renderer that comes back by `seq` gets each message that it missed once, in order."""
    run = played(program)
    live = run.watcher("full")
    for cut in {1 + number % len(live.frames) for number in cuts}:
        back = Watcher("back", PROFILES["full"])
        back.feed(live.frames[:cut])
        (hello,) = renderer_decoder("json").decode(back.connection.hello())
        assert isinstance(hello, RendererHello)
        if hello.resume is None:
            back.snapshot(run.session, run.cursor)
        else:
            replay(run, back, hello.resume.seq)
        assert back.state() == state(run.session.screen), f"cut behind message {cut}"


def replay(run: Run, back: Watcher, seq: int) -> None:
    """What `hub.replay` does for a renderer that comes back."""
    ready = SessionReady(session_id="s", epoch="epoch", seq=seq, resume="replay")
    back.feed(encoded([ready], back.group, None))
    for fact in run.facts:
        if fact.sequence > seq:
            back.feed(encoded(messages_of(fact), back.group, None))


@settings(max_examples=examples(200))
@given(steps, st.lists(st.integers(0, 10_000), min_size=4, max_size=4))
def test_catching_up_from_any_place_equals_having_been_there(
    program: Program, chosen: list[int]
) -> None:
    """All that a slow renderer missed takes effect at one commit."""
    run = Run()
    run.play(BEGIN)
    places: list[tuple[Cursor, dict[str, tuple[int, str | None]]]] = []
    for step in program:
        run.play([step])
        if step[0] in ("rejoin", "fall behind", "return", "crash"):
            continue
        run.drain()
        current = [live for live in run.watchers if live.behind is None]
        places.append((run.cursor, {live.name: (len(live.frames), live.part) for live in current}))
    run.drain()
    for place, stood in (places[number % len(places)] for number in chosen if places):
        for live in run.watchers:
            if live.name not in stood or not live.profile.said_hello:
                continue
            sent, part = stood[live.name]
            slow = Watcher(live.name, live.profile)
            slow.feed(live.frames[:sent])
            slow.part, slow.behind = part, place
            slow.catch_up(run.session, run.cursor)
            assert slow.state() == fresh(run.session, live.profile), live.name


@settings(max_examples=examples(200))
@given(steps)
def test_sequences_have_no_holes_and_stand_on_what_completes_a_fact(program: Program) -> None:
    """protocol.md 2.3: `seq` counts from 1 without holes; the messages of one commit share one."""
    run = Run(["full"])
    run.play(BEGIN)
    for step in program:
        run.play([step])
        for emission in run.drain():
            *before, last = emission.messages or [None]
            assert last is None or last.seq == emission.sequence
            for message in before:
                shared = isinstance(message, Render | Patch)
                assert message.seq == (emission.sequence if shared else None)
    assert [fact.sequence for fact in run.facts] == list(range(1, len(run.facts) + 1))
