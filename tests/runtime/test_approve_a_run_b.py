"""What runs is what a person approved, with a runtime behind `RuntimeAgent`, in random trials.

`tests/turn/test_approve_a_run_b.py` has the same for tools of agents. Here commands really run, and
what they leave in a file is compared with what was shown and sent: see `approval_trials`.
"""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from arp.runtime.contract import types as ari
from arp.runtime.contract.services import RuntimeService
from arp.runtime.plain.fake import FakeRuntime
from arp.runtime.plain.function import FunctionTurn
from arp.runtime.programs.claude.claude_code import ClaudeCodeOptions, ClaudeCodeRuntime
from arp.runtime.programs.codex.codex import CodexRuntime
from tests.runtime.approval_trials import STORIES, SWAPS, Trials
from tests.runtime.clis import Cli

TRIALS = 1_000
IN_ONE_SESSION = 10
SEED = 20_261_124


class Shell:
    """The agent of a fake runtime: it really runs commands, and keeps rules as a CLI does."""

    def __init__(self, trials: Trials) -> None:
        self.trials = trials
        self.sessions: set[str] = set()
        """In which all commands are allowed by a rule."""

    async def act(self, turn: FunctionTurn) -> None:
        """Run what the message says: `two` at once, or one after the other."""
        word, _, rest = turn.text.partition(":")
        commands = [part.strip() for part in rest.split("@@")]
        if word == "two":
            await asyncio.gather(*(self.run(turn, command) for command in commands))
            return
        for command in commands:
            await self.run(turn, command)

    async def run(self, turn: FunctionTurn, command: str) -> None:
        tool_input = self.trials.inputs[command] = {"command": command}
        kind = ari.PermissionKind.COMMAND
        with turn.tool("shell", tool_input, summary=command, kind=kind) as call:
            if turn.session_id not in self.sessions:
                rules = [ari.PermissionRule("all", "every command")]
                answer = await call.allowed(summary=command, rules=rules)
                if answer.decision == "deny":
                    return
                if answer.rule_id:
                    self.sessions.add(turn.session_id)
                tool_input = answer.updated_input or tool_input
            process = await asyncio.create_subprocess_exec(
                "sh", "-c", tool_input["command"], cwd=self.trials.place
            )
            call.result(str(await process.wait()))


def check(trials: Trials, number: int) -> None:
    """Everything that ran was approved, and everything that was approved ran."""
    print(f"{number} trials: {dict(trials.stories())}")  # noqa: T201
    assert trials.mismatches() == []
    assert len(trials.done) == number


async def with_fake(place: Path, number: int) -> Trials:
    """Play trials with a fake runtime, and check that everything that ran was approved."""
    trials = Trials(random.Random(SEED), place)
    fake = FakeRuntime(cwd=place)
    fake.function = Shell(trials).act
    for _ in range(number // IN_ONE_SESSION):
        await trials.play(fake, IN_ONE_SESSION, most_in_turn=4)
    await fake.close()
    check(trials, number)
    return trials


async def test_in_a_hundred_random_trials_a_runtime_runs_what_was_approved(tmp_path: Path) -> None:
    """The beginning of the 1,000 trials; each story comes at least once."""
    trials = await with_fake(tmp_path, 100)
    assert trials.stories().keys() == set(STORIES)


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_in_random_trials_a_runtime_runs_what_was_approved(tmp_path: Path) -> None:
    """1,000 trials, seeded; each story and each way to swap a script comes often."""
    trials = await with_fake(tmp_path, TRIALS)
    stories = trials.stories()
    assert stories.keys() == set(STORIES)
    assert min(stories.values()) > 50
    swaps = [trial.swap for trial in trials.done if trial.swap]
    assert set(swaps) == set(SWAPS)
    assert min(map(swaps.count, SWAPS)) > 15
    assert sum(bool(trial.may_run) for trial in trials.done) > 200


async def with_cli(runtime: RuntimeService, trials: Trials, number: int, seed: int) -> None:
    """Play trials with a real CLI, in sessions of 20."""
    print(f"to repeat: --trials {2 * number} --trial-seed {seed}")  # noqa: T201
    try:
        while left := number - len(trials.done):
            await trials.play(runtime, min(left, 20), most_in_turn=5)
    finally:
        await runtime.close(ari.CloseRequest())
    check(trials, number)


@pytest.mark.trials
@pytest.mark.timeout(1800)
async def test_in_random_trials_claude_code_runs_what_was_approved(
    claude_cli: Cli, cli_trials: int, trial_seed: int
) -> None:
    trials = Trials(random.Random(trial_seed), claude_cli.cwd)
    options = ClaudeCodeOptions(program=claude_cli.program)
    runtime = ClaudeCodeRuntime(
        cwd=claude_cli.cwd, environment=claude_cli.environment, options=options
    )
    await with_cli(runtime, trials, cli_trials // 2, trial_seed)


@pytest.mark.trials
@pytest.mark.timeout(1800)
async def test_in_random_trials_codex_runs_what_was_approved(
    codex_cli: Cli, cli_trials: int, trial_seed: int
) -> None:
    trials = Trials(random.Random(trial_seed), codex_cli.cwd)
    runtime = CodexRuntime(
        environment=codex_cli.environment, cwd=codex_cli.cwd, program=codex_cli.program
    )
    await with_cli(runtime, trials, cli_trials // 2, trial_seed)
