"""`ApiRuntime`: tools that run on other servers and are called over HTTP.

`RuntimeInfo.entry` is the base address and `endpoint_path` is appended to it; `env` holds headers
for each call, such as `Authorization`. Addresses are checked at the socket (`addresses`). A failed
call is retried only if a second attempt can do no harm: if no connection was made, or if a `GET`,
`HEAD`, `PUT` or `DELETE` was answered with 429, 502, 503 or 504.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Final

import httpx

from arp.protocol.json_value import Json, JsonObject
from arp.tools.errors import InvalidToolMeta, ToolCallFailed, ToolRefused
from arp.tools.registry.models import RuntimeInfo, ToolMeta
from arp.tools.registry.registry import url_of
from arp.tools.run.addresses import AddressRules, check_url, checked_client
from arp.tools.run.http_call import HttpCall, HttpStatusFailed, call_http, check_answers
from arp.tools.run.runtime import OnChunk
from arp.tools.settings import LiveSettings

ATTEMPTS: Final = 3
FIRST_WAIT_S: Final = 0.25
"""Wait before the second attempt, in seconds; it doubles before each further attempt."""
MAX_WAIT_S: Final = 5.0
"""Longest accepted `Retry-After`, in seconds; after a longer one there is no further attempt."""
HEALTH_S: Final = 10.0
RETRIED: Final = frozenset((429, 502, 503, 504))
IDEMPOTENT: Final = frozenset(("GET", "HEAD", "PUT", "DELETE"))

_HEADER: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_NOT_SET: Final = frozenset(
    ("connection", "content-length", "host", "te", "trailer", "transfer-encoding", "upgrade")
)
"""Headers that describe the transfer of the message; they are set by the client only."""


class ApiRuntime:
    """Runtime for tools of type `api`.

    Args:
        settings: Private addresses that may be reached, and the time limit of a call.
        sleep: Waits between attempts.
    """

    def __init__(
        self, settings: LiveSettings, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        self._settings = settings
        self._sleep = sleep
        self._client: httpx.AsyncClient | None = None
        self._older: list[httpx.AsyncClient] = []
        self._made_for: tuple[list[str], float] | None = None

    async def check(self) -> None:
        """See `ToolRuntime.check`; there are no requirements."""

    async def start(self, tool: ToolMeta) -> RuntimeInfo:
        """See `ToolRuntime.start`: checks the address and the headers, and sends nothing."""
        check_url(url_of(tool), AddressRules(self._settings.current.api_private_hosts))
        _headers(tool)
        return tool.runtime

    async def call(self, tool: ToolMeta, params: JsonObject, on_chunk: OnChunk | None) -> Json:
        """See `ToolRuntime.call`. A stream is requested only if the tool supports it."""
        call = HttpCall(
            tool.runtime.http_method,
            url_of(tool),
            params,
            _headers(tool),
            f"tool {tool.tool_id}",
            may_stream=tool.stream_support,
        )
        wait = FIRST_WAIT_S
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return await call_http(self._http(), call, on_chunk)
            except ToolCallFailed as error:
                pause = _pause_before_next(call, error, wait)
                if attempt == ATTEMPTS or pause is None:
                    raise
            await self._sleep(pause)
            wait *= 2
        raise AssertionError("the last attempt returns or raises")

    async def healthy(self, tool: ToolMeta) -> None:
        """See `ToolRuntime.healthy`: any answer below 500 counts, and 501.

        Sends `HEAD`, not the method of the tool, because a call of the tool could have an effect.
        """
        call = HttpCall(
            "HEAD", url_of(tool).partition("{")[0], {}, _headers(tool), f"tool {tool.tool_id}"
        )
        await check_answers(self._http(), call, HEALTH_S)

    async def sleep(self, tool: ToolMeta) -> RuntimeInfo:
        """See `ToolRuntime.sleep`; there is nothing to free."""
        return tool.runtime

    async def stop(self, tool: ToolMeta) -> RuntimeInfo:
        """See `ToolRuntime.stop`; there is nothing to end."""
        return tool.runtime

    async def aclose(self) -> None:
        """See `ToolRuntime.aclose`."""
        for client in [*self._older, *([self._client] if self._client else [])]:
            await client.aclose()

    def _http(self) -> httpx.AsyncClient:
        """Return the client, a new one if the settings have changed."""
        now = self._settings.current
        wanted = (now.api_private_hosts, now.call_timeout_s)
        if self._client is None or self._client.is_closed or wanted != self._made_for:
            if self._client is not None:
                self._older.append(self._client)  # unfinished calls may still use it
            rules = AddressRules(now.api_private_hosts)
            self._client = checked_client(rules, now.call_timeout_s, follow_redirects=True)
            self._made_for = wanted
        return self._client


def _pause_before_next(call: HttpCall, error: ToolCallFailed, wait: float) -> float | None:
    """Return the wait in seconds before the next attempt; `None` if there is none."""
    if isinstance(error, HttpStatusFailed):
        if error.status not in RETRIED or call.method not in IDEMPOTENT:
            return None
        requested = float(error.retry_after) if error.retry_after.isdecimal() else wait
        return max(requested, wait) if requested <= MAX_WAIT_S else None
    return wait if isinstance(error.__cause__, httpx.ConnectError) else None


def _headers(tool: ToolMeta) -> dict[str, str]:
    """Return the headers of a tool's calls.

    Raises:
        InvalidToolMeta: A header is not valid in HTTP.
        ToolRefused: A header may be set by the client only.
    """
    for name, value in tool.runtime.env.items():
        if not _HEADER.fullmatch(name) or not value.isprintable() or not value.isascii():
            raise InvalidToolMeta(f"env: {name!r:.60} cannot be a header of tool {tool.tool_id}")
        if name.lower() in _NOT_SET:
            raise ToolRefused(f"env: header {name} is set by the client itself")
    return tool.runtime.env
