"""Two coding agents side by side: `PROJECT=. arp serve examples/coding_agents/app.py`.

A new chat begins with Claude Code or with Codex, in the same directory. Both need a login or a key
of their own, and the packages: `pip install "agent-rendering-protocol[claude,codex]"`.
"""

from __future__ import annotations

import os

from arp import App
from arp.api import environment_of, named_runtime

PROJECT = os.environ.get("PROJECT", ".")
PASSED = os.environ.get("PASS_ENV", "").split()
"""Additional variables for the agents, such as the key that Codex's `config.toml` names."""

app = App(
    title="Coding agents",
    description="Claude Code and Codex on one page.",
    suggestions=["What does this project do?", "Run the tests"],
)

for name in ("claude-code", "codex"):
    environment = environment_of(name, os.environ, PASSED)
    app.runtime(named_runtime(name, cwd=PROJECT, environment=environment), name=name)
