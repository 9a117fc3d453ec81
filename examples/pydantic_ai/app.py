"""A Pydantic AI agent with typed output as a chart: `arp serve examples/pydantic_ai/app.py`.

Without ARP_MODEL, such as `openai:gpt-5`, it uses Pydantic AI's own test model and needs no key.
"""

from __future__ import annotations

import os

from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel

from arp import App, Component, ui


class Sales(BaseModel):
    """Sales of each month."""

    months: list[str]
    totals: list[float]

    def __arp__(self) -> Component:
        """Return a chart; without this method, the object is shown as names with values."""
        return ui.chart("bar", labels=self.months, datasets=[ui.dataset("Sales", self.totals)])


TESTED = {"months": ["January", "February", "March"], "totals": [120, 95, 141]}

agent = Agent(
    os.environ.get("ARP_MODEL") or TestModel(custom_output_args=TESTED, call_tools=["orders"]),
    output_type=Sales,
    instructions="Answer questions about sales with the numbers of the tool.",
)


@agent.tool_plain
def orders(year: int = 2026) -> dict[str, int]:
    """Return the orders of each month of a year."""
    return {"January": 120, "February": 95, "March": 141} if year == 2026 else {}


app = App(title="Sales", suggestions=["Show the sales"])
app.runtime(agent)
