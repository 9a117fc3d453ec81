"""Agents of the OpenAI Agents SDK with a hand-off: `arp serve examples/openai_agents/app.py`.

Without OPENAI_API_KEY a scripted model answers. The refund is approved by a person.
"""

from __future__ import annotations

import os
from typing import Any

from agents import Agent, Model, function_tool, set_tracing_disabled
from agents.testing import ModelCall, ModelStep, ScriptedModel, assistant_message, function_call

from arp import App

set_tracing_disabled(True)


@function_tool(needs_approval=True)
def refund(order: int, amount: float) -> str:
    """Pay money back for an order."""
    return f"{amount:.2f} paid back for order {order}"


def scripted() -> Model:
    """Return a model that hands off to the refunds agent, pays, and confirms it."""
    model = ScriptedModel()

    def answer(call: ModelCall) -> list[Any]:
        model.enqueue(ModelStep.respond(answer))
        items: Any = call.input if isinstance(call.input, list) else []
        number = f"call-{len(items)}"
        if call.handoffs:
            return [function_call("transfer_to_refunds", {}, call_id=number)]
        if items and items[-1].get("type") == "function_call_output" and call.tools:
            last = str(items[-1]["output"])
            if "assistant" not in last:
                return [assistant_message(f"Done: {last}.")]
        return [function_call("refund", {"order": 7, "amount": 12.5}, call_id=number)]

    model.enqueue(ModelStep.respond(answer))
    return model


model = None if os.environ.get("OPENAI_API_KEY") else scripted()
refunds: Agent[Any] = Agent("Refunds", model=model, tools=[refund])
desk: Agent[Any] = Agent("Desk", model=model, handoffs=[refunds])

app = App(title="Shop", suggestions=["I want my money back for order 7"])
app.runtime(desk)
