"""A client that answers whatever an agent asks, so that an example runs to its end."""

from __future__ import annotations

import asyncio

from arp import ArpClient
from arp.client.client import connect
from arp.protocol.components import Component
from arp.protocol.connection.screen import TurnScreen
from arp.protocol.json_value import Json
from arp.protocol.messages import TurnMessage

TURN_S = 10.0


async def played(client: ArpClient, text: str) -> TurnScreen:
    """Says something, answers every question of the turn, and gives the turn when it is over."""
    events = client.events()
    turn_id = await client.turn_of(await client.send_text(text))
    async with asyncio.timeout(TURN_S):
        while not client.screen.turn(turn_id).final:
            event = await anext(events)
            if isinstance(event, TurnMessage) and event.status == "waiting":
                await _answer(client, _open(client, turn_id))
        return await client.turn_done(turn_id)


async def play(url: str, text: str) -> tuple[TurnScreen, str, list[Component]]:
    """Connects and plays one turn; gives it, its text, and its components."""
    async with connect(url) as client:
        turn = await played(client, text)
        output = client.screen.output(turn.id)
        return turn, client.screen.text(turn.id), [one for one in output if "/" not in one.id]


def _open(client: ArpClient, turn_id: str) -> Component:
    return next(one for one in client.screen.output(turn_id) if one.props.get("state") == "open")


async def _answer(client: ArpClient, question: Component) -> None:
    match question.type:
        case "confirm":
            await client.send_action("confirm", source=question.id)
        case "form":
            given = {field["name"]: _given(field) for field in question.props["fields"]}
            await client.send_form(given, source=question.id)
        case "choices":
            option = question.props["options"][0]
            value = option if isinstance(option, str) else option.get("value", option["label"])
            await client.send_selection([value], source=question.id)
        case "text-input":
            await client.send_text("hot-days", source=question.id)
        case other:
            raise AssertionError(f"{other} is no question")


def _given(field: dict[str, Json]) -> Json:
    options = field.get("options")
    by_kind = {"date": "2026-05-01", "number": 2, "checkbox": True}
    return options[0] if options else by_kind.get(field.get("field_type", "text"), "Ada")
