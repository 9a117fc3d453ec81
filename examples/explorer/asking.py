"""Runs what the user asks for, with visible progress: a query, a form, a comparison, a chart."""

from __future__ import annotations

import asyncio

from arp import Turn, ui
from asks import ChartWish, RunQuery
from charts import ChartPlan, choose_chart
from compare import compare_rows
from connection import QueryLimits, Result, quote_name
from dataset import Dataset
from errors import ExplorerError
from findings import size_of, summary
from pace import say
from query_form import ask_parameters, ask_query
from replies import show_differences, show_result
from schema import Table
from sql_guard import check_statement, parameters_of
from workspace import Answer, Question, Workspace

COMPARE_LIMITS = QueryLimits(max_rows=50_000, timeout_s=20.0, max_bytes=32 * 2**20)
"""Limits for reading each of two compared tables."""


async def run_query(turn: Turn, workspace: Workspace, ask: RunQuery) -> ChartPlan | None:
    """Run a query, show its chart and its rows, and return the chart if there is one.

    The query goes to the first data set with a table that the statement names.

    Raises:
        ExplorerError: The query was refused or failed; only the text before it was shown.
    """
    sql = check_statement(ask.sql)
    parameters = await ask_parameters(turn, parameters_of(sql))
    if ask.leftover:
        unknown = ", ".join(f"“{word}”" for word in ask.leftover)
        await say(turn, f"I know nothing called {unknown} in this data, so I left that out. ")
    await say(turn, f"Looking up the {_lowered(ask.title)}. " if ask.title else "Running it. ")
    dataset = workspace.dataset_for(sql)
    question = Question(dataset, sql, parameters, ask.title, ask.wish, ask.focus)
    return await answer(turn, workspace, question)


def _lowered(title: str) -> str:
    return title[:1].lower() + title[1:]


async def answer(turn: Turn, workspace: Workspace, question: Question) -> ChartPlan | None:
    """Run a checked question as the tool `query` and show the result.

    Raises:
        ExplorerError: As `Query.run` does; the tool is shown as failed.
    """
    arguments: dict[str, object] = {"sql": question.sql}
    if question.parameters:
        arguments["parameters"] = dict(question.parameters)
    async with turn.tool("query", arguments) as tool:
        result = await question.dataset.ask(question.sql, question.parameters)
        tool.result(f"{size_of(result)} in {result.elapsed_s * 1000:.0f} ms")
    chart = choose_chart(result, question.wish, question.focus)
    await show_result(turn, question.title, result, chart)
    workspace.last = Answer(question, result)
    await say(turn, summary(result, chart))
    return chart


async def redraw(turn: Turn, workspace: Workspace, wish: ChartWish) -> None:
    """Show the last result as another chart, without running the query again.

    Raises:
        ExplorerError: There is no result yet, or it cannot be drawn.
    """
    last = workspace.last
    if last is None:
        raise ExplorerError("There is no result to draw yet.", "Ask something first.")
    chart = choose_chart(last.result, wish, last.question.focus)
    if chart is None:
        raise ExplorerError("The last result has no numbers to draw.", "Ask for numbers by group.")
    if chart.kind != wish:
        await say(turn, f"This cannot be drawn as {wish}, so here is a {chart.kind} chart. ")
    await show_result(turn, last.question.title, Result("", (), [], False, 0.0), chart)


async def run_form(
    turn: Turn, workspace: Workspace, dataset: Dataset, name: str
) -> ChartPlan | None:
    """Show a form for a query, run the query, and return its chart if there is one.

    Raises:
        ExplorerError: There is no table to query, or the query failed.
    """
    form = await ask_query(turn, await _table_for_form(turn, dataset, name))
    await say(turn, f"Looking up the {_lowered(form.plan.title)}. ")
    question = Question(dataset, form.plan.sql, form.parameters, form.plan.title, form.wish)
    return await answer(turn, workspace, question)


async def _table_for_form(turn: Turn, dataset: Dataset, name: str) -> Table:
    """Return the table of this name; without a name, the only one or the user's choice."""
    tables = dataset.schema.tables
    if not name and len(tables) > 1:
        names = [table.name for table in tables]
        name = str(await turn.ask(ui.choices(names, title="Which table?")))
    table = dataset.schema.table(name) if name else next(iter(tables), None)
    if table is None:
        raise ExplorerError("There is no such table.", "Say *tables* to see those that there are.")
    return table


async def compare_tables(turn: Turn, workspace: Workspace, old: str, new: str) -> None:
    """Show which rows differ between two tables of any data sets.

    Raises:
        ExplorerError: One of them does not exist or cannot be read.
    """
    old_dataset, old_table = workspace.find_table(old)
    new_dataset, new_table = workspace.find_table(new)
    await say(turn, f"Comparing {old_table.name} with {new_table.name}. ")
    async with turn.tool("compare", {"old": old_table.name, "new": new_table.name}) as tool:
        before = await _all_rows(old_dataset, old_table)
        after = await _all_rows(new_dataset, new_table)
        differences = await asyncio.to_thread(compare_rows, before, after)
        tool.result(differences.sentence)
    show_differences(turn, differences, old_table.name, new_table.name)
    if before.truncated or after.truncated:
        await say(turn, f"Only the first {COMPARE_LIMITS.max_rows:,} rows of each were compared. ")
    await say(turn, differences.sentence)


async def _all_rows(dataset: Dataset, table: Table) -> Result:
    return await dataset.ask(f"SELECT * FROM {quote_name(table.name)}", limits=COMPARE_LIMITS)
