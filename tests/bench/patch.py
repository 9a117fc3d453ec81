"""A patch of one property and its commit, in trees of 10, 1,000 and 10,000 components.

All in this process: `Session.commit` and `Session.drain`, as the hub calls them; and one commit
that shows 1,000 components of four kinds, with full validation.
"""

from __future__ import annotations

import gc
import random
import time

from arp.client.options import renderer_hello
from arp.protocol.components import Component
from arp.protocol.limits import Limits
from arp.protocol.messages import Input
from arp.protocol.patch import Update
from arp.session.input.receive import receive
from arp.session.session import Head, Session
from arp.surface.change import Change, PatchChange, RenderChange
from arp.surface.draft_answer import understand_draft
from arp.view.profile import profile_of
from arp.view.view import View
from tests.bench.figures import Figure, alone, compared, percentile, report, rounds

SIZES = (10, 1_000, 10_000)
PATCHES = 400
CHILDREN = 9
TARGET = 1.3
TARGET_RENDER_MS = 20.0
LIMITS = Limits(max_components_per_commit=20_000)
PROFILE = profile_of(renderer_hello({}).capabilities)
AT = "2026-01-01T00:00:00.000000Z"


class Bench:
    """A session with a running turn and one renderer that shows everything."""

    def __init__(self) -> None:
        self.session = Session(Head("patch", "epoch"), LIMITS)
        self.view = View(PROFILE, self.session.screen)
        self.session.watchers.append(self.view)
        receive(self.session, Input(input_type="text", data={"text": "go"}), understand_draft)
        assert self.session.running is not None
        self.turn_id = self.session.running
        self.session.drain(AT)

    def commit_s(self, change: Change) -> float:
        """Commit one change, drain its fact, and return the processor time of both in seconds.

        Nothing here waits, so the processor time is the duration on an idle machine.
        """
        began = time.thread_time()
        self.session.commit(self.turn_id, "main", [change])
        batch = self.session.drain(AT)
        took = time.thread_time() - began
        assert len(batch.facts) == 1
        return took


def grouped(number: int) -> Component:
    """Return a group of texts: ten components."""
    children = [
        {"id": f"t{number}-{child}", "type": "text", "props": {"content": "Text"}}
        for child in range(CHILDREN)
    ]
    return Component(f"g{number}", "group", {"children": children})


def planted(size: int) -> Bench:
    """Return a session whose tree has `size` components."""
    bench = Bench()
    bench.commit_s(RenderChange([grouped(number) for number in range(size // (CHILDREN + 1))]))
    tree = bench.session.tree("main")
    assert tree is not None
    assert len(tree.nodes) == size
    return bench


def patch_us(bench: Bench, size: int, chance: random.Random) -> float:
    """Patch components all over the tree; return the median duration in microseconds."""
    groups = size // (CHILDREN + 1)
    taken = []
    for number in range(PATCHES):
        target = f"t{chance.randrange(groups)}-{chance.randrange(CHILDREN)}"
        op = Update(target, "props.content", f"Text {number}")
        taken.append(bench.commit_s(PatchChange([op])))
    return percentile(taken, 50) * 1e6


def assorted(number: int) -> Component:
    """Return a component of one of four kinds."""
    rows = [[f"row {row}", row, row / 2] for row in range(5)]
    kinds: list[tuple[str, dict[str, object]]] = [
        ("text", {"content": f"Paragraph {number}", "format": "markdown"}),
        ("status-card", {"status": "success", "title": f"Step {number}", "message": "All is well"}),
        ("key-value", {"items": [{"key": "rows", "value": "12"}, {"key": "errors", "value": "0"}]}),
        ("table", {"headers": ["name", "count", "share"], "rows": rows}),
    ]
    kind, props = kinds[number % len(kinds)]
    return Component(f"c{number}", kind, props)


def render_ms() -> float:
    """Show 1,000 components in one commit of a new session; return the duration in milliseconds."""
    components = [assorted(number) for number in range(1_000)]
    return Bench().commit_s(RenderChange(components)) * 1000


def main() -> None:
    chance = random.Random(1)
    benches = {size: planted(size) for size in SIZES}
    times: dict[int, list[float]] = {size: [] for size in SIZES}
    renders = []
    gc.collect()
    for _ in range(rounds(15)):
        for size, bench in benches.items():
            times[size].append(patch_us(bench, size, chance))
        renders.append(render_ms())
    small, middle, large = SIZES
    figures: list[Figure] = [
        alone(f"patch and commit in {small} components", "µs", times[small]),
        compared(f"… in {middle:,}, against {small}", "µs", times[middle], times[small], TARGET),
        compared(f"… in {large:,}, against {small}", "µs", times[large], times[small], TARGET),
        alone("render and commit of 1,000 components", "ms", renders, TARGET_RENDER_MS),
    ]
    report("patch", figures)


if __name__ == "__main__":
    main()
