"""Log of the coding agent: the lines of section 10 of the interface document.

    2026-03-20 15:09:35 [tool_agent.tool.agent] INFO: [TOOL_USE] create_docker_env | {"image":…}

A library does not configure logging: `arp tools serve` writes the lines to standard output with
`LOG_FORMAT`. Secrets are redacted before a line is written.

Source: internal_api.md 10.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

import msgspec

from arp.protocol.json_value import JsonObject
from arp.redact.redactor import Redactor
from arp.redact.settings import Redaction

LOGGER: Final = "tool_agent.tool.agent"
LOG_FORMAT: Final = "%(asctime)s [%(name)s] %(levelname)s: %(message)s"
LOG_DATE: Final = "%Y-%m-%d %H:%M:%S"
MAX_LINE: Final = 500
"""Maximum length of the text in a line, in characters; a longer text is truncated."""
MAX_VALUE: Final = 200
"""Maximum length in characters of one argument, such as the content of a file; a longer argument
ends with `...`."""
MAX_START: Final = 80
"""Maximum length of a task's description, in characters."""

logger = logging.getLogger(LOGGER)


class CodingLog:
    """Writes the log lines of one task."""

    def __init__(self) -> None:
        self._redactor = Redactor(Redaction())

    def started(self, description: str) -> None:
        """Log the start of a task."""
        self._write(f"[CodingAgent] Starting task: {_one_line(description, MAX_START)}...")

    def tool_use(self, tool: str, args: JsonObject) -> None:
        """Log the use of a tool."""
        short = {name: _short(value) for name, value in args.items()}
        self._write(f"[TOOL_USE] {tool} | {msgspec.json.encode(short).decode()}")

    def text(self, text: str) -> None:
        """Log text of the coding agent."""
        if text.strip():
            self._write(f"[TEXT] {_one_line(text, MAX_LINE)}")

    def done(self, seconds: float) -> None:
        """Log the end of a task and its duration."""
        self._write(f"[DONE] duration={round(seconds * 1000)}ms")

    def cost(self, amount_usd: float) -> None:
        """Log the cost of a task."""
        self._write(f"[COST] ${amount_usd:.2f}")

    def failed(self, error: str) -> None:
        """Log the error of a failed task."""
        logger.error("%s", self._clean(f"[ERROR] {_one_line(error, MAX_LINE)}"))

    def _write(self, line: str) -> None:
        logger.info("%s", self._clean(line))

    def _clean(self, line: str) -> str:
        cleaned: str = self._redactor.clean(line)[0]
        return cleaned


def log_to(write: Callable[[str], object]) -> logging.Handler:
    """Send the lines of the coding agent to a function as well; return the handler.

    Args:
        write: Receives each line in the format of the document, without a line break.
    """

    class LineHandler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            write(self.format(record))

    handler = LineHandler(logging.INFO)
    handler.setFormatter(logging.Formatter(LOG_FORMAT, LOG_DATE))
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    return handler


def _short(value: object) -> object:
    if isinstance(value, str) and len(value) > MAX_VALUE:
        return f"{value[:MAX_VALUE]}..."
    if isinstance(value, dict | list) and len(msgspec.json.encode(value)) > MAX_VALUE:
        return "..."
    return value


def _one_line(text: str, most: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else line[:most]
