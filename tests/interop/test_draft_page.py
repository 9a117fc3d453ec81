"""The page in a real browser, on a server that was written from the v0.1 draft alone."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import expect, sync_playwright

from arp.server.page import STATIC

SERVER = Path(__file__).parent / "draft_server.mjs"
FLAGS = ["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
WAIT_MS = 20_000


def test_page_talks_to_the_drafts_server(requires: Callable[[str], str]) -> None:
    """No subprotocol is selected, no input is echoed, and a question ends the stream."""
    command = [requires("node"), str(SERVER), str(STATIC)]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child,
        sync_playwright() as runner,
    ):
        assert child.stdout is not None
        port = int(child.stdout.readline())
        browser = runner.chromium.launch(executable_path=requires("browser"), args=FLAGS)
        try:
            page = browser.new_page(locale="en-US")
            page.set_default_timeout(WAIT_MS)
            page.goto(f"http://127.0.0.1:{port}/")
            box = page.get_by_role("textbox").first
            for text, shown in (
                ("Hello", "You said: Hello"),
                ("offers", "Here they are."),
                ("fail", "the model is away"),
                ("delete", "Delete the offers?"),
            ):
                box.fill(text)
                box.press("Enter")
                expect(page.get_by_text(shown).first).to_be_visible(timeout=WAIT_MS)
            expect(page.get_by_text("Lamp").first).to_be_visible(timeout=WAIT_MS)
            expect(page.get_by_text("unknown message type")).to_have_count(0)
            # What is offered is what the server has announced: neither turns nor files.
            expect(page.get_by_role("button", name="Copy").first).to_be_attached()
            for name in ("Edit", "Regenerate", "Stop", "Attach files"):
                expect(page.get_by_role("button", name=name)).to_have_count(0)
            page.get_by_role("button", name="Yes").click()
            expect(page.get_by_text("Deleted.").first).to_be_visible(timeout=WAIT_MS)
        finally:
            browser.close()
            child.kill()
