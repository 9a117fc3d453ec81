"""`arp connect`: a terminal chat with a session on a server."""

from __future__ import annotations

import asyncio
import os
import sys
from urllib.parse import urlsplit

from arp.client.client import ArpClient, connect
from arp.client.options import Options
from arp.protocol.errors import ArpError, sentence
from arp.protocol.safe_text import sanitise_line
from arp_terminal.chat import chat
from arp_terminal.profile import capabilities, locale_tag, time_zone, viewport

STOPPED = 130
"""What a shell gives for a program that Ctrl-C ended."""

EXIT_CODES = {"quit": 0, "interrupted": STOPPED, "lost": 1, "unanswered": 1}
"""Of why a chat ended."""


def run(
    url: str,
    *,
    session: str | None,
    level: str,
    token: str | None,
    workflow: str | None = None,
) -> int:
    """Talks with the agent at `url` until the user leaves.

    Args:
        url: Where it is: `http://HOST:PORT`, `ws://…`.
        session: The session to join; `None` = a new one.
        level: Conformance level that is offered: `minimal`, `basic` or `standard`.
        token: Sent to the server; `None` = none is needed.
        workflow: The agent of a session that is made; `None` = the app's first.

    Returns:
        0 when left, 1 if the server cannot be reached, refuses, or goes away for good, or the
        input ends at a question; 130 after Ctrl-C.
    """
    try:
        return asyncio.run(_run(url, session, level, token, workflow))
    except ArpError as error:
        return _failed(error.message)
    except ValueError as error:
        return _failed(str(error))
    except KeyboardInterrupt:
        return STOPPED


async def _run(
    url: str, session: str | None, level: str, token: str | None, workflow: str | None
) -> int:
    host = urlsplit(url).netloc or url
    why = "new"
    while why == "new":
        options: Options = {
            "session_id": session,
            "workflow": workflow,
            "capabilities": capabilities(level),
            "token": token,
            "viewport": viewport(),
            "locale": locale_tag(os.environ),
            "time_zone": time_zone(os.environ),
        }
        async with connect(url, **options) as client:
            place = "  ".join((*agent_names(client), host))
            why = await chat(client, place=place, level=level)
            last = client.session_id
            workflow = client.workflow or workflow
        session = None
    if why in ("quit", "interrupted") and last and sys.stdout.isatty():
        told = sanitise_line(f"arp connect {url} --session {last}")
        print(f"\nThe session goes on: {told}")  # noqa: T201
    return EXIT_CODES[why]


def agent_names(client: ArpClient) -> list[str]:
    """Return the app's title and, where it has several agents, the title of the session's.

    Each is one line of at most 60 characters; what the server does not tell is left out.
    """
    told = client.agent.capabilities if client.agent is not None else None
    if told is None:
        return []
    names = [told.title]
    if len(told.workflows) > 1:
        names += [one.title for one in told.workflows if one.name == client.workflow]
    return [sanitise_line(name)[:60] for name in names if name]


def _failed(message: str) -> int:
    print(f"arp connect: {sentence(sanitise_line(message))}", file=sys.stderr)  # noqa: T201
    return 1
