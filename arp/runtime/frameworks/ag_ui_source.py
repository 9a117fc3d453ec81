"""`AgUiSource`: runs an AG-UI agent, at an address or as a function, and yields its events."""

from __future__ import annotations

import inspect
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, suppress
from typing import Any, Final

import httpx
from ag_ui.core import RunAgentInput, TextMessageContentEvent

from arp.net.http_problems import answer_problem, broken_connection, not_a_stream, words_of
from arp.protocol.framing.event_stream import (
    DONE,
    EVENT_STREAM,
    EventReader,
    EventTooLong,
)
from arp.protocol.json_value import JsonObject
from arp.runtime.contract.errors import RuntimeInternal, Unavailable

RunAgent = Callable[[RunAgentInput], AsyncIterator[Any]]
"""Function that runs an agent and yields its events."""
CONNECT_S = 30.0
MAX_REDIRECTS: Final = 3
MAX_PAGE: Final = 64 * 1024
"""Number of bytes that are read of a response that is not a stream of events."""
_KEEPING_METHOD: Final = (307, 308)
"""Status codes of redirects that keep the method POST."""


class AgUiSource:
    """Runs an agent, and yields its events as JSON objects.

    Args:
        agent: Address of the agent, a function that receives a `RunAgentInput` and returns events,
            or an object with a method `run` that does this.
        headers: Headers of requests to an address.
    """

    def __init__(self, agent: str | RunAgent | Any, headers: Mapping[str, str] | None) -> None:
        self._agent = agent if isinstance(agent, str) else getattr(agent, "run", agent)
        self._headers = {**(headers or {}), "Accept": EVENT_STREAM}

    async def events(self, run_input: JsonObject) -> AsyncGenerator[JsonObject]:
        """Yield the events of one run.

        Raises:
            Unavailable: The address cannot be reached, or answers with an error.
        """
        if isinstance(self._agent, str):
            async for event in self._request_events(self._agent, run_input):
                yield event
            return
        made = self._agent(RunAgentInput.model_validate(run_input))
        async for event in await made if inspect.isawaitable(made) else made:
            if isinstance(event, dict):
                yield event
            elif isinstance(event, TextMessageContentEvent):  # fast path: this runs for each token
                text = {"messageId": event.message_id, "delta": event.delta}
                yield {"type": "TEXT_MESSAGE_CONTENT", **text}
            else:
                yield event.model_dump(mode="json", by_alias=True, exclude_none=True)

    async def _request_events(self, url: str, run_input: JsonObject) -> AsyncIterator[JsonObject]:
        timeout = httpx.Timeout(CONNECT_S, read=None)
        try:
            async with httpx.AsyncClient(timeout=timeout) as client:
                response = await self._open_stream(client, url, run_input)
                async with aclosing(response):
                    async for event in _events_in(response):
                        yield event
        except httpx.HTTPError as failed:
            raise Unavailable(broken_connection(failed) or f"{url}: {failed}") from failed

    async def _open_stream(
        self, client: httpx.AsyncClient, url: str, run_input: JsonObject
    ) -> httpx.Response:
        """Return the stream of a run; follow redirects to the same server that keep the method.

        Frameworks redirect from `/agent` to `/agent/`. Another server must not receive the headers.
        """
        for _ in range(MAX_REDIRECTS + 1):
            request = client.build_request("POST", url, json=run_input, headers=self._headers)
            response = await client.send(request, stream=True)
            to = response.next_request
            if to is None or response.status_code not in _KEEPING_METHOD or not _is_same(to, url):
                break
            await response.aclose()
            url = str(to.url)
        kind = not_a_stream(response.headers)
        if response.status_code == httpx.codes.OK and not kind:
            return response
        async with aclosing(response):
            body = await _beginning_of(response)
        if response.status_code == httpx.codes.OK:
            raise Unavailable(
                f"{url}: expected a stream of events ({EVENT_STREAM}), got {kind}: "
                f"{words_of(body) or 'nothing'}; check the address, and whether it asks for a login"
            )
        problem = answer_problem(response.status_code, response.headers, body, url)
        raise Unavailable(f"{url}: {problem}")


async def _events_in(response: httpx.Response) -> AsyncIterator[JsonObject]:
    try:
        async for one in EventReader(response.aiter_bytes()):
            if one.is_complete and one.data != DONE:
                yield _event_of(one.data)
            elif not one.is_complete:
                # The stream ended within this event, so its data may be cut off. If it cannot be
                # read, it is skipped, and `AgUiStream.end` reports that the run did not finish.
                with suppress(RuntimeInternal):
                    yield _event_of(one.data)
    except EventTooLong as wrong:
        raise RuntimeInternal(f"the agent sent {wrong}") from wrong


async def _beginning_of(response: httpx.Response) -> bytes:
    """Return the beginning of a body, at most `MAX_PAGE` bytes."""
    body = b""
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > MAX_PAGE:
            break
    return body[:MAX_PAGE]


def _is_same(request: httpx.Request, url: str) -> bool:
    """Return whether a request goes to the server of an address."""
    here = httpx.URL(url)
    there = request.url
    return (there.scheme, there.host, there.port) == (here.scheme, here.host, here.port)


def _event_of(text: str) -> JsonObject:
    """Return an event.

    Raises:
        RuntimeInternal: The text is not JSON. Such an event is not skipped: it may be part of a
            call that a person must approve.
    """
    try:
        event: JsonObject = json.loads(text)
    except ValueError as wrong:
        raise RuntimeInternal(f"the agent sent an event that is no JSON: {wrong}") from wrong
    return event
