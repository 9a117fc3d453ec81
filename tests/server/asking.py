"""An app for tests of restarts: it asks, and takes answers when the process that asked is gone."""

from __future__ import annotations

from datetime import date

import msgspec

from arp import DECLINED, App, Turn
from arp.turn.question_outcome import Declined


class Trip(msgspec.Struct):
    """Where somebody goes."""

    to: str
    start: date
    seats: int = 1

    def __post_init__(self) -> None:
        """Refuse a place where nobody goes."""
        if self.to == "Atlantis":
            raise ValueError("nobody goes there")


app = App("Asking")


@app.agent
async def asks(turn: Turn) -> None:
    """Asks for a trip, or whatever else it is told to ask."""
    await turn.say("Asking. ")
    match turn.text:
        case "trip":
            trip = await turn.ask(Trip, title="Your trip", name="trip", can_decline=True)
            await booked(turn, trip)
        case "soon":
            await turn.confirm("Sure?", timeout_s=0.5, id="soon")
        case "delete":
            files = {f"part-{number}.py": f"sha256 {number:064x}" for number in range(200)}
            async with turn.tool("delete", {"path": "a.txt", "files": files}) as tool:
                allowed = await tool.approve("Delete a.txt?", rule="all", session_rule="delete")
            await turn.say("Deleted." if allowed else "Kept.")
        case "sure":
            await turn.say(f"Sure: {await turn.confirm('Sure?', id='sure')}.")
        case _:
            await turn.say(f"A new turn: {turn.input.data}.")


@app.on_answer("trip", Trip)
async def booked(turn: Turn, trip: Trip | Declined) -> None:
    """Books a trip."""
    if trip is DECLINED:
        await turn.say("No trip.")
    else:
        await turn.say(f"Booked: {trip.seats} to {trip.to} on {trip.start}.")
