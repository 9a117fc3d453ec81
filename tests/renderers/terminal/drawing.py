"""Drawing for tests: components as plain lines of a fixed width."""

from __future__ import annotations

import re
from typing import Any

from rich.cells import cell_len

from arp.protocol.components import Component
from arp.protocol.json_value import Json
from arp_terminal.options import Options
from arp_terminal.painter import Painter
from arp_terminal.render import render

PROMPT = "\N{HEAVY RIGHT-POINTING ANGLE QUOTATION MARK ORNAMENT}"
"""Before the user's words."""

SGR = re.compile(r"\x1b\[[0-9;]*m")


def drawn(type_name: str, cells: int = 60, unicode: bool = True, **props: Json) -> str:
    """Gives the lines of a component without styles, joined; `_type` stands for the prop `type`."""
    if "_type" in props:
        props["type"] = props.pop("_type")
    options = Options(width=cells, colour=False, unicode=unicode)
    return "\n".join(Painter(options).lines(render(Component("c", type_name, props), options)))


def painted(component: Component, **options: Any) -> list[str]:
    """Return the lines of a component as they would be written."""
    chosen = Options(**options)
    return Painter(chosen).lines(render(component, chosen))


def picture(text: str) -> str:
    """Return a picture that stands indented in a test as its lines."""
    lines = text.strip("\n").split("\n")
    margin = min((len(line) - len(line.lstrip(" ")) for line in lines if line.strip()), default=0)
    return "\n".join(line[margin:].rstrip(" ") for line in lines).rstrip("\n")


def widest(lines: list[str]) -> int:
    """Return the cells of the widest line, styles not counted."""
    return max((cell_len(SGR.sub("", line)) for line in lines), default=0)
