"""JSON-RPC 2.0: parse frames into requests, and encode results and errors as frames.

Source: the JSON-RPC 2.0 specification (2013-01-04), sections 4 to 6. Parameters are passed by name
only, never by position. Nothing in this module reads or writes a connection.
"""

from __future__ import annotations

import logging
from typing import TypeAlias

import msgspec
from msgspec import UNSET, Struct, UnsetType

from arp.ledger.fact_types import ProfileViolation
from arp.protocol.errors import ArpError, ErrorCode, RemoteError, error_payload
from arp.protocol.json_value import (
    MAX_VALUES,
    Json,
    JsonObject,
    check_count,
    check_plain_json,
    count_values,
)

logger = logging.getLogger(__name__)

Id: TypeAlias = str | int | float | None

MAX_BATCH = 100
"""Largest number of requests in one frame."""

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603


class RpcError(Struct, frozen=True, omit_defaults=True):
    """Error object of a JSON-RPC response."""

    code: int
    message: str
    data: Json = None


class RpcRequest(Struct, frozen=True):
    """A request or a notification from a client."""

    method: str
    params: JsonObject
    id: Id | UnsetType = UNSET
    """Id of the request. Without an id it is a notification, which gets no answer, not even an
    error."""


class InvalidRequest(Struct, frozen=True):
    """An entry of a frame that is not a valid request."""

    error: RpcError
    id: Id = None


class Frame(Struct, frozen=True):
    """The entries of one frame."""

    entries: list[RpcRequest | InvalidRequest]
    is_batch: bool = False
    """Whether the frame is an array; then all answers are sent in one array."""


def parse(frame: bytes | str) -> Frame:
    """Parse a frame; never raise for its content."""
    try:
        value = msgspec.json.decode(frame)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        return Frame([InvalidRequest(RpcError(PARSE_ERROR, f"not JSON: {error}"))])
    if not isinstance(value, list):
        return Frame([_entry(value)])
    if not value:
        return Frame([InvalidRequest(_invalid("a batch has at least one request"))])
    if len(value) > MAX_BATCH:
        return Frame([InvalidRequest(_invalid(f"a batch has at most {MAX_BATCH} requests"))])
    entries, count = [], 0
    for one in value:
        entries.append(entry := _entry(one, count))
        # The requests of a batch run concurrently, so the limit holds for all of them together. A
        # value has at least 1 byte, so a short frame cannot exceed the limit and is not counted.
        if isinstance(entry, RpcRequest) and len(frame) > MAX_VALUES:
            count += count_values(entry.params)
    return Frame(entries, is_batch=True)


def too_large(most: int) -> Frame:
    """Return the error for a frame of more than `most` bytes; the frame is not parsed."""
    return Frame([InvalidRequest(_invalid(f"a frame has at most {most} bytes"))])


def _entry(value: Json, others: int = 0) -> RpcRequest | InvalidRequest:
    """Parse one entry.

    Args:
        value: The entry.
        others: Number of values in the parameters of the entries before it.
    """
    if not isinstance(value, dict):
        return InvalidRequest(_invalid("a request is an object"))
    request_id = value.get("id")
    if isinstance(request_id, bool) or not isinstance(request_id, str | int | float | None):
        return InvalidRequest(_invalid("id: expected a text, a number or null"))
    if value.get("jsonrpc") != "2.0":
        return InvalidRequest(_invalid('jsonrpc: expected "2.0"'), request_id)
    method, params = value.get("method"), value.get("params", {})
    if not isinstance(method, str):
        return InvalidRequest(_invalid("method: expected a text"), request_id)
    if not isinstance(params, dict):
        wrong = RpcError(INVALID_PARAMS, "params: expected an object; parameters go by name")
        return InvalidRequest(wrong, request_id)
    try:
        check_count(params, "params", "params", "send less in one frame", others)
        check_plain_json(params, "params")
    except ArpError as error:
        return InvalidRequest(rpc_error(error), request_id)
    return RpcRequest(method, params, request_id if "id" in value else UNSET)


def _invalid(reason: str) -> RpcError:
    return RpcError(INVALID_REQUEST, reason)


def result_frame(request_id: Id, result: Json) -> bytes:
    """Return the answer to a request that succeeded; a `msgspec.Raw` in it is sent unchanged."""
    return msgspec.json.encode({"jsonrpc": "2.0", "id": request_id, "result": result})


def error_frame(request_id: Id, error: RpcError) -> bytes:
    """Return the answer to a request that failed."""
    return msgspec.json.encode({"jsonrpc": "2.0", "id": request_id, "error": error})


def batch_frame(answers: list[bytes]) -> bytes:
    """Return the answers to a batch as one frame."""
    return b"[" + b",".join(answers) + b"]"


def notification(method: str, params: Json) -> bytes:
    """Return a notification from the server."""
    return msgspec.json.encode({"jsonrpc": "2.0", "method": method, "params": params})


def event_frame(subscription_id: str, fact: bytes) -> bytes:
    """Return the notification `agentSession/event` with the stored bytes of a fact.

    Args:
        subscription_id: Letters and digits.
        fact: One JSON object.
    """
    head = '{"jsonrpc":"2.0","method":"agentSession/event","params":{"subscriptionId":"'
    return b"".join((head.encode(), subscription_id.encode(), b'","event":', fact, b"}}"))


# -- errors ---------------------------------------------------------------------------------------

SERVER_ERROR = -32000
"""The number of an error is -32000 minus its code: SESSION_NOT_FOUND (8) is -32008."""

_RPC_NUMBERS = {
    ErrorCode.INVALID_METHOD: METHOD_NOT_FOUND,
    ErrorCode.INVALID_MESSAGE: INVALID_PARAMS,
    ErrorCode.INTERNAL: INTERNAL_ERROR,
}
"""Numbers of the errors that the JSON-RPC specification defines."""


class UnknownMethod(RemoteError):
    """The control plane has no method with that name."""

    code = ErrorCode.INVALID_METHOD


class ErrorData(Struct, frozen=True, omit_defaults=True):
    """`data` of an error."""

    code: int
    """Error code of the protocol (protocol.md 5)."""
    name: str
    """Name of the error code."""
    retryable: bool = False
    detail: str | None = None
    """Field or id that is wrong."""


def rpc_error(error: BaseException) -> RpcError:
    """Return the error object for an exception; only an `ArpError` shows its text to the client."""
    if isinstance(error, ProfileViolation):  # the parameters would record an invalid fact
        data = ErrorData(int(ErrorCode.INVALID_MESSAGE), ErrorCode.INVALID_MESSAGE.name)
        return RpcError(INVALID_PARAMS, error.message, msgspec.to_builtins(data))
    if not isinstance(error, ArpError):
        logger.error("a control method failed", exc_info=error)
    payload = error_payload(error)
    code = ErrorCode(payload.code)
    data = ErrorData(int(code), code.name, payload.retryable, payload.detail)
    number = _RPC_NUMBERS.get(code, SERVER_ERROR - int(code))
    return RpcError(number, payload.error, msgspec.to_builtins(data))
