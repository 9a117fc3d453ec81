"""`ErrorLines`: the standard error of a program, as lines that can be logged and shown.

This text is not trusted: it may contain secrets, and control characters of a terminal.
"""

from __future__ import annotations

import codecs
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from arp.protocol.framing.program_output import printed
from arp.protocol.safe_text import sanitise_line
from arp.redact.redactor import Redactor
from arp.redact.settings import Redaction
from arp.redact.stream import CONTEXT, SecretStream

MAX_LINES: Final = 100
"""Number of kept lines. A long stack trace or usage text may follow the line with the cause."""
MAX_CHARACTERS: Final = 500
"""Characters of each kept line."""
MAX_UNFINISHED: Final = 1 << 16
"""Maximum length of an incomplete line, in characters; the beginning of a longer one is dropped."""


class ErrorLines:
    """Splits standard error into lines, removes secrets and makes control characters visible.

    Args:
        secrets: Secrets of the program, such as those in its environment. Tokens of known formats
            are always removed too.
        on_line: Receives each line.
    """

    def __init__(self, secrets: Iterable[str], on_line: Callable[[str], None]) -> None:
        self.newest: deque[str] = deque(maxlen=MAX_LINES)
        self._stream = SecretStream(Redactor(Redaction(secrets=tuple(secrets))))
        self._on_line = on_line
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._before = ""
        self._line = ""

    def receive(self, data: bytes) -> None:
        """Receive the next bytes. Lines of a multi-line private key are not passed on."""
        self._pass(self._stream.admit(self._decoder.decode(data), self._before))

    def end(self) -> None:
        """Pass on the last line if it has no line end."""
        self._pass(self._stream.finish(self._before) + "\n")

    def _pass(self, text: str) -> None:
        self._before = (self._before + text)[-CONTEXT:]
        *lines, rest = (self._line + text).split("\n")
        self._line = rest[-MAX_UNFINISHED:]
        for line in _readable(lines):
            self.newest.append(line)
            self._on_line(line)


def _readable(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        text = sanitise_line(printed(line).strip())
        if text:
            yield text[:MAX_CHARACTERS]
