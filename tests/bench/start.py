"""Startup times: of `import arp`, and of `arp serve` until it prints that it listens.

An import is measured in processor time, without the start of the interpreter.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping

from tests.bench.figures import Figure, alone, report, rounds
from tests.bench.servers import OURS, ROOT, running

TARGET_IMPORT_MS = 120.0
TARGET_READY_S = 0.8

AGENT = "from arp import App, Turn, ui"
"""The first line of an agent: `Turn` imports the hub, which `import arp` alone does not."""


def run_ms(code: str, environment: Mapping[str, str]) -> tuple[float, float]:
    """Run a line of Python in a new interpreter; return duration and processor time."""
    began, used = time.perf_counter(), _used_s()
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, check=True)
    return (time.perf_counter() - began) * 1000, (_used_s() - used) * 1000


def _used_s() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return children.ru_utime + children.ru_stime


def ready_s(folder: str, environment: Mapping[str, str]) -> float:
    """Start a server with a new ledger; return the seconds until it is ready."""
    with tempfile.TemporaryDirectory(dir=folder) as ledger:
        began = time.perf_counter()
        command = (*OURS, "--ledger", f"sqlite:{ledger}/ledger.db")
        with running(command, is_ours=True, environment=environment):
            return time.perf_counter() - began


def compiled(folder: str) -> dict[str, str]:
    """Return an environment in which modules are compiled, as after an installation."""
    environment = dict(os.environ, PYTHONPYCACHEPREFIX=folder)
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return environment


def measured(folder: str) -> list[Figure]:
    environment = compiled(folder)
    run_ms("import arp", environment)
    ready_s(folder, environment)
    empty, imports, agent = [], [], []
    for _ in range(rounds(10)):
        empty.append(run_ms("pass", environment))
        imports.append(run_ms("import arp", environment))
        agent.append(run_ms(AGENT, environment))
    ready = [ready_s(folder, environment) for _ in range(rounds(5))]
    return [
        alone("import arp", "ms", _beyond(empty, imports), TARGET_IMPORT_MS),
        alone(AGENT, "ms", _beyond(empty, agent), TARGET_IMPORT_MS),
        alone("an interpreter that imports nothing", "ms", [a[0] for a in empty]),
        alone("arp serve until it is ready", "s", ready, TARGET_READY_S),
    ]


def _beyond(empty: list[tuple[float, float]], total: list[tuple[float, float]]) -> list[float]:
    """Return the processor times without those of an empty program, round by round."""
    return [b[1] - a[1] for a, b in zip(empty, total, strict=True)]


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="arp-bench-") as folder:
        report("start", measured(folder))


if __name__ == "__main__":
    main()
