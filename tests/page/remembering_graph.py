"""A graph of LangGraph that says all that it was told, served by the tests of the page."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import START, MessagesState, StateGraph

from arp import App


def answer(state: MessagesState) -> dict[str, Any]:
    """Say how many messages the graph knows, and which."""
    heard = [str(one.text) for one in state["messages"] if isinstance(one, HumanMessage)]
    return {"messages": [AIMessage(f"I know {len(heard)}: {', '.join(heard)}.")]}


graph = StateGraph(MessagesState)
graph.add_node(answer)
graph.add_edge(START, "answer")

app = App(title="Memory")
app.runtime(graph.compile())
