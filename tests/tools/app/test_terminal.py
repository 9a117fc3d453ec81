"""The questions of a task are answered in a terminal that joins its session."""

from __future__ import annotations

import subprocess
from decimal import Decimal
from pathlib import Path

import pytest

from tests.renderers.terminal.pseudo_terminal import PseudoTerminal
from tests.renderers.terminal.test_connect import command
from tests.tools.app.folding import folding

pytestmark = pytest.mark.timeout(90)


def test_money_and_a_command_are_allowed_in_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir(mode=0o755)
    with folding(tmp_path) as (made, _):
        task_id = made.ask_for("try it: fold paper")
        session_id = str(made.becomes(task_id, "waiting_approval", "failed")["session_id"])
        joined = command(made.url, session_id)
        with PseudoTerminal(joined, tmp_path, size=(50, 100)) as terminal:
            terminal.until_shown("Pay up to $12.50 to folder-coder?")
            assert "$100.00 are left of this month before it." in terminal.shown
            assert made.agent.service.budget.transactions() == []
            terminal.type("y\r")
            terminal.until_shown("Run this in folder?")
            assert "python -c print(6*7)" in terminal.shown
            terminal.type("y\r")
            terminal.until_at_rest("folder is ready")
            terminal.type("\x04")
            assert terminal.until_ended() == 0
        assert made.task(task_id)["status"] == "completed"
        paid = made.agent.service.budget.transactions()
        assert [one.amount_usd for one in paid] == [Decimal("0.5")]


def test_money_is_refused_at_the_terminal(tmp_path: Path) -> None:
    with folding(tmp_path) as (made, _):
        task_id = made.ask_for("fold paper")
        session_id = str(made.becomes(task_id, "waiting_approval", "failed")["session_id"])
        # A pipe: what a script writes answers, too.
        done = subprocess.run(
            command(made.url, session_id), input="n\n", capture_output=True, text=True, timeout=60
        )
        assert "Pay up to $12.50 to folder-coder?" in done.stdout, done
        failed = made.becomes(task_id, "failed", "completed")
        assert failed["error"] == "$12.50 to folder-coder was not approved"
        assert made.agent.service.budget.transactions() == []
