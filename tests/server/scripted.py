"""One agent that does everything once, and what a screen must show at the end."""

from __future__ import annotations

from typing import Any

from arp import App, Turn, ui

app = App(title="Scripted", suggestions=["everything"])


@app.agent
async def scripted(turn: Turn) -> None:
    """Says, calls a tool, shows a chart, patches it, asks twice; or fails, or waits."""
    match turn.text:
        case "fail":
            await turn.say("Before. ")
            raise RuntimeError("secret detail of the agent")
        case "wait":
            await turn.say("Waiting. ")
            await turn.confirm("Still there?")
        case _:
            await everything(turn)


async def everything(turn: Turn) -> None:
    """Text, tool, chart, patches of all six kinds, confirm, form."""
    await turn.say("Let me ")
    await turn.say("look. ")
    async with turn.tool("query", {"sql": "select 1"}) as tool:
        tool.result([1, 2])
    turn.show(
        ui.chart("bar", labels=["a", "b"], datasets=[ui.dataset("S", [1, 2.5])], id="chart"),
        ui.table(["n"], [[1], [2]], id="table"),
    )
    await turn.say("Done. ")
    turn.patch("chart", "props.title", "Sales")
    turn.append("table", "props.rows", [[3]])
    turn.show(ui.group([ui.text("one", id="one"), ui.text("two", id="two")], id="group"))
    await turn.say("More. ")
    turn.insert(ui.text("three", id="three"), after="one", parent="group")
    turn.reorder("one", after="two")
    turn.replace("two", ui.text("zwei", id="two"))
    turn.show(ui.status_card("info", "Gone", id="gone"))
    await turn.say("Ask. ")
    turn.remove("gone")
    sure = await turn.confirm("Sure?", id="sure")
    fields = [ui.field("name", required=True), ui.field("age", field_type="number")]
    answer = await turn.ask(ui.form(fields, id="form"))
    await turn.say(f"{sure} {answer['name']} {answer['age']}")


EVERYTHING: dict[str, Any] = {
    "status": "completed",
    "tools": [["query", '{"sql":"select 1"}', True, None, {"result": "[1,2]"}]],
    "final": True,
    "output": [
        "Let me look. ",
        {
            "id": "chart",
            "type": "chart",
            "props": {
                "type": "bar",
                "labels": ["a", "b"],
                "datasets": [{"label": "S", "data": [1, 2.5]}],
                "title": "Sales",
            },
        },
        {"id": "table", "type": "table", "props": {"headers": ["n"], "rows": [[1], [2], [3]]}},
        "Done. ",
        {
            "id": "group",
            "type": "group",
            "props": {
                "children": [
                    {"id": "three", "type": "text", "props": {"content": "three"}},
                    {"id": "two", "type": "text", "props": {"content": "zwei"}},
                    {"id": "one", "type": "text", "props": {"content": "one"}},
                ]
            },
        },
        "More. ",
        "Ask. ",
        {
            "id": "sure",
            "type": "confirm",
            "props": {"title": "Sure?", "state": "answered", "answer": True},
        },
        {
            "id": "form",
            "type": "form",
            "props": {
                "fields": [
                    {"name": "name", "required": True},
                    {"name": "age", "field_type": "number"},
                ],
                "state": "answered",
                "answer": {"name": "Ada", "age": 36},
            },
        },
        "True Ada 36",
    ],
    "story": [
        *("input 0", "Let me look. ", "tool 0", "component 1", "component 2", "Done. "),
        *("component 4", "More. ", "Ask. ", "component 7", "input 1", "component 8", "input 2"),
        "True Ada 36",
    ],
}
"""What `everything` leaves on a screen that shows all components."""
