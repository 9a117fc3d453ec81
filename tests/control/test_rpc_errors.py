"""Errors as JSON-RPC clients see them: a number of its range, the project's code in `data`."""

from __future__ import annotations

import pytest

from arp.control.jsonrpc import UnknownMethod, rpc_error
from arp.ledger.fact_types import ProfileViolation
from arp.protocol.errors import (
    ArpError,
    InvalidMessage,
    SessionBusy,
    SessionNotFound,
    Unauthenticated,
)


@pytest.mark.parametrize(
    ("error", "number", "code", "name"),
    [
        (UnknownMethod("no method"), -32601, 2, "INVALID_METHOD"),
        (InvalidMessage("no"), -32602, 11, "INVALID_MESSAGE"),
        (SessionNotFound("no"), -32008, 8, "SESSION_NOT_FOUND"),
        (Unauthenticated("no"), -32014, 14, "UNAUTHENTICATED"),
        (SessionBusy("no"), -32017, 17, "BUSY"),
    ],
)
def test_error_has_its_number_its_code_and_its_name(
    error: ArpError, number: int, code: int, name: str
) -> None:
    told = rpc_error(error)
    assert told.code == number
    assert (told.data["code"], told.data["name"]) == (code, name)


def test_what_may_be_tried_again_says_so_and_what_it_is_about() -> None:
    assert rpc_error(SessionBusy("busy", detail="t1")).data == {
        "code": 17,
        "name": "BUSY",
        "retryable": True,
        "detail": "t1",
    }


def test_stranger_goes_out_without_its_text(caplog: pytest.LogCaptureFixture) -> None:
    told = rpc_error(RuntimeError("a secret of the server"))
    assert (told.code, told.data["name"]) == (-32603, "INTERNAL")
    assert "secret" not in told.message
    assert "a secret of the server" in caplog.text


def test_words_that_make_no_fact_are_the_callers_mistake() -> None:
    told = rpc_error(ProfileViolation("profile validation failed: task.failed: reason: missing"))
    assert (told.code, told.message[:25]) == (-32602, "profile validation failed")
