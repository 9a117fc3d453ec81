"""Secrets in a session: neither its facts nor its screen have them, and both have the same."""

from __future__ import annotations

import msgspec
import pytest

from arp.ledger.fact import Fact
from arp.protocol.components import Component
from arp.protocol.errors import ArpError
from arp.protocol.limits import Limits
from arp.protocol.patch import Append, Insert, PatchOp, Update
from arp.redact.redactor import Redactor
from arp.redact.settings import Redaction
from arp.session.asking import ask_question
from arp.session.effects import ResolveQuestion
from arp.session.recording.recorded import OUTPUT_TEXT, REASONING_TEXT
from arp.session.session import Head, Session
from arp.session.turn_end import end_turn
from arp.surface.change import PatchChange, RenderChange
from tests.redact.test_redactor import SECRETS
from tests.session.conversation import AT, begun, facts, new, send, text, user
from tests.support.restoring import restore

TOKEN = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
HIDDEN = "ghp_[redacted]"
SECRET = "hunter2supersecret"
FOUND = {"findings": [{"rule": "github-token", "count": 1}]}


def types(read: list[Fact]) -> list[str]:
    return [fact.type for fact in read]


def without_secret(session: Session, read: list[Fact]) -> None:
    """The facts do not have it, and what is rebuilt from them is what is shown."""
    assert "abcdefgh" not in str(read)
    assert "abcdefgh" not in str(session.screen.canonical())
    assert [fact.sequence for fact in read] == list(range(1, len(read) + 1))
    rebuilt = restore(session.head, read, Limits())
    assert rebuilt.screen.canonical() == session.screen.canonical()
    assert rebuilt.sequence == session.sequence


def test_what_is_said_is_redacted_and_a_fact_says_so() -> None:
    session = begun()
    before = session.sequence
    session.say("t1", f"it is {TOKEN} now")
    read = facts(session)
    assert [(fact.sequence, fact.type, fact.payload) for fact in read] == [
        (before + 1, "model.delta", {"text": f"it is {HIDDEN} now"}),
        (before + 2, "output.redacted", FOUND),
    ]
    assert read[1].turn_id == "t1"
    assert session.screen.text("t1") == f"it is {HIDDEN} now"


def test_another_input_of_a_queued_turn_is_redacted_and_the_agent_gets_what_was_typed() -> None:
    session = new()
    user(session, "hi")
    user(session, "two")
    send(session, "text", {"text": f"it is {TOKEN}"}, edits="t2", id="e1")
    read = facts(session)
    (changed,) = [fact for fact in read if fact.type == "queue.changed" and fact.turn_id]
    assert changed.payload["input"]["data"] == {"text": f"it is {HIDDEN}"}
    assert session.screen.turns["t2"].inputs[0].data == {"text": f"it is {HIDDEN}"}
    assert session.input_log.typed["t2"] == {"text": f"it is {TOKEN}"}
    assert types(read)[-1] == "output.redacted"
    without_secret(session, read)


def test_a_secret_over_two_writes_is_in_neither_fact() -> None:
    session = new()
    user(session, "hi")
    session.say("t1", "key ghp_")
    read = facts(session)
    session.say("t1", TOKEN[4:20])
    assert session.drain(AT).facts == [], "all of it is held"
    session.say("t1", TOKEN[20:] + " ok")
    read += facts(session)
    assert types(read)[-2:] == ["model.delta", "output.redacted"]
    assert session.screen.text("t1") == f"key {HIDDEN} ok"
    without_secret(session, read)


def test_held_text_stands_before_the_next_fact_of_its_turn() -> None:
    session = new()
    user(session, "hi")
    session.say("t1", "a sk-lea")
    read = facts(session)
    session.record("channel.connected", {}, channel_id="c")
    read += facts(session)
    end_turn(session, "t1", "completed")
    read += facts(session)
    assert [(f.type, f.payload.get("text")) for f in read[-4:]] == [
        ("model.delta", "a sk-"),
        ("channel.connected", None),
        ("model.delta", "lea"),
        ("turn.completed", None),
    ]
    without_secret(session, read)


def test_held_text_stands_before_a_commit_and_before_thinking() -> None:
    session = new()
    user(session, "hi")
    session.say("t1", "a sk-le")
    session.commit("t1", "main", [RenderChange([text("c")])])
    session.say("t1", "b sk-lo")
    session.say("t1", "thought", "reasoning.delta")
    read = facts(session)
    assert [(f.type, f.payload.get("text")) for f in read[-6:]] == [
        ("model.delta", "a sk-"),
        ("model.delta", "le"),
        ("artifact.changed", None),
        ("model.delta", "b sk-"),
        ("model.delta", "lo"),
        ("reasoning.delta", "thought"),
    ]
    without_secret(session, read)


def test_a_cursor_asked_for_while_all_is_held_is_the_one_before() -> None:
    session = begun()
    session.say("t1", "sk-")
    session.drain(AT)
    cursor = session.cursor
    session.say("t1", "abcdefgh")
    assert session.cursor == cursor
    assert session.sequence == cursor.seq


def test_thinking_is_redacted() -> None:
    session = new()
    user(session, "hi")
    for piece in ("it is ", TOKEN[:15], TOKEN[15:], " so"):
        session.say("t1", piece, "reasoning.delta")
    read = facts(session)
    assert session.screen.turns["t1"].thinking == f"it is {HIDDEN} so"
    without_secret(session, read)


@pytest.mark.parametrize("kind", [OUTPUT_TEXT, REASONING_TEXT])
@pytest.mark.parametrize(("whole", "cleaned"), [(whole, cleaned) for whole, cleaned, _ in SECRETS])
def test_what_is_said_or_thought_in_two_writes_is_redacted_wherever_it_is_cut(
    whole: str, cleaned: str, kind: str
) -> None:
    for place in range(len(whole) + 1):
        session, read = new(), list[Fact]()
        user(session, "hi")
        for piece in (whole[:place], whole[place:]):
            if piece:
                session.say("t1", piece, kind)
            read += facts(session)
        end_turn(session, "t1", "completed")
        read += facts(session)
        turn = session.screen.turns["t1"]
        assert (session.screen.text("t1") if kind == OUTPUT_TEXT else turn.thinking) == cleaned
        assert "".join(fact.payload["text"] for fact in read if fact.type == kind) == cleaned


def test_what_is_shown_is_redacted() -> None:
    session = new()
    user(session, "hi")
    shown = Component("c", "text", {"content": TOKEN}, fallback=text("f", TOKEN))
    session.commit("t1", "main", [RenderChange([shown])])
    ops: list[PatchOp] = [Update("c", "props.content", f"x {TOKEN}"), Insert(text("d", TOKEN))]
    session.commit("t1", "main", [PatchChange(ops)])
    read = facts(session)
    assert types(read)[-4:] == [
        "artifact.changed",
        "output.redacted",
        "artifact.changed",
        "output.redacted",
    ]
    assert read[-1].payload == {"findings": [{"rule": "github-token", "count": 2}]}
    without_secret(session, read)


def test_text_that_a_component_grows_by_is_looked_at_with_what_it_has() -> None:
    session = new()
    user(session, "hi")
    session.commit("t1", "main", [RenderChange([text("c", "key ghp_abc")])])
    session.commit("t1", "main", [PatchChange([Append("c", "props.content", TOKEN[7:] + " ok")])])
    read = facts(session)
    tree = session.tree("main")
    assert tree is not None
    assert tree.component("c").props["content"] == "key ghp_abc[redacted] ok"
    without_secret(session, read)


def test_known_secret_that_a_component_grows_by_is_counted_once() -> None:
    session = Session(Head("s", "e"), Limits(), "queue", Redactor(Redaction(secrets=(SECRET,))))
    user(session, "hi")
    session.commit("t1", "main", [RenderChange([text("c", "a")])])
    session.commit("t1", "main", [PatchChange([Append("c", "props.content", f" {SECRET} b")])])
    read = facts(session)
    tree = session.tree("main")
    assert tree is not None
    assert tree.component("c").props["content"] == "a [redacted] b"
    assert [fact.payload for fact in read if fact.type == "output.redacted"] == [
        {"findings": [{"rule": "known-secret", "count": 1}]}
    ]


def test_a_refused_commit_leaves_nothing_to_tell() -> None:
    session = begun()
    with pytest.raises(ArpError):
        session.commit("t1", "main", [RenderChange([Component("", "nothing", {"a": TOKEN})])])
    session.say("t1", "on")
    assert types(facts(session)) == ["model.delta"]


def test_tools_and_errors_are_redacted() -> None:
    session = new()
    user(session, "hi")
    ids = {"step_id": "1", "tool_call_id": "1"}
    arguments = msgspec.json.encode({"password": "p", "url": "https://a:b@c/"}).decode()
    session.in_turn("tool.args", "t1", {"tool": "get", "args": arguments}, **ids)
    session.in_turn("tool.failed", "t1", {"tool": "get", "error": f"no {TOKEN}"}, **ids)
    session.record("runtime.warning", {"message": "w"}, native_status=f"refused {TOKEN}")
    read = facts(session)
    kept = [fact for fact in read if fact.type in ("tool.args", "tool.failed", "runtime.warning")]
    assert msgspec.json.decode(kept[0].payload["args"]) == {
        "password": "[redacted]",
        "url": "https://a:[redacted]@c/",
    }
    assert kept[1].payload["error"] == f"no {HIDDEN}"
    assert kept[2].native_status == f"refused {HIDDEN}"
    assert types(read).count("output.redacted") == 3
    without_secret(session, read)


def test_what_a_person_types_is_redacted_in_facts_and_kept_for_the_turn() -> None:
    session = new()
    user(session, f"use {TOKEN}", "i1")
    read = facts(session)
    assert read[0].payload["input"] == {
        "input_type": "text",
        "data": {"text": f"use {HIDDEN}"},
        "id": "i1",
    }
    assert types(read)[:2] == ["turn.submitted", "output.redacted"]
    assert session.title == f"use {HIDDEN}"
    assert session.input_log.typed == {"t1": {"text": f"use {TOKEN}"}}
    without_secret(session, read)
    end_turn(session, "t1", "completed")
    assert session.input_log.typed == {}


def test_an_input_without_secrets_is_kept_once() -> None:
    session = begun()
    (echo,) = session.screen.turns["t1"].inputs
    assert session.input_log.typed["t1"] is echo.data


def test_an_answer_goes_whole_to_the_agent_and_redacted_to_everyone() -> None:
    """The form goes on having its field `token`: only what is filled in is hidden."""
    session = new()
    user(session, "hi")
    fields = [{"name": "token", "label": "Token", "value": "prefilled"}]
    ask_question(session, "t1", Component("q", "form", {"fields": fields}))
    effects = send(session, "form_submit", {"fields": {"token": "x-abcdefgh"}})
    read = facts(session)
    tree = session.tree("main")
    assert tree is not None
    form = tree.component("q").props
    assert form["fields"] == fields
    assert form["answer"] == {"token": "[redacted]"}
    answered = [fact for fact in read if fact.type == "action.resolved"]
    assert answered[0].payload["answer"] == {"token": "[redacted]"}
    values = [e.outcome.value for e in effects if isinstance(e, ResolveQuestion)]
    assert values == [{"token": "x-abcdefgh"}]
    without_secret(session, read)


def test_a_question_is_redacted_where_it_is_asked() -> None:
    session = new()
    user(session, "hi")
    ask_question(session, "t1", Component("q", "confirm", {"title": f"Use {TOKEN}?"}))
    read = facts(session)
    asked = [fact for fact in read if fact.type == "action.required"]
    assert asked[0].payload["component"]["props"]["title"] == f"Use {HIDDEN}?"
    without_secret(session, read)


def test_switched_off_everything_is_kept_as_it_was() -> None:
    session = Session(Head("s", "e"), Limits(), redactor=Redactor(Redaction(enabled=False)))
    user(session, f"use {TOKEN}")
    session.say("t1", TOKEN)
    session.commit("t1", "main", [RenderChange([text("c", TOKEN)])])
    read = facts(session)
    assert "output.redacted" not in types(read)
    assert str(read).count(TOKEN) == 3
