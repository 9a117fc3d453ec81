"""A session keeps its recent turns, and what is still open; older turns leave (protocol.md 2.3)."""

from __future__ import annotations

from collections.abc import Iterator
from unittest.mock import patch

import pytest

from arp.protocol.errors import ArpError, InvalidPatch, UnknownObject
from arp.protocol.messages import Commit, SessionReady
from arp.protocol.patch import Insert, Remove, Replace, Update
from arp.session.asking import ask_question, cancel_question
from arp.session.recording.recorded import Cursor, RecordedFact
from arp.session.session import Session
from arp.session.tracking import window
from arp.session.tracking.window import RECENT_TURNS
from arp.session.turn_end import end_turn
from arp.surface.change import PatchChange, RenderChange
from arp.view.profile import DRAFT
from arp.view.snapshot import catch_up, snapshot
from tests.session.conversation import AT, FULL, confirm, facts, new, send, text, user, watched


@pytest.fixture(autouse=True)
def _two_are_recent(request: pytest.FixtureRequest) -> Iterator[None]:
    with patch.object(window, "RECENT_TURNS", 2):
        yield


def turn(session: Session, said: str = "x", shows: str | None = None) -> str:
    """One turn from its beginning to its end."""
    user(session, said)
    turn_id = session.running
    assert turn_id is not None
    session.say(turn_id, "answer")
    if shows is not None:
        session.commit(turn_id, "main", [RenderChange([text(shows)])])
    end_turn(session, turn_id, "completed")
    return turn_id


def here(session: Session) -> list[str]:
    return list(session.screen.turns)


def with_turns(*shows: str | None) -> Session:
    session = new()
    for component in shows:
        turn(session, shows=component)
    return session


# -- what leaves and what stays --------------------------------------------------------------------


def test_fifty_turns_that_are_over_stay() -> None:
    assert RECENT_TURNS == 50
    with patch.object(window, "RECENT_TURNS", 50):
        session = with_turns(*[None] * 53)
    assert here(session) == [f"t{number}" for number in range(4, 54)]


def test_turn_leaves_with_all_of_its_output() -> None:
    session = with_turns("a", "b", "c")
    assert here(session) == ["t2", "t3"]
    assert list(session.screen.main.outputs) == ["t2", "t3"]
    assert sorted(session.screen.main.nodes) == ["b", "c", "t2/1", "t3/1"]


def test_turns_are_counted_and_named_on() -> None:
    """Whatever left, an id is given once."""
    session = with_turns(None, None, None, None)
    assert (session.screen.count, session.screen.numbers) == (4, {"t3": 3, "t4": 4})
    assert turn(session) == "t5"


def test_says_how_many_came_before_the_first_that_is_here() -> None:
    """One that stays longer stands first; whoever waits in line pushes nobody out."""
    session = new()
    assert session.screen.older == 0
    for _ in range(5):
        turn(session)
    assert (list(session.screen.turns), session.screen.older) == (["t4", "t5"], 3)
    for text_of in ("runs", "waits", "waits too"):
        user(session, text_of)
    assert (len(session.screen.turns), session.screen.older) == (5, 3)
    ready = snapshot(session.screen, session.name, FULL, session.screen.older)[0]
    assert isinstance(ready, SessionReady)
    assert ready.older == 3


def test_says_before_which_turns_others_have_left() -> None:
    """One that changes stays longer: what came between it and the newest can be paged."""
    session = with_turns(None, "board")
    for number in range(3, 7):
        user(session, "x")
        session.commit(
            f"t{number}", "main", [PatchChange([Update("board", "props.content", f"{number}")])]
        )
        end_turn(session, f"t{number}", "completed")
    assert (here(session), session.screen.older) == (["t2", "t5", "t6"], 1)
    assert session.screen.gaps == {"t5": 2}
    ready = snapshot(session.screen, session.name, FULL, 1, session.screen.gaps)[0]
    assert isinstance(ready, SessionReady)
    assert (ready.older, ready.gaps) == (1, {"t5": 2})


def test_title_stays_when_its_turn_has_left() -> None:
    session = new()
    for said in (" ", "The  first\nwords", "other words", "and others"):
        turn(session, said)
    assert session.title == "The first words"


def test_turns_that_are_not_over_stay_and_push_none_out() -> None:
    session = with_turns(None, None)
    for _ in range(5):
        user(session, "x")
    assert here(session) == [f"t{number}" for number in range(1, 8)]


def test_turn_with_an_open_question_stays_until_it_is_closed() -> None:
    session = new()
    user(session, "x")
    question = ask_question(session, "t1", confirm())
    end_turn(session, "t1", "failed", reason="interrupted")
    for _ in range(4):
        turn(session)
    assert here(session) == ["t1", "t4", "t5"]
    cancel_question(session, question)
    for _ in range(3):
        turn(session)
    assert here(session) == ["t7", "t8"]


def test_turn_stays_whose_component_another_turn_s_question_took() -> None:
    """The question stands where its id stood before."""
    session = with_turns("q")
    user(session, "x")
    ask_question(session, "t2", confirm())
    end_turn(session, "t2", "failed", reason="interrupted")
    for _ in range(4):
        turn(session)
    assert here(session) == ["t1", "t2", "t5", "t6"]


def test_question_on_another_surface_keeps_its_turn() -> None:
    session = with_turns()
    user(session, "x")
    ask_question(session, "t1", confirm(), "side")
    end_turn(session, "t1", "failed", reason="interrupted")
    for _ in range(4):
        turn(session)
    assert here(session) == ["t1", "t4", "t5"]


def test_turn_whose_output_goes_on_changing_stays() -> None:
    """A table that later turns fill is where it was."""
    session = with_turns("table")
    for number in range(4):
        user(session, "x")
        running = session.running
        assert running is not None
        op = Update("table", "props.content", str(number))
        session.commit(running, "main", [PatchChange([op])])
        end_turn(session, running, "completed")
    assert here(session) == ["t1", "t4", "t5"]
    turn(session)
    turn(session)
    turn(session)
    assert here(session) == ["t7", "t8"]


def test_other_surfaces_stay_whole() -> None:
    session = new()
    user(session, "x")
    session.commit("t1", "side", [RenderChange([text("a")])])
    end_turn(session, "t1", "completed")
    for _ in range(4):
        turn(session)
    assert [item.id for item in session.screen.surfaces["side"].output()] == ["a"]


def test_whoever_takes_what_leaves_gets_it_whole() -> None:
    session = new()
    assert session.screen.take_departed() == []
    for component in ("a", "b", "c"):
        turn(session, f"show {component}", component)
    (left,) = session.screen.take_departed()
    assert session.screen.departed == []
    assert (left.number, left.turn.id, left.turn.status) == (1, "t1", "completed")
    assert left.text == "answer"
    assert [echo.data for echo in left.turn.inputs] == [{"text": "show a"}]
    assert [(item.id, item.props["content"]) for item in left.output] == [
        ("t1/1", "answer"),
        ("a", "x"),
    ]


# -- what can be done with it ----------------------------------------------------------------------


def test_component_that_left_is_neither_patched_nor_answered() -> None:
    session = with_turns(None, "a", "b", "c")
    user(session, "x")
    for op in (Update("a", "props.content", "y"), Remove("a"), Insert(text("new"), after="a")):
        with pytest.raises(InvalidPatch, match="no component 'a'"):
            session.commit("t5", "main", [PatchChange([op])])
    with pytest.raises(UnknownObject):
        send(session, "action", {"action": "confirm"}, source_component="a")


def test_id_that_left_may_be_used_again_and_whoever_has_it_gets_a_snapshot() -> None:
    """Nobody else needs one; a renderer of the draft, which cannot take one, is told as ever."""
    session = with_turns("a", "b", "c")
    full, draft = watched(session, FULL), watched(session, DRAFT)
    facts(session)
    user(session, "x")
    session.commit("t4", "main", [RenderChange([text("a", "again")])])
    again = session.drain(AT).recorded[-1]
    assert isinstance(again, RecordedFact)
    assert full.messages(again) is None
    assert draft.messages(again)


def test_id_that_a_turn_gave_tells_by_itself_that_it_left() -> None:
    """Most components have one; nothing is remembered of them."""
    session = with_turns("t1-1", "t2-1", "t3-1", "t9-1")
    assert list(session.screen.main.left) == []
    user(session, "x")
    for component in ("t1-1", "t1-1", "t3-1", "t5-1", "t2-1"):
        session.commit("t5", "main", [RenderChange([text(component)])])
    payloads = [fact.payload for fact in facts(session) if fact.type == "artifact.changed"]
    assert [payload.get("anew", False) for payload in payloads[-5:]] == [
        True,
        False,
        False,
        False,
        True,
    ]


def test_id_of_a_turn_that_stood_in_an_older_one_is_remembered() -> None:
    session = with_turns("a", "b")
    user(session, "x")
    session.commit("t3", "main", [PatchChange([Replace("a", text("t3-1"))])])
    end_turn(session, "t3", "completed")
    for _ in range(4):
        turn(session)
    assert list(session.screen.main.left) == ["b", "t3-1"]


def test_id_that_came_back_is_one_like_others() -> None:
    session = with_turns("a", "b", "c")
    user(session, "x")
    session.commit("t4", "main", [RenderChange([text("a")])])
    session.commit("t4", "main", [RenderChange([text("a", "y")])])
    payloads = [fact.payload for fact in facts(session) if fact.type == "artifact.changed"]
    assert [payload.get("anew") for payload in payloads[-2:]] == [True, None]
    assert list(session.screen.main.left) == []


def test_refused_commit_leaves_the_ids_that_left_as_they_were() -> None:
    session = with_turns("a", "b", "c", "d")
    user(session, "x")
    before = list(session.screen.main.left)
    assert before == ["a", "b"]
    with pytest.raises(ArpError):
        session.commit("t5", "main", [RenderChange([text("a")]), PatchChange([Remove("nothing")])])
    assert list(session.screen.main.left) == before
    session.commit("t5", "main", [RenderChange([text("e")])])
    assert "anew" not in facts(session)[-1].payload


def test_ids_that_left_are_remembered_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window, "REMEMBERED_IDS", 2)
    session = with_turns(*"abcdef")
    assert list(session.screen.main.left) == ["c", "d"]


def test_renderer_that_was_behind_when_a_turn_changed_and_left_needs_a_snapshot() -> None:
    session = with_turns(None)
    cursor = session.cursor
    for _ in range(4):
        turn(session)
    assert catch_up(session.screen, session.name, FULL, cursor) is None
    later = Cursor(session.sequence - 1)
    told = catch_up(session.screen, session.name, FULL, later)
    assert told is not None
    assert isinstance(told[-1], Commit)


def test_marks_of_a_turn_leave_with_it() -> None:
    session = new()
    for _ in range(3):
        user(session, "x")
        running = session.running
        assert running is not None
        session.say(running, "text")
        ids = {"step_id": "c", "tool_call_id": f"{running}.c"}
        session.in_turn("tool.args", running, {"tool": "q", "args": "{}"}, **ids)
        end_turn(session, running, "completed")
    assert set(session.screen.main.marks._by_root) == {"t2/1", "t3/1"}


def test_turns_that_left_are_collected_for_who_stores_them() -> None:
    """Each is given once, behind those that could not be stored before."""
    session = with_turns("a", None)
    session.screen.collect_departed()
    turn(session)
    (first,) = session.screen.take_departed()
    assert (first.turn.id, [one.id for one in first.output]) == ("t1", ["t1/1", "a"])
    turn(session)
    session.screen.collect_departed([first])
    assert [past.turn.id for past in session.screen.take_departed()] == ["t1", "t2"]
    assert session.screen.take_departed() == []
