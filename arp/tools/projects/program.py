"""Starts programs of projects, and converts errors of the start to those of the Tool Agent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from arp.process.bounded_output import OnLine
from arp.process.program import (
    KEPT_OUTPUT,
    ProgramResult,
    ProgramStart,
    ServingProgram,
    run_program,
)
from arp.tools.errors import ToolCallFailed


async def run_in_project(
    start: ProgramStart,
    timeout_s: float,
    *,
    stdin: bytes = b"",
    kept_output: int = KEPT_OUTPUT,
    on_line: OnLine | None = None,
) -> ProgramResult:
    """Run a program of a project as `run_program` does.

    Raises:
        ToolCallFailed: It cannot be started.
        CapacityExceeded: Its project is too full to run anything.

    Cancel: Safe: the program and all its descendants are ended.
    """
    with _start_checked(start):
        return await run_program(
            start, timeout_s, stdin=stdin, kept_output=kept_output, on_line=on_line
        )


async def serve_in_project(start: ProgramStart) -> ServingProgram:
    """Start a program of a project that serves until it is stopped.

    Raises:
        ToolCallFailed: It cannot be started.
        CapacityExceeded: Its project is too full to run anything.
    """
    with _start_checked(start):
        return await ServingProgram.start(start)


@contextmanager
def _start_checked(start: ProgramStart) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        raise ToolCallFailed(f"{start.command[0]:.80} cannot be started: {error}") from error
