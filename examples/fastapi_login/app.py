"""A FastAPI service with its own login, and an agent inside that identifies users by it.

Start it: `uvicorn --app-dir examples/fastapi_login app:api`. The users are `ann` and `bob`, with
their names as passwords. The service manages its sessions itself, as many do. The parts to look at
are the class `SignedIn` and the function `user_of_service`.
"""

from __future__ import annotations

import secrets
from typing import Annotated
from urllib.parse import quote

from fastapi import FastAPI, Form, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.authentication import AuthCredentials, AuthenticationBackend, SimpleUser
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.requests import HTTPConnection

from arp import Access, App, IncomingConnection, Turn

PASSWORDS = {"ann": "ann", "bob": "bob"}
"""Passwords by user; a real service stores hashes in its database."""

SESSIONS: dict[str, str] = {}
"""Signed-in users by the value of their cookie."""


class SignedIn(AuthenticationBackend):
    """Identifies the user of a request for the middleware, which sets `scope["user"]`."""

    async def authenticate(
        self, connection: HTTPConnection
    ) -> tuple[AuthCredentials, SimpleUser] | None:
        """Return the user of a session."""
        name = SESSIONS.get(connection.cookies.get("session", ""))
        return None if name is None else (AuthCredentials(["signed in"]), SimpleUser(name))


def user_of_service(connection: IncomingConnection) -> str | None:
    """Return the user that the middleware has identified, for the agent."""
    user = connection.scope["user"]
    # A connection may stay open for hours, and the middleware runs only once. This hook runs again
    # every 30 s, so it looks the session up itself: a user who has signed out is disconnected.
    name = SESSIONS.get(connection.cookies.get("session", ""))
    return user.username if user.is_authenticated and name == user.username else None


agent = App(
    title="Notes",
    suggestions=["Buy milk"],
    access=Access(
        authenticate=user_of_service,
        login_url="/login?next={next}",
        logout_url="/logout",
        sign_in_text="Please sign in to our service.",
    ),
)


@agent.agent
async def notes(turn: Turn) -> None:
    """Store your notes, for you alone."""
    kept = turn.state.setdefault("notes", [])
    kept.append(turn.text)
    await turn.say(f"{turn.user.name}, these are your notes: " + ", ".join(kept) + ".")


api = FastAPI(title="A service with a login and an agent")
api.add_middleware(AuthenticationMiddleware, backend=SignedIn())


@api.get("/login")
async def login_form(next: str = "/agent/") -> HTMLResponse:
    """Show the form."""
    return HTMLResponse(
        f'<!doctype html><title>Sign in</title><form method="post" action="?next={quote(next)}">'
        '<label>Name <input name="name"></label>'
        '<label>Password <input name="password" type="password"></label>'
        "<button>Sign in</button></form>"
    )


@api.post("/login")
async def login(
    name: Annotated[str, Form()], password: Annotated[str, Form()], next: str = "/agent/"
) -> Response:
    """Sign a user in."""
    if not secrets.compare_digest(PASSWORDS.get(name, "").encode(), password.encode()):
        return HTMLResponse("Wrong name or password.", 401)
    cookie = secrets.token_urlsafe(32)
    SESSIONS[cookie] = name
    is_ours = next.startswith("/") and not next.startswith(("//", "/\\"))
    answer = RedirectResponse(next if is_ours else "/agent/", 303)
    answer.set_cookie("session", cookie, httponly=True, samesite="lax")
    return answer


@api.get("/logout")
async def logout(request: Request) -> Response:
    """Sign the user out."""
    SESSIONS.pop(request.cookies.get("session", ""), None)
    answer = RedirectResponse("/agent/", 303)
    answer.delete_cookie("session")
    return answer


api.mount("/agent", agent.asgi)
