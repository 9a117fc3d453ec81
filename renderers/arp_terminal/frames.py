"""A terminal that gets each frame whole: nobody sees the prompt go and come again.

What is printed above the prompt takes three steps, each of which would be written by itself: the
lines below are erased, the new ones printed, and those below drawn again. Terminals that know
synchronised output (DEC private mode 2026) show nothing of it before its end; for the others it is
one write.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from prompt_toolkit.output import Output, create_output
from prompt_toolkit.output.vt100 import Vt100_Output

BEGIN, END = "\x1b[?2026h", "\x1b[?2026l"


class FrameOutput(Vt100_Output):
    """Writes what is asked for while a frame is open at its end."""

    _is_open = False

    @contextmanager
    def frame(self) -> Iterator[None]:
        """Open a frame; it is written also where an exception ends it."""
        self.flush()
        self._is_open = True
        self.write_raw(BEGIN)
        try:
            yield
        finally:
            self.write_raw(END)
            self._is_open = False
            self.flush()

    def flush(self) -> None:
        """As `Output.flush`; nothing within a frame."""
        if not self._is_open:
            super().flush()


def frame(output: Output) -> AbstractContextManager[None]:
    """Open a frame, where the output knows them."""
    return output.frame() if isinstance(output, FrameOutput) else nullcontext()


def terminal_output() -> Output:
    """Return the terminal, never asked where its cursor is: some answer late or not at all."""
    output = create_output(stdout=sys.stdout)
    if isinstance(output, Vt100_Output):
        output = FrameOutput(
            output.stdout,
            output.get_size,
            term=output.term,
            default_color_depth=output.default_color_depth,
            enable_bell=output.enable_bell,
            enable_cpr=False,
        )
    return output
