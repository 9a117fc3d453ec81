"""What agents of frameworks ask, in the shapes in which people write it."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from arp import App, Component, ui
from arp.client.client import ArpClient, connect
from arp.runtime.contract.task_runtime import question_of
from arp.runtime.frameworks.langchain_approvals import decided_by_person
from arp.runtime.named import runtime_for
from arp.turn.past_messages import STOPPED
from tests.support.serving import serving

WAIT_S = 30.0


@asynccontextmanager
async def on_screen(agent: Any) -> AsyncIterator[ArpClient]:
    """Serve an agent, and connect a renderer."""
    app = App()
    app.runtime(agent)
    with serving(app, ledger="memory:") as server:
        async with asyncio.timeout(WAIT_S), connect(server.http) as client:
            yield client


async def until(client: ArpClient, found: Callable[[], Any]) -> Any:
    """Return what `found` returns as soon as it is something."""
    events = client.events()
    while not (value := found()):
        await anext(events)
    return value


def asked(client: ArpClient) -> Component | None:
    """Return the open question, if there is one."""
    for turn_id in list(client.screen.turns):
        for one in client.screen.output(turn_id):
            if one.props.get("state") == "open":
                return one
    return None


def asking(value: Any) -> Any:
    """Return a graph that waits with a value, and says what came."""
    from langchain_core.messages import AIMessage
    from langgraph.graph import START, MessagesState, StateGraph
    from langgraph.types import interrupt

    def ask(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage(f"Got {interrupt(value)!r}.")]}

    graph = StateGraph(MessagesState)
    graph.add_node(ask)
    graph.add_edge(START, "ask")
    return graph.compile()


@pytest.mark.parametrize(
    ("about", "asked"),
    [
        ("Really?", {"question": "Really?"}),
        ({"question": "Q", "task": "t"}, {"question": "Q", "task": "t"}),
        ({"task": "Review it", "draft": "d"}, {"question": "Review it", "draft": "d"}),
        ({"draft": "d"}, {"question": "The agent asks:", "draft": "d"}),
        (["a", "b"], {"question": "The agent asks:", "value": ["a", "b"]}),
        (7, {"question": "The agent asks:", "value": 7}),
        ({"component": {"type": "confirm"}}, {"component": {"type": "confirm"}}),
    ],
)
def test_a_value_of_any_shape_is_a_question(about: Any, asked: dict[str, Any]) -> None:
    assert question_of(about) == asked


async def test_an_interrupt_as_the_documentation_of_langgraph_writes_it() -> None:
    async with on_screen(asking({"task": "Review the text.", "draft": "Dear Ann"})) as client:
        turn_id = await client.turn_of(await client.send_text("go"))
        question = await until(client, lambda: asked(client))
        assert (question.type, question.props["label"]) == ("text-input", "Review the text.")
        shown = [one for one in client.screen.output(turn_id) if one.type == "key-value"]
        assert shown[0].props["items"] == [{"key": "draft", "value": "Dear Ann"}]
        await client.send_text("Dear Bob", source=question.id)
        await client.turn_done(turn_id)
        assert client.screen.text(turn_id) == "Got 'Dear Bob'."


async def test_a_question_can_be_declined_where_the_agent_lets_people() -> None:
    async with on_screen(asking({"question": "Your name?", "can_decline": True})) as client:
        turn_id = await client.turn_of(await client.send_text("go"))
        question = await until(client, lambda: asked(client))
        assert question.props["can_decline"] is True
        await client.send_action("decline", source=question.id)
        turn = await client.turn_done(turn_id)
        assert turn.status == "completed"
        assert client.screen.text(turn_id) == "Got None."


def modes() -> list[bool]:
    """Return whether calls are asked for each by itself, as far as this release can do both."""
    from langchain.agents.middleware import HumanInTheLoopMiddleware

    known = "interrupt_mode" in inspect.signature(HumanInTheLoopMiddleware).parameters
    return [False, True] if known else [False]


MODES = modes()


def mailing(*, per_call: bool, decisions: list[str]) -> Any:
    """Return an agent of LangChain whose one tool is held back."""
    from langchain.agents import create_agent
    from langchain.agents.middleware import HumanInTheLoopMiddleware
    from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
    from langchain_core.messages import AIMessage

    class Model(FakeMessagesListChatModel):
        def bind_tools(self, tools: Any, **_: Any) -> Any:
            return self

    def mail(to: str) -> str:
        """Send a mail."""
        return f"mailed {to}"

    call = {"name": "mail", "args": {"to": "ann"}, "id": "call_1"}
    answers: list[Any] = [AIMessage("", tool_calls=[call]), AIMessage("That is all.")]
    allowed: Any = {"mail": {"allowed_decisions": decisions}}
    mode: Any = {"interrupt_mode": "per_call"} if per_call else {}
    middleware: Any = HumanInTheLoopMiddleware(allowed, **mode)
    return create_agent(Model(responses=answers), [mail], middleware=[middleware])


@pytest.mark.parametrize("per_call", MODES)
@pytest.mark.parametrize(
    ("decisions", "payload", "result"),
    [
        (["approve", "edit", "reject"], {"updated_input": {"to": "bob"}}, "mailed bob"),
        (["approve", "reject"], {}, "mailed ann"),
    ],
)
async def test_a_call_that_is_held_back_offers_the_decisions_that_are_allowed(
    per_call: bool, decisions: list[str], payload: dict[str, Any], result: str
) -> None:
    async with on_screen(mailing(per_call=per_call, decisions=decisions)) as client:
        turn_id = await client.turn_of(await client.send_text("go"))
        question = await until(client, lambda: asked(client))
        permission = client.screen.turns[turn_id].permissions[question.id]
        assert permission.editable == ("edit" in decisions)
        await client.send_action(
            "confirm", {**payload, "digest": permission.digest}, source=question.id
        )
        turn = await client.turn_done(turn_id)
        assert turn.status == "completed"
        assert [(run.tool, run.ok) for run in turn.tools] == [("mail", True)]
        assert result in str(turn.tools[0].result)


@pytest.mark.parametrize("per_call", MODES)
async def test_a_person_answers_in_the_place_of_a_tool(per_call: bool) -> None:
    async with on_screen(mailing(per_call=per_call, decisions=["respond"])) as client:
        turn_id = await client.turn_of(await client.send_text("go"))
        question = await until(client, lambda: asked(client))
        assert question.type == "text-input"
        await client.send_text("It was sent by hand.", source=question.id)
        turn = await client.turn_done(turn_id)
        assert turn.status == "completed"
        results = {run.tool: run.result for run in turn.tools}
        assert results["mail"] == "It was sent by hand."


async def test_other_interrupts_are_not_those_of_the_middleware() -> None:
    turn: Any = None
    assert await decided_by_person(turn, "i", "text", None) is None
    assert await decided_by_person(turn, "i", {"question": "Q"}, None) is None


async def test_a_deferred_call_of_pydantic_ai_asks_with_its_arguments() -> None:
    from pydantic_ai import Agent, CallDeferred, DeferredToolRequests
    from pydantic_ai.models.test import TestModel

    agent = Agent(TestModel(), output_type=[str, DeferredToolRequests])

    @agent.tool_plain
    def choose_seat(flight: str) -> str:
        """Let the passenger choose a seat."""
        raise CallDeferred

    async with on_screen(agent) as client:
        turn_id = await client.turn_of(await client.send_text("go"))
        question = await until(client, lambda: asked(client))
        assert (question.type, question.props["label"]) == ("text-input", "The agent asks:")
        await client.send_text("12A", source=question.id)
        turn = await client.turn_done(turn_id)
        assert turn.status == "completed"
        assert [run.tool for run in turn.tools] == ["choose_seat"]
        assert "12A" in client.screen.text(turn_id)


async def test_a_component_beside_a_result_is_kept_with_the_messages() -> None:
    from pydantic_ai import Agent, ToolReturn
    from pydantic_ai.models.test import TestModel

    agent = Agent(TestModel(custom_output_text="There."))

    @agent.tool_plain
    def orders():  # type: ignore[no-untyped-def]  # a name of this function is unknown outside
        """List the orders."""
        return ToolReturn("two", metadata=ui.table(["item"], [["tea"], ["jam"]]))

    async with on_screen(agent) as client:
        first, second = await client.ask("list"), await client.ask("and again")
        assert [one.type for one in client.screen.output(first.id)] == ["table", "text"]
        assert (first.status, second.status) == ("completed", "completed")


async def test_what_an_ag_ui_agent_said_before_a_cancel_is_told_to_its_next_run() -> None:
    from ag_ui.core import RunAgentInput

    heard: list[list[tuple[str, str]]] = []

    async def agent(run: RunAgentInput) -> AsyncIterator[dict[str, Any]]:
        heard.append([(one.role, str(one.content)) for one in run.messages])
        for word in ("I ", "begin"):
            yield {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": word}
        if len(heard) == 1:
            await asyncio.Event().wait()
        yield {"type": "RUN_FINISHED", "threadId": run.thread_id, "runId": run.run_id}

    async with on_screen(agent) as client:
        turn_id = await client.turn_of(await client.send_text("one"))
        await until(client, lambda: client.screen.text(turn_id) == "I begin")
        await client.cancel()
        await client.turn_done(turn_id)
        await client.ask("two")
    stopped = f"I begin\n\n{STOPPED}"
    assert heard[1] == [("user", "one"), ("assistant", stopped), ("user", "two")]


def test_an_agent_of_ag_ui_is_an_address_or_a_function() -> None:
    from ag_ui.core import RunAgentInput

    from arp.runtime.frameworks.ag_ui import AgUiRuntime

    async def run(run_input: RunAgentInput) -> AsyncIterator[Any]:
        yield run_input

    assert isinstance(runtime_for(run), AgUiRuntime)
    assert isinstance(runtime_for("ag-ui:http://127.0.0.1:1/agent"), AgUiRuntime)
