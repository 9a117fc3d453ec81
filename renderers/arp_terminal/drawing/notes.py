"""Messages of this program. They begin in the first column, where no text of an agent is shown."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct
from rich.console import RenderableType
from rich.text import Text

from arp.protocol.connection.screen import ToolRun
from arp.protocol.errors import sentence
from arp.protocol.safe_text import sanitise
from arp_terminal.drawing.blocks import HangingBlock, stack
from arp_terminal.drawing.palette import BAD, DIM, GOOD, WARN
from arp_terminal.drawing.tool_run import draw_tool
from arp_terminal.options import Options

_SIGNS = {
    "info": ("·", "-", DIM),
    "good": ("●", "+", GOOD),
    "warning": ("▲", "!", WARN),
    "bad": ("✗", "!", BAD),
}


class Note(Struct, frozen=True):
    """One message."""

    tone: Literal["info", "good", "warning", "bad"]
    text: str
    lasting: bool = False
    """Whether it is printed in the conversation; otherwise it is shown at the prompt until the user
    enters the next line."""
    brief: bool = False
    """Whether it disappears after two seconds."""
    tool: ToolRun | None = None
    """Tool call that is drawn below the text, without cuts."""
    tool_number: int | None = None
    """Number of this call in the conversation."""


def draw_note(note: Note, options: Options) -> RenderableType:
    """Draw a note, with its tool call if it has one."""
    sign, ascii_sign, style = _SIGNS[note.tone]
    shown = note.text if note.tone == "info" else sentence(note.text)
    words = Text(sanitise(shown), style=DIM if note.tone == "info" else style)
    drawn = HangingBlock(f"{sign if options.unicode else ascii_sign} ", words, style=style)
    if note.tool is None:
        return drawn
    call = draw_tool(note.tool, options, number=note.tool_number, detail="whole")
    return stack([drawn, call])
