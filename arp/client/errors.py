"""The errors of a client, and the mapping from close codes and HTTP statuses to errors.

    ArpError
    ├── LocalError
    │   ├── ClientClosed         the client is closed, or was started before
    │   ├── InvalidAddress       the address and the options give no transport
    │   └── UploadUnavailable    this transport carries no files
    └── RemoteError
        ├── ServerRefused        the server refuses us, and would refuse us again
        ├── SessionDeleted       the owner has deleted the session
        └── ServerUnreachable    the server did not answer; it may answer later

Callers never get `LinkLost`. A link raises it to report to the driver that the connection has
ended, and whether to reconnect.
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
"""Maximum number of characters that are shown of a reason from a peer."""

FATAL_CLOSE_CODES = frozenset((1003, 1008, 1009, 1010))
"""Close codes after which a new connection would end the same way (protocol.md 5)."""

FATAL_REFUSALS = frozenset(
    (
        ErrorCode.VERSION_MISMATCH,
        ErrorCode.SESSION_NOT_FOUND,
        ErrorCode.INVALID_MESSAGE,
        ErrorCode.UNAUTHENTICATED,
        ErrorCode.PERMISSION_DENIED,
    )
)
"""Error codes that the server would send again for the same `hello`."""

RETRY_STATUS = frozenset((408, 425, 429))
"""HTTP statuses below 500 after which a request should be sent again; so should it after any
5xx."""

UNAUTHORIZED, FORBIDDEN = 401, 403
DELETED, NOT_ALLOWED = 1000, 1008


class ClientClosed(LocalError):
    """The client is closed, or was started before; nothing was sent."""


class InvalidAddress(LocalError):
    """The address or its options name no transport."""


class UploadUnavailable(LocalError):
    """This transport carries no files."""


class ServerRefused(RemoteError):
    """The server refuses the connection, and would refuse it again."""


class SessionDeleted(SessionNotFound):
    """The session was deleted. Connecting again would start another session."""


class ServerUnreachable(RemoteError):
    """The server did not answer; it may answer later."""

    retryable = True


class LinkLost(Exception):
    """A connection has ended or could not be opened.

    Args:
        reason: Reason for people; safe to print.
        error: Error for the caller if reconnecting makes no sense; `None` means reconnect.
        unavailable: Whether only this transport failed, so that another one may work.
    """

    def __init__(
        self, reason: str, *, error: ArpError | None = None, unavailable: bool = False
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.error = error
        self.unavailable = unavailable


def lost_by_close(code: int, reason: str) -> LinkLost:
    """Return the `LinkLost` for a WebSocket close code.

    Source: protocol.md 5.
    """
    cause = f"closed with {code}{_why(reason)}"
    if code == DELETED:
        error: ArpError = SessionDeleted(
            f"the session has ended: {cause}; connect again to start another one"
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
        error = ServerRefused(f"the server does not accept what we send: {cause}")
    return LinkLost(cause, error=error)


def lost_by_status(status: int, url: str, body: bytes = b"") -> LinkLost:
    """Return the `LinkLost` for an HTTP status that was received instead of a connection."""
    cause = f"HTTP {status} from {url}{_why(reason_in(body))}"
    if status in RETRY_STATUS or status >= 500:
        return LinkLost(cause, unavailable=True)
    if status == UNAUTHORIZED:
        return LinkLost(cause, error=Unauthenticated(f"no valid token: {cause}; give token=…"))
    with suppress(InvalidMessage):
        for payload in errors_in(body):
            # The address is right, but the app has no such agent.
            if payload.detail == "workflow":
                return LinkLost(cause, error=coded_error(payload))
    error: ArpError = (
        PermissionDenied(f"the server does not let us in: {cause}")
        if status == FORBIDDEN
        else ServerRefused(f"nothing there speaks ARP: {cause}; check the address")
    )
    return LinkLost(cause, error=error, unavailable=True)


def lost_by_refusal(payload: ErrorPayload) -> LinkLost:
    """Return the `LinkLost` for an error that was received instead of `session`."""
    cause = f"our hello was refused: {printable(payload.error)}"
    is_fatal = payload.code in FATAL_REFUSALS and not payload.retryable
    return LinkLost(cause, error=coded_error(payload) if is_fatal else None)


def coded_error(payload: ErrorPayload) -> ArpError:
    """Return an exception of the class that has the code of the payload."""
    kind = _CLASSES.get(payload.code)
    if kind is not None:
        return kind(payload.error, detail=payload.detail)
    code = f" (code {payload.code})" if payload.code != NO_CODE else ""
    return RemoteError(f"{payload.error}{code}", detail=payload.detail)


def printable(text: str) -> str:
    """Return a text of a peer on one line, with every character visible, cut to the maximum."""
    shown = sanitise_line(" ".join(text.replace("\r\n", "\n").split("\n")))
    return " ".join(shown.split())[:MOST_REASON_CHARACTERS]


def reason_in(body: bytes) -> str:
    """Return the reason in the body of an HTTP answer: its ARP errors, or else its text."""
    try:
        return printable("; ".join(payload.error for payload in errors_in(body)))
    except InvalidMessage:
        return printable(body.decode("utf-8", "replace"))


def errors_in(body: bytes) -> list[ErrorPayload]:
    """Return the ARP errors in the body of an HTTP answer.

    Raises:
        InvalidMessage: The body is not a frame.
    """
    messages = _DECODER.decode(body)
    return [message.payload for message in messages if isinstance(message, ErrorMessage)]


def _why(reason: str) -> str:
    shown = printable(reason)
    return f": {shown}" if shown else ""


def _classes() -> dict[int, type[ArpError]]:
    """Return the class of each code; of classes with the same code, the first in the file."""
    named = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    found: dict[int, type[ArpError]] = {}
    for kind in named:
        if issubclass(kind, ArpError) and kind not in (ArpError, LocalError, RemoteError):
            found.setdefault(int(kind.code), kind)
    assert found.keys() <= {int(code) for code in ErrorCode}
    return found


_CLASSES = _classes()

_DECODER = agent_decoder("json")
