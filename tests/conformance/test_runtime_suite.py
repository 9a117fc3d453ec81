"""The suite finds what breaks the contract, and says so on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result

from arp.cli import main
from arp.conformance.runtime.runtime_cases import CASES
from arp.conformance.runtime.runtime_matrix import read_matrix
from arp.conformance.runtime.runtime_suite import CaseResult, run_case
from arp.runtime.contract import types as ari
from arp.runtime.contract.errors import Unimplemented
from arp.runtime.contract.feed import SessionFeed
from arp.runtime.contract.task_runtime import TaskSession
from arp.runtime.plain.fake import FakeRuntime
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

    def new_fake(self) -> FakeRuntime:
        fake = super().new_fake()
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
        "CaseFailed: expected InvalidArgument, but the call succeeded",
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
    respond = TaskSession.respond

    async def allow_all(session: Any, pending: Any, _: object) -> None:
        await respond(session, pending, ari.PermissionResponse("allow"))

    monkeypatch.setattr(TaskSession, "respond", allow_all)
    assert (await outcome("deny", FakeUnderTest(tmp_path))).outcome == "failed"


def telling(*capabilities: ari.Capability) -> Any:
    """Return a `status` that lists these capabilities."""

    async def status(_: object) -> ari.StatusResponse:
        return ari.StatusResponse(True, True, capabilities=capabilities, permission="enforced")

    return status


async def test_name_of_a_capability_that_nobody_knows_is_found(tmp_path: Path) -> None:
    status = telling(ari.Capability("cancel"), ari.Capability("acme.example/voice"))
    result = await outcome("capability_names", Without(tmp_path, "status", status))
    assert result.outcome == "failed"
    assert "got ['cancel']" in result.note


async def test_capability_that_is_answered_with_unimplemented_is_found(tmp_path: Path) -> None:
    result = await outcome(
        "methods_and_capabilities", Without(tmp_path, "get_session_history", refuse)
    )
    assert (result.outcome, result.note) == (
        "failed",
        "CaseFailed: history is enabled: not here",
    )


async def test_method_without_its_capability_is_found(tmp_path: Path) -> None:
    result = await outcome("methods_and_capabilities", Without(tmp_path, "status", telling()))
    assert result.outcome == "failed"
    assert "expected Unimplemented, but the call succeeded" in result.note


async def test_field_without_its_capability_is_found(tmp_path: Path) -> None:
    only = telling(ari.Capability("session_id"), ari.Capability("instructions"))
    result = await outcome("fields_and_capabilities", Without(tmp_path, "status", only))
    assert result.outcome == "failed"
    assert "expected Unimplemented, but the call succeeded" in result.note


async def test_answer_that_a_request_takes_without_a_capability_is_found(tmp_path: Path) -> None:
    only = telling(ari.Capability("deny_message"))
    result = await outcome("requests_and_capabilities", Without(tmp_path, "status", only))
    assert result.outcome == "failed"
    assert "expected set(), got {'updated_input'}" in result.note


async def test_case_that_cannot_be_shown_is_not_run_and_says_why(tmp_path: Path) -> None:
    under_test = FakeUnderTest(tmp_path)
    under_test.not_shown = {"text": "it is mute"}
    result = await outcome("text", under_test)
    assert result.summary == "Unimplemented: it is mute"
    assert under_test.made == []


@pytest.mark.parametrize(
    ("used", "outcome_of_it"),
    [
        (None, "Unimplemented: the runtime reports no usage of a turn: None"),
        (
            ari.Usage(output_tokens=1),
            "Unimplemented: the runtime reports no usage of a turn: Usage(",
        ),
        (ari.Usage(input_tokens=0, output_tokens=0), "failed"),
        (ari.Usage(input_tokens=2, output_tokens=1), "native"),
    ],
)
async def test_unknown_usage_is_unimplemented_and_0_is_a_failure(
    tmp_path: Path, used: ari.Usage | None, outcome_of_it: str
) -> None:
    class Using(FakeUnderTest):
        def new_fake(self) -> FakeRuntime:
            fake = super().new_fake()

            async def reply(turn: Any) -> str:
                turn.used = used
                return "Hello"

            fake.function = reply
            return fake

    found = await outcome("usage", Using(tmp_path))
    assert found.summary.startswith(outcome_of_it)


async def test_limit_of_a_case_is_that_of_its_runtime(tmp_path: Path) -> None:
    under_test = FakeUnderTest(tmp_path)
    under_test.case_s = 0.05
    under_test.prompts = msgspec.structs.replace(under_test.prompts, hello="slow")
    result = await outcome("text", under_test)
    assert (result.outcome, result.note) == ("failed", "Timeout: it took longer than 0.05 s")


def run(*arguments: str) -> Result:
    target = "tests.runtime.runtimes_under_test:fake"
    return CliRunner().invoke(main, ["conformance", "runtime", target, *arguments])


def test_command_prints_outcomes_and_writes_the_matrix(tmp_path: Path) -> None:
    matrix = tmp_path / "matrix.json"
    for name in ("text", "kill_and_resume"):
        done = run("--case", name, "--matrix", str(matrix))
        assert done.exit_code == 0, done.output
    assert "no program that could be killed" in done.output
    assert read_matrix(matrix) == {
        "fake": {
            "kill_and_resume": "Unimplemented: no program that could be killed",
            "text": "native",
        }
    }


def test_command_ends_with_1_if_a_case_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeRuntime, "version", nothing)
    done = run("--case", "version_refused")
    assert done.exit_code == 1
    assert "but the call succeeded" in done.output


def test_command_names_what_is_wrong() -> None:
    assert "here is no no-such-case" in run("--case", "no-such-case").output
    done = CliRunner().invoke(main, ["conformance", "runtime", "tests.runtime.clis:nothing"])
    assert done.exit_code == 1
    assert "There is no function 'nothing'" in done.output
