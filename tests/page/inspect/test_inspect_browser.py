"""What is happening now, and why did it fail? The page `/_inspect` in a real browser."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, WebSocketRoute, expect

from arp.control.sessions import ReadEvents
from tests.page.inspect.conftest import Desk

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]


def show(page: Page, desk: Desk, session_id: str, more: str = "") -> None:
    page.goto(f"{desk.url}#session={session_id}{more}")
    page.locator("#session-id", has_text=session_id).wait_for()


def facts(page: Page) -> Locator:
    return page.get_by_role("listbox", name="Facts").get_by_role("option")


def types(page: Page) -> Locator:
    return page.locator(".fact .type")


def tab(page: Page, name: str) -> Locator:
    return page.get_by_role("tab", name=re.compile(f"^{name}"))


def column(page: Page, table: str, name: str) -> Locator:
    """The cells of a table's column."""
    region = page.get_by_role("region", name=table, exact=True)
    region.locator("th").get_by_text(name, exact=True).wait_for()
    place = region.locator("th").all_inner_texts().index(name) + 1
    return region.locator(f"tbody tr td:nth-child({place})")


# -- now, and why ----------------------------------------------------------------------------------


def test_a_failed_turn_says_why_and_leads_to_the_facts(page: Page, desk: Desk) -> None:
    desk.say("failed", "fail")
    page.get_by_label("Find a session").fill("failed")
    page.get_by_role("button", name=re.compile("fail")).click()
    expect(page.locator("#status")).to_have_text("Failed")
    expect(page.locator("#headline")).to_contain_text("no such table: sales")
    expect(page.locator("#reasons .text")).to_have_text(
        [
            "permission.evaluated · shell · by rule nothing-is-removed",
            "tool.failed · denied by the rule nothing-is-removed",
            "rate_limit.hit · requests per minute",
            "tool.failed · no such table: sales",
        ]
    )
    page.locator("#reasons li", has_text="no such table").get_by_role("button").click()
    detail = page.get_by_role("complementary", name="Fact")
    expect(detail.get_by_role("heading", level=2)).to_have_text("tool.failed")
    expect(detail.locator(".json")).to_contain_text('"error": "no such table: sales"')
    expect(page).to_have_url(re.compile("seq="))


def test_a_turn_that_waits_says_for_what(page: Page, desk: Desk) -> None:
    desk.begin("asking", "ask")
    show(page, desk, "asking")
    expect(page.locator("#status")).to_have_text("Waiting")
    expect(page.locator("#headline")).to_contain_text("Turn t1 waits for an answer")
    expect(page.locator("#reasons")).to_contain_text("Waits for an answer: Deploy to production?")
    expect(page.locator("#reasons")).to_contain_text("Calls deploy")
    tab(page, "Permissions").click()
    expect(column(page, "Waiting for an answer", "Asks")).to_have_text(["Deploy to production?"])
    expect(column(page, "Decisions", "By")).to_have_text(["by rule deploys-need-leave"])


def test_a_running_turn_is_followed_until_it_is_cancelled(page: Page, desk: Desk) -> None:
    desk.begin("running", "wait")
    show(page, desk, "running")
    expect(page.locator("#status")).to_have_text("Running")
    expect(page.locator("#headline")).to_contain_text("Turn t1 works with tools")
    expect(page.locator("#live")).to_be_visible()
    expect(types(page).get_by_text("tool.args")).to_be_visible()

    async def cancel(control: Any) -> None:
        await control.call("agentSession/turn/cancel", {"sessionId": "running"})

    desk.run(cancel)
    expect(page.locator("#status")).to_have_text("Cancelled")
    page.locator(".fact .type", has_text="turn.failed").wait_for()


# -- panels ----------------------------------------------------------------------------------------


def test_panels_tell_tools_tasks_cost_and_evidence(page: Page, desk: Desk) -> None:
    desk.say("worked", "work")
    desk.say("worked", "fail")
    show(page, desk, "worked")
    tab(page, "Turns").click()
    expect(column(page, "Turns of main", "Status")).to_have_text(["failed", "completed"])
    expect(column(page, "Turns of main", "Cost")).to_have_text(["", "0.004 USD"])
    tab(page, "Tools").click()
    expect(column(page, "Tool calls", "Status")).to_have_text(["failed", "failed", "completed"])
    expect(column(page, "Tool calls", "Result").first).to_have_text("no such table: sales")
    expect(column(page, "Processes", "Command")).to_have_text(["ls -l"])
    tab(page, "Tasks").click()
    expect(column(page, "Tasks", "Objective")).to_have_text(["Count the files"])
    expect(column(page, "Attempts", "Status")).to_have_text(["completed", "failed"])
    expect(column(page, "Attempts", "Reason")).to_have_text(["", "timeout"])
    tab(page, "Permissions").click()
    expect(column(page, "Decisions", "Decision")).to_have_text(["deny", "allow"])
    tab(page, "Routing and cost").click()
    expect(page.locator("#panel dd").first).to_have_text("example-large")
    expect(column(page, "By model", "Input tokens")).to_have_text(["812"])
    expect(column(page, "Limits that were met", "Again in")).to_have_text(["12 s"])
    tab(page, "Evidence").click()
    expect(column(page, "Exports", "State")).to_have_text(["exported"])
    expect(column(page, "Known gaps", "Gap")).to_have_text(["no trace"])
    tab(page, "Problems").click()
    expect(column(page, "What went wrong", "Type").first).to_have_text("turn.failed")
    page.get_by_role("region", name="What went wrong").get_by_role("button").nth(1).click()
    expect(tab(page, "Timeline")).to_have_attribute("aria-selected", "true")
    expect(page.get_by_role("complementary").get_by_role("heading", level=2)).to_have_text(
        "runtime.error"
    )


def test_tabs_go_by_arrow_keys_and_stand_in_the_address(page: Page, desk: Desk) -> None:
    desk.say("keys", "work")
    show(page, desk, "keys")
    tab(page, "Timeline").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(tab(page, "Turns")).to_be_focused()
    expect(tab(page, "Turns")).to_have_attribute("aria-selected", "true")
    expect(page).to_have_url(re.compile("#session=keys&view=turns$"))
    page.reload()
    expect(tab(page, "Turns")).to_have_attribute("aria-selected", "true")
    page.get_by_role("region", name="Turns of main").wait_for()


# -- the timeline ----------------------------------------------------------------------------------


def test_filters_narrow_by_type_turn_text_and_problems(page: Page, desk: Desk) -> None:
    desk.say("filtered", "work")
    desk.say("filtered", "fail")
    show(page, desk, "filtered")
    page.get_by_label("Types").fill("tool.failed, routing")
    expect(facts(page)).to_have_count(4)
    expect(types(page)).to_have_text(
        [*("routing.candidates.resolved", "routing.decided", "tool.failed", "tool.failed")]
    )
    page.get_by_role("button", name="Clear filters").click()
    page.get_by_role("group", name="Families").get_by_role("button", name="cost").click()
    expect(facts(page)).to_have_count(1)
    page.get_by_role("button", name="Clear filters").click()
    page.get_by_label("Text", exact=True).fill("NO SUCH TABLE")
    expect(facts(page)).to_have_count(2)
    expect(types(page)).to_have_text(["tool.failed", "runtime.error"])
    page.get_by_role("button", name="Clear filters").click()
    page.get_by_label("Turn", exact=True).select_option("t1")
    expect(page.locator(".fact .turn", has_text="t2")).to_have_count(0)
    expect(page.locator(".fact .type", has_text="turn.completed")).to_have_count(1)
    page.get_by_label("Turn", exact=True).select_option("")
    page.get_by_label("Problems only").check()
    expect(facts(page)).to_have_count(7)
    expect(types(page)).to_have_text(
        [
            *("task.attempt.failed", "permission.evaluated", "tool.failed", "rate_limit.hit"),
            *("tool.failed", "runtime.error", "turn.failed"),
        ]
    )
    page.get_by_label("Text", exact=True).fill("nowhere to be found")
    page.get_by_text("No fact fits the filters.").wait_for()


def test_the_keyboard_chooses_facts_and_narrows_to_a_tool_call(page: Page, desk: Desk) -> None:
    desk.say("chosen", "fail")
    show(page, desk, "chosen")
    types(page).get_by_text("turn.failed").wait_for()
    page.get_by_role("listbox", name="Facts").focus()
    page.keyboard.press("Home")
    detail = page.get_by_role("complementary", name="Fact")
    expect(detail.get_by_role("heading", level=2)).to_have_text("session.created")
    page.keyboard.press("ArrowDown")
    expect(detail.get_by_role("heading", level=2)).to_have_text("turn.submitted")
    expect(page.locator("[aria-selected=true].fact")).to_have_count(1)
    active = str(page.locator("[aria-selected=true].fact").get_attribute("id"))
    expect(page.get_by_role("listbox")).to_have_attribute("aria-activedescendant", active)
    page.locator(".fact .type", has_text="tool.failed").first.click()
    detail.get_by_role("button", name="t1.1").click()
    expect(facts(page)).to_have_count(4)
    expect(types(page)).to_have_text(
        ["tool.started", "tool.args", "permission.evaluated", "tool.failed"]
    )
    page.keyboard.press("Escape")
    expect(detail).to_be_hidden()
    expect(page.get_by_role("listbox", name="Facts")).to_be_focused()


def test_a_link_to_a_fact_opens_it_and_an_old_link_says_so(page: Page, desk: Desk) -> None:
    desk.say("linked", "say 600")
    show(page, desk, "linked", "&seq=321")
    detail = page.get_by_role("complementary", name="Fact")
    expect(detail.locator(".where")).to_contain_text("#321")
    expect(page.locator('.fact[data-seq="321"]')).to_be_in_viewport()
    page.goto(f"{desk.url}#session=linked&seq=99999")
    expect(page.locator("#said")).to_have_text("Fact 99999 is not there.")
    page.go_back()
    expect(detail.locator(".where")).to_contain_text("#321")


def test_a_long_session_costs_a_bounded_page_and_can_be_read_to_its_start(
    page: Page, desk: Desk
) -> None:
    """6,000 thoughts and words and more, of which the page holds a window."""
    desk.say("long", "say 3000")

    async def last(control: Any) -> int:
        read = await control.sessions.events(ReadEvents(session_id="long", types=("turn",)))
        return int(read.next)

    count = desk.run(last)
    assert count > 6000
    show(page, desk, "long")
    expect(page.locator("#found")).to_contain_text(f"{count:,}")
    page.locator(".fact .type", has_text="turn.completed").wait_for()
    assert page.locator(".fact").count() < 80
    page.get_by_role("listbox").focus()
    newest = page.get_by_role("button", name=re.compile("^Newest"))
    for _ in range(200):
        page.keyboard.press("Home")
        expect(page.locator("#found")).not_to_have_text("Reading…")
        if "session.created" in types(page).all_inner_texts():
            break
    assert "session.created" in types(page).all_inner_texts()
    assert page.locator(".fact").count() < 80
    assert page.evaluate("document.querySelectorAll('*').length") < 1500
    newest.click()
    page.locator(".fact .type", has_text="turn.completed").wait_for()
    page.get_by_label("Types").fill("turn")
    expect(facts(page)).to_have_count(3)
    expect(types(page)).to_have_text(["turn.submitted", "turn.started", "turn.completed"])


def test_text_of_a_turn_is_one_row_until_it_is_taken_apart(page: Page, desk: Desk) -> None:
    desk.say("joined", "mutter")
    show(page, desk, "joined")
    page.get_by_label("Types").fill("model.delta")
    expect(facts(page)).to_have_count(1)
    expect(page.locator(".fact .says")).to_have_text(["×5 one two three four five"])
    facts(page).click()
    detail = page.get_by_role("complementary", name="Fact")
    expect(detail.locator("pre.text")).to_have_text("one two three four five ")
    page.get_by_label("Join text").uncheck()
    expect(facts(page)).to_have_count(5)


# -- what must not happen --------------------------------------------------------------------------


def test_what_agents_say_runs_nothing_and_becomes_no_element(page: Page, desk: Desk) -> None:
    desk.say("hostile", "hostile")
    show(page, desk, "hostile")
    page.locator(".fact .says", has_text="<img src=x").wait_for()
    page.locator(".fact .type", has_text="tool.result").click()
    expect(page.get_by_role("complementary")).to_contain_text("<b onclick=alert(1)>bold</b>")
    tab(page, "Tools").click()
    expect(page.locator("#panel")).to_contain_text("<script>document.title='broken'</script>")
    assert page.locator("main img, main script, aside img, aside script, aside b b").count() == 0
    assert page.title() != "broken"


def test_a_lost_connection_loses_and_doubles_no_fact(page: Page, desk: Desk) -> None:
    sockets: list[WebSocketRoute] = []
    dark = False

    def through(socket: WebSocketRoute) -> None:
        if dark:
            socket.close(code=1012)
        else:
            sockets.append(socket)
            socket.connect_to_server()

    page.route_web_socket("**/_api/rpc", through)
    desk.say("lost", "work")
    page.reload()
    show(page, desk, "lost")
    page.locator(".fact .type", has_text="turn.completed").wait_for()
    dark = True
    sockets[-1].close(code=1012)
    page.get_by_text("Connection lost, trying again").wait_for()
    desk.say("lost", "fail")
    dark = False
    page.locator(".fact .type", has_text="turn.failed").wait_for(timeout=30_000)
    expect(page.locator("#status")).to_have_text("Failed")
    page.get_by_label("Join text").uncheck()
    page.get_by_role("listbox").focus()
    page.keyboard.press("Home")
    size = int(page.locator(".fact").first.get_attribute("aria-setsize") or 0)
    expect(page.locator("#found")).to_have_text(f"{size} facts")
    seen: set[int] = set()
    for _ in range(20):
        seen |= {int(text) for text in page.locator(".fact .seq").all_inner_texts()}
        page.keyboard.press("PageDown")
    assert seen == set(range(1, size + 1))


def test_a_session_that_is_not_there_says_so(page: Page, desk: Desk) -> None:
    show(page, desk, "nowhere")
    expect(page.get_by_role("alert")).to_contain_text("nowhere")


def test_dark_and_light_and_a_small_screen_show_all_there_is(page: Page, desk: Desk) -> None:
    desk.say("small", "fail")
    page.emulate_media(color_scheme="dark")
    show(page, desk, "small")
    ground = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(ground)
    page.emulate_media(color_scheme="light")
    assert page.evaluate(ground) != dark
    page.set_viewport_size({"width": 390, "height": 800})
    expect(page.locator(".fact .says", has_text="no such table").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.get_by_role("button", name="Sessions", exact=True).click()
    page.get_by_role("navigation", name="Sessions").get_by_label("Find a session").fill("small")
    page.keyboard.press("Enter")
    expect(page.get_by_role("navigation", name="Sessions")).to_be_hidden()
