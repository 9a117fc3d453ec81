"""Components of foreign agents, frameworks and tools, reduced to what can be shown.

As in `foreign_names`, what does not fit is shortened or dropped with a warning. Otherwise a refused
commit could end the turn.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from arp.protocol.components import Component
from arp.protocol.errors import ArpError
from arp.protocol.json_value import Json, JsonObject
from arp.protocol.validate import check_component
from arp.record.wording import encoded

SHARE: Final = 2
"""A component may use 1/SHARE of the largest message, because a commit may hold others."""


class FittingComponent(NamedTuple):
    """Component that fits into one commit."""

    component: Component | None
    """The component; `None` if nothing of it can be shown."""
    warning: str = ""
    """What is left out; empty if nothing is."""


def fitting_component(given: Component | Json, max_message_bytes: int) -> FittingComponent:
    """Return the part of a component that can be shown: of a too large table, its first rows.

    Args:
        given: The component, also as JSON without an id.
        max_message_bytes: Largest message of the session, in bytes.
    """
    if not isinstance(given, Component | dict):
        return FittingComponent(None, "the value is not a component: it is not an object")
    try:
        one = (
            given
            if isinstance(given, Component)
            else {"id": "", **msgspec.json.decode(encoded(given))}
        )
        checked = check_component(one, empty_ids=True)
        size = len(msgspec.json.encode(checked))
    except (TypeError, ValueError, ArpError) as wrong:
        return FittingComponent(None, f"the value is not a component: {wrong}")
    most = max_message_bytes // SHARE
    if size <= most:
        return FittingComponent(checked)
    if checked.type == "table" and (rows := _fitting_rows(checked.props, size, most)):
        every = len(checked.props["rows"])
        note = f"the first {len(rows):,} of {every:,} rows"
        title = checked.props.get("title")
        props = {**checked.props, "rows": rows, "title": f"{title} ({note})" if title else note}
        # The highlighted row may be cut off.
        props.pop("highlight", None)
        cut = msgspec.structs.replace(checked, props=props)
        return FittingComponent(cut, f"a table of {size:,} bytes is too large: it shows {note}")
    return FittingComponent(
        None, f"a {checked.type} of {size:,} bytes is not shown; at most {most:,} are"
    )


def _fitting_rows(props: JsonObject, size: int, most: int) -> list[Json]:
    """Return the first rows that fit; none if the rest of the table is too large already."""
    rows: list[Json] = props["rows"]
    # 200 bytes are kept free for the note in the title.
    left = most - (size - len(msgspec.json.encode(rows))) - 200
    kept: list[Json] = []
    for row in rows:
        left -= len(msgspec.json.encode(row)) + 1
        if left < 0:
            break
        kept.append(row)
    return kept
