"""The command `arp replay` with its options."""

from __future__ import annotations

from pathlib import Path

import click

from arp.commands.output import CONTEXT, fail, printable
from arp.protocol.errors import ArpError


@click.command(context_settings=CONTEXT)
@click.argument("recorded", type=click.Path(path_type=Path))
@click.option("--agent", help="Run the case RECORDED with this app (app.py, app.py:NAME).")
@click.option("--session", help="Session to play, if RECORDED is a ledger (a file, or app.py).")
@click.option(
    "--speed",
    type=click.FloatRange(0),
    default=1.0,
    show_default=True,
    help="2 plays twice as fast; 0 does not wait at all.",
)
@click.option(
    "--serve", is_flag=True, help="Play to every renderer that connects: a browser, arp connect."
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    help="Port for --serve; 0 selects a free one.",
)
@click.option(
    "--turn-s",
    type=click.FloatRange(0, min_open=True),
    default=60.0,
    show_default=True,
    help="Time limit of a turn with --agent, in seconds.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print messages for a renderer, one JSON object per line.",
)
def replay(
    recorded: Path, agent: str | None, session: str | None, speed: float, as_json: bool, **more: int
) -> None:
    r"""Play a recorded session again, or run a case with an agent.

    RECORDED is a pack, a ledger file, or with --agent a case.

    \b
      arp replay my-session.zip --speed 4
      arp replay .arp/app.db --session my-session --json | arp render
      arp replay my-session.zip --serve
      arp replay case.json --agent app.py
    """
    try:
        if agent is not None:
            from arp.commands.replay.rerun import rerun

            raise SystemExit(rerun(recorded, agent, more["turn_s"], as_json=as_json))
        if more["serve"]:
            from arp.commands.replay.serving_recording import serve_recording

            raise SystemExit(serve_recording(recorded, session, speed, more["port"]))
        from arp.commands.replay.playing import play

        raise SystemExit(play(recorded, session, speed, as_json=as_json))
    except ArpError as error:
        fail(f"{recorded}: {printable(error.message)}")
