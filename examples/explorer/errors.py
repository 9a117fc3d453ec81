"""The errors of the explorer; each says what a user can do next.

ExplorerError(message, hint)
├── StatementRefused   the SQL is not a single reading statement; nothing ran
├── QueryFailed        SQLite could not run it; nothing changed
├── QueryTimedOut      it exceeded the time limit and was stopped
├── QueryCancelled     it was stopped on request
├── DataUnreadable     a file is neither CSV nor SQLite, or is damaged
├── ExportFailed       the CSV could not be written
└── ModelFailed        the language model gave no answer
"""

from __future__ import annotations

from typing import ClassVar, Literal


class ExplorerError(Exception):
    """An error that the user can understand."""

    title: ClassVar[str] = "That did not work"
    status: ClassVar[Literal["error", "warning", "info"]] = "error"

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        """What is wrong, and where."""
        self.hint = hint
        """What to do about it; may be empty."""


class StatementRefused(ExplorerError):
    """The statement might do more than read, or there are several."""

    title = "I only read"
    status = "warning"


class QueryFailed(ExplorerError):
    """SQLite could not parse or finish the statement."""

    title = "The query failed"


class QueryTimedOut(ExplorerError):
    """The statement exceeded the time limit and was stopped."""

    title = "The query took too long"
    status = "warning"


class QueryCancelled(ExplorerError):
    """The statement was stopped on request."""

    title = "Stopped"
    status = "info"


class DataUnreadable(ExplorerError):
    """A file has no readable table."""

    title = "I cannot read this file"


class ExportFailed(ExplorerError):
    """No file was written, or only a part of it that has been removed again."""

    title = "The export failed"


class ModelFailed(ExplorerError):
    """The language model could not be reached, or its answer could not be read."""

    title = "The model did not answer"
    status = "warning"
