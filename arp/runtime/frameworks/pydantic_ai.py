"""`PydanticAIRuntime`: an agent of Pydantic AI as an agent runtime.

```python
app.runtime(PydanticAIRuntime(Agent("openai:gpt-5", tools=[weather])))
```

The messages are stored for each session. A tool that needs approval becomes a permission request on
every screen, and a tool that defers its call becomes a question, also after a restart. A typed
output is shown. An object with a method `__arp__` becomes the component that the method returns, a
list of objects becomes a table, and any other object becomes names and values.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

from pydantic import TypeAdapter
from pydantic_ai import (
    Agent,
    AgentRunResult,
    AgentRunResultEvent,
    AudioUrl,
    BinaryContent,
    DeferredToolRequests,
    DeferredToolResults,
    DocumentUrl,
    FunctionToolCallEvent,
    FunctionToolResultEvent,
    ImageUrl,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolApproved,
    ToolCallPart,
    ToolDenied,
    UserContent,
    UserPromptPart,
)
from pydantic_ai.models import Model, infer_model
from pydantic_ai.toolsets import AbstractToolset

from arp.protocol.json_value import JsonObject
from arp.runtime.contract.cut_off import CUT_OFF_WORDS, CutOffReason, cut_off_of, mark_of
from arp.runtime.contract.task_runtime import TaskRuntime, TaskTurn
from arp.runtime.frameworks.reporting_model import ReportingModel, use_of
from arp.turn.past_messages import PastMessages
from arp.values.cell import as_json
from arp.values.display import component_of, display_of, text_of

URLS = {"image": ImageUrl, "audio": AudioUrl, "file": DocumentUrl}


class PydanticAIRuntime(TaskRuntime):
    """A runtime that runs a `pydantic_ai.Agent`.

    Args:
        agent: Any agent, with any output.
        deps: Value of `deps` for the tools of the agent.
        cwd: Directory of the runtime, as in `DrivenRuntime`.
        directory: Directory that stores sessions so that other processes find them; `None` means in
            memory.
    """

    name = "pydantic-ai"
    part_types: ClassVar[frozenset[str]] = frozenset({"text", "image", "audio", "file"})
    more_capabilities: ClassVar[tuple[str, ...]] = ("updated_input",)

    def __init__(
        self,
        agent: Agent[Any, Any],
        *,
        deps: Any = None,
        cwd: str | Path = ".",
        directory: str | Path | None = None,
    ) -> None:
        super().__init__(cwd=cwd, directory=directory)
        self.agent = agent
        self._deps = deps
        self._entered: Model | None = None
        """Model with an open HTTP client; the client is closed with the runtime."""

    async def run_turn(self, turn: TaskTurn) -> None:
        """Run the agent, and run it again with the answers as long as it defers calls."""
        kept = self._kept(turn.session_id)
        messages, prompt = kept.messages, _prompt(turn) if turn.has_message else None
        results = None
        if prompt is None and kept.asks is not None:  # the turn continues: ask first
            results = await _ask(turn, kept.asks)
        while True:
            result = await self._run(turn, prompt, messages, results)
            before = len(result.all_messages()) - len(result.new_messages())
            messages = [
                message if number < before else _marked_if_cut_off(turn, message)
                for number, message in enumerate(result.all_messages())
            ]
            asks = result.output if isinstance(result.output, DeferredToolRequests) else None
            self._keep_all(turn, KeptRun(messages, asks))
            if asks is None:
                break
            prompt, results = None, await _ask(turn, asks)
        made = display_of(result.output)
        if made is not None:
            turn.show(made)

    async def _run(
        self,
        turn: TaskTurn,
        prompt: str | Sequence[UserContent] | None,
        messages: Sequence[ModelMessage],
        results: DeferredToolResults | None,
    ) -> AgentRunResult[Any]:
        result: AgentRunResult[Any] | None = None
        model = self.agent.model
        if isinstance(model, str):  # the agent itself would do this with its first run
            model = self.agent.model = infer_model(model)
        if self._entered is None and isinstance(model, Model):
            self._entered = model
            await model.__aenter__()
        reporting = None if model is None else ReportingModel(model, turn)
        run: AbstractAsyncContextManager[Any] = self.agent.run_stream_events(
            prompt,
            message_history=messages,
            deferred_tool_results=results,
            model=reporting,
            output_type=[self.agent.output_type, DeferredToolRequests],
            deps=self._deps,
            toolsets=await self.toolsets(turn),
        )
        async with run as events:
            async for event in events:
                if isinstance(event, AgentRunResultEvent):
                    result = event.result
                else:
                    _apply(turn, event)
        assert result is not None
        # `agent.override` may have replaced the model; then its usage has not been reported.
        if reporting is None or not reporting.requests:
            for message in result.new_messages():
                if isinstance(message, ModelResponse):
                    use_of(turn, message)
        return result

    async def _end(self) -> None:
        entered, self._entered = self._entered, None
        if entered is not None:
            await entered.__aexit__(None, None, None)

    async def toolsets(self, turn: TaskTurn) -> Sequence[AbstractToolset[Any]]:
        """Return additional tools for a turn, besides those of the agent."""
        return ()

    async def begin_with(self, session_id: str, past: PastMessages) -> None:
        """Store the earlier messages in the form of Pydantic AI."""
        kept = KeptRun(past.as_pydantic_ai(), None)
        self.save(session_id, KEPT.dump_json(kept))

    async def is_interrupted(self, session_id: str) -> bool:
        """Return whether a tool call waits for an answer."""
        return self._kept(session_id).asks is not None

    async def cut_off(self, turn: TaskTurn) -> None:
        """Store the message and the partial answer, without calls that have no result."""
        done = list(self._kept(turn.session_id).messages)
        if done and isinstance(done[-1], ModelResponse) and done[-1].tool_calls:
            done.pop()  # models refuse a conversation with a call that has no result
        if turn.has_message and not turn.is_saved:
            done.append(ModelRequest([UserPromptPart(_prompt(turn))]))
        done.append(ModelResponse([TextPart("".join(turn.said) or "(interrupted)")]))
        self._keep_all(turn, KeptRun(done, None))

    def _kept(self, session_id: str) -> KeptRun:
        saved = self.saved(session_id)
        return KEPT.validate_json(saved) if saved else KeptRun([], None)

    def _keep_all(self, turn: TaskTurn, kept: KeptRun) -> None:
        self.save(turn.session_id, KEPT.dump_json(kept, fallback=_plain))
        turn.is_saved = True

    async def _runtime_version(self) -> str:
        return version("pydantic-ai-slim")


@dataclass
class KeptRun:
    """Stored state of a session."""

    messages: list[ModelMessage]
    asks: DeferredToolRequests | None
    """Deferred calls that wait for an answer; `None` if there are none."""


KEPT = TypeAdapter(KeptRun)


def _plain(value: Any) -> Any:
    """Return data that a tool has added to its result, such as a component, as plain JSON."""
    return component_of(value) or as_json(value)


def _apply(turn: TaskTurn, event: Any) -> None:
    """Apply one event of a run."""
    match event:
        case PartStartEvent(part=TextPart(content=text)):
            turn.say(text)
        case PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
            turn.say(text)
        case PartStartEvent(part=ThinkingPart(content=text)):
            turn.think(text)
        case PartDeltaEvent(delta=ThinkingPartDelta(content_delta=str(text))):
            turn.think(text)
        case FunctionToolCallEvent(part=call):
            turn.start_call(call.tool_call_id, call.tool_name, call.args_as_dict())
        case FunctionToolResultEvent(part=part):
            made = component_of(getattr(part, "metadata", None)) or component_of(part.content)
            failed = part.outcome != "success"
            turn.end_call(part.tool_call_id, text_of(part.content), failed=failed, shown=made)


async def _ask(turn: TaskTurn, asks: DeferredToolRequests) -> DeferredToolResults:
    """Ask the user about all deferred calls, and return the answers."""
    for call in (*asks.approvals, *asks.calls):
        turn.start_call(call.tool_call_id, call.tool_name, call.args_as_dict())
    approvals, calls = await asyncio.gather(
        asyncio.gather(*(_ask_permission(turn, call) for call in asks.approvals)),
        asyncio.gather(*(_ask_question(turn, call) for call in asks.calls)),
    )
    return DeferredToolResults(calls=dict(calls), approvals=dict(approvals))


async def _ask_permission(
    turn: TaskTurn, call: ToolCallPart
) -> tuple[str, ToolApproved | ToolDenied]:
    answer = await turn.allowed(call.tool_call_id, call.tool_name, call.args_as_dict())
    if answer.decision == "allow":
        return call.tool_call_id, ToolApproved(override_args=answer.updated_input)
    return call.tool_call_id, ToolDenied(answer.message or "The user denied it.")


async def _ask_question(turn: TaskTurn, call: ToolCallPart) -> tuple[str, JsonObject]:
    """Ask the question that the arguments of a deferred call contain."""
    answer = await turn.answered(call.tool_call_id, call.args_as_dict(), can_decline=True)
    return call.tool_call_id, {"declined": True} if answer is None else answer


def _marked_if_cut_off(turn: TaskTurn, message: ModelMessage) -> ModelMessage:
    """Return a message of this run, with a mark if it was cut off."""
    if not isinstance(message, ModelResponse):
        return message
    reason = _cut_off(message)
    if reason is None or message.tool_calls:  # an incomplete call fails by itself
        return message
    turn.mark_cut_off(reason)
    mark = TextPart(mark_of(CUT_OFF_WORDS[reason]))
    return replace(message, parts=[*message.parts, mark])


def _cut_off(response: ModelResponse) -> CutOffReason | None:
    """Return why a response is incomplete; `None` if it is complete."""
    if not (response.text or "").strip() and not response.files:
        return cut_off_of(response.finish_reason) or CutOffReason.EMPTY
    details = response.provider_details or {}
    is_unfinished = response.provider_name == "openai" and not (
        details.keys() & {"finish_reason", "refusal"}
    )  # if a stream of OpenAI ends without a reason, Pydantic AI reports "stop"
    return CutOffReason.UNFINISHED if is_unfinished else cut_off_of(response.finish_reason)


def _prompt(turn: TaskTurn) -> str | list[UserContent]:
    """Return the message of a turn.

    A message without parts is sent as a string, because not every model accepts parts.
    """
    if not turn.message.parts:
        return turn.message.content
    prompt: list[UserContent] = []
    for part in turn.content:
        if part.type == "text":
            prompt.append(part.text)
        elif part.data:
            prompt.append(BinaryContent(part.data, media_type=part.mime_type))
        else:
            prompt.append(URLS[part.type](part.uri))
    return prompt
