"""Signal handlers are in one place: `arp.process.stop_signals` says why."""

from __future__ import annotations

import ast

from tests.structure.source_tree import modules

HANDLERS = {"arp/process/stop_signals.py"}
"""Where handlers in Python may be."""
DEFAULTS = {"arp/process/limits.py", "arp/process/supervise.py"}
"""Where a signal gets its default again, in a process that becomes another program."""
OF_THE_LOOP = {"renderers/arp_terminal/chat.py", "renderers/arp_terminal/programs/line_mode.py"}
"""Where asyncio has the handler, which writes to a pipe: in clients, whose loop nobody blocks."""


def test_only_one_module_has_a_signal_handler() -> None:
    found = {"signal": set[str](), "add_signal_handler": set[str]()}
    for module in modules("arp", "renderers", "examples"):
        for node in module.walk(ast.Call):
            called = node.func
            name = called.attr if isinstance(called, ast.Attribute) else ""
            of = called.value if isinstance(called, ast.Attribute) else None
            if name == "add_signal_handler" or (isinstance(of, ast.Name) and of.id == "signal"):
                found.get(name, set()).add(module.name)
    assert found["signal"] == HANDLERS | DEFAULTS
    assert found["add_signal_handler"] == OF_THE_LOOP
