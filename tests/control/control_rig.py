"""A control plane over a hub in memory for tests, and a JSON-RPC client in this process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from arp.access.principal import Principal
from arp.control.connection import Connection
from arp.control.context import Plane
from arp.control.control import Control
from arp.control.turns import StartTurn, TurnInput, TurnState
from arp.hub.hub import Hub
from arp.hub.runner import Handler
from arp.live.settings import HubSettings
from arp.protocol.components import Component
from arp.store.memory import MemoryStore
from arp.turn.turn import Turn
from tests.hub.rig import Box, running

SECRET = "the token"


async def talker(turn: Turn) -> None:
    """Ask, fail, wait, or repeat the input."""
    match turn.text:
        case "ask":
            answer = await turn.confirm("Sure?", id="sure")
            await turn.say(f"answered {answer}")
        case "fail":
            raise RuntimeError("an author's mistake")
        case "wait":
            await turn.say("waiting")
            await turn.cache.setdefault("gate", asyncio.Event()).wait()
        case _:
            await turn.say(turn.text)


def asking(component: Component) -> Handler:
    """Return an agent that asks one question and shows the answer as JSON."""

    async def agent(turn: Turn) -> None:
        answer = await turn.ask(component)
        await turn.say(json.dumps(answer))

    return agent


@asynccontextmanager
async def controlled(
    agent: Handler = talker,
    *,
    store: MemoryStore | None = None,
    settings: HubSettings | None = None,
    **more: Handler,
) -> AsyncIterator[Control]:
    """Yield the control plane of a hub in memory, for an anonymous principal."""
    async with running(
        agent,
        store=store,
        settings=settings,
        tools=None,
        answers={},
        user_settings=None,
        **more,
    ) as hub:
        yield Control(Plane(hub, ["agent", *more]), Principal())


async def said(control: Control, text: str = "hello", **more: Any) -> TurnState:
    """Start a turn of session `s`."""
    request = StartTurn(session_id="s", input=TurnInput(text=text), **more)
    return await control.turns.start(request)


async def types(control: Control, session_id: str = "s") -> list[str]:
    """Return the types of all durable facts of a session."""
    return [json.loads(fact)["type"] for _, fact in await facts(control, session_id)]


async def facts(control: Control, session_id: str = "s") -> list[tuple[int, bytes]]:
    """Return all durable facts of a session."""
    live = await control.context.live(session_id)
    await live.written()
    return await control.context.hub.store.read(session_id, 0, 1000)


def gate(hub: Hub, session_id: str = "s") -> asyncio.Event:
    """Return the event for which a turn with the input `wait` waits."""
    live = hub.sessions[session_id]
    event: asyncio.Event = live.cache.setdefault("gate", asyncio.Event())
    return event


async def nobody(token: str) -> Principal | None:
    """Accept one token."""
    return Principal() if token == SECRET else None


class Client:
    """A JSON-RPC client in this process."""

    def __init__(self, control: Control, principal: Principal | None = Principal()) -> None:  # noqa: B008
        self.box = Box()
        self.connection = Connection(control.context.plane, self.box, principal, nobody)
        self.connection.start()
        self._number = 0

    @property
    def messages(self) -> list[Any]:
        """All messages so far; the entries of a batch one by one."""
        return self.box.messages

    async def until(self, found: Callable[[Any], bool]) -> Any:
        """Wait for a message, and return the first that fits."""
        await self.box.until(lambda: any(map(found, self.messages)))
        return next(filter(found, self.messages))

    async def answer(self, method: str, **params: Any) -> Any:
        """Call a method, and return the whole answer."""
        self._number += 1
        number = self._number
        body = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        await self.connection.receive(json.dumps(body))
        return await self.until(lambda message: message.get("id") == number)

    async def result(self, method: str, **params: Any) -> Any:
        """Call a method that succeeds, and return its result."""
        answer = await self.answer(method, **params)
        assert "error" not in answer, answer["error"]
        return answer["result"]

    def events(self, subscription_id: str) -> list[Any]:
        """Return the facts that a subscription has sent so far."""
        return [
            message["params"]["event"]
            for message in self.messages
            if message.get("method") == "agentSession/event"
            and message["params"]["subscriptionId"] == subscription_id
        ]
