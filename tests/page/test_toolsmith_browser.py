"""The toolsmith in a real browser: ask for a tool, allow its build, watch the steps, use it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from arp.commands.tools import progress_line
from tests.page.conftest import WAIT_S
from tests.tools.app.folding import folding
from tests.tools.app.smithy import noise

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

EXAMPLE = Path(__file__).parents[2] / "examples" / "toolsmith" / "app.py"


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Run the example as a process of its own."""
    folder.chmod(0o755)
    server = subprocess.Popen(
        [
            *(sys.executable, "-m", "arp.cli", "serve", str(EXAMPLE)),
            *("--port", "0", "--ledger", "memory:"),
        ],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TOOL_AGENT_DATA_DIR": str(folder)},
    )
    try:
        assert server.stdout is not None
        line = server.stdout.readline()
        assert line.startswith("ARP on http://127.0.0.1:"), line
        yield line.removeprefix("ARP on ").strip()
    finally:
        server.terminate()
        server.wait(WAIT_S)
        assert server.stdout is not None
        server.stdout.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(WAIT_S * 1000)
    page = context.new_page()
    yield page
    context.close()


def test_tool_is_built_in_the_chat_used_there_and_in_the_catalog(
    page: Page, tmp_path: Path
) -> None:
    picture = tmp_path / "noise.png"
    picture.write_bytes(noise(320, 240))
    with served(tmp_path) as url:
        page.goto(url)
        page.locator("arp-composer textarea").fill("I need a tool that compresses images")
        page.keyboard.press("Enter")
        card = page.locator(".arp-permission")
        expect(card).to_contain_text("Add the package pillow to compresses_images?")
        card.get_by_role("button", name="Allow for this chat").click()
        last = page.locator("arp-message").last
        expect(last).to_contain_text("compresses_images is ready")
        expect(last).to_contain_text("main.py")  # the code that was written
        page.locator("input[type=file]").first.set_input_files(str(picture))
        page.locator("arp-composer textarea").fill("compress this image")
        page.keyboard.press("Enter")
        made = page.locator("arp-message").last.locator("arp-image img, img")
        expect(made).to_be_visible()
        assert made.evaluate("image => image.decode().then(() => image.naturalWidth)") == 320
        expect(page.locator("arp-message").last).to_contain_text("compressed_size")


def test_money_above_the_threshold_is_asked_in_the_session_of_the_task(
    page: Page, tmp_path: Path
) -> None:
    """Who waits with `arp tools request` is shown the address, and answers there."""
    with folding(tmp_path) as (made, _):
        task_id = made.ask_for("fold paper")
        waiting = made.becomes(task_id, "waiting_approval", "failed")
        page.goto(progress_line(made.url, waiting).rpartition("Answer it here: ")[2])
        card = page.locator(".arp-permission")
        expect(card).to_contain_text("Pay up to $12.50 to folder-coder?")
        expect(card).to_contain_text("$100.00 are left of this month before it.")
        card.get_by_role("button", name="Allow").click()
        expect(page.locator("arp-message").last).to_contain_text("folder is ready")
        assert made.task(task_id)["status"] == "completed"
        (paid,) = made.agent.service.budget.transactions()
        assert (paid.provider, paid.amount_usd) == ("folder-coder", Decimal("0.5"))
