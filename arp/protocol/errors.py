"""All errors of the protocol: codes, classes, and the payload on the wire.

ArpError(code, retryable)
├── LocalError          our caller broke a rule: raised, nothing changed
│   ├── InvalidComponent     12
│   ├── InvalidPatch         13
│   ├── ComponentUnsupported 10
│   ├── ResourceLimit         4
│   ├── SessionBusy          17
│   ├── SurfaceDestroyed      5
│   ├── InvalidSerial         3
│   ├── RoleConflict          6
│   └── TransferDenied        9
└── RemoteError         the peer broke a rule, or our side failed: sent to the peer with its code,
    │                   never raised from `receive`
    ├── InvalidMessage       11
    ├── InvalidAnswer        11
    ├── UnknownObject         1
    ├── InvalidMethod         2
    ├── SessionNotFound       8
    ├── Unauthenticated      14
    ├── PermissionDenied     15
    ├── RateLimited          16
    ├── VersionMismatch       7
    ├── AgentFailed          18
    └── InternalError        19
"""

from __future__ import annotations

import re
from enum import IntEnum
from typing import ClassVar

import msgspec

from arp.protocol.safe_text import well_formed

_FIRST_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*(?=[,;.…!?]*(?:\s|$))")
_AFTER_LATIN = "\u0700"
"""From this character on, scripts such as Chinese have their own full stop, or none."""
_CLOSERS = frozenset(")]}>\"'”’»%`")


class ErrorCode(IntEnum):
    """The numbers of the wire (protocol.md 5)."""

    INVALID_OBJECT = 1
    INVALID_METHOD = 2
    INVALID_SERIAL = 3
    RESOURCE_LIMIT = 4
    SURFACE_DESTROYED = 5
    ROLE_CONFLICT = 6
    VERSION_MISMATCH = 7
    SESSION_NOT_FOUND = 8
    TRANSFER_DENIED = 9
    COMPONENT_UNSUPPORTED = 10
    INVALID_MESSAGE = 11
    INVALID_COMPONENT = 12
    INVALID_PATCH = 13
    UNAUTHENTICATED = 14
    PERMISSION_DENIED = 15
    RATE_LIMITED = 16
    BUSY = 17
    AGENT_FAILED = 18
    INTERNAL = 19


class ArpError(Exception):
    """Base of all ARP errors, with the code that a peer sees."""

    code: ClassVar[ErrorCode] = ErrorCode.INTERNAL
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, *, detail: str | None = None) -> None:
        super().__init__(message)
        self.message = well_formed(message)
        """What is wrong, where, and what to do; safe to show to the peer."""
        self.detail = None if detail is None else well_formed(detail)
        """Path, id or operation that the error is about, if there is one."""
        self.change: int | None = None
        """Index of the failed change in its commit, from 0; `None` outside of a commit."""


class LocalError(ArpError):
    """Our caller broke a rule. Raised in the caller; nothing has changed."""


class RemoteError(ArpError):
    """An error that is sent to the peer with its code; the connection continues.

    The peer broke a rule, except for `AgentFailed` and `InternalError`: there our side failed.
    """


class InvalidComponent(LocalError):
    """A component does not fit its schema; the message names the path."""

    code = ErrorCode.INVALID_COMPONENT


class InvalidPatch(LocalError):
    """A patch operation has a wrong target, path or value; the whole commit is refused."""

    code = ErrorCode.INVALID_PATCH


class ComponentUnsupported(LocalError):
    """An unknown component type without a fallback."""

    code = ErrorCode.COMPONENT_UNSUPPORTED


class ResourceLimit(LocalError):
    """A limit of the protocol is exceeded (protocol.md 4)."""

    code = ErrorCode.RESOURCE_LIMIT


class SessionBusy(LocalError):
    """A turn is running, and the policy of the session refuses another one."""

    code = ErrorCode.BUSY
    retryable = True


class SurfaceDestroyed(LocalError):
    """The surface or its turn has ended."""

    code = ErrorCode.SURFACE_DESTROYED


class InvalidSerial(LocalError):
    """A popup, overlay or fullscreen request without a recent input on its surface."""

    code = ErrorCode.INVALID_SERIAL


class RoleConflict(LocalError):
    """A surface has another role already; a role never changes."""

    code = ErrorCode.ROLE_CONFLICT


class TransferDenied(LocalError):
    """A surface cannot be transferred to that session."""

    code = ErrorCode.TRANSFER_DENIED


class InvalidMessage(RemoteError):
    """A message that cannot be parsed or is not allowed."""

    code = ErrorCode.INVALID_MESSAGE


class InvalidAnswer(RemoteError):
    """An answer that does not fit the question; the question stays open."""

    code = ErrorCode.INVALID_MESSAGE


class UnknownObject(RemoteError):
    """A component, surface or turn that does not exist, or no longer exists."""

    code = ErrorCode.INVALID_OBJECT


class InvalidMethod(RemoteError):
    """The interface has no such operation in the version that is bound (object dialect)."""

    code = ErrorCode.INVALID_METHOD


class SessionNotFound(RemoteError):
    """The session does not exist, or belongs to another user."""

    code = ErrorCode.SESSION_NOT_FOUND


class Unauthenticated(RemoteError):
    """No valid token."""

    code = ErrorCode.UNAUTHENTICATED


class PermissionDenied(RemoteError):
    """The user is known, but this is not allowed."""

    code = ErrorCode.PERMISSION_DENIED


class RateLimited(RemoteError):
    """Too many requests at once."""

    code = ErrorCode.RATE_LIMITED
    retryable = True


class VersionMismatch(RemoteError):
    """A protocol version that is not supported."""

    code = ErrorCode.VERSION_MISMATCH


class AgentFailed(RemoteError):
    """The code of the agent raised. The traceback is in the log, not in the message."""

    code = ErrorCode.AGENT_FAILED


class InternalError(RemoteError):
    """An error of the server. The reason is in the log, not in the message."""

    code = ErrorCode.INTERNAL


NO_CODE = 0
"""Code of an error that was sent without a code, as in the v0.1 draft."""


class ErrorPayload(msgspec.Struct, frozen=True, omit_defaults=True):
    """`payload` of an `error` message."""

    error: str
    code: int
    detail: str | None = None
    """Subject of the error: a path, an id or an operation."""
    id: str | None = None
    """The `id` of the input that it answers, if the input had one."""
    retryable: bool = False
    debug: str | None = None
    """Position in the agent's code, with `arp serve --debug`. Such an error is sent in addition,
    to the renderers connected at that moment; it is not a fact and is not repeated."""


def error_payload(error: BaseException, input_id: str | None = None) -> ErrorPayload:
    """Return the part of an exception that a peer may see. Only this function decides that.

    An exception that is not an `ArpError` becomes `INTERNAL` without its text, which could contain
    secrets.
    """
    if isinstance(error, ArpError):
        return ErrorPayload(
            error.message, int(error.code), error.detail, input_id, retryable=error.retryable
        )
    return ErrorPayload("Internal error. The server's log has it.", 19, None, input_id)


def sentence(text: str) -> str:
    """Return an error text as a sentence for a screen: with a capital letter and a full stop.

    A first word that is a name keeps its small letter: `props.rows: …`, `app.py has …`,
    `token: …`. No full stop is added in scripts that have another one.
    """
    sentence = text.strip()
    first = _FIRST_WORD.match(sentence)
    if first is not None and first[0].islower():
        sentence = sentence[0].upper() + sentence[1:]
    last = sentence[-1:]
    ends_open = last in _CLOSERS or (last.isalnum() and last < _AFTER_LATIN)
    return f"{sentence}." if ends_open else sentence
