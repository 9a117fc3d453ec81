"""Tools that are pages: a real Chromium, which reaches nothing but what it may."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from arp.tools.errors import InvalidToolCall, RuntimeMissing, ToolCallFailed, ToolRefused
from arp.tools.registry.models import (
    RuntimeInfo,
    RuntimeType,
    SchedulingMode,
    ToolMeta,
    ToolScheduling,
)
from arp.tools.run import browser as browser_module
from arp.tools.run.browser import BrowserRuntime
from arp.tools.service import ToolService
from tests.support.waiting import becomes
from tests.tools.http_server import Asked, HttpServer, answering, ok
from tests.tools.local_tools import active, settings_in

PAGE = """<!doctype html><title>Prices</title>
<input id=name><button id=send onclick="document.getElementById('out').textContent =
  'Hello ' + document.getElementById('name').value">send</button>
<p id=out></p><ul><li class=price data-id=1>5 €</li><li class=price data-id=2>7 €</li></ul>
"""


def answers(asked: Asked) -> bytes:
    if asked.target == "/post" and asked.method == "POST":
        return ok(asked.body, "text/plain")
    return ok(PAGE.encode(), "text/html; charset=utf-8")


@pytest.fixture
async def server() -> AsyncIterator[HttpServer]:
    async with answering(answers) as made:
        yield made


def page(entry: str) -> ToolMeta:
    return ToolMeta(
        "page",
        "Page",
        runtime=RuntimeInfo(RuntimeType.BROWSER, entry),
        scheduling=ToolScheduling(mode=SchedulingMode.COLD),
        stream_support=True,
    )


def chromiums() -> int:
    children = psutil.Process().children(recursive=True)
    return sum("chrom" in one.name() for one in children if one.is_running())


@pytest.mark.browser
async def test_a_page_is_opened_filled_clicked_read_and_pictured(
    tmp_path: Path, server: HttpServer
) -> None:
    settings = settings_in(tmp_path, api_private_hosts=[f"127.0.0.1:{server.port}"])
    pieces: list[str] = []

    async def take(piece: str) -> None:
        pieces.append(piece)

    async with ToolService(settings) as service:
        active(service, page(server.url))
        steps: list[dict[str, Any]] = [
            {"action": "fill", "selector": "#name", "text": "Ada"},
            {"action": "click", "selector": "#send"},
            {"action": "extract", "selector": "#out", "name": "greeting"},
            {"action": "extract", "selector": ".price", "name": "prices"},
            {"action": "extract", "selector": ".price", "name": "ids", "attribute": "data-id"},
            {"action": "screenshot", "name": "page", "full_page": True},
        ]
        outcome = await service.call("page", {"steps": steps}, take)
        result = outcome.result
        assert result["title"] == "Prices"
        assert result["url"] == f"{server.url}/"
        assert result["extracted"] == {
            "greeting": ["Hello Ada"],
            "prices": ["5 €", "7 €"],
            "ids": ["1", "2"],
        }
        picture = result["screenshots"]["page"]
        assert picture["content_type"] == "image/png"
        assert base64.b64decode(picture["base64"]).startswith(b"\x89PNG")
        assert pieces[:2] == [f"open {server.url}", "fill #name"]
        assert chromiums() > 0

        with pytest.raises(ToolCallFailed, match=r"step 2 \(click #no\) failed: .*Timeout"):
            await _quick(service, [{"action": "click", "selector": "#no"}])
        for wrong in ([{"action": "eval", "code": "1"}], [{"action": "click"}], "x"):
            with pytest.raises(InvalidToolCall):
                await service.call("page", {"steps": wrong})
        await service.scheduler.sleep_tool("page")
        await becomes(lambda: chromiums() == 0)


async def _quick(service: ToolService, steps: list[dict[str, Any]]) -> None:
    """Call with a step that is not waited for long; opening the page has to fit in it too."""
    before = browser_module.STEP_S
    browser_module.STEP_S = 2.0  # type: ignore[misc] # final, but for this test
    try:
        await service.call("page", {"steps": steps})
    finally:
        browser_module.STEP_S = before  # type: ignore[misc] # as above


@pytest.mark.browser
async def test_a_page_reaches_no_private_address_until_an_operator_allows_it(
    tmp_path: Path, server: HttpServer
) -> None:
    """Neither by its own address, nor by a redirect, an image, a frame or a script."""
    inner = server.url
    evil = f"""<!doctype html><title>evil</title><img src="{inner}/image">
    <iframe src="{inner}/frame"></iframe><link rel=prefetch href="{inner}/prefetch">
    <script>
      window.done = Promise.allSettled([
        fetch("{inner}/fetch", {{mode: "no-cors"}}),
        fetch("http://localhost:{server.port}/name", {{mode: "no-cors"}}),
        fetch("http://[::1]:{server.port}/six", {{mode: "no-cors"}}),
        fetch("http://0x7f.1:{server.port}/hex", {{mode: "no-cors"}}),
      ]).then(() => {{ document.title = "tried"; document.body.id = "tried" }});
      try {{ new WebSocket("ws://127.0.0.1:{server.port}/socket") }} catch {{}}
    </script>"""

    def lure(asked: Asked) -> bytes:
        if asked.target == "/redirect":
            head = f"HTTP/1.1 302 X\r\nlocation: {inner}/redirected\r\ncontent-length: 0\r\n\r\n"
            return head.encode()
        return ok(evil.encode(), "text/html")

    async with answering(lure) as outer:
        settings = settings_in(tmp_path, api_private_hosts=[f"127.0.0.1:{outer.port}"])
        runtime = BrowserRuntime(settings)
        tool = page(outer.url)
        try:
            await runtime.start(tool)
            steps = [{"action": "extract", "selector": "#tried", "name": "x"}]
            result = await runtime.call(tool, {"steps": steps}, None)
            assert result["title"] == "tried"
            for url in (inner, "file:///etc/passwd", "chrome://version", "javascript:alert(1)"):
                with pytest.raises(ToolRefused):
                    await runtime.call(tool, {"url": url}, None)
            with pytest.raises((ToolRefused, ToolCallFailed)):
                await runtime.call(tool, {"url": f"{outer.url}/redirect"}, None)
            assert server.asked == []
            # All these ways lead there once they may, or what is above could not fail.
            settings.data_dir.mkdir(exist_ok=True)
            allowed = json.dumps({"api_private_hosts": ["127.0.0.1"]})
            (settings.data_dir / "config.json").write_text(allowed)
            await runtime.call(tool, {"steps": steps}, None)
            await runtime.call(tool, {"url": f"{outer.url}/redirect"}, None)
        finally:
            await runtime.aclose()
    reached = {asked.target for asked in server.asked}
    assert reached >= {"/image", "/frame", "/fetch", "/redirected"}
    await becomes(lambda: chromiums() == 0)


async def test_a_tool_with_a_private_page_does_not_start(tmp_path: Path) -> None:
    runtime = BrowserRuntime(settings_in(tmp_path))
    with pytest.raises(ToolRefused):
        await runtime.start(page("http://127.0.0.1/"))


async def test_without_chromium_only_this_runtime_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(browser_module, "PROGRAMS", ("no-such-chromium",))
    service = ToolService(settings_in(tmp_path))
    with pytest.raises(RuntimeMissing, match="apt-get install chromium"):
        await service.runtimes.of(page("https://example.com")).check()
    reports = {report.type: report.available for report in await service.runtimes.reports()}
    assert reports["browser"] is False
    assert reports["local"] is True
    assert reports["api"] is True
    await service.aclose()
