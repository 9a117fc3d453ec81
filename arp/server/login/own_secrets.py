"""Keeps the secrets of the server's own process out of the ledger and the log."""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterable, Mapping

import msgspec

from arp.protocol.safe_text import sanitise
from arp.redact.names import secrets_of
from arp.redact.redactor import Redactor
from arp.redact.settings import Redaction


def with_own_secrets(
    redaction: Redaction, environment: Mapping[str, str], own: Iterable[str]
) -> Redaction:
    """Return what to take out of facts, with the secrets that the process has.

    Args:
        redaction: As it was set.
        environment: Of the process; left alone if `redaction` says so.
        own: What the server was given: its token, the secret of its login.
    """
    found = secrets_of(environment) if redaction.environment else ()
    return msgspec.structs.replace(redaction, secrets=(*redaction.secrets, *found, *own))


class RedactingFormatter(logging.Formatter):
    """Formats records as another formatter does, tracebacks included, without secrets.

    Messages and tracebacks contain what an agent raised or received, so control characters in them
    are made visible. The colours that the other formatter adds stay.
    """

    def __init__(self, inner: logging.Formatter | None, redactor: Redactor) -> None:
        super().__init__()
        self._inner = inner or logging.Formatter()
        self._redactor = redactor

    def format(self, record: logging.LogRecord) -> str:
        """Return one record as text."""
        shown = copy.copy(record)
        # The others are the HTTP server's own, which uses escapes for colours and addresses.
        if not hasattr(record, "color_message") and record.name != "uvicorn.access":
            shown.msg, shown.args = sanitise(record.getMessage()), None
        if record.exc_info:
            shown.exc_text = sanitise(self._inner.formatException(record.exc_info))
        return self._redactor.text(self._inner.format(shown))[0]


def redact_logs(redaction: Redaction) -> None:
    """Make every handler of the root logger and of the HTTP server write without secrets.

    Args:
        redaction: What to take out, the process's own secrets among it.
    """
    redactor = Redactor(redaction)
    for name in (None, "uvicorn", "uvicorn.error", "uvicorn.access"):
        for handler in logging.getLogger(name).handlers:
            inner = handler.formatter
            if not isinstance(inner, RedactingFormatter):
                handler.setFormatter(RedactingFormatter(inner, redactor))
