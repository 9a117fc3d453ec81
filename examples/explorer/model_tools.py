"""The tools of a model: list tables, read with SQL, show a table or a chart."""

from __future__ import annotations

import json
from typing import get_args

from arp import Turn
from arp.protocol.json_value import Json, JsonObject
from charts import ChartKind, ChartPlan, choose_chart
from connection import Cell, Result
from errors import ExplorerError
from findings import size_of
from model_messages import ToolOutput, ToolSpec, ToolUse
from questions import chart_kind
from replies import chart_of, table_of
from schema import Table
from workspace import Answer, Question, Workspace

MAX_ROWS_TOLD = 50
"""Rows of a result that the model reads; the user sees more."""

MAX_CHARACTERS_TOLD = 8_000

_SQL: JsonObject = {"type": "string", "description": "One SELECT statement in SQLite's dialect."}
_TITLE: JsonObject = {"type": "string", "description": "A short title for the user."}

TOOLS = (
    ToolSpec("list_tables", "Lists all tables with their columns and some of their values.", {}),
    ToolSpec(
        "run_sql",
        "Runs one reading statement and returns its first rows. The user does not see them.",
        {"sql": _SQL},
        ("sql",),
    ),
    ToolSpec(
        "show_table",
        "Shows the user the rows of a statement, or of the last one, as a table.",
        {"sql": _SQL, "title": _TITLE},
        ("title",),
    ),
    ToolSpec(
        "show_chart",
        "Shows the user a chart of a statement, or of the last one: the first column gives the "
        "labels, each column of numbers a series.",
        {
            "sql": _SQL,
            "title": _TITLE,
            "kind": {"type": "string", "enum": list(get_args(ChartKind))},
        },
        ("title", "kind"),
    ),
)


class ModelTools:
    """Runs the tools that a model uses in one turn."""

    def __init__(self, turn: Turn, workspace: Workspace) -> None:
        self._turn = turn
        self._workspace = workspace
        self.chart: ChartPlan | None = None
        """The last chart that was shown."""
        self.used = False

    async def run(self, use: ToolUse) -> ToolOutput:
        """Run one tool and return its output for the model; an error is returned, not raised."""
        self.used = True
        try:
            arguments = _arguments(use)
            async with self._turn.tool(use.name, arguments) as tool:
                text = await self._dispatch(use.name, arguments)
                tool.result(text)
        except ExplorerError as error:
            return ToolOutput(use.id, f"{error.message} {error.hint}".strip(), failed=True)
        return ToolOutput(use.id, text)

    async def _dispatch(self, name: str, arguments: JsonObject) -> str:
        match name:
            case "list_tables":
                return tables_told(self._workspace)
            case "run_sql":
                return rows_told(await self._result(arguments))
            case "show_table":
                result = await self._result(arguments)
                self._turn.show(table_of(result, str(arguments.get("title", ""))), tool=name)
                return f"The user sees {size_of(result)}."
            case "show_chart":
                return await self._show_chart(arguments)
        raise ExplorerError(f"There is no tool {name}.")

    async def _show_chart(self, arguments: JsonObject) -> str:
        result = await self._result(arguments)
        chart = choose_chart(result, chart_kind(str(arguments.get("kind"))))
        if chart is None:
            raise ExplorerError(
                "This result cannot be drawn.",
                "It needs a column of labels, a column of numbers, and at least two rows.",
            )
        self.chart = chart
        self._turn.show(chart_of(chart, str(arguments.get("title", ""))), tool="show_chart")
        return f"The user sees a {chart.kind} chart of {size_of(result)}."

    async def _result(self, arguments: JsonObject) -> Result:
        """Run the statement in the arguments; without one, return the last result."""
        sql = arguments.get("sql")
        last = self._workspace.last
        if not isinstance(sql, str) or not sql.strip():
            if last is None:
                raise ExplorerError("There is no result yet.", "Give sql.")
            return last.result
        dataset = self._workspace.dataset_for(sql)
        title = str(arguments.get("title") or "")
        result = await dataset.ask(sql)
        self._workspace.last = Answer(Question(dataset, result.sql, {}, title), result)
        return result


def _arguments(use: ToolUse) -> JsonObject:
    try:
        value: Json = json.loads(use.arguments or "{}")
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise ExplorerError("The arguments are not a JSON object.", "Write them again.")
    return value


def tables_told(workspace: Workspace) -> str:
    """Return a description of the tables, so that the model can write SQL."""
    lines = [
        _table_told(table) for dataset in workspace.in_order() for table in dataset.schema.tables
    ]
    return "\n".join(lines)[:MAX_CHARACTERS_TOLD] or "There is no table."


def _table_told(table: Table) -> str:
    columns = [
        f'"{column.name}" {column.declared or column.kind}'
        + (f" ({', '.join(column.values[:12])})" if column.values else "")
        + (" (ISO dates)" if column.kind == "date" else "")
        for column in table.columns
    ]
    rows = "" if table.row_count is None else f", {table.row_count} rows"
    return f'table "{table.name}"{rows}: {"; ".join(columns)}'


def rows_told(result: Result) -> str:
    """Return the first rows as JSON lines, headers first, and how many there are."""

    def line(cells: list[Cell] | list[str]) -> str:
        short = [cell[:200] if isinstance(cell, str) else cell for cell in cells]
        return json.dumps(short, ensure_ascii=False)

    lines = [line(list(result.columns)), *map(line, result.rows[:MAX_ROWS_TOLD])]
    text = "\n".join(lines)[:MAX_CHARACTERS_TOLD]
    return f"{text}\n({size_of(result)}; at most {MAX_ROWS_TOLD} are listed)"
