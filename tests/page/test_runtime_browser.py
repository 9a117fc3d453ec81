"""Claude Code on the page: what is denied does not run, what is approved runs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.page.conftest import WAIT_S, becomes
from tests.runtime import clis
from tests.runtime.clis import Cli
from tests.runtime.conftest import claude_cli, model_server
from tests.runtime.model_server import ModelServer

__all__ = ["claude_cli", "model_server"]

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]


OUTSIDE = """scroller => [...scroller.querySelectorAll("*")]
    .filter(one => getComputedStyle(one).position === "absolute" && one.offsetParent)
    .filter(one => !scroller.contains(one.offsetParent)).map(one => one.className)"""
"""What is in the conversation, and placed by something around it."""


@contextmanager
def served(cli: Cli, place: Path) -> Iterator[str]:
    """Run `arp serve --runtime claude-code` in the environment of the CLI, and give its address."""
    command = [
        *(sys.executable, "-m", "arp.cli", "serve", "--runtime", "claude-code"),
        *("--cwd", str(cli.cwd), "--runtime-model", "fake-1", "--pass-env", "ENABLE_TOOL_SEARCH"),
        *("--port", "0", "--ledger", f"sqlite:{place / 'ledger.db'}"),
    ]
    server = subprocess.Popen(
        command, env=cli.environment, cwd=place, stdout=subprocess.PIPE, text=True
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


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    context.set_default_timeout(WAIT_S * 1000)
    yield context.new_page()
    context.close()


def ask(page: Page, text: str) -> None:
    page.locator("arp-composer textarea").fill(text)
    page.keyboard.press("Enter")


def chat_at(url: str, query: str) -> str:
    """Return the address of a chat, with the token of the server's start."""
    place, mark, token = url.partition("#")
    return f"{place}?{query}{mark}{token}"


def test_claude_code_runs_what_was_approved_and_is_told_why_it_was_denied(
    page: Page, claude_cli: Cli, model_server: ModelServer, tmp_path: Path
) -> None:
    denied, approved, later = (claude_cli.cwd / name for name in ("denied", "approved", "later"))
    with served(claude_cli, tmp_path) as url:
        page.goto(url)
        ask(page, f"run: touch {denied}")
        card = page.locator(".arp-permission")
        expect(card).to_contain_text(f"touch {denied}")
        card.locator(".arp-reason").fill("not in this directory, please")
        card.get_by_role("button", name="Deny").click()
        expect(card).to_have_count(0)
        becomes(
            lambda: "not in this directory, please" in (model_server.last_tool_result() or ""), True
        )
        expect(page.get_by_role("button", name="Stop")).to_have_count(0)

        ask(page, f"run: touch {approved}")
        expect(card).to_contain_text(f"touch {approved}")
        chat = urlsplit(page.url).query
        page.goto("about:blank")  # the page is closed, and the run goes on
        page.goto(chat_at(url, chat))
        expect(card).to_contain_text(f"touch {approved}")
        assert not approved.exists()
        card.get_by_role("button", name="Allow once").click()
        becomes(approved.exists, True)
        expect(page.get_by_role("button", name="Stop")).to_have_count(0)
        assert not denied.exists()
        turns = len(model_server.requests)
    becomes(lambda: len(clis.processes_of(claude_cli)), 0)
    with served(claude_cli, tmp_path) as url:
        page.goto(chat_at(url, chat))
        expect(page.get_by_text(f"run: touch {approved}", exact=True)).to_be_visible()
        ask(page, f"run: touch {later}")
        expect(card).to_contain_text(f"touch {later}")
        card.get_by_role("button", name="Allow once").click()
        becomes(later.exists, True)
        told = str(model_server.requests[turns].body)
        assert f"run: touch {denied}" in told, "the session was not found again"
    becomes(lambda: len(clis.processes_of(claude_cli)), 0)


def test_claude_code_asks_its_user_and_is_told_the_answer(
    page: Page, claude_cli: Cli, model_server: ModelServer, tmp_path: Path
) -> None:
    options = [
        {"label": "Red", "description": "as a rose"},
        {"label": "Blue", "description": "as the sea"},
    ]
    asked = {"question": "Which color?", "header": "Color", "options": options}
    with served(claude_cli, tmp_path) as url:
        page.goto(url)
        questions = json.dumps({"questions": [{**asked, "multiSelect": False}]})
        ask(page, f"tool: AskUserQuestion {questions}")
        card = page.locator("arp-choices")
        expect(card).to_contain_text("as the sea")
        expect(page.locator(".arp-permission")).to_have_count(0)
        page.set_viewport_size({"width": 390, "height": 500})
        card.get_by_role("button", name="Something else…").click()
        page.locator("arp-text-input input").fill("a dark green")
        page.keyboard.press("Enter")
        becomes(
            lambda: '"Which color?"="a dark green"' in (model_server.last_tool_result() or ""), True
        )
        expect(page.get_by_role("button", name="Stop")).to_have_count(0)
        page.reload()
        expect(page.locator(".arp-scroller h2")).to_have_count(2)
        # Headings for screen readers must not make more scroll than the conversation: a field that
        # took the focus moved the whole chat out of sight.
        assert page.locator(".arp-scroller").evaluate(OUTSIDE) == []
    becomes(lambda: len(clis.processes_of(claude_cli)), 0)
