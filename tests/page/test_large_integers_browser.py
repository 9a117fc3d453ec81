"""Integers beyond 2^53 on the page: in cells, facts, choices and a sorted column."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.page.conftest import WAIT_S
from tests.page.test_question_browser import ask, free_port, served
from tests.server.large_integers import LARGE, LARGEST

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]

APP = Path(__file__).parent.parent / "server" / "large_integers.py"


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 1200}, locale="en-GB")
    context.set_default_timeout(WAIT_S * 1000)
    yield context.new_page()
    context.close()


def cells(table: Locator) -> Locator:
    return table.locator("tbody td, tbody th")


def test_page_shows_the_digits_that_the_agent_gave(page: Page, tmp_path: Path) -> None:
    port = free_port()
    with served(tmp_path / "ledger.db", port, APP) as url:
        page.goto(url)
        ask(page, "go")
        made, plain = page.locator("arp-table").nth(0), page.locator("arp-table").nth(1)
        expect(cells(made)).to_have_text([str(LARGE), str(-LARGEST - 1)])
        expect(cells(plain)).to_have_text([str(LARGE), str(LARGEST)])
        expect(page.locator("arp-key-value dd").first).to_contain_text(str(LARGEST))
        made.get_by_role("button", name="id").click()
        expect(cells(made)).to_have_text([str(-LARGEST - 1), str(LARGE)])
        page.get_by_role("button", name="old").click()
        form = page.locator("arp-form")
        form.get_by_label("Age").fill("9007199254740993")
        form.get_by_role("button", name="Submit").click()
        expect(form.locator(".arp-error").first).to_contain_text("At most 9,007,199,254,740,991")
        form.get_by_label("Age").fill("9007199254740991")
        form.get_by_role("button", name="Submit").click()
        expect(page.locator("arp-message").last).to_contain_text(
            f"It is {LARGE - 1} and 9007199254740991."
        )
        chosen = page.locator("arp-choices [data-taken]")
        expect(chosen).to_contain_text("old")
        page.reload()
        expect(cells(page.locator("arp-table").nth(1))).to_have_text([str(LARGE), str(LARGEST)])
        expect(chosen).to_contain_text("old")
