from __future__ import annotations

from typing import Any

import pytest

from arp.client.address import Kind
from arp.client.errors import InvalidAddress, LinkLost, ServerRefused
from arp.client.link import Link
from arp.client.links.dial import Dialer, dialer
from arp.protocol.errors import InvalidMessage, Unauthenticated


class Scripted(Dialer):
    """A dialer whose transports do as `answers` say."""

    def __init__(self, **answers: LinkLost | None) -> None:
        ready = dialer("http://h", {})
        super().__init__(ready.address, ready.access)
        self.answers = answers
        self.tried: list[str] = []

    async def opened(self) -> object:
        return await self.open(b"")

    async def _open(self, kind: Kind, hello: bytes) -> Link:
        self.tried.append(kind)
        answer = self.answers[kind]
        if answer is not None:
            raise answer
        return kind  # type: ignore[return-value]  # the name stands for the link


REFUSED = LinkLost("no upgrade", error=ServerRefused("no upgrade"), unavailable=True)
LATER = LinkLost("503", unavailable=True)
DOWN = LinkLost("connection refused")


async def test_websocket_comes_first() -> None:
    dial = Scripted(websocket=None, sse=None)
    assert await dial.opened() == "websocket"
    assert dial.tried == ["websocket"]


async def test_sse_is_taken_where_websocket_is_refused_and_then_tried_first() -> None:
    dial = Scripted(websocket=REFUSED, sse=None)
    assert await dial.opened() == "sse"
    assert await dial.opened() == "sse"
    assert dial.tried == ["websocket", "sse", "sse"]
    dial.answers = {"websocket": None, "sse": REFUSED}
    assert await dial.opened() == "websocket"


async def test_server_that_is_down_is_not_tried_twice() -> None:
    dial = Scripted(websocket=DOWN, sse=None)
    with pytest.raises(LinkLost, match="connection refused"):
        await dial.open(b"")
    assert dial.tried == ["websocket"]


async def test_wrong_token_is_not_tried_twice() -> None:
    dial = Scripted(websocket=LinkLost("401", error=Unauthenticated("401")), sse=None)
    with pytest.raises(LinkLost, match="401"):
        await dial.open(b"")
    assert dial.tried == ["websocket"]


@pytest.mark.parametrize(("websocket", "sse"), [(LATER, REFUSED), (REFUSED, LATER)])
async def test_of_two_failures_the_one_that_passes_counts(
    websocket: LinkLost, sse: LinkLost
) -> None:
    with pytest.raises(LinkLost, match="503"):
        await Scripted(websocket=websocket, sse=sse).open(b"")


async def test_of_two_refusals_the_last_is_told() -> None:
    gone = LinkLost("HTTP 404", error=ServerRefused("HTTP 404"), unavailable=True)
    with pytest.raises(LinkLost, match="HTTP 404"):
        await Scripted(websocket=REFUSED, sse=gone).open(b"")


def test_other_encodings_keep_to_websocket() -> None:
    assert dialer("http://h", {"encoding": "cbor"}).address.kinds == ("websocket",)
    assert dialer("http://h", {"encoding": "json"}).address.kinds == ("websocket", "sse")


@pytest.mark.parametrize(
    "options",
    [
        ("http+sse://h", {"encoding": "cbor"}),
        ("http://h", {"encoding": "msgpack", "transport": "sse"}),
        ("stdio:", {"encoding": "msgpack", "command": ["x"]}),
    ],
)
def test_transports_that_carry_json_alone_refuse_other_encodings(options: tuple[str, Any]) -> None:
    with pytest.raises(InvalidAddress, match="only WebSocket carries"):
        dialer(*options)


def test_bad_token_is_refused_before_anything_is_sent() -> None:
    with pytest.raises(InvalidMessage, match="token"):
        dialer("http://h", {"token": "a\nb"})
