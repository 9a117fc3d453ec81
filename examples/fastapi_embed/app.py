"""A FastAPI service with an agent inside: `uvicorn --app-dir examples/fastapi_embed app:api`.

Programs use the HTTP routes, people use the agent; both share one guest book. FastAPI does not run
the lifespan of a mounted application. The agent does not need that: it starts with its first
request.
"""

from __future__ import annotations

from fastapi import FastAPI
from pydantic import BaseModel

from arp import App, Turn, ui


class Guest(BaseModel):
    """A person who signed the guest book."""

    name: str
    message: str = ""


guests: list[Guest] = []

agent = App(title="Guest book", suggestions=["Sign the book", "Who was here?"])


@agent.agent
async def keeper(turn: Turn) -> None:
    """Sign the guest book, or show the guests."""
    if "sign" in turn.text.lower():
        fields = [
            ui.field("name", label="Your name", required=True),
            ui.field("message", label="A few words", field_type="textarea"),
        ]
        answer = await turn.ask(ui.form(fields, title="The guest book", submit_label="Sign"))
        guests.append(Guest(name=answer["name"], message=answer["message"] or ""))
        await turn.say(f"Thank you, {answer['name']}! ")
    await turn.say(f"Guests so far: {len(guests)}.")
    if guests:
        turn.show(ui.table(["name", "message"], [[guest.name, guest.message] for guest in guests]))


api = FastAPI(title="A service with an agent")


@api.get("/guests")
async def list_guests() -> list[Guest]:
    """Return everybody who signed."""
    return guests


@api.post("/guests", status_code=201)
async def add_guest(guest: Guest) -> Guest:
    """Sign the book for a program."""
    guests.append(guest)
    return guest


api.mount("/agent", agent.asgi)
