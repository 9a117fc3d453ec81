"""What the server's process knows stands neither in facts nor in its log."""

from __future__ import annotations

import io
import logging

from arp.redact.settings import Redaction
from arp.server.login.own_secrets import redact_logs, with_own_secrets

ENVIRONMENT = {"API_KEY": "key-of-the-process", "HOME": "/home/ann"}


def test_secrets_of_the_process_are_added_to_those_that_were_set() -> None:
    set_so = Redaction(secrets=("one-that-was-set",), fields=("iban",))
    assert with_own_secrets(set_so, ENVIRONMENT, ["the-token"]) == Redaction(
        secrets=("one-that-was-set", "key-of-the-process", "the-token"), fields=("iban",)
    )


def test_the_environment_is_left_alone_if_told_so() -> None:
    found = with_own_secrets(Redaction(environment=False), ENVIRONMENT, [])
    assert found.secrets == ()


def test_a_log_is_written_without_secrets_also_in_tracebacks() -> None:
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    root = logging.getLogger()
    before = {one: one.formatter for one in root.handlers}
    root.addHandler(handler)
    try:
        settings = Redaction(secrets=("key-of-the-process",))
        redact_logs(settings)
        redact_logs(settings)  # again changes nothing
        try:
            raise ValueError("key-of-the-process \x1b[2J\u202e")
        except ValueError:
            logging.getLogger("arp.test").exception("password=%s", "hunter2 \x9b31m")
    finally:
        root.removeHandler(handler)
        for one, formatter in before.items():
            one.setFormatter(formatter)
    first, *rest = written.getvalue().splitlines()
    assert first == "ERROR password=[redacted] <U+009B>31m"
    assert rest[0] == "Traceback (most recent call last):"
    assert rest[-1] == "ValueError: [redacted] ␛[2J<U+202E>"
