"""Every error of the protocol: its code, its class, and what goes over the wire.

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
└── RemoteError         the peer broke a rule: answered with its code, never raised from `receive`
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
"""From here on stand scripts with a full stop of their own, such as Chinese, or with none."""
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
    """Anything that ARP refuses, with the code that a peer sees."""

    code: ClassVar[ErrorCode] = ErrorCode.INTERNAL
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, *, detail: str | None = None) -> None:
        super().__init__(message)
        self.message = well_formed(message)
        """What was wrong, where, and what to do; safe to show to the peer."""
        self.detail = None if detail is None else well_formed(detail)
        """The path, id or op that it is about, if there is one."""
        self.change: int | None = None
        """Number of the change that it is about, of a commit with several."""


class LocalError(ArpError):
    """Our caller broke a rule. Raised in the caller; nothing has changed."""


class RemoteError(ArpError):
    """The peer broke a rule. It gets the code; the connection lives on."""


class InvalidComponent(LocalError):
    """A component does not fit its schema; the message names the path."""

    code = ErrorCode.INVALID_COMPONENT


class InvalidPatch(LocalError):
    """A patch op has a wrong target, path or value; the whole commit is refused."""

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
    """The surface, or the turn to which it belonged, has ended."""

    code = ErrorCode.SURFACE_DESTROYED


class InvalidSerial(LocalError):
    """A popup, an overlay or fullscreen without a recent input on the surface that it is about."""

    code = ErrorCode.INVALID_SERIAL


class RoleConflict(LocalError):
    """A surface has another role already; a role never changes."""

    code = ErrorCode.ROLE_CONFLICT


class TransferDenied(LocalError):
    """A surface cannot go to that session."""

    code = ErrorCode.TRANSFER_DENIED


class InvalidMessage(RemoteError):
    """A message that cannot be read or is not allowed."""

    code = ErrorCode.INVALID_MESSAGE


class InvalidAnswer(RemoteError):
    """An answer that does not fit the question; the question stays open."""

    code = ErrorCode.INVALID_MESSAGE


class UnknownObject(RemoteError):
    """A component, surface or turn that does not exist, or exists no more."""

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
    """The agent's own code raised. The log has the traceback, the message has not."""

    code = ErrorCode.AGENT_FAILED


class InternalError(RemoteError):
    """An error of the server. The log has the reason, the message has not."""

    code = ErrorCode.INTERNAL


NO_CODE = 0
"""In place of the code of an error that came without one, as those of the v0.1 draft do."""


class ErrorPayload(msgspec.Struct, frozen=True, omit_defaults=True):
    """`payload` of an `error` message."""

    error: str
    code: int
    detail: str | None = None
    """What it is about: a path, an id, an op."""
    id: str | None = None
    """The `id` of the input that it answers, if that had one."""
    retryable: bool = False
    debug: str | None = None
    """Under `arp serve --debug`: where in the agent's code it went wrong. Such an error comes
    besides, to whoever is connected then; it is no fact and never told again."""


def error_payload(error: BaseException, input_id: str | None = None) -> ErrorPayload:
    """Return what a peer may see of an exception; nothing else decides that.

    An exception that is not an `ArpError` goes out as `INTERNAL` without its text.
    """
    if isinstance(error, ArpError):
        return ErrorPayload(
            error.message, int(error.code), error.detail, input_id, retryable=error.retryable
        )
    return ErrorPayload("Internal error. The server's log has it.", 19, None, input_id)


def sentence(text: str) -> str:
    """Return an error's text as a screen shows it: with a capital and a full stop.

    A first word that is no plain word stays as it is, since it names something: `props.rows: …`,
    `app.py has …`, `token: …`. So does the end of a text in a script without our full stop.
    """
    sentence = text.strip()
    first = _FIRST_WORD.match(sentence)
    if first is not None and first[0].islower():
        sentence = sentence[0].upper() + sentence[1:]
    last = sentence[-1:]
    ends_open = last in _CLOSERS or (last.isalnum() and last < _AFTER_LATIN)
    return f"{sentence}." if ends_open else sentence
