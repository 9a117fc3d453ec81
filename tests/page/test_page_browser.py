"""The page before a real server, in a real browser (protocol.md 2; Basic by protocol.md 7)."""

from __future__ import annotations

import pytest
from playwright.sync_api import FilePayload, Locator, Page, WebSocketRoute

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]


def say(page: Page, text: str) -> None:
    page.get_by_label("Message", exact=True).fill(text)
    page.keyboard.press("Enter")


def shown(page: Page, text: str) -> Locator:
    return page.locator("#log").get_by_text(text)


def conversation(page: Page) -> str:
    return str(page.locator("#log").inner_text())


def test_a_suggestion_is_sent_by_a_click_and_the_answer_is_drawn_as_markdown(page: Page) -> None:
    page.get_by_role("button", name="Say hello").click()
    page.locator(".answer strong", has_text="Say hello").wait_for()
    assert page.locator(".bubble").all_inner_texts() == ["You said\n\nSay hello"]
    assert page.title() == "Echo"


def test_agent_text_runs_no_script_and_fetches_nothing(page: Page) -> None:
    say(page, "hostile")
    shown(page, "Image: pixel").wait_for()
    links = page.locator(".answer a").evaluate_all("links => links.map(link => link.href)")
    assert links == ["https://example.org/pixel.png", "https://evil.example/login"]
    assert page.locator(".answer :is(img, script)").count() == 0
    assert page.get_by_role("link", name="bank.example (evil.example)").get_attribute("rel") == (
        "noopener noreferrer nofollow"
    )
    assert page.title() == "Echo"


def test_a_reload_shows_the_same_session_again(page: Page) -> None:
    say(page, "one")
    shown(page, "You said: one").wait_for()
    say(page, "table")
    page.get_by_role("cell", name="Oslo").wait_for()
    before = conversation(page)
    page.reload()
    page.get_by_role("cell", name="Oslo").wait_for()
    assert conversation(page) == before
    assert "session=" in page.url


def test_a_new_chat_starts_empty(page: Page) -> None:
    say(page, "one")
    shown(page, "You said: one").wait_for()
    page.get_by_role("link", name="New chat").click()
    page.get_by_role("button", name="Say hello").wait_for()
    assert conversation(page) == ""


def test_a_confirm_is_answered_once_and_shows_the_answer(page: Page) -> None:
    say(page, "confirm")
    page.get_by_role("button", name="Do it").click()
    shown(page, "It is done.").wait_for()
    assert page.get_by_role("button", name="Do it chosen").is_disabled()
    assert page.get_by_role("button", name="Leave it").is_disabled()
    assert page.locator(".tool .name").all_inner_texts() == ["look"]
    assert page.locator(".tool .state").all_inner_texts() == ["done"]


def test_an_answer_given_in_one_tab_closes_the_question_in_the_other(page: Page) -> None:
    say(page, "confirm")
    page.get_by_role("button", name="Do it").wait_for()
    other = page.context.new_page()
    other.goto(page.url)
    other.get_by_role("button", name="Leave it").click()
    shown(page, "It was left.").wait_for()
    assert page.get_by_role("button", name="Do it").is_disabled()
    assert conversation(page) == conversation(other)


def test_a_choice_that_nobody_waits_for_begins_a_turn(page: Page) -> None:
    say(page, "choices")
    page.get_by_role("button", name="Wind").click()
    shown(page, "You took Wind.").wait_for()
    assert page.locator(".bubble.choice .plain").all_inner_texts() == ["Wind"]


def test_a_form_checks_itself_then_shows_what_the_server_refused(page: Page) -> None:
    say(page, "form")
    page.get_by_role("button", name="Register").click()
    assert page.evaluate("document.activeElement.name") == "name"
    form = page.locator("form.question")
    form.get_by_label("Name").fill("Ada")
    form.get_by_label("Code").fill("abc")
    form.get_by_label("Code").evaluate("box => box.removeAttribute('minlength')")
    form.get_by_label("Age").fill("36")
    form.get_by_label("Size").select_option(label="large")
    form.get_by_label("News").check()
    page.get_by_role("button", name="Register").click()
    form.get_by_text("needs at least 4 characters, has 3", exact=True).wait_for()
    assert page.evaluate("document.activeElement.name") == "code"
    form.get_by_label("Code").fill("abcd")
    page.get_by_role("button", name="Register").click()
    shown(page, "Ada, 36, large, True").wait_for()
    assert form.locator("dl").inner_text().split() == (
        ["Name", "Ada", "Code", "abcd", "Age", "36", "Size", "large", "News", "Yes"]
    )
    assert form.get_by_role("button").count() == 0


def test_a_table_sorts_by_numbers_and_filters(page: Page) -> None:
    say(page, "table")
    first = page.locator("tbody tr td:first-child")
    page.get_by_role("button", name="People").click()
    assert first.all_inner_texts() == ["Bergen", "Zürich", "Oslo"]
    page.get_by_role("button", name="People").click()
    assert first.all_inner_texts() == ["Oslo", "Zürich", "Bergen"]
    page.get_by_label("Filter rows").fill("ZÜR")
    assert first.all_inner_texts() == ["Zürich"]
    assert shown(page, "1 of 3 rows").count() == 1


def test_stop_ends_the_turn_and_the_next_message_works(page: Page) -> None:
    say(page, "count")
    page.get_by_role("button", name="Stop answering").click()
    page.locator(".ending", has_text="Stopped").wait_for()
    say(page, "after")
    shown(page, "You said: after").wait_for()


def test_what_is_said_while_the_agent_answers_is_queued(page: Page) -> None:
    say(page, "count")
    say(page, "later")
    shown(page, "Queued, next in line").wait_for()
    page.get_by_role("button", name="Stop answering").click()
    shown(page, "You said: later").wait_for()
    assert shown(page, "Queued").count() == 0


def test_a_lost_connection_loses_and_doubles_nothing(page: Page) -> None:
    sockets: list[WebSocketRoute] = []
    dark = False

    def through(socket: WebSocketRoute) -> None:
        if dark:
            socket.close(code=1012)
        else:
            sockets.append(socket)
            socket.connect_to_server()

    page.route_web_socket("**/_arp/v1", through)
    page.reload()
    page.get_by_text("Connected").wait_for()
    say(page, "count")
    page.locator(".answer p", has_text="20").first.wait_for()
    dark = True
    sockets[-1].close(code=1012)
    page.locator("#banner", has_text="Connection lost").wait_for()
    say(page, "kept")
    dark = False
    shown(page, "You said: kept").wait_for(timeout=20_000)
    counted = page.locator(".answer").first.locator(".output p").all_inner_texts()
    assert counted == [str(number) for number in range(1, 301)]
    assert page.locator(".bubble .plain").all_inner_texts() == ["count", "kept"]
    assert len(sockets) >= 2


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
    assert page.locator(".bubble .plain").all_inner_texts() == ["written in the dark"]


def test_enter_does_not_send_while_a_word_is_being_composed(page: Page) -> None:
    box = page.get_by_label("Message", exact=True)
    box.fill("にほ")
    box.dispatch_event("keydown", {"key": "Enter", "isComposing": True})
    box.dispatch_event("keydown", {"key": "Enter", "keyCode": 229})
    assert box.input_value() == "にほ"
    box.press("Shift+Enter")
    assert box.input_value() == "にほ\n"


def test_reading_further_up_is_not_disturbed(page: Page) -> None:
    say(page, "count")
    page.locator(".answer p", has_text="60").first.wait_for()
    page.mouse.move(500, 300)
    page.mouse.wheel(0, -400)
    page.get_by_role("button", name="Jump to latest").wait_for()
    top = page.evaluate("document.getElementById('scroller').scrollTop")
    page.locator(".answer p", has_text="120").first.wait_for(state="attached")
    assert page.evaluate("document.getElementById('scroller').scrollTop") == top
    page.get_by_role("button", name="Jump to latest").click()
    gap = "box => box.scrollHeight - box.scrollTop - box.clientHeight"
    assert page.locator("#scroller").evaluate(gap) <= 2


def test_files_go_along_with_a_message(page: Page) -> None:
    note: FilePayload = {"name": "a.txt", "mimeType": "text/plain", "buffer": b"12345"}
    page.locator("input[type=file]").set_input_files(note)
    say(page, "look at this")
    shown(page, "Got a.txt: 5 bytes").wait_for()
    assert page.locator(".bubble .files").all_inner_texts() == ["a.txt\n5 B"]


def test_a_failing_agent_shows_an_error_without_internals(page: Page) -> None:
    say(page, "fail")
    shown(page, "Something went wrong").wait_for()
    assert "secret" not in conversation(page)
    page.get_by_role("button", name="Try again").wait_for()


def test_a_whole_answer_is_announced_once(page: Page) -> None:
    say(page, "one")
    page.locator("#spoken p", has_text="You said: one").wait_for(state="attached")
    page.get_by_role("status").filter(has_text="Answer complete").wait_for(state="attached")
    assert page.get_by_role("log", name="Messages").get_attribute("aria-live") == "off"


def test_a_narrow_screen_does_not_scroll_sideways(page: Page) -> None:
    page.set_viewport_size({"width": 320, "height": 640})
    say(page, "table")
    page.get_by_role("cell", name="Oslo").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") == 320
    assert page.evaluate("document.getElementById('scroller').scrollWidth") <= 320
