"""Every runtime keeps the contract: each case of `arp.conformance`, for each runtime.

The outcomes are held in `matrix.json`, which `make matrix` writes.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from arp.conformance.case import ContractCase
from arp.conformance.runtime_cases import CASES
from arp.conformance.runtime_matrix import read_matrix
from arp.conformance.runtime_suite import run_case
from arp.conformance.runtime_under_test import RuntimeUnderTest
from arp.runtime.grpc_runtime import GrpcRuntime
from arp.runtime.http_runtime import HttpRuntime
from arp.runtime.services import RuntimeService
from tests.runtime import test_grpc, test_http
from tests.runtime.runtimes_under_test import NEEDS, RUNTIMES, FakeUnderTest

MATRIX = Path(__file__).parent / "matrix.json"

REMOTELY = (
    "create", "text", "thinking", "allow", "deny", "allow_with_changed_input", "answered_twice",
    "cancel", "idempotency_key", "history", "list_filter", "behind_a_cursor", "model_switch",
    "unknown_session",
)  # fmt: skip


def of_runtimes() -> list[Any]:
    """Return each runtime with each case; what the runtime needs is a mark."""
    marks = {
        name: [getattr(pytest.mark, NEEDS[name])] if name in NEEDS else [] for name in RUNTIMES
    }
    return [
        pytest.param(name, case, id=f"{name}-{case.name}", marks=marks.get(name, ()))
        for name in RUNTIMES
        for case in CASES
    ]


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
    assert result.outcome != "failed", result.note
    held = read_matrix(MATRIX).get(name, {}).get(case.name)
    assert result.outcome == held, f"matrix.json is out of date; run make matrix ({result.note})"


def test_matrix_has_every_case_of_every_runtime_and_no_other() -> None:
    cases = {case.name for case in CASES}
    matrix = read_matrix(MATRIX)
    assert matrix.keys() == RUNTIMES.keys()
    assert all(outcomes.keys() == cases for outcomes in matrix.values())


class Remotely(RuntimeUnderTest):
    """A fake behind a server: its runtimes are clients of the one there."""

    name = "remote"

    def __init__(
        self, at_the_server: FakeUnderTest, client: Callable[[str], RuntimeService], address: str
    ) -> None:
        self.at_the_server, self.client, self.address = at_the_server, client, address
        self.cwd = at_the_server.cwd
        self.prompts = at_the_server.prompts
        self.other_model = at_the_server.other_model

    def make(self) -> RuntimeService:
        return self.client(self.address)

    def has_run(self, name: str) -> bool:
        return self.at_the_server.has_run(name)


@pytest.mark.parametrize("name", REMOTELY)
@pytest.mark.parametrize(
    ("served", "client"),
    [
        pytest.param(test_http.served, HttpRuntime, id="http"),
        pytest.param(test_grpc.served, GrpcRuntime, id="grpc"),
    ],
)
async def test_contract_of_remote_runtimes(
    name: str,
    served: Callable[[RuntimeService], AbstractAsyncContextManager[str]],
    client: Callable[[str], RuntimeService],
    tmp_path: Path,
) -> None:
    (case,) = [case for case in CASES if case.name == name]
    at_the_server = FakeUnderTest(tmp_path)
    async with served(at_the_server.make()) as address:
        result = await run_case(case, Remotely(at_the_server, client, address))
    assert result.outcome == "native", result.note
