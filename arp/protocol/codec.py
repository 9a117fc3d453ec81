"""The three encodings: JSON, MessagePack and CBOR, each strict about what it lets in.

A frame is one message or an array of them (feature `batch`). What leaves is always made as JSON first and
recoded for the others, so that a component is encoded once, whoever reads it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Literal, TypeVar

import cbor2
import msgspec

from arp.protocol.errors import InvalidMessage
from arp.protocol.explain import explain
from arp.protocol.json_value import MAX_DEPTH, Json
from arp.protocol.messages import AgentMessage, RendererMessage

Encoding = Literal["json", "msgpack", "cbor"]

ENCODINGS: tuple[Encoding, ...] = ("json", "msgpack", "cbor")

M = TypeVar("M")

_encode_json = msgspec.json.Encoder().encode


def encode_json(message: object) -> bytes:
    """Gives a message (or a list of them) as JSON without line breaks."""
    return _encode_json(message)


def recode(frame: bytes, encoding: Encoding) -> bytes:
    """Gives a JSON frame in another encoding."""
    if encoding == "json":
        return frame
    plain = msgspec.json.decode(frame)
    return msgspec.msgpack.encode(plain) if encoding == "msgpack" else cbor2.dumps(plain)


def _refuse_tag(*_: object) -> object:
    raise InvalidMessage("CBOR tags are not used in ARP; send plain maps, arrays and strings")


_NO_TAGS: dict[int, Callable[..., Any]] = dict.fromkeys(
    (0, 1, 2, 3, 4, 5, 28, 29, 30, 35, 36, 37, 100, 258, 260, 261, 1004, 43000), _refuse_tag
)
"""Tags that cbor2 would turn into objects (dates, regular expressions, shared values, …)."""


class Decoder(Generic[M]):
    """Turns frames of one encoding and direction into messages; refuses everything else.

    Every failure is an `InvalidMessage` that says what was wrong and where.
    """

    def __init__(self, encoding: Encoding, union: Any) -> None:
        self.encoding = encoding
        self._type = union | list[union]
        self._json = msgspec.json.Decoder(self._type)
        self._msgpack = msgspec.msgpack.Decoder(self._type)

    def decode(self, frame: bytes) -> list[M]:
        """Reads one frame.

        Returns:
            The messages in order; one, unless the frame is an array.

        Raises:
            InvalidMessage: Not readable, not JSON values, too deep, or of no known type.
        """
        try:
            message = self._decode(frame)
        except InvalidMessage:
            raise
        except msgspec.ValidationError as error:
            raise InvalidMessage(explain(error, "message")) from None
        except RecursionError:
            raise InvalidMessage(f"message: nested deeper than {MAX_DEPTH} levels") from None
        except (msgspec.DecodeError, UnicodeDecodeError, cbor2.CBORDecodeError) as error:
            raise InvalidMessage(f"message is not {self.encoding}: {error!s:.200}") from None
        except (ValueError, TypeError, OverflowError, MemoryError) as error:
            raise InvalidMessage(f"message is not {self.encoding}: {error!s:.200}") from None
        return message if isinstance(message, list) else [message]

    def _decode(self, frame: bytes) -> M | list[M]:
        if self.encoding == "json":
            return self._json.decode(frame)  # type: ignore[no-any-return]  # the union is dynamic
        if self.encoding == "msgpack":
            return self._msgpack.decode(frame)  # type: ignore[no-any-return]
        plain: Json = cbor2.loads(
            frame, max_depth=MAX_DEPTH, allow_duplicate_keys=False, semantic_decoders=_NO_TAGS
        )
        return msgspec.convert(plain, self._type)  # type: ignore[no-any-return]


def renderer_decoder(encoding: Encoding) -> Decoder[RendererMessage]:
    """Reads what renderers send."""
    return Decoder(encoding, RendererMessage)


def agent_decoder(encoding: Encoding) -> Decoder[AgentMessage]:
    """Reads what the agent side sends."""
    return Decoder(encoding, AgentMessage)


class _Placed(msgspec.Struct, frozen=True):
    type: str = ""
    seq: int | None = None
    epoch: str | None = None


_PLACED = msgspec.json.Decoder(_Placed | list[_Placed])


def place_of(frame: bytes) -> tuple[str | None, int | None]:
    """Tells where a renderer stands after a JSON frame, for transports that name places themselves.

    Returns:
        The epoch if the frame names a new one, and the last `seq` in it that counts as applied; `render`
        and `patch` count with their commit.
    """
    placed = _PLACED.decode(frame)
    epoch, seq = None, None
    for one in placed if isinstance(placed, list) else [placed]:
        epoch = one.epoch or epoch
        if one.seq is not None and one.type not in ("render", "patch", "session"):
            seq = one.seq
    return epoch, seq
