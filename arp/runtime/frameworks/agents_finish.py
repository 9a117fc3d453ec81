"""The finish reason of a Chat Completions answer, which the OpenAI Agents SDK drops.

The SDK converts a stream of Chat Completions to events of the Responses API and drops
`finish_reason`, so that an answer that was cut off looks complete. Therefore the stream is observed
before the SDK reads it.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextvars import ContextVar
from typing import Any

from agents import Agent, OpenAIChatCompletionsModel, RunConfig

from arp.net.http_problems import not_a_stream
from arp.runtime.contract.cut_off import CutOffReason, cut_off_of
from arp.runtime.contract.errors import Unavailable

_WATCHED = "_arp_is_watched"


class AnswerEnd:
    """How the newest answer of a run ended."""

    def __init__(self) -> None:
        self.is_chat = False
        """Whether the answer came over Chat Completions. In the Responses API, events report how an
        answer ended."""
        self.reason: str | None = None

    def cut_off(self) -> CutOffReason | None:
        """Return why an answer of Chat Completions is incomplete; `None` for any other answer."""
        if not self.is_chat:
            return None
        return CutOffReason.UNFINISHED if self.reason is None else cut_off_of(self.reason)


_END: ContextVar[AnswerEnd | None] = ContextVar("arp_answer_end", default=None)


def watched_end() -> AnswerEnd:
    """Return the object that will record how the answers of this task's next run end."""
    end = AnswerEnd()
    _END.set(end)
    return end


def watch(agents: Iterable[Agent[Any]], config: RunConfig | None) -> None:
    """Observe the models of agents and of a configuration; each model once."""
    for agent in agents:
        _watch_model(agent.model)
    if config is not None:
        _watch_model(config.model)
        _watch_provider(config.model_provider)


def _watch_provider(provider: Any) -> None:
    if getattr(provider, _WATCHED, False):
        return
    get_model = provider.get_model

    def get_watched(name: str | None) -> Any:
        model = get_model(name)
        _watch_model(model)
        return model

    provider.get_model = get_watched
    setattr(provider, _WATCHED, True)


def _watch_model(model: Any) -> None:
    fetch = getattr(model, "_fetch_response", None)
    is_chat = isinstance(model, OpenAIChatCompletionsModel)
    if not is_chat or fetch is None or getattr(model, _WATCHED, False):
        return

    async def fetch_watched(*args: Any, **kwargs: Any) -> Any:
        answer = await fetch(*args, **kwargs)
        if not kwargs.get("stream"):
            return answer
        response, stream = answer
        return response, _WatchedStream(stream)

    setattr(model, "_fetch_response", fetch_watched)  # noqa: B010 - mypy refuses an assignment
    setattr(model, _WATCHED, True)


class _WatchedStream:
    """A stream of chunks that records its finish reason.

    All other attributes are those of the wrapped stream.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._end = _END.get() or AnswerEnd()
        self._end.is_chat, self._end.reason = True, None
        answered = getattr(stream, "response", None)
        kind = not_a_stream(getattr(answered, "headers", {}))
        if kind:
            where = str(getattr(answered, "url", "the model's server"))
            raise Unavailable(
                f"{where}: expected a stream of events, got {kind}; check the model's address"
            )

    def __aiter__(self) -> _WatchedStream:
        return self

    async def __anext__(self) -> Any:
        chunk = await self._stream.__anext__()
        for choice in chunk.choices or ():
            if choice.index == 0 and choice.finish_reason:
                self._end.reason = choice.finish_reason
        return chunk

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
