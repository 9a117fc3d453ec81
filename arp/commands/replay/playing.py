"""`arp replay`: read a recording, and play it in this terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import IO

import click

from arp.audit.evidence.fact_lines import split_line
from arp.audit.evidence.manifest import FACTS
from arp.audit.evidence.pacing import Pacing
from arp.audit.evidence.pack import Pack
from arp.commands.ledger.file_reader import FileReader
from arp.commands.output import fail, json_text, printable
from arp.ledger.fact import Fact, decode
from arp.protocol.codec import encode_shown
from arp.session.recovery import messages_of
from arp.store.location import ledger_to_read


def play(place: Path, session: str | None, speed: float, *, as_json: bool) -> int:
    """Play a recording on standard output; return the exit code.

    Args:
        place: Of a pack, or of a ledger file.
        session: Of the ledger file.
        speed: Times as fast as it was; 0 does not wait at all.
        as_json: Print messages, one a line, instead of drawing them.

    Raises:
        ReaderError, LocalError: It cannot be read.
    """
    with ExitStack() as stack:
        facts = recorded(place, session, stack)
        return _show(paced(facts, speed, sys.stdout if as_json else None), as_json)


def recorded(place: Path, session: str | None, stack: ExitStack) -> Iterator[Fact]:
    """Return the facts of a pack, or of a session in a ledger file.

    Raises:
        ReaderError, LocalError: It cannot be read.
    """
    if session is None:
        pack = stack.enter_context(Pack(place))
        first = pack.manifest.chain.first
        if first > 1:
            gap = "what was on the screen before is not in it."
            click.echo(f"arp: {printable(str(place))} begins at fact {first}; {gap}", err=True)
        return (decode(split_line(line)[1]) for line in pack.lines(FACTS))
    ledger = stack.enter_context(closing(FileReader(ledger_to_read(str(place)))))
    ledger.epoch(session)  # fails now if there is no such session
    return map(decode, ledger.events(session, 0, ()))


def paced(facts: Iterable[Fact], speed: float, flushed: IO[str] | None = None) -> Iterator[bytes]:
    """Yield the messages that show facts, one a line, with the pauses that were between them.

    Args:
        facts: In order.
        speed: Times as fast; 0 does not wait.
        flushed: Flushed before each pause.
    """
    pacing = Pacing(speed)
    for fact in facts:
        lines = [encode_shown(message) + b"\n" for message in messages_of(fact)]
        if not lines:
            continue
        pause = pacing.pause(fact)
        if pause:
            if flushed is not None:
                flushed.flush()
            time.sleep(pause)
        yield from lines


def _show(lines: Iterator[bytes], as_json: bool) -> int:
    if as_json:
        for line in lines:
            click.echo(json_text(line), nl=False)
        return 0
    try:
        from arp_terminal.pipe import run
    except ModuleNotFoundError:
        fail(
            "drawing needs the terminal renderer, or give --json; install it: "
            'pip install "agent-rendering-protocol[terminal]"'
        )
    return run(lines, level="standard")
