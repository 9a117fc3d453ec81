"""A model with three functions as tools: `arp serve examples/model_agent/app.py`.

Set ARP_MODEL, such as `openai:gpt-5`, and the key of its provider to use that model. Without
ARP_MODEL, the test model of Pydantic AI calls all three functions, and needs no key.
"""

from __future__ import annotations

import os
from typing import Any

from arp import App, Component, tool, ui

SALES = [{"month": "January", "total": 120}, {"month": "February", "total": 95}]


def sales() -> list[dict[str, Any]]:
    """Return the sales of each month, to be shown as a table."""
    return SALES


def chart(kind: str = "bar") -> Component:
    """Show the sales as a chart: `bar` or `line`."""
    labels = [str(row["month"]) for row in SALES]
    totals = ui.dataset("Sales", [row["total"] for row in SALES])
    return ui.chart("line" if kind == "line" else "bar", labels=labels, datasets=[totals])


@tool(needs_approval=True)
def forget(month: str) -> str:
    """Remove a month; a person has to allow it."""
    SALES[:] = [row for row in SALES if row["month"] != month]
    return f"{month} is gone"


app = App(title="Sales", suggestions=["Show the sales"])
app.model_agent(os.environ.get("ARP_MODEL", "test"), tools=[sales, chart, forget])
