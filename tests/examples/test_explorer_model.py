"""A model answers with the explorer's tools; failures are shown, keys never are."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import app as explorer
import pytest
from dataset import Dataset
from model import configured_model
from model_tools import describe_rows, describe_tables
from workspace import Workspace

from arp import App, HubSettings
from arp.client.client import ArpClient, connect
from tests.examples.conftest import FRUIT
from tests.examples.conversation import question, shown
from tests.runtime.model_server import ModelServer
from tests.support.serving import Serving, serving

KEY = "sk-secret-0123456789"
SQL = "SELECT kind, sum(price) AS total FROM fruit GROUP BY kind ORDER BY kind"
FRUIT_TABLE = 'table "fruit", 4 rows: "day" TEXT (ISO dates); "kind" TEXT (apple, pear, plum);'


def tool(name: str, **arguments: str) -> str:
    """Return what makes the scripted model call a tool."""
    return f"tool: {name} {json.dumps(arguments)}"


def settings(model: ModelServer, api: str) -> dict[str, str]:
    """Return the variables that let the explorer use the scripted model."""
    address = model.openai_address if api == "openai" else model.address
    return {f"{api.upper()}_API_KEY": KEY, f"{api.upper()}_BASE_URL": address}


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@contextmanager
def refusing() -> Iterator[str]:
    """Serve a model that refuses every key, and repeats it; yield its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            said = f"no such key: {self.headers['authorization']}"
            body = json.dumps({"error": {"message": said}}).encode()
            self.send_response(401)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Stay silent."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def exploring(
    monkeypatch: pytest.MonkeyPatch, directory: Path, environ: dict[str, str]
) -> Iterator[Serving]:
    """Serve the explorer of a table `fruit`, with the model that the environment configures."""
    data = directory / "fruit.csv"
    data.write_bytes(FRUIT)
    for name, value in {**environ, "EXPLORER_DATA": str(data)}.items():
        monkeypatch.setenv(name, value)
    app = App(title="Explorer", settings=HubSettings(policy="interrupt"))
    app.agent(explorer.explore)
    monkeypatch.setattr(explorer, "model", configured_model(app, environ))
    with serving(app, ledger="memory:") as server:
        yield server


async def ask(client: ArpClient, text: str) -> str:
    """Ask something, and return the turn's id when it is over."""
    turn = await client.ask(text)
    assert turn.status == "completed", turn
    return turn.id


@pytest.mark.parametrize("api", ["openai", "anthropic"])
async def test_a_question_is_answered_with_the_tools(
    api: str, model: ModelServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with exploring(monkeypatch, tmp_path, settings(model, api)) as server:
        async with connect(server.http) as client:
            plain = await ask(client, "hello model")
            read = await ask(client, tool("run_sql", sql=SQL))
            table = await ask(client, tool("show_table", title="Price"))
            assert client.screen.text(plain) == "You said: hello model"
            (run,) = client.screen.turns[read].tools
            assert (run.tool, run.ok) == ("run_sql", True)
            assert json.loads(run.args) == {"sql": SQL}
            rows = client.screen.output(table)[0].props["rows"]
            assert rows == [["apple", 5.0], ["pear", 2.5], ["plum", 0.5]]
    read_by_model = [request.tool_results[-1].text for request in model.requests[2::2]]
    assert read_by_model[0] == (
        '["kind", "total"]\n["apple", 5.0]\n["pear", 2.5]\n["plum", 0.5]\n'
        "(3 rows; at most 50 are listed)"
    )
    assert read_by_model[1].startswith("The user sees this: ")
    assert FRUIT_TABLE in json.dumps(model.requests[0].body, ensure_ascii=False).replace('\\"', '"')
    assert KEY in str(model.requests[0].headers)


async def test_a_chart_is_shown_and_can_be_exported(
    model: ModelServer,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    explorer_environment: Path,
) -> None:
    with exploring(monkeypatch, tmp_path, settings(model, "openai")) as server:
        async with connect(server.http) as client:
            chart = tool("show_chart", sql=SQL, title="Price", kind="pie")
            turn_id = await client.turn_of(await client.send_text(chart))
            confirm = await question(client, turn_id)
            assert confirm.props["message"] == "Writes 3 rows to exports/Price.csv."
            await client.send_action("confirm", source=confirm.id)
            await client.turn_done(turn_id)
            drawn = next(one for one in client.screen.output(turn_id) if one.type == "chart")
            assert drawn.props["type"] == "pie"
            assert drawn.props["labels"] == ["apple", "pear", "plum"]
            assert drawn.props["datasets"] == [{"label": "total", "data": [5.0, 2.5, 0.5]}]
    assert (explorer_environment / "Price.csv").exists()


async def test_the_model_reads_why_a_tool_failed(
    model: ModelServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    failing = {
        tool("run_sql", sql="DELETE FROM fruit"): "DELETE does not just read",
        tool("run_sql", sql="SELECT wieght FROM fruit"): "Did you mean weight?",
        tool("run_sql", sql=" "): "Give sql",
        tool("show_chart", sql="SELECT 1", kind="bar", title=""): "cannot be drawn",
        tool("delete_everything"): "delete_everything",
        tool("run_sql"): "sql",
    }
    with exploring(monkeypatch, tmp_path, settings(model, "openai")) as server:
        async with connect(server.http) as client:
            for text, why in failing.items():
                turn_id = await ask(client, text)
                assert why in str(model.last_tool_result())
                assert not any(run.ok for run in client.screen.turns[turn_id].tools)
                assert client.screen.text(turn_id).startswith("The tool returned: ")


async def test_the_model_knows_what_was_answered_without_it(
    model: ModelServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with exploring(monkeypatch, tmp_path, settings(model, "openai")) as server:
        async with connect(server.http) as client:
            await ask(client, "hello model")
            listed = await ask(client, "tables")
            assert "key-value" in shown(client, listed)
            assert len(model.requests) == 1
            await ask(client, "what was that?")
    heard = model.what_the_model_was_told()
    assert heard[0] == "hello model"
    assert "user: tables" in heard[1]
    assert heard[1].endswith("Now the user says:\n\nwhat was that?")


async def test_where_the_model_fails_the_rules_answer_and_no_key_is_shown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with (
        refusing() as address,
        exploring(
            monkeypatch, tmp_path, {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": address}
        ) as server,
    ):
        async with connect(server.http) as client:
            turn_id = await client.turn_of(await client.send_text("total price by kind"))
            confirm = await question(client, turn_id)
            await client.send_action("deny", source=confirm.id)
            await client.turn_done(turn_id)
            card = client.screen.output(turn_id)[0]
            assert (card.type, card.props["title"]) == ("status-card", "The model did not answer")
            assert "401" in card.props["message"]
            assert "no such key" in card.props["message"]
            assert "apple (5)" in client.screen.text(turn_id)
            assert KEY not in json.dumps([one.props for one in client.screen.output(turn_id)])


async def test_a_server_that_is_not_there_is_named(
    model: ModelServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    gone = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}
    with exploring(monkeypatch, tmp_path, gone) as server:
        async with connect(server.http) as client:
            turn_id = await ask(client, "What is this?")
            card = client.screen.output(turn_id)[0]
            assert card.props["title"] == "The model did not answer"
            assert "onnect" in card.props["message"]


@pytest.mark.parametrize(
    "environ",
    [{}, {"OPENAI_API_KEY": " ", "ANTHROPIC_API_KEY": ""}, {"OPENAI_MODEL": "m"}],
)
def test_without_a_key_there_is_no_model(environ: dict[str, str]) -> None:
    assert configured_model(App(), environ) is None


def test_a_model_that_cannot_be_used_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """The key is not in the environment of the process, from which the provider reads it."""
    assert configured_model(App(), {"ANTHROPIC_API_KEY": KEY}) is None
    assert "ANTHROPIC_API_KEY" in caplog.text
    assert KEY not in caplog.text


async def test_the_model_reads_no_more_than_it_needs(samples: Dataset) -> None:
    rows = describe_rows(await samples.ask("SELECT * FROM cars"))
    assert len(rows) < 8_100
    assert rows.endswith("(406 rows; at most 50 are listed)")
    assert describe_tables(Workspace({"data": samples}, "data")).count("\n") == 1
