"""`RequestReporter`: reports the requests of LangChain's models, and their usage, to a turn."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler, BaseCallbackManager
from langchain_core.messages import BaseMessage, messages_to_dict
from langchain_core.outputs import LLMResult
from langchain_core.runnables import RunnableConfig

from arp.runtime.contract.task_runtime import TaskTurn

NOT_PARAMETERS = frozenset({"model", "model_name", "_type", "tools", "functions", "messages"})
"""Invocation parameters that are reported elsewhere, or are not parameters of the request."""


class RequestReporter(BaseCallbackHandler):
    """Reports the requests to models of one run of a graph, made by any node or tool."""

    run_inline = True

    def __init__(self, turn: TaskTurn) -> None:
        self.counted: set[str | None] = set()
        """Ids of the messages with usage that was reported."""
        self._turn = turn
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()

    def added_to(self, config: RunnableConfig) -> RunnableConfig:
        """Return a copy of a config with this handler added to its callbacks."""
        given = config.get("callbacks")
        if isinstance(given, BaseCallbackManager):
            manager = given.copy()
            manager.add_handler(self)
            return RunnableConfig(**{**config, "callbacks": manager})
        return RunnableConfig(**{**config, "callbacks": [*(given or ()), self]})

    def on_chat_model_start(
        self,
        serialized: Mapping[str, Any] | None,
        messages: Sequence[Sequence[BaseMessage]],
        *,
        run_id: UUID,
        metadata: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Report the start of a request."""
        asked: Mapping[str, Any] = kwargs.get("invocation_params") or {}
        of = metadata or {}
        model = of.get("ls_model_name") or asked.get("model") or asked.get("model_name")
        said = [message for batch in messages for message in batch]
        self._call_in_thread_of_turn(
            lambda: self._turn.begin_request(
                str(run_id),
                str(model or (serialized or {}).get("name") or ""),
                provider=str(of.get("ls_provider") or ""),
                parameters={k: v for k, v in asked.items() if k not in NOT_PARAMETERS},
                tools=[_tool_name(tool) for tool in asked.get("tools") or ()],
                messages=lambda: messages_to_dict(said),
            )
        )

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        """Report the end of a request, with its tokens."""
        answers = [one for batch in response.generations for one in batch]
        message = getattr(answers[0], "message", None) if answers else None
        used = getattr(message, "usage_metadata", None) or {}
        if used:
            self.counted.add(getattr(message, "id", None))
        of = getattr(message, "response_metadata", None) or {}
        self._call_in_thread_of_turn(
            lambda: self._turn.use(
                used.get("input_tokens"),
                used.get("output_tokens"),
                used.get("input_token_details", {}).get("cache_read"),
                used.get("output_token_details", {}).get("reasoning"),
                str(of.get("model_name") or ""),
                request_id=str(run_id),
            )
        )

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Report the failure of a request."""
        self._call_in_thread_of_turn(lambda: self._turn.fail_request(str(run_id), error))

    def _call_in_thread_of_turn(self, report: Callable[[], None]) -> None:
        """Call a function in the thread of the turn.

        A node of the graph that is not a coroutine function runs in another thread.
        """
        if threading.get_ident() == self._thread:
            report()
        else:
            self._loop.call_soon_threadsafe(report)


def _tool_name(tool: Any) -> str:
    """Return the name of a tool in any of the formats of providers."""
    if not isinstance(tool, Mapping):
        return str(getattr(tool, "name", tool))
    function = tool.get("function")
    named = function if isinstance(function, Mapping) else tool
    return str(named.get("name") or tool.get("type") or "")
