"""A stored state and the facts behind it make the session that the whole log makes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from arp.ledger.fact import Fact, decode
from arp.protocol.limits import Limits
from arp.session import state as state_module
from arp.session.asking import ask_question
from arp.session.recovery import apply_stored, recover
from arp.session.session import Head, Session
from arp.session.session_settings import Rules
from arp.session.state import UnreadableState, decode_state, encode_state
from arp.session.tracking import window
from arp.surface.change import RenderChange
from tests.session.conversation import AT, confirm, facts, new, send, text, user, watched
from tests.session.programs import BEGIN, PROFILES, Run, fresh, state, steps
from tests.support.examples import examples
from tests.support.restoring import restore

pytestmark = pytest.mark.timeout(120)

HEAD = Head("s", "epoch")

Program = list[tuple[str, int]]


@contextmanager
def recent(turns: int) -> Iterator[None]:
    """So many turns stay, so that short programs have some that leave."""
    with patch.object(window, "RECENT_TURNS", turns):
        yield


def made_of(data: bytes, head: Head = HEAD) -> Session:
    return decode_state(data, head, Rules(), None)


def reading(session: Session, log: list[Fact]) -> Session:
    """A session that goes on with facts, and keeps what leaves it."""
    session.screen.departed = []
    apply_stored(session, log)
    return session


def left(*sessions: Session) -> list[bytes]:
    """What left sessions, one behind the other."""
    return [
        msgspec.json.encode((past.number, past.turn, past.output))
        for session in sessions
        for past in session.screen.departed or ()
    ]


def shown(session: Session) -> list[object]:
    """What everyone can see of a session, by whatever renderer they come."""
    told = [fresh(session, profile) for profile in PROFILES.values()]
    questions = list(session.questions.items())
    rest = [session.queue, questions, session.input_log, session.threads.kept]
    return [state(session.screen), told, session.running, *rest]


@settings(max_examples=examples(75))
@given(steps, st.lists(st.integers(0, 10_000), min_size=3, max_size=3), st.integers(1, 3))
def test_state_at_any_cut_and_the_rest_equal_the_whole_log(
    program: Program, cuts: list[int], turns: int
) -> None:
    """Byte for byte, and in what is seen; while it was live it was no other."""
    with recent(turns):
        run = Run(["full"])
        run.play(BEGIN)
        run.play(program)
        run.drain()
        log = run.ledger

        def read() -> list[Fact]:
            return [decode(body) for body in log]

        whole = reading(Session(HEAD, Limits()), read())
        expected = encode_state(whole)
        assert encode_state(run.session) == expected
        for cut in {number % (len(log) + 1) for number in cuts}:
            before = reading(Session(HEAD, Limits()), read()[:cut])
            again = reading(made_of(encode_state(before)), read()[cut:])
            assert encode_state(again) == expected, f"cut behind fact {cut}"
            assert left(before, again) == left(whole)
        assert shown(made_of(expected)) == shown(whole)


@settings(max_examples=examples(50))
@given(steps, st.integers(0, 2**20))
def test_session_of_a_state_goes_on_as_the_one_of_the_log(program: Program, number: int) -> None:
    """What comes is taken, refused and told alike."""
    with recent(2):
        ran = Run(["full"])
        ran.play([*BEGIN, *program])
        ran.drain()
        whole = restore(HEAD, ran.facts, Limits())
        of_log = after(ran, whole, number)
        of_state = after(ran, made_of(encode_state(restore(HEAD, ran.facts, Limits()))), number)
        assert of_log.ledger == of_state.ledger
        assert encode_state(of_log.session) == encode_state(of_state.session)


GOING_ON = ["user", "say", "show", "answer", "frame", "ask", "answer", "finish", "user", "show"]


MANY_TURNS = (
    "user",
    "finish",
    "show",
    "user",
    "finish",
    "show",
    "arrange",
    "say",
    "ask",
    "return",
    "fall behind",
)

many_turns = st.lists(
    st.tuples(st.sampled_from(MANY_TURNS), st.integers(0, 2**20)), min_size=20, max_size=60
)


@settings(max_examples=examples(50))
@given(many_turns, st.integers(1, 2))
@example([("ask", 1), ("show", 15187), ("ask", 27552), ("show", 2320)], 1)
def test_renderers_show_the_turns_that_stayed_as_one_that_joins_now(
    program: Program, turns: int
) -> None:
    """Who never left has the others too; what comes under an id that left stands alike for all."""
    with recent(turns):
        run = Run(["full", "no append", "core"])
        run.play(BEGIN)
        for step in program:
            run.play([step])
            if step[0] in ("return", "finish"):
                check(run)
        run.play([("return", 0)])
        check(run)


def check(run: Run) -> None:
    run.drain()
    for watcher in run.watchers:
        if watcher.behind is None:
            joined, seen = fresh(run.session, watcher.profile), watcher.state()
            assert seen["surfaces"] == joined["surfaces"], watcher.name
            stayed = {name: seen["turns"].get(name) for name in joined["turns"]}
            assert stayed == joined["turns"], watcher.name


def after(ran: Run, session: Session, number: int) -> Run:
    """What a session does that goes on where a run stopped."""
    run = Run([])
    run.ledger, run.session = [], session
    run._inputs = ran._inputs
    for name in ("full", "basic", "text only"):
        watched(session, PROFILES[name])
    run.carry_out(recover(session))
    for place, name in enumerate(GOING_ON):
        for tree in session.screen.surfaces.values():  # programs choose by this order, nobody else
            tree.nodes = dict(sorted(tree.nodes.items()))
        run.play([(name, number + place)])
    run.drain()
    return run


# -- what it holds ---------------------------------------------------------------------------------


def test_state_of_a_new_session_is_of_nothing() -> None:
    session = made_of(encode_state(Session(HEAD, Limits())))
    assert (session.sequence, session.turns.is_active) == (0, False)
    assert session.screen.turns == {}


def test_text_that_is_open_is_in_it() -> None:
    """What was said so far is a fact of its own then; the text goes on in its part."""
    session = new()
    user(session, "hi")
    session.say("t1", "one ")
    data = encode_state(session)
    session.say("t1", "two")
    assert [fact.type for fact in facts(session)][-2:] == ["model.delta", "model.delta"]
    again = decode_state(data, Head("s", "e"), Rules(), None)
    assert again.sequence == 3
    again.say("t1", "2")
    again.drain(AT)
    assert again.screen.text("t1") == "one 2"


def test_open_question_of_a_state_is_answered() -> None:
    session = new()
    user(session, "hi", "i1")
    question = ask_question(session, "t1", confirm(), "side")
    again = decode_state(encode_state(session), Head("s", "e"), Rules(), None)
    assert again.questions == {("side", "q"): question}
    assert again.input_log == {"i1": "t1"}
    send(again, "action", {"action": "confirm"}, source_component="q", surface="side")
    assert again.questions == {}


def test_what_was_typed_beside_the_ledger_is_not_in_it() -> None:
    session = new()
    user(session, "password=hunter2hunter2")
    assert session.input_log.typed
    assert b"hunter2" not in encode_state(session)


# -- what is refused -------------------------------------------------------------------------------


def test_state_of_another_session_or_life_is_refused() -> None:
    data = encode_state(Session(HEAD, Limits()))
    with pytest.raises(UnreadableState):
        made_of(data, Head("other", "epoch"))
    with pytest.raises(UnreadableState):
        made_of(data, Head("s", "another life"))


def test_state_of_another_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    data = encode_state(Session(HEAD, Limits()))
    monkeypatch.setattr(state_module, "STATE_VERSION", 0)
    with pytest.raises(UnreadableState, match="state of"):
        made_of(data)


@given(st.binary(max_size=200) | st.integers(0, 400).map(lambda cut: _whole()[:cut]))
def test_bytes_that_are_no_state_are_refused(data: bytes) -> None:
    with pytest.raises(UnreadableState):
        made_of(data)


def _whole() -> bytes:
    session = new()
    user(session, "hi")
    session.commit("t1", "main", [RenderChange([text("a")])])
    return encode_state(session)


def test_state_is_plain_json() -> None:
    """So that a number is in it what it is in a fact."""
    kept = msgspec.json.decode(_whole())
    assert kept["turns"][0][1]["id"] == "t1"
