"""JSON-RPC 2.0 on the wire: what a frame asks, and what an answer looks like. No input, no output.

Source: the JSON-RPC 2.0 specification (2013-01-04), sections 4 to 6. Parameters go by name alone.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec
from msgspec import UNSET, Struct, UnsetType

from arp.protocol.errors import ArpError
from arp.protocol.json_value import Json, JsonObject, check_plain_json

Id: TypeAlias = str | int | float | None

MAX_BATCH = 100
"""Requests in one frame."""

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603


class RpcError(Struct, frozen=True, omit_defaults=True):
    """Why a request is not answered with a result."""

    code: int
    message: str
    data: Json = None


class Request(Struct, frozen=True):
    """Something that a client asks."""

    method: str
    params: JsonObject
    id: Id | UnsetType = UNSET
    """Without one it is a notification: nothing is answered, whatever becomes of it."""


class Refused(Struct, frozen=True):
    """Something that cannot be read as a request."""

    error: RpcError
    id: Id = None


class Frame(Struct, frozen=True):
    """What came in one frame."""

    entries: list[Request | Refused]
    is_batch: bool = False
    """Its answers go back in one array."""


def parse(frame: bytes | str) -> Frame:
    """Reads a frame; never raises for what is in it."""
    try:
        value = msgspec.json.decode(frame)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        return Frame([Refused(RpcError(PARSE_ERROR, f"not JSON: {error}"))])
    if not isinstance(value, list):
        return Frame([_entry(value)])
    if not value:
        return Frame([Refused(_invalid("an empty batch asks nothing"))])
    if len(value) > MAX_BATCH:
        return Frame([Refused(_invalid(f"a batch has at most {MAX_BATCH} requests"))])
    return Frame([_entry(one) for one in value], is_batch=True)


def too_large(most: int) -> Frame:
    """Stands for a frame of more than `most` bytes, which is not read."""
    return Frame([Refused(_invalid(f"a frame has at most {most} bytes"))])


def _entry(value: Json) -> Request | Refused:
    if not isinstance(value, dict):
        return Refused(_invalid("a request is an object"))
    request_id = value.get("id")
    if isinstance(request_id, bool) or not isinstance(request_id, str | int | float | None):
        return Refused(_invalid("id: expected a text, a number or null"))
    if value.get("jsonrpc") != "2.0":
        return Refused(_invalid('jsonrpc: expected "2.0"'), request_id)
    method, params = value.get("method"), value.get("params", {})
    if not isinstance(method, str):
        return Refused(_invalid("method: expected a text"), request_id)
    if not isinstance(params, dict):
        wrong = RpcError(INVALID_PARAMS, "params: expected an object; parameters go by name")
        return Refused(wrong, request_id)
    try:
        check_plain_json(params, "params")
    except ArpError as error:
        return Refused(RpcError(INVALID_PARAMS, error.message), request_id)
    return Request(method, params, request_id if "id" in value else UNSET)


def _invalid(reason: str) -> RpcError:
    return RpcError(INVALID_REQUEST, reason)


def result_frame(request_id: Id, result: Json) -> bytes:
    """Gives the answer to a request that went well; `msgspec.Raw` in it goes out as it is."""
    return msgspec.json.encode({"jsonrpc": "2.0", "id": request_id, "result": result})


def error_frame(request_id: Id, error: RpcError) -> bytes:
    """Gives the answer to a request that did not."""
    return msgspec.json.encode({"jsonrpc": "2.0", "id": request_id, "error": error})


def batch_frame(answers: list[bytes]) -> bytes:
    """Gives the answers to a batch as one frame."""
    return b"[" + b",".join(answers) + b"]"


def notification(method: str, params: Json) -> bytes:
    """Gives something that is told without being asked."""
    return msgspec.json.encode({"jsonrpc": "2.0", "method": method, "params": params})


def event_frame(subscription_id: str, fact: bytes) -> bytes:
    """Gives the notification `agentSession/event` with a fact, byte for byte as it is stored.

    Args:
        subscription_id: Letters and digits.
        fact: One JSON object.
    """
    head = '{"jsonrpc":"2.0","method":"agentSession/event","params":{"subscriptionId":"'
    return b"".join((head.encode(), subscription_id.encode(), b'","event":', fact, b"}}"))
