"""What the user sees: each function shows one kind of output."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from arp import Component, Turn, ui
from bars import chart_in_letters
from charts import ChartPlan
from compare import MAX_ROWS_IN_DIFF, Differences, as_texts
from connection import Cell, Result
from dataset import Dataset
from errors import ExplorerError
from headings import heading, in_legend
from pace import say, show_chart
from schema import Table
from workspace import Workspace

MAX_SHOWN_ROWS = 200
"""Most rows of a table on the screen; an export has all rows."""

MAX_SHOWN_CHARACTERS = 300
"""Most characters of one cell."""

MAX_SHOWN_TEXT = 200_000
"""Most characters of a table, so that the message stays below the protocol's limit."""

EXAMPLES = (
    (
        "plain questions",
        "*average temperature by month*, *top 5 cars by horsepower*, *rainy days in 2013*",
    ),
    ("charts", "*plot horsepower vs weight*, *pie chart of weather*, *as a line chart*"),
    ("tables", "*tables*, *describe cars*, *show first 50 rows of cars*"),
    ("SQL", "any SELECT; with `:name` in it, I ask for the value"),
    ("a form", "*form for cars* puts a query together without SQL"),
    ("files", "send a CSV or SQLite file; *diff old new* shows the rows that changed"),
    ("export", "*export*, *export as hot-days*"),
)
"""The text of the help."""


COMMANDS = (
    ("help", "What you can ask, with examples", ""),
    ("tables", "The tables that there are", ""),
    ("describe", "The columns of a table", "table"),
    ("form", "A query without SQL", "for table"),
    ("export", "Write the last result, or a table, to a CSV file", "table, as name"),
)
"""The slash commands: name, description, and arguments.

Each also works without the slash.
"""

MAX_TRIES = 4
"""Example questions for a new user."""


async def small_talk(turn: Turn, workspace: Workspace, kind: Literal["greeting", "thanks"]) -> None:
    """Answer a greeting with what the user can ask, and thanks with a word."""
    if kind == "thanks":
        await say(turn, "You are welcome. Ask me anything else about the data.")
        return
    about = _names(workspace)
    await say(turn, f"Hello! Ask me about {about}: I answer with charts and tables. ")
    turn.show(ui.choices(_tries(workspace), title="Try one of these"))


async def not_understood(turn: Turn, workspace: Workspace) -> None:
    """Explain in one sentence what the explorer understands, and offer questions about the data."""
    about = _names(workspace)
    await say(
        turn,
        f"I did not understand that, but I can count, compare and chart what is in {about}: "
        "try one of these, or type `/help`. ",
    )
    turn.show(ui.choices(_tries(workspace), title="Try one of these"))


def _names(workspace: Workspace) -> str:
    """Return the names of the tables for a sentence."""
    tables = [table.name for dataset in workspace.in_order() for table in dataset.schema.tables]
    shown = [f"**{name}**" for name in tables[:3]]
    if len(tables) > len(shown):
        shown.append(f"{len(tables) - len(shown)} more tables" if tables[4:] else "one more table")
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if shown[1:] else shown) or "your files"


def _tries(workspace: Workspace) -> list[str]:
    """Return questions about the current data, a few for each table."""
    tables = workspace.dataset.schema.tables[:2]
    asked = [question for table in tables for question in questions_about(table)[: MAX_TRIES // 2]]
    return _once(*asked, "tables", "help")


def _once(*questions: str) -> list[str]:
    """Return each question once: two tables can suggest the same."""
    return list(dict.fromkeys(questions))


async def show_tables(turn: Turn, workspace: Workspace) -> None:
    """Show every table of every data set, with its rows and columns."""
    for dataset in workspace.in_order():
        items: dict[str, Cell] = {table.name: _size(table) for table in dataset.schema.tables}
        turn.show(ui.key_value(items or {"(no table)": ""}, title=f"Tables in {dataset.name}"))
        if dataset.unread:
            turn.show(unread_card(dataset.unread))
    await say(turn, "Say *describe* and a table's name to see its columns, or just ask.")


def unread_card(unread: Iterable[tuple[str, str]]) -> Component:
    """Return a card with the files that have no table, each with the reason."""
    sections = [ui.section(file_name, reason) for file_name, reason in unread]
    return ui.status_card("warning", "I cannot read these files", sections=sections)


def _size(table: Table) -> str:
    rows = "rows not counted" if table.row_count is None else f"{table.row_count:,} rows"
    names = ", ".join(column.name for column in table.columns[:8])
    return f"{rows}: {names}{', …' if len(table.columns) > 8 else ''}"


async def describe_table(turn: Turn, dataset: Dataset, name: str) -> None:
    """Show a table's columns, typical values, and the number of rows."""
    table = dataset.schema.table(name)
    if table is None:
        raise ExplorerError(f"There is no table “{name}”.", "Say *tables* to see them.")
    rows: list[list[Cell]] = [
        [column.name, column.declared or "–", column.kind, ", ".join(column.values[:8])]
        for column in table.columns
    ]
    await say(turn, f"**{table.name}** has {_size(table).partition(':')[0]}.")
    turn.show(ui.table(["column", "type", "looks like", "values"], rows, title=table.name))
    turn.show(ui.choices(_once(f"show {name}", *questions_about(table)), title="Ask, for instance"))


def questions_about(table: Table) -> list[str]:
    """Return plain questions that this table can answer."""
    numbers, texts = table.of_kind("number"), table.of_kind("text")
    groups = [column.name for column in texts if column.values][:1]
    asked = [f"number of rows by {name}" for name in groups]
    if numbers and table.date_column():
        asked.append(f"average {numbers[0].name} by month")
    asked += [f"average {numbers[-1].name} by {name}" for name in groups if numbers]
    if len(numbers) > 1:
        asked.append(f"{numbers[0].name} against {numbers[1].name}")
    return asked[:4]


def error_card(error: ExplorerError) -> Component:
    """Return a card that says what is wrong and what to do."""
    sections = [ui.section("What to do", error.hint)] if error.hint else []
    return ui.status_card(error.status, error.title, error.message, sections=sections)


def show_help(turn: Turn, workspace: Workspace) -> None:
    """Show what the user can ask, and questions about the current data."""
    lines = "\n".join(f"- **{name}**: {examples}" for name, examples in EXAMPLES)
    turn.show(ui.markdown(f"I explore tables. Ask me, for instance:\n\n{lines}"))
    tables = workspace.dataset.schema.tables
    asked = [question for table in tables[:2] for question in questions_about(table)[:2]]
    turn.show(ui.choices(_once("tables", *asked, "form"), title="Try one"))


async def show_result(turn: Turn, title: str, result: Result, chart: ChartPlan | None) -> None:
    """Show the rows of a result, after its chart if there is one."""
    if chart is not None:
        await show_chart(turn, chart_of(chart, title))
    if result.columns and (len(result.rows) > 1 or len(result.columns) > 4):
        turn.show(table_of(result, title if chart is None else "The numbers"))


def chart_of(chart: ChartPlan, title: str) -> Component:
    """Return the component of a chart.

    Its fallback is a chart as text, not the catalog's table: the table with the same numbers
    follows anyway.
    """
    letters = chart_in_letters(chart)
    if letters is None:
        count = len(chart.labels)
        fallback = ui.text(f"{title or 'A chart'}: {chart.kind} of {count} points, listed below.")
    else:
        fallback = ui.code_block(letters, title=title or None)
    names = in_legend([series.label for series in chart.series], title)
    datasets = [
        ui.dataset(name, list(series.data))
        for name, series in zip(names, chart.series, strict=True)
    ]
    return ui.chart(
        chart.kind,
        labels=list(chart.labels),
        datasets=datasets,
        title=title or None,
        fallback=fallback,
    )


def table_of(result: Result, title: str) -> Component:
    """Return the rows as a table; a long table is cut and says so."""
    rows: list[list[Cell]] = []
    characters = 0
    for row in result.rows[:MAX_SHOWN_ROWS]:
        shown = [_shown(cell) for cell in row]
        characters += sum(len(str(cell)) for cell in shown)
        if characters > MAX_SHOWN_TEXT:
            break
        rows.append(shown)
    if len(rows) < len(result.rows) or result.truncated:
        known = f"more than {len(result.rows):,}" if result.truncated else f"{len(result.rows):,}"
        title = f"{title or 'Result'} (the first {len(rows)} of {known} rows)"
    many = len(rows) > 10
    return ui.table(
        [heading(name) for name in result.columns],
        rows,
        title=title or None,
        searchable=many,
        sortable=len(rows) > 1,
    )


def _shown(cell: Cell) -> Cell:
    if isinstance(cell, str) and len(cell) > MAX_SHOWN_CHARACTERS:
        return cell[:MAX_SHOWN_CHARACTERS] + "…"
    return round(cell, 6) if isinstance(cell, float) else cell


def show_differences(turn: Turn, differences: Differences, old: str, new: str) -> None:
    """Show how many rows differ between two tables, and the rows themselves as a diff."""
    items: dict[str, Cell] = {
        "changed": len(differences.changed),
        "added": len(differences.added),
        "removed": len(differences.removed),
        "rows matched by": ", ".join(differences.key) or "the whole row",
    }
    if differences.only_old or differences.only_new:
        items["columns only in one"] = ", ".join([*differences.only_old, *differences.only_new])
    turn.show(ui.key_value(items, title=f"From {old} to {new}"))
    if differences.count:
        before, after = as_texts(differences)
        title = "Changed rows"
        if differences.count > MAX_ROWS_IN_DIFF:
            title = f"The first {MAX_ROWS_IN_DIFF} of {differences.count:,} changed rows"
        turn.show(
            ui.diff(before, after, title=title, before_label=old, after_label=new, language="csv")
        )
