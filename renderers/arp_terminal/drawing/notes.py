"""Messages of this program itself: at the first column, where nothing of an agent is shown."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct
from rich.console import RenderableType
from rich.text import Text

from arp.protocol.errors import sentence
from arp.protocol.safe_text import sanitise
from arp_terminal.drawing.blocks import HangingBlock
from arp_terminal.drawing.palette import BAD, DIM, GOOD, WARN
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


def draw_note(note: Note, options: Options) -> RenderableType:
    """Draw a note."""
    sign, ascii_sign, style = _SIGNS[note.tone]
    shown = note.text if note.tone == "info" else sentence(note.text)
    words = Text(sanitise(shown), style=DIM if note.tone == "info" else style)
    return HangingBlock(f"{sign if options.unicode else ascii_sign} ", words, style=style)
