"""CPU per token of each framework's adapter, compared with a loop over the framework's own stream.

Both run in this process, one after the other: a turn of 5,000 tokens from a model that is a loop.

The imported libraries are frozen (`gc.freeze`), and garbage is collected between the turns. Without
this, a full collection (160 ms for the modules of four frameworks) fell by chance into one turn or
another, and the ratio of a fast framework (80 ms a turn) was anything from 0.3 to 4.
"""

from __future__ import annotations

import asyncio
import gc
import json
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

from arp.runtime.contract import types as ari
from arp.runtime.contract.services import RuntimeService
from arp.runtime.frameworks.ag_ui import AgUiRuntime
from arp.runtime.frameworks.langgraph import LangGraphRuntime
from arp.runtime.frameworks.openai_agents import OpenAIAgentsRuntime
from arp.runtime.frameworks.pydantic_ai import PydanticAIRuntime
from tests.bench.figures import Figure, compared, report, rounds

TOKENS = 5_000
TARGET = 1.5
WORDS = [f"token-{number} " for number in range(TOKENS)]
TEXT = "".join(WORDS)

Own = Callable[[], Coroutine[Any, Any, str]]
"""Reads the framework's stream, and returns the text."""


def pydantic_ai() -> tuple[RuntimeService, Own]:
    from pydantic_ai import Agent, PartDeltaEvent, PartStartEvent, TextPart, TextPartDelta
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    async def stream(messages: Any, info: AgentInfo) -> AsyncIterator[str]:
        for word in WORDS:
            yield word

    agent = Agent(FunctionModel(stream_function=stream))

    async def own() -> str:
        said = []
        async with agent.run_stream_events("go") as events:
            async for event in events:
                match event:
                    case PartStartEvent(part=TextPart(content=text)):
                        said.append(text)
                    case PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
                        said.append(text)
        return "".join(said)

    return PydanticAIRuntime(agent), own


def langgraph() -> tuple[RuntimeService, Own]:
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage, HumanMessage
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.graph import START, MessagesState, StateGraph

    class Words(GenericFakeChatModel):
        def _stream(self, *args: Any, **kwargs: Any) -> Any:
            from langchain_core.messages import AIMessageChunk
            from langchain_core.outputs import ChatGenerationChunk

            manager = kwargs.get("run_manager")
            for word in WORDS:
                chunk = ChatGenerationChunk(message=AIMessageChunk(content=word, id="m"))
                if manager is not None:
                    manager.on_llm_new_token(word, chunk=chunk)
                yield chunk

    model = Words(messages=iter([AIMessage("unused")]))

    async def answer(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await model.ainvoke(state["messages"])]}

    builder = StateGraph(MessagesState)
    builder.add_node(answer)
    builder.add_edge(START, "answer")
    graph = builder.compile(checkpointer=InMemorySaver())
    threads = iter(range(1_000_000))

    async def own() -> str:
        said: list[str] = []
        config: Any = {"configurable": {"thread_id": f"own-{next(threads)}"}}
        async for chunk, _ in graph.astream(
            {"messages": [HumanMessage("go")]}, config, stream_mode="messages"
        ):
            said.append(str(getattr(chunk, "text", "")))
        return "".join(said)

    return LangGraphRuntime(graph), own


def openai_agents() -> tuple[RuntimeService, Own]:
    from agents import Agent, RunConfig, Runner
    from agents.testing import ModelStep, ScriptedModel, assistant_message
    from openai.types.responses import (
        Response,
        ResponseCompletedEvent,
        ResponseTextDeltaEvent,
    )

    model = ScriptedModel()

    async def stream(call: Any) -> AsyncIterator[Any]:
        for number, word in enumerate(WORDS):
            yield ResponseTextDeltaEvent(
                content_index=0,
                delta=word,
                item_id="m",
                logprobs=[],
                output_index=0,
                sequence_number=number,
                type="response.output_text.delta",
            )
        response = Response(
            id="r",
            created_at=0,
            model="words",
            object="response",
            output=[assistant_message(TEXT)],
            parallel_tool_calls=False,
            tool_choice="auto",
            tools=[],
        )
        yield ResponseCompletedEvent(
            response=response, sequence_number=TOKENS, type="response.completed"
        )

    config = RunConfig(tracing_disabled=True)
    agent: Agent[Any] = Agent("Bench", model=model)

    def prepared() -> None:
        model.enqueue(ModelStep.stream(stream))

    async def own() -> str:
        prepared()
        events = Runner.run_streamed(agent, "go", run_config=config).stream_events()
        raw = [event.data async for event in events if event.type == "raw_response_event"]
        return "".join(one.delta for one in raw if isinstance(one, ResponseTextDeltaEvent))

    class Prepared(OpenAIAgentsRuntime):
        async def run_turn(self, turn: Any) -> None:
            prepared()
            await super().run_turn(turn)

    return Prepared(agent, run_config=config), own


def ag_ui() -> tuple[RuntimeService, Own]:
    """Return AG-UI; its own stream is JSON events, encoded by an agent, decoded by a page."""
    from ag_ui.core import (
        RunAgentInput,
        RunFinishedEvent,
        TextMessageContentEvent,
        TextMessageEndEvent,
        TextMessageStartEvent,
    )
    from ag_ui.encoder import EventEncoder

    async def run(run_input: RunAgentInput) -> AsyncIterator[Any]:
        yield TextMessageStartEvent(message_id="m", role="assistant")
        for word in WORDS:
            yield TextMessageContentEvent(message_id="m", delta=word)
        yield TextMessageEndEvent(message_id="m")
        yield RunFinishedEvent(thread_id=run_input.thread_id, run_id=run_input.run_id)

    async def own() -> str:
        run_input = RunAgentInput(thread_id="own", run_id="own", messages=[])
        lines = [EventEncoder().encode(event) async for event in run(run_input)]
        events = [json.loads(line.removeprefix("data:")) for line in lines]
        return "".join(event.get("delta", "") for event in events)

    return AgUiRuntime(run), own


FRAMEWORKS = (pydantic_ai, langgraph, openai_agents, ag_ui)


async def through(runtime: RuntimeService) -> str:
    """Run a turn, read its events as a caller does, and return the text."""
    session = (await runtime.create_session(ari.CreateSessionRequest())).session.session_id
    message = ari.RuntimeMessage(content="go")
    sent = await runtime.send_message(ari.SendMessageRequest(session, message))
    text = []
    events = await runtime.session_events(ari.SessionEventsRequest(session, sent.sequence))
    async for event in events:
        if event.type is ari.EventType.TEXT:
            text.append(event.content)
        if event.done:
            break
    await events.aclose()
    await runtime.delete_session(ari.DeleteSessionRequest(session))
    return "".join(text)


async def cpu_us(turn: Coroutine[Any, Any, str]) -> float:
    """Return the processor time of a turn per token, of all threads, in microseconds."""
    gc.collect()  # the garbage of the turn before is not part of this one
    began = time.process_time()
    text = await turn
    took = time.process_time() - began
    assert text == TEXT, f"{len(text)} of {len(TEXT)} characters"
    return took / TOKENS * 1e6


async def measured() -> list[Figure]:
    figures = []
    for framework in FRAMEWORKS:
        runtime, own = framework()
        await cpu_us(own()), await cpu_us(through(runtime))  # the first runs import and compile
        gc.collect()
        gc.freeze()
        ours, bare = [], []
        for _ in range(rounds(7)):
            bare.append(await cpu_us(own()))
            ours.append(await cpu_us(through(runtime)))
        name = f"CPU per token, {framework.__name__.replace('_', '-')}"
        figures.append(compared(name, "µs", ours, bare, TARGET))
        await runtime.close(ari.CloseRequest())
    return figures


if __name__ == "__main__":
    report("frameworks", asyncio.run(measured()))
