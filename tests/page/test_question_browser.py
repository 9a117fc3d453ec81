"""Questions on the page: declined, and open after a server that was killed came back."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.page.conftest import WAIT_S

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]

APP = Path(__file__).parent.parent / "server" / "asking.py"


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@contextmanager
def served(ledger: Path, port: int, app: Path = APP) -> Iterator[str]:
    """Run a server as a process of its own, and kill it at the end as a power cut would."""
    command = [sys.executable, "-m", "arp.cli", "serve", str(app), "--port", str(port)]
    server = subprocess.Popen(
        [*command, "--ledger", f"sqlite:{ledger}"], stdout=subprocess.PIPE, text=True
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
    context = browser.new_context(viewport={"width": 1280, "height": 900}, locale="en-GB")
    context.set_default_timeout(WAIT_S * 1000)
    yield context.new_page()
    context.close()


def ask(page: Page, text: str) -> None:
    page.locator("arp-composer textarea").fill(text)
    page.keyboard.press("Enter")


def test_form_that_lets_people_decline_is_declined(page: Page, tmp_path: Path) -> None:
    with served(tmp_path / "ledger.db", free_port()) as url:
        page.goto(url)
        ask(page, "trip")
        form = page.locator(".arp-question")
        expect(form.locator(".arp-decline")).to_have_text("Decline")
        form.locator(".arp-decline").click()
        expect(form.locator(".arp-standing")).to_have_text("Declined")
        expect(page.locator("arp-message").last).to_contain_text("No trip.")


def test_question_is_open_after_a_restart_and_its_turn_has_not_failed(
    page: Page, tmp_path: Path
) -> None:
    """The page shows that the agent waits, and nothing of a failure; the answer is taken."""
    port = free_port()
    with served(tmp_path / "ledger.db", port) as url:
        page.goto(url)
        ask(page, "trip")
        expect(page.locator(".arp-question[data-state=open]")).to_be_visible()
    with served(tmp_path / "ledger.db", port):
        ending = page.locator(".arp-ending")
        expect(ending).to_have_text("The agent is waiting for your answer", timeout=60_000)
        expect(page.locator("arp-error-card, .arp-bad")).to_have_count(0)
        page.reload()
        expect(ending).to_have_text("The agent is waiting for your answer")
        expect(page.get_by_role("button", name="Stop")).to_have_count(0)
        form = page.locator(".arp-question")
        form.get_by_label("To").fill("Rome")
        form.get_by_label("Start").fill("2026-05-01")
        form.get_by_role("button", name="Submit").click()
        expect(page.locator("arp-message").last).to_contain_text("Booked: 1 to Rome on 2026-05-01.")
        expect(ending).to_have_count(0)


def test_answer_that_came_too_late_says_so(browser: Browser, page: Page, tmp_path: Path) -> None:
    """A page without a connection is answered on another screen meanwhile."""
    with served(tmp_path / "ledger.db", free_port()) as url:
        page.goto(url)
        ask(page, "sure")
        other = browser.new_context(locale="en-GB")
        try:
            second = other.new_page()
            second.goto(page.url)
            expect(second.locator(".arp-question[data-state=open]")).to_be_visible()
            other.set_offline(True)
            second.locator(".arp-question button").first.click()
            page.locator(".arp-question button").last.click()
            expect(page.locator(".arp-question[data-state=answered]")).to_be_visible()
            other.set_offline(False)
            late = second.locator(".arp-question [role=alert]")
            expect(late).to_contain_text("is already answered", timeout=60_000)
            expect(second.locator(".arp-question .arp-standing")).to_have_text("Answered")
            second.reload()
            expect(second.locator(".arp-question[data-state=answered]")).to_be_visible()
            expect(late).to_have_count(0)
        finally:
            other.close()
