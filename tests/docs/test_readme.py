"""What the README and the landing page show is true: each snippet runs and does what they say."""

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
from tests.docs.answering import play
from tests.docs.pages import README, ROOT, blocks, section, text_of
from tests.support.serving import serving

ADDRESS = "http://127.0.0.1:8080"
SOCKET = "ws://127.0.0.1:8080"
NODE_S = 15

INDEX, MEASURED = "index.md", "measured.md"

SHORT = {"README.md": (200, 20_000), "CHANGELOG.md": (65, 10_000), "DECISIONS.md": (400, 20_480)}
"""Lines and bytes that a page of the root may have."""


def snippet(heading: str, language: str = "python", *, page: str = INDEX) -> str:
    """Return the one block of a language below a heading."""
    below = section(page, heading)
    (found,) = [block for block in blocks(language, page=page) if block.code in below]
    return found.code


def run(code: str) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "readme"}
    exec(compile(code, "README.md", "exec"), names)
    return names


def echo() -> App:
    app: App = run((ROOT / "examples/echo/app.py").read_text())["app"]
    return app


@pytest.mark.parametrize("page", [README.name, INDEX])
def test_the_ten_lines_show_a_chart_and_ask_before_they_export(page: str) -> None:
    code = {name: snippet("Ten lines of agent", page=name) for name in (README.name, INDEX)}
    assert code[README.name] == code[INDEX]
    with serving(run(code[page])["app"]) as server:
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
    transport = httpx.ASGITransport(run(snippet("Three doors"))["api"])
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        page = await client.get("/agent/")
        answer = await client.post("/agent/helper", json={"message": "Hello"})
    assert page.status_code == 200
    assert page.headers["content-type"].startswith("text/html")
    assert answer.json()["text"] == "How can I help?"


@pytest.mark.node
def test_the_javascript_prints_the_answer_as_it_comes(requires: Callable[[str], str]) -> None:
    with serving(echo()) as server:
        code = snippet("Three doors", "js").replace(SOCKET, server.ws[:-8])
        done = subprocess.run(
            [requires("node"), "--experimental-websocket", "--no-warnings", "-e", code],
            capture_output=True,
            text=True,
            timeout=NODE_S,
            check=False,
        )
    assert done.stderr == ""
    assert "".join(done.stdout.splitlines()) == "Hello, every screen! "


def test_every_benchmark_has_its_line_and_every_line_its_benchmark() -> None:
    makefile = (ROOT / "Makefile").read_text()
    (listed,) = [line for line in makefile.splitlines() if line.startswith("BENCH = ")]
    rows = [row.split("`")[1] for row in section(MEASURED, "Server").splitlines() if "| `" in row]
    assert [row for row in rows if not row.startswith("make")] == listed.split()[2:]


def test_speed_is_told_in_ratios_alone() -> None:
    told = text_of(MEASURED)
    assert "×" in told
    assert not [unit for unit in (" ms", " µs", "/s ", " MiB") if unit in told]


EXAMPLES = "examples.md"


@pytest.mark.parametrize("name", ["browser.png", "terminal.png"])
def test_the_pictures_are_small_and_described(name: str) -> None:
    picture = ROOT / "docs/images" / name
    assert 10_000 < picture.stat().st_size < 200_000
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert f'<img src="images/{name}" alt="The ' in text_of(EXAMPLES)


@pytest.mark.parametrize(
    ("page", "place"),
    [("README.md", "docs/images"), (INDEX, "images"), (EXAMPLES, "images")],
)
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


@pytest.mark.parametrize("name", SHORT)
def test_a_page_of_the_root_is_short(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    lines, size = SHORT[name]
    assert len(text.splitlines()) <= lines
    assert len(text.encode()) <= size


def test_the_decisions_are_listed_by_area_in_at_most_five_lines_each() -> None:
    text = (ROOT / "DECISIONS.md").read_text(encoding="utf-8")
    areas = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert re.findall(r"^- \[(.+)\]\(#", text, re.MULTILINE) == areas
    for entry in re.split(r"^### ", text, flags=re.MULTILINE)[1:]:
        title, *lines = entry.partition("\n## ")[0].strip().splitlines()
        assert re.search(r" \(\d{4}-\d\d-\d\d\)$", title), title
        assert 1 <= len(lines) <= 5, title
