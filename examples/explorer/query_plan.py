"""A question as data, and the SQL that answers it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from connection import quote_name, quote_text
from headings import alias_in_words, in_words, joined

Function: TypeAlias = Literal["avg", "sum", "min", "max", "count", "distinct"]
Part: TypeAlias = Literal[
    "value", "day", "month", "quarter", "year", "year-month", "weekday", "hour"
]
Operator: TypeAlias = Literal["=", "<>", "<", "<=", ">", ">=", "contains"]

MONTHS = "JanFebMarAprMayJunJulAugSepOctNovDec"
WEEKDAYS = "SunMonTueWedThuFriSat"


@dataclass(frozen=True)
class Measure:
    """A number that is computed for each group."""

    function: Function
    column: str = ""
    """The column; empty for the number of rows."""

    @property
    def alias(self) -> str:
        """The name of its column in the result."""
        return f"{self.function}_{self.column}" if self.column else "count"

    @property
    def sql(self) -> str:
        """The expression."""
        if not self.column:
            return "count(*)"
        name = quote_name(self.column)
        if self.function == "distinct":
            return f"count(DISTINCT {name})"
        call = f"{self.function}({name})"
        return f"round({call}, 2)" if self.function in ("avg", "sum") else call

    @property
    def words(self) -> str:
        """The name in a title."""
        return alias_in_words(self.alias) if self.column else "number of rows"


@dataclass(frozen=True)
class Group:
    """A group of rows."""

    column: str
    part: Part = "value"

    @property
    def alias(self) -> str:
        """The name of its column in the result."""
        return self.column if self.part in ("value", "day") else self.part.replace("-", "_")

    @property
    def words(self) -> str:
        """The name in a title."""
        return "year and month" if self.part == "year-month" else in_words(self.alias)

    @property
    def key(self) -> str:
        """The expression that groups and sorts."""
        name = quote_name(self.column)
        return {
            "value": name,
            "day": f"date({name})",
            "month": f"strftime('%m', {name})",
            "quarter": f"strftime('%Y', {name}) || '-Q' || ((strftime('%m', {name}) + 2) / 3)",
            "year": f"strftime('%Y', {name})",
            "year-month": f"strftime('%Y-%m', {name})",
            "weekday": f"(strftime('%w', {name}) + 6) % 7",
            "hour": f"strftime('%H', {name})",
        }[self.part]

    @property
    def label(self) -> str:
        """The expression for display."""
        name = quote_name(self.column)
        if self.part == "month":
            return f"substr('{MONTHS}', 3 * strftime('%m', {name}) - 2, 3)"
        if self.part == "weekday":
            return f"substr('{WEEKDAYS}', 3 * strftime('%w', {name}) + 1, 3)"
        return self.key


@dataclass(frozen=True)
class Parameter:
    """A value that is given when the query runs; in SQL it is `:name`."""

    name: str


@dataclass(frozen=True)
class Condition:
    """A condition for rows."""

    column: str
    operator: Operator
    value: str | int | float | Parameter
    part: Part = "value"

    @property
    def sql(self) -> str:
        """The expression with its value."""
        left = Group(self.column, self.part).key
        if isinstance(self.value, Parameter):
            value = f":{self.value.name}"
            if self.operator == "contains":
                return f"instr(lower({left}), lower({value})) > 0"
            return f"{left} {self.operator} {value}"
        if self.operator == "contains":
            return f"instr(lower({left}), {quote_text(str(self.value).lower())}) > 0"
        if isinstance(self.value, str):
            nocase = " COLLATE NOCASE" if self.part == "value" else ""
            return f"{left} {self.operator} {quote_text(self.value)}{nocase}"
        return f"{left} {self.operator} {self.value!r}"

    @property
    def words(self) -> str:
        """The condition in words, for a title."""
        value = f":{self.value.name}" if isinstance(self.value, Parameter) else self.value
        return f"{in_words(self.column)} {self.operator} {value}"


@dataclass(frozen=True)
class Plan:
    """A question about one table: rows if there is no measure, otherwise a row for each group."""

    table: str
    measures: tuple[Measure, ...] = ()
    groups: tuple[Group, ...] = ()
    conditions: tuple[Condition, ...] = ()
    columns: tuple[str, ...] = ()
    """For rows: the columns; empty for all."""
    order_by: str = ""
    """A column or alias; empty to sort by the groups."""
    descending: bool = True
    limit: int | None = None

    @property
    def sql(self) -> str:
        """The SQL statement."""
        lines = [f"SELECT {', '.join(self._selected())}", f"FROM {quote_name(self.table)}"]
        if self.conditions:
            lines.append("WHERE " + " AND ".join(condition.sql for condition in self.conditions))
        if self.groups and self.measures:
            lines.append("GROUP BY " + ", ".join(group.key for group in self.groups))
        if self.order_by:
            direction = "DESC" if self.descending else "ASC"
            ties = [group.key for group in self.groups if self.measures]
            order = [f"{quote_name(self.order_by)} {direction} NULLS LAST", *ties]
            lines.append("ORDER BY " + ", ".join(order))
        elif self.groups and self.measures:
            lines.append("ORDER BY " + ", ".join(group.key for group in self.groups))
        if self.limit is not None:
            lines.append(f"LIMIT {self.limit}")
        return "\n".join(lines)

    def _selected(self) -> list[str]:
        if not self.measures:
            return [quote_name(column) for column in self.columns] or ["*"]
        groups = [
            group.key if group.part == "value" else f"{group.label} AS {quote_name(group.alias)}"
            for group in self.groups
        ]
        return groups + [
            f"{measure.sql} AS {quote_name(measure.alias)}" for measure in self.measures
        ]

    @property
    def title(self) -> str:
        """The question in words."""
        title = joined([measure.words for measure in self.measures]) or f"rows of {self.table}"
        if self.groups:
            title += " by " + joined([group.words for group in self.groups])
        if self.conditions:
            title += ", where " + joined([condition.words for condition in self.conditions])
        if self.limit is not None:
            end = "highest" if self.descending else "lowest"
            by = alias_in_words(self.order_by)
            title += f", {self.limit} {end} by {by}" if by else ""
        return title[:1].upper() + title[1:]


def count_of(table: str, group: Group, limit: int | None = None) -> Plan:
    """Return the plan that counts rows by `group`, the most frequent first."""
    return Plan(table, (Measure("count"),), (group,), order_by="count", limit=limit)


def histogram_sql(table: str, column: str, bins: int = 10) -> str:
    """Return SQL that counts the values of a column of numbers in `bins` equal ranges."""
    name, source = quote_name(column), quote_name(table)
    return (
        f"WITH bounds AS (\n"
        f"  SELECT min({name}) AS low, (max({name}) - min({name})) / {bins}.0 AS step\n"
        f"  FROM {source})\n"
        f"SELECT round(low + step * min({bins - 1}, CAST(({name} - low) / step AS INTEGER)), 2)"
        f" AS {quote_name(column + '_from')},\n"
        f"       count(*) AS count\n"
        f"FROM {source}, bounds\n"
        f"WHERE {name} IS NOT NULL\n"
        f"GROUP BY 1 ORDER BY 1"
    )
