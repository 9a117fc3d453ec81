"""What this program itself says: at the first column, where nothing of an agent ever stands."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct
from rich.console import RenderableType
from rich.text import Text

from arp.protocol.errors import sentence
from arp.protocol.safe_text import sanitise
from arp_terminal.blocks import Hanging
from arp_terminal.options import Options
from arp_terminal.palette import BAD, DIM, GOOD, WARN

_SIGNS = {
    "info": ("·", "-", DIM),
    "good": ("●", "+", GOOD),
    "warning": ("▲", "!", WARN),
    "bad": ("✗", "!", BAD),
}


class Note(Struct, frozen=True):
    """One thing to say."""

    tone: Literal["info", "good", "warning", "bad"]
    text: str
    lasting: bool = False
    """It belongs into the conversation; otherwise it stands at the prompt until the next line is
    typed."""
    brief: bool = False
    """It is true for two seconds only, and goes by itself."""


def draw_note(note: Note, options: Options) -> RenderableType:
    """Draw a note."""
    sign, ascii_sign, style = _SIGNS[note.tone]
    told = note.text if note.tone == "info" else sentence(note.text)
    words = Text(sanitise(told), style=DIM if note.tone == "info" else style)
    return Hanging(f"{sign if options.unicode else ascii_sign} ", words, style=style)
