"""Runs cases against a runtime and returns the outcome of each."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from arp.conformance.cases import CaseUnreachable, run_within, timeout_note
from arp.conformance.runtime.case import CaseRun, ContractCase
from arp.conformance.runtime.runtime_cases import CASES
from arp.conformance.runtime.runtime_under_test import RuntimeFactory, RuntimeUnderTest
from arp.runtime.contract.errors import Unimplemented

Outcome: TypeAlias = Literal["native", "synthetic", "Unimplemented", "failed"]


class CaseResult(NamedTuple):
    """The outcome of a case."""

    case: ContractCase
    outcome: Outcome
    note: str = ""
    """Reason for the outcome `Unimplemented`, or a description of the failure."""
    error: Exception | None = None

    @property
    def summary(self) -> str:
        """Outcome as stored in the matrix; `Unimplemented` has its reason."""
        return f"{self.outcome}: {self.note}" if self.outcome == "Unimplemented" else self.outcome


async def run_case(case: ContractCase, under_test: RuntimeUnderTest) -> CaseResult:
    """Run one case, close every runtime object that it created, and return its outcome."""
    if why := under_test.not_shown.get(case.name):
        return CaseResult(case, "Unimplemented", why)
    run = CaseRun(under_test)
    try:
        await run_within(under_test.case_s, case.check(run), run.aclose)
    except CaseUnreachable as missing:
        return CaseResult(case, "Unimplemented", str(missing))
    except Unimplemented as missing:
        if case.level == 1:
            return CaseResult(case, "failed", f"level 1 is not optional: {missing}", missing)
        return CaseResult(case, "Unimplemented", missing.message)
    except TimeoutError as late:
        return CaseResult(case, "failed", timeout_note(under_test.case_s), late)
    except Exception as failed:  # noqa: BLE001 - any exception of a runtime is a failed case
        return CaseResult(case, "failed", f"{type(failed).__name__}: {failed}", failed)
    made_up = any(event.synthetic and event.type in case.needs for event in run.seen)
    return CaseResult(case, "synthetic" if made_up else "native")


async def run_suite(
    factory: RuntimeFactory, cases: Sequence[ContractCase] = CASES
) -> AsyncIterator[tuple[str, CaseResult]]:
    """Run each case against a new runtime; yield the name of the runtime and the result."""
    for case in cases:
        # A program that is ending may still write here while the directory is removed.
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
            under_test = factory(Path(directory))
            try:
                yield under_test.name, await run_case(case, under_test)
            finally:
                under_test.end()
