"""Waits for what an agent shows on a client's screen, over whatever connection."""

from __future__ import annotations

import asyncio

from arp import Component
from arp.client.client import ArpClient

WAIT_S = 30.0
"""Longer than anything here takes on a slow machine, shorter than the limit of a test."""


async def question(client: ArpClient, turn_id: str) -> Component:
    """The open question of a turn, as soon as it shows."""
    events = client.events()
    async with asyncio.timeout(WAIT_S):
        while True:
            for component in client.screen.output(turn_id):
                if component.props.get("state") == "open" and component.type != "choices":
                    return component
            await anext(events)


async def tool_runs(client: ArpClient, turn_id: str) -> None:
    """Returns as soon as a tool of the turn runs."""
    events = client.events()
    async with asyncio.timeout(WAIT_S):
        while not any(run.ok is None for run in client.screen.turn(turn_id).tools):
            await anext(events)


def shown(client: ArpClient, turn_id: str) -> list[str]:
    """The types of what a turn has shown, text parts as `…`."""
    return ["…" if "/" in each.id else each.type for each in client.screen.output(turn_id)]
