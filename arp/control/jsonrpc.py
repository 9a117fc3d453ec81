"""JSON-RPC 2.0 on the wire: requests, results and errors as frames. No input, no output.

Source: the JSON-RPC 2.0 specification (2013-01-04), sections 4 to 6. Parameters go by name alone.
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
"""Requests in one frame."""

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603


class RpcError(Struct, frozen=True, omit_defaults=True):
    """Why a request has no result."""

    code: int
    message: str
    data: Json = None


class RpcRequest(Struct, frozen=True):
    """A request or notification of a client."""

    method: str
    params: JsonObject
    id: Id | UnsetType = UNSET
    """Without one it is a notification: it gets no answer, not even an error."""


class InvalidRequest(Struct, frozen=True):
    """An entry that is no valid request."""

    error: RpcError
    id: Id = None


class Frame(Struct, frozen=True):
    """The content of one frame."""

    entries: list[RpcRequest | InvalidRequest]
    is_batch: bool = False
    """Its answers are sent in one array."""


def parse(frame: bytes | str) -> Frame:
    """Return the content of a frame; never raise for what is in it."""
    try:
        value = msgspec.json.decode(frame)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        return Frame([InvalidRequest(RpcError(PARSE_ERROR, f"not JSON: {error}"))])
    if not isinstance(value, list):
        return Frame([_entry(value)])
    if not value:
        return Frame([InvalidRequest(_invalid("an empty batch asks nothing"))])
    if len(value) > MAX_BATCH:
        return Frame([InvalidRequest(_invalid(f"a batch has at most {MAX_BATCH} requests"))])
    entries, count = [], 0
    for one in value:
        entries.append(entry := _entry(one, count))
        # They are carried out at once, so they may have together what one of them may have.
        if isinstance(entry, RpcRequest) and len(frame) > MAX_VALUES:  # a value has a byte at least
            count += count_values(entry.params)
    return Frame(entries, is_batch=True)


def too_large(most: int) -> Frame:
    """Return the content of a frame of more than `most` bytes, which is not parsed."""
    return Frame([InvalidRequest(_invalid(f"a frame has at most {most} bytes"))])


def _entry(value: Json, others: int = 0) -> RpcRequest | InvalidRequest:
    """Return a request; `others` values are in the parameters of those before it."""
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
    """Return the answer to a request that succeeded; `msgspec.Raw` in it is sent as it is."""
    return msgspec.json.encode({"jsonrpc": "2.0", "id": request_id, "result": result})


def error_frame(request_id: Id, error: RpcError) -> bytes:
    """Return the answer to a request that failed."""
    return msgspec.json.encode({"jsonrpc": "2.0", "id": request_id, "error": error})


def batch_frame(answers: list[bytes]) -> bytes:
    """Return the answers to a batch as one frame."""
    return b"[" + b",".join(answers) + b"]"


def notification(method: str, params: Json) -> bytes:
    """Return a notification of the server."""
    return msgspec.json.encode({"jsonrpc": "2.0", "method": method, "params": params})


def event_frame(subscription_id: str, fact: bytes) -> bytes:
    """Return the notification `agentSession/event` with a fact, byte for byte as it is stored.

    Args:
        subscription_id: Letters and digits.
        fact: One JSON object.
    """
    head = '{"jsonrpc":"2.0","method":"agentSession/event","params":{"subscriptionId":"'
    return b"".join((head.encode(), subscription_id.encode(), b'","event":', fact, b"}}"))


# -- errors ---------------------------------------------------------------------------------------

SERVER_ERROR = -32000
"""An error has the number -32000 minus its code: SESSION_NOT_FOUND (8) is -32008."""

_RPC_NUMBERS = {
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
    """The field or id that is wrong."""


def rpc_error(error: BaseException) -> RpcError:
    """Return an error as a client may see it: only an `ArpError` is sent with its text."""
    if isinstance(error, ProfileViolation):  # the parameters would make an invalid fact
        data = ErrorData(int(ErrorCode.INVALID_MESSAGE), ErrorCode.INVALID_MESSAGE.name)
        return RpcError(INVALID_PARAMS, error.message, msgspec.to_builtins(data))
    if not isinstance(error, ArpError):
        logger.error("a control method failed", exc_info=error)
    payload = error_payload(error)
    code = ErrorCode(payload.code)
    data = ErrorData(int(code), code.name, payload.retryable, payload.detail)
    number = _RPC_NUMBERS.get(code, SERVER_ERROR - int(code))
    return RpcError(number, payload.error, msgspec.to_builtins(data))
