"""An agent that speaks AG-UI: `arp serve examples/ag_ui/app.py`.

AGENT_URL is the address of such an agent. Without it, a Pydantic AI agent runs in this process,
with a test model and no key: it shows the orders, and asks before it cancels an order.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from typing import Any, Literal

from ag_ui.core import CustomEvent, RunAgentInput
from pydantic_ai import Agent, DeferredToolRequests, ToolReturn
from pydantic_ai.models.test import TestModel
from pydantic_ai.ui.ag_ui import AGUIAdapter

from arp import App

ORDERS = {"tea": 3, "jam": 1}

agent = Agent(
    TestModel(custom_output_text="That is all."),
    output_type=[str, DeferredToolRequests],
    instructions="Answer questions about orders.",
)


@agent.tool_plain
def orders() -> ToolReturn:
    """List the orders; the event after the result contains a component to show."""
    props = {"headers": ["item", "pieces"], "rows": [list(order) for order in ORDERS.items()]}
    shown = CustomEvent(name="show", value={"type": "table", "props": props})
    return ToolReturn(ORDERS, metadata=[shown])


@agent.tool_plain(requires_approval=True)
def cancel(item: Literal["jam", "tea"]) -> str:
    """Cancel an order; a person has to allow it."""
    return f"{ORDERS.pop(item, 0)} of {item} cancelled"


def run(run_input: RunAgentInput) -> AsyncIterator[Any]:
    """Run the agent, and yield its AG-UI events."""
    return AGUIAdapter(agent, run_input).run_stream()


app = App(title="Orders", suggestions=["Cancel the jam"])
app.runtime(f"ag-ui:{os.environ['AGENT_URL']}" if "AGENT_URL" in os.environ else run)
