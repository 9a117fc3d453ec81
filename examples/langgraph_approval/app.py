"""A graph of LangGraph that asks before it sends: `arp serve examples/langgraph_approval/app.py`.

The graph needs no model. Its question can be answered on any screen, also after the server was
stopped and started again.
"""

from __future__ import annotations

from typing import Any

from langchain_core.messages import AIMessage
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import interrupt

from arp import App


class Letter(MessagesState):
    """State of the graph: the messages, the letter, and the decision."""

    letter: str
    decision: str


def write(state: Letter) -> dict[str, Any]:
    """Write a letter about what the user asks for."""
    letter = f"Dear customer,\n\nabout your wish ({state['messages'][-1].text}): we can do that."
    return {"letter": letter, "messages": [AIMessage(f"I have written:\n\n> {letter}\n\n")]}


def ask(state: Letter) -> dict[str, Any]:
    """Wait for a decision; the answer is what `interrupt` returns."""
    question = {"question": "Send this letter?", "options": ["send", "leave it"]}
    return {"decision": interrupt(question)}


def end(state: Letter) -> dict[str, Any]:
    """Report whether the letter was sent."""
    text = "It is sent." if state["decision"] == "send" else "It stays here."
    return {"messages": [AIMessage(text)]}


graph = StateGraph(Letter)
for step in (write, ask, end):
    graph.add_node(step)
graph.add_edge(START, "write")
graph.add_edge("write", "ask")
graph.add_edge("ask", "end")
graph.add_edge("end", END)

app = App(title="Letters", suggestions=["A refund for order 7"])
app.runtime(graph.compile())
