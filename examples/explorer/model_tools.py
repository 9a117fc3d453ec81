"""The tools of a model: list tables, read with SQL, show a table or a chart."""

from __future__ import annotations

import functools
import json
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

from arp import Component, ToolFailed
from charts import ChartKind, ChartPlan, choose_chart
from connection import Cell, Result
from errors import ExplorerError
from findings import size_of
from replies import chart_of, table_of
from schema import Table
from workspace import Answer, Question, Workspace

MAX_ROWS = 50
"""Rows of a result that the model reads; the user sees more."""

MAX_CHARACTERS = 8_000

_Parameters = ParamSpec("_Parameters")
_Returned = TypeVar("_Returned")


@dataclass
class ModelWork:
    """What the tools of one turn work with."""

    workspace: Workspace
    chart: ChartPlan | None = None
    """The last chart that was shown."""


work_of_turn: ContextVar[ModelWork] = ContextVar("work_of_turn")
"""Set while a model answers; its tools run in copies of that context."""


def _telling(
    tool: Callable[_Parameters, Awaitable[_Returned]],
) -> Callable[_Parameters, Awaitable[_Returned]]:
    """Turn errors of the explorer into text that the model reads."""

    @functools.wraps(tool)
    async def run(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Returned:
        try:
            return await tool(*args, **kwargs)
        except ExplorerError as error:
            raise ToolFailed(f"{error.message} {error.hint}".strip()) from error

    return run


async def list_tables() -> str:
    """List all tables with their columns and some of their values."""
    return describe_tables(work_of_turn.get().workspace)


@_telling
async def run_sql(sql: str) -> str:
    """Run one reading statement and return its first rows. The user does not see them.

    Args:
        sql: One SELECT statement in SQLite's dialect.
    """
    return describe_rows(await _result(sql, ""))


@_telling
async def show_table(title: str, sql: str = "") -> Component:
    """Show the user the rows of a statement as a table.

    Args:
        title: A short title for the user.
        sql: One SELECT statement in SQLite's dialect; empty: the last one.
    """
    return table_of(await _result(sql, title), title)


@_telling
async def show_chart(title: str, kind: ChartKind, sql: str = "") -> Component:
    """Show the user a chart: the first column is the labels, each column of numbers a series.

    Args:
        title: A short title for the user.
        kind: How it is drawn.
        sql: One SELECT statement in SQLite's dialect; empty: the last one.
    """
    chart = choose_chart(await _result(sql, title), kind)
    if chart is None:
        raise ExplorerError(
            "This result cannot be drawn.",
            "It needs a column of labels, a column of numbers, and at least two rows.",
        )
    work_of_turn.get().chart = chart
    return chart_of(chart, title)


TOOLS = (list_tables, run_sql, show_table, show_chart)


async def _result(sql: str, title: str) -> Result:
    """Run a statement; without one, return the last result."""
    workspace = work_of_turn.get().workspace
    if not sql.strip():
        if workspace.last is None:
            raise ExplorerError("There is no result yet.", "Give sql.")
        return workspace.last.result
    dataset = workspace.dataset_for(sql)
    result = await dataset.ask(sql)
    workspace.last = Answer(Question(dataset, result.sql, {}, title), result)
    return result


def describe_tables(workspace: Workspace) -> str:
    """Return a description of the tables, so that the model can write SQL."""
    lines = [
        _describe_table(table)
        for dataset in workspace.in_order()
        for table in dataset.schema.tables
    ]
    return "\n".join(lines)[:MAX_CHARACTERS] or "There is no table."


def _describe_table(table: Table) -> str:
    columns = [
        f'"{column.name}" {column.declared or column.kind}'
        + (f" ({', '.join(column.values[:12])})" if column.values else "")
        + (" (ISO dates)" if column.kind == "date" else "")
        for column in table.columns
    ]
    rows = "" if table.row_count is None else f", {table.row_count} rows"
    return f'table "{table.name}"{rows}: {"; ".join(columns)}'


def describe_rows(result: Result) -> str:
    """Return the first rows as JSON lines, headers first, and how many there are."""

    def line(cells: list[Cell] | list[str]) -> str:
        short = [cell[:200] if isinstance(cell, str) else cell for cell in cells]
        return json.dumps(short, ensure_ascii=False)

    lines = [line(list(result.columns)), *map(line, result.rows[:MAX_ROWS])]
    text = "\n".join(lines)[:MAX_CHARACTERS]
    return f"{text}\n({size_of(result)}; at most {MAX_ROWS} are listed)"
