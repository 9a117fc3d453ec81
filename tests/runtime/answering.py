"""What people see on a screen, and how they answer there: a client, a terminal, a program."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from arp.client.client import ArpClient
from tests.renderers.terminal.pseudo_terminal import PseudoTerminal
from tests.renderers.terminal.test_connect import command as terminal_command
from tests.runtime.stopped_agents import ANSWER
from tests.runtime.stopped_servers import Place
from tests.server.rpc import Rpc, rpc

WAIT_S = 60.0
SCREENS = ("client", "terminal", "control")
BLUE: dict[str, Any] = {
    "confirm": True,
    "choices": ["Blue"],
    "form": {"city": "Blue", "express": False},
    "text-input": ANSWER,
}
"""The answer to each type of component: yes, or in all others something blue."""
KEYS = {"confirm": ("y",), "choices": ("Blue",), "form": ("Blue", "n"), "text-input": (ANSWER,)}
"""The lines that a person types for it."""


async def until(client: ArpClient, found: Callable[[], Any]) -> Any:
    """Return what `found` returns as soon as it is something."""
    events = client.events()
    async with asyncio.timeout(WAIT_S):
        while not (value := found()):
            await anext(events)
    return value


def open_questions(client: ArpClient) -> list[Any]:
    """Return the questions that are open on a screen."""
    return [
        one
        for turn_id in list(client.screen.turns)
        for one in client.screen.output(turn_id)
        if one.props.get("state") == "open"
    ]


def permission_of(client: ArpClient, component_id: str) -> Any:
    """Return the permission that a question asks."""
    found = (turn.permissions.get(component_id) for turn in client.screen.turns.values())
    return next(one for one in found if one is not None)


def seen(client: ArpClient) -> Any:
    """Return what a person sees on a screen."""
    return [
        (
            turn.id,
            turn.status,
            client.screen.text(turn.id),
            [(tool.tool, tool.ok, tool.error) for tool in turn.tools],
            [(one.id, one.type, one.props) for one in client.screen.output(turn.id)],
        )
        for turn in client.screen.turns.values()
    ]


async def answer(client: ArpClient, place: Place, question: Any, screen: str) -> None:
    """Answer a question on a screen of the client's session."""
    assert client.session_id is not None
    if screen == "client":
        await at_client(client, question)
    elif screen == "terminal":
        await asyncio.to_thread(at_terminal, place, client.session_id, question)
    else:
        async with rpc(place.port) as program:
            await by_control(program, client.session_id, question)


async def at_client(client: ArpClient, question: Any) -> None:
    given = BLUE[question.type]
    if question.type == "confirm":
        await client.send_permission(permission_of(client, question.id), given)
    elif question.type == "choices":
        await client.send_selection(given, source=question.id)
    elif question.type == "form":
        await client.send_form(given, source=question.id)
    else:
        await client.send_text(given, source=question.id)


def at_terminal(place: Place, session: str, question: Any) -> None:
    """Answer the one question that is open, as a person does who sees it."""
    command = terminal_command(place.http, session)
    with PseudoTerminal(command, place.directory, size=(60, 100)) as terminal:
        title = "".join(str(question.props.get("title") or question.props["label"]).split())
        terminal.until(lambda: title in "".join(terminal.shown.split()))
        for line in KEYS[question.type]:
            terminal.type(f"{line}\r")
        terminal.until_at_rest(wait_s=WAIT_S)


async def by_control(program: Rpc, session: str, question: Any) -> None:
    """Answer as a program does that has read the fact by which the question was asked."""
    await program.follow(session)
    asked = await required(program, question.id)
    more = {"digest": asked["payload"]["digest"]} if question.type == "confirm" else {}
    await program.call(
        "agentSession/action/respond",
        sessionId=session,
        actionId=asked["actionId"],
        response=BLUE[question.type],
        **more,
    )


async def required(program: Rpc, component_id: str) -> Any:
    """Return the fact by which a component was asked."""
    while True:
        for fact in program.of("action.required"):
            if (fact["payload"].get("component") or {}).get("id") == component_id:
                return fact
        await program.next()
