"""What agent sides send, and what our own renderer makes of it, for renderers in other languages.

    python -m tests.web.recordings FIRST COUNT    recordings as JSON, one a line

By its number modulo three a recording is: a random program of a session as one renderer of any
kind hears it; frames of any kind, many of them wrong somewhere; a program as the most able renderer
hears it, with what a replay tells of each fact.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from random import Random

from arp.ledger.fact import Fact
from arp.protocol.connection.renderer_connection import RendererConnection
from arp.protocol.json_value import JsonObject
from arp.protocol.messages import ErrorMessage, RendererHello
from arp.session.recovery import messages_of
from tests.session.programs import BEGIN, ENCODINGS, PROFILES, WEIGHTED, Run, encoded, state
from tests.web.wrong_frames import frames as wrong_frames

STEPS = 40
"""Actions in a program; about as many frames come of it."""

HEARD = [name for name in PROFILES if name not in ENCODINGS]
"""Renderers that speak JSON."""

NOT_LIVE = ("rejoin", "fall behind")
"""After these a renderer has not heard each fact by itself."""


def main(arguments: list[str]) -> int:
    """Prints recordings."""
    first, count = map(int, arguments)
    for number in range(first, first + count):
        sys.stdout.write(json.dumps(recording(number), ensure_ascii=False) + "\n")
    return 0


def recording(number: int) -> JsonObject:
    """Gives frames, and behind each of them the screen and the place."""
    chance = Random(number)
    if number % 3 == 1:
        return {"number": number, "steps": steps(wrong_frames(chance))}
    alike = number % 3 == 2
    run = played(chance, "full" if alike else chance.choice(HEARD), without=NOT_LIVE * alike)
    heard = [frame.decode() for frame in run.watchers[0].frames]
    replay = [[fact.sequence, told(fact, run)] for fact in run.facts] if alike else []
    return {"number": number, "steps": steps(heard), "replay": replay}


def steps(sent: Sequence[str | None]) -> list[JsonObject]:
    """Gives frames with what our renderer makes of each."""
    heard = RendererConnection(RendererHello())
    return [_step(heard, frame) for frame in sent]


def _step(heard: RendererConnection, frame: str | None) -> JsonObject:
    """Takes a frame; `None` is a link that was lost, and a hello on the next."""
    if frame is None:
        heard.hello()
    messages = [] if frame is None else heard.receive(frame)
    faults = [m for m in messages if isinstance(m, ErrorMessage) and m.session_id is None]
    place = {"epoch": heard.epoch, "seq": heard.seq}
    shown = state(heard.screen)
    return {"frame": frame, "state": shown, "place": place, "faults": len(faults)}


def played(chance: Random, watching: str, without: Sequence[str]) -> Run:
    """Return a session after a random program that one renderer watched."""
    run = Run([watching])
    run.play(BEGIN)
    names = [name for name in WEIGHTED if name not in without]
    run.play([(chance.choice(names), chance.randrange(1 << 30)) for _ in range(STEPS)])
    run.play([("return", 0)])
    return run


def told(fact: Fact, run: Run) -> list[str]:
    """Return what a replay tells of a fact."""
    frames = encoded(messages_of(fact), run.watchers[0].group, None)
    return [frame.decode() for frame in frames]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
