"""A question for permission: what is asked, the whole input, and the keys that answer."""

from __future__ import annotations

import json

from rich.console import RenderableType
from rich.text import Text

from arp.protocol.json_value import Json, JsonObject
from arp.protocol.messages import Permission
from arp.protocol.screen import TurnScreen
from arp_terminal.drawing.blocks import indented, stack
from arp_terminal.drawing.palette import ACCENT, BAD, BOLD, DIM, GOOD, TITLE, WARN
from arp_terminal.drawing.props import label, line, lines, paragraph
from arp_terminal.drawing.questions import question_rail
from arp_terminal.options import Options


def input_of(turn: TurnScreen, permission: Permission) -> str:
    """Return the input to be approved, as JSON."""
    args = (tool.args for tool in turn.tools if tool.call_id == permission.call_id)
    return permission.input or next(args, "")


def draw_permission(
    props: JsonObject, permission: Permission, shown: str, options: Options
) -> RenderableType:
    """Draw an open question for permission.

    Every character of the input is there: who allows it has to see all of it.

    Args:
        props: Of the `confirm` that asks.
        permission: As the screen has it.
        shown: The input to be approved, as JSON.
        options: How to draw.
    """
    body: list[RenderableType | None] = [label(props.get("title"), TITLE)]
    if props.get("message"):
        body.append(paragraph(props["message"]))
    body += _input(shown)
    if props.get("destructive"):
        body.append(Text("This cannot be undone.", style=BAD))
    if permission.expires_at:
        body.append(Text(f"until {line(permission.expires_at)[:19]}Z", style=DIM))
    style = WARN if props.get("destructive") else ACCENT
    return question_rail(stack([*body, *_keys(props, permission)]), style, options)


def _input(shown: str) -> list[RenderableType]:
    try:
        decoded: Json = json.loads(shown)
    except (ValueError, RecursionError):
        return [paragraph(shown, BOLD)] if shown.strip() else []
    if not isinstance(decoded, dict):
        return [paragraph(shown, BOLD)]
    drawn: list[RenderableType] = []
    for name, value in decoded.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        head = label(f"{line(name)}:", DIM)
        if "\n" in text:
            drawn += [head, indented(paragraph(text.rstrip("\n"), BOLD))]
        else:
            drawn.append(head.append(" ").append(lines(text), style=BOLD))
    return drawn


def _keys(props: JsonObject, permission: Permission) -> list[RenderableType]:
    yes = line(props.get("confirm_label"), "yes, once")
    found = label("[y] ", GOOD).append(yes, style=BOLD)
    found.append("   [n] ", style=BAD).append(line(props.get("deny_label"), "no"), style=BOLD)
    found.append("   N REASON says why", style=DIM)
    drawn: list[RenderableType] = [found]
    if permission.session_rule and "session" in permission.scopes:
        rule = f"for this session: {line(permission.session_rule)}"
        drawn.append(label("[s] ", GOOD).append(rule, style=BOLD))
    if permission.editable:
        drawn.append(label("[e] ", ACCENT).append("edit the arguments", style=BOLD))
    return drawn
