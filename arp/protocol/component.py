"""A component: what an agent shows, of one type, with an id that patches can name."""

from __future__ import annotations

import msgspec

from arp.protocol.json_value import JsonObject


class Component(msgspec.Struct, frozen=True, omit_defaults=True):
    """One component as it stands on the wire.

    Source: protocol.md 3.
    """

    id: str
    """Unique in its surface, over all levels; empty until the turn that shows it gives it one."""
    type: str
    """A name of the catalog, or `x-{vendor}-{name}`, or `s-{name}`."""
    props: JsonObject
    """Plain JSON; the children of a layout component stand in it as plain objects."""
    version: int = 1
    fallback: Component | None = None
    """Shown instead, before the catalog's chain, where the type is not known."""
