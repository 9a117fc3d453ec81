"""An agent that measures commits: from `turn.patch` to the acknowledgement of the renderer.

It observes acknowledgements where the hub receives them. Agents cannot see them, so this is the
only benchmark that uses internals of the server.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping

from arp import App, Turn, ui
from arp.live.delivery import Viewer
from arp.protocol.messages import Presented
from arp.protocol.objects.messages import SurfaceFrameAckEvent
from arp.protocol.objects.states import CommitFlow
from arp.view.objects.dialect import ObjectDialect
from tests.bench.plan import RECEIPT

INTERVAL_S = 0.001

app = App(title="Acknowledged")

_acknowledged = asyncio.Event()
_original, _original_object = Viewer.acknowledge, ObjectDialect._surface_event


def _acknowledge(
    viewer: Viewer, seq: int, presented: Mapping[str, Presented] | None = None
) -> None:
    _original(viewer, seq, presented)
    if not viewer.unacknowledged:
        _acknowledged.set()


def _surface_event(dialect, object_id, event):  # type: ignore[no-untyped-def] # types are private
    events = _original_object(dialect, object_id, event)
    if isinstance(event.payload, SurfaceFrameAckEvent):
        surface = dialect.connection.objects.surface(object_id)
        if surface.flow == CommitFlow.IDLE:
            _acknowledged.set()
    return events


setattr(Viewer, "acknowledge", _acknowledge)  # noqa: B010 - mypy would refuse an assignment
setattr(ObjectDialect, "_surface_event", _surface_event)  # noqa: B010 - as above


@app.agent
async def measure(turn: Turn) -> None:
    """Make the number of commits in the text; answer with the duration of each in milliseconds.

    With the word `RECEIPT` before the number, each commit has the time at which it was made, and
    nothing is waited for.
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
