"""What can go wrong for a client, and what each refusal of the network means in ARP's own errors.

    ArpError
    ├── LocalError
    │   ├── ClientClosed         the client is closed, or was started before
    │   ├── InvalidAddress       no transport can be made of what was given
    │   └── UploadUnavailable    files cannot travel here
    └── RemoteError
        ├── ServerRefused        the server will not talk to us, however often we come back
        ├── SessionDeleted       the session is over: whoever it belongs to has deleted it
        └── ServerUnreachable    nobody answered, this time

`LinkLost` is not for callers: it is how a link tells the driver that it is over, and whether to
come back.
"""

from __future__ import annotations

from contextlib import suppress

from arp.protocol import errors
from arp.protocol.codec import agent_decoder
from arp.protocol.errors import (
    NO_CODE,
    ArpError,
    ErrorCode,
    ErrorPayload,
    InvalidMessage,
    LocalError,
    PermissionDenied,
    RemoteError,
    SessionNotFound,
    Unauthenticated,
)
from arp.protocol.messages import ErrorMessage
from arp.protocol.safe_text import sanitise_line

MOST_REASON_CHARACTERS = 200
"""What a peer says as its reason is shown no longer than this."""

FATAL_CLOSE_CODES = frozenset((1003, 1008, 1009, 1010))
"""Coming back would meet the same answer (protocol.md 5)."""

FATAL_REFUSALS = frozenset(
    (
        ErrorCode.VERSION_MISMATCH,
        ErrorCode.SESSION_NOT_FOUND,
        ErrorCode.INVALID_MESSAGE,
        ErrorCode.UNAUTHENTICATED,
        ErrorCode.PERMISSION_DENIED,
    )
)
"""Answers to a `hello` that the same `hello` would meet again."""

RETRY_STATUS = frozenset((408, 425, 429))
"""Refusals of HTTP that are worth another try; so is every 5xx."""

UNAUTHORIZED, FORBIDDEN = 401, 403
DELETED, NOT_ALLOWED = 1000, 1008


class ClientClosed(LocalError):
    """The client is closed, or was started before; nothing was sent."""


class InvalidAddress(LocalError):
    """The address, or what was given with it, names no transport."""


class UploadUnavailable(LocalError):
    """This transport carries no files."""


class ServerRefused(RemoteError):
    """The server will not talk to us, however often we come back."""


class SessionDeleted(SessionNotFound):
    """The session that we were on is over for good; coming back would begin another one."""


class ServerUnreachable(RemoteError):
    """Nobody answered, this time."""

    retryable = True


class LinkLost(Exception):
    """One connection is over.

    Args:
        reason: For people; safe to print.
        error: Why coming back makes no sense; `None` = come back.
        unavailable: Only this transport was refused; another one may do.
    """

    def __init__(
        self, reason: str, *, error: ArpError | None = None, unavailable: bool = False
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.error = error
        self.unavailable = unavailable


def lost_by_close(code: int, reason: str) -> LinkLost:
    """Say what a WebSocket close code means for us.

    Source: protocol.md 5.
    """
    cause = f"closed with {code}{_why(reason)}"
    if code == DELETED:
        error: ArpError = SessionDeleted(
            f"the session is over: {cause}; connect again to begin another one"
        )
        return LinkLost(cause, error=error)
    if code not in FATAL_CLOSE_CODES:
        return LinkLost(cause)
    if code == NOT_ALLOWED:
        error = PermissionDenied(
            f"the server does not let us in: {cause}; "
            "check the token, and that the session is yours"
        )
    else:
        error = ServerRefused(f"the server does not take what we send: {cause}")
    return LinkLost(cause, error=error)


def lost_by_status(status: int, url: str, body: bytes = b"") -> LinkLost:
    """Say what an HTTP status in place of a connection means for us."""
    cause = f"HTTP {status} from {url}{_why(words(body))}"
    if status in RETRY_STATUS or status >= 500:
        return LinkLost(cause, unavailable=True)
    if status == UNAUTHORIZED:
        return LinkLost(cause, error=Unauthenticated(f"no valid token: {cause}; give token=…"))
    with suppress(InvalidMessage):
        for payload in payloads(body):
            if payload.detail == "workflow":
                return LinkLost(cause, error=coded_error(payload))
    error: ArpError = (
        PermissionDenied(f"the server does not let us in: {cause}")
        if status == FORBIDDEN
        else ServerRefused(f"nothing there speaks ARP: {cause}; check the address")
    )
    return LinkLost(cause, error=error, unavailable=True)


def lost_by_refusal(payload: ErrorPayload) -> LinkLost:
    """Say what an error in place of a `session` means for us."""
    cause = f"our hello was refused: {printable(payload.error)}"
    is_fatal = payload.code in FATAL_REFUSALS and not payload.retryable
    return LinkLost(cause, error=coded_error(payload) if is_fatal else None)


def coded_error(payload: ErrorPayload) -> ArpError:
    """Return the exception of the class that has the payload's code."""
    kind = _CLASSES.get(payload.code)
    if kind is not None:
        return kind(payload.error, detail=payload.detail)
    code = f" (code {payload.code})" if payload.code != NO_CODE else ""
    return RemoteError(f"{payload.error}{code}", detail=payload.detail)


def printable(text: str) -> str:
    """Return a peer's words on one line, every character visible, cut."""
    shown = sanitise_line(" ".join(text.replace("\r\n", "\n").split("\n")))
    return " ".join(shown.split())[:MOST_REASON_CHARACTERS]


def words(body: bytes) -> str:
    """Return what a body that came with an HTTP status says: its ARP errors, or else its text."""
    try:
        return printable("; ".join(payload.error for payload in payloads(body)))
    except InvalidMessage:
        return printable(body.decode("utf-8", "replace"))


def payloads(body: bytes) -> list[ErrorPayload]:
    """Return the ARP errors in a body.

    Raises:
        InvalidMessage: It is no frame.
    """
    messages = _DECODER.decode(body)
    return [message.payload for message in messages if isinstance(message, ErrorMessage)]


def _why(reason: str) -> str:
    shown = printable(reason)
    return f": {shown}" if shown else ""


def _classes() -> dict[int, type[ArpError]]:
    """Return the class of each code; where two share one, the first of the tree."""
    named = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    found: dict[int, type[ArpError]] = {}
    for kind in named:
        if issubclass(kind, ArpError) and kind not in (ArpError, LocalError, RemoteError):
            found.setdefault(int(kind.code), kind)
    assert found.keys() <= {int(code) for code in ErrorCode}
    return found


_CLASSES = _classes()

_DECODER = agent_decoder("json")
