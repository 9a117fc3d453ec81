"""`ReportingModel`: a model of Pydantic AI that reports its requests to a turn."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from pydantic_ai import ModelMessage, ModelMessagesTypeAdapter, ModelResponse, RunContext
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings

from arp.runtime.contract.task_runtime import TaskTurn


class ReportingModel(WrapperModel):
    """A model that wraps another model and reports its requests to one turn."""

    def __init__(self, wrapped: Model, turn: TaskTurn) -> None:
        super().__init__(wrapped)
        self.requests = 0
        """Number of requests that have begun."""
        self._turn = turn

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Send a request, as `Model.request` does."""
        with self._reported(messages, model_settings, model_request_parameters) as request_id:
            response = await super().request(messages, model_settings, model_request_parameters)
        use_of(self._turn, response, request_id)
        return response

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        """Send a streamed request, as `Model.request_stream` does."""
        with self._reported(messages, model_settings, model_request_parameters) as request_id:
            async with super().request_stream(
                messages, model_settings, model_request_parameters, run_context
            ) as stream:
                yield stream
        use_of(self._turn, stream.get(), request_id)

    @contextmanager
    def _reported(
        self,
        messages: list[ModelMessage],
        settings: ModelSettings | None,
        parameters: ModelRequestParameters,
    ) -> Iterator[str]:
        """Report the start of a request, and its failure if it raises."""
        self.requests += 1
        request_id = f"{self._turn.turn_id}-{id(self):x}-{self.requests}"
        tools = [*parameters.function_tools, *parameters.output_tools]
        self._turn.begin_request(
            request_id,
            self.model_name,
            provider=self.system,
            parameters=dict(settings or {}),
            tools=[tool.name for tool in tools],
            messages=lambda: ModelMessagesTypeAdapter.dump_python(messages, mode="json"),
        )
        try:
            yield request_id
        except Exception as error:
            self._turn.fail_request(request_id, error)
            raise


def use_of(turn: TaskTurn, response: ModelResponse, request_id: str = "") -> None:
    """Report the tokens of a response."""
    used = response.usage
    # Pydantic AI uses 0 for a number that the provider does not report. A real request is never 0
    # tokens, so 0 is reported as unknown.
    turn.use(
        used.input_tokens or None,
        used.output_tokens or None,
        used.cache_read_tokens or None,
        used.details.get("reasoning_tokens"),
        response.model_name or "",
        request_id=request_id,
    )
