"""An agent that measures commits: from `turn.patch` to the acknowledgement of the renderer.

It is told of an acknowledgement where the hub gets it: no author can see that, so this one file of
the benchmarks knows an inside of the server.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping

from arp import App, Turn, ui
from arp.hub.delivery import Viewer
from arp.protocol.messages import Presented

app = App(title="Acknowledged")

_acknowledged = asyncio.Event()
_take = Viewer.acknowledge


def _acknowledge(
    viewer: Viewer, seq: int, presented: Mapping[str, Presented] | None = None
) -> None:
    _take(viewer, seq, presented)
    if not viewer.unacknowledged:
        _acknowledged.set()


setattr(Viewer, "acknowledge", _acknowledge)  # noqa: B010 - mypy would refuse an assignment


@app.agent
async def measure(turn: Turn) -> None:
    """Makes as many commits as the text says; says how long each took, in milliseconds."""
    turn.show(ui.progress([ui.step("one", "active")], id="p"))
    await turn.say("")
    took: list[float] = []
    for number in range(int(turn.text)):
        await asyncio.sleep(0.001)
        _acknowledged.clear()
        began = time.perf_counter()
        async with turn.frame():
            turn.patch("p", "props.title", str(number))
        await turn.say("")
        await _acknowledged.wait()
        took.append((time.perf_counter() - began) * 1e3)
    await turn.say(json.dumps([round(one, 3) for one in took]))
