"""A secret that a component grows by in pieces: wherever it is cut, nobody is told it."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arp.ledger.fact import Fact
from arp.protocol.components import Component
from arp.protocol.errors import ArpError, SurfaceDestroyed
from arp.protocol.limits import Limits
from arp.protocol.patch import Append, Insert, PatchOp, Remove, Replace, Update
from arp.redact.redactor import MARK, Redactor
from arp.redact.settings import Redaction
from arp.session.asking import ask_question
from arp.session.session import Head, Session
from arp.session.turn_end import end_turn
from arp.surface.change import Change, PatchChange, RenderChange
from tests.redact.test_redactor import ORDINARY, SECRETS
from tests.session.conversation import AT, begun, facts, text, user
from tests.support.restoring import restore

PATHS = [("text", "props.content"), ("code-block", "props.code"), ("status-card", "props.message")]
KNOWN = "correct-horse-battery-staple"
REDACTOR = Redactor(Redaction(secrets=(KNOWN,)))


def component(kind: str, component_id: str = "c", content: str = "") -> Component:
    props: dict[str, dict[str, str]] = {
        "text": {"content": content},
        "code-block": {"code": content or "\n"},
        "status-card": {"status": "info", "title": "t", "message": content},
    }
    return Component(component_id, kind, dict(props[kind]))


def shown(session: Session, path: str = "props.content", target: str = "c") -> str:
    tree = session.tree("main")
    assert tree is not None
    content = tree.component(target).props[path.removeprefix("props.")]
    assert isinstance(content, str)
    return content


def append(session: Session, *pieces: str, path: str = "props.content", target: str = "c") -> None:
    """Each piece in a commit of its own."""
    for piece in pieces:
        session.commit("t1", "main", [PatchChange([Append(target, path, piece)])])


def cut(whole: str, *places: int) -> list[str]:
    ends = [*sorted(places), len(whole)]
    return [whole[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def secret_in(whole: str, cleaned: str) -> str:
    begin, end = cleaned.split(MARK)
    return whole[len(begin) : len(whole) - len(end)]


def without(session: Session, secret: str, read: Sequence[Fact]) -> None:
    """Neither what is stored nor what is shown has it, and the one rebuilds the other."""
    told = "".join(
        op.value if isinstance(op.value, str) else ""
        for fact in read
        for change in msgspec.convert(fact.payload.get("changes", []), list[dict[str, object]])
        for op in _appends(change)
    )
    assert secret not in told
    assert secret not in str(read)
    assert secret not in str(session.screen.canonical())


def _appends(change: dict[str, object]) -> list[Append]:
    ops = change.get("ops", [])
    assert isinstance(ops, list)
    return [msgspec.convert(op, Append) for op in ops if op.get("op") == "append"]


def all_facts(session: Session, before: Sequence[Fact] = ()) -> list[Fact]:
    read = [*before, *facts(session)]
    rebuilt = restore(session.head, read, Limits())
    assert rebuilt.screen.canonical() == session.screen.canonical()
    return read


def new() -> Session:
    session = Session(Head("s", "e"), Limits(), "queue", REDACTOR)
    user(session, "hi")
    return session


@pytest.mark.parametrize(("kind", "path"), PATHS)
@pytest.mark.parametrize(("whole", "cleaned", "rule"), SECRETS)
def test_secret_in_two_pieces_is_taken_out_wherever_it_is_cut(
    whole: str, cleaned: str, rule: str, kind: str, path: str
) -> None:
    secret = secret_in(whole, cleaned)
    begin = "\n" if kind == "code-block" else ""
    for place in range(len(whole) + 1):
        session = new()
        session.commit("t1", "main", [RenderChange([component(kind)])])
        append(session, *cut(whole, place), path=path)
        end_turn(session, "t1", "completed")
        read = all_facts(session)
        assert shown(session, path) == begin + cleaned, place
        without(session, secret, read)
        found = [fact for fact in read if fact.type == "output.redacted"]
        assert len(found) == 1
        assert rule in str(found)


@given(st.sampled_from(SECRETS), st.lists(st.integers(0, 90), max_size=8), st.booleans())
def test_secret_in_any_pieces_is_taken_out(
    secret: tuple[str, str, str], places: list[int], in_one: bool
) -> None:
    """Also where several pieces stand in one commit, or the first in the component itself."""
    whole, cleaned, _ = secret
    session = new()
    first, *rest = cut(whole, *(min(place, len(whole)) for place in places))
    if in_one:
        changes: list[Change] = [
            RenderChange([component("text")]),
            PatchChange([Append("c", "props.content", piece) for piece in (first, *rest)]),
        ]
        session.commit("t1", "main", changes)
    else:
        session.commit("t1", "main", [RenderChange([component("text")])])
        append(session, first, *rest)
    end_turn(session, "t1", "completed")
    assert shown(session) == cleaned
    without(session, secret_in(whole, cleaned), all_facts(session))


@pytest.mark.parametrize(
    "between",
    [
        "turn",
        "ask",
        "show",
        *(pytest.param(one, marks=pytest.mark.slow) for one in ("say", "nothing")),
    ],
)
@pytest.mark.parametrize(("whole", "cleaned"), [(whole, cleaned) for whole, cleaned, _ in SECRETS])
def test_what_comes_between_two_pieces_lets_no_secret_out(
    whole: str, cleaned: str, between: str
) -> None:
    """A turn that ends, and a question, show what was held; the rest is still taken out.

    Only the `@` behind it tells that what stands in an address is a password: one that is whole
    when the turn ends is a host or a port as far as anybody knows.
    """
    for place in range(1, len(whole)):
        if between in ("turn", "ask") and re.search(r"://[^/]*\Z", whole[:place]) and "@" in whole:
            continue
        session, read = new(), list[Fact]()
        session.commit("t1", "main", [RenderChange([component("text"), component("text", "d")])])
        one, other = cut(whole, place)
        append(session, one)
        turn = "t1"
        match between:
            case "turn":
                end_turn(session, "t1", "completed")
                user(session, "more")
                turn = "t2"
            case "ask":
                ask_question(session, "t1", Component("q", "confirm", {"title": "?"}))
            case "show":
                append(session, "other ", target="d")
            case "say":
                session.say("t1", "said")
            case _:
                read = facts(session)
        session.commit(turn, "main", [PatchChange([Append("c", "props.content", other)])])
        end_turn(session, turn, "completed")
        without(session, secret_in(whole, cleaned), all_facts(session, read))
        if between in ("show", "say", "nothing"):
            assert shown(session) == cleaned


@pytest.mark.parametrize("place", range(1, len(KNOWN)))
def test_known_secret_is_taken_out_wherever_it_is_cut(place: int) -> None:
    session = new()
    session.commit("t1", "main", [RenderChange([component("text", content="it is ")])])
    append(session, *cut(KNOWN, place), " so")
    end_turn(session, "t1", "completed")
    read = all_facts(session)
    assert shown(session) == f"it is {KNOWN[: place if place < 4 else 0]}[redacted] so"
    without(session, KNOWN, read)


@pytest.mark.parametrize("content", ORDINARY)
@pytest.mark.parametrize("size", [1, 4, 9])
def test_ordinary_text_grows_as_it_is_and_nothing_of_it_is_lost(content: str, size: int) -> None:
    session = new()
    session.commit("t1", "main", [RenderChange([component("text")])])
    append(session, *(content[start : start + size] for start in range(0, len(content), size)))
    end_turn(session, "t1", "completed")
    assert shown(session) == content
    assert "output.redacted" not in str(all_facts(session))


def test_first_piece_may_stand_in_what_is_shown_or_set_in_the_same_commit() -> None:
    """Whole, or begun: what stands before an appended piece tells where a secret goes on."""
    token = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
    group = Component("g", "group", {"children": [{"id": "c", "type": "text", "props": {}}]})
    for place in range(4, len(token)):
        one, other = cut(f"key {token}", place)
        child = {"id": "c", "type": "text", "props": {"content": one}}
        nested = msgspec.structs.replace(group, props={"children": [child]})
        grown: list[PatchOp] = [Append("c", "props.content", other)]
        setting: list[PatchOp] = [Update("c", "props.content", one)]
        begins: list[list[Change]] = [
            [RenderChange([component("text", content=one)])],
            [RenderChange([nested])],
            [PatchChange([Insert(component("text", content=one))])],
            [RenderChange([component("text", content="x")]), PatchChange(setting)],
            [
                RenderChange([component("text", content="x")]),
                PatchChange([Replace("c", component("text", content=one))]),
            ],
        ]
        for begin in begins:
            for together in (True, False):
                session = new()
                if together:
                    session.commit("t1", "main", [*begin, PatchChange(grown)])
                else:
                    session.commit("t1", "main", begin)
                    session.commit("t1", "main", [PatchChange(grown)])
                end_turn(session, "t1", "completed")
                without(session, token, all_facts(session))
                assert token[4:] not in shown(session)


def test_what_is_held_is_dropped_with_the_text_that_it_belongs_to() -> None:
    """Set anew, replaced, removed or shown again: it would stand in another text."""
    again: list[list[Change]] = [
        [PatchChange([Update("c", "props.content", "new")])],
        [PatchChange([Replace("c", text("c", "new"))])],
        [PatchChange([Remove("c"), Insert(text("c", "new"))])],
        [RenderChange([text("c", "new")])],
        [RenderChange([text("c", "new")], replace=True)],
    ]
    for change in again:
        session = new()
        session.commit("t1", "main", [RenderChange([text("c", "old ")])])
        append(session, "token: abc")
        assert shown(session) == "old token: "
        session.commit("t1", "main", change)
        append(session, " more")
        end_turn(session, "t1", "completed")
        assert shown(session) == "new more"


def test_what_is_held_of_a_component_that_is_gone_is_not_shown() -> None:
    session = new()
    session.commit("t1", "main", [RenderChange([text("c", "old ")])])
    append(session, "token: abc")
    session.commit("t1", "main", [PatchChange([Remove("c")])])
    end_turn(session, "t1", "completed")
    assert "abc" not in str(all_facts(session))


def test_other_changes_of_a_component_leave_what_is_held() -> None:
    session = new()
    table = Component("c", "table", {"headers": ["h"], "rows": [["token: "], ["x"]]})
    session.commit("t1", "main", [RenderChange([table, text("d", "")])])
    append(session, "abcdef", path="props.rows.0.0")
    more: list[PatchOp] = [
        Append("c", "props.rows", [["y"]]),
        Update("c", "props.title", "T"),
        Update("d", "props.content", "z"),
    ]
    session.commit("t1", "main", [PatchChange(more)])
    append(session, "ghi123 ", path="props.rows.0.0")
    end_turn(session, "t1", "completed")
    tree = session.tree("main")
    assert tree is not None
    assert tree.component("c").props["rows"] == [["token: [redacted] "], ["x"], ["y"]]


def test_refused_commit_leaves_what_is_held_as_it_was() -> None:
    session = new()
    session.commit("t1", "main", [RenderChange([text("c", "")])])
    append(session, "token: abc")
    bad: list[PatchOp] = [Append("c", "props.content", "def "), Remove("nobody")]
    with pytest.raises(ArpError):
        session.commit("t1", "main", [PatchChange(bad)])
    append(session, "xyz ")
    assert shown(session) == "token: abcxyz "


@pytest.mark.parametrize(
    ("target", "path"),
    [("nobody", "props.content"), ("c", "content"), ("c", "props.rows.9.0"), ("c", "props.no.way")],
)
def test_append_that_does_not_fit_is_refused_where_it_is_made(target: str, path: str) -> None:
    """Also when all of it would be held."""
    session = begun()
    table = Component("c", "table", {"headers": [], "rows": []})
    session.commit("t1", "main", [RenderChange([table])])
    with pytest.raises(ArpError):
        append(session, "token: abc123", path=path, target=target)


def test_what_no_longer_fits_is_left_out_and_the_turn_ends_all_the_same() -> None:
    session = Session(Head("s", "e"), Limits(max_message_bytes=1000))
    user(session, "hi")
    session.commit("t1", "main", [RenderChange([text("c", "x" * 900)])])
    append(session, " token: abc")
    session.screen.surfaces["main"].nodes["c"].own["content"] += "y" * 200
    end_turn(session, "t1", "completed")
    assert session.running is None


def test_switched_off_pieces_pass_as_they_are() -> None:
    session = Session(Head("s", "e"), Limits(), "queue", Redactor(Redaction(enabled=False)))
    user(session, "hi")
    session.commit("t1", "main", [RenderChange([text("c", "")])])
    append(session, "token: ", "abc123 ")
    assert shown(session) == "token: abc123 "
    session.drain(AT)


def test_what_is_held_is_shown_when_its_own_turn_ends_and_no_other() -> None:
    session = new()
    user(session, "next")
    session.commit("t1", "main", [RenderChange([text("c", "")])])
    append(session, "token: abc")
    end_turn(session, "t2", "cancelled")
    assert shown(session) == "token: "
    end_turn(session, "t1", "completed")
    assert shown(session) == "token: abc"


def test_component_that_goes_with_the_one_it_stands_in_takes_what_is_held_along() -> None:
    session = new()
    inner = {"id": "c", "type": "text", "props": {"content": "", "format": "plain"}}
    group = Component("g", "group", {"children": [inner], "gap": "small"})
    session.commit("t1", "main", [RenderChange([group])])
    append(session, "token: abc")
    session.commit("t1", "main", [PatchChange([Remove("g")])])
    end_turn(session, "t1", "completed")
    assert "abc" not in str(all_facts(session))


def test_text_grows_beside_what_is_shown_in_the_same_commit() -> None:
    session = new()
    session.commit("t1", "main", [RenderChange([text("c", "token: ")])])
    beside: list[Change] = [
        RenderChange([text("d", "x")]),
        PatchChange([Append("c", "props.content", "abc123 ")]),
    ]
    session.commit("t1", "main", beside)
    assert shown(session) == "token: [redacted] "


def test_long_text_costs_only_its_end() -> None:
    """What grew by many pieces is joined no more often than without."""
    session = new()
    session.commit("t1", "main", [RenderChange([text("c", "")])])
    tree = session.tree("main")
    assert tree is not None
    for _ in range(400):
        tree.append_text("c", "content", "- ")
    append(session, "token: abc123 ")
    assert shown(session) == "- " * 400 + "token: [redacted] "


def test_text_of_a_field_that_is_called_a_secret_is_taken_out_piece_by_piece() -> None:
    session = new()
    custom = Component("c", "x-acme-login", {"password": ""}, fallback=text("f", "login"))
    session.commit("t1", "main", [RenderChange([custom])])
    append(session, "sk-", "ghp_abcdefghijklmnopqrstuvwxyz0123456789", path="props.password")
    assert "abcdef" not in shown(session, "props.password")
    append(session, "whole ghp_abcdefghijklmnopqrstuvwxyz0123456789 ", path="props.note")
    assert shown(session, "props.note") == "whole ghp_[redacted] "


def test_what_a_turn_leaves_for_its_end_is_done_before_it_and_once() -> None:
    """As long as the turn may still record; what is refused then does not keep it from ending."""
    session, done = new(), list[str]()

    def note() -> None:
        session.in_turn("run.status", "t1", {}, status="running")
        done.append("noted")

    def refuse() -> None:
        raise SurfaceDestroyed("too late")

    session.before_end("t1", refuse)
    session.before_end("t1", note)
    session.before_end("t2", note)
    facts(session)
    end_turn(session, "t1", "completed")
    end_turn(session, "t1", "completed")
    read = [fact.type for fact in facts(session)]
    assert done == ["noted"]
    assert read == ["run.status", "turn.completed"]
