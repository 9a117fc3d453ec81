"""Sends a question to a model over HTTP and streams its answer. Only this file uses `httpx`."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence

import httpx

import model_anthropic
import model_openai
from errors import ModelFailed
from model_messages import Event, Message, Stream, ToolSpec
from model_settings import ModelSettings

TIMEOUT = httpx.Timeout(60.0, connect=10.0)
"""Timeouts: a model may think for a minute before the next word; connecting is fast."""

MAX_ANSWER_CHARACTERS = 400_000
"""Longest answer; a longer one is cut."""

_REASONS = {
    400: "did not understand the request (400)",
    401: "refused the key (401)",
    403: "refused the key (403)",
    404: "knows no such model or address (404)",
    413: "found the conversation too long (413)",
    429: "is asked too often, or the credit is used up (429)",
    529: "is overloaded (529)",
}


def open_client() -> httpx.AsyncClient:
    """Return a client for all questions of one turn; close it with `async with`."""
    return httpx.AsyncClient(timeout=TIMEOUT)


async def stream_answer(
    client: httpx.AsyncClient,
    settings: ModelSettings,
    system: str,
    messages: Sequence[Message],
    tools: Sequence[ToolSpec],
) -> AsyncIterator[Event]:
    """Yield the model's next answer: pieces of text, and complete tool uses.

    Raises:
        ModelFailed: There is no answer, or it is incomplete; the message never contains the key.

    Cancel: safe; the connection is closed.
    """
    form = model_openai if settings.api == "openai" else model_anthropic
    stream: Stream = (
        model_openai.OpenAIStream()
        if settings.api == "openai"
        else model_anthropic.AnthropicStream()
    )
    request = form.body(settings, system, messages, tools)
    try:
        async with client.stream(
            "POST", settings.url, json=request, headers=form.headers(settings)
        ) as response:
            await _check(response, settings)
            async for event in _events(response, stream):
                yield event
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        # Only the kind of error is told: the text of some of them quotes the header with the key.
        raise ModelFailed(
            f"The model's server cannot be reached ({type(error).__name__}).",
            "Check the address and the network; everything but plain questions works without it.",
        ) from None
    if not stream.done:
        raise ModelFailed("The model's answer broke off.", "Ask again.")


async def _check(response: httpx.Response, settings: ModelSettings) -> None:
    if response.status_code == 200:
        return
    status = response.status_code
    reason = _REASONS.get(status, f"answered with status {status}")
    hint = "Ask again in a while." if status == 429 or status >= 500 else ""
    if status in (401, 403):  # the answer may quote the key, so it is not repeated
        hint = f"Check {settings.api.upper()}_API_KEY."
    elif not hint:
        hint = _message_in(await response.aread()).replace(settings.key or "\0", "…")
    raise ModelFailed(f"The model's server {reason}.", hint)


def _message_in(content: bytes) -> str:
    """Return the message in the body of an error; both APIs use `{"error": {"message": …}}`."""
    try:
        match json.loads(content):
            case {"error": {"message": str(text)}} | {"error": str(text)}:
                return text[:300]
    except ValueError:
        pass
    return ""


async def _events(response: httpx.Response, stream: Stream) -> AsyncIterator[Event]:
    received = 0
    async for line in response.aiter_lines():
        received += len(line)
        if received > MAX_ANSWER_CHARACTERS:
            raise ModelFailed("The model's answer did not end.")
        if not line.startswith("data:") or stream.done:
            continue
        written = line[5:].strip()
        if written == "[DONE]":
            stream.done = True
            return
        try:
            data = json.loads(written)
        except ValueError:
            raise ModelFailed("The model's server sent what is no JSON.") from None
        for event in stream.feed(data):
            yield event
