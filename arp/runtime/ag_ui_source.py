"""`AgUiSource`: where the events of an AG-UI agent come from, an address or a function."""

from __future__ import annotations

import inspect
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from typing import Any

import httpx
from ag_ui.core import RunAgentInput, TextMessageContentEvent

from arp.protocol.json_value import JsonObject
from arp.runtime.errors import RuntimeInternal, Unavailable

RunAgent = Callable[[RunAgentInput], AsyncIterator[Any]]
"""Runs an agent, and yields its events."""
CONNECT_S = 30.0


class AgUiSource:
    """Runs an agent, and yields its events as JSON objects.

    Args:
        agent: Its address, a function that gets a `RunAgentInput` and returns its events, or an
            object whose `run` is that.
        headers: Of requests to an address.
    """

    def __init__(self, agent: str | RunAgent | Any, headers: Mapping[str, str] | None) -> None:
        self._agent = agent if isinstance(agent, str) else getattr(agent, "run", agent)
        self._headers = {**(headers or {}), "Accept": "text/event-stream"}

    async def events(self, run_input: JsonObject) -> AsyncGenerator[JsonObject]:
        """Yield the events of one run.

        Raises:
            Unavailable: The address cannot be reached, or answers with an error.
        """
        if isinstance(self._agent, str):
            async for event in self._requested(self._agent, run_input):
                yield event
            return
        made = self._agent(RunAgentInput.model_validate(run_input))
        async for event in await made if inspect.isawaitable(made) else made:
            if isinstance(event, dict):
                yield event
            elif isinstance(event, TextMessageContentEvent):  # each token is one: be quick
                text = {"messageId": event.message_id, "delta": event.delta}
                yield {"type": "TEXT_MESSAGE_CONTENT", **text}
            else:
                yield event.model_dump(mode="json", by_alias=True, exclude_none=True)

    async def _requested(self, url: str, run_input: JsonObject) -> AsyncIterator[JsonObject]:
        try:
            async with (
                httpx.AsyncClient(timeout=httpx.Timeout(CONNECT_S, read=None)) as client,
                client.stream("POST", url, json=run_input, headers=self._headers) as response,
            ):
                if response.status_code != httpx.codes.OK:
                    answer = (await response.aread()).decode(errors="replace")
                    raise Unavailable(f"{url}: {response.status_code} {answer:.200}")
                data: list[str] = []
                async for line in response.aiter_lines():
                    if line.startswith("data:"):
                        data.append(line[5:].removeprefix(" "))
                    elif not line and data:
                        yield _event_of("\n".join(data))
                        data.clear()
                if data:  # some agents end without the empty line
                    yield _event_of("\n".join(data))
        except httpx.HTTPError as failed:
            raise Unavailable(f"{url}: {failed}") from failed


def _event_of(text: str) -> JsonObject:
    """Return an event.

    Raises:
        RuntimeInternal: It is no JSON: what is missing may be a part of what a person has to allow.
    """
    try:
        event: JsonObject = json.loads(text)
    except ValueError as wrong:
        raise RuntimeInternal(f"the agent sent an event that is no JSON: {wrong}") from wrong
    return event
