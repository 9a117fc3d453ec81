"""`arp replay --serve`: play a recording to every renderer that connects."""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import Iterable
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from urllib.parse import quote

import click

from arp.access.principal import Principal
from arp.commands.output import fail, printable
from arp.commands.replay.playing import read_recording
from arp.hub.readers.player import Player
from arp.ledger.fact import Fact
from arp.live.settings import HubSettings
from arp.protocol.errors import ArpError, sentence
from arp.protocol.messages import Workflow
from arp.redact.settings import Redaction
from arp.server.application import Application
from arp.server.serve import bind, serve
from arp.server.settings import AppDescription
from arp.turn.turn import Turn

HOST = "127.0.0.1"

NAME = "recording"

SETTINGS = HubSettings(redaction=Redaction(enabled=False), takes_input=False)
"""Settings of the hub for a recording, which is already redacted and accepts no input."""


async def do_nothing(turn: Turn) -> None:
    """Do nothing, since a recording accepts no input."""


def serve_recording(path: Path, session: str | None, speed: float, port: int) -> int:
    """Serve a recording until a signal is received; playing starts when a renderer connects.

    Args:
        path: Path of a pack or of a ledger file.
        session: Id of the session in the ledger file; `None` for a pack.
        speed: Factor of the speed; 0 does not wait at all.
        port: Port to listen on; 0 selects a free one.

    Returns:
        The exit code.

    Raises:
        ReaderError, LocalError: The recording cannot be read.
    """
    with ExitStack() as stack:
        return _serve(read_recording(path, session, stack), speed, port)


def _serve(facts: Iterable[Fact], speed: float, port: int) -> int:
    facts = iter(facts)
    first = next(facts, None)
    if first is None:
        fail("the recording has no facts to play")
    session_id = first.session_id
    application = Application(
        AppDescription({NAME: do_nothing}, lambda: [Workflow(NAME, session_id)], settings=SETTINGS)
    )
    try:
        listener = bind(HOST, port)
    except OSError as error:
        fail(f"cannot listen on {HOST}:{port}: {error.strerror}")
    port = listener.getsockname()[1]
    playing: list[asyncio.Task[None]] = []

    def ready() -> None:
        playback = _play(application, session_id, chain((first,), facts), speed)
        playing.append(asyncio.get_running_loop().create_task(playback, name="arp-play"))
        click.echo(f"http://{HOST}:{port}/?session={quote(session_id, safe='')}")
        click.echo(
            f"arp connect http://{HOST}:{port} --session {shlex.quote(printable(session_id))}"
        )
        sys.stdout.flush()

    return 0 if serve(application, listener, ready) else 1


async def _play(
    application: Application, session_id: str, facts: Iterable[Fact], speed: float
) -> None:
    hub = await application.hub()
    live = await hub.open(session_id, Principal(), NAME)
    player = Player(live)
    try:
        await live.written()
        await live.beyond(live.stored)  # the next fact records that a renderer has connected
        await player.play(facts, speed)
        click.echo("arp: The recording has ended. Ctrl-C stops the server.", err=True)
    except ArpError as error:
        click.echo(f"arp: {sentence(printable(error.message))}", err=True)
