"""The first minute of the demo in a real browser: it streams, helps, and says what it can do."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.page.conftest import WAIT_S, becomes

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]

ROOT = Path(__file__).parents[2]
QUESTION = "Show the average temperature by month"
SEEN = """
() => {
  Object.assign(window, { texts: [], points: [] });
  const note = (seen, now) => seen.includes(now) || seen.push(now);
  const look = () => {
    const all = [...document.querySelectorAll("p")].map((each) => each.innerText.trim());
    note(window.texts, all.find((text) => text.startsWith("Looking")) ?? "");
    note(window.points, document.querySelectorAll("path.arp-mark").length);
    requestAnimationFrame(look);
  };
  look();
}
"""
"""Notes what the page shows of the first sentence and of the chart, whenever it is another."""


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[str]:
    """The address of the demo, at its own pace."""
    command = [sys.executable, "-m", "arp.cli", "serve", "examples/explorer/app.py"]
    command += ["--port", "0", "--ledger", "memory:"]
    env = {**os.environ, "EXPLORER_EXPORT": str(tmp_path), "EXPLORER_PACE_MS": "30"}
    with subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        try:
            yield child.stdout.readline().removeprefix("ARP on ").strip()
        finally:
            child.terminate()


@pytest.fixture
def page(browser: Browser, demo: str) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1000, "height": 900})
    context.set_default_timeout(WAIT_S * 1000)
    page = context.new_page()
    page.goto(demo)
    page.get_by_text("Connected", exact=True).wait_for()
    yield page
    context.close()


def test_the_answer_streams_and_the_question_comes_after_it(page: Page) -> None:
    """Many moments, each with more than the one before, not one big change."""
    page.evaluate(SEEN)
    box = page.get_by_role("textbox", name="Message")
    box.fill(QUESTION)
    box.press("Enter")
    expect(page.get_by_role("button", name="Write the file")).to_be_visible()
    expect(page.get_by_text("query", exact=True).first).to_be_visible()
    texts, points = (set(seen) for seen in page.evaluate("[window.texts, window.points]"))
    whole = "Looking up the average daily high and low by month."
    assert whole in texts
    assert all(whole.startswith(text) for text in texts)
    assert len(texts) > 4
    assert len(points) > 4


def test_the_list_behind_a_slash_offers_help_and_help_works(page: Page) -> None:
    box = page.get_by_role("textbox", name="Message")
    box.press_sequentially("/")
    listed = page.get_by_role("listbox").get_by_role("option")
    names = ("/help", "/tables", "/describe", "/form", "/export")
    becomes(lambda: [text.split()[0] for text in listed.all_inner_texts()], list(names))
    box.press_sequentially("help")
    becomes(listed.count, 1)
    box.press("Enter")  # takes it from the list
    box.press("Enter")
    expect(page.get_by_text("plain questions", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name="tables", exact=True)).to_be_visible()


def test_what_is_not_understood_is_answered_in_a_sentence_with_something_to_try(
    page: Page,
) -> None:
    box = page.get_by_role("textbox", name="Message")
    box.fill("what is the meaning of life?")
    box.press("Enter")
    expect(page.get_by_text("I did not understand that, but I can count")).to_be_visible()
    page.get_by_role("button", name="help", exact=True).click()
    expect(page.get_by_text("plain questions", exact=True)).to_be_visible()


def test_stop_ends_a_streaming_answer_at_once(page: Page) -> None:
    """Stopped while the chart grows: all of the chart stays, and no question comes."""
    box = page.get_by_role("textbox", name="Message")
    box.fill(QUESTION)
    box.press("Enter")
    page.get_by_text("Average daily high and low by month").first.wait_for()
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_role("button", name="Send")).to_be_visible()
    expect(page.get_by_role("button", name="Write the file")).to_have_count(0)
