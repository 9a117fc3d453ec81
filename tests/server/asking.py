"""An app for tests of restarts: it asks, and takes answers when the process that asked is gone.

Run as `python -m tests.server.asking LEDGER`; it prints its port.
"""

from __future__ import annotations

import sys
from datetime import date

import msgspec

from arp import DECLINED, App, Turn, ui


class Trip(msgspec.Struct):
    """Where somebody goes."""

    to: str
    start: date
    seats: int = 1


app = App("Asking", ledger=sys.argv[1] if len(sys.argv) > 1 else "memory:")


@app.agent
async def asks(turn: Turn) -> None:
    """Asks what it is told to ask."""
    await turn.say("Asking. ")
    match turn.text:
        case "trip":
            await booked(turn, await turn.ask(Trip, title="Your trip", name="trip", id="q"))
        case "both":
            await turn.say(str(await turn.ask(ui.text_input("Why?", id="q"), can_decline=True)))
        case "sure" | "":
            await turn.say(f"sure: {await turn.confirm('Sure?', id='q')}")
        case other:
            await turn.say(f"You said {other}.")


@app.on_answer("trip", Trip)
async def booked(turn: Turn, trip: Trip) -> None:
    """Books a trip."""
    told = "no trip" if trip is DECLINED else f"{trip.seats} to {trip.to} on {trip.start}"  # type: ignore[comparison-overlap]  # it is, where somebody declined
    await turn.say(f"Booked: {told}.")
