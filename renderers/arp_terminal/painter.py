"""The last check before the terminal: drawings become lines of visible text and our own styles.

Control characters are removed from each segment before its style is added. So the only control
sequence in a line is `ESC [ numbers m`, which is written here.
"""

from __future__ import annotations

import io

from rich.color import ColorSystem
from rich.console import Console, RenderableType
from rich.segment import Segment

from arp.protocol.safe_text import sanitise_line
from arp_terminal.options import MIN_WIDTH, Options


class Painter:
    """Converts drawings to lines of text for one width and one kind of terminal."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self._console = Console(
            file=io.StringIO(),
            width=max(MIN_WIDTH, options.width),
            height=100,
            color_system="standard",
            force_terminal=True,
            legacy_windows=False,
            no_color=False,
            markup=False,
            emoji=False,
            highlight=False,
        )

    def lines(self, drawing: RenderableType) -> list[str]:
        """Return the lines of a drawing, without line ends.

        The styles of a line begin and end in it. A line has only visible characters and, with
        colour, `ESC [ … m`.
        """
        drawn = self._console.render_lines(drawing, pad=False)
        return [self._line(segments) for segments in drawn]

    def text(self, drawing: RenderableType) -> str:
        """Return the lines of a drawing, each with a line end."""
        return "".join(line + "\n" for line in self.lines(drawing))

    def _line(self, segments: list[Segment]) -> str:
        visible = [segment for segment in segments if not segment.control]
        while visible and not visible[-1].text.strip(" ") and not visible[-1].style:
            visible.pop()
        return "".join(self._painted(segment) for segment in visible).rstrip(" ")

    def _painted(self, segment: Segment) -> str:
        text = sanitise_line(segment.text)
        style = segment.style
        if style is None or not self.options.colour or not text:
            return text
        if style.link:
            style = style.update_link(None)
        return style.render(text, color_system=ColorSystem.STANDARD)
