"""No frame is larger than its renderer said, and what is divided has the same effect."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from arp.protocol.codec import ENCODINGS, Encoding, agent_decoder, encode_json
from arp.protocol.components import Component
from arp.protocol.errors import ErrorPayload
from arp.protocol.messages import (
    AgentMessage,
    Command,
    CommandChoice,
    CommandsMessage,
    Commit,
    Delta,
    DeltaPayload,
    ErrorMessage,
    InputEcho,
    InputType,
    Patch,
    Render,
    ToolEnd,
    ToolEndPayload,
    ToolProgress,
    ToolProgressPayload,
    ToolStart,
    ToolStartPayload,
)
from arp.protocol.patch import Update
from arp.view.chunks import chunked, divided

MOST = 1024


def told(message: AgentMessage, encoding: Encoding = "json") -> list[Any]:
    """The messages that go out, each in a frame of its own."""
    frames = chunked(message, MOST, encoding)
    assert all(len(frame) <= MOST for frame in frames)
    decoder = agent_decoder(encoding)
    return [one for frame in frames for one in decoder.decode(frame)]


def test_message_that_fits_is_one_frame_as_it_is() -> None:
    """Nothing is changed."""
    message = Commit(session_id="s", seq=1)
    assert chunked(message, MOST, "json") == [encode_json(message)]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_text_goes_in_pieces_of_which_the_last_has_the_place(encoding: Encoding) -> None:
    """Who is cut off between two has not applied the place."""
    text = "wörds and " * 400
    message = Delta(session_id="s", seq=7, turn_id="t1", payload=DeltaPayload(text, target="t1/1"))
    pieces = told(message, encoding)
    assert "".join(piece.payload.delta for piece in pieces) == text
    assert [piece.seq for piece in pieces] == [None] * (len(pieces) - 1) + [7]
    assert {(piece.turn_id, piece.payload.target) for piece in pieces} == {("t1", "t1/1")}


def test_components_go_in_several_renders_of_which_the_first_replaces() -> None:
    """They take effect at their one commit."""
    components = [Component(f"c{n}", "text", {"content": "x" * 300}) for n in range(5)]
    renders = told(Render(session_id="s", seq=7, components=components, replace=True))
    assert [one.id for render in renders for one in render.components] == [
        *("c0", "c1", "c2", "c3", "c4")
    ]
    assert [render.replace for render in renders] == [True] + [False] * (len(renders) - 1)
    assert {render.seq for render in renders} == {7}


def test_ops_go_in_several_patches() -> None:
    """In their order."""
    ops = [Update(f"c{n}", "props.content", "x" * 300) for n in range(5)]
    patches = told(Patch(session_id="s", seq=7, ops=list(ops)))
    assert [op for patch in patches for op in patch.ops] == ops


def test_arguments_and_errors_of_tools_are_shortened_and_say_so() -> None:
    """`args` is still JSON in a string."""
    start = ToolStartPayload("query", '{"sql":"' + "x" * 3000 + '"}', "t1.1")
    (began,) = told(ToolStart(session_id="s", seq=7, payload=start))
    end = ToolEndPayload("query", False, "t1.1", "y" * 3000)
    (ended,) = told(ToolEnd(session_id="s", seq=8, payload=end))
    args = msgspec.json.decode(began.payload.args)
    assert args.startswith('{"sql":"xxx')
    assert args.endswith(" more characters not shown")
    assert (began.payload.tool, began.payload.call_id, began.seq) == ("query", "t1.1", 7)
    assert ended.payload.error.startswith("yyy")
    assert ended.payload.error.endswith(" more characters not shown")
    assert (ended.payload.ok, ended.seq) == (False, 8)


def test_progress_and_result_of_tools_are_shortened_and_say_so() -> None:
    progress = ToolProgressPayload("t1.1", "x" * 3000, 1, 2)
    (at,) = told(ToolProgress(session_id="s", seq=7, payload=progress))
    end = ToolEndPayload("query", True, "t1.1", result="y" * 3000, result_ref="/r")
    (ended,) = told(ToolEnd(session_id="s", seq=8, payload=end))
    assert at.payload.text.endswith(" more characters not shown")
    assert (at.payload.done, at.payload.total, at.seq) == (1, 2, 7)
    assert ended.payload.result.endswith(" more characters not shown")
    assert (ended.payload.result_ref, ended.seq) == ("/r", 8)


def test_result_goes_before_the_end_of_a_tool_does() -> None:
    """What is too long is where the whole result is."""
    end = ToolEndPayload("query", True, "t1.1", result="y" * 3000, result_ref="/r" * 1000)
    (ended,) = told(ToolEnd(session_id="s", seq=8, payload=end))
    assert (ended.payload.ok, ended.payload.result, ended.payload.result_ref) == (True, None, None)


def test_error_loses_its_detail_and_its_end() -> None:
    """Its code stays."""
    payload = ErrorPayload("x" * 3000, 12, "components[0]" * 100, "i1")
    (shown,) = told(ErrorMessage(payload=payload, session_id="s"))
    assert (shown.payload.code, shown.payload.id, shown.payload.detail) == (12, "i1", None)
    assert shown.payload.error.endswith(" more characters not shown")


def test_usage_that_is_too_large_is_left_out_of_its_commit() -> None:
    """The turn ends all the same."""
    (commit,) = told(Commit(session_id="s", seq=7, final=True, usage={"note": "x" * 3000}))
    assert (commit.final, commit.seq, commit.usage) == (True, 7, None)


@pytest.mark.parametrize(
    ("kind", "data", "kept"),
    [
        ("form_submit", {"fields": {"a": "x" * 3000}}, {"fields": {}}),
        ("selection", {"selected": ["x"] * 3000}, {"selected": []}),
        ("navigate", {"route": "x" * 3000}, {}),
    ],
)
def test_input_that_is_too_large_says_how_large_it_was(
    kind: InputType, data: Any, kept: Any
) -> None:
    """What renderers look for is there, and empty."""
    (echo,) = told(InputEcho(session_id="s", seq=7, input_type=kind, data=data, id="i"))
    size = len(encode_json(data))
    assert echo.data == {**kept, "text": f"… an input of {size:,} bytes, not shown"}
    assert (echo.input_type, echo.id, echo.seq) == (kind, "i", 7)


def test_what_was_typed_is_shortened_alike_with_a_place_and_without() -> None:
    """A snapshot shows what one saw that was there."""
    echo = InputEcho(session_id="s", seq=123_456, input_type="text", data={"text": "x" * 3000})
    (live,) = told(echo)
    (later,) = told(msgspec.structs.replace(echo, seq=None), "cbor")
    assert live.data == later.data
    assert live.data["text"].endswith(" more characters not shown")


def test_render_loses_the_name_of_its_tool_before_anything_else() -> None:
    """It is a courtesy."""
    component = Component("c", "text", {"content": "x"})
    (render,) = told(Render(session_id="s", components=[component], tool_name="t" * 3000))
    assert (render.components, render.tool_name) == ([component], None)


def test_input_whose_text_is_not_what_is_large_says_how_large_it_was() -> None:
    """Shortening the text would not do."""
    data = {"text": "short", "params": {"x": "y" * 3000}}
    (echo,) = told(InputEcho(session_id="s", input_type="text", data=data))
    assert echo.data == {"text": "… an input of 3,034 bytes, not shown"}


def test_what_cannot_be_made_smaller_is_left_out_and_an_error_says_so() -> None:
    """Never a frame above it."""
    op = Update("c", "props.content", "x" * 3000)
    patch = Patch(session_id="s", seq=7, turn_id="t1", ops=[op])
    (error,) = told(patch)
    assert error.payload.code == 4
    assert error.payload.detail == "max_message_bytes"
    assert error.payload.error == (
        f"a message of type patch with {len(encode_json(patch))} bytes is left out; "
        "this renderer accepts no message of this size"
    )
    assert error.turn_id == "t1"


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_snapshot_is_divided_as_far_as_that_changes_nothing(encoding: Encoding) -> None:
    """What cannot be divided goes whole: nothing is shortened, and nothing left out."""
    parts = [Component(f"c{n}", "text", {"content": "x" * 300}) for n in range(8)]
    huge = Component("huge", "text", {"content": "y" * 5000})
    show = Render(session_id="s", turn_id="t1", components=[*parts, huge])
    frames = divided(show, MOST, encoding)
    decoder = agent_decoder(encoding)
    renders = [one for frame in frames for one in decoder.decode(frame)]
    assert [c for one in renders if isinstance(one, Render) for c in one.components] == [
        *parts,
        huge,
    ]
    assert [len(frame) > MOST for frame in frames] == [False] * (len(frames) - 1) + [True]
    done = Commit(session_id="s", seq=1, usage={"x": "y" * 5000})
    assert [one for frame in divided(done, MOST, encoding) for one in decoder.decode(frame)] == [
        done
    ]


def test_long_commands_go_without_their_descriptions_and_choices_then_not_at_all() -> None:
    """Their names are what a user needs to type them."""
    choices = (CommandChoice("a", "A" * 300), CommandChoice("b", "B" * 300))
    known = (Command("model", "M" * 600, "name", choices), Command("compact", "C" * 200))
    (at,) = told(CommandsMessage(session_id="s", seq=7, commands=known))
    bare = (Command("model", hint="name"), Command("compact"))
    assert at == CommandsMessage(session_id="s", seq=7, commands=bare)
    many = tuple(Command(f"c{number}") for number in range(200))
    (at,) = told(CommandsMessage(session_id="s", seq=7, commands=many))
    assert at == CommandsMessage(session_id="s", seq=7, commands=())
