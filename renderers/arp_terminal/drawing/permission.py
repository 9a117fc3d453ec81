"""A question for permission: what is asked, the whole input, and the answers that it offers."""

from __future__ import annotations

from rich.console import RenderableType
from rich.text import Text

from arp.protocol.connection.screen import TurnScreen
from arp.protocol.json_value import JsonObject
from arp.protocol.messages import Permission
from arp_terminal.drawing.blocks import stack
from arp_terminal.drawing.palette import ACCENT, BAD, BOLD, DIM, TITLE, WARN
from arp_terminal.drawing.props import label, line, paragraph
from arp_terminal.drawing.questions import option_text, question_rail
from arp_terminal.drawing.tool_run import whole_arguments
from arp_terminal.options import Options
from arp_terminal.prompt import ActionReply, Option

REASON_HINT = "N REASON says why"
"""How to give the reason of a no. The letter is a capital: where a single key answers, a small `n`
would answer before the reason is typed."""


def input_of(turn: TurnScreen, permission: Permission) -> str:
    """Return the input to be approved, as JSON; empty if the screen has none."""
    args = (tool.args for tool in turn.tools if tool.call_id == permission.call_id)
    return permission.input or next(args, "")


def permission_options(props: JsonObject, permission: Permission) -> tuple[Option, ...]:
    """Return the answers to a permission, with the same numbers as on the page.

    Args:
        props: Props of the `confirm` component that asks.
        permission: The permission, as it is on the screen.
    """
    once = ActionReply("confirm", {"scope": "once"})
    found = [Option("y", line(props.get("confirm_label"), "allow once"), once, 1, ("yes",))]
    if "session" in permission.scopes:
        rule = f": {line(permission.session_rule)}" if permission.session_rule else ""
        session = ActionReply("confirm", {"scope": "session"})
        found.append(Option("s", f"for this session{rule}", session, 2, ("session",)))
    no = line(props.get("deny_label"), "no")
    found.append(Option("n", no, ActionReply("deny"), len(found) + 1, ("no",)))
    if permission.editable:
        found.append(Option("e", "edit the arguments", words=("edit",)))
    return tuple(found)


def draw_permission(
    props: JsonObject, permission: Permission, shown: str, options: Options
) -> RenderableType:
    """Draw an open question for permission, with every character of the input.

    Args:
        props: Props of the `confirm` component that asks.
        permission: The permission, as it is on the screen.
        shown: The input to be approved, as JSON.
        options: How to draw.
    """
    body: list[RenderableType | None] = [label(props.get("title"), TITLE)]
    if props.get("message"):
        body.append(paragraph(props["message"]))
    body += whole_arguments(shown, BOLD)
    if props.get("destructive"):
        body.append(Text("This cannot be undone.", style=BAD))
    if permission.expires_at:
        body.append(Text(f"until {line(permission.expires_at)[:19]}Z", style=DIM))
    body += [_answer(option) for option in permission_options(props, permission)]
    style = WARN if props.get("destructive") else ACCENT
    return question_rail(stack(body), style, options)


def _answer(option: Option) -> RenderableType:
    """Draw one answer: `2 [s] for this session`; a no also says how to give the reason."""
    number = "" if option.number is None else str(option.number)
    text = Text(f"{number:<2}").append(option_text(option))
    return text.append(f"   {REASON_HINT}", style=DIM) if option.is_denial else text
