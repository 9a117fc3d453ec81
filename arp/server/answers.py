"""HTTP responses: values as JSON, and one response for each error."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.responses import Response

from arp.protocol.codec import encode_shown
from arp.protocol.errors import ArpError, ErrorCode, ErrorPayload, error_payload
from arp.protocol.messages import ErrorMessage
from arp.store.errors import StoreClosed

STATUS = {
    ErrorCode.UNAUTHENTICATED: 401,
    ErrorCode.PERMISSION_DENIED: 403,
    ErrorCode.SESSION_NOT_FOUND: 404,
    ErrorCode.INVALID_OBJECT: 404,
    ErrorCode.RESOURCE_LIMIT: 413,
    ErrorCode.RATE_LIMITED: 429,
    ErrorCode.BUSY: 409,
    ErrorCode.INTERNAL: 500,
}
"""HTTP status of each error code; the default is 400."""

SEALS = ((b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store"))
"""Headers of every response, so that browsers do not guess its type and no cache stores it."""

TRY_AGAIN = 503
"""HTTP status of temporary server errors, such as a ledger that cannot be written now."""


def json_response(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return a response with a value as JSON."""
    body = msgspec.json.encode(value)
    return Response(body, status, headers=headers, media_type="application/json")


def shown_response(value: Any) -> Response:
    """Return a response with output of an agent as JSON, without integers that readers round."""
    return Response(encode_shown(value), media_type="application/json")


def with_seals(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Return response headers with `SEALS` added, unless the response has these headers itself."""
    own = list(headers)
    names = {name.lower() for name, _ in own}
    return own + [seal for seal in SEALS if seal[0] not in names]


def status_of(payload: ErrorPayload) -> int:
    """Return the HTTP status of an error."""
    code = ErrorCode(payload.code)
    return TRY_AGAIN if code is ErrorCode.INTERNAL and payload.retryable else STATUS.get(code, 400)


def refusal(error: ArpError | HTTPException) -> Response:
    """Return the response for an error, with its code and message only."""
    if isinstance(error, HTTPException):
        headers = dict(error.headers or {})
        return json_response({"error": error.detail}, error.status_code, headers)
    payload = error_payload(error)
    status = TRY_AGAIN if isinstance(error, StoreClosed) else status_of(payload)
    return json_response(ErrorMessage(payload=payload), status)
