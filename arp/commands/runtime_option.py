"""The runtime of `--runtime`, with the directory of `--cwd` and the variables of `--pass-env`."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from arp.commands.output import fail

if TYPE_CHECKING:
    from arp.runtime.contract.services import RuntimeService


def runtime_of(name: str, cwd: str, passed: Iterable[str]) -> RuntimeService:
    """Return a runtime with its environment, or end with an error."""
    from arp.runtime.contract.errors import AriError
    from arp.runtime.named import environment_of, named_runtime

    if not Path(cwd).is_dir():
        fail(f"--cwd: there is no directory {cwd}")
    environment = environment_of(name, os.environ, passed)
    try:
        return named_runtime(name, cwd=Path(cwd), environment=environment)
    except AriError as error:
        fail(f"--runtime {name}: {error.message}")
