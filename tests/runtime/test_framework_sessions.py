"""What agents of frameworks remember: over a kill while they ask, and after an edit."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect as websocket

from arp import App, ui
from arp.client.client import ArpClient, connect
from arp.protocol.connection.screen import TurnScreen
from arp.runtime.contract import types as ari
from tests.server.processes import Process, start
from tests.support.serving import serving

EXAMPLES = Path(__file__).parents[2] / "examples"
WAIT_S = 30.0


@asynccontextmanager
async def running(example: str, ledger: Path) -> AsyncIterator[Process]:
    server = await start(EXAMPLES / example / "app.py", ledger)
    try:
        yield server
    finally:
        await server.aclose()


async def until(client: ArpClient, found: Callable[[], Any], wait_s: float = WAIT_S) -> Any:
    """Return what `found` returns as soon as it is something."""
    events = client.events()
    async with asyncio.timeout(wait_s):
        while not (value := found()):
            await anext(events)
    return value


def open_question(client: ArpClient, type_name: str) -> Any:
    """Return the open question of a type, wherever it stands."""
    for turn_id in list(client.screen.turns):
        for one in client.screen.output(turn_id):
            if one.type == type_name and one.props.get("state") == "open":
                return one
    return None


async def asked_and_killed(example: str, ledger: Path, text: str, type_name: str) -> str:
    """Let an agent ask something, kill its server, and return the session."""
    async with running(example, ledger) as server, connect(server.http) as client:
        await client.send_text(text)
        await until(client, lambda: open_question(client, type_name))
        assert client.session_id is not None
        await server.kill()
        return client.session_id


async def over(client: ArpClient) -> TurnScreen:
    """Return the newest turn as soon as it is over."""

    def newest() -> TurnScreen | None:
        turn = list(client.screen.turns.values())[-1]
        return turn if turn.final and turn.id != "t1" else None

    found: TurnScreen = await until(client, newest)
    return found


@pytest.mark.timeout(120)
async def test_interrupt_is_answered_on_another_screen_after_a_kill(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.db"
    session = await asked_and_killed("langgraph_approval", ledger, "A refund", "choices")
    async with (
        running("langgraph_approval", ledger) as server,
        connect(server.http, session_id=session) as client,
    ):
        choices = await until(client, lambda: open_question(client, "choices"))
        await client.send_selection(["send"], source=choices.id)
        turn = await over(client)
        assert (turn.status, turn.errors) == ("completed", [])
        assert client.screen.text(turn.id) == "It is sent."
        assert open_question(client, "choices") is None


@pytest.mark.timeout(120)
async def test_approval_counts_after_a_kill_for_what_was_shown(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.db"
    session = await asked_and_killed("openai_agents", ledger, "My money back", "confirm")
    async with (
        running("openai_agents", ledger) as server,
        connect(server.http, session_id=session) as client,
    ):
        await until(client, lambda: open_question(client, "confirm"))
        (permission,) = client.screen.turns["t1"].permissions.values()
        await client.send_permission(permission, True)
        turn = await over(client)
        assert (turn.status, turn.errors) == ("completed", [])
        assert client.screen.text(turn.id) == "Done: 12.50 paid back for order 7."
        assert open_question(client, "confirm") is None


def remembering() -> Any:
    """Return a graph that says what it has heard, and counts it in a state of its own."""
    from langchain_core.messages import AIMessage, HumanMessage
    from langgraph.graph import START, MessagesState, StateGraph

    class Heard(MessagesState):
        count: int

    def answer(state: Heard) -> dict[str, Any]:
        heard = [str(one.text) for one in state["messages"] if isinstance(one, HumanMessage)]
        count = state.get("count", 0) + 1
        return {"count": count, "messages": [AIMessage(f"{count}: {', '.join(heard)}")]}

    graph = StateGraph(Heard)
    graph.add_node(answer)
    graph.add_edge(START, "answer")
    return graph.compile()


async def test_after_an_edit_a_graph_knows_the_new_branch_alone(tmp_path: Path) -> None:
    """Its whole state is that of the turn before: the count, too."""
    app = App()
    app.runtime(remembering())
    with serving(app, ledger=f"sqlite:{tmp_path / 'ledger.db'}") as server:
        async with connect(server.http, session_id="s") as client:
            await client.ask("hello")
            edited = await client.ask("my name is Ann")
            assert client.screen.text(edited.id) == "2: hello, my name is Ann"
            async with websocket(server.ws) as socket:
                hello = {"capabilities": {"components": ["text"]}, "session_id": "s"}
                await socket.send(json.dumps({"v": 1, "type": "hello", **hello}))
                again = {"input_type": "text", "data": {"text": "my name is Bob"}}
                message = {"v": 1, "type": "input", "session_id": "s", **again}
                await socket.send(json.dumps({**message, "edits": edited.id}))
                heard = ""
                async with asyncio.timeout(WAIT_S):
                    while not heard.endswith("Bob"):
                        told = json.loads(await socket.recv())
                        heard += told["payload"]["delta"] if told["type"] == "delta" else ""
    assert heard.endswith("2: hello, my name is Bob")


async def test_what_a_graph_writes_shows_as_component_text_or_progress(tmp_path: Path) -> None:
    from langgraph.config import get_stream_writer
    from langgraph.graph import START, MessagesState, StateGraph

    def draw(state: MessagesState) -> dict[str, Any]:
        write = get_stream_writer()
        write("Look: ")
        write(ui.table(["n"], [[1]]))
        write({"type": "table", "props": {"rows": "wrong"}})
        return {}

    graph = StateGraph(MessagesState)
    graph.add_node(draw)
    graph.add_edge(START, "draw")
    app = App()
    app.runtime(graph.compile())
    with serving(app, ledger="memory:") as server:
        async with connect(server.http) as client:
            turn = await client.ask("draw")
            assert turn.status == "completed"
            assert client.screen.text(turn.id) == "Look: "
            assert [one.type for one in client.screen.output(turn.id)] == ["text", "table"]


async def test_a_session_begins_with_a_conversation_that_it_did_not_have() -> None:
    from arp.runtime.frameworks.langgraph import LangGraphRuntime

    runtime = LangGraphRuntime(remembering())
    past = (
        ari.RuntimeMessage("user", "hello"),
        ari.RuntimeMessage("assistant", "hi", tool_calls=(ari.PastToolCall("c", "look"),)),
    )
    created = await runtime.create_session(ari.CreateSessionRequest(history=past))
    session_id = created.session.session_id
    message = ari.RuntimeMessage(content="again")
    sent = await runtime.send_message(ari.SendMessageRequest(session_id, message))
    events = await runtime.session_events(ari.SessionEventsRequest(session_id, sent.sequence))
    said = ""
    async for event in events:
        if event.done:
            break
        said += event.content if event.type is ari.EventType.TEXT else ""
    assert said == "1: hello, again"
    await runtime.close()
