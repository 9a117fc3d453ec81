"""`arp tools`: lists, shows, calls and asks, of a data directory and of a server."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner

from arp.cli import main
from arp.tools.budget import Budget, Purchase
from tests.runtime import mcp_server
from tests.tools.house import house, settings_in
from tests.tools.serving_routes import ToolHouse, tool_house


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ToolHouse]:
    with tool_house(tmp_path_factory.mktemp("data")) as made:
        yield made


def run(*words: str, data_dir: Path | None = None) -> tuple[int, str]:
    env = {"TOOL_AGENT_DATA_DIR": str(data_dir)} if data_dir is not None else {}
    done = CliRunner().invoke(main, ["tools", *words], env=env)
    return done.exit_code, done.output


def test_tools_of_a_server_are_listed(served: ToolHouse) -> None:
    code, text = run("list", "--url", served.url)
    assert code == 0
    assert text.splitlines()[0] == "add      active    numbers     Add"
    code, text = run("list", "--url", served.url, "--json")
    assert json.loads(text)["tools"][0]["tool_id"] == "add"


def test_tools_of_the_data_directory_are_listed_and_shown(tmp_path: Path) -> None:
    assert run("list", data_dir=tmp_path) == (
        0,
        "There is no tool yet. arp tools request asks for one.\n",
    )
    house(tmp_path)
    assert run("list", data_dir=tmp_path)[1].startswith("add      active ")
    code, text = run("show", "add", data_dir=tmp_path)
    assert code == 0
    assert json.loads(text)["scheduling"]["mode"] == "stateless"
    code, text = run("show", "none", data_dir=tmp_path)
    assert code == 1
    assert "There is no tool 'none'" in text


def test_tool_is_called_and_streams(served: ToolHouse) -> None:
    code, text = run("invoke", "add", '{"a": 2, "b": 3}', "--url", served.url)
    assert (code, json.loads(text)) == (0, {"sum": 5})
    code, text = run("invoke", "count", "--stream", "--url", served.url)
    assert (code, text.splitlines()) == (0, ["0", "1", "2", '{"counted":3}'])


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("add", '{"a": "two", "b": 3}'), "params.a: 'two' is not of type 'integer'"),
        (("add", "{"), "PARAMS is no JSON"),
        (("fail",), "The disk is full"),
        (("fail", "--stream"), "The disk is full"),
        (("none",), "There is no tool 'none'"),
        (("../x",), "Nothing at /tools/../x/invoke"),
    ],
)
def test_call_that_fails_says_why_in_one_line(
    served: ToolHouse, words: tuple[str, ...], told: str
) -> None:
    code, text = run("invoke", *words, "--url", served.url)
    assert code == 1
    assert text.startswith("arp: ")
    assert told in text
    assert text.count("\n") == 1


def test_request_waits_for_its_task(served: ToolHouse) -> None:
    code, text = run("request", "use add", "--url", served.url)
    assert code == 0
    assert json.loads(text[text.index("{") :])["result"]["tool_id"] == "add"
    code, text = run("request", "fold paper", "--url", served.url)
    assert code == 1
    assert "no coding agent is configured" in text
    code, text = run("request", "use add", "--no-wait", "--url", served.url)
    assert json.loads(text)["status"] == "pending"


def test_server_that_is_not_there_is_named(tmp_path: Path) -> None:
    code, text = run("invoke", "add", "--url", "http://127.0.0.1:9", data_dir=tmp_path)
    assert code == 1
    assert "http://127.0.0.1:9 cannot be asked" in text
    assert "arp tools serve starts one" in text


def test_tools_of_an_mcp_server_are_imported(tmp_path: Path) -> None:
    words = ("import", "sums", "--", sys.executable, str(mcp_server.__file__))
    code, text = run(*words, data_dir=tmp_path)
    assert (code, text) == (0, "sums_add Return the sum of two integers.\n")
    assert run("list", data_dir=tmp_path)[1].startswith("sums_add  active ")
    code, text = run("import", "gone", "--", "/nowhere/at/all", data_dir=tmp_path)
    assert code == 1
    assert "The MCP server gone cannot be reached" in text


def test_server_that_others_can_reach_needs_a_token(tmp_path: Path) -> None:
    code, text = run("serve", "--host", "0.0.0.0", "--port", "0", data_dir=tmp_path)
    assert code == 1
    assert "can be reached by others: set --token" in text
    code, text = run("serve", "--coder", "nobody-knows", data_dir=tmp_path)
    assert code == 1
    assert "--coder: there is no runtime 'nobody-knows'" in text


@contextmanager
def arp_tools_serve(data_dir: Path, *words: str, **settings: str) -> Iterator[list[str]]:
    """Run `arp tools serve` as a process; yield the first two lines that it writes."""
    process = subprocess.Popen(
        [*(sys.executable, "-m", "arp.cli", "tools", "serve", "--ledger", "memory:"), *words],
        env={**os.environ, "TOOL_AGENT_DATA_DIR": str(data_dir), **settings},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with process:
        try:
            assert process.stdout is not None
            yield [process.stdout.readline().strip() for _ in range(2)]
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == 0


def test_mcp_on_a_port_of_its_own_wants_the_token_and_is_nowhere_else(tmp_path: Path) -> None:
    house(tmp_path)
    ask = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }
    bearer = {"authorization": "Bearer long-enough-token"}
    accept = {"accept": "application/json, text/event-stream"}
    words = ("--port", "0", "--token", "long-enough-token")
    with (
        arp_tools_serve(tmp_path, *words, TOOL_AGENT_MCP_PORT="0") as (mcp, http),
        httpx.Client(headers=accept, timeout=20, trust_env=False) as client,
    ):
        url, mcp_url = http.removeprefix("ARP on "), mcp.removeprefix("MCP on ")
        assert mcp_url.startswith("http://127.0.0.1:")
        assert mcp_url.endswith("/mcp")
        for address in (f"{url}/tools", mcp_url):
            assert client.post(address, json=ask).status_code == 401
            wrong = {"authorization": "Bearer another-token"}
            assert client.post(address, json=ask, headers=wrong).status_code == 401
        client.headers.update(bearer)
        assert len(client.get(f"{url}/tools").json()["tools"]) == 5
        elsewhere = client.post(f"{url}/mcp", json=ask)
        assert elsewhere.status_code == 404
        assert mcp_url.rpartition(":")[2] == f"{elsewhere.json()['error'].split()[-1]}/mcp"
        for path in ("/tools", "/health", "/", "/_arp/v1/sessions", "/mcp/"):
            other = client.get(mcp_url.removesuffix("/mcp") + path)
            assert (other.status_code, other.json()) == (404, {"error": "only /mcp is here"})
        begin = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}
        begun = client.post(mcp_url, json=begin)
        assert begun.status_code == 200
        session = {"mcp-session-id": begun.headers["mcp-session-id"]}
        client.post(
            mcp_url, json={"jsonrpc": "2.0", "method": "notifications/initialized"}, headers=session
        )
        listed = client.post(mcp_url, json=ask, headers=session).text
        data = next(line for line in listed.splitlines() if line.startswith("data: {"))
        names = {tool["name"] for tool in json.loads(data[6:])["result"]["tools"]}
        assert names == {"add", "count", "fail", "picture", "rows"}
        client.headers["origin"] = "https://evil.example"
        assert client.post(mcp_url, json=begin).status_code == 403


def test_mcp_port_that_is_taken_is_said(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        (tmp_path / "config.json").write_text(json.dumps({"mcp_port": port}))
        code, text = run("serve", "--port", "0", data_dir=tmp_path)
    assert code == 1
    assert f"MCP cannot listen on 127.0.0.1:{port}: Address already in use" in text
    assert "TOOL_AGENT_MCP_PORT" in text


def test_reservation_that_a_crash_has_left_is_settled_or_cancelled(tmp_path: Path) -> None:
    budget = Budget(settings_in(tmp_path))
    paid = budget.reserve(Purchase("openai", 4, "tokens"))
    unpaid = budget.reserve(Purchase("openai", 5, "more tokens"))
    code, text = run("budget", data_dir=tmp_path)
    assert (code, text.splitlines()) == (
        0,
        [
            "spent this month  $0.00 of $100.00",
            "left              $91.00",
            f"reserved {paid.id} $4.00 openai: tokens",
            f"reserved {unpaid.id} $5.00 openai: more tokens",
        ],
    )
    code, text = run("budget", "--settle", paid.id, "--amount", "1.25", data_dir=tmp_path)
    assert (code, text.splitlines()[:2]) == (
        0,
        ["spent this month  $1.25 of $100.00", "left              $93.75"],
    )
    code, text = run("budget", "--cancel", unpaid.id, data_dir=tmp_path)
    assert (code, text.splitlines()[1:]) == (0, ["left              $98.75"])
    for words in (
        ("--cancel", unpaid.id),
        ("--settle", unpaid.id),
        ("--settle", "x", "--amount", "-1"),
        ("--amount", "1"),
        ("--settle", "x", "--cancel", "y"),
    ):
        assert run("budget", *words, data_dir=tmp_path)[0] == 1, words
    assert [one.amount_usd for one in budget.transactions()] == [Decimal("1.25")]
