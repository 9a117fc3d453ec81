"""The catalog in the inspector: tools by category with their schemas, and the runtimes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from arp.access.settings import Access
from tests.page.inspect.conftest import Desk
from tests.tools.serving_routes import tool_house

pytestmark = pytest.mark.browser

WAIT_S = 30.0


@pytest.fixture
def new_page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1200, "height": 800})
    context.set_default_timeout(WAIT_S * 1000)
    page = context.new_page()
    yield page
    context.close()


def test_catalog_shows_tools_schemas_and_runtimes(
    new_page: Page, tmp_path_factory: pytest.TempPathFactory
) -> None:
    access = Access(token="s3cret")
    with tool_house(tmp_path_factory.mktemp("data"), access) as served:
        new_page.goto(f"{served.url}/_inspect#token=s3cret")
        new_page.get_by_role("link", name="Catalog").click()
        catalog = new_page.locator("#catalog")
        expect(catalog.get_by_role("heading", level=3)).to_have_text(
            ["numbers", "other", "Runtimes"]
        )
        expect(catalog.locator("details")).to_have_count(5)
        catalog.locator("summary").first.click()
        expect(catalog.locator(".schema").first).to_contain_text('"required"')
        expect(catalog.locator("li").first).to_have_text("api can be used")
        # A link to it opens it, and a session takes its place.
        new_page.reload()
        expect(catalog.locator("details")).to_have_count(5)
        expect(new_page.locator("#welcome")).to_be_hidden()


def test_app_without_a_tool_agent_says_so(new_page: Page, desk: Desk) -> None:
    new_page.goto(f"{desk.url}#view=catalog")
    expect(new_page.locator("#catalog")).to_contain_text("This app has no Tool Agent.")
