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
from arp.protocol.object_messages import SurfaceFrameAckEvent
from arp.protocol.object_states import CommitFlow
from arp.view.object_dialect import ObjectDialect
from tests.bench.plan import RECEIPT

INTERVAL_S = 0.001

app = App(title="Acknowledged")

_acknowledged = asyncio.Event()
_take, _take_object = Viewer.acknowledge, ObjectDialect._surface_event


def _acknowledge(
    viewer: Viewer, seq: int, presented: Mapping[str, Presented] | None = None
) -> None:
    _take(viewer, seq, presented)
    if not viewer.unacknowledged:
        _acknowledged.set()


def _surface_event(dialect, object_id, event):  # type: ignore[no-untyped-def] # private over there
    events = _take_object(dialect, object_id, event)
    if isinstance(event.payload, SurfaceFrameAckEvent):
        surface = dialect.connection.objects.surface(object_id)
        if surface.flow == CommitFlow.IDLE:
            _acknowledged.set()
    return events


setattr(Viewer, "acknowledge", _acknowledge)  # noqa: B010 - mypy would refuse an assignment
setattr(ObjectDialect, "_surface_event", _surface_event)  # noqa: B010 - as above


@app.agent
async def measure(turn: Turn) -> None:
    """Makes as many commits as the text says; says how long each took, in milliseconds.

    After the word `RECEIPT`, each commit says when it was made, and nothing is waited for.
    """
    turn.show(ui.progress([ui.step("one", "active")], id="p"))
    await turn.say("")
    kind, _, count = turn.text.rpartition(" ")
    if kind == RECEIPT:
        await _stamp(turn, int(count))
        return
    took: list[float] = []
    for number in range(int(count)):
        await asyncio.sleep(INTERVAL_S)
        _acknowledged.clear()
        began = time.perf_counter()
        async with turn.frame():
            turn.patch("p", "props.title", str(number))
        await turn.say("")
        await _acknowledged.wait()
        took.append((time.perf_counter() - began) * 1e3)
    await turn.say(json.dumps([round(one, 3) for one in took]))


async def _stamp(turn: Turn, count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(INTERVAL_S)
        async with turn.frame():
            turn.patch("p", "props.title", str(time.monotonic_ns()))
        await turn.say("")
