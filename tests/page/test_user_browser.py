"""What users do beside the turns of a chat, on the page: settings, feedback; and who speaks."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from click.testing import CliRunner
from playwright.sync_api import Browser, Locator, Page, expect

from arp import App, Turn
from arp.cli import main
from tests.page.conftest import WAIT_S, becomes
from tests.page.test_question_browser import free_port, served
from tests.support.serving import serving

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]

APP = Path(__file__).parent / "adjustable.py"
SMALL, LARGE, SOFT = "0", "1", "0"
"""Values of a select are the places of its options."""


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 390, "height": 844}, locale="en-GB")
    context.set_default_timeout(WAIT_S * 1000)
    page = context.new_page()
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    yield page
    context.close()
    assert faults == []


@pytest.fixture
def heard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file with what the hook of the app got."""
    monkeypatch.setenv("RATED_FILE", str(tmp_path / "rated.txt"))
    return tmp_path / "rated.txt"


def say(page: Page, text: str) -> None:
    page.locator("arp-composer textarea").fill(text)
    page.keyboard.press("Enter")


def answer(page: Page) -> Locator:
    return page.locator("arp-message .arp-reply").last


def opened(page: Page) -> Locator:
    """Open the settings of the chat by the keyboard."""
    button = page.get_by_role("button", name="Chat settings")
    button.focus()
    page.keyboard.press("Enter")
    panel = page.get_by_role("dialog", name="Chat settings")
    expect(panel.get_by_label("Model")).to_be_focused()
    return panel


@pytest.mark.usefixtures("heard")
def test_settings_are_changed_by_keyboard_on_a_phone_agree_in_all_tabs_and_survive_a_kill(
    page: Page, tmp_path: Path
) -> None:
    port = free_port()
    with served(tmp_path / "ledger.db", port, APP) as url:
        page.goto(url)
        panel = opened(page)
        offered = panel.get_by_label("Model").locator("option")
        expect(offered).to_have_text(["small", "large"])
        box = panel.bounding_box()
        assert box is not None
        assert 0 <= box["x"] <= box["x"] + box["width"] <= 390
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Tab")
        page.keyboard.type("7")
        page.keyboard.press("Enter")
        expect(panel).to_have_count(0)
        expect(page.get_by_role("button", name="Chat settings")).to_be_focused()
        say(page, "go")
        expect(answer(page)).to_contain_text("large, 7, plain.")

        other = page.context.new_page()
        other.goto(page.url)
        followed = opened(other)
        expect(followed.get_by_label("Warmth")).to_have_value("7")
        say(page, "warmer")
        expect(followed.get_by_label("Warmth")).to_have_value("9")
        followed.get_by_label("Tone").fill("rude")
        panel = opened(page)
        panel.get_by_label("Model").select_option("small")
        expect(panel.get_by_label("Voice")).to_have_value(SOFT)
        panel.get_by_label("Voice").select_option("–")
        panel.get_by_role("button", name="Save").click()
        expect(followed.get_by_role("status")).to_have_text(
            "Changed elsewhere in the meantime. Saving replaces that."
        )
        expect(followed.get_by_label("Model")).to_have_value(LARGE)
        followed.get_by_role("button", name="Save").click()
        expect(followed.get_by_role("alert").first).to_contain_text("be kind")
        expect(followed.get_by_label("Tone")).to_have_value("rude")
        other.keyboard.press("Escape")
        expect(followed).to_have_count(0)
        other.close()
    with served(tmp_path / "ledger.db", port, APP):
        expect(page.get_by_text("Connected", exact=True)).to_have_count(1)
        page.reload()
        panel = opened(page)
        expect(panel.get_by_label("Model")).to_have_value(SMALL)
        expect(panel.get_by_label("Warmth")).to_have_value("9")
        expect(panel.get_by_label("Voice")).to_have_value("")
        page.keyboard.press("Escape")
        say(page, "go")
        expect(answer(page)).to_contain_text("small, 9, plain.")


def test_thumbs_and_comment_reach_ledger_hook_and_export_and_change_on_any_screen_after_a_reload(
    page: Page, tmp_path: Path, heard: Path
) -> None:
    ledger = tmp_path / "ledger.db"
    with served(ledger, free_port(), APP) as url:
        page.goto(url)
        say(page, "go")
        page.get_by_role("button", name="Bad answer").click()
        page.get_by_role("textbox", name="What was good or bad?").fill("Too short, really")
        page.keyboard.press("Enter")
        becomes(
            lambda: heard.read_text().splitlines() if heard.exists() else [],
            ["t1 down ", "t1 down Too short, really"],
        )
        expect(page.locator(".arp-comment")).to_have_count(0)
        page.reload()
        bad = page.get_by_role("button", name="Bad answer")
        expect(bad).to_have_attribute("aria-pressed", "true")
        expect(page.get_by_role("button", name="Good answer")).to_have_attribute(
            "aria-pressed", "false"
        )
        page.get_by_role("button", name="Edit the comment: Too short, really").click()
        box = page.get_by_role("textbox", name="What was good or bad?")
        expect(box).to_be_focused()
        expect(box).to_have_value("Too short, really")
        other = page.context.new_page()
        other.goto(page.url)
        page.keyboard.type(", and late")
        page.keyboard.press("Enter")
        changed = "Edit the comment: Too short, really, and late"
        expect(page.get_by_role("button", name=changed)).to_be_focused()
        other.evaluate("dispatchEvent(new Event('focus'))")  # a headless page never loses it
        other.get_by_role("button", name=changed).click()
        other.get_by_role("button", name="Remove the comment").click()
        expect(other.get_by_role("button", name="Add a comment")).to_be_visible()
        other.close()
        page.reload()
        page.get_by_role("button", name="Add a comment").click()
        box.fill("Too short")
        page.keyboard.press("Enter")
        expect(page.get_by_role("button", name="Edit the comment: Too short")).to_be_visible()
    with ThreadPoolExecutor(1) as threads:  # in this one Playwright's loop runs
        given = ["feedback", "--ledger", f"sqlite:{ledger}", "--csv"]
        made = threads.submit(CliRunner().invoke, main, given).result(WAIT_S)
    (row,) = csv.DictReader(io.StringIO(made.output))
    assert (row["turn"], row["rating"], row["comment"]) == ("t1", "down", "Too short")


@pytest.mark.usefixtures("heard")
def test_each_author_has_a_name_above_what_they_say_once(page: Page, tmp_path: Path) -> None:
    with served(tmp_path / "ledger.db", free_port(), APP) as url:
        page.goto(url)
        say(page, "hand over")
        becomes(
            lambda: [
                [line for line in said.split("\n") if line]
                for said in page.locator(".arp-reply:visible").all_inner_texts()
            ][1:],
            [["RD", "Research Desk", "It is 42. Sure."], ["É", "Écrivain", "I agree."]],
        )
        desk = page.get_by_role("article", name="Research Desk said")
        expect(desk.get_by_role("heading", name="Research Desk", exact=True)).to_be_visible()


def test_an_app_without_settings_may_have_a_command_of_that_name(page: Page) -> None:
    app = App("Plain")

    @app.command("settings")
    async def settings(turn: Turn) -> None:
        """Say that there are none."""
        await turn.say("There are none.")

    @app.agent
    async def agent(turn: Turn) -> None:
        await turn.say("Hm.")

    with serving(app) as server:
        page.goto(server.http)
        page.get_by_role("button", name="Chat settings").click()
        expect(answer(page)).to_contain_text("There are none.")
