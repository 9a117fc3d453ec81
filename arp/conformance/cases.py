"""The parts that all suites share: lists of cases, the failure of a case, and the time limit."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeAlias, TypeVar

C = TypeVar("C")
R = TypeVar("R")

Check: TypeAlias = Callable[[R], Awaitable[None]]
"""Function that checks one promise, given the run of its case."""


class CaseFailed(AssertionError):
    """The implementation breaks the contract."""


class CaseUnreachable(Exception):
    """The implementation cannot be made to do what a case needs; the message says why."""


class CaseList(Generic[C, R]):
    """The cases of one subject, in source order."""

    def __init__(self) -> None:
        self.all: list[C] = []

    def adder(self, make: Callable[[str, str, Check[R]], C]) -> Callable[[Check[R]], Check[R]]:
        """Return a decorator that adds a case.

        Args:
            make: Function that returns the case, given its name (that of the function), its title
                (the docstring of the function) and the function.
        """

        def decorate(check: Check[R]) -> Check[R]:
            title = (check.__doc__ or "").strip().removesuffix(".")
            self.all.append(make(check.__name__.strip("_"), title, check))
            return check

        return decorate


async def run_within(
    limit_s: float, check: Awaitable[None], aclose: Callable[[], Awaitable[None]]
) -> None:
    """Wait for a check, and close what it created.

    Raises:
        TimeoutError: It took longer than `limit_s` seconds; the check was cancelled.
    """
    async with asyncio.timeout(limit_s):
        try:
            await check
        finally:
            await aclose()


def timeout_note(limit_s: float) -> str:
    """Return the note of a case that took longer than `limit_s` seconds."""
    return f"Timeout: it took longer than {limit_s:g} s"


def expect(holds: object, otherwise: str) -> None:
    """Raise `CaseFailed` with the text `otherwise` unless `holds` is true."""
    if not holds:
        raise CaseFailed(otherwise)


def expect_same(got: object, wanted: object, what: str) -> None:
    """Raise `CaseFailed` if two values differ; `what` names them in the message."""
    expect(got == wanted, f"{what}: expected {wanted!r:.300}, got {got!r:.300}")


def expect_items(got: Sequence[object], wanted: Sequence[object], what: str) -> None:
    """Raise `CaseFailed` with the first difference if two lists differ; `what` names them."""
    for position, (one, other) in enumerate(zip(got, wanted, strict=False), 1):
        expect(one == other, f"{what}: item {position} should be {other!r:.200}, not {one!r:.200}")
    if len(got) < len(wanted):
        missing = wanted[len(got)]
        raise CaseFailed(f"{what}: {len(got)} items of {len(wanted)}; {missing!r:.200} is missing")
    if len(got) > len(wanted):
        extra = got[len(wanted)]
        raise CaseFailed(f"{what}: {len(got)} items instead of {len(wanted)}; {extra!r:.200}")
