"""Who the reader is, and what other sites can do to the server: in a real browser."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from arp import Access, App, Turn
from arp.access.guard import Denial
from arp.transport.websocket import Scope
from tests.page.conftest import WAIT_S
from tests.support.serving import Serving, serving

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]

USERS = {"ada": "ada", "bob": "bob"}

TRAPS = (
    "[one](/?session=trap#%74oken=bob) [two](?session=trap#token=bob) [three]({page}#token=bob) "
    "[four]({other}/#token=bob) [away](https://example.org/#token=bob)"
)

app = App(
    "Two users",
    access=Access(authenticate=lambda connection: USERS.get(connection.token)),
)


@app.agent
async def agent(turn: Turn) -> None:
    """Says what lies in wait, and a file of the session."""
    ref = await turn.save_file("notes.txt", b"notes")
    page, _, other = turn.text.partition(" ")
    await turn.say(TRAPS.format(page=page, other=other) + f" [file]({turn.file_url(ref)})")


bare = App("Open")


@bare.agent
async def echo(turn: Turn) -> None:
    """Says it again."""
    await turn.say(turn.text)


@pytest.fixture(scope="module")
def browser(requires: Callable[[str], str]) -> Iterator[Browser]:
    """As the page's own, with a name that a stranger's page has."""
    flags = ["--host-resolver-rules=MAP stranger.test 127.0.0.1"]
    with sync_playwright() as runner:
        browser = runner.chromium.launch(executable_path=requires("browser"), args=flags)
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
    with serving(app) as running:
        yield running


def owners(server: Serving, token: str) -> int:
    """Return how many chats a user has."""
    headers = {"authorization": f"Bearer {token}"}
    chats: list[object] = httpx.get(f"{server.http}/_api/chats", headers=headers).json()
    return len(chats)


def open_as(page: Page, url: str) -> None:
    page.goto(url)
    page.get_by_text("Connected", exact=True).wait_for()


def say(page: Page, text: str) -> None:
    page.locator("arp-composer textarea").fill(text)
    page.keyboard.press("Enter")


def test_links_of_an_agent_lead_to_its_server_for_files_alone(page: Page, server: Serving) -> None:
    open_as(page, f"{server.http}/#token=ada")
    say(page, f"{server.http}/ http://localhost:{server.port}")
    page.get_by_role("link", name="file").wait_for()
    links = page.locator(".arp-reply a")
    expect(links).to_have_count(2)
    expect(links.nth(0)).to_have_attribute("href", "https://example.org/#token=bob")
    assert "/_api/blobs/s" in (links.nth(1).get_attribute("href") or "")
    expect(page.locator(".arp-reply")).to_contain_text("one two three four away")


def test_address_with_another_token_changes_nobody_without_asking(
    page: Page, server: Serving
) -> None:
    open_as(page, f"{server.http}/#token=ada")
    his = owners(server, "bob")
    page.goto("about:blank")
    open_as(page, f"{server.http}/?from=elsewhere#%74oken=bob")
    asked = page.get_by_role("dialog", name="Use another token?")
    asked.wait_for()
    expect(page).to_have_url(re.compile(r"\?(?!.*oken=)"))
    asked.get_by_role("button", name="Keep mine").click()
    expect(asked).to_have_count(0)
    say(page, "secret")
    page.get_by_role("link", name="file").wait_for()
    assert owners(server, "bob") == his
    page.reload()
    page.get_by_role("link", name="file").wait_for()
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_reader_may_take_the_other_token(page: Page, server: Serving) -> None:
    open_as(page, f"{server.http}/#token=ada")
    his = owners(server, "bob")
    page.goto("about:blank")
    open_as(page, f"{server.http}/#token=bob")
    page.get_by_role("button", name="Use this one").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.get_by_text("Connected", exact=True).wait_for()
    say(page, "hello")
    page.get_by_role("link", name="file").wait_for()
    assert owners(server, "bob") == his + 1


def test_the_same_token_again_is_no_question(page: Page, server: Serving) -> None:
    open_as(page, f"{server.http}/#token=ada")
    page.goto("about:blank")
    open_as(page, f"{server.http}/#token=ada")
    say(page, "hello")
    page.get_by_role("link", name="file").wait_for()
    expect(page.get_by_role("dialog")).to_have_count(0)


@contextmanager
def stranger() -> Iterator[str]:
    """A page of another site."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>Stranger</title>")

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as web:
        thread = threading.Thread(target=web.serve_forever)
        thread.start()
        try:
            yield f"http://stranger.test:{web.server_port}/"
        finally:
            web.shutdown()
            thread.join()


ATTACK = """async (events) => {
  const stop = new AbortController();
  const how = {mode: "no-cors", signal: stop.signal};
  const asked = fetch(events + "?session_id=fetched", how).catch(() => null);
  const picture = new Image();
  const loaded = new Promise((resolve) => (picture.onload = picture.onerror = resolve));
  picture.src = events + "?session_id=pictured";
  await Promise.all([asked, loaded]);
  stop.abort();
}"""


def test_page_of_another_site_makes_no_session_on_an_open_server(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A GET without CORS has no `Origin`; two such requests made two sessions."""
    with serving(bare) as server, stranger() as url:
        guard, answered = server.application.state.guard, dict[str, int | None]()
        check = guard.check_source

        def noted(scope: Scope) -> Denial | None:
            refused = check(scope)
            answered[scope["query_string"].decode()] = refused.status if refused else None
            return refused

        monkeypatch.setattr(guard, "check_source", noted)
        page.goto(url)
        page.evaluate(ATTACK, f"{server.http}/_arp/v1/events")
        assert answered == {"session_id=fetched": 403, "session_id=pictured": 403}
        assert httpx.get(f"{server.http}/_api/chats").json() == []
        # A link that somebody follows from there still opens the page.
        page.evaluate("url => location.assign(url)", f"{server.http}/?session=mine")
        page.get_by_text("This chat does not exist, or it is not yours.").wait_for()
        assert page.url == f"{server.http}/?session=mine"
