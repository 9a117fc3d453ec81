"""The page before a real server, in a real browser (protocol.md 2; Basic by protocol.md 7)."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import FilePayload, Locator, Page, Route, WebSocketRoute, expect

from tests.page.conftest import becomes

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]

# Resolves when a box has stood still for some frames: a wheel may turn on for a while.
STILL = """box => new Promise((resolve) => {
  const look = (top, frames) => frames > 9 ? resolve() : requestAnimationFrame(
    () => look(box.scrollTop, box.scrollTop === top ? frames + 1 : 0));
  look(box.scrollTop, 0);
})"""


def say(page: Page, text: str) -> None:
    page.locator("arp-composer textarea").fill(text)
    page.keyboard.press("Enter")


def shown(page: Page, text: str) -> Locator:
    return page.locator(".arp-log").get_by_text(text)


def conversation(page: Page) -> str:
    return str(page.locator(".arp-log").inner_text())


def test_a_suggestion_is_sent_by_a_click_and_the_answer_is_drawn_as_markdown(page: Page) -> None:
    page.get_by_role("button", name="Say hello").click()
    page.locator(".arp-reply strong", has_text="Say hello").wait_for()
    expect(page.locator(".arp-bubble")).to_have_text(["Say hello"])
    expect(page).to_have_title("Echo")


def test_agent_text_runs_no_script_and_fetches_nothing(page: Page) -> None:
    say(page, "hostile")
    shown(page, "Image from example.org is blocked.").wait_for()
    links = page.locator(".arp-reply a")
    becomes(
        lambda: links.evaluate_all("links => links.map(link => link.href)"),
        ["https://evil.example/login"],
    )
    assert page.locator(".arp-reply :is(img, script)").count() == 0
    expect(page.get_by_role("link", name="bank.example (evil.example)")).to_have_attribute(
        "rel", "noopener noreferrer nofollow"
    )
    expect(page).to_have_title("Echo")


def test_a_reload_shows_the_same_session_again(page: Page) -> None:
    say(page, "one")
    shown(page, "You said: one").wait_for()
    say(page, "table")
    page.get_by_role("cell", name="Oslo").wait_for()
    expect(page.get_by_role("button", name="Stop", exact=True)).to_have_count(0)
    before = conversation(page)
    page.reload()
    page.get_by_role("cell", name="Oslo").wait_for()
    becomes(lambda: conversation(page), before)
    expect(page).to_have_url(re.compile("session="))


def test_a_new_chat_starts_empty(page: Page) -> None:
    say(page, "one")
    shown(page, "You said: one").wait_for()
    page.get_by_role("link", name="New chat").click()
    page.get_by_role("button", name="Say hello", exact=True).wait_for()
    becomes(lambda: conversation(page), "")


def test_a_confirm_is_answered_once_and_shows_the_answer(page: Page) -> None:
    say(page, "confirm")
    page.get_by_role("button", name="Do it").click()
    shown(page, "It is done.").wait_for()
    expect(page.get_by_role("button", name="Answered: Do it")).to_be_disabled()
    expect(page.get_by_role("button", name="Leave it")).to_be_disabled()
    expect(page.locator(".arp-step summary code")).to_have_text(["look"])
    expect(page.locator(".arp-step-state")).to_have_text(["Done"])


def test_an_answer_given_in_one_tab_closes_the_question_in_the_other(page: Page) -> None:
    say(page, "confirm")
    page.get_by_role("button", name="Do it").wait_for()
    other = page.context.new_page()
    other.goto(page.url)
    other.get_by_role("button", name="Leave it").click()
    shown(page, "It was left.").wait_for()
    expect(page.get_by_role("button", name="Do it")).to_be_disabled()
    becomes(lambda: conversation(page) == conversation(other), wanted=True)


def test_a_choice_that_nobody_waits_for_begins_a_turn(page: Page) -> None:
    say(page, "choices")
    page.get_by_role("button", name="Wind").click()
    shown(page, "You took Wind.").wait_for()
    expect(page.locator(".arp-chosen")).to_have_text(["Wind"])


def test_a_form_checks_itself_and_shows_what_was_answered(page: Page) -> None:
    say(page, "form")
    page.get_by_role("button", name="Register").click()
    becomes(lambda: page.evaluate("document.activeElement.name"), "name")
    form = page.locator("section[data-kind=form]")
    form.get_by_label("Name").fill("Ada")
    form.get_by_label("Code").fill("abc")
    form.get_by_label("Age").fill("36")
    form.get_by_label("Size").select_option(label="large")
    form.get_by_label("News").check()
    page.get_by_role("button", name="Register").click()
    form.get_by_text("At least 4 characters.", exact=True).wait_for()
    becomes(lambda: page.evaluate("document.activeElement.name"), "code")
    form.get_by_label("Code").fill("abcd")
    page.get_by_role("button", name="Register").click()
    shown(page, "Ada, 36, large, True").wait_for()
    expect(form.locator("dt, dd")).to_have_text(
        ["Name", "Ada", "Code", "abcd", "Age", "36", "Size", "large", "News", "Yes"]
    )
    expect(form.get_by_role("button")).to_have_count(0)


def test_a_table_sorts_by_numbers_and_filters(page: Page) -> None:
    say(page, "table")
    first = page.locator("tbody tr td:first-child")
    page.get_by_role("button", name="People").click()
    expect(first).to_have_text(["Bergen", "Zürich", "Oslo"])
    page.get_by_role("button", name="People").click()
    expect(first).to_have_text(["Oslo", "Zürich", "Bergen"])
    page.get_by_label("Filter").fill("ZÜR")
    expect(first).to_have_text(["Zürich"])
    expect(shown(page, "1 row of 3 matches")).to_have_count(1)


def test_stop_ends_the_turn_and_the_next_message_works(page: Page) -> None:
    say(page, "count")
    page.get_by_role("button", name="Stop", exact=True).click()
    page.locator(".arp-ending", has_text="Stopped").wait_for()
    say(page, "after")
    shown(page, "You said: after").wait_for()


def test_what_is_said_while_the_agent_answers_is_queued(page: Page) -> None:
    say(page, "count")
    say(page, "later")
    page.locator(".arp-said .arp-caption", has_text="Queued").wait_for()
    page.get_by_role("button", name="Stop", exact=True).click()
    shown(page, "You said: later").wait_for()
    expect(page.locator(".arp-said .arp-caption", has_text="Queued")).to_have_count(0)


def test_a_lost_connection_loses_and_doubles_nothing(page: Page) -> None:
    sockets: list[WebSocketRoute] = []
    held: list[Route] = []
    streams: list[str] = []
    dark = False

    def through(socket: WebSocketRoute) -> None:
        if dark:
            socket.close(code=1012)
        else:
            sockets.append(socket)
            socket.connect_to_server()

    page.route_web_socket("**/_arp/v1", through)
    page.route("**/_arp/v1/events", lambda route: held.append(route))
    page.on("request", lambda request: streams.extend(re.findall(r"/_arp/v1/events$", request.url)))
    page.reload()
    page.get_by_text("Connected", exact=True).wait_for()
    say(page, "count")
    page.locator(".arp-reply p", has_text="20").first.wait_for()
    dark = True
    sockets[-1].close(code=1012)
    page.locator("arp-banner").get_by_text(re.compile("No connection|[Cc]onnecting")).wait_for()
    say(page, "kept")
    dark = False
    page.unroute("**/_arp/v1/events")
    for route in held:
        route.continue_()
    shown(page, "You said: kept").wait_for(timeout=20_000)
    counted = page.locator(".arp-reply").first.locator("arp-prose p")
    expect(counted).to_have_text([str(number) for number in range(1, 301)])
    expect(page.locator(".arp-bubble")).to_have_text(["count", "kept"])
    assert sockets[1:] or streams, "it has come back, by one way or the other"


def test_an_unsent_message_survives_a_reload(page: Page) -> None:
    dark = True

    def route(socket: WebSocketRoute) -> None:
        if not dark:
            socket.connect_to_server()

    page.route_web_socket("**/_arp/v1", route)
    page.reload()
    say(page, "written in the dark")
    shown(page, "Waiting for the connection").wait_for()
    dark = False
    page.reload()
    shown(page, "You said: written in the dark").wait_for()
    expect(page.locator(".arp-bubble")).to_have_text(["written in the dark"])


def test_enter_does_not_send_while_a_word_is_being_composed(page: Page) -> None:
    box = page.locator("arp-composer textarea")
    box.fill("にほ")
    box.dispatch_event("keydown", {"key": "Enter", "isComposing": True})
    box.dispatch_event("keydown", {"key": "Enter", "keyCode": 229})
    assert box.input_value() == "にほ"
    box.press("Shift+Enter")
    assert box.input_value() == "にほ\n"


def test_reading_further_up_is_not_disturbed(page: Page) -> None:
    say(page, "count")
    page.locator(".arp-reply p", has_text="60").first.wait_for()
    page.mouse.move(500, 300)
    page.mouse.wheel(0, -400)
    page.get_by_role("button", name="Jump to latest").wait_for()
    page.locator(".arp-scroller").evaluate(STILL)
    top = page.evaluate("document.querySelector('.arp-scroller').scrollTop")
    page.locator(".arp-reply p", has_text="120").first.wait_for(state="attached")
    assert page.evaluate("document.querySelector('.arp-scroller').scrollTop") == top
    page.get_by_role("button", name="Jump to latest").click()
    gap = "box => box.scrollHeight - box.scrollTop - box.clientHeight <= 2"
    becomes(lambda: page.locator(".arp-scroller").evaluate(gap), wanted=True)


def test_files_go_along_with_a_message(page: Page) -> None:
    note: FilePayload = {"name": "a.txt", "mimeType": "text/plain", "buffer": b"12345"}
    page.locator("input[type=file]").set_input_files(note)
    say(page, "look at this")
    shown(page, "Got a.txt: 5 bytes").wait_for()
    expect(page.locator(".arp-said .arp-file")).to_have_text(["a.txt 5 bytes"], use_inner_text=True)


def test_a_failing_agent_shows_an_error_without_internals(page: Page) -> None:
    say(page, "fail")
    shown(page, "the agent failed").wait_for()
    assert "secret" not in conversation(page)
    page.get_by_role("button", name="Try again").wait_for()


def test_a_whole_answer_is_announced_once(page: Page) -> None:
    say(page, "one")
    page.locator(".arp-spoken p", has_text="You said: one").wait_for(state="attached")
    page.get_by_role("status").filter(has_text="Answer complete").wait_for(state="attached")
    expect(page.get_by_role("log", name="Messages")).to_have_attribute("aria-live", "off")


def test_a_narrow_screen_does_not_scroll_sideways(page: Page) -> None:
    page.set_viewport_size({"width": 320, "height": 640})
    say(page, "table")
    page.get_by_role("cell", name="Oslo").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") == 320
    assert page.evaluate("document.querySelector('.arp-scroller').scrollWidth") <= 320
