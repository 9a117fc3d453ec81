"""The table of the control plane for the docs: each method with its parameters."""

from __future__ import annotations

import msgspec

from arp.control.connection import Initialize
from arp.control.methods import METHODS
from arp.control.subscriptions import Subscribe, Unsubscribe
from tools.doc_tables import table

CONVERSATION: dict[str, type[msgspec.Struct]] = {
    "initialize": Initialize,
    "agentSession/subscribe": Subscribe,
    "agentSession/unsubscribe": Unsubscribe,
}
"""Methods of a connection itself."""


def methods() -> str:
    """Gives every method with its parameters; those that may be left out with a question mark."""
    shapes = CONVERSATION | {name: method.params for name, method in METHODS.items()}
    return table(
        ["method", "parameters"],
        [[f"`{name}`", _parameters(shape)] for name, shape in shapes.items()],
    )


def _parameters(shape: type[msgspec.Struct]) -> str:
    names = [
        f"`{field.encode_name}`" if field.required else f"`{field.encode_name}?`"
        for field in msgspec.structs.fields(shape)
    ]
    return " ".join(names)
