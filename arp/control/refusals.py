"""One place that turns an error into what a JSON-RPC client sees: the project's code in `data`."""

from __future__ import annotations

import logging

import msgspec
from msgspec import Struct

from arp.control.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, RpcError
from arp.ledger.fact_types import ProfileViolation
from arp.protocol.errors import ArpError, ErrorCode, RemoteError, error_payload

logger = logging.getLogger(__name__)

SERVER_ERROR = -32000
"""The number of one of our errors is this less its code: SESSION_NOT_FOUND (8) is -32008."""

_OWN = {
    ErrorCode.INVALID_METHOD: METHOD_NOT_FOUND,
    ErrorCode.INVALID_MESSAGE: INVALID_PARAMS,
    ErrorCode.INTERNAL: INTERNAL_ERROR,
}
"""Errors for which JSON-RPC has a number of its own."""


class UnknownMethod(RemoteError):
    """A method that the control plane does not have."""

    code = ErrorCode.INVALID_METHOD


class ErrorData(Struct, frozen=True, omit_defaults=True):
    """`data` of an error."""

    code: int
    """Of the protocol's list (protocol.md 5)."""
    name: str
    """The same as a word."""
    retryable: bool = False
    detail: str | None = None
    """What it is about: a field, an id."""


def rpc_error(error: BaseException) -> RpcError:
    """Gives an error as a client may see it; one that is not ours without its text."""
    if isinstance(error, ProfileViolation):  # the caller's words did not make a fact
        data = ErrorData(int(ErrorCode.INVALID_MESSAGE), ErrorCode.INVALID_MESSAGE.name)
        return RpcError(INVALID_PARAMS, error.message, msgspec.to_builtins(data))
    if not isinstance(error, ArpError):
        logger.error("a control method failed", exc_info=error)
    payload = error_payload(error)
    code = ErrorCode(payload.code)
    data = ErrorData(int(code), code.name, payload.retryable, payload.detail)
    number = _OWN.get(code, SERVER_ERROR - int(code))
    return RpcError(number, payload.error, msgspec.to_builtins(data))
