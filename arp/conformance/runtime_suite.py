"""Runs cases against a runtime, and says how each came out."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from arp.conformance.case import CaseRun, ContractCase
from arp.conformance.runtime_cases import CASES
from arp.conformance.runtime_under_test import NotShown, RuntimeFactory, RuntimeUnderTest
from arp.runtime.errors import Unimplemented

Outcome: TypeAlias = Literal["native", "synthetic", "Unimplemented", "failed"]


class CaseResult(NamedTuple):
    """How a case came out."""

    case: ContractCase
    outcome: Outcome
    note: str = ""
    """Why it is `Unimplemented`, or what failed."""
    error: Exception | None = None

    @property
    def told(self) -> str:
        """The outcome as a matrix has it: of what is `Unimplemented`, with the reason."""
        return f"{self.outcome}: {self.note}" if self.outcome == "Unimplemented" else self.outcome


async def run_case(case: ContractCase, under_test: RuntimeUnderTest) -> CaseResult:
    """Run one case, close all that it has made, and return how it came out."""
    if why := under_test.not_shown.get(case.name):
        return CaseResult(case, "Unimplemented", why)
    run = CaseRun(under_test)
    try:
        async with asyncio.timeout(under_test.case_s):
            try:
                await case.check(run)
            finally:
                await run.aclose()
    except NotShown as missing:
        return CaseResult(case, "Unimplemented", str(missing))
    except Unimplemented as missing:
        if case.level == 1:
            return CaseResult(case, "failed", f"level 1 is not optional: {missing}", missing)
        return CaseResult(case, "Unimplemented", missing.message)
    except TimeoutError as late:
        note = f"Timeout: it took longer than {under_test.case_s:g} s"
        return CaseResult(case, "failed", note, late)
    except Exception as failed:  # noqa: BLE001 - whatever a runtime raises is its failure
        return CaseResult(case, "failed", f"{type(failed).__name__}: {failed}", failed)
    made_up = any(event.synthetic and event.type in case.needs for event in run.seen)
    return CaseResult(case, "synthetic" if made_up else "native")


async def run_suite(
    factory: RuntimeFactory, cases: Sequence[ContractCase] = CASES
) -> AsyncIterator[tuple[str, CaseResult]]:
    """Run cases, each against a runtime of its own; yield the runtime's name and the result."""
    for case in cases:
        # What a program still writes when it ends must not fail the removal.
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
            under_test = factory(Path(place))
            try:
                yield under_test.name, await run_case(case, under_test)
            finally:
                under_test.end()
