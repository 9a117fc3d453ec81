"""Everything that the explorer refuses or cannot do, told so that a person knows what to do next.

ExplorerError(message, hint)
├── StatementRefused   the SQL is not a single reading statement; nothing ran
├── QueryFailed        SQLite could not run it; nothing changed
├── QueryTimedOut      it ran longer than the limit and was stopped
├── QueryCancelled     somebody stopped it
├── DataUnreadable     a file is neither CSV nor SQLite, or is damaged
├── ExportFailed       the CSV could not be written
└── ModelFailed        the language model gave no answer
"""

from __future__ import annotations

from typing import ClassVar, Literal


class ExplorerError(Exception):
    """Something that went wrong in a way that the user can understand."""

    title: ClassVar[str] = "That did not work"
    status: ClassVar[Literal["error", "warning", "info"]] = "error"

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        """What was wrong and where."""
        self.hint = hint
        """What to do about it; may be empty."""


class StatementRefused(ExplorerError):
    """The statement might do more than read, or is more than one."""

    title = "I only read"
    status = "warning"


class QueryFailed(ExplorerError):
    """SQLite does not understand the statement or could not finish it."""

    title = "The query failed"


class QueryTimedOut(ExplorerError):
    """The statement took longer than the limit; it has been stopped."""

    title = "The query took too long"
    status = "warning"


class QueryCancelled(ExplorerError):
    """The statement was stopped on request."""

    title = "Stopped"
    status = "info"


class DataUnreadable(ExplorerError):
    """A file holds no table that could be read."""

    title = "I cannot read this file"


class ExportFailed(ExplorerError):
    """No file was written, or only a part of it that has been removed again."""

    title = "The export failed"


class ModelFailed(ExplorerError):
    """The language model could not be asked, or its answer could not be read."""

    title = "The model did not answer"
    status = "warning"
