"""Every block of code in the docs runs, parses, or can be typed as it stands."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import re
import runpy
import socket
import sys
import tomllib
from pathlib import Path
from typing import Any, Literal

import httpx
import msgspec
import pytest
from click.testing import CliRunner

import arp
from arp import App, HubSettings, Turn, ui
from arp.cli import main
from arp.ledger.fact import decode
from arp.ledger.fact_types import check
from arp.protocol.codec import Decoder, agent_decoder, renderer_decoder
from arp.protocol.components import Component
from arp.protocol.errors import ErrorCode, InvalidComponent, InvalidMessage
from arp.protocol.objects.messages import SurfaceCommitRequest
from arp.protocol.objects.wire import ObjectEnvelope, payload_of, read
from arp.redact.redactor import Redactor
from arp.redact.settings import Redaction
from arp.runtime.contract import types as ari
from arp.runtime.contract.feed import SessionFeed
from arp.server.application import Application
from arp.testing import session
from arp.tools.run.browser import BrowserStep
from tests.docs import commands
from tests.docs.answering import play
from tests.docs.pages import ROOT, Block, blocks, text_of
from tests.runtime.caller import Caller
from tests.server.rpc import rpc
from tests.support.serving import serving
from tests.support.waiting import becomes

ADDRESS = "http://127.0.0.1:8080"
SOCKET = "ws://127.0.0.1:8080/_arp/v1"
AGENTS = blocks("python", page="agents.md")
SHELL = blocks("sh")
CONTROL = "control-plane.md"
MESSAGES = [block for block in blocks("json") if block.page != CONTROL]


def echo() -> App:
    names: dict[str, Any] = {}
    exec((ROOT / "examples/echo/app.py").read_text(), names)
    app: App = names["app"]
    return app


def run(block: Block, **names: Any) -> dict[str, Any]:
    names = {"__name__": "docs", "App": App, "Turn": Turn, "ui": ui, **names}
    exec(compile(block.code, str(block), "exec", dont_inherit=True), names)
    return names


def test_every_block_says_its_language_and_only_known_ones_do() -> None:
    known = ("python", "sh", "json", "js", "toml", "text")
    assert len(blocks(*known)) == len(blocks(*known, ""))


# -- agents ----------------------------------------------------------------------------------------


def test_the_agents_page_begins_with_a_whole_app() -> None:
    names: dict[str, Any] = {}
    exec(AGENTS[0].code, names)
    assert list(names["app"].handlers) == ["sales"]
    assert names["Turn"] is Turn
    assert names["ui"] is ui


@pytest.mark.parametrize("block", AGENTS, ids=str)
def test_an_example_agent_runs_to_its_end(block: Block) -> None:
    app: App = run(block, app=App())["app"]
    for name in app.handlers:
        with serving(_only(app, name)) as server:
            turn, text, shown = asyncio.run(play(server.http, "hello"))
        assert turn.status == "completed"
        assert not turn.errors
        assert text or shown


def _only(app: App, name: str) -> App:
    one = App(settings=HubSettings())
    one.handlers[name] = app.handlers[name]
    return one


def shown_by(beginning: str) -> tuple[str, list[Component]]:
    """Plays the example whose function has this name; gives its text and components."""
    (block,) = [block for block in AGENTS if f"async def {beginning}(" in block.code]
    app = App()
    run(block, app=app)
    with serving(app) as server:
        _, text, shown = asyncio.run(play(server.http, "hello"))
    return text, shown


def test_the_questions_give_what_the_table_says() -> None:
    _, shown = shown_by("asks")
    assert shown[-1].props == {"status": "success", "title": "Sent", "message": "hot-days: small"}
    assert shown[3].props["message"] == "Ada, sun"


def test_the_changes_leave_what_the_code_says() -> None:
    _, (box,) = shown_by("works")
    assert [(child["id"], child["props"]) for child in box.props["children"]] == [
        ("log", {"content": "3 rows"}),
        ("t1-2", {"content": "All is well."}),
    ]


def test_a_wrong_prop_is_refused_in_the_words_of_the_page() -> None:
    with pytest.raises(InvalidComponent) as refused:
        ui.chart("bar", labels=["a", "b", "c"], datasets=[{"label": "S", "data": [1, 2, "x"]}])
    assert f"`{refused.value}`" in " ".join(text_of("agents.md").split())


def test_the_components_page_begins_with_a_whole_app() -> None:
    """Its other blocks are each one component, which the generator evaluates."""
    block = blocks("python", page="components.md")[0]
    with serving(run(block)["app"]) as server:
        turn, _, shown = asyncio.run(play(server.http, "hello"))
    assert turn.status == "completed"
    assert [component.type for component in shown] == ["table", "chart", "choices", "status-card"]
    assert shown[-1].props["title"] == "No data for Bergen"


@pytest.mark.parametrize("block", blocks("python", page="components.md")[1:], ids=str)
async def test_a_component_of_the_page_can_be_shown(block: Block) -> None:
    component = eval(block.code, {"ui": ui})
    app = App()

    @app.agent
    async def shows(turn: Turn) -> None:
        turn.show(component)

    async with session(app) as user:
        turn = await user.say("go")
        assert turn.status in ("completed", "waiting")
        assert turn.components()


# -- server and client -----------------------------------------------------------------------------


async def test_the_hook_lets_in_whom_it_knows_and_keeps_their_sessions_apart() -> None:
    (block,) = blocks("python", page="server.md")[:1]
    transport = httpx.ASGITransport(run(block)["app"].asgi)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        ada = {"authorization": "Bearer one-long-secret"}
        bob = {"cookie": "session=value-of-a-cookie"}
        assert (await client.get("/_api/chats")).status_code == 401
        said = {"message": "Hello", "session_id": "hers"}
        answered = await client.post("/private", json=said, headers=ada)
        assert answered.json()["text"] == "Hello Ada Lovelace. You may change things."
        said = {"message": "Hello", "session_id": "his"}
        answered = await client.post("/private", json=said, headers=bob)
        assert answered.json()["text"] == "Hello bob."
        assert (await client.get("/_api/chats/hers", headers=ada)).status_code == 200
        assert (await client.get("/_api/chats/hers", headers=bob)).status_code == 404


def test_the_config_file_has_settings_that_there_are() -> None:
    flat, redaction = blocks("toml", page="server.md")
    table = tomllib.loads(flat.code)["serve"]
    flags = {option for parameter in main.commands["serve"].params for option in parameter.opts}
    assert {f"--{name}" for name in table} <= flags
    read = msgspec.convert(tomllib.loads(redaction.code)["serve"]["redaction"], Redaction)
    assert Redactor(read).text("acme_abcdefghijklmnopqrstuvwx")[0] == "acme_[redacted]"


def sales() -> App:
    app = App()

    @app.agent
    async def sales(turn: Turn) -> None:
        await turn.say("120")
        if "client" not in turn.text and await turn.confirm("Export?"):
            await turn.say(", exported")

    return app


@pytest.mark.parametrize(("number", "said"), [(1, "120, exported\n")])
def test_the_client_that_answers_prints_the_whole_answer(
    number: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    block = blocks("python", page="client.md")[number]
    with serving(sales()) as server:
        run(block.with_code(block.code.replace(ADDRESS, server.http)))
    assert capsys.readouterr().out == said


@pytest.mark.parametrize(
    ("number", "said"),
    [(0, "completed 120\ntext {'content': '120', 'format': 'markdown'}\n"), (2, "120")],
)
def test_a_client_that_only_asks_prints_the_answer(
    number: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    block = blocks("python", page="client.md")[number]
    code = block.code.replace(ADDRESS, server_url := "@").replace("Show the sales", "client")
    with serving(sales()) as server:
        run(block.with_code(code.replace(server_url, server.http)))
    assert capsys.readouterr().out == said


# -- the wire --------------------------------------------------------------------------------------


@pytest.mark.parametrize("block", MESSAGES, ids=str)
def test_every_line_of_a_block_is_a_message_of_one_direction(block: Block) -> None:
    lines = block.code.splitlines()
    assert lines
    if any('"op": "commit"' in line for line in lines):  # the object dialect
        (envelope,) = [one for line in lines for one in read(line.encode(), "json")]
        assert isinstance(envelope, ObjectEnvelope)
        assert payload_of(envelope, SurfaceCommitRequest).final
        return
    assert any(
        all(_is_message(decoder, line) for line in lines)
        for decoder in (renderer_decoder("json"), agent_decoder("json"))
    )


def _is_message(decoder: Decoder[Any], line: str) -> bool:
    with contextlib.suppress(InvalidMessage):
        return len(decoder.decode(line.encode())) == 1
    return False


def test_the_renderer_of_the_protocol_s_page_prints_the_answer(
    capsys: pytest.CaptureFixture[str],
) -> None:
    (block,) = blocks("python", page="protocol.md")
    with serving(echo()) as server:
        run(block.with_code(block.code.replace(SOCKET, server.ws)))
    assert capsys.readouterr().out == "Hello, every screen! \n"


@pytest.mark.parametrize("block", blocks("text", page="protocol.md"), ids=str)
def test_a_conversation_of_the_protocol_page_is_of_messages(block: Block) -> None:
    """`…` stands for what was left out; a line may begin with it."""
    lines = [line for line in block.code.splitlines() if line[2] != "…"]
    assert len(lines) >= 2
    for line in lines:
        text = re.sub(r"([\[{,])…([\]}])", lambda m: m[1].replace(",", "") + m[2], line[2:])
        decoder = renderer_decoder("json") if line[0] == ">" else agent_decoder("json")
        if '"op":' in text:
            (envelope,) = read(text.encode(), "json")
            assert isinstance(envelope, ObjectEnvelope), line
        else:
            assert len(decoder.decode(text.encode())) == 1, line


# -- the control plane -----------------------------------------------------------------------------


async def test_requests_of_the_control_plane_are_answered_with_results() -> None:
    block, _ = blocks("json", page=CONTROL)
    with serving(sales()) as server:
        async with asyncio.timeout(15), rpc(server.port) as program:
            for line in block.code.splitlines():
                asked = json.loads(line)
                result = await program.call(asked["method"], **asked["params"])
                assert result["sessionId"] == "s"


async def test_the_update_of_the_control_plane_page_changes_what_shows() -> None:
    _, block = blocks("json", page=CONTROL)
    asked = json.loads(block.code)
    app = App()

    @app.agent
    async def imports(turn: Turn) -> None:
        turn.show(ui.progress([ui.step("Import", "active")], id="import"))

    with serving(app) as server:
        here = arp.connect(server.ws, session_id="s")
        async with asyncio.timeout(15), rpc(server.port) as program, here as client:
            turn = await client.ask("go")
            await program.call(asked["method"], **asked["params"])
            await becomes(
                lambda: client.screen.output(turn.id)[0].props.get("title") == "Nearly done"
            )


def test_the_program_over_json_rpc_prints_the_facts_until_the_turn_ends(
    capsys: pytest.CaptureFixture[str],
) -> None:
    block = blocks("python", page=CONTROL)[0]
    echo = run(blocks("python", page="examples.md")[0])["app"]
    with serving(echo) as server:
        socket = server.http.replace("http", "ws")
        run(block.with_code(block.code.replace("ws://127.0.0.1:8080", socket)))
    types = [line.split()[1] for line in capsys.readouterr().out.splitlines()]
    assert types[0] == "session.created"
    assert "turn.submitted" in types
    assert types[-1] == "turn.completed"


def test_the_program_that_starts_a_turn_prints_its_text(capsys: pytest.CaptureFixture[str]) -> None:
    run(blocks("python", page=CONTROL)[1])
    assert capsys.readouterr().out == "120\n"


@pytest.mark.parametrize(
    ("page", "names"),
    [
        (CONTROL, {"jsonrpc", "id", "error"}),
        ("ledger.md", {"schemaVersion", "sessionId", "sequence", "type", "payload", "turnId"}),
    ],
)
def test_printed_json_has_the_fields_that_the_page_shows(page: str, names: set[str]) -> None:
    (block,) = blocks("text", page=page)
    printed = json.loads(block.code)
    assert names <= set(printed)
    if page == CONTROL:
        error = printed["error"]
        busy = ErrorCode[error["data"]["name"]]
        assert (error["code"], error["data"]["code"]) == (-32000 - busy, busy)
    else:
        times = {**printed, "timestamp": "2026-01-01T00:00:00.000Z"}
        check(decode(json.dumps(times).encode()))


# -- tools -----------------------------------------------------------------------------------------


def test_the_app_of_the_tools_page_uses_a_tool_or_builds_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tool that it uses is none of an empty catalog, and the user reads that."""
    monkeypatch.chdir(tmp_path)
    (block,) = blocks("python", page="tools.md")
    names = run(block)
    assert names["app"].tools is names["tools"]
    with serving(names["app"], ledger="memory:") as server:
        turn, _, _ = asyncio.run(play(server.http, "go"))
    assert turn.status == "failed"
    assert inspect.iscoroutinefunction(names["tools"].build)


def test_the_steps_of_the_tools_page_are_steps() -> None:
    (block,) = blocks("jsonc", page="tools.md")
    steps = msgspec.convert(json.loads(block.code)["steps"], list[BrowserStep])
    assert len(steps) == 5


# -- telemetry -------------------------------------------------------------------------------------


def test_the_agent_with_a_span_of_its_own_answers() -> None:
    (block,) = blocks("python", page="telemetry.md")
    with serving(run(block)["app"]) as server:
        turn, text, _ = asyncio.run(play(server.http, "look"))
    assert turn.status == "completed"
    assert text == "One row."


# -- evidence --------------------------------------------------------------------------------------


def test_the_first_commands_of_the_evidence_page_export_verify_and_play(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    first, *others = commands.commands(blocks("sh", page="evidence.md")[0].code)
    printed = []
    with serving(run(blocks("python", page="examples.md")[0])["app"]) as server:
        monkeypatch.setenv("ARP_URL", server.http)
        with httpx.Client() as client:
            assert client.send(commands.request(first[1:], server.http)).status_code == 200
        for words in others:
            done = CliRunner().invoke(main, words[1:])
            assert done.exit_code == 0, done.output
            printed.append(done.stdout)
    exported, verified, _, played = printed
    assert "session my-session" in exported
    assert verified.startswith("good  ")
    assert "Hello" in played


# -- facts -----------------------------------------------------------------------------------------


def test_the_program_that_reads_facts_prints_what_the_page_says(
    capsys: pytest.CaptureFixture[str],
) -> None:
    (program,) = blocks("python", page="facts.md")
    (printed,) = blocks("text", page="facts.md")
    run(program)
    assert capsys.readouterr().out == printed.code


# -- the shell -------------------------------------------------------------------------------------


@pytest.mark.parametrize("block", SHELL, ids=str)
def test_commands_can_be_typed_as_they_stand(block: Block) -> None:
    found = commands.commands(block.code)
    assert found
    for words in found:
        commands.check(words)


EXAMPLES = sorted(
    {
        words[2]
        for block in SHELL
        for words in commands.commands(block.text)
        if words[:2] == ["arp", "serve"] and words[2].startswith("examples/")
    }
)


@pytest.mark.parametrize("file", EXAMPLES)
def test_an_example_can_be_served_as_the_page_says(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Up to the moment in which it would listen; tests in `tests/examples` talk to it."""
    served: list[Application] = []

    def serve(application: Application, listener: socket.socket, *_: object) -> bool:
        served.append(application)
        listener.close()
        return True

    monkeypatch.setattr("arp.server.serve.serve", serve)
    monkeypatch.setenv("PROJECT", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "app", raising=False)
    before = set(sys.modules)
    done = CliRunner().invoke(main, ["serve", str(ROOT / file), "--port", "0"])
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str((ROOT / file).parent)):
            del sys.modules[name]  # each example has modules of the same names
    assert done.exit_code == 0, done.output
    assert served[0].state.workflow


@pytest.mark.parametrize("name", ["fastapi_embed", "fastapi_login", "webhook"])
def test_an_example_is_an_application_of_its_server(name: str) -> None:
    """`uvicorn --app-dir examples/NAME app:api`."""
    typed = f"uvicorn --app-dir examples/{name} app:api"
    assert typed in text_of("examples.md")
    api = runpy.run_path(str(ROOT / "examples" / name / "app.py"))["api"]
    assert api.routes


def test_what_curl_asks_in_the_docs_of_the_server_is_answered() -> None:
    asked = [
        words[1:]
        for block in blocks("sh", page="server.md")
        for words in commands.commands(block.code)
        if words[0] == "curl"
    ]
    with serving(echo()) as server, httpx.Client() as client:
        answers = [client.send(commands.request(words, server.http)) for words in asked]
    assert [answer.status_code for answer in answers] == [200, 200, 200]
    assert answers[0].json()["text"] == "Hello, server! "
    assert "event: done\ndata: [DONE]" in answers[1].text
    assert len(answers[2].json()) == 2


def test_the_names_that_the_docs_import_are_those_of_the_face() -> None:
    assert {"Access", "App", "HubSettings", "Limits", "Turn", "connect", "serve", "ui"} <= set(
        arp.__all__
    )


# -- runtimes --------------------------------------------------------------------------------------


def test_the_first_runtime_answers_as_the_page_says() -> None:
    (first, *_) = blocks("python", page="ari.md")
    with serving(run(first)["app"]) as server:
        turn, text, _ = asyncio.run(play(server.http, "hello"))
    assert (turn.status, text) == ("completed", "HELLO")


def test_the_program_that_drives_a_runtime_allows_what_it_asks(
    capsys: pytest.CaptureFixture[str],
) -> None:
    run(blocks("python", page="ari.md")[1])
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert "permission_request" in lines
    assert "tool_result README" in lines
    assert lines[-1] == "result One file."


def test_the_adapter_of_the_page_asks_and_ends_its_turn() -> None:
    (block,) = (one for one in blocks("python", page="ari.md") if "MyRuntime" in one.code)
    adapter = run(block)["MyRuntime"]

    async def turns(*decisions: Literal["allow", "deny"]) -> list[ari.Event]:
        caller = await Caller.create(adapter())
        return [
            event
            for decision in decisions
            for event in await caller.turn("go", respond=ari.PermissionResponse(decision))
        ]

    events = asyncio.run(turns("allow", "deny"))
    results = [one for one in events if one.type is ari.EventType.TOOL_RESULT]
    assert [one.content for one in results] == ["README", "denied"]
    ends = [one for one in events if one.done]
    assert [one.content for one in ends] == ["Done.", "Done."]
    assert [one.usage for one in ends] == [ari.Usage(input_tokens=12, output_tokens=4)] * 2


def test_the_page_on_runtimes_has_every_method_of_the_feed() -> None:
    page = text_of("ari.md")
    methods = [name for name in vars(SessionFeed) if not name.startswith("_")]
    assert len(methods) > 15
    assert [name for name in methods if not re.search(rf"`{name}[(`]", page)] == []


def test_the_gateway_of_the_page_asks_for_its_token() -> None:
    gateway = run(blocks("python", page="ari.md")[2])["gateway"]

    async def status() -> int:
        transport = httpx.ASGITransport(gateway)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return (await client.post("/ari/v1/version")).status_code

    assert asyncio.run(status()) == 401
