"""A model answers with the explorer's tools over both APIs; failures are told, keys never are."""

from __future__ import annotations

import json
import logging
import socket
from collections.abc import Callable, Iterator

import pytest
from app import explore
from asking import run_query
from asks import RunQuery
from dataset import Dataset
from errors import ExplorerError, ModelFailed
from model import MAX_ROUNDS, answer_with_model
from model_anthropic import AnthropicStream
from model_messages import Message, ToolOutput, ToolUse, joined
from model_openai import OpenAIStream
from model_settings import ModelSettings, settings_from
from model_tools import rows_told, tables_told
from workspace import Workspace

from tests.examples.model_server import (
    ModelServer,
    Playback,
    anthropic_text,
    anthropic_tool,
    event,
    openai_text,
    openai_tool,
    running,
)
from tests.examples.recorder import Recorder

KEY = "sk-secret-0123456789"
SQL = "SELECT kind, sum(price) AS total FROM fruit GROUP BY kind ORDER BY kind"

Texts = Callable[..., Playback]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with running() as model:
        yield model


@pytest.fixture
def workspace(small: Dataset) -> Workspace:
    return Workspace({"small": small}, "small")


@pytest.fixture(params=["openai", "anthropic"])
def api(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def settings(server: ModelServer, api: str) -> ModelSettings:
    environ = {f"{api.upper()}_API_KEY": KEY, f"{api.upper()}_BASE_URL": server.url}
    found = settings_from(environ)
    assert found is not None
    return found


@pytest.fixture
def says(api: str) -> Texts:
    return openai_text if api == "openai" else anthropic_text


@pytest.fixture
def uses(api: str) -> Texts:
    return openai_tool if api == "openai" else anthropic_tool


async def test_words_are_streamed_piece_by_piece(
    server: ModelServer, settings: ModelSettings, says: Texts, workspace: Workspace
) -> None:
    server.playbacks = [says("Apples ", "cost ", "most.")]
    recorder = Recorder()
    await answer_with_model(recorder.turn, workspace, settings, "what costs most?")
    assert recorder.pieces == ["Apples ", "cost ", "most."]


async def test_tools_run_and_the_model_reads_what_came_of_them(
    server: ModelServer, settings: ModelSettings, says: Texts, uses: Texts, workspace: Workspace
) -> None:
    arguments = json.dumps({"sql": SQL})
    server.playbacks = [
        uses("run_sql", arguments[:9], arguments[9:], text="Let me see. "),
        uses("show_chart", json.dumps({"title": "Price", "kind": "bar"})),
        uses("show_table", json.dumps({"title": "Price"})),
        says("Apples."),
    ]
    recorder = Recorder()
    chart = await answer_with_model(recorder.turn, workspace, settings, "what costs most?")
    assert recorder.said == "Let me see. Apples."
    assert [(run.name, run.outcome) for run in recorder.tools] == [
        ("run_sql", "ok"),
        ("show_chart", "ok"),
        ("show_table", "ok"),
    ]
    assert recorder.tools[0].args == {"sql": SQL}
    assert recorder.tools[0].value == (
        '["kind", "total"]\n["apple", 5.0]\n["pear", 2.5]\n["plum", 0.5]\n'
        "(3 rows; at most 50 are listed)"
    )
    assert recorder.only("chart") == {
        "type": "bar",
        "title": "Price",
        "labels": ["apple", "pear", "plum"],
        "datasets": [{"label": "total", "data": [5.0, 2.5, 0.5]}],
    }
    assert recorder.only("table")["rows"] == [["apple", 5.0], ["pear", 2.5], ["plum", 0.5]]
    assert chart is not None


async def test_the_conversation_is_told_in_the_form_of_the_api(
    server: ModelServer, settings: ModelSettings, says: Texts, uses: Texts, workspace: Workspace
) -> None:
    server.playbacks = [uses("list_tables", "{}", text="Hm. "), says("Done.")]
    recorder = Recorder(earlier=[("user", "hello"), ("assistant", "hi")])
    await answer_with_model(recorder.turn, workspace, settings, "what is there?")
    first, second = server.requests
    told = 'table "fruit", 4 rows: "day" TEXT (ISO dates); "kind" TEXT (apple, pear, plum);'
    if settings.api == "openai":
        assert first.path == "/chat/completions"
        assert first.headers["authorization"] == f"Bearer {KEY}"
        assert [message["role"] for message in first.body["messages"]] == [
            "system",
            "user",
            "assistant",
            "user",
        ]
        assert told in first.body["messages"][0]["content"]
        assert first.body["tools"][1]["function"]["name"] == "run_sql"
        use, output = second.body["messages"][-2:]
        function = {"name": "list_tables", "arguments": "{}"}
        assert use["tool_calls"] == [{"id": "call_7", "type": "function", "function": function}]
        assert (output["role"], output["tool_call_id"]) == ("tool", "call_7")
        assert output["content"].startswith(told)
    else:
        assert first.path == "/v1/messages"
        assert first.headers["x-api-key"] == KEY
        assert first.headers["anthropic-version"] == "2023-06-01"
        assert told in first.body["system"]
        assert [message["role"] for message in first.body["messages"]] == [
            "user",
            "assistant",
            "user",
        ]
        use, output = second.body["messages"][-2:]
        assert use["content"] == [
            {"type": "text", "text": "Hm. "},
            {"type": "tool_use", "id": "use_7", "name": "list_tables", "input": {}},
        ]
        (block,) = output["content"]
        assert (block["type"], block["tool_use_id"], block["is_error"]) == (
            "tool_result",
            "use_7",
            False,
        )
        assert block["content"].startswith(told)


@pytest.mark.parametrize(
    ("name", "arguments", "error"),
    [
        ("run_sql", '{"sql": "DELETE FROM fruit"}', "DELETE does not just read"),
        ("run_sql", '{"sql": "SELECT wieght FROM fruit"}', "Did you mean weight?"),
        ("run_sql", '{"sql": ', "not a JSON object"),
        ("run_sql", '["SELECT 1"]', "not a JSON object"),
        ("run_sql", "{}", "Give sql"),
        ("show_chart", '{"sql": "SELECT 1", "kind": "bar", "title": ""}', "cannot be drawn"),
        ("delete_everything", "{}", "no tool delete_everything"),
    ],
)
async def test_what_a_tool_cannot_do_is_told_to_the_model(
    server: ModelServer,
    uses: Texts,
    says: Texts,
    settings: ModelSettings,
    workspace: Workspace,
    name: str,
    arguments: str,
    error: str,
) -> None:
    server.playbacks = [uses(name, arguments), says("Sorry.")]
    recorder = Recorder()
    await answer_with_model(recorder.turn, workspace, settings, "do it")
    last = server.requests[1].body["messages"][-1]
    told = last["content"] if settings.api == "openai" else last["content"][0]["content"]
    assert error in told
    assert recorder.said == "Sorry."
    assert all(run.outcome != "ok" for run in recorder.tools)


@pytest.mark.parametrize(
    ("status", "body", "message", "hint"),
    [
        (401, f"bad key {KEY}", "refused the key (401)", "Check "),
        (403, f'{{"error": {{"message": "no, {KEY}"}}}}', "refused the key (403)", "Check "),
        (
            404,
            '{"error": {"message": "no such model"}}',
            "no such model or address",
            "no such model",
        ),
        (400, f'{{"error": {{"message": "bad {KEY}"}}}}', "did not understand", "bad …"),
        (400, '{"error": "bad"}', "did not understand", "bad"),
        (400, "<html>", "did not understand", ""),
        (429, "{}", "asked too often", "Ask again in a while."),
        (500, "oops", "answered with status 500", "Ask again in a while."),
        (529, "{}", "is overloaded", "Ask again in a while."),
        (302, "", "answered with status 302", ""),
    ],
)
async def test_a_refusal_is_told_without_the_key(
    server: ModelServer,
    settings: ModelSettings,
    workspace: Workspace,
    status: int,
    body: str,
    message: str,
    hint: str,
) -> None:
    server.playbacks = [Playback((body,), status)]
    with pytest.raises(ModelFailed) as failed:
        await answer_with_model(Recorder().turn, workspace, settings, "hello")
    assert message in failed.value.message
    assert failed.value.hint.startswith(hint)
    assert KEY not in f"{failed.value.message} {failed.value.hint}"


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (("",), "broke off"),
        (("data: {\n\n",), "no JSON"),
        ((": a comment\n\n", "event: ping\n\n"), "broke off"),
        (("data: 7\n\n", "data: null\n\n", "data: []\n\n"), "broke off"),
        (("data: " + "x" * 500_000 + "\n\n",), "did not end"),
    ],
)
async def test_an_answer_that_cannot_be_read_is_told(
    server: ModelServer,
    settings: ModelSettings,
    workspace: Workspace,
    lines: tuple[str, ...],
    message: str,
) -> None:
    server.playbacks = [Playback(lines)]
    with pytest.raises(ModelFailed, match=message):
        await answer_with_model(Recorder().turn, workspace, settings, "hello")


async def test_an_answer_that_breaks_off_after_some_words_ends_with_a_card(
    server: ModelServer, settings: ModelSettings, says: Texts, workspace: Workspace
) -> None:
    whole = says("Apples ", "cost")
    server.playbacks = [Playback(whole.lines[:-3])]
    recorder = Recorder()
    await answer_with_model(recorder.turn, workspace, settings, "hello")
    assert recorder.said.startswith("Apples ")
    assert recorder.only("status-card")["title"] == "The model did not answer"


async def test_a_server_that_is_not_there_is_told(workspace: Workspace) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        settings = settings_from({"OPENAI_BASE_URL": url, "OPENAI_API_KEY": KEY})
        assert settings is not None
        with pytest.raises(ModelFailed, match=r"cannot be reached \(ConnectError\)"):
            await answer_with_model(Recorder().turn, workspace, settings, "hello")


@pytest.mark.parametrize("base", ["not an address", "ftp://x", "http://", "http://[::1"])
async def test_an_address_that_is_none_is_told(workspace: Workspace, base: str) -> None:
    settings = settings_from({"OPENAI_BASE_URL": base, "OPENAI_API_KEY": KEY})
    assert settings is not None
    with pytest.raises(ModelFailed, match="cannot be reached"):
        await answer_with_model(Recorder().turn, workspace, settings, "hello")


async def test_a_model_that_only_uses_tools_is_stopped(
    server: ModelServer, settings: ModelSettings, uses: Texts, workspace: Workspace
) -> None:
    server.playbacks = [uses("list_tables", "{}")] * (MAX_ROUNDS + 1)
    recorder = Recorder()
    await answer_with_model(recorder.turn, workspace, settings, "hello")
    assert len(server.requests) == 8
    assert recorder.said == "\n\nI stopped after 8 rounds of tools."


async def test_no_key_is_ever_logged(
    server: ModelServer,
    settings: ModelSettings,
    says: Texts,
    workspace: Workspace,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    server.playbacks = [says("hi"), Playback((KEY,), 401)]
    await answer_with_model(Recorder().turn, workspace, settings, "hello")
    with pytest.raises(ModelFailed):
        await answer_with_model(Recorder().turn, workspace, settings, "hello")
    assert KEY not in caplog.text
    assert KEY not in repr(settings)


async def test_plain_questions_go_to_the_model_and_commands_do_not(
    server: ModelServer, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    server.playbacks = [openai_text("42.")]
    asked = Recorder("what is the meaning of life?", cache={"workspace": workspace})
    listed = Recorder("tables", cache={"workspace": workspace})
    await explore(asked.turn)
    await explore(listed.turn)
    assert asked.said == "42."
    assert "authorization" not in server.requests[0].headers
    assert len(server.requests) == 1
    assert "key-value" in listed.types()


async def test_a_chart_of_the_model_can_be_exported(
    server: ModelServer, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
    chart = json.dumps({"sql": SQL, "title": "Price", "kind": "pie"})
    server.playbacks = [anthropic_tool("show_chart", chart), anthropic_text("There.")]
    recorder = Recorder("draw the prices", answers=[True], cache={"workspace": workspace})
    await explore(recorder.turn)
    assert recorder.asked[0].props["message"] == "Writes 3 rows to exports/Price.csv."
    assert recorder.only("status-card")["title"] == "Exported"


async def test_where_the_model_fails_the_rules_answer(
    server: ModelServer, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    server.playbacks = [Playback((), 500)]
    recorder = Recorder("total price by kind", answers=[False], cache={"workspace": workspace})
    await explore(recorder.turn)
    assert recorder.types()[:2] == ["status-card", "chart"]
    assert "apple (5)" in recorder.said


def test_settings_are_read_from_the_environment_alone() -> None:
    assert settings_from({}) is None
    assert settings_from({"OPENAI_API_KEY": "", "ANTHROPIC_API_KEY": " "}) is None
    openai = settings_from({"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "a", "OPENAI_MODEL": "m"})
    assert openai == ModelSettings("openai", "https://api.openai.com/v1/chat/completions", "m", "k")
    local = settings_from({"OPENAI_BASE_URL": "http://127.0.0.1:1/v1/"})
    assert local is not None
    assert (local.url, local.key) == ("http://127.0.0.1:1/v1/chat/completions", "")
    for base in ("http://127.0.0.1:1", "http://127.0.0.1:1/", "http://127.0.0.1:1/v1"):
        claude = settings_from({"ANTHROPIC_API_KEY": "a", "ANTHROPIC_BASE_URL": base})
        assert claude is not None
        assert claude.url == "http://127.0.0.1:1/v1/messages"


@pytest.mark.parametrize("key", ["two words", "line\nbreak", "ключ", "a\0b"])
def test_a_key_that_cannot_be_one_is_told_but_not_repeated(key: str) -> None:
    with pytest.raises(ModelFailed) as failed:
        settings_from({"OPENAI_API_KEY": key})
    assert key not in failed.value.message + failed.value.hint


def test_two_tools_in_one_answer_are_told_apart() -> None:
    stream = OpenAIStream()

    def call(index: int, **function: str) -> dict[str, object]:
        return {"index": index, "function": function}

    deltas: list[list[dict[str, object]]] = [
        [call(0, name="a", arguments="{"), call(1, name="b", arguments="")],
        [call(1, arguments="[]"), call(0, arguments="}")],
    ]
    for calls in deltas:
        assert stream.feed({"choices": [{"delta": {"tool_calls": calls}}]}) == []
    assert stream.feed({"choices": [{"finish_reason": "tool_calls"}]}) == [
        ToolUse("call_0", "a", "{}"),
        ToolUse("call_1", "b", "[]"),
    ]
    assert stream.done


@pytest.mark.parametrize("stream", [OpenAIStream(), AnthropicStream()])
@pytest.mark.parametrize(
    "data",
    [
        None,
        7,
        "x",
        [],
        {},
        {"choices": None},
        {"choices": [{"delta": None}]},
        {"type": 7},
        {"type": "content_block_delta", "index": 5, "delta": {"type": "input_json_delta"}},
        {"type": "content_block_stop", "index": 5},
        {"type": "unknown_event"},
    ],
)
def test_what_a_stream_does_not_know_gives_nothing(
    stream: OpenAIStream | AnthropicStream, data: object
) -> None:
    assert stream.feed(data) == []


@pytest.mark.parametrize(
    ("stream", "data"),
    [
        (OpenAIStream(), {"error": {"message": "too busy"}}),
        (OpenAIStream(), {"error": "too busy"}),
        (AnthropicStream(), {"type": "error", "error": {"type": "x", "message": "too busy"}}),
    ],
)
def test_an_error_inside_a_stream_is_told(
    stream: OpenAIStream | AnthropicStream, data: object
) -> None:
    with pytest.raises(ModelFailed, match="too busy"):
        stream.feed(data)


def test_sides_alternate_and_the_user_begins() -> None:
    use = ToolUse("1", "t", "{}")
    output = Message("user", outputs=(ToolOutput("1", "x"),))
    assert joined(
        [
            Message("assistant", "welcome"),
            Message("user", "a"),
            Message("user", "b"),
            Message("assistant", ""),
            Message("assistant", "c", (use,)),
            output,
            Message("assistant", "d"),
            Message("user", "e"),
        ]
    ) == [
        Message("user", "a\n\nb"),
        Message("assistant", "c", (use,)),
        output,
        Message("assistant", "d"),
        Message("user", "e"),
    ]


async def test_the_model_reads_no_more_than_it_needs(samples: Dataset) -> None:
    workspace = Workspace({"data": samples}, "data")
    recorder = Recorder()
    await run_query(recorder.turn, workspace, RunQuery("SELECT * FROM cars"))
    assert workspace.last is not None
    told = rows_told(workspace.last.result)
    assert len(told) < 8_100
    assert told.endswith("(406 rows; at most 50 are listed)")
    assert tables_told(workspace).count("\n") == 1


def test_an_error_of_the_explorer_is_one_tree() -> None:
    assert issubclass(ModelFailed, ExplorerError)
    assert event({"a": 1}, "x") == 'event: x\ndata: {"a": 1}\n\n'
