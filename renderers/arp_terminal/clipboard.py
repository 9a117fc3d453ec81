"""Copying through the terminal: sent only when the user asks for it."""

from __future__ import annotations

import base64
from collections.abc import Mapping

MAX_COPIED = 74_000
"""Bytes that terminals take: xterm reads 100,000 characters of base64."""


def copy_sequence(text: str, environ: Mapping[str, str]) -> str | None:
    """Return the sequence (OSC 52) that puts `text` into the clipboard.

    Inside of tmux it is wrapped so that it gets through.

    Returns:
        `None` if there is nothing to copy or more than a terminal takes.
    """
    data = text.encode(errors="replace")
    if not data or len(data) > MAX_COPIED:
        return None
    sequence = f"\x1b]52;c;{base64.b64encode(data).decode()}\x07"
    if environ.get("TMUX"):
        sequence = "\x1bPtmux;" + sequence.replace("\x1b", "\x1b\x1b") + "\x1b\\"
    return sequence
