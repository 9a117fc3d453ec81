"""One renderer on one session, over many connections (protocol.md 2.3)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arp.protocol.codec import ENCODINGS, Encoding, encode_json, recode, renderer_decoder
from arp.protocol.components import Component
from arp.protocol.connection import screen
from arp.protocol.connection.renderer_connection import RendererConnection
from arp.protocol.errors import ErrorPayload, InvalidMessage
from arp.protocol.messages import (
    AgentCapabilities,
    AgentHello,
    AgentMessage,
    Command,
    CommandsMessage,
    Commit,
    Delta,
    DeltaPayload,
    ErrorMessage,
    Input,
    InputAck,
    Patch,
    Ping,
    Pong,
    Render,
    RendererAck,
    RendererCapabilities,
    RendererHello,
    Resume,
    SessionReady,
    TurnMessage,
)
from arp.protocol.patch import Remove, Update
from tests.protocol.hostile_frames import frames
from tests.protocol.sample_messages import FROM_AGENT

HELLO = RendererHello(capabilities=RendererCapabilities(["text"]), token="secret")


def connection(encoding: Encoding = "json") -> RendererConnection:
    return RendererConnection(HELLO, encoding)


def ready(resume: Any, seq: int = 0, epoch: str = "e") -> SessionReady:
    return SessionReady(session_id="s", epoch=epoch, seq=seq, resume=resume)


def say(text: str, seq: int | None = None) -> Delta:
    return Delta(session_id="s", seq=seq, turn_id="t1", payload=DeltaPayload(text))


def show(name: str, seq: int = 8) -> Render:
    component = Component(name, "text", {"content": name})
    return Render(session_id="s", seq=seq, turn_id="t1", components=[component])


def commit(seq: int | None = 8) -> Commit:
    return Commit(session_id="s", seq=seq, turn_id="t1")


def feed(to: RendererConnection, *messages: AgentMessage) -> list[AgentMessage]:
    out: list[AgentMessage] = []
    for message in messages:
        out += to.receive(recode(encode_json(message), to.encoding))
    return out


def sent(frame: bytes, encoding: Encoding = "json") -> Any:
    (message,) = renderer_decoder(encoding).decode(frame)
    return message


def on_session(*messages: AgentMessage) -> RendererConnection:
    """A renderer that joined a new session."""
    out = connection()
    feed(out, ready("new", 2), *messages)
    return out


def place(of: RendererConnection) -> tuple[str | None, int]:
    return of.epoch, of.seq


# -- what it says ----------------------------------------------------------------------------------


def test_first_hello_asks_for_nothing_to_resume() -> None:
    assert sent(connection().hello()) == HELLO


def test_session_is_known_when_the_agent_has_named_it() -> None:
    assert connection().session_id is None
    assert on_session().session_id == "s"


def test_hello_names_the_session_and_the_last_place() -> None:
    renderer = on_session(say("a", 5))
    hello = sent(renderer.hello())
    assert (hello.session_id, hello.resume, hello.token) == ("s", Resume("e", 5), "secret")
    assert renderer.session_id == "s"


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_frames_are_in_the_encoding_of_the_connection(encoding: Encoding) -> None:
    renderer = connection(encoding)
    assert sent(renderer.hello(), encoding) == HELLO
    frame = renderer.input("text", {"text": "hi"}, input_id="i1")
    assert sent(frame, encoding) == Input(input_type="text", data={"text": "hi"}, id="i1")
    assert sent(renderer.ack(4, {"a": "native"}), encoding) == RendererAck(
        seq=4, presented={"a": "native"}
    )
    assert sent(renderer.ack(5), encoding) == RendererAck(seq=5)


def test_input_names_what_it_answers() -> None:
    renderer = on_session()
    frame = renderer.input(
        "action", {"action": "confirm"}, input_id="i", source="q", surface="side", edits="t1"
    )
    assert sent(frame) == Input(
        input_type="action",
        data={"action": "confirm"},
        session_id="s",
        source_component="q",
        surface="side",
        id="i",
        edits="t1",
    )


def test_inputs_are_sent_again_until_they_are_acknowledged_or_refused() -> None:
    renderer = connection()
    for number in range(3):
        renderer.input("text", {"text": str(number)}, input_id=f"i{number}")
    feed(renderer, ready("new"), InputAck(id="i0"))
    feed(renderer, ErrorMessage(payload=ErrorPayload("no", 11, id="i1")))
    feed(renderer, ErrorMessage(payload=ErrorPayload("of another input", 11)))
    (again,) = map(sent, renderer.resend())
    assert (again.id, again.session_id, again.data) == ("i2", "s", {"text": "2"})
    feed(renderer, InputAck(id="i2"), InputAck(id="never sent"))
    assert renderer.resend() == []


def test_input_that_goes_with_files_is_kept_by_whoever_sends_it() -> None:
    """It is not sent again by itself: the files would be missing."""
    renderer = on_session()
    said = Input(input_type="file", data={"files": []}, session_id="s", id="i")
    assert sent(renderer.input_with_files(said)) == said
    assert renderer.resend() == []


@pytest.mark.parametrize("data", [{"text": "\ud800"}, {"\udfff": 1}])
def test_input_that_no_encoding_has_is_refused_and_not_kept(data: dict[str, Any]) -> None:
    """Kept, it would make every connection to come fail."""
    renderer = on_session()
    with pytest.raises(InvalidMessage) as refused:
        renderer.input("text", data, input_id="i1")
    assert refused.value.message == "input: half a surrogate pair is no text; replace it"
    assert renderer.resend() == []


# -- what it hears ---------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_messages_are_given_in_order_and_shown(encoding: Encoding) -> None:
    renderer = connection(encoding)
    messages: list[AgentMessage] = [ready("new", 3), say("a", 4), show("c"), commit()]
    frame = recode(encode_json(messages), encoding)
    assert renderer.receive(frame) == messages
    assert renderer.screen.text("t1") == "a"
    assert place(renderer) == ("e", 8)


def test_hello_of_the_agent_side_is_kept() -> None:
    hello = AgentHello(capabilities=AgentCapabilities(["text"], features=["batch"]))
    renderer = on_session(hello)
    assert renderer.agent == hello


def test_new_session_begins_with_an_empty_screen() -> None:
    """Spec: S16."""
    renderer = on_session(say("a", 5))
    feed(renderer, ready("new", 1, "f"))
    assert renderer.screen.turns == {}
    assert place(renderer) == ("f", 1)


def test_replay_goes_on_with_the_screen() -> None:
    """Spec: S16."""
    renderer = on_session(say("a", 5))
    renderer.hello()
    feed(renderer, ready("replay", 9), say("b", 6))
    assert renderer.screen.text("t1") == "ab"
    assert place(renderer) == ("e", 6)


def test_replay_of_all_that_there_is_begins_with_an_empty_screen() -> None:
    """An agent side may answer a `hello` that names no place with everything."""
    renderer = connection()
    renderer.hello()
    feed(renderer, ready("replay", 9), say("a", 5))
    assert place(renderer) == ("e", 5)
    assert sent(renderer.hello()).resume == Resume("e", 5)
    renderer.receive(b"{")
    assert sent(renderer.hello()).resume is None
    feed(renderer, ready("replay", 9), say("a", 5), say("b", 6))
    assert renderer.screen.text("t1") == "ab"
    assert place(renderer) == ("e", 6)


def test_replay_of_another_life_of_the_log_is_none_of_what_shows() -> None:
    """`epoch` names one life of a session's log. Spec: S16."""
    renderer = on_session(say("a", 5))
    renderer.hello()
    feed(renderer, ready("replay", 3, "f"), say("b", 1))
    assert renderer.screen.text("t1") == "b"
    assert place(renderer) == ("f", 1)


def test_render_and_patch_count_as_applied_with_their_commit() -> None:
    renderer = on_session(say("a", 5), show("c"))
    assert renderer.seq == 5
    patch = Patch(session_id="s", seq=8, turn_id="t1", ops=[])
    feed(renderer, patch)
    assert renderer.seq == 5
    feed(renderer, commit())
    assert renderer.seq == 8


def test_what_came_without_its_commit_is_dropped_with_the_connection() -> None:
    """Spec: S21."""
    renderer = on_session(show("c"))
    renderer.hello()
    feed(renderer, ready("replay"), commit(9))
    assert renderer.screen.output("t1") == []


def test_old_screen_shows_until_the_snapshot_is_complete() -> None:
    """In a snapshot only the very last `commit` carries `seq`. Spec: S16, S19."""
    renderer = on_session(say("old", 5))
    feed(renderer, ready("snapshot", 9, "f"), say("new"), commit(None))
    feed(renderer, TurnMessage(session_id="s", seq=9, turn_id="t1", status="running"))
    assert renderer.screen.text("t1") == "old"
    assert place(renderer)[0] is None
    feed(renderer, commit(9))
    assert renderer.screen.text("t1") == "new"
    assert place(renderer) == ("f", 9)
    feed(renderer, say("er", 10))
    assert (renderer.screen.text("t1"), renderer.seq) == ("newer", 10)


def test_half_a_snapshot_is_asked_for_again() -> None:
    """Spec: S19, S20."""
    renderer = on_session(say("old", 5))
    feed(renderer, ready("snapshot", 9), say("ne"))
    assert sent(renderer.hello()).resume is None
    feed(renderer, ready("snapshot", 9), say("new"), commit(9))
    assert renderer.screen.text("t1") == "new"


def test_renderer_stands_nowhere_while_it_catches_up() -> None:
    """What it was told has no place of its own until the last commit, so it is not resumed.

    Spec: S20.
    """
    renderer = on_session(say("a", 5))
    feed(renderer, say("b"))
    assert renderer.epoch is None
    assert sent(renderer.hello()).resume is None
    feed(renderer, ready("snapshot", 9), say("ab"), commit(9), say("c"), commit(None))
    assert sent(renderer.hello()).resume is None
    feed(renderer, ready("snapshot", 9), say("abc"), commit(9), say("d"), say("e"), commit(12))
    assert sent(renderer.hello()).resume == Resume("e", 12)
    assert renderer.screen.text("t1") == "abcde"


@pytest.mark.parametrize(
    "message",
    [
        TurnMessage(session_id="s", turn_id="t1", status="queued", position=1),
        ErrorMessage(payload=ErrorPayload("refused", 11, id="i1")),
        ErrorMessage(payload=ErrorPayload("failed", 18, debug="Traceback …"), turn_id="t1"),
        InputAck(id="i1", turn_id="t1"),
        show("c"),
    ],
    ids=lambda message: type(message).__name__,
)
def test_what_can_be_told_twice_leaves_no_place(message: AgentMessage) -> None:
    """Spec: S20."""
    renderer = on_session(say("a", 5), message)
    assert sent(renderer.hello()).resume == Resume("e", 5)


def test_place_never_falls() -> None:
    """A renderer's `seq` may jump, but never falls."""
    renderer = on_session(say("a", 9), say("b", 4))
    assert renderer.seq == 9


# -- what does not fit -----------------------------------------------------------------------------


def told(messages: list[AgentMessage]) -> list[tuple[int, str]]:
    return [
        (message.payload.code, message.payload.error)
        for message in messages
        if isinstance(message, ErrorMessage)
    ]


def test_message_of_a_newer_peer_is_passed_over() -> None:
    """Spec: S9."""
    renderer = on_session()
    assert renderer.receive(b'{"type":"hologram","seq":99}') == []
    batch = b'[{"type":"hologram"},' + encode_json(say("a", 5)) + b"]"
    assert renderer.receive(batch) == [say("a", 5)]
    assert place(renderer) == ("e", 5)


def test_commit_that_does_not_fit_is_told_and_costs_a_snapshot() -> None:
    """Spec: S20."""
    renderer = on_session(show("c"), commit())
    bad = Patch(session_id="s", seq=9, turn_id="t1", ops=[Remove("nobody")])
    heard = feed(renderer, bad, commit(9), say("goes on", 10))
    assert told(heard) == [(13, "no component 'nobody' on this surface")]
    assert renderer.screen.text("t1") == "goes on"
    assert sent(renderer.hello()).resume is None


def test_screen_that_differs_is_desynchronised_until_it_is_sent_anew() -> None:
    renderer = connection()
    feed(renderer, ready("new"), say("a", 1))
    assert not renderer.is_desynchronised
    renderer.receive(b"{")
    assert renderer.is_desynchronised
    feed(renderer, ready("snapshot", 5, "f"))
    assert not renderer.is_desynchronised


def test_frame_that_cannot_be_read_is_told_and_costs_a_snapshot() -> None:
    renderer = on_session()
    ((code, message),) = told(renderer.receive("half a pair: \ud800"))
    assert code == 11
    assert message.startswith("message is not json")
    assert sent(renderer.hello()).resume is None


def test_snapshot_with_something_unreadable_in_it_does_not_count() -> None:
    renderer = on_session()
    feed(renderer, ready("snapshot", 9), say("a"))
    renderer.receive(b"{")
    feed(renderer, commit(9))
    assert sent(renderer.hello()).resume is None


@pytest.mark.parametrize(
    "lost",
    [
        b"{",
        b'{"type":"render","session_id":"s","components":5}',
        b'{"type":"patch","session_id":"s","ops":[{"op":"fly"}]}',
    ],
)
def test_nothing_shows_of_a_commit_of_which_something_is_missing(lost: bytes) -> None:
    """architecture.md, what must always hold, 1. Spec: S28."""
    renderer = on_session(show("a"))
    renderer.receive(lost)
    feed(renderer, show("b"), commit())
    assert renderer.screen.output("t1") == []
    feed(renderer, show("c", 9), commit(9))
    assert [part.id for part in renderer.screen.output("t1")] == ["c"]


def test_commit_that_cannot_be_read_drops_what_it_was_for() -> None:
    renderer = on_session(show("a"))
    renderer.receive(b'{"type":"commit","session_id":5}')
    feed(renderer, show("b"), commit())
    assert [part.id for part in renderer.screen.output("t1")] == ["b"]


def test_other_message_that_cannot_be_read_takes_no_commit_with_it() -> None:
    renderer = on_session(show("a"))
    renderer.receive(b'{"type":"turn","session_id":"s","status":"dreaming"}')
    feed(renderer, commit())
    assert [part.id for part in renderer.screen.output("t1")] == ["a"]


def test_what_waits_for_a_commit_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A peer that never commits does not fill the memory, nor show part of a commit later."""
    monkeypatch.setattr(screen, "MAX_PENDING_BYTES", 2 * len(encode_json(show("a"))))
    renderer = on_session(show("a"), show("b"))
    heard = feed(renderer, show("c"), show("d"))
    ((code, message),) = told(heard)
    assert code == 4
    assert message.endswith("bytes came without a commit; they are not shown")
    feed(renderer, commit())
    assert renderer.screen.output("t1") == []
    assert sent(renderer.hello()).resume is None


def test_what_comes_twice_is_applied_and_told_once() -> None:
    """protocol.md 2.3: each message once, in order; `seq` never falls. Spec: S10."""
    renderer = on_session(say("a", 3), show("b"), commit())
    assert feed(renderer, say("a", 3), show("b"), commit()) == []
    (heard,) = feed(renderer, say("c", 9))
    assert isinstance(heard, Delta)
    assert [part.id for part in renderer.screen.output("t1")] == ["t1/1", "b", "t1/2"]
    assert renderer.screen.text("t1") == "ac"


def test_what_was_heard_stays_as_it_is_though_the_screen_goes_on() -> None:
    renderer = on_session()
    heard, _ = feed(renderer, show("b"), commit())
    update = Update("b", "props.content", "new")
    feed(renderer, Patch(session_id="s", seq=9, turn_id="t1", ops=[update]), commit(9))
    assert isinstance(heard, Render)
    assert heard.components[0].props == {"content": "b"}


def test_what_was_committed_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(screen, "MAX_PENDING_BYTES", 2 * len(encode_json(show("a"))))
    renderer = on_session()
    for seq, name in enumerate("abcd", 5):
        assert told(feed(renderer, show(name, seq), show(name, seq), commit(seq))) == []
    assert [part.id for part in renderer.screen.output("t1")] == list("abcd")


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(data=st.data())
def test_any_bytes_end_in_messages_and_the_next_is_taken(
    encoding: Encoding, data: st.DataObject
) -> None:
    """style.md 3: the peer can never make us raise."""
    renderer = connection(encoding)
    feed(renderer, ready("new", 1))
    for frame in data.draw(st.lists(frames(FROM_AGENT, encoding), min_size=1, max_size=4)):
        renderer.receive(frame)
        json.dumps(renderer.screen.canonical())
        for turn in renderer.screen.turns:
            assert isinstance(renderer.screen.text(turn), str)
    feed(renderer, ready("new", 2), commit(None), say("good", 3))
    assert renderer.screen.text("t1") == "good"
    feed(renderer, show("c"), commit(8))
    assert [part.id for part in renderer.screen.output("t1")] == ["t1/1", "c"]
    assert place(renderer) == ("e", 8)


# -- signs of life ---------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_signs_of_life_are_asked_for_and_given_in_every_encoding(encoding: Encoding) -> None:
    one = connection(encoding)
    assert sent(one.ping("p1"), encoding) == Ping(id="p1")
    assert sent(one.pong(Ping(id="p2")), encoding) == Pong(id="p2")


def test_signs_of_life_stand_nowhere_and_show_nothing() -> None:
    """Between the messages of a commit too."""
    one = on_session(say("x", 4), show("a"))
    before = one.screen.canonical()
    assert feed(one, Ping(id="p1"), Pong(id="p2")) == [Ping(id="p1"), Pong(id="p2")]
    assert (place(one), one.screen.canonical()) == (("e", 4), before)
    feed(one, commit())
    assert "a" in one.screen.surfaces["main"].nodes


def test_commands_are_those_of_the_app_and_of_the_session_each_name_once() -> None:
    end = connection("cbor")
    assert not end.commands
    of_app = AgentHello(
        capabilities=AgentCapabilities(["text"], commands=[Command("a"), Command("b")])
    )
    end.receive_json(encode_json(of_app))
    own = CommandsMessage(session_id="s", seq=3, commands=(Command("b", "mine"),))
    end.receive_json(encode_json(ready("new")))
    end.receive_json(encode_json(own))
    assert end.commands == (Command("a"), Command("b", "mine"))
    assert end.replies() == []
