"""The errors of the Agent Runtime Interface: ten codes, one class each.

AriError(code, http_status, grpc_status)
├── NotFound               a session, turn or request that does not exist
├── AlreadyExists          an id that is taken
├── InvalidArgument        a field of the request is wrong; the message names it
├── FailedPrecondition     not in this state: a turn is active, the session is closed
├── OperationDenied        `PermissionDenied`: the caller may not do this
├── Unimplemented          this runtime cannot do it, now or ever
├── Unavailable            the runtime's process, or the model behind it, does not answer; retry
├── DeadlineExceeded       it took too long
├── Canceled               the turn was cancelled
└── RuntimeInternal        `Internal`: a fault of the runtime or of its adapter

A call that raises one of them has changed nothing, unless its docstring says so. A failure during a
turn is not raised: it becomes the turn's terminal event, with an `ErrorStatus`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar

import msgspec

from arp.protocol.json_value import JsonObject
from arp.protocol.safe_text import well_formed


class AriCode(StrEnum):
    """Error codes of the interface."""

    NOT_FOUND = "NotFound"
    ALREADY_EXISTS = "AlreadyExists"
    INVALID_ARGUMENT = "InvalidArgument"
    FAILED_PRECONDITION = "FailedPrecondition"
    PERMISSION_DENIED = "PermissionDenied"
    UNIMPLEMENTED = "Unimplemented"
    UNAVAILABLE = "Unavailable"
    DEADLINE_EXCEEDED = "DeadlineExceeded"
    CANCELED = "Canceled"
    INTERNAL = "Internal"


class ErrorStatus(msgspec.Struct, frozen=True, omit_defaults=True):
    """An error as a value, for events and for the wire."""

    code: AriCode
    message: str = ""
    """Text for people: what was wrong and what to do."""
    retryable: bool = False
    """Whether the same request may succeed later."""
    details: JsonObject = msgspec.field(default_factory=dict)
    """Further data: `http_status` of the model's provider; `limit` if a limit of the runtime or of
    an account was reached, such as `turns` or `budget`."""


class AriError(Exception):
    """Base class of all errors of a runtime."""

    code: ClassVar[AriCode] = AriCode.INTERNAL
    http_status: ClassVar[int] = 500
    grpc_status: ClassVar[int] = 13
    """Number of the gRPC status (grpc.StatusCode)."""
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, **details: object) -> None:
        super().__init__(message)
        self.message = well_formed(message)
        self.details: JsonObject = msgspec.to_builtins(details)

    def status(self) -> ErrorStatus:
        """Return the error as a value."""
        return ErrorStatus(self.code, self.message, self.retryable, self.details)


class NotFound(AriError):
    """The session, turn or request does not exist."""

    code, http_status, grpc_status = AriCode.NOT_FOUND, 404, 5


class AlreadyExists(AriError):
    """The id is taken."""

    code, http_status, grpc_status = AriCode.ALREADY_EXISTS, 409, 6


class InvalidArgument(AriError):
    """A field of the request is wrong; the message names it."""

    code, http_status, grpc_status = AriCode.INVALID_ARGUMENT, 400, 3


class FailedPrecondition(AriError):
    """The state does not allow it: a turn is active, the session is closed, a request is closed."""

    code, http_status, grpc_status = AriCode.FAILED_PRECONDITION, 412, 9


class OperationDenied(AriError):
    """The caller may not do this (`PermissionDenied`)."""

    code, http_status, grpc_status = AriCode.PERMISSION_DENIED, 403, 7


class Unimplemented(AriError):
    """This runtime cannot do it, now or ever."""

    code, http_status, grpc_status = AriCode.UNIMPLEMENTED, 501, 12


class Unavailable(AriError):
    """The runtime's process, or the model behind it, does not answer."""

    code, http_status, grpc_status = AriCode.UNAVAILABLE, 503, 14
    retryable = True


class DeadlineExceeded(AriError):
    """The operation took too long."""

    code, http_status, grpc_status = AriCode.DEADLINE_EXCEEDED, 504, 4
    retryable = True


class Canceled(AriError):
    """The turn was cancelled."""

    code, http_status, grpc_status = AriCode.CANCELED, 499, 1


class RuntimeInternal(AriError):
    """A fault of the runtime or of its adapter (`Internal`)."""

    code, http_status, grpc_status = AriCode.INTERNAL, 500, 13


ERRORS: dict[AriCode, type[AriError]] = {
    error.code: error
    for error in (
        NotFound,
        AlreadyExists,
        InvalidArgument,
        FailedPrecondition,
        OperationDenied,
        Unimplemented,
        Unavailable,
        DeadlineExceeded,
        Canceled,
        RuntimeInternal,
    )
}


def error_of(status: ErrorStatus) -> AriError:
    """Return the exception for an error value."""
    error = ERRORS[status.code](status.message)
    error.details = status.details
    return error


def status_of(error: BaseException) -> ErrorStatus:
    """Return an exception as an error value; the text of an unknown exception is not exposed."""
    if isinstance(error, AriError):
        return error.status()
    if isinstance(error, TimeoutError):
        return ErrorStatus(AriCode.DEADLINE_EXCEEDED, "it took too long", True)
    if isinstance(error, NotImplementedError):
        return ErrorStatus(AriCode.UNIMPLEMENTED, str(error) or "not implemented")
    return ErrorStatus(AriCode.INTERNAL, f"the runtime failed ({type(error).__name__})")
