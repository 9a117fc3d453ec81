"""The props of the three layout components; their children stand in them as plain objects.

Source: protocol.md 3.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from arp.protocol.prop_types import Child, Count, Direction, Icon, Ratio


class GroupProps(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """`group`: components in a row or a column."""

    children: tuple[Child, ...]
    direction: Direction = "vertical"
    gap: Literal["none", "small", "medium", "large"] = "medium"


class Tab(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One tab and the component behind it."""

    label: str
    component: Child
    icon: Icon | None = None


class TabsProps(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """`tabs`: one component at a time; a change is told as the action `tab_change`."""

    tabs: tuple[Tab, ...]
    active_tab: Count = 0
    """The number of the tab that is open, from 0."""


class SplitProps(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """`split`: two components that share a place."""

    left: Child
    right: Child
    direction: Direction = "horizontal"
    ratio: Ratio = "1:1"
