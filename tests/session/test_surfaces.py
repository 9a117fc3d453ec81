"""Surfaces of one session: created, described, closed, transferred; and two sessions side by side.

Source: protocol.md 2.1 (`surface`), architecture.md, "What must always hold", 10.
"""

from __future__ import annotations

import re
from random import Random
from typing import Any

import pytest

from arp.protocol.catalog import VERSIONS
from arp.protocol.components import Component
from arp.protocol.errors import (
    ArpError,
    InvalidComponent,
    InvalidPatch,
    ResourceLimit,
    RoleConflict,
    SurfaceDestroyed,
    TransferDenied,
    UnknownObject,
)
from arp.protocol.limits import Limits
from arp.protocol.messages import (
    Delta,
    DeltaPayload,
    Input,
    RendererCapabilities,
    SurfaceInfo,
)
from arp.protocol.objects.messages import SurfaceTransferRequest
from arp.protocol.patch import Remove, Update
from arp.session.asking import ask_question
from arp.session.effects import ResolveQuestion, SurfaceClosed
from arp.session.input.receive import receive
from arp.session.session import Head, Session
from arp.session.session_values import update_shared_state
from arp.session.state import decode_state, encode_state
from arp.session.surfaces import (
    acquire_surface,
    close_surface,
    describe_surface,
    note_leaving,
    open_surface,
    transfer_surface,
)
from arp.session.turn_end import end_turn
from arp.surface.change import PatchChange, RenderChange
from arp.view.profile import profile_of
from tests.session.conversation import confirm, decline_of, facts, text, user
from tests.session.programs import FEATURES, WINDOWS, Watcher
from tests.support.restoring import restore

POPUP = SurfaceInfo(role="popup", parent="main", component="a")


def shown(*components: Component) -> list[Any]:
    return [RenderChange(list(components))]


def started(session_id: str = "s", limits: Limits | None = None) -> Session:
    """A session whose turn t1 runs."""
    session = Session(Head(session_id, "e"), limits or Limits())
    user(session, "go")
    return session


def ids(session: Session, surface: str) -> list[str]:
    return [one.id for one in session.screen.surfaces[surface].output()]


def test_a_surface_is_one_fact_with_what_it_is_and_what_it_shows() -> None:
    session = started()
    open_surface(session, "t1", "side", SurfaceInfo(title="Details"), shown(text("a", "one")))
    *_, fact = facts(session)
    assert (fact.type, fact.artifact_id, fact.turn_id) == ("artifact.changed", "side", "t1")
    assert fact.payload["info"] == {"title": "Details"}
    assert len(fact.payload["changes"]) == 1
    describe_surface(session, "t1", "side", title="More")
    describe_surface(session, "t1", "side", title="More")
    close_surface(session, "side", "agent")
    described, closed = facts(session)
    assert described.payload == {"surface": "side", "info": {"title": "More"}}
    assert closed.payload == {"surface": "side", "info": {"title": "More"}, "closed": "agent"}
    assert set(session.screen.surfaces) == {"main"}


def test_a_title_holds_no_secret_and_is_cut() -> None:
    session = started()
    title = "ghp_abcdefghijklmnopqrstuvwxyz0123456789 " + 300 * "x"
    open_surface(session, "t1", "side", SurfaceInfo(title=title))
    told = session.screen.info("side").title
    assert told.startswith("ghp_[redacted]")
    assert len(told) <= 220
    assert "output.redacted" in [fact.type for fact in facts(session)]


def test_a_popup_has_its_place_in_the_output_of_its_turn_until_it_is_closed() -> None:
    session = started()
    session.say("t1", "before ")
    open_surface(session, "t1", "t1-popup-1", POPUP, shown(text("a", "one")))
    session.say("t1", "after")
    output = session.screen.output("t1")
    assert [one.type for one in output] == ["text", "group", "text"]
    assert output[1].props == {"children": []}
    close_surface(session, "t1-popup-1", "user")
    assert [one.props["content"] for one in session.screen.output("t1")] == ["before ", "after"]


def test_a_popup_holds_its_turn_in_memory() -> None:
    session = started()
    open_surface(session, "t1", "t1-popup-1", POPUP, shown(text("a", "one")))
    end_turn(session, "t1", "completed")
    for number in range(60):
        turn = f"t{number + 2}"
        user(session, "more")
        end_turn(session, turn, "completed")
    assert "t1" in session.screen.turns
    close_surface(session, "t1-popup-1", "timeout")
    user(session, "more")
    end_turn(session, "t62", "completed")
    assert "t1" not in session.screen.turns


def test_refused_surfaces_leave_everything_as_it_was() -> None:
    session = started(limits=Limits(max_surfaces=3))
    open_surface(session, "t1", "t1-popup-1", POPUP, shown(text("a", "one")))
    facts(session)
    before = session.screen.canonical()
    with pytest.raises(RoleConflict):
        open_surface(session, "t1", "t1-popup-1", SurfaceInfo(title="side"))
    with pytest.raises(SurfaceDestroyed, match="no surface 'nothing'"):
        open_surface(session, "t1", "x", SurfaceInfo(role="overlay", parent="nothing"))
    deep = Component("g", "group", {"children": [{"id": "h", "type": "group", "props": {
        "children": [{"id": "i", "type": "text", "props": {"content": "x"}}]}}]})  # fmt: skip
    with pytest.raises(ResourceLimit, match="its fallback counted; at most 2"):
        open_surface(session, "t1", "t1-popup-2", POPUP, shown(deep))
    for name in ("main", "nothing"):
        with pytest.raises(SurfaceDestroyed):
            close_surface(session, name, "agent")
        with pytest.raises(SurfaceDestroyed):
            describe_surface(session, "t1", name, title="x")
    open_surface(session, "t1", "side", SurfaceInfo())
    with pytest.raises(ResourceLimit, match="one more than 3"):
        open_surface(session, "t1", "left", SurfaceInfo())
    close_surface(session, "side", "agent")
    assert session.screen.canonical() == before


def test_closing_a_surface_closes_what_is_placed_on_it_and_its_questions() -> None:
    session = started()
    open_surface(session, "t1", "side", SurfaceInfo(), shown(text("a", "one")))
    ask_question(session, "t1", confirm("q"), "side")
    over = SurfaceInfo(role="popup", parent="side")
    open_surface(session, "t1", "t1-popup-1", over, shown(text("b", "two")))
    nested = SurfaceInfo(role="overlay", parent="t1-popup-1")
    open_surface(session, "t1", "t1-overlay-1", nested, shown(text("c", "three")))
    *closed, resolved, last = close_surface(session, "side", "user")
    assert closed == [
        SurfaceClosed("t1-overlay-1", "parent"),
        SurfaceClosed("t1-popup-1", "parent"),
    ]
    assert isinstance(resolved, ResolveQuestion)
    assert (resolved.outcome.kind, last) == ("withdrawn", SurfaceClosed("side", "user"))
    assert session.questions == {}
    assert session.screen.output("t1") == []


def test_an_input_to_a_closed_surface_is_refused_and_closing_again_is_not() -> None:
    session = started()
    open_surface(session, "t1", "side", SurfaceInfo(), shown(confirm("q")))
    close_surface(session, "side", "agent")
    answer = Input(
        input_type="action", data={"action": "confirm"}, source_component="q", surface="side"
    )
    with pytest.raises(UnknownObject):
        receive(session, answer, lambda *_: None)
    closing = Input(input_type="action", data={"action": "arp.close"}, surface="side", id="c")
    before = session.sequence
    receive(session, closing, lambda *_: None)
    assert session.sequence == before


def test_a_user_who_closes_a_surface_twice_by_one_input_closes_it_once() -> None:
    session = started()
    closing = Input(input_type="action", data={"action": "arp.close"}, surface="side", id="c")
    open_surface(session, "t1", "side", SurfaceInfo())
    receive(session, closing, lambda *_: None)
    open_surface(session, "t1", "side", SurfaceInfo())
    receive(session, closing, lambda *_: None)
    assert "side" in session.screen.surfaces
    again = restore(session.head, facts(session), Limits())
    receive(again, closing, lambda *_: None)
    assert "side" in again.screen.surfaces


@pytest.mark.parametrize("retain_content", [True, False])
def test_a_surface_goes_to_another_session_whole(retain_content: bool) -> None:
    one, two = started("one"), started("two")
    components = [text(f"a{number}", "x") for number in range(90)]
    open_surface(one, "t1", "side", SurfaceInfo(title="Report"), shown(*components))
    one.commit("t1", "side", shown(*[text(f"b{number}", "x") for number in range(60)]))
    open_surface(two, "t1", "side", SurfaceInfo(title="Mine"), shown(text("own", "y")))
    effects = transfer_surface(one, "side", two, retain_content=retain_content)
    assert effects == [SurfaceClosed("side", "transferred")]
    assert set(one.screen.surfaces) == {"main"}
    wanted = [f"a{n}" for n in range(90)] + [f"b{n}" for n in range(60)]
    assert ids(two, "side-2") == (wanted if retain_content else [])
    assert (two.screen.info("side-2").title, ids(two, "side")) == ("Report", ["own"])
    two.commit("t1", "side-2", [PatchChange([Remove("a1")])] if retain_content else [])
    for session in (one, two):
        again = restore(session.head, facts(session), Limits())
        assert again.screen.canonical() == session.screen.canonical()


def test_what_was_said_on_a_surface_goes_along_under_a_plain_id() -> None:
    """Text parts have ids with a slash, which are the session's own."""
    one, two = started("one"), started("two")
    open_surface(one, "t1", "side", SurfaceInfo(), shown(text("t1-1", "x")))
    one.screen.apply(
        Delta(session_id="one", turn_id="t1", surface="side", payload=DeltaPayload("Said"))
    )
    assert ids(one, "side") == ["t1-1", "t1/1"]
    transfer_surface(one, "side", two, retain_content=True)
    assert ids(two, "side") == ["t1-1", "t1-1-2"]
    assert two.screen.surfaces["side"].component("t1-1-2").props["content"] == "Said"


def test_a_surface_of_another_agent_is_taken_over_under_a_name_of_its_own() -> None:
    """What a renderer hands over is checked as what an author shows; ids with a slash are made
    plain, also those in a layout."""
    session = started()
    inner = {"id": "g/0", "type": "text", "props": {"content": "y"}}
    given = [text("t9/1", "x"), Component("g", "group", {"children": [inner]})]
    assert acquire_surface(session, "Report", given, "T1", "giver") == "acquired"
    assert ids(session, "acquired") == ["t9-1", "g"]
    assert session.screen.surfaces["acquired"].nodes.keys() == {"t9-1", "g", "g-0"}
    assert inner["id"] == "g/0", "what was given stays as it is"
    assert acquire_surface(session, None, [], "T2", "giver") == "acquired-2"
    assert session.screen.info("acquired").title == "Report"
    session.commit("t1", "acquired", [PatchChange([Remove("g")])])
    again = restore(session.head, facts(session), Limits())
    assert again.screen.canonical() == session.screen.canonical()


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ([Component("a", "confirm", {})], InvalidComponent),
        ([Component("a", "tabs", {"tabs": 3})], InvalidPatch),
        ([Component("a", "group", {"children": [3]})], InvalidPatch),
        ([*(text(f"a{n}", "x") for n in range(100)), Component("b", "form", {})], InvalidComponent),
    ],
)
def test_a_surface_with_what_does_not_fit_is_not_taken_over(
    given: list[Component], error: type[ArpError]
) -> None:
    """Nothing of it is left, however much came before what is wrong."""
    session = started()
    with pytest.raises(error):
        acquire_surface(session, None, given, "T1", "giver")
    assert set(session.screen.surfaces) == {"main"}
    full = started(limits=Limits(max_surfaces=1))
    with pytest.raises(TransferDenied, match="no more surfaces"):
        acquire_surface(full, None, [], "T1", "giver")


def test_a_surface_is_taken_over_once_however_often_it_is_handed_over() -> None:
    """Also after a restart, and when it was closed since. The ledger says where it came from.
    O28, O30."""
    session = started()
    given = [text("x")]
    assert acquire_surface(session, "Report", given, "T1", "giver") == "acquired"
    assert acquire_surface(session, "Report", given, "T1", "giver") is None
    assert acquire_surface(session, "Report", given, "T2", "other") == "acquired-2"
    close_surface(session, "acquired", "user")
    recorded = facts(session)
    origins = [one.payload.get("fromSession") for one in recorded]
    assert [one for one in origins if one] == ["giver", "other"]
    again = restore(session.head, recorded, Limits())
    for one in (session, again):
        assert acquire_surface(one, "Report", given, "T1", "giver") is None
        assert set(one.screen.surfaces) == {"main", "acquired-2"}
    with pytest.raises(TransferDenied, match="more than 512 characters"):
        acquire_surface(session, None, [], "x" * 513, "giver")


def test_a_surface_that_was_refused_may_be_handed_over_again() -> None:
    """Nothing remembers the transfer that failed. O28."""
    session = started()
    with pytest.raises(InvalidComponent):
        acquire_surface(session, None, [Component("a", "confirm", {})], "T1", "giver")
    assert acquire_surface(session, None, [text("a")], "T1", "giver") == "acquired"


def test_a_surface_that_is_leaving_is_known_until_it_has_gone_or_stays() -> None:
    """A restart, from the log or from a state, forgets nothing. O29."""
    session = started()
    request = SurfaceTransferRequest("other", True, "T1")
    for name in ("one", "two", "three"):
        open_surface(session, "t1", name, SurfaceInfo())
        note_leaving(session, name, request)
    note_leaving(session, "two", None)
    close_surface(session, "three", "transferred")
    assert session.leaving == {"one": request}
    state = decode_state(encode_state(session), session.head, session.rules, None)
    assert state.leaving == session.leaving
    again = restore(session.head, facts(session), Limits())
    assert again.leaving == session.leaving
    assert again.screen.canonical() == session.screen.canonical()


def test_a_user_who_closes_a_surface_declines_what_may_be_declined() -> None:
    """A question of a turn that is over has nobody who waits for it."""
    session = started()
    open_surface(session, "t1", "side", SurfaceInfo())
    declinable = Component("q", "confirm", {"title": "Sure?", "can_decline": True})
    question = ask_question(session, "t1", declinable, "side")
    resolved, _ = close_surface(session, "side", "user")
    assert resolved == decline_of(question)
    open_surface(session, "t1", "side", SurfaceInfo())
    ask_question(session, "t1", declinable, "side")
    end_turn(session, "t1", "failed", reason="interrupted")
    assert close_surface(session, "side", "user") == [SurfaceClosed("side", "user")]
    assert session.questions == {}


def test_an_input_on_a_popup_that_a_renderer_shows_in_line_belongs_to_the_popup() -> None:
    """Such a renderer names the popup before the component. Spec: docs/protocol.md 2.1."""
    session = started()
    open_surface(session, "t1", "t1-popup-1", POPUP)
    table = Component("t", "table", {"headers": ["n"], "rows": [[1]], "selectable": "one"})
    for component, named in ((confirm("q"), None), (table, "t1-popup-1/t")):
        question = ask_question(session, "t1", component, "t1-popup-1")
        facts(session)
        data: dict[str, Any] = {"action": "confirm"}
        if named is not None:
            data = {"selected": [0], "source": named}
        said = Input(
            input_type="action" if named is None else "selection",
            data=data,
            source_component="t1-popup-1/q" if named is None else None,
        )
        (resolved,) = receive(session, said, lambda *_: None)
        assert isinstance(resolved, ResolveQuestion)
        assert resolved.action_id == question.action_id
        told = next(fact for fact in facts(session) if fact.type == "action.resolved")
        assert told.payload["input"]["surface"] == "t1-popup-1"
        assert told.payload["input"]["source_component"] == component.id


def test_a_surface_that_cannot_go_stays() -> None:
    one, two = started("one"), started("two", Limits(max_surfaces=1))
    open_surface(one, "t1", "side", SurfaceInfo(), shown(text("a", "x")))
    open_surface(one, "t1", "t1-popup-1", POPUP, shown(text("a", "x")))
    with pytest.raises(TransferDenied, match="no more surfaces"):
        transfer_surface(one, "side", two, retain_content=True)
    with pytest.raises(TransferDenied, match="only a toplevel"):
        transfer_surface(one, "t1-popup-1", started("three"), retain_content=True)
    assert (ids(one, "side"), set(two.screen.surfaces)) == (["a"], {"main"})


def test_shared_state_is_a_fact_of_its_turn_if_it_changed() -> None:
    session = started()
    facts(session)
    update_shared_state(session, "t1", {"n": 1})
    update_shared_state(session, "t1", {"n": 1})
    (fact,) = facts(session)
    assert (fact.type, fact.turn_id, fact.payload) == (
        "session.updated",
        "t1",
        {"sharedState": {"n": 1}},
    )
    with pytest.raises(ResourceLimit):
        update_shared_state(session, "t1", {"n": "x" * 100_000})
    with pytest.raises(ValueError, match="holds a secret"):
        update_shared_state(session, "t1", {"n": "ghp_abcdefghijklmnopqrstuvwxyz0123456789"})
    assert session.screen.shared_state == {"n": 1}


# -- two sessions, which are two agents' and two users' --------------------------------------------

RICH = profile_of(RendererCapabilities(dict(VERSIONS), WINDOWS))
PLAIN = profile_of(RendererCapabilities(dict(VERSIONS), FEATURES))


class Side:
    """One session with its renderers; everything in it carries its word, and nothing else does."""

    def __init__(self, word: str) -> None:
        self.word = word
        self.session = Session(Head(f"{word}-session", "epoch"), Limits(max_surfaces=6))
        self.watchers = [Watcher("rich", RICH), Watcher("plain", PLAIN)]
        self.log: list[bytes] = []
        for watcher in self.watchers:
            watcher.attach(self.session)
            watcher.join(self.session)
        self.number = 0

    def drain(self) -> None:
        drained = self.session.drain("2026-11-21T08:00:00.000000Z")
        self.log += drained.facts
        for watcher in self.watchers:
            watcher.deliver(self.session, drained.recorded, drained.cursor)

    def everything(self) -> bytes:
        """All that has left this session: facts, and frames to its renderers."""
        frames = b"".join(frame for one in self.watchers for frame in one.frames)
        return b"".join(self.log) + frames

    def text(self) -> Component:
        self.number += 1
        return text(f"{self.word}-{self.number}", f"{self.word} {self.number}")

    def step(self, chance: Random, other: Side) -> None:
        """Do something to a surface: of its own, or by a name of the other's."""
        session, turn = self.session, self.session.running
        if turn is None:
            user(session, f"{self.word} says")
            return
        own = [name for name in session.screen.surfaces if name != "main"]
        foreign = [name for name in other.session.screen.surfaces if name != "main"]
        # Now and then it guesses a name that the other has.
        name = chance.choice([*own, *foreign, f"{self.word}-w{chance.randrange(3)}"])
        target = chance.choice([f"{self.word}-{self.number}", f"{other.word}-{other.number}"])
        match chance.randrange(10):
            case 0 | 1:
                title = SurfaceInfo(title=f"{self.word} title")
                open_surface(session, turn, f"{self.word}-w{chance.randrange(3)}", title)
            case 2:
                info = SurfaceInfo(role="popup", parent=chance.choice(["main", *own]))
                open_surface(
                    session, turn, f"{turn}-{self.word}-p{self.number}", info, shown(self.text())
                )
            case 3 | 4:
                if name in own:
                    session.commit(turn, name, shown(self.text()))
            case 5:
                patch = PatchChange([Update(target, "props.content", f"{self.word} patched")])
                session.commit(turn, name, [patch])
            case 6:
                close_surface(session, name, "agent")
            case 7:
                data = {"action": "arp.close"}
                receive(
                    session, Input(input_type="action", data=data, surface=name), lambda *_: None
                )
            case 8:
                data = {"text": f"{self.word} types"}
                receive(session, Input(input_type="text", data=data, surface=name), lambda *_: None)
            case _:
                end_turn(session, turn, "completed")


def test_ten_thousand_operations_of_two_sessions_leak_nothing(
    request: pytest.FixtureRequest,
) -> None:
    """Neither sees, patches, closes or enumerates what the other has, nor reads its input.

    Each session uses names of the other too: that either makes something of its own under that
    name, or is refused with the words for what does not exist.
    """
    chance = Random(17)
    one, two = Side("alpha"), Side("beta")
    refused: list[ArpError] = []
    for _ in range(10_000):
        acting, other = (one, two) if chance.random() < 0.5 else (two, one)
        untouched = other.session.sequence, set(other.session.screen.surfaces)
        try:
            acting.step(chance, other)
        except ArpError as error:
            refused.append(error)
        assert (other.session.sequence, set(other.session.screen.surfaces)) == untouched
        acting.drain()
    assert len(one.log) > 3000
    assert len(two.log) > 3000
    # A name that one only guessed may stand in its own log: as the one that it asked for itself.
    own_words = re.compile(rb"beta (says|title|patched|types|\d)")
    assert own_words.findall(one.everything()) == []
    assert re.findall(rb"alpha (says|title|patched|types|\d)", two.everything()) == []
    assert len({error.code for error in refused}) > 1
    for side in (one, two):
        late = Watcher("late", RICH)
        late.snapshot(side.session, side.session.cursor)
        seen, live = late.state(), side.watchers[0].state()
        assert (seen["surfaces"], seen["windows"]) == (live["surfaces"], live["windows"])
