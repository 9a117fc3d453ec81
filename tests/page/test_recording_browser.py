"""A recording that is served shows itself in a real browser, and takes no input."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest
from click.testing import CliRunner
from playwright.sync_api import Browser, expect

from arp.cli import main
from tests.commands.ledgers import ledger
from tests.page.conftest import START_S, WAIT_S

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """What `arp replay --serve` prints first; made before the browser, which has a loop."""
    place = tmp_path_factory.mktemp("recording")
    file, pack = ledger(place / "l.db", "s"), place / "s.zip"
    words = ["evidence", "export", "s", "--ledger", f"sqlite:{file}", "-o", str(pack)]
    assert CliRunner().invoke(main, words).exit_code == 0
    child = subprocess.Popen(
        [sys.executable, "-m", "arp.cli", "replay", str(pack), "--serve", "--speed", "0"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    with child.stdout as told:
        yield told.readline().strip()
    os.kill(child.pid, signal.SIGTERM)
    assert child.wait(START_S) == 0


def test_the_page_shows_the_conversation_again_and_can_add_nothing(
    address: str, browser: Browser
) -> None:
    context = browser.new_context()
    context.set_default_timeout(WAIT_S * 1000)
    page = context.new_page()
    page.goto(address)
    page.locator(".arp-log").get_by_text("it failed").wait_for()
    page.locator(".arp-log").get_by_text("hello").wait_for()
    expect(page.locator(".arp-bubble")).to_have_text(["read\x07 it"])
    page.get_by_placeholder("This is a recording. It takes no input.").wait_for()
    expect(page.locator("arp-composer textarea")).to_be_disabled()
    expect(page.locator("arp-composer button:visible")).to_have_count(0)
    expect(page.locator(".arp-log").get_by_role("button", name="Try again")).to_have_count(0)
    page.evaluate("document.querySelector('arp-chat').say('more')")
    page.locator(".arp-log").get_by_text("Not sent: this is a recording").wait_for()
    context.close()
    context = browser.new_context()
    late = context.new_page()
    late.goto(address)
    late.locator(".arp-log").get_by_text("it failed").wait_for()
    expect(late.locator(".arp-bubble")).to_have_text(["read\x07 it"])
    context.close()
