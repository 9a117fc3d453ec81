"""The six ops look on the wire as the protocol says."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from arp.protocol.components import Component
from arp.protocol.patch import (
    OP_NAMES,
    Append,
    Insert,
    PatchOp,
    Remove,
    Reorder,
    Replace,
    Update,
)

TEXT = Component("t", "text", {"content": "x"})
WIRE = {"id": "t", "type": "text", "props": {"content": "x"}}


@pytest.mark.parametrize(
    ("op", "wire"),
    [
        (
            Update("a", "props.x", 1),
            {"op": "update", "target": "a", "path": "props.x", "value": 1},
        ),
        (
            Update("a", "props.x", None),
            {"op": "update", "target": "a", "path": "props.x", "value": None},
        ),
        (
            Append("a", "props.x", "y"),
            {"op": "append", "target": "a", "path": "props.x", "value": "y"},
        ),
        (
            Append("a", "props.x", [1], 2),
            {"op": "append", "target": "a", "path": "props.x", "value": [1], "offset": 2},
        ),
        (Insert(TEXT), {"op": "insert", "component": WIRE}),
        (Insert(TEXT, None), {"op": "insert", "component": WIRE, "after": None}),
        (
            Insert(TEXT, "b", "g"),
            {"op": "insert", "component": WIRE, "after": "b", "parent": "g"},
        ),
        (Remove("a"), {"op": "remove", "target": "a"}),
        (Replace("a", TEXT), {"op": "replace", "target": "a", "component": WIRE}),
        (Reorder("a", None), {"op": "reorder", "target": "a", "after": None}),
        (Reorder("a", "b"), {"op": "reorder", "target": "a", "after": "b"}),
    ],
)
def test_op_looks_on_the_wire_as_the_protocol_says(op: PatchOp, wire: dict[str, Any]) -> None:
    """protocol.md 4."""
    assert msgspec.to_builtins(op) == wire
    assert msgspec.convert(wire, PatchOp) == op
    assert OP_NAMES[type(op)] == wire["op"]


def test_insert_tells_first_from_last() -> None:
    """`after: null` = first, absent = last."""
    assert msgspec.convert({"op": "insert", "component": WIRE}, Insert).after is UNSET
    assert msgspec.convert({"op": "insert", "component": WIRE, "after": None}, Insert).after is None
