"""Runs cases against a store and returns the outcome of each.

Theory of operation. Each case runs in its own thread with its own event loop, which has the time
limit of the case. But a store may block the loop, or ignore that its task is cancelled. Then the
suite stops waiting for the thread, and the next case runs. The thread cannot be ended; it is a
daemon, so it ends with the process.
"""

from __future__ import annotations

import asyncio
import tempfile
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

from arp.conformance.cases import CaseFailed, CaseUnreachable, run_within, timeout_note
from arp.conformance.store.store_case import NotAdvertised, StoreCase, StoreRun
from arp.conformance.store.store_cases import STORE_CASES
from arp.conformance.store.store_under_test import StoreFactory, StoreUnderTest
from arp.store.errors import StoreError

StoreOutcome: TypeAlias = Literal["pass", "fail", "not advertised", "not checked", "suite fault"]
"""`not advertised`: the store does not offer what the case is about. `not checked`: the suite
cannot check the case on this store. `suite fault`: the suite has a defect; the outcome is unknown.
"""

GRACE_S: Final = 3.0
"""Time in seconds that a case may take to clean up after its time limit."""

_POLL_S: Final = 0.1
"""Interval in seconds at which the time limit of a running case is read."""


class StoreResult(NamedTuple):
    """The outcome of a case."""

    case: StoreCase
    outcome: StoreOutcome
    note: str = ""
    """Reason for the outcome; for a failure, the first difference; for a fault, file and line."""
    seconds: float = 0.0
    is_stuck: bool = False
    """Whether the thread of the case did not end."""


class StoreSuite:
    """A run of the suite.

    Args:
        factory: Factory of the store under test.
    """

    def __init__(self, factory: StoreFactory) -> None:
        self._factory = factory
        self.name = ""
        """Name of the store; empty before the first case has begun."""

    def results(self, cases: Sequence[StoreCase] = STORE_CASES) -> Iterator[StoreResult]:
        """Run each case on a new storage, and yield its result."""
        for case in cases:
            # A process that was killed may still have files open here.
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
                thread = _CaseThread(case, self._factory, Path(directory))
                result = thread.result_within_limit()
                self.name = thread.name_of_store or self.name
                yield result


def run_store_case(case: StoreCase, factory: StoreFactory) -> StoreResult:
    """Run one case on a new storage, and return its result."""
    (result,) = StoreSuite(factory).results([case])
    return result


class _CaseThread(threading.Thread):
    """The thread of one case."""

    def __init__(self, case: StoreCase, factory: StoreFactory, directory: Path) -> None:
        super().__init__(name=f"arp-conformance-{case.name}", daemon=True)
        self._case = case
        self._factory = factory
        self._directory = directory
        self._result: StoreResult | None = None
        self._limit_s = StoreUnderTest.case_s
        self.name_of_store = ""

    def result_within_limit(self) -> StoreResult:
        """Run the case and return its result, or a failure if the thread does not end."""
        started = time.monotonic()
        self.start()
        while self.is_alive() and time.monotonic() - started < self._limit_s + GRACE_S:
            self.join(_POLL_S)
        seconds = time.monotonic() - started
        if self._result is None:
            note = f"{timeout_note(self._limit_s)}, and the store cannot be interrupted"
            return StoreResult(self._case, "fail", note, seconds, is_stuck=True)
        return self._result._replace(seconds=seconds, is_stuck=self.is_alive())

    def run(self) -> None:
        """Make the store under test and check the case."""
        try:
            under_test = self._factory(self._directory)
            self._limit_s = under_test.case_s
            self.name_of_store = under_test.name
        except BaseException as error:  # noqa: BLE001 - a factory may raise anything
            self._result = StoreResult(self._case, "fail", f"the factory raised {_text(error)}")
            return
        self._result = self._outcome(under_test)
        try:
            under_test.end()
        except BaseException as error:  # noqa: BLE001 - the author's code may raise anything
            self._result = StoreResult(self._case, "fail", f"end raised {_text(error)}")

    def _outcome(self, under_test: StoreUnderTest) -> StoreResult:
        try:
            asyncio.run(self._check(under_test))
        except NotAdvertised as missing:
            return StoreResult(self._case, "not advertised", str(missing))
        except CaseUnreachable as missing:
            return StoreResult(self._case, "not checked", str(missing))
        except CaseFailed as failed:
            return StoreResult(self._case, "fail", str(failed))
        except StoreError as failed:
            return StoreResult(self._case, "fail", _text(failed))
        except TimeoutError:
            return StoreResult(self._case, "fail", timeout_note(self._limit_s))
        except (SystemExit, KeyboardInterrupt, GeneratorExit) as failed:
            # No case raises these. A task of the store did, which ended the event loop.
            return StoreResult(self._case, "fail", f"the store raised {_text(failed)}")
        except BaseException as fault:  # noqa: BLE001 - `CheckedStore` passes no other exception
            frame = traceback.extract_tb(fault.__traceback__)[-1]
            place = f"{Path(frame.filename).name}:{frame.lineno}"
            return StoreResult(self._case, "suite fault", f"{_text(fault)} in {place}")
        return StoreResult(self._case, "pass")

    async def _check(self, under_test: StoreUnderTest) -> None:
        run = StoreRun(self._factory, under_test, self._directory)
        run.require(self._case.needs)
        await run_within(self._limit_s, self._case.check(run), run.aclose)


def _text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
