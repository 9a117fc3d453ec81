"""Signing in and out on the page, at a provider and behind another login, in a real browser."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from arp import Access, App, Turn
from arp.access.oidc import Oidc
from arp.live.settings import HubSettings
from tests.page.conftest import FLAGS, WAIT_S
from tests.server.identity_provider import CLIENT, SECRET, identity_provider
from tests.support.serving import Serving, serving

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]


def app_with(access: Access) -> App:
    made = App("Signed in", access=access, settings=HubSettings(stop_grace_s=0.1))

    @made.agent
    async def agent(turn: Turn) -> None:
        """Says who asks."""
        await turn.say(f"Hello {turn.user.display_name}.")

    return made


@pytest.fixture(scope="module")
def browser(requires: Callable[[str], str]) -> Iterator[Browser]:
    with sync_playwright() as runner:
        browser = runner.chromium.launch(executable_path=requires("browser"), args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context()
    context.set_default_timeout(WAIT_S * 1000)
    yield context.new_page()
    context.close()


@pytest.fixture(scope="module")
def server() -> Iterator[Serving]:
    with identity_provider() as provider:
        provider.signed_in = None
        oidc = Oidc(provider.issuer, CLIENT, SECRET, admin="groups=arp-admins")
        with serving(app_with(Access(oidc=oidc))) as running:
            yield running


def say(page: Page, text: str) -> None:
    page.locator("arp-composer textarea").fill(text)
    page.keyboard.press("Enter")


def test_reader_signs_in_at_the_provider_comes_back_to_the_chat_and_signs_out(
    page: Page, server: Serving
) -> None:
    page.goto(server.http)
    page.get_by_text("You are not signed in.").wait_for()
    page.get_by_role("link", name="Sign in").click()
    page.get_by_role("link", name="ann").click()
    page.get_by_text("Connected", exact=True).wait_for()
    expect(page).to_have_url(re.compile(r"/\?session="))
    say(page, "hi")
    page.get_by_text("Hello Ann L.").first.wait_for()
    page.get_by_role("button", name="Settings").click()
    page.get_by_role("menuitem", name="Sign out").click()
    page.get_by_text("You are not signed in.").wait_for()
    expect(page.get_by_text("Hello Ann L.")).to_have_count(0)


def test_admin_reads_the_session_of_another_in_the_inspector(
    page: Page, browser: Browser, server: Serving
) -> None:
    context = browser.new_context()
    context.set_default_timeout(WAIT_S * 1000)
    hers = context.new_page()
    hers.goto(server.http)
    hers.get_by_role("link", name="Sign in").click()
    hers.get_by_role("link", name="ann").click()
    hers.get_by_text("Connected", exact=True).wait_for()
    say(hers, "hi")
    hers.get_by_text("Hello Ann L.").first.wait_for()
    name = parse_qs(urlsplit(hers.url).query)["session"][0]
    context.close()
    page.goto(f"{server.http}/_inspect")
    page.get_by_role("link", name="Sign in").click()
    page.get_by_role("link", name="bob").click()
    page.get_by_text("Connected", exact=True).wait_for()
    expect(page).to_have_url(f"{server.http}/_inspect")
    page.get_by_text("No sessions yet.").wait_for()
    page.get_by_label("Sessions of all users").check()
    row = page.get_by_role("button", name=name)
    expect(row).to_contain_text("ann")
    row.click()
    page.get_by_text("bob looked at it").wait_for()


def test_page_behind_another_login_leads_there_and_says_what_the_author_wrote(
    page: Page,
) -> None:
    access = Access(
        authenticate=lambda connection: connection.cookies.get("who"),
        login_url="/_inspect?back={next}",
        logout_url="/_inspect?out",
        sign_in_text="Ask Ann for an account.",
    )
    with serving(app_with(access)) as server:
        page.goto(f"{server.http}/?session=s")
        page.get_by_text("Ask Ann for an account.").wait_for()
        link = page.get_by_role("link", name="Sign in")
        expect(link).to_have_attribute("href", "/_inspect?back=%2F%3Fsession%3Ds")
        page.context.add_cookies([{"name": "who", "value": "bob", "url": server.http}])
        page.reload()
        page.get_by_text("This chat does not exist, or it is not yours.").wait_for()
        page.get_by_role("button", name="Settings").click()
        page.get_by_role("menuitem", name="Sign out").click()
        expect(page).to_have_url(f"{server.http}/_inspect?out")
