"""Agents of frameworks on the page: questions, hand-offs, typed outputs, forms of MCP servers."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.page.conftest import WAIT_S

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]

EXAMPLES = Path(__file__).parents[2] / "examples"
MEMORY = Path(__file__).parent / "remembering_graph.py"


@contextmanager
def served(app: Path, ledger: Path) -> Iterator[str]:
    """Run an app as a process of its own, and kill it at the end as a power cut would."""
    server = subprocess.Popen(
        [
            *(sys.executable, "-m", "arp.cli", "serve", str(app)),
            *("--port", "0", "--ledger", f"sqlite:{ledger}"),
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stdout is not None
        line = server.stdout.readline()
        assert line.startswith("ARP on http://127.0.0.1:"), line
        yield line.removeprefix("ARP on ").strip()
    finally:
        server.kill()
        server.wait()
        assert server.stdout is not None
        server.stdout.close()


def new_page(browser: Browser) -> Page:
    """Return a page of another browser, as it were: nothing is shared with the others."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(WAIT_S * 1000)
    return context.new_page()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    page = new_page(browser)
    yield page
    page.context.close()


def ask(page: Page, text: str) -> None:
    page.locator("arp-composer textarea").fill(text)
    page.keyboard.press("Enter")


def test_interrupt_of_a_graph_is_answered_on_another_screen_after_a_kill(
    page: Page, browser: Browser, tmp_path: Path
) -> None:
    with served(EXAMPLES / "langgraph_approval/app.py", tmp_path / "ledger.db") as url:
        page.goto(url)
        ask(page, "A refund for order 7")
        expect(page.get_by_role("button", name="leave it")).to_be_visible()
        query = urlsplit(page.url).query
    other = new_page(browser)
    with served(EXAMPLES / "langgraph_approval/app.py", tmp_path / "ledger.db") as url:
        other.goto(f"{url}/?{query}")
        expect(other.locator(".arp-ending")).to_have_text("The agent is waiting for your answer")
        other.get_by_role("button", name="send", exact=True).click()
        expect(other.locator("arp-message").last).to_contain_text("It is sent.")
    other.context.close()


def test_after_an_edit_a_graph_knows_the_new_branch_alone(page: Page, tmp_path: Path) -> None:
    with served(MEMORY, tmp_path / "ledger.db") as url:
        page.goto(url)
        for number, text in enumerate(("hello", "my name is Ann", "and I am 30"), 1):
            ask(page, text)
            expect(page.locator("arp-message").last).to_contain_text(f"I know {number}:")
        query = urlsplit(page.url).query
    with served(MEMORY, tmp_path / "ledger.db") as url:
        page.goto(f"{url}/?{query}")
        page.get_by_role("button", name="Edit").nth(1).click()
        page.locator("arp-message textarea").fill("my name is Bob")
        page.keyboard.press("Enter")
        expect(page.locator("arp-message").last).to_contain_text("I know 2: hello, my name is Bob.")
        ask(page, "who am I?")
        said = "I know 3: hello, my name is Bob, who am I?."
        expect(page.locator("arp-message").last).to_contain_text(said)


def test_hand_off_says_who_speaks_and_a_refund_is_approved(page: Page, tmp_path: Path) -> None:
    with served(EXAMPLES / "openai_agents/app.py", tmp_path / "ledger.db") as url:
        page.goto(url)
        ask(page, "I want my money back for order 7")
        card = page.locator(".arp-permission")
        expect(card).to_contain_text("12.5")
        expect(page.locator("arp-message").last.get_by_text("Refunds", exact=True)).to_be_visible()
        card.get_by_role("button", name="Allow once").click()
        expect(page.locator("arp-message").last).to_contain_text("12.50 paid back for order 7")


def test_typed_output_is_a_chart(page: Page, tmp_path: Path) -> None:
    with served(EXAMPLES / "pydantic_ai/app.py", tmp_path / "ledger.db") as url:
        page.goto(url)
        ask(page, "Show the sales")
        expect(page.locator("arp-message").last.locator("arp-chart")).to_be_visible()


def test_question_of_an_mcp_server_is_a_form(page: Page, tmp_path: Path) -> None:
    with served(EXAMPLES / "mcp_tools/app.py", tmp_path / "ledger.db") as url:
        page.goto(url)
        ask(page, "order tea")
        form = page.locator(".arp-question[data-state=open]")
        form.get_by_label("Where to").fill("Bern")
        form.get_by_role("button", name="Submit").click()
        expect(page.locator("arp-message").last).to_contain_text("tea goes to Bern.")
