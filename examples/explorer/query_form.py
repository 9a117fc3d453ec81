"""Forms: values for the parameters of a statement, and a query without SQL."""

from __future__ import annotations

from dataclasses import dataclass

from arp import Component, Turn, ui
from asks import ChartWish
from connection import Cell
from query_plan import Condition, Function, Group, Measure, Operator, Parameter, Part, Plan
from question_conditions import literal
from schema import Table

ANY = "(all)"
"""The option that leaves out a part of the form."""

FUNCTIONS: dict[str, Function] = {
    "average": "avg",
    "total": "sum",
    "lowest": "min",
    "highest": "max",
    "number of rows": "count",
}

DATE_PARTS: dict[str, Part] = {
    "month": "month",
    "year": "year",
    "year and month": "year-month",
    "weekday": "weekday",
}

CHARTS: dict[str, ChartWish] = {
    "what suits it": "auto",
    "bar chart": "bar",
    "line chart": "line",
    "pie chart": "pie",
    "table only": "none",
}

OPERATORS: tuple[Operator, ...] = ("=", "<>", "<", "<=", ">", ">=", "contains")


@dataclass(frozen=True)
class FormQuery:
    """The request of a completed form."""

    plan: Plan
    parameters: dict[str, Cell]
    wish: ChartWish


async def ask_parameters(turn: Turn, names: tuple[str, ...]) -> dict[str, Cell]:
    """Return a value for each parameter of a statement; if there are any, ask in one form."""
    if not names:
        return {}
    fields = [
        ui.field(f"p{number}", label=name, required=True) for number, name in enumerate(names)
    ]
    answer = await turn.ask(
        ui.form(fields, title="Values for the query", submit_label="Run the query")
    )
    return {name: literal(str(answer[f"p{number}"])) for number, name in enumerate(names)}


async def ask_query(turn: Turn, table: Table) -> FormQuery:
    """Show the form for a query of `table`, and return the query that the user chose."""
    return query_of(await turn.ask(form_for(table)), table)


def form_for(table: Table) -> Component:
    """Return a form that fits the columns of `table`."""
    names = [column.name for column in table.columns]
    numbers = [column.name for column in table.of_kind("number")]
    selects = (
        ("function", "Compute", list(FUNCTIONS) if numbers else ["number of rows"]),
        ("measure", "of", numbers or [ANY]),
        ("group", "by", group_options(table)),
        ("column", "where", [ANY, *names]),
        ("operator", "is", list(OPERATORS)),
    )
    fields = [
        ui.field(name, label=label, field_type="select", options=options, value=options[0])
        for name, label, options in selects
    ]
    fields.append(ui.field("value", label="value", placeholder="for instance 10"))
    if table.date_column():
        fields.append(ui.field("from_date", label="from", field_type="date"))
        fields.append(ui.field("to_date", label="up to", field_type="date"))
    kinds = list(CHARTS)
    fields.append(
        ui.field("chart", label="Show as", field_type="select", options=kinds, value=kinds[0])
    )
    return ui.form(fields, title=f"Query {table.name}", submit_label="Run the query")


def group_options(table: Table) -> list[str]:
    """Return the possible groups of rows: columns with few values, parts of the date, all rows."""
    parts = list(DATE_PARTS) if table.date_column() else []
    few = [column.name for column in table.of_kind("text") if column.values]
    rest = [column.name for column in table.columns]
    return [*dict.fromkeys([*few, *parts, *rest]), ANY]


def query_of(answer: dict[str, Cell], table: Table) -> FormQuery:
    """Return the query for the fields of a form; its values are parameters, never SQL.

    A field that names no column of `table` counts as left out, so that only names from the
    schema get into the statement.
    """
    names = {column.name for column in table.columns}
    function = FUNCTIONS.get(str(answer.get("function")), "count")
    column = str(answer.get("measure"))
    measure = (
        Measure(function, column) if column in names and function != "count" else Measure("count")
    )
    conditions, parameters = _conditions(answer, table)
    plan = Plan(table.name, (measure,), _groups(str(answer.get("group")), table), conditions)
    return FormQuery(plan, parameters, CHARTS.get(str(answer.get("chart")), "auto"))


def _groups(wanted: str, table: Table) -> tuple[Group, ...]:
    date = table.date_column()
    if date is not None and wanted in DATE_PARTS:
        return (Group(date.name, DATE_PARTS[wanted]),)
    names = {column.name for column in table.columns}
    return (Group(wanted),) if wanted in names else ()


def _conditions(
    answer: dict[str, Cell], table: Table
) -> tuple[tuple[Condition, ...], dict[str, Cell]]:
    conditions: list[Condition] = []
    parameters: dict[str, Cell] = {}
    operator = next((each for each in OPERATORS if each == answer.get("operator")), None)
    value = str(answer.get("value") or "").strip()
    column = str(answer.get("column"))
    if value and operator and column in {each.name for each in table.columns}:
        conditions.append(Condition(column, operator, Parameter("value")))
        parameters["value"] = literal(value)
    date = table.date_column()
    bounds: tuple[tuple[str, Operator], ...] = (("from_date", ">="), ("to_date", "<="))
    for name, bound in bounds:
        if date is not None and answer.get(name):
            conditions.append(Condition(date.name, bound, Parameter(name), "day"))
            parameters[name] = str(answer[name])
    return tuple(conditions), parameters
