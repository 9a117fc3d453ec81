"""What the page shows of a session in which secrets slipped: none of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect
from websockets.sync.client import connect

from tests.server.test_secrets import AGENT, Plants, leaked

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

WAIT_S = 20.0


@pytest.fixture
def plants() -> Plants:
    return Plants(seed=11)


@pytest.fixture
def port(plants: Plants, tmp_path: Path) -> Iterator[int]:
    """A server of the leaky agent, with the secrets in its environment."""
    environment = {**os.environ, **plants.environment, "LEAKS": json.dumps(plants.leaks)}
    command = [sys.executable, "-m", "arp.cli", "serve", str(AGENT), "--port", "0"]
    with subprocess.Popen(
        [*command, "--ledger", f"sqlite:{tmp_path / 'ledger.db'}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
    ) as child:
        assert child.stdout is not None
        line = child.stdout.readline()
        yield int(line.strip().rpartition(":")[2])
        child.terminate()


def talk(port: int, text: str, until: str) -> None:
    """Begins a turn and waits for a fact of a type."""
    with connect(f"ws://127.0.0.1:{port}/_api/rpc", compression=None) as socket:

        def ask(method: str, **params: Any) -> None:
            body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            socket.send(json.dumps(body))

        ask("agentSession/turn/start", sessionId="s", input={"text": text})
        started = json.loads(socket.recv(WAIT_S))["result"]["turnId"]
        ask("agentSession/subscribe", sessionId="s", after=0)
        while True:
            event = json.loads(socket.recv(WAIT_S)).get("params", {}).get("event", {})
            if event.get("type") == until and event["turnId"] == started:
                return


def everything(page: Page) -> str:
    """What every tab and the details of every fact show."""
    shown = [page.locator("body").inner_text()]
    page.get_by_label("Join text").uncheck()
    page.get_by_role("listbox", name="Facts").focus()
    page.keyboard.press("Home")
    count = int(page.locator(".fact").first.get_attribute("aria-setsize") or 0)
    assert count > 100
    for number in range(count):
        expect(page.locator("#detail .where")).to_contain_text(f"#{number + 1}")
        shown.append(str(page.locator("#detail").text_content()))
        page.keyboard.press("ArrowDown")
    for tab in page.get_by_role("tab").all():
        tab.click()
        shown.append(page.locator("body").inner_text())
        shown.append(page.content())
    return "\n".join(shown)


def test_no_planted_secret_is_on_the_page(browser: Browser, port: int, plants: Plants) -> None:
    talk(port, "fail", "turn.failed")
    talk(port, " and ".join(plants.leaks["typed"]), "action.required")
    page = browser.new_page(viewport={"width": 1400, "height": 800})
    page.goto(f"http://127.0.0.1:{port}/_inspect#session=s")
    page.locator(".fact .type", has_text="action.required").wait_for()
    shown = everything(page)
    page.close()
    assert "[redacted" in shown
    assert not leaked(plants, {"the page": shown.encode()})
