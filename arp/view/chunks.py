"""Messages within the size limit of a renderer: divided if that has the same effect, or shortened.

`arp.view.fitting` has already made each component fit. A `render` or a `patch` is divided into
several messages before their commit; a text into several deltas, and only the last one carries the
`seq`. Other long values (an input, the arguments of a tool, an error) are shortened and say so. As
a last resort a message is replaced by an `error`. A frame is never larger than the limit.

Source: protocol.md 2.2 (`max_message_bytes`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

import msgspec

from arp.protocol.codec import ENCODINGS, Encoding, encode_shown, recode
from arp.protocol.errors import ErrorCode, ErrorPayload
from arp.protocol.json_value import JsonObject
from arp.protocol.mark import OutputAnchor
from arp.protocol.messages import (
    MAX_ID_LENGTH,
    AgentMessage,
    CommandsMessage,
    Commit,
    Delta,
    ErrorMessage,
    InputEcho,
    Patch,
    Render,
    ToolEnd,
    ToolProgress,
    ToolStart,
)
from arp.view.fitting import longest

FURTHEST = 2**53
"""Largest sequence number, the one with the most digits."""

_LONGEST_POSITION = OutputAnchor("x" * MAX_ID_LENGTH, FURTHEST)
"""Longest position in a turn's output; only snapshots and catch-ups send a position."""

M = TypeVar("M", bound=msgspec.Struct)


def chunked(message: AgentMessage, most: int, encoding: Encoding) -> list[bytes]:
    """Return a message as frames of at most `most` bytes each."""
    if _bytes(message, encoding) <= most:
        return [_frame(message, encoding)]
    divided = _divided(message)
    if divided:
        return [part for one in divided for part in chunked(one, most, encoding)]

    def is_small(shorter: AgentMessage) -> bool:
        return _bytes(shorter, encoding) <= most

    for shorter in _shorter(message, is_small):
        if is_small(shorter):
            return [_frame(shorter, encoding)]
    return [_frame(_left_out(message, len(_frame(message, encoding))), encoding)]


def divided(message: AgentMessage, wanted: int, encoding: Encoding) -> list[bytes]:
    """Return a message as frames of at most `wanted` bytes, as far as it can be divided."""
    frame = _frame(message, encoding)
    parts = _divided(message) if len(frame) > wanted else []
    return [one for part in parts for one in divided(part, wanted, encoding)] or [frame]


def _frame(message: AgentMessage, encoding: Encoding) -> bytes:
    return recode(encode_shown(message), encoding)


def _bytes(message: AgentMessage, encoding: Encoding) -> int:
    """Return the size of a message; for inputs, tools, errors and commands, the maximum size.

    The maximum assumes the longest `seq` and position, and the encoding with the longest result. It
    is the same for all renderers, live, in a replay and in a snapshot, so if the text must be
    shortened, all of them get the same text.
    """
    match message:
        case InputEcho() | ToolStart() | ErrorMessage():
            variants: list[AgentMessage] = [
                _changed(message, seq=FURTHEST),
                _changed(message, seq=FURTHEST, behind=_LONGEST_POSITION),
            ]
        case ToolProgress() | ToolEnd() | CommandsMessage():
            variants = [_changed(message, seq=FURTHEST)]
        case _:
            return len(_frame(message, encoding))
    placed = [encode_shown(variant) for variant in variants]
    return max(len(recode(one, each)) for one in placed for each in ENCODINGS)


def _divided(message: AgentMessage) -> list[AgentMessage]:
    """Return two messages with the same effect, or none if the message cannot be divided."""
    match message:
        case Render(components=components) if len(components) > 1:
            half = len(components) // 2
            first = _changed(message, components=components[:half])
            # Only the first half may replace: the second would remove the first.
            return [first, _changed(message, components=components[half:], replace=False)]
        case Patch(ops=ops) if len(ops) > 1:
            half = len(ops) // 2
            return [_changed(message, ops=ops[:half]), _changed(message, ops=ops[half:])]
        case Delta(payload=payload) if len(payload.delta) > 1:
            half = len(payload.delta) // 2
            begin = _changed(payload, delta=payload.delta[:half])
            end = _changed(payload, delta=payload.delta[half:])
            # Only the last part carries the `seq`: a connection lost between the parts must not
            # resume after the whole text.
            return [_changed(message, payload=begin, seq=None), _changed(message, payload=end)]
        case _:
            return []


def _shorter(
    message: AgentMessage, is_small: Callable[[AgentMessage], bool]
) -> Iterator[AgentMessage]:
    """Yield shorter and shorter forms of a message."""
    match message:
        case Render():
            yield _changed(message, tool_name=None)
        case Commit():
            yield _changed(message, usage=None)
        case CommandsMessage(commands=commands):
            named = [_changed(one, description="", choices=()) for one in commands]
            yield _changed(message, commands=tuple(named))
            yield _changed(message, commands=())
        case InputEcho():
            yield from _shorter_input(message, is_small)
        case ToolStart() | ToolProgress() | ToolEnd():
            yield from _shorter_tool(message, is_small)
        case ErrorMessage(payload=payload):

            def with_error(error: str) -> ErrorMessage:
                return _changed(message, payload=_changed(payload, error=error, detail=None))

            yield with_error(longest(payload.error, lambda text: is_small(with_error(text))))
        case _:
            pass


def _shorter_tool(
    message: ToolStart | ToolProgress | ToolEnd, is_small: Callable[[AgentMessage], bool]
) -> Iterator[AgentMessage]:
    match message:
        case ToolStart(payload=start):

            def with_args(args: str) -> ToolStart:
                quoted = msgspec.json.encode(args).decode()
                return _changed(message, payload=_changed(start, args=quoted))

            yield with_args(longest(start.args, lambda args: is_small(with_args(args))))
        case ToolProgress(payload=progress):

            def with_text(text: str) -> ToolProgress:
                return _changed(message, payload=_changed(progress, text=text))

            yield with_text(longest(progress.text, lambda text: is_small(with_text(text))))
        case ToolEnd(payload=end) if end.result is not None:

            def with_result(result: str) -> ToolEnd:
                return _changed(message, payload=_changed(end, result=result))

            yield with_result(longest(end.result, lambda text: is_small(with_result(text))))
            yield _changed(message, payload=_changed(end, result=None))
            yield _changed(message, payload=_changed(end, result=None, result_ref=None))
        case _:
            failed = message.payload

            def with_reason(error: str) -> ToolEnd:
                return _changed(message, payload=_changed(failed, error=error))

            yield with_reason(longest(failed.error or "", lambda text: is_small(with_reason(text))))


def _shorter_input(
    message: InputEcho, is_small: Callable[[AgentMessage], bool]
) -> Iterator[InputEcho]:
    data = message.data

    def with_text(text: str, rest: JsonObject) -> InputEcho:
        return _changed(message, data={**rest, "text": text})

    if isinstance(typed := data.get("text"), str):
        yield with_text(longest(typed, lambda text: is_small(with_text(text, data))), data)
    size = len(encode_shown(data))
    kept = _EMPTY.get(message.input_type, {})
    yield with_text(f"… an input of {size:,} bytes, not shown", kept)


_EMPTY: dict[str, JsonObject] = {
    "form_submit": {"fields": {}},
    "selection": {"selected": []},
    "file": {"files": []},
    "voice": {"transcript": ""},
    "action": {"action": "…"},
}
"""The fields of `data` that renderers expect, with empty values."""


def _left_out(message: AgentMessage, size: int) -> ErrorMessage:
    kind = str(type(message).__struct_config__.tag)
    payload = ErrorPayload(
        f"a message of type {kind} with {size} bytes is left out; "
        "this renderer accepts no message of this size",
        int(ErrorCode.RESOURCE_LIMIT),
        "max_message_bytes",
    )
    return ErrorMessage(
        payload=payload,
        session_id=getattr(message, "session_id", None),
        turn_id=getattr(message, "turn_id", None),
    )


def _changed(value: M, **fields: object) -> M:
    return msgspec.structs.replace(value, **fields)
