"""A popup over a row, an overlay that goes by itself and a surface beside the chat, in a browser.

The agent is `examples/surfaces`: what its callbacks heard shows in the conversation.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, FloatRect, Page, expect

from tests.page.conftest import WAIT_S

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

OBSERVED = Path(__file__).with_name("observed_surface.py")

APP = Path(__file__).parents[2] / "examples" / "surfaces" / "app.py"

SHOTS = os.environ.get("ARP_SHOTS")
"""A folder that gets pictures of what the tests see, for people."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of `arp serve` with the example."""
    with serving(APP, tmp_path_factory) as url:
        yield url


@contextmanager
def serving(app: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve an app; yield its address."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    ledger = tmp_path_factory.mktemp("ledger") / "ledger.db"
    command = [sys.executable, "-m", "arp.cli", "serve", str(app), "--port", str(port)]
    with subprocess.Popen(
        [*command, "--ledger", f"sqlite:{ledger}"], stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        line = server.stdout.readline()
        assert line.startswith("ARP on http://127.0.0.1:"), line
        yield line.removeprefix("ARP on ").strip()
        server.terminate()


def opened(browser: Browser, url: str, width: int, height: int) -> Page:
    """Return a page that shows the orders."""
    context = browser.new_context(viewport={"width": width, "height": height}, locale="en-GB")
    context.set_default_timeout(WAIT_S * 1000)
    page = context.new_page()
    page.on("pageerror", lambda error: pytest.fail(str(error)))
    page.goto(url)
    page.locator("arp-composer textarea").fill("Show the orders")
    page.keyboard.press("Enter")
    expect(page.locator("arp-table tbody tr")).to_have_count(3)
    return page


def choose(page: Page, order: str) -> None:
    """Click the row of an order, and submit it."""
    page.get_by_role("radio", name=order).click()
    page.locator("arp-table").get_by_role("button", name="Submit").click()


def shot(page: Page, name: str) -> None:
    if SHOTS:
        page.screenshot(path=f"{SHOTS}/{name}.png", animations="disabled")


def box(page: Page, selector: str) -> FloatRect:
    found = page.locator(selector).bounding_box()
    assert found is not None
    return found


def test_popup_over_the_row_that_was_clicked_an_overlay_and_a_surface_that_is_closed(
    browser: Browser, served: str
) -> None:
    page = opened(browser, served, 1440, 900)
    side = page.locator("arp-side-panel")
    expect(side.get_by_role("heading", name="Activity")).to_be_visible()
    expect(side).to_contain_text("Nothing has happened yet.")

    choose(page, "1002")
    popup = page.get_by_role("dialog", name="Order 1002")
    expect(popup).to_be_visible()
    expect(popup).to_contain_text("Grace")
    expect(popup).to_be_focused()
    row, card = box(page, "arp-table tbody tr:nth-child(2)"), box(page, ".arp-popup")
    assert row["y"] < card["y"] < row["y"] + 3 * row["height"] or card["y"] < row["y"]
    assert card["x"] < row["x"] + row["width"]
    shot(page, "popup-1440")

    # The agent waits in the popup; its callback hears that the other surface is closed.
    side.get_by_role("button", name="Close: Activity").click()
    expect(side).to_have_count(0)
    expect(page.locator("arp-message").last).to_contain_text("You closed the activity.")

    popup.get_by_role("button", name="Ship").click()
    expect(popup).to_have_count(0)
    overlay = page.locator(".arp-popup[data-kind=overlay]")
    expect(overlay).to_contain_text("Order 1002 is shipped")
    expect(overlay).not_to_be_focused()
    shot(page, "overlay-1440")
    expect(page.locator("arp-table tbody tr").nth(1)).to_contain_text("shipped")
    expect(overlay).to_have_count(0)  # by itself

    choose(page, "1003")
    popup = page.get_by_role("dialog", name="Order 1003")
    expect(popup).to_be_focused()
    page.keyboard.press("Escape")
    expect(popup).to_have_count(0)
    expect(page.locator("arp-message").last).to_contain_text("Order 1003 stays as it is.")
    has_focus = "() => document.activeElement !== document.body"
    assert page.evaluate(has_focus), "the focus was given back"
    page.reload()
    expect(page.locator("arp-table tbody tr").nth(1)).to_contain_text("shipped")
    expect(page.locator(".arp-popup, arp-side-panel")).to_have_count(0)
    page.context.close()


def test_popup_is_a_sheet_on_a_narrow_screen_and_there_again_after_a_reload(
    browser: Browser, served: str
) -> None:
    page = opened(browser, served, 390, 844)
    choose(page, "1001")
    popup = page.get_by_role("dialog", name="Order 1001")
    expect(popup).to_be_visible()
    expect(popup).to_have_attribute("data-layout", "sheet")
    card = box(page, ".arp-popup")
    assert card["x"] >= 0
    assert card["x"] + card["width"] <= 390
    assert card["y"] + card["height"] <= 844
    shot(page, "popup-390")
    page.reload()
    popup = page.get_by_role("dialog", name="Order 1001")
    expect(popup).to_contain_text("Ada")
    popup.get_by_role("button", name="Refund").click()
    overlay = page.locator(".arp-popup[data-kind=overlay]")
    expect(overlay).to_contain_text("Order 1001 is refunded")
    shot(page, "overlay-390")
    overlay.get_by_role("button", name="Close").click()
    expect(overlay).to_have_count(0)
    page.context.close()


def test_the_author_hears_of_focus_size_and_states_of_a_surface(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with serving(OBSERVED, tmp_path_factory) as url:
        context = browser.new_context(viewport={"width": 1440, "height": 900}, locale="en-GB")
        context.set_default_timeout(WAIT_S * 1000)
        page = context.new_page()
        page.on("pageerror", lambda error: pytest.fail(str(error)))
        page.goto(url)
        page.locator("arp-composer textarea").fill("Go")
        page.keyboard.press("Enter")
        side, said = page.locator("arp-side-panel"), page.locator("arp-message").last
        expect(side.locator("tbody tr")).to_have_count(2)
        expect(said).to_contain_text(size_of(page, "activated"))

        side.get_by_role("radio", name="Ada").click()
        expect(said).to_contain_text("focus True.")
        page.locator("arp-composer textarea").click()
        expect(said).to_contain_text("focus False.")

        page.set_viewport_size({"width": 1200, "height": 700})
        expect(said).to_contain_text(size_of(page, "activated"))
        side.get_by_role("button", name="Close: Side").click()
        expect(said).to_contain_text("closed by user.")
        context.close()


def size_of(page: Page, states: str) -> str:
    """Return what the agent is to say of the size that the surface has now."""
    shown = box(page, "arp-side-panel [data-surface=side]")
    return f"size {round(shown['width'])} x {round(shown['height'])}, {states}."
