"""Every error has its code, and what a peer sees of one is made in one place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from arp.protocol import errors
from arp.protocol.errors import (
    ArpError,
    ErrorCode,
    ErrorPayload,
    LocalError,
    RemoteError,
    error_payload,
    sentence,
)

SENTENCES = Path(__file__).parents[2] / "schemas/cases/sentences.json"

CODES = {
    "INVALID_OBJECT": 1,
    "INVALID_METHOD": 2,
    "INVALID_SERIAL": 3,
    "RESOURCE_LIMIT": 4,
    "SURFACE_DESTROYED": 5,
    "ROLE_CONFLICT": 6,
    "VERSION_MISMATCH": 7,
    "SESSION_NOT_FOUND": 8,
    "TRANSFER_DENIED": 9,
    "COMPONENT_UNSUPPORTED": 10,
    "INVALID_MESSAGE": 11,
    "INVALID_COMPONENT": 12,
    "INVALID_PATCH": 13,
    "UNAUTHENTICATED": 14,
    "PERMISSION_DENIED": 15,
    "RATE_LIMITED": 16,
    "BUSY": 17,
    "AGENT_FAILED": 18,
    "INTERNAL": 19,
}


def test_codes_are_those_of_the_wire() -> None:
    """protocol.md 5: error codes."""
    assert {code.name: code.value for code in ErrorCode} == CODES


@pytest.mark.parametrize(
    ("name", "code", "retryable"),
    [
        ("InvalidComponent", 12, False),
        ("InvalidPatch", 13, False),
        ("ComponentUnsupported", 10, False),
        ("ResourceLimit", 4, False),
        ("SessionBusy", 17, True),
        ("SurfaceDestroyed", 5, False),
        ("InvalidMessage", 11, False),
        ("InvalidAnswer", 11, False),
        ("UnknownObject", 1, False),
        ("SessionNotFound", 8, False),
        ("Unauthenticated", 14, False),
        ("PermissionDenied", 15, False),
        ("RateLimited", 16, True),
        ("VersionMismatch", 7, False),
        ("AgentFailed", 18, False),
        ("InternalError", 19, False),
    ],
)
def test_each_class_has_its_code(name: str, code: int, retryable: bool) -> None:
    kind: type[ArpError] = getattr(errors, name)
    assert (kind.code, kind.retryable) == (code, retryable)
    assert issubclass(kind, LocalError | RemoteError)
    assert name in str(errors.__doc__), "every class stands in the tree at the top of the file"


def test_a_peer_sees_what_was_wrong_and_where() -> None:
    payload = error_payload(errors.InvalidPatch("ops[1] remove: no 'x'", detail="x"), "i1")
    assert payload == ErrorPayload("ops[1] remove: no 'x'", 13, "x", "i1", retryable=False)


def test_a_peer_sees_nothing_of_a_foreign_exception() -> None:
    """style.md: an unknown one goes out as INTERNAL without text."""
    payload = error_payload(RuntimeError("password=hunter2"))
    assert payload == ErrorPayload("Internal error. The server's log has it.", 19)


def test_what_can_be_tried_again_says_so() -> None:
    assert error_payload(errors.SessionBusy("wait")).retryable


class Odd(str):
    """A text that no encoder takes."""


def test_what_an_error_says_is_plain_text() -> None:
    """An agent raises it with whatever its framework gave; it goes into a fact."""
    error = errors.AgentFailed(Odd("no \ud800"), detail=Odd("x"))
    assert (type(error.message), error.message) == (str, "no \ufffd")
    assert (type(error.detail), error.detail) == (str, "x")


def test_an_error_without_a_text_is_a_mistake_of_who_raises_it() -> None:
    with pytest.raises(TypeError, match="expected str, got KeyError"):
        errors.AgentFailed(KeyError("x"))  # type: ignore[arg-type]  # the mistake


@pytest.mark.parametrize(("text", "shown"), json.loads(SENTENCES.read_text()))
def test_an_error_shows_as_a_sentence(text: str, shown: str) -> None:
    """The page runs the same cases."""
    assert sentence(text) == shown
