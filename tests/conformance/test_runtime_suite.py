"""The suite finds what breaks the contract, and says so on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from arp.cli import main
from arp.conformance.runtime_cases import CASES
from arp.conformance.runtime_matrix import read_matrix
from arp.conformance.runtime_suite import CaseResult, run_case
from arp.runtime import types as ari
from arp.runtime.errors import Unimplemented
from arp.runtime.fake import FakeRuntime
from arp.runtime.feed import SessionFeed
from arp.runtime.function import FunctionSession
from tests.runtime.runtimes_under_test import FakeUnderTest


async def outcome(name: str, under_test: FakeUnderTest) -> CaseResult:
    (case,) = [case for case in CASES if case.name == name]
    return await run_case(case, under_test)


def test_cases_have_names_of_their_own_and_say_what_must_hold() -> None:
    names = [case.name for case in CASES]
    assert len(names) == len(set(names)) >= 60
    assert all(case.title for case in CASES)


class Without(FakeUnderTest):
    """A fake one method of which does something else."""

    def __init__(self, place: Path, method: str, instead: Any) -> None:
        super().__init__(place)
        self.method, self.instead = method, instead

    def make(self) -> FakeRuntime:
        fake = super().make()
        setattr(fake, self.method, self.instead)
        return fake


async def nothing(*_: object) -> None:
    """Do nothing at all."""


async def refuse(_: object) -> None:
    raise Unimplemented("not here")


async def test_version_that_is_not_checked_is_found(tmp_path: Path) -> None:
    result = await outcome("version_refused", Without(tmp_path, "version", nothing))
    assert (result.outcome, result.note) == (
        "failed",
        "CaseFailed: expected InvalidArgument, but it was taken",
    )


@pytest.mark.parametrize(
    ("case", "method", "wanted"),
    [
        ("close_twice", "close_session", "failed"),
        ("text", "send_message", "failed"),
        ("models_listed", "list_models", "Unimplemented"),
    ],
)
async def test_level_1_cannot_be_unimplemented(
    tmp_path: Path, case: str, method: str, wanted: str
) -> None:
    result = await outcome(case, Without(tmp_path, method, refuse))
    assert result.outcome == wanted
    assert "not here" in result.note


async def test_result_without_its_call_is_synthetic(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SessionFeed, "tool_call", lambda *_, **__: None)
    result = await outcome("allow", FakeUnderTest(tmp_path))
    assert result.outcome == "synthetic"


async def test_answer_that_is_ignored_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    respond = FunctionSession.respond

    async def allow_all(session: Any, pending: Any, _: object) -> None:
        await respond(session, pending, ari.PermissionResponse("allow"))

    monkeypatch.setattr(FunctionSession, "respond", allow_all)
    assert (await outcome("deny", FakeUnderTest(tmp_path))).outcome == "failed"


def run(*arguments: str) -> Result:
    target = "tests.runtime.runtimes_under_test:fake"
    return CliRunner().invoke(main, ["conformance", "runtime", target, *arguments])


def test_command_prints_outcomes_and_writes_the_matrix(tmp_path: Path) -> None:
    matrix = tmp_path / "matrix.json"
    for name in ("text", "kill_and_resume"):
        done = run("--case", name, "--matrix", str(matrix))
        assert done.exit_code == 0, done.output
    assert "no program that could be killed" in done.output
    assert read_matrix(matrix) == {"fake": {"kill_and_resume": "Unimplemented", "text": "native"}}


def test_command_ends_with_1_if_a_case_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeRuntime, "version", nothing)
    done = run("--case", "version_refused")
    assert done.exit_code == 1
    assert "but it was taken" in done.output


def test_command_names_what_is_wrong() -> None:
    assert "here is no no-such-case" in run("--case", "no-such-case").output
    done = CliRunner().invoke(main, ["conformance", "runtime", "tests.runtime.clis:nothing"])
    assert done.exit_code == 1
    assert "There is no function 'nothing'" in done.output
