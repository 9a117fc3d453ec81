"""How long people wait: for `import arp`, and for `arp serve` until it says that it is there."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence

from tests.bench.figures import Figure, alone, report, rounds
from tests.bench.servers import OURS, ROOT, running

TARGET_IMPORT_MS = 120.0
TARGET_READY_S = 0.8


def run_ms(code: str) -> float:
    """Runs a line of Python in a fresh interpreter."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
    return (time.perf_counter() - began) * 1000


def ready_s(command: Sequence[str]) -> float:
    """Starts a server and tells when it was ready."""
    began = time.perf_counter()
    with running(command, is_ours=True):
        return time.perf_counter() - began


def measured() -> list[Figure]:
    run_ms("import arp")
    empty, whole, ready = [], [], []
    for _ in range(rounds(10)):
        empty.append(run_ms("pass"))
        whole.append(run_ms("import arp"))
    for _ in range(rounds(5)):
        with tempfile.TemporaryDirectory(prefix="arp-bench-") as folder:
            ready.append(ready_s((*OURS, "--ledger", f"sqlite:{folder}/ledger.db")))
    taken = [after - before for before, after in zip(empty, whole, strict=True)]
    return [
        alone("import arp", "ms", taken, TARGET_IMPORT_MS),
        alone("an interpreter that imports nothing", "ms", empty),
        alone("arp serve until it is ready", "s", ready, TARGET_READY_S),
    ]


def main() -> None:
    report("start", measured())


if __name__ == "__main__":
    main()
