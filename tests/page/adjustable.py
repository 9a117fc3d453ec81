"""An app with settings, feedback and several authors; its hook writes what it gets to a file."""

import os
from pathlib import Path
from typing import Literal

import pydantic

from arp import App, Turn
from arp.turn.feedback import Feedback


class Settings(pydantic.BaseModel):
    """What people set for a session."""

    model: Literal["small", "large"] = "small"
    warmth: int = 1
    tone: str = "plain"
    voice: Literal["soft", "loud"] | None = "soft"

    @pydantic.field_validator("tone")
    @classmethod
    def _not_rude(cls, tone: str) -> str:
        if tone == "rude":
            raise ValueError("be kind")
        return tone


app = App("Adjustable", session_settings=Settings)


@app.on_feedback
def rated(feedback: Feedback) -> None:
    with Path(os.environ["RATED_FILE"]).open("a") as file:
        file.write(f"{feedback.turn_id} {feedback.rating} {feedback.comment}\n")


@app.agent
async def agent(turn: Turn) -> None:
    settings: Settings = turn.settings
    match turn.text:
        case "warmer":
            turn.update_settings(warmth=9)
            await turn.say("Warmer.")
        case "hand over":
            await turn.say("I ask the desk.")
            await turn.say("It is 42. ", author="Research Desk")
            await turn.say("Sure.", author="Research Desk")
            await turn.say("I agree.", author="Écrivain")
        case _:
            await turn.say(f"{settings.model}, {settings.warmth}, {settings.tone}.")
