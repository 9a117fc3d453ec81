"""Redaction of the secrets of the server process in the ledger and the log."""

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
    """Return redaction settings that also contain the secrets of the process.

    Args:
        redaction: Settings of the app.
        environment: Environment of the process; ignored if `redaction.environment` is false.
        own: Secrets of the server, such as its token and the client secret of its login.
    """
    found = secrets_of(environment) if redaction.environment else ()
    return msgspec.structs.replace(redaction, secrets=(*redaction.secrets, *found, *own))


class RedactingFormatter(logging.Formatter):
    """Formats records and tracebacks with another formatter, then removes secrets.

    Messages and tracebacks may contain text from agents and clients, so control characters in them
    are made visible. Colours that the other formatter adds are kept.
    """

    def __init__(self, inner: logging.Formatter | None, redactor: Redactor) -> None:
        super().__init__()
        self._inner = inner or logging.Formatter()
        self._redactor = redactor

    def format(self, record: logging.LogRecord) -> str:
        """Return one record as text."""
        shown = copy.copy(record)
        # The excluded records are from uvicorn, which uses escape sequences for colours.
        if not hasattr(record, "color_message") and record.name != "uvicorn.access":
            shown.msg, shown.args = sanitise(record.getMessage()), None
        if record.exc_info:
            shown.exc_text = sanitise(self._inner.formatException(record.exc_info))
        return self._redactor.text(self._inner.format(shown))[0]


def redact_logs(redaction: Redaction) -> None:
    """Remove secrets from the output of all handlers of the root logger and of uvicorn.

    Args:
        redaction: Redaction settings, including the secrets of the process.
    """
    redactor = Redactor(redaction)
    for name in (None, "uvicorn", "uvicorn.error", "uvicorn.access"):
        for handler in logging.getLogger(name).handlers:
            inner = handler.formatter
            if not isinstance(inner, RedactingFormatter):
                handler.setFormatter(RedactingFormatter(inner, redactor))
