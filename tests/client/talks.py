"""How the scripted servers of these tests talk, and how the tests listen."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from arp.client.events import EventStream
from arp.client.options import Backoff
from arp.protocol.messages import Commit
from tests.client import agent_messages as say
from tests.client.agent_messages import STORY
from tests.client.loopback import Peer


async def no_wait(_: float) -> None:
    await asyncio.sleep(0)


AT_ONCE = Backoff(sleep=no_wait)


def turn_of_text(heard: Any, turn: str, seq: int) -> list[Any]:
    """A turn that answers a text with its capitals."""
    said = heard["data"]["text"]
    return [
        say.ack(heard["id"], turn),
        say.echo(said, seq, turn, heard["id"]),
        say.status("running", seq + 1, turn),
        say.delta(said.upper(), seq + 2, turn),
        say.status("completed", None, turn),
        say.commit(seq + 3, turn, final=True),
    ]


async def shout(peer: Peer) -> None:
    """Answers every text with its capitals."""
    await peer.welcome()
    number = 0
    while True:
        heard = await peer.hear()
        await peer.say(*turn_of_text(heard, f"t{number}", 4 * number + 1))
        number += 1


async def tell_story(peer: Peer) -> None:
    await peer.welcome()
    await peer.say(*STORY)
    await peer.socket.wait_closed()


async def seen(stream: EventStream, wanted: Callable[[Any], bool]) -> list[Any]:
    """Reads until an event is there, and gives all up to it."""
    events: list[Any] = []
    async with asyncio.timeout(30):
        async for event in stream:
            events.append(event)
            if wanted(event):
                break
    return events


def is_final(event: Any) -> bool:
    return isinstance(event, Commit) and event.final


def connections(*talks: Callable[[Peer], Awaitable[None]]) -> Callable[[Peer], Awaitable[None]]:
    """Talks differently with each connection; the last way for all that follow."""
    left = list(talks)

    async def talk(peer: Peer) -> None:
        await (left.pop(0) if len(left) > 1 else left[0])(peer)

    return talk


async def cut_at_once(peer: Peer) -> None:
    peer.cut()
