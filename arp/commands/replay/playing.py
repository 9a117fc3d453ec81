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


def play(path: Path, session: str | None, speed: float, *, as_json: bool) -> int:
    """Play a recording on standard output; return the exit code.

    Args:
        path: Path of a pack or of a ledger file.
        session: Id of the session in the ledger file; `None` for a pack.
        speed: Factor of the speed; 0 does not wait at all.
        as_json: Whether to print the messages, one per line, instead of drawing them.

    Raises:
        ReaderError, LocalError: The recording cannot be read.
    """
    with ExitStack() as stack:
        facts = read_recording(path, session, stack)
        return _show(pace_messages(facts, speed, sys.stdout if as_json else None), as_json)


def read_recording(path: Path, session: str | None, stack: ExitStack) -> Iterator[Fact]:
    """Return the facts of a pack, or of a session in a ledger file.

    Args:
        path: Path of a pack or of a ledger file.
        session: Id of the session in the ledger file; `None` for a pack.
        stack: Closes the file.

    Raises:
        ReaderError, LocalError: The recording cannot be read.
    """
    if session is None:
        pack = stack.enter_context(Pack(path))
        first = pack.manifest.chain.first
        if first > 1:
            gap = "it does not contain what was on the screen before."
            click.echo(f"arp: {printable(str(path))} begins at fact {first}; {gap}", err=True)
        return (decode(split_line(line)[1]) for line in pack.lines(FACTS))
    ledger = stack.enter_context(closing(FileReader(ledger_to_read(str(path)))))
    ledger.epoch(session)  # raises now, and not at the first fact, if there is no such session
    return map(decode, ledger.events(session, 0, ()))


def pace_messages(
    facts: Iterable[Fact], speed: float, output: IO[str] | None = None
) -> Iterator[bytes]:
    """Yield the messages for facts, one per line, with the pauses between the facts.

    Args:
        facts: Facts, in order.
        speed: Factor of the speed; 0 does not wait at all.
        output: File to flush before each pause.
    """
    pacing = Pacing(speed)
    for fact in facts:
        lines = [encode_shown(message) + b"\n" for message in messages_of(fact)]
        if not lines:
            continue
        pause = pacing.pause(fact)
        if pause:
            if output is not None:
                output.flush()
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
