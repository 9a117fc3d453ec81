"""`arp connect` at a terminal: 42 kB of Markdown in 10,000 deltas, 1,000 a second; a large table.

It measures the processor time of `arp connect` from Enter until the last word is on the screen. The
baseline is the time of `rich` to draw the complete text once.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from arp import ui
from arp_terminal.options import Options
from arp_terminal.painter import Painter
from arp_terminal.render import render
from tests.bench.figures import Figure, alone, compared, report, rounds
from tests.bench.plan import END, Plan
from tests.bench.prose import PROSE
from tests.bench.servers import CONNECT, OURS, ROOT, cpu_s, running
from tests.renderers.terminal.pseudo_terminal import PseudoTerminal

DELTAS = 10_000
INTERVAL_S = 0.001
WAIT_S = 60.0
ROWS, COLUMNS = 40, 100
TABLE_ROWS = 10_000
TARGET_S = 2.0
TARGET_TABLE_MS = 50.0


class Unwatched(PseudoTerminal):
    """A terminal whose output is not drawn, since that would take processor time."""

    def _show(self, data: bytes) -> None:
        pass


def streamed_s(address: str, state: Path) -> float:
    """Return the processor time of a terminal for one answer, in seconds.

    Raises:
        RuntimeError: A part of the answer is missing.
    """
    with Unwatched([*CONNECT, address], state, size=(ROWS, COLUMNS)) as terminal:
        terminal.until(lambda: b"/help" in terminal.output)
        before = cpu_s(terminal.process.pid)
        plan = Plan(DELTAS, INTERVAL_S, prose=True)
        terminal.type(msgspec.json.encode(plan).decode() + "\r")
        terminal.until(lambda: END.encode() in terminal.output, WAIT_S)
        took = cpu_s(terminal.process.pid) - before
        _check_complete(terminal.output)
        return took


def _check_complete(output: bytes) -> None:
    headings, ships = output.count(b"Harbour report"), output.count(b"Corona")
    sections = PROSE.count("Corona")
    if headings < sections or ships < sections:
        raise RuntimeError(
            f"{sections} sections were sent, {headings} headings and {ships} tables shown"
        )


AT_ONCE = """
import io, sys, time
from rich.console import Console
from rich.markdown import Markdown
from tests.bench.prose import PROSE
console = Console(file=io.StringIO(), width=int(sys.argv[1]), force_terminal=True)
began = time.process_time()
console.print(Markdown(PROSE))
print(time.process_time() - began)
"""


def at_once_s() -> float:
    """Return the processor time of `rich` to draw the text once, in a new interpreter."""
    command = [sys.executable, "-c", AT_ONCE, str(COLUMNS)]
    return float(subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout)


def table_ms() -> float:
    """Return how long it takes to render a large table for the first time."""
    rows = [
        [f"cell {row}" if column % 2 else row * column for column in range(8)]
        for row in range(TABLE_ROWS)
    ]
    table = ui.table([f"Column {column}" for column in range(8)], rows, id="table")
    began = time.perf_counter()
    Painter(Options(width=COLUMNS)).lines(render(table, Options(width=COLUMNS)))
    return (time.perf_counter() - began) * 1000


def measured() -> list[Figure]:
    ours, bare = [], []
    with tempfile.TemporaryDirectory(prefix="arp-bench-") as folder:
        server = (*OURS, "--ledger", f"sqlite:{folder}/ledger.db")
        with running(server, is_ours=True) as agent:
            for _ in range(rounds(3)):
                ours.append(streamed_s(f"http://127.0.0.1:{agent.port}", Path(folder)))
                bare.append(at_once_s())
    return [
        alone("10,000 deltas in a terminal", "s", ours, TARGET_S),
        compared("the same against drawing it once", "s", ours, bare),
        alone(
            "a table of 10,000 rows shows",
            "ms",
            [table_ms() for _ in range(rounds(5))],
            TARGET_TABLE_MS,
        ),
    ]


def main() -> None:
    report("terminal", measured())


if __name__ == "__main__":
    main()
