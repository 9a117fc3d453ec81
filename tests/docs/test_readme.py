"""What the README shows is true: each of its snippets runs and does what stands beside it."""

from __future__ import annotations

import asyncio
import re
import subprocess
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from arp import App
from arp.protocol.components import Component
from tests.docs import commands
from tests.docs.answering import play
from tests.docs.pages import README, ROOT, blocks, section, text_of
from tests.serving import serving

ADDRESS = "http://127.0.0.1:8080"
SOCKET = "ws://127.0.0.1:8080"
NODE_S = 15


def snippet(heading: str, language: str = "python") -> str:
    """Return the one block of a language below a heading."""
    below = section("README.md", heading)
    (found,) = [block for block in blocks(language, page="README.md") if block.code in below]
    return found.code


def run(code: str) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "readme"}
    exec(compile(code, "README.md", "exec"), names)
    return names


def echo() -> App:
    app: App = run((ROOT / "examples/echo/app.py").read_text())["app"]
    return app


def test_the_ten_lines_of_agent_show_a_chart_and_ask_before_they_export() -> None:
    with serving(run(snippet("Ten lines of agent"))["app"]) as server:
        turn, text, shown = asyncio.run(play(server.http, "Show the sales"))
    assert turn.status == "completed"
    assert [(tool.tool, tool.args, tool.ok) for tool in turn.tools] == [
        ("query", '{"table":"sales"}', True)
    ]
    assert text == "Let me look. "
    sales = {"label": "Sales", "data": [120, 95, 143]}
    months = ["Jan", "Feb", "Mar"]
    done = {"status": "success", "title": "Exported", "message": "3 rows"}
    asked = {"title": "Export as CSV?", "state": "answered", "answer": True}
    assert shown == [
        Component("t1-1", "chart", {"type": "bar", "labels": months, "datasets": [sales]}),
        Component("t1-2", "confirm", asked),
        Component("t1-3", "status-card", done),
    ]


async def test_the_agent_in_a_service_has_a_page_and_answers() -> None:
    transport = httpx.ASGITransport(run(snippet("In your own service"))["api"])
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        page = await client.get("/agent/")
        answer = await client.post("/agent/helper", json={"message": "Hello"})
    assert page.status_code == 200
    assert page.headers["content-type"].startswith("text/html")
    assert answer.json()["text"] == "How can I help?"


def test_the_python_client_prints_the_answer(capsys: pytest.CaptureFixture[str]) -> None:
    with serving(echo()) as server:
        run(snippet("From Python").replace(ADDRESS, server.http))
    assert capsys.readouterr().out == "Hello, every screen! \n"


@pytest.mark.node
def test_the_javascript_prints_the_answer_as_it_comes(requires: Callable[[str], str]) -> None:
    with serving(echo()) as server:
        code = snippet("From a browser, or any language", "js").replace(SOCKET, server.ws[:-8])
        done = subprocess.run(
            [requires("node"), "--experimental-websocket", "--no-warnings", "-e", code],
            capture_output=True,
            text=True,
            timeout=NODE_S,
            check=False,
        )
    assert done.stderr == ""
    assert "".join(done.stdout.splitlines()) == "Hello, every screen! "


def test_curl_streams_the_beginning_of_the_answer() -> None:
    (words,) = commands.commands(snippet("How it travels", "sh"))
    with serving(run(snippet("Ten lines of agent"))["app"]) as server, httpx.Client() as client:
        answer = client.send(commands.request(words[1:], server.http), stream=True)
        lines = answer.iter_lines()
        assert [next(lines) for _ in range(5)][3:] == [
            "event: delta",
            'data: {"delta":"Let me look. "}',
        ]
        answer.close()


def test_every_benchmark_has_its_line_and_every_line_its_benchmark() -> None:
    makefile = (ROOT / "Makefile").read_text()
    (listed,) = [line for line in makefile.splitlines() if line.startswith("BENCH = ")]
    rows = [row.split("`")[1] for row in section("README.md", "Speed").splitlines() if "| `" in row]
    assert [row for row in rows if not row.startswith("make")] == listed.split()[2:]


def test_speed_is_told_in_ratios_alone() -> None:
    told = section("README.md", "Speed")
    assert "×" in told
    assert not [unit for unit in (" ms", " µs", "/s ", " MiB") if unit in told]


EXAMPLES = "examples.md"


@pytest.mark.parametrize("name", ["browser.png", "terminal.png"])
def test_the_pictures_are_small_and_described(name: str) -> None:
    picture = ROOT / "docs/images" / name
    assert 10_000 < picture.stat().st_size < 200_000
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert f'<img src="images/{name}" alt="The ' in text_of(EXAMPLES)


@pytest.mark.parametrize(("page", "place"), [("README.md", "docs/images"), (EXAMPLES, "images")])
def test_the_first_minute_is_shown_and_described(page: str, place: str) -> None:
    """Who wants less motion gets a still picture."""
    text = text_of(page)
    assert re.search(rf'<img src="{place}/demo\.webp"[^>]* alt="The first minute of ', text)
    assert f'(prefers-reduced-motion: reduce)" srcset="{place}/browser.png"' in text


@pytest.mark.parametrize(
    "word",
    ["/_inspect", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_BASE_URL", "EXPLORER_DATA"],
)
def test_the_readme_names_the_inspector_and_the_variables_of_a_model(word: str) -> None:
    assert word in text_of(README.name)
