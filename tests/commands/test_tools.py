"""`arp tools`: lists, shows, calls and asks, of a data directory and of a server."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

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
