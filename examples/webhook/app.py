"""A build server reports into a conversation: `uvicorn --app-dir examples/webhook app:api`.

A user names a project. Whenever a build of it ends, the build server calls `/hooks/build`, and the
agent reports the build to the user. The route begins this turn with `app.push`.
"""

from __future__ import annotations

import os
import secrets

from fastapi import FastAPI, Header, HTTPException
from pydantic import BaseModel

from arp import App, Turn, ui


class Build(BaseModel):
    """A build, as the build server reports it."""

    id: str
    project: str
    succeeded: bool
    log: str = ""


app = App(title="Builds", suggestions=["website"])
watching: dict[str, str] = {}
"""Session that receives the reports of a project's builds, by project."""


@app.agent
async def builds(turn: Turn) -> None:
    """Report when a build of a project ends."""
    if turn.origin is None:
        watching[turn.text.strip()] = turn.session_id
        await turn.say(f"I tell you here when a build of {turn.text.strip()} ends.")
        return
    build = Build.model_validate(turn.input.data)
    name = f"{build.project}: build {build.id}"
    if build.succeeded:
        turn.show(ui.status_card("success", f"{name} succeeded"))
    else:
        turn.show(ui.status_card("error", f"{name} failed"))
        await turn.say(f"It ends with: {build.log}")


api = FastAPI(title="Builds")


@api.post("/hooks/build", status_code=202)
async def build_ended(build: Build, x_hook_secret: str = Header("")) -> dict[str, str]:
    """Begin a turn that reports the end of a build."""
    if not secrets.compare_digest(x_hook_secret, os.environ.get("HOOK_SECRET", "try-me")):
        raise HTTPException(401, "X-Hook-Secret is wrong")
    session = watching.get(build.project)
    if session is None:
        raise HTTPException(404, "nobody asked about this project")
    # A build server that got no answer calls again; the id prevents a second report.
    turn = await app.push(session, data=build.model_dump(), origin="build server", id=build.id)
    return {"turn": turn.id}


api.mount("/agent", app.asgi)
