"""What the page's files may do, and its logic that needs no document, tested in Node.js."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, expect

from arp import Access, App
from arp.server.page import INSPECT_FILES
from tests.page.inspect.eventful import eventful
from tests.support.serving import Serving, serving

TESTS = Path(__file__).with_name("logic.test.mjs")


@pytest.fixture(scope="module")
def guarded() -> Iterator[Serving]:
    """A server that wants a token."""
    app = App(title="Guarded", access=Access(token="opensesame"))
    app.agent(eventful)
    with serving(app, ledger="memory:") as running:
        yield running


@pytest.mark.node
@pytest.mark.timeout(60)
def test_the_tests_in_node_pass(requires: Callable[[str], str]) -> None:
    run = subprocess.run(
        [requires("node"), "--test", "--test-reporter=tap", str(TESTS)],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-5000:] + run.stderr[-1000:]
    passed = re.search(r"^# pass (\d+)$", run.stdout, re.MULTILINE)
    assert passed is not None
    assert int(passed[1]) >= 12


@pytest.mark.parametrize(
    "path", ["/_inspect", "/_inspect/app.js", "/_inspect/facts.css", "/_inspect/icon.svg"]
)
async def test_file_is_served_to_anyone_and_carries_the_policy(guarded: Serving, path: str) -> None:
    async with httpx.AsyncClient(base_url=guarded.http) as client:
        response = await client.get(path)
    assert response.status_code == 200
    policy = response.headers["content-security-policy"]
    assert "script-src 'self';" in policy
    assert "require-trusted-types-for 'script'" in policy
    assert "unsafe" not in policy
    assert response.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("path", ["/_api/sessions", "/_inspect/", "/_inspect/%2e%2e/app.js"])
async def test_facts_and_what_is_no_file_are_not_served(guarded: Serving, path: str) -> None:
    async with httpx.AsyncClient(base_url=guarded.http) as client:
        response = await client.get(path)
    assert response.status_code in (401, 404)


def test_no_file_parses_html_runs_text_or_names_another_place() -> None:
    sinks = re.compile(
        r"\.(?:inner|outer)HTML|insertAdjacentHTML|document\.write|\beval\(|new Function|DOMParser"
        r"|createContextualFragment|srcdoc|setHTMLUnsafe|https?://"
    )
    scripts = list(INSPECT_FILES.glob("*.js"))
    assert len(scripts) > 10
    assert [path.name for path in scripts if sinks.search(path.read_text("utf-8"))] == []
    page = (INSPECT_FILES / "index.html").read_text("utf-8")
    assert re.findall(r"<script(?![^>]* src=)", page) == []
    assert re.findall(r"<style|\sstyle=|\son\w+=", page) == []
    assert re.findall(r"(?:src|href)=\"(?!_inspect/|#)[^\"]*", page) == []
    named = set(re.findall(r"_inspect/([\w.]+)", page))
    for path in scripts:
        named |= set(re.findall(r'from "\./([\w.]+)"', path.read_text("utf-8")))
    assert {path.name for path in INSPECT_FILES.iterdir()} - {"index.html"} == named


@pytest.mark.browser
@pytest.mark.timeout(60)
def test_the_page_asks_for_a_token_and_keeps_it_for_the_tab(
    browser: Browser, guarded: Serving
) -> None:
    page = browser.new_page()
    page.goto(f"{guarded.http}/_inspect")
    box = page.get_by_label("Token")
    box.fill("wrong")
    page.get_by_role("button", name="Open").click()
    page.get_by_text("Not signed in").wait_for()
    box.fill("opensesame")
    page.get_by_role("button", name="Open").click()
    page.get_by_text("Connected", exact=True).wait_for()
    page.reload()
    page.get_by_text("Connected", exact=True).wait_for()
    page.evaluate("sessionStorage.clear()")
    page.goto(f"{guarded.http}/_inspect?again#token=opensesame&session=s")
    page.get_by_text("Connected", exact=True).wait_for()
    expect(page).to_have_url(f"{guarded.http}/_inspect?again#session=s")
    page.close()
