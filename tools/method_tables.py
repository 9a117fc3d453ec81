"""The table of the control plane for the docs: each method with its parameters."""

from __future__ import annotations

import msgspec

from arp.control.connection import OWN_METHODS
from arp.control.control import METHODS
from tools.doc_tables import table


def methods() -> str:
    """Return every method with its parameters; optional ones have a question mark."""
    return table(
        ["method", "parameters"],
        [
            [f"`{name}`", _parameters(method.params)]
            for name, method in (OWN_METHODS | METHODS).items()
        ],
    )


def _parameters(shape: type[msgspec.Struct]) -> str:
    names = [
        f"`{field.encode_name}`" if field.required else f"`{field.encode_name}?`"
        for field in msgspec.structs.fields(shape)
    ]
    return " ".join(names)
