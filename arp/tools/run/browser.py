"""`BrowserRuntime`: tools that are pages, driven by Playwright with the system's Chromium.

A call opens the `url` of its parameters, or else the tool's `entry`, in a new page of a new
profile, and carries out its `steps` in order. The result has the final URL and title of the page,
and the extracted texts and the screenshots by name:

    {"steps": [
        {"action": "open", "url": "https://…"},
        {"action": "fill", "selector": "#name", "text": "Ada"},
        {"action": "click", "selector": "#send"},
        {"action": "extract", "selector": ".price", "name": "prices"},
        {"action": "screenshot", "name": "page", "full_page": true}
    ]}
    → {"url": "…", "title": "…", "extracted": {"prices": ["…"]},
       "screenshots": {"page": {"content_type": "image/png", "base64": "…"}}}

Chromium can connect only to our own proxy, which checks addresses by the rules for `api` tools.
"""

from __future__ import annotations

import asyncio
import base64
import os
import shutil
from collections.abc import Sequence
from typing import Annotated, Any, Final, TypeAlias

import msgspec
from msgspec import Meta

from arp.protocol.json_value import Json, JsonObject
from arp.tools.errors import (
    InvalidToolCall,
    RuntimeMissing,
    ToolAgentError,
    ToolCallFailed,
    ToolRefused,
    extra_missing,
)
from arp.tools.registry.models import RuntimeInfo, ToolMeta
from arp.tools.run.addresses import AddressRules, check_url
from arp.tools.run.checked_proxy import REFUSED_BY, CheckedProxy
from arp.tools.run.runtime import OnChunk
from arp.tools.settings import LiveSettings

STEP_S: Final = 15.0
"""Time limit of a step, in seconds."""
START_S: Final = 30.0
MAX_STEPS: Final = 100
MAX_EXTRACTED: Final = 200
"""Maximum number of elements that one `extract` returns."""
MAX_TEXT: Final = 20_000
"""Maximum length of one extracted element, in characters."""
MAX_PICTURE: Final = 8 * 2**20
MAX_PICTURE_HEIGHT: Final = 16_000
VIEWPORT: Final = {"width": 1280, "height": 800}

PROGRAMS: Final = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)
_FLAGS: Final = (
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    # Only the proxy resolves names.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)

Selector: TypeAlias = Annotated[str, Meta(min_length=1, max_length=1_000)]
Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=100)]


class OpenPage(msgspec.Struct, frozen=True, tag_field="action", tag="open"):
    """Go to an address."""

    url: str


class ClickOn(msgspec.Struct, frozen=True, tag_field="action", tag="click"):
    """Click on the first element that matches a selector."""

    selector: Selector


class FillIn(msgspec.Struct, frozen=True, tag_field="action", tag="fill"):
    """Write a text into a field."""

    selector: Selector
    text: Annotated[str, Meta(max_length=100_000)]


class ExtractText(msgspec.Struct, frozen=True, tag_field="action", tag="extract"):
    """Extract the texts of all elements that match a selector."""

    selector: Selector
    name: Name
    attribute: str = ""
    """Attribute to extract instead of the text."""


class TakePicture(msgspec.Struct, frozen=True, tag_field="action", tag="screenshot"):
    """Take a screenshot of the page, as PNG."""

    name: Name = "page"
    full_page: bool = False


BrowserStep: TypeAlias = OpenPage | ClickOn | FillIn | ExtractText | TakePicture


class BrowserCall(msgspec.Struct, frozen=True):
    """Parameters of a call. All other parameters of the tool are ignored."""

    url: str = ""
    """Address to open first; empty means the tool's `entry`."""
    steps: Annotated[list[BrowserStep], Meta(max_length=MAX_STEPS)] = []


class BrowserRuntime:
    """Runtime for tools of type `browser`.

    These tools share one Chromium, which ends when the last of them sleeps or stops.

    Args:
        settings: Private addresses that pages may reach.
    """

    def __init__(self, settings: LiveSettings) -> None:
        self._settings = settings
        self._guard = asyncio.Lock()
        self._tools: set[str] = set()
        self._proxy: CheckedProxy | None = None
        self._driver: Any = None
        self._browser: Any = None

    async def check(self) -> None:
        """See `ToolRuntime.check`."""
        _program()
        _playwright()

    async def start(self, tool: ToolMeta) -> RuntimeInfo:
        """See `ToolRuntime.start`."""
        if tool.runtime.entry:
            check_url(tool.runtime.entry, self._rules())
        async with self._guard:
            if self._browser is None or not self._browser.is_connected():
                await self._close()
                try:
                    async with asyncio.timeout(START_S):
                        await self._launch()
                except BaseException as error:
                    await asyncio.shield(self._close())
                    if isinstance(error, ToolAgentError) or not isinstance(error, Exception):
                        raise
                    why = str(error)[:300] or f"it took longer than {START_S:g} s"
                    raise ToolCallFailed(f"Chromium did not start: {why}") from error
            self._tools.add(tool.tool_id)
        return tool.runtime

    async def call(self, tool: ToolMeta, params: JsonObject, on_chunk: OnChunk | None) -> Json:
        """See `ToolRuntime.call`."""
        try:
            call = msgspec.convert(params, BrowserCall)
        except msgspec.ValidationError as error:
            raise InvalidToolCall(f"params: {error}") from error
        first = call.url or tool.runtime.entry
        steps: Sequence[BrowserStep] = [*([OpenPage(first)] if first else []), *call.steps]
        browser, proxy = self._browser, self._proxy
        if browser is None or proxy is None or not browser.is_connected():
            raise ToolCallFailed(f"the browser of tool {tool.tool_id} does not run")
        proxy.rules = self._rules()
        context = await browser.new_context(viewport=VIEWPORT, accept_downloads=False)
        try:
            context.set_default_timeout(STEP_S * 1000)
            page = await context.new_page()
            return await _PageSteps(page, self._rules(), on_chunk).do(steps)
        finally:
            await asyncio.shield(_closed(context))

    async def healthy(self, tool: ToolMeta) -> None:
        """See `ToolRuntime.healthy`."""
        if self._browser is None or not self._browser.is_connected():
            raise ToolCallFailed(f"the browser of tool {tool.tool_id} does not run")

    async def sleep(self, tool: ToolMeta) -> RuntimeInfo:
        """See `ToolRuntime.sleep`: Chromium ends with the last tool that uses it."""
        async with self._guard:
            self._tools.discard(tool.tool_id)
            if not self._tools:
                await self._close()
        return tool.runtime

    async def stop(self, tool: ToolMeta) -> RuntimeInfo:
        """See `ToolRuntime.stop`."""
        return await self.sleep(tool)

    async def aclose(self) -> None:
        """See `ToolRuntime.aclose`."""
        async with self._guard:
            self._tools.clear()
            await self._close()
        self._guard = asyncio.Lock()

    def _rules(self) -> AddressRules:
        return AddressRules(self._settings.current.api_private_hosts)

    async def _launch(self) -> None:
        program, start = _program(), _playwright()
        self._proxy = CheckedProxy(self._rules())
        await self._proxy.start()
        self._driver = await start().start()
        self._browser = await self._driver.chromium.launch(
            executable_path=program,
            # Chromium cannot use its sandbox as root.
            chromium_sandbox=os.geteuid() != 0,
            # Without `<-loopback>`, Chromium would connect to addresses of this machine directly.
            proxy={"server": self._proxy.address, "bypass": "<-loopback>"},
            args=list(_FLAGS),
            handle_sigint=False,
            handle_sigterm=False,
            handle_sighup=False,
        )

    async def _close(self) -> None:
        browser, self._browser = self._browser, None
        driver, self._driver = self._driver, None
        proxy, self._proxy = self._proxy, None
        if browser is not None:
            await _closed(browser)
        if driver is not None:
            await driver.stop()
        if proxy is not None:
            await proxy.aclose()


class _PageSteps:
    """Steps on one page and their results."""

    def __init__(self, page: Any, rules: AddressRules, on_chunk: OnChunk | None) -> None:
        self._page = page
        self._rules = rules
        self._on_chunk = on_chunk
        self._extracted: JsonObject = {}
        self._pictures: JsonObject = {}

    async def do(self, steps: Sequence[BrowserStep]) -> JsonObject:
        """Carry out the steps and return the result.

        Raises:
            ToolCallFailed: A step failed; the message has its number.
            ToolRefused: An address is refused.
        """
        errors = _playwright_errors()
        for number, step in enumerate(steps, 1):
            if self._on_chunk is not None:
                await self._on_chunk(_words(step))
            try:
                await self._one(step)
            except errors as error:
                reason = str(error).partition("\n")[0][:300]
                raise ToolCallFailed(f"step {number} ({_words(step)}) failed: {reason}") from error
        return {
            "url": self._page.url,
            "title": (await self._page.title())[:MAX_TEXT],
            "extracted": self._extracted,
            "screenshots": self._pictures,
        }

    async def _one(self, step: BrowserStep) -> None:
        match step:
            case OpenPage(url):
                check_url(url, self._rules)
                answer = await self._page.goto(url, wait_until="domcontentloaded")
                if answer is not None and REFUSED_BY in answer.headers:
                    raise ToolRefused(f"{url:.200} is refused: it is no address of the Internet")
            case ClickOn(selector):
                await self._page.locator(selector).first.click()
            case FillIn(selector, text):
                await self._page.locator(selector).first.fill(text)
            case ExtractText():
                self._extracted[step.name] = await self._texts(step)
            case TakePicture():
                self._pictures[step.name] = await self._picture(step)

    async def _texts(self, step: ExtractText) -> list[str]:
        found = self._page.locator(step.selector)
        await found.first.wait_for(state="attached")
        texts = []
        for index in range(min(await found.count(), MAX_EXTRACTED)):
            one = found.nth(index)
            if step.attribute:
                text = await one.get_attribute(step.attribute) or ""
            else:
                text = await one.inner_text()
            texts.append(text[:MAX_TEXT])
        return texts

    async def _picture(self, step: TakePicture) -> JsonObject:
        height = await self._page.evaluate("document.documentElement.scrollHeight")
        if step.full_page and height > MAX_PICTURE_HEIGHT:
            raise ToolCallFailed(f"the page is {height} pixels high; take it without full_page")
        data = await self._page.screenshot(full_page=step.full_page, type="png")
        if len(data) > MAX_PICTURE:
            raise ToolCallFailed(f"the picture {step.name} has more than {MAX_PICTURE} bytes")
        return {"content_type": "image/png", "base64": base64.b64encode(data).decode()}


def _words(step: BrowserStep) -> str:
    match step:
        case OpenPage(url):
            return f"open {url:.200}"
        case ClickOn(selector) | FillIn(selector) | ExtractText(selector):
            return f"{step.__struct_config__.tag} {selector:.100}"
        case TakePicture(name):
            return f"screenshot {name}"


async def _closed(thing: Any) -> None:
    """Close a context or a browser that may have ended already."""
    ended: tuple[type[Exception], ...] = (*_playwright_errors(), TimeoutError)
    try:
        async with asyncio.timeout(STEP_S):
            await thing.close()
    except ended:
        return


def _program() -> str:
    """Return the path of Chromium.

    Raises:
        RuntimeMissing: Chromium is not installed.
    """
    found = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if found is None:
        raise RuntimeMissing("Chromium is not installed; Debian: apt-get install chromium")
    return found


def _playwright() -> Any:
    try:
        from playwright.async_api import async_playwright
    except ImportError as error:
        raise extra_missing("playwright") from error
    return async_playwright


def _playwright_errors() -> tuple[type[Exception], ...]:
    from playwright.async_api import Error

    return (Error,)
