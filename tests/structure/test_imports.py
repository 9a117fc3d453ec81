"""Imports point down, and the face stays small and light."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.structure.source_tree import ROOT

MOST_PUBLIC_NAMES = 25

HEAVY = ["grpc", "httpx", "mcp", "prompt_toolkit", "rich", "starlette", "uvicorn", "websockets"]
"""What somebody who only writes components should not wait for."""

OF_THE_SERVER = [
    "arp.hub.hub",
    "arp.live.live_session",
    "arp.session.session",
    "arp.store.blobs",
    "arp.store.sqlite",
    "asyncio",
    "logging",
    "mimetypes",
    "sqlite3",
]
"""What a server loads when it starts, and an agent's file does not need to be read."""

MOST_MODULES_OF_AN_AGENT = 47
"""Modules of ARP that the first line of an agent loads. Each costs about half a millisecond, so a
new one needs a reason: what only a running turn needs is imported inside the methods of `Turn`."""


def test_each_package_imports_from_lower_layers_only() -> None:
    """The contracts are in pyproject.toml; the output names the import that breaks one."""
    linter = Path(sys.executable).with_name("lint-imports")
    done = run([str(linter), "--no-cache"])
    assert done.returncode == 0, f"\n{done.stdout}{done.stderr}"


def test_import_arp_loads_nothing_heavy() -> None:
    loaded = run_python(
        "import arp, arp.ui, sys; print(*sys.modules.keys() & set(sys.argv[1:]))", *HEAVY
    )
    assert loaded == "", f"`import arp` loads {loaded}; import it where it is used first"


def test_what_an_agent_begins_with_loads_no_store() -> None:
    loaded = run_python(
        "from arp import App, Turn, ui; import sys; print(*sys.modules.keys() & set(sys.argv[1:]))",
        *(HEAVY + OF_THE_SERVER),
    )
    assert loaded == "", f"`from arp import Turn` loads {loaded}; import it where it is used first"


def test_what_an_agent_begins_with_loads_few_modules() -> None:
    loaded = run_python(
        "from arp import App, Turn, ui; import sys; "
        "print(*sorted(one for one in sys.modules if one.partition('.')[0] == 'arp'))"
    ).split()
    assert len(loaded) <= MOST_MODULES_OF_AN_AGENT, f"{len(loaded)} modules: {', '.join(loaded)}"


def test_arp_has_at_most_25_public_names_and_each_is_there() -> None:
    count, *missing = run_python(
        "import arp; print(len(arp.__all__), *[n for n in arp.__all__ if not hasattr(arp, n)])"
    ).split()
    assert not missing, f"in arp.__all__ but not there: {missing}"
    assert 0 < int(count) <= MOST_PUBLIC_NAMES


def run_python(program: str, *arguments: str) -> str:
    """What `program` prints, in a process of its own: here everything is loaded already."""
    done = run([sys.executable, "-c", program, *arguments])
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def run(command: list[str]) -> subprocess.CompletedProcess[str]:
    """Runs `command` at the root of the tree, at most 15 seconds."""
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=15, check=False
    )
