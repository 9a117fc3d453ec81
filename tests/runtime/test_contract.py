"""Every runtime keeps the contract: each case of `arp.conformance`, for each runtime.

The outcomes are held in `matrix.json`, which `make matrix` writes. Fake and function run all cases,
also over transports. Others run those that depend on the agent, and all of them with `--soak`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from arp.conformance.runtime.case import ContractCase
from arp.conformance.runtime.runtime_cases import CASES
from arp.conformance.runtime.runtime_matrix import read_matrix
from arp.conformance.runtime.runtime_suite import CaseResult, run_case
from arp.conformance.runtime.runtime_under_test import RuntimeUnderTest
from arp.runtime.contract.services import RuntimeService
from tests.runtime import clis
from tests.runtime.runtimes_under_test import NEEDS, RUNTIMES, AcpUnderTest, KeptOpenCode
from tests.runtime.served import ServedByGrpc, ServedByHttp

MATRIX = Path(__file__).parent / "matrix.json"

KEPT_S = 400
"""So long all cases over one process of OpenCode may take; alone they take half a minute."""

REMOTELY = ("allow_with_changed_input", "cancel", "history", "sessions_of_other_directories")
"""The cases that go over a transport to Claude Code and Codex; all go there to the fake."""

SAME_FOR_ALL = frozenset(
    {
        # `EventLog` and `SessionFeed` decide these, which all runtimes have from `DrivenRuntime`.
        "several_consumers", "unsubscribed", "behind_a_cursor", "turn_from_its_beginning",
        "cursor_out_of_range", "sequence_without_holes", "every_event_has_its_place", "threadsafe",
        "calls_at_once", "closed_is_the_last_event", "subscribe_after_close",
        # `DrivenRuntime` refuses or answers these before the agent is asked.
        "unknown_request", "answered_twice", "answer_that_does_not_fit", "rule_that_is_not_offered",
        "busy", "idempotency_key", "cancel_idle", "cancel_another_turn", "empty_message",
        "message_of_another_role", "part_without_data", "runtime_closed", "close_twice",
        "use_after_close", "resume_open", "list_filter",
        # Its timers decide these; then it does what `cancel` and `deny` do.
        "turn_deadline", "permission_deadline",
    }
)  # fmt: skip
"""Cases that do not depend on the agent: fake and function show them, whole and over transports."""

ALL_CASES_OF = frozenset({"fake", "function", "grpc", "http"})
"""Runtimes that run every case in every run of the tests."""

IN_TEST_ACP = frozenset(
    {"garbage_in_the_output", "output_cut_in_a_line", "environment_is_not_inherited"}
)
"""Cases for which OpenCode must be started once more, which takes seconds. `test_acp.py` has them:
the first two with a scripted agent."""


def of_runtimes() -> list[Any]:
    """Return each runtime with each case; what the runtime needs is a mark."""
    marks = {
        name: [getattr(pytest.mark, NEEDS[name])] if name in NEEDS else [] for name in RUNTIMES
    }
    return [
        pytest.param(
            name,
            case,
            id=f"{name}-{case.name}",
            marks=[*marks[name], *([pytest.mark.soak] if is_left_to_soak(name, case) else [])],
        )
        for name in RUNTIMES
        for case in CASES
        if name != AcpUnderTest.name or case.name in AcpUnderTest.ALONE
    ]


def is_left_to_soak(name: str, case: ContractCase) -> bool:
    """Return whether a case of a runtime runs with `--soak` only."""
    if name == AcpUnderTest.name and case.name in IN_TEST_ACP:
        return True
    return name not in ALL_CASES_OF and case.name in SAME_FOR_ALL


def check_outcome(name: str, result: CaseResult) -> None:
    """Fail if a case did, or came out in another way than the matrix says."""
    assert result.outcome != "failed", f"{result.case.name}: {result.note}"
    expected = read_matrix(MATRIX).get(name, {}).get(result.case.name)
    outdated = f"{result.case.name}: matrix.json is out of date; run make matrix"
    assert result.summary == expected, outdated


@pytest.mark.parametrize(("name", "case"), of_runtimes())
async def test_contract(
    name: str, case: ContractCase, tmp_path: Path, requires: Callable[[str], str]
) -> None:
    if name in NEEDS:
        requires(NEEDS[name])
    under_test = RUNTIMES[name](tmp_path)
    try:
        result = await run_case(case, under_test)
    finally:
        under_test.end()
    check_outcome(name, result)


@pytest.mark.opencode
@pytest.mark.timeout(KEPT_S)
async def test_contract_over_one_process_of_opencode(
    tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    runs_all: bool = pytestconfig.getoption("--soak")
    kept = KeptOpenCode(tmp_path)
    wrong = []
    try:
        for case in CASES:
            left_out = not runs_all and is_left_to_soak(AcpUnderTest.name, case)
            if case.name not in AcpUnderTest.ALONE and not left_out:
                under_test = AcpUnderTest(tmp_path, kept)
                try:
                    check_outcome(under_test.name, await run_case(case, under_test))
                except AssertionError as failed:
                    wrong.append(str(failed))
        await kept.stop()
        assert clis.processes_of(kept.cli) == []
    finally:
        kept.end()
    assert not wrong, "\n".join(wrong)


def test_matrix_has_every_case_of_every_runtime_and_no_other() -> None:
    cases = {case.name for case in CASES}
    matrix = read_matrix(MATRIX)
    assert matrix.keys() == RUNTIMES.keys()
    assert all(outcomes.keys() == cases for outcomes in matrix.values())


def test_cases_that_are_the_same_for_all_agents_exist() -> None:
    """Whatever is left to `make soak`, each agent shows at least 60 cases in every run."""
    cases = {case.name for case in CASES}
    assert cases >= SAME_FOR_ALL | IN_TEST_ACP
    assert len(cases - SAME_FOR_ALL - IN_TEST_ACP) >= 60


class Remotely(RuntimeUnderTest):
    """A runtime behind a server: its runtime objects are clients, each with a server of its own."""

    name = "remote"

    def __init__(
        self, behind: RuntimeUnderTest, client: Callable[[RuntimeService], RuntimeService]
    ) -> None:
        self.behind, self.client = behind, client
        self.cwd = behind.cwd
        self.prompts = behind.prompts
        self.fields = behind.fields
        self.asks_at_once = behind.asks_at_once
        self.other_model = behind.other_model

    def make(self) -> RuntimeService:
        return self.client(self.behind.make())

    def make_in(self, cwd: Path) -> RuntimeService:
        return self.client(self.behind.make_in(cwd))

    def told(self) -> Sequence[str]:
        return self.behind.told()

    def has_run(self, name: str) -> bool:
        return self.behind.has_run(name)


@pytest.mark.parametrize("case_name", REMOTELY)
@pytest.mark.parametrize(
    ("name", "client"),
    [
        pytest.param("claude-code", ServedByGrpc, id="claude-grpc", marks=pytest.mark.claude),
        pytest.param("codex", ServedByHttp, id="codex-http", marks=pytest.mark.codex),
    ],
)
async def test_contract_of_real_agents_over_a_transport(
    name: str,
    client: Callable[[RuntimeService], RuntimeService],
    case_name: str,
    tmp_path: Path,
) -> None:
    """A case comes out as it does without the transport."""
    (case,) = [case for case in CASES if case.name == case_name]
    behind = RUNTIMES[name](tmp_path)
    try:
        result = await run_case(case, Remotely(behind, client))
    finally:
        behind.end()
    check_outcome(name, result)
