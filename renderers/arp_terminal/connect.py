"""`arp connect`: a chat with a session of a server, in the terminal."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from arp.client.address import ENDPOINT, parse_address
from arp.client.client import ArpClient, connect
from arp.client.options import Options
from arp.protocol.capabilities import LEVELS, PING
from arp.protocol.components import AUTHOR
from arp.protocol.errors import ArpError, sentence
from arp.protocol.messages import RendererCapabilities, Viewport
from arp.protocol.safe_text import sanitise_line
from arp.protocol.token_address import split_token
from arp_terminal.chat import chat

STOPPED = 130
"""Exit code of a program that Ctrl-C ended."""

EXIT_CODES = {"quit": 0, "interrupted": STOPPED, "lost": 1, "unanswered": 1}
"""Exit codes by the reason of the end of a chat."""


def run(
    url: str,
    *,
    session: str | None,
    level: str,
    token: str | None,
    workflow: str | None = None,
    more: Options | None = None,
) -> int:
    """Connect to the agent at `url` until the user quits.

    Args:
        url: Address of the server: `http://HOST:PORT`, `ws://…`, with `/#token=TOKEN` at its end if
            the server requires a token; `stdio:COMMAND` starts an agent as a child process.
        session: Id of the session to join; `None` means a new session.
        level: Conformance level to offer: `minimal`, `basic` or `standard`.
        token: Token for the server; `None` if it needs none.
        workflow: Agent of a new session; `None` means the first one of the app.
        more: Other options of the client.

    Returns:
        Exit code: 0 if the user quit; 1 if the server could not be reached, refused, or was lost,
        or if the input ended at a question; 130 after Ctrl-C.
    """
    url, token = split_token(url, token)
    try:
        return asyncio.run(_run(url, session, level, workflow, {"token": token, **(more or {})}))
    except ArpError as error:
        return _failed(error.message)
    except ValueError as error:
        return _failed(str(error))
    except KeyboardInterrupt:
        return STOPPED


async def _run(
    url: str, session: str | None, level: str, workflow: str | None, more: Options
) -> int:
    host = urlsplit(url).netloc or url
    is_child = url.startswith("stdio:")
    if is_child:
        more = {**more, "reconnect": False, "on_stderr": _say}
    if more.get("listen"):
        print(f"Waiting for an agent at {sanitise_line(url)}", file=sys.stderr)  # noqa: T201
    server = "" if more.get("listen") else http_address(url)
    why = "new"
    while why == "new":
        options: Options = {
            "session_id": session,
            "workflow": workflow,
            "capabilities": capabilities(level),
            "viewport": viewport(),
            "locale": locale_tag(os.environ),
            "time_zone": time_zone(os.environ),
            **more,
        }
        async with connect(url, **options) as client:
            place = "  ".join((*agent_names(client), host))
            why = await chat(client, place=place, level=level, server=server)
            last = client.session_id
            workflow = client.workflow or workflow
        session = None
    if why in ("quit", "interrupted") and last and sys.stdout.isatty() and not is_child:
        how = "--listen " if more.get("listen") else ""
        command = sanitise_line(f"arp connect {how}{url} --session {last}")
        print(f"\nThe session goes on: {command}")  # noqa: T201
    return EXIT_CODES[why]


def http_address(url: str) -> str:
    """Return the HTTP address of the server at `url`; empty if it has none."""
    parts = urlsplit(parse_address(url).input_url)
    prefix = parts.path.removesuffix(f"{ENDPOINT}/input")
    return urlunsplit((parts.scheme, parts.netloc, prefix, "", ""))


def _say(line: str) -> None:
    """Print a line of a child process's standard error, above the prompt if there is one."""
    print(line, file=sys.stderr, flush=True)  # noqa: T201


def agent_names(client: ArpClient) -> list[str]:
    """Return the title of the app and, if it has several agents, of the agent of the session.

    Each is one line of at most 60 characters. Titles that the server does not send are left out.
    """
    sent = client.agent.capabilities if client.agent is not None else None
    if sent is None:
        return []
    names = [sent.title]
    if len(sent.workflows) > 1:
        names += [one.title for one in sent.workflows if one.name == client.workflow]
    return [sanitise_line(name)[:60] for name in names if name]


def _failed(message: str) -> int:
    print(f"arp connect: {sentence(sanitise_line(message))}", file=sys.stderr)  # noqa: T201
    return 1


FEATURES = (
    "streaming",
    "input",
    "resume",
    "file-upload",
    "patch-append",
    "thinking",
    "tool-detail",
    "batch",
    PING,
)
"""Features of the terminal (protocol.md 2.2)."""

_ZONEINFO = "zoneinfo/"


def capabilities(level: str) -> RendererCapabilities:
    """Return the capabilities of a terminal with a conformance level.

    Raises:
        ValueError: There is no such level; the message names the levels.
    """
    if level not in LEVELS:
        raise ValueError(f"no level {level!r}; there are {', '.join(LEVELS)}")
    more = () if level == "minimal" else (AUTHOR,)
    return RendererCapabilities(dict.fromkeys([*LEVELS[level], *more], 1), list(FEATURES))


def viewport() -> Viewport:
    """Return the size of the terminal in cells."""
    size = shutil.get_terminal_size()
    return Viewport(size.columns, size.lines)


def locale_tag(environ: Mapping[str, str]) -> str | None:
    """Return the language of the system, such as `de-CH`; `None` if it is not set."""
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if value := environ.get(name):
            tag = value.partition(".")[0].partition("@")[0]
            return None if tag in ("C", "POSIX") else tag.replace("_", "-")[:64]
    return None


def time_zone(environ: Mapping[str, str], localtime: Path = Path("/etc/localtime")) -> str | None:
    """Return the system's time zone, such as `Europe/Zurich`; `None` if it has no name."""
    named = environ.get("TZ", "").removeprefix(":")
    if named and not named.startswith("/"):
        return named[:64]
    try:
        target = os.path.realpath(localtime)
    except OSError:
        target = ""
    if _ZONEINFO in target:
        return target.partition(_ZONEINFO)[2][:64]
    return "UTC" if time.timezone == 0 and not time.daylight else None
