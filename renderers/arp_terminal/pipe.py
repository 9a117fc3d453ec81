"""`arp render`: draw the messages of an agent from a pipe, one message per line."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TextIO

from msgspec.structs import replace

from arp.protocol.codec import agent_decoder
from arp.protocol.connection.screen import Screen
from arp.protocol.errors import InvalidMessage, sentence
from arp.protocol.messages import AgentMessage
from arp.protocol.safe_text import sanitise_line
from arp_terminal.log.scroll import Scroll
from arp_terminal.log.transcript import Transcript
from arp_terminal.options import Options, Simplify
from arp_terminal.programs.terminal import options_for, write_lines

MAX_LINE_BYTES = 16 << 20
"""Maximum size of a line in bytes: sixteen times the maximum of the protocol for a message."""


def run(
    stream: Iterable[str | bytes],
    *,
    level: str,
    width: int | None = None,
    simplify: Simplify | None = None,
) -> int:
    """Draw the messages of `stream` to standard output, each part when it is complete.

    Args:
        stream: Lines with one JSON message or an array of messages, as `arp serve --stdio` writes
            them.
        level: Conformance level; other components are replaced by simpler ones.
        width: Cells of a line; `None` means the width of the terminal, or 80 without one.
        simplify: Returns the simpler components; `None` means the fallback of the component.

    Returns:
        Exit code: 0, or 1 if a line could not be read. Such a line is reported on standard error
        and skipped.
    """
    options = options_for(sys.stdout, level=level, width=width)
    return draw(stream, sys.stdout, sys.stderr, replace(options, simplify=simplify))


def draw(stream: Iterable[str | bytes], out: TextIO, errors: TextIO, options: Options) -> int:
    """Draw the messages of `stream` to the given streams; see `run`."""
    screen = Screen()
    transcript = Transcript(screen, hold=False)
    scroll = Scroll(transcript, options)
    decoder = agent_decoder("json")
    failed = False
    for number, line in enumerate(stream, 1):
        raw = line.encode(errors="surrogatepass") if isinstance(line, str) else line
        if not raw.strip():
            continue
        try:
            messages = _decoded(decoder.decode, raw)
        except InvalidMessage as error:
            failed = True
            print(
                f"arp render: line {number}: {sentence(sanitise_line(error.message))}", file=errors
            )
            continue
        for message in messages:
            screen.apply(message)
            transcript.receive(message)
        write_lines(out, scroll.advance())
    write_lines(out, scroll.finish())
    return 1 if failed else 0


def _decoded(decode: object, raw: bytes) -> list[AgentMessage]:
    """Return the messages of a line; a message of an unknown type is ignored."""
    if len(raw) > MAX_LINE_BYTES:
        raise InvalidMessage(
            f"the line has {len(raw):,} bytes; at most {MAX_LINE_BYTES:,} are read"
        )
    try:
        return decode(raw)  # type: ignore[no-any-return,operator]
    except InvalidMessage as error:
        if error.message.startswith("message.type: invalid value"):
            return []
        raise
