"""Convert tabular data to column names and rows of cells, limited to a number of rows.

A data frame is cut before it is converted, so a large one takes no more time than a small one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from msgspec import Struct

from arp.protocol.components import Component
from arp.protocol.errors import InvalidComponent
from arp.protocol.json_value import Json, kind_of
from arp.protocol.safe_text import well_formed
from arp.values.cell import cell_of, cells_of, plain_value, single
from arp.values.records import record_of

MAX_ROWS: Final = 1_000
"""Default limit of rows in a table made from data."""

MAX_COLUMNS: Final = 100
"""Limit of columns in a table made from data."""

UNNAMED: Final = "(unnamed)"
"""Name of a column without a name (`None` or NaN in the data)."""

VALUE: Final = "value"
"""Name of the only column of data without names."""


class Columns(Struct, frozen=True):
    """Converted data: names of columns, and cells."""

    names: list[str]
    """Names of the columns, those of the index first."""
    rows: list[list[Json]]
    """Rows of cells, each with one cell per name."""
    total_rows: int
    """Number of rows of the data; larger than the length of `rows` if rows were cut."""
    total_columns: int
    """Number of columns of the data; larger than the length of `names` if columns were cut."""
    indexes: int = 0
    """Number of columns, at the beginning, that are the index of a data frame."""
    values: list[list[Any]] = []
    """Unconverted values of each column, in the selected rows."""

    @property
    def mark(self) -> str:
        """Note about cut data, such as `first 1,000 of 50,000 rows`; empty if nothing was cut."""
        parts: list[str] = []
        if self.total_rows > len(self.rows):
            parts.append(f"first {len(self.rows):,} of {self.total_rows:,} rows")
        if self.total_columns > len(self.names):
            parts.append(f"first {len(self.names):,} of {self.total_columns:,} columns")
        return ", ".join(parts)

    def column(self, index: int) -> list[Json]:
        """Return the cells of a column by its index; two columns may have the same name."""
        return [row[index] for row in self.rows]

    def place(self, name: object, where: str) -> int:
        """Return the index of the only column with a name.

        Args:
            name: Name from the author of an agent.
            where: Name of the argument in error messages.

        Raises:
            InvalidComponent: There is no such column (the message names a similar one, or all), or
                there are several.
        """
        if not isinstance(name, str):
            raise InvalidComponent(f"{where}: expected the name of a column, got {kind_of(name)}")
        count = self.names.count(name)
        if count == 1:
            return self.names.index(name)
        if count > 1:
            raise InvalidComponent(
                f"{where}: {count} columns are named {name!r:.60}; give each its own name first"
            )
        from difflib import get_close_matches  # only needed after a mistake

        near = get_close_matches(name, self.names, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(self.names)}"
        raise InvalidComponent(f"{where}: no column {name!r:.60}; {hint}")


def marked(title: str | None, mark: str) -> str | None:
    """Return a title with a note such as `Columns.mark` added."""
    if not mark:
        return title
    return f"{title} ({mark})" if title else f"{mark[:1].upper()}{mark[1:]}"


class _Data(NamedTuple):
    """Selected rows of tabular data; the values are not converted to cells yet."""

    names: list[str]
    values: list[list[Any]]
    """Values of each column."""
    total_rows: int
    indexes: int = 0


RowSelector = Callable[[int], slice]
"""Returns the slice of rows to use, given the total number of rows."""

Reader = Callable[[Any, RowSelector, "bool | None"], _Data]
"""Reads rows of a value. The third argument is the argument `index` of `columns_of`."""


def is_tabular(value: Any) -> bool:
    """Return whether a value is a data frame, array or table that `columns_of` reads."""
    return _reader(value) is not None


def columns_of(
    value: Any, *, rows: int | RowSelector = MAX_ROWS, index: bool | None = None
) -> Columns | None:
    """Return the columns of tabular data; `None` for other values.

    Supported are data frames and series of pandas and polars, tables of pyarrow, arrays of numpy,
    lists of mappings, models, dataclasses and rows (see `record_of`), and mappings from names to
    lists.

    Args:
        value: Any value.
        rows: Number of first rows to read, or a function from the total number of rows to a slice.
        index: Whether to include the index of a pandas data frame. With `None`, an index is
            included if it has a name or does not consist of integers.

    Raises:
        TypeError: The value is a lazy frame without rows, or has more than two dimensions.
    """
    reader = _reader(value)
    cut = (lambda _: slice(rows)) if isinstance(rows, int) else rows
    data = reader(value, cut, index) if reader is not None else _of_objects(value, cut)
    if data is None:
        return None
    values = data.values[:MAX_COLUMNS]
    cells = [list(row) for row in zip(*map(cells_of, values), strict=True)]
    names = data.names[:MAX_COLUMNS]
    return Columns(names, cells, data.total_rows, len(data.names), data.indexes, values)


def kind_name(value: Any) -> str:
    """Return the key in `_READERS` for a value, such as `pandas.DataFrame`; empty if none."""
    for kind in type(value).__mro__:
        name = f"{kind.__module__.partition('.')[0]}.{kind.__name__}"
        if name in _READERS:
            return name
    return ""


def _reader(value: Any) -> Reader | None:
    name = kind_name(value)
    return _READERS[name] if name else None


def name_of_column(name: Any) -> str:
    """Return the name of a column as text; the levels of a multi-index are joined in order."""
    if isinstance(name, tuple):
        return " / ".join(filter(None, map(name_of_column, name)))
    if isinstance(name, str):
        return well_formed(name)
    cell = cell_of(name)
    return UNNAMED if cell is None else str(cell)


# -- libraries -------------------------------------------------------------------------------------


def _of_pandas(frame: Any, cut: RowSelector, index: bool | None) -> _Data:
    if not hasattr(frame, "columns"):
        frame = frame.to_frame(VALUE if frame.name is None else frame.name)
    part = frame.iloc[cut(len(frame))]
    levels = [part.index.get_level_values(number) for number in range(part.index.nlevels)]
    if index is None:
        index = any(one.name is not None or one.inferred_type != "integer" for one in levels)
    levels = levels if index else []
    names = ["index" if one.name is None else name_of_column(one.name) for one in levels]
    # Columns are read by position, because two of them may have the same name.
    values = [part.iloc[:, number] for number in range(len(frame.columns))]
    names += [name_of_column(one) for one in frame.columns]
    listed = [_listed(one.tolist(), one.dtype) for one in (*levels, *values)]
    return _Data(names, listed, len(frame), len(levels))


def _of_polars(frame: Any, cut: RowSelector, _index: bool | None) -> _Data:
    if not hasattr(frame, "columns"):
        frame = frame.to_frame(frame.name or VALUE)
    columns = frame[cut(frame.height)].get_columns()
    names = [name_of_column(one) for one in frame.columns]
    return _Data(names, [_listed(one.to_list(), one.dtype) for one in columns], frame.height)


def _of_lazy(_frame: Any, _cut: RowSelector, _index: bool | None) -> _Data:
    raise TypeError("a LazyFrame has no rows yet; pass frame.collect()")


def _of_arrow(table: Any, cut: RowSelector, _index: bool | None) -> _Data:
    wanted = range(table.num_rows)[cut(table.num_rows)]
    part = table.slice(0, len(wanted)) if wanted.step == 1 else table.take(list(wanted))
    names = [name_of_column(one) for one in table.schema.names]
    listed = [_listed(one.to_pylist(), one.type) for one in part.columns]
    return _Data(names, listed, table.num_rows)


def _of_numpy(array: Any, cut: RowSelector, _index: bool | None) -> _Data:
    if array.dtype.names or array.ndim < 2:
        part = array.reshape(-1)[cut(array.size)]
        names = list(array.dtype.names or ())  # the fields of a structured array
        values = [_items(part[one]) for one in names] if names else [_items(part)]
        return _Data(names or [VALUE], values, array.size)
    if array.ndim > 2:
        shape = " × ".join(map(str, array.shape))
        raise TypeError(f"an array of {shape} has more than two dimensions; pass a part of it")
    part, width = array[cut(array.shape[0])], range(array.shape[1])
    return _Data(list(map(str, width)), [_items(part[:, one]) for one in width], array.shape[0])


def _items(array: Any) -> list[Any]:
    """Return the items of an array as Python values."""
    if array.dtype.kind in "Mmg":  # for nanoseconds, `tolist` would return integers
        return list(map(plain_value, array))
    return _listed(array.tolist(), array.dtype)


def _listed(values: list[Any], kind: object) -> list[Any]:
    """Return values of a library's type, with narrow floats rounded to their shortest form."""
    form = _NARROW.get(str(kind).lower().removesuffix("[pyarrow]"))
    if form is None:
        return values
    return [single(one, form) if isinstance(one, float) else one for one in values]


_NARROW: Final = {"float32": "f", "float": "f", "float16": "e", "halffloat": "e"}
"""Format characters of `struct` for narrow floats, by name of their type."""


_READERS: Final[dict[str, Reader]] = {
    "pandas.DataFrame": _of_pandas,
    "pandas.Series": _of_pandas,
    "polars.DataFrame": _of_polars,
    "polars.Series": _of_polars,
    "polars.LazyFrame": _of_lazy,
    "pyarrow.Table": _of_arrow,
    "pyarrow.RecordBatch": _of_arrow,
    "numpy.ndarray": _of_numpy,
}


# -- objects ---------------------------------------------------------------------------------------


def _of_objects(value: Any, cut: RowSelector) -> _Data | None:
    if isinstance(value, Mapping):
        return _of_mapping(value, cut)
    if isinstance(value, str | bytes) or not isinstance(value, Sequence) or not value:
        return None
    records: list[Mapping[Any, Any]] = []
    for one in value[cut(len(value))]:
        record = None if isinstance(one, Component) else record_of(one)
        if record is None:
            return None
        records.append(record)
    keys = list(dict.fromkeys(key for record in records for key in record))
    values = [[record.get(key) for record in records] for key in keys]
    return _Data([name_of_column(one) for one in keys], values, len(value))


def _of_mapping(value: Mapping[Any, Any], cut: RowSelector) -> _Data | None:
    """Return the columns of a mapping from names to lists of equal length."""
    columns: list[list[Any]] = []
    for one in value.values():
        items = one.tolist() if hasattr(one, "tolist") else one
        if not isinstance(items, list | tuple):
            return None
        columns.append(list(items))
    if not columns or len({len(one) for one in columns}) > 1:
        return None
    wanted = cut(len(columns[0]))
    names = [name_of_column(one) for one in value]
    return _Data(names, [one[wanted] for one in columns], len(columns[0]))
