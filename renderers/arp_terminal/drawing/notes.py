"""Messages of this program itself: at the first column, where nothing of an agent is shown."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct
from rich.console import RenderableType
from rich.text import Text

from arp.protocol.errors import sentence
from arp.protocol.safe_text import sanitise
from arp.protocol.screen import ToolRun
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
    """It is printed in the conversation; otherwise it is at the prompt until the next line is
    typed."""
    brief: bool = False
    """It is valid for two seconds, and disappears by itself."""
    tool: ToolRun | None = None
    """Tool call that is drawn below the text, as a whole."""
    tool_number: int | None = None
    """Number of this call in the conversation."""


def draw_note(note: Note, options: Options) -> RenderableType:
    """Draw a note."""
    sign, ascii_sign, style = _SIGNS[note.tone]
    shown = note.text if note.tone == "info" else sentence(note.text)
    words = Text(sanitise(shown), style=DIM if note.tone == "info" else style)
    drawn = HangingBlock(f"{sign if options.unicode else ascii_sign} ", words, style=style)
    if note.tool is None:
        return drawn
    call = draw_tool(note.tool, options, number=note.tool_number, detail="whole")
    return stack([drawn, call])
