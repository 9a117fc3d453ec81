"""Tools that run at the same time: own arguments, own results, own progress, in each framework."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arp.runtime.contract import types as ari
from arp.runtime.contract.services import RuntimeService
from arp.runtime.frameworks.spoken_messages import SpokenMessages
from tests.runtime.caller import Caller

MAIL, PAY = {"to": "ann"}, {"total": 7}


class Tools:
    """Two tools; `mail` ends after `pay`, although it begins first."""

    def __init__(self) -> None:
        self._paid = asyncio.Event()

    async def mail(self, to: str) -> str:
        """Send a mail."""
        await self._paid.wait()
        return f"mailed {to}"

    async def pay(self, total: int) -> str:
        """Pay."""
        self._paid.set()
        return f"paid {total}"


def pydantic_ai(tools: Tools) -> RuntimeService:
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

    from arp.runtime.frameworks.pydantic_ai import PydanticAIRuntime

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        if any(isinstance(one, ModelResponse) for one in messages):
            yield "Done."
            return
        yield {
            0: DeltaToolCall("mail", '{"to":', tool_call_id="a"),
            1: DeltaToolCall("pay", '{"total"', tool_call_id="b"),
        }
        yield {1: DeltaToolCall(json_args=": 7}"), 0: DeltaToolCall(json_args='"ann"}')}

    model = FunctionModel(stream_function=answer)
    return PydanticAIRuntime(Agent(model, tools=[tools.mail, tools.pay]))


def openai_agents(tools: Tools) -> RuntimeService:
    from agents import Agent, Model, RunConfig, function_tool
    from openai.types.responses import (
        Response,
        ResponseCompletedEvent,
        ResponseFunctionToolCall,
        ResponseFunctionWebSearch,
    )
    from openai.types.responses.response_function_web_search import ActionSearch

    from arp.runtime.frameworks.openai_agents import OpenAIAgentsRuntime

    class Scripted(Model):
        count = 0

        async def get_response(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError

        async def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
            self.count += 1
            output: list[Any] = [_message("Done.")]
            if self.count == 1:
                output = [
                    ResponseFunctionWebSearch(
                        id="w",
                        action=ActionSearch(type="search", query="q"),
                        status="completed",
                        type="web_search_call",
                    ),
                    ResponseFunctionToolCall(
                        call_id="a", name="mail", arguments='{"to":"ann"}', type="function_call"
                    ),
                    ResponseFunctionToolCall(
                        call_id="b", name="pay", arguments='{"total":7}', type="function_call"
                    ),
                ]
            response = Response(
                id=f"r{self.count}", created_at=0, model="m", object="response", output=output,
                tool_choice="auto", tools=[], parallel_tool_calls=True,
            )  # fmt: skip
            yield ResponseCompletedEvent(
                response=response, sequence_number=0, type="response.completed"
            )

    functions: list[Any] = [function_tool(tools.mail), function_tool(tools.pay)]
    agent: Agent[None] = Agent("Tester", model=Scripted(), tools=functions)
    return OpenAIAgentsRuntime(agent, run_config=RunConfig(tracing_disabled=True))


def _message(text: str) -> Any:
    from openai.types.responses import ResponseOutputMessage, ResponseOutputText

    content = ResponseOutputText(annotations=[], text=text, type="output_text")
    return ResponseOutputMessage(
        id="m", content=[content], role="assistant", status="completed", type="message"
    )


def langgraph(tools: Tools) -> RuntimeService:
    from langchain.agents import create_agent
    from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
    from langchain_core.messages import AIMessage

    from arp.runtime.frameworks.langgraph import LangGraphRuntime

    class Model(FakeMessagesListChatModel):
        def bind_tools(self, tools: Any, **_: Any) -> Any:
            return self

    calls = [{"name": "mail", "args": MAIL, "id": "a"}, {"name": "pay", "args": PAY, "id": "b"}]
    answers: list[Any] = [AIMessage("", tool_calls=calls), AIMessage("Done.")]
    return LangGraphRuntime(create_agent(Model(responses=answers), [tools.mail, tools.pay]))


@pytest.mark.parametrize("make", [pydantic_ai, openai_agents, langgraph])
async def test_calls_at_the_same_time_have_their_own_arguments_and_results(make: Any) -> None:
    caller = await Caller.create(make(Tools()))
    events = await caller.turn("go")
    assert events[-1].error is None
    calls = {one.tool_call_id: one for one in events if one.type is ari.EventType.TOOL_CALL}
    results = {one.tool_call_id: one for one in events if one.type is ari.EventType.TOOL_RESULT}
    assert {one: (calls[one].tool_name, calls[one].tool_input_raw) for one in "ab"} == {
        "a": ("mail", MAIL),
        "b": ("pay", PAY),
    }
    assert {one: (results[one].content, results[one].is_error) for one in "ab"} == {
        "a": ("mailed ann", False),
        "b": ("paid 7", False),
    }
    if "w" in calls:  # a search by the model's provider, of which no result comes
        assert (calls["w"].tool_name, results["w"].is_error) == ("web_search", False)
    assert calls.keys() == results.keys()


async def test_progress_of_a_graph_is_that_of_the_call_that_it_names() -> None:
    """Two tools write while both run: what names its call is of that, the rest of none."""
    from langchain.agents import create_agent
    from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
    from langchain_core.messages import AIMessage
    from langgraph.config import get_stream_writer

    from arp.runtime.frameworks.langgraph import LangGraphRuntime

    class Model(FakeMessagesListChatModel):
        def bind_tools(self, tools: Any, **_: Any) -> Any:
            return self

    begun, written = asyncio.Event(), asyncio.Event()

    async def first() -> str:
        """Write while the other runs."""
        await begun.wait()
        get_stream_writer()({"message": "named", "tool_call_id": "a"})
        get_stream_writer()("no text of the agent")
        get_stream_writer()({"message": "unnamed"})
        written.set()
        return "1"

    async def second() -> str:
        """Run meanwhile."""
        begun.set()
        await written.wait()
        return "2"

    calls = [{"name": "first", "args": {}, "id": "a"}, {"name": "second", "args": {}, "id": "b"}]
    answers: list[Any] = [AIMessage("", tool_calls=calls), AIMessage("Done.")]
    agent = create_agent(Model(responses=answers), [first, second])
    caller = await Caller.create(LangGraphRuntime(agent))
    events = await caller.turn("go")
    progress = [
        (one.tool_call_id, one.content)
        for one in events
        if one.lifecycle is ari.Lifecycle.TOOL_PROGRESS
    ]
    warnings = [one.content for one in events if one.lifecycle is ari.Lifecycle.WARNING]
    assert progress == [("a", "named")]
    assert warnings == ["the graph wrote unnamed"]


async def test_texts_of_nodes_that_run_at_the_same_time_are_not_mixed() -> None:
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage
    from langgraph.graph import START, MessagesState, StateGraph

    from arp.runtime.frameworks.langgraph import LangGraphRuntime

    def node(text: str) -> Any:
        async def run(state: MessagesState) -> dict[str, Any]:
            model = GenericFakeChatModel(messages=iter([AIMessage(text)]))
            pieces = []
            async for piece in model.astream("go"):
                pieces.append(str(piece.content))
                await asyncio.sleep(0)  # lets the other one speak
            return {"messages": [AIMessage("".join(pieces))]} if text[0] == "E" else {}

        return run

    graph = StateGraph(MessagesState)
    texts = ["One two three four.", "Eins zwei drei vier."]
    for number, text in enumerate(texts):
        graph.add_node(f"n{number}", node(text))
        graph.add_edge(START, f"n{number}")
    caller = await Caller.create(LangGraphRuntime(graph.compile()))
    events = await caller.turn("go")
    told = "".join(one.content for one in events if one.type is ari.EventType.TEXT)
    assert all(text in told for text in texts)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["begin", "add", "end"]))))
def test_no_piece_is_lost_or_between_those_of_another_message(
    steps: Sequence[tuple[str, str]],
) -> None:
    told: list[tuple[str, str]] = []
    spoken = SpokenMessages()
    added: dict[str, list[str]] = {}
    for number, (message_id, step) in enumerate(steps):
        if step == "begin":
            spoken.begin(message_id, is_closed_later=True)
        elif step == "end":
            spoken.end(message_id)
        else:
            spoken.add(message_id, partial(told.append, (message_id, f"{number}")))
            added.setdefault(message_id, []).append(f"{number}")
    spoken.flush()
    for message_id, pieces in added.items():
        assert [delta for one, delta in told if one == message_id] == pieces
    assert len(told) == sum(map(len, added.values()))
