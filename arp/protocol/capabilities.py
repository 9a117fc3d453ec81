"""The capabilities of the agent side, and the `hello` that announces them."""

from __future__ import annotations

from functools import lru_cache

import msgspec
from msgspec import Struct

from arp.protocol.catalog import VERSIONS
from arp.protocol.codec import ENCODINGS, Encoding, encode
from arp.protocol.limits import Limits
from arp.protocol.messages import AgentCapabilities, AgentHello, Command, Workflow

PING = "ping"
"""Feature of a peer that answers `ping` with `pong`."""

AGENT_FEATURES = (
    "streaming",
    "input",
    "resume",
    "multi-surface",
    "overlays",
    "file-upload",
    "frame-ack",
    "patch-append",
    "thinking",
    "batch",
    "branches",
    "line-pause",
    "tool-detail",
    PING,
)
"""Features of the agent side of this project in the session dialect (protocol.md 2.2)."""

LEVELS: dict[str, tuple[str, ...]] = {
    "minimal": ("text",),
    "basic": ("text", "table", "form", "confirm", "choices", "status-card", "group"),
    "standard": tuple(VERSIONS),
}
"""Components of the conformance levels (protocol.md 7)."""


class AppInfo(Struct, frozen=True):
    """The title and the agents of an app."""

    title: str = ""
    workflows: tuple[Workflow, ...] = ()


NO_APP = AppInfo()
"""Empty information, for a peer without a principal."""


@lru_cache(maxsize=16)
def hello_frame(
    limits: Limits,
    encoding: Encoding,
    commands: tuple[Command, ...] = (),
    takes_input: bool = True,
    app: AppInfo = NO_APP,
) -> bytes:
    """Return the first frame of a connection; it is cached for all connections."""
    return encode(agent_hello(limits, commands, takes_input, app), encoding)


def agent_hello(
    limits: Limits,
    commands: tuple[Command, ...] = (),
    takes_input: bool = True,
    app: AppInfo = NO_APP,
) -> AgentHello:
    """Return the first message of a connection.

    Args:
        limits: Limits of the agent side.
        commands: Slash commands of the app.
        takes_input: Whether the feature `input` is offered.
        app: Title and agents of the app.
    """
    return AgentHello(
        capabilities=AgentCapabilities(
            components=list(VERSIONS),
            versions=dict(VERSIONS),
            features=[name for name in AGENT_FEATURES if takes_input or name != "input"],
            limits=msgspec.to_builtins(limits),
            encodings=list(ENCODINGS),
            commands=list(commands),
            title=app.title,
            workflows=list(app.workflows),
        )
    )
