"""Frames that no honest peer sends: any bytes, and messages with a value that does not belong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cbor2
import msgspec
from hypothesis import strategies as st

from arp.protocol.codec import Encoding, encode_json, recode

DEEP = 100_000

_NESTED: Any = [1]
for _ in range(40):
    _NESTED = {"children": [_NESTED]}

ODD: list[Any] = [
    None,
    True,
    -1,
    2**63,
    2**64 - 1,
    1e300,
    "",
    "\x00",
    "__class__",
    "x" * 300,
    [],
    {},
    [None],
    {"type": "render"},
    {"constructor": 1},
    _NESTED,
    float("nan"),
    float("inf"),
    b"bytes",
]

HEADS: dict[Encoding, bytes] = {"json": b"[", "msgpack": b"\x91", "cbor": b"\x81"}


def frames(messages: Sequence[Any], encoding: Encoding) -> st.SearchStrategy[bytes]:
    """Any bytes; good frames that were cut or changed; messages with an odd value somewhere."""
    good = st.sampled_from([recode(encode_json(message), encoding) for message in messages])
    plain = st.sampled_from([msgspec.to_builtins(message) for message in messages])
    return st.one_of(
        st.binary(max_size=80),
        st.just(HEADS[encoding] * DEEP),
        good,
        st.builds(lambda frame, at: frame[: at % (len(frame) + 1)], good, st.integers(0, 500)),
        st.builds(_changed, good, st.integers(0, 500), st.integers(0, 255)),
        st.builds(_with_odd, plain, st.integers(0, 500), st.sampled_from(ODD)).map(
            lambda value: packed(value, encoding)
        ),
        st.lists(
            st.builds(_with_odd, plain, st.integers(0, 500), st.sampled_from(ODD)), max_size=4
        ).map(lambda value: packed(value, encoding)),
    )


def packed(value: Any, encoding: Encoding) -> bytes:
    """A value in an encoding, as far as that encoding can hold it."""
    if encoding == "cbor":
        return cbor2.dumps(value)
    return msgspec.json.encode(value) if encoding == "json" else msgspec.msgpack.encode(value)


def _changed(frame: bytes, at: int, byte: int) -> bytes:
    at %= len(frame)
    return frame[:at] + bytes((byte,)) + frame[at + 1 :]


def _with_odd(value: Any, at: int, odd: Any) -> Any:
    """A value with something else in one of its places."""
    places = list(_places(value, ()))
    place = places[at % len(places)]
    return _put(value, place, odd)


def _places(value: Any, path: tuple[Any, ...]) -> Any:
    yield path
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _places(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _places(item, (*path, index))


def _put(value: Any, path: tuple[Any, ...], odd: Any) -> Any:
    if not path:
        return odd
    if isinstance(value, dict):
        return {**value, path[0]: _put(value[path[0]], path[1:], odd)}
    return [_put(item, path[1:], odd) if n == path[0] else item for n, item in enumerate(value)]
