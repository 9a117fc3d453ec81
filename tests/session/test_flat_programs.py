"""Whatever happens in a session, a surface of components alone shows what its screens show.

Such a renderer gets changes merged, as it displays them, and its agent side forgets older turns.
Source: docs/protocol.md 8; architecture.md, "What must always hold", 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings

from arp.protocol.capabilities import agent_hello
from arp.protocol.catalog import VERSIONS
from arp.protocol.components import as_object
from arp.protocol.connection.screen import Screen
from arp.protocol.errors import TransferDenied
from arp.protocol.limits import Limits
from arp.protocol.objects.messages import SurfaceSurfaceAcquiredEvent
from arp.protocol.objects.renderer import ObjectRendererConnection, offers
from arp.protocol.objects.wire import ObjectMessage
from arp.session.tracking import window
from arp.view.objects.dialect import ObjectDialect
from tests.session.programs import BEGIN, FEATURES, Run, arrangements, steps
from tests.support.examples import examples

LARGE = Limits(max_surfaces=100, max_message_bytes=16 << 20)

Program = list[tuple[str, int]]


class FlatRenderer:
    """A renderer without a conversation; it displays what it gets when chance says so."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.dialect = ObjectDialect("json", Limits(), "p", agent_hello(Limits()), "k")
        self.dialect.owner = self
        features = [*FEATURES, "multi-surface", "overlays"]
        limits = {"max_surfaces": 100, "max_message_bytes": 16 << 20}
        offered = offers(dict(VERSIONS) | {"x-acme-dial": 1}, features, limits)
        self.end = ObjectRendererConnection("json", LARGE, offered)
        self.names: dict[str, int] = {}
        self.needs_snapshot = False
        self.dialect.start()
        self.exchange()

    def acquired(self, surface_id: int, given: SurfaceSurfaceAcquiredEvent) -> str | None:
        raise TransferDenied("nobody hands anything over here")

    def transferred(self, name: str) -> None: ...

    def denied(self, name: str, error: TransferDenied) -> None: ...

    def unanswered(self, name: str) -> None: ...

    def desynchronised(self) -> None:
        self.needs_snapshot = True

    def feed(self, frames: Sequence[bytes]) -> None:
        self.dialect.show(frames, 0.0)
        self.exchange()

    def exchange(self, *, displays_all: bool = False) -> None:
        """Deliver everything, as far as the renderer displays it."""
        is_under_way = True
        while is_under_way:
            if displays_all:
                for surface_id in self.end.objects.surfaces:
                    self.end.displayed(surface_id)
            requests, events = self.dialect.data_to_send(), self.end.data_to_send()
            is_under_way = bool(requests or events)
            for frame in requests:
                for event in self.end.each(frame, 0.0):
                    assert isinstance(event, ObjectMessage), event
                    self._answer(event)
            for frame in events:
                self.dialect.receive(frame, 0.0)

    def _answer(self, event: ObjectMessage) -> None:
        payload: Any = event.payload
        if event.op == "create_surface":
            self.names[payload.name] = payload.new_id
        elif event.op in ("get_toplevel", "get_popup", "get_overlay"):
            self.end.configure(payload.surface_id, 80, 24)
        elif event.op == "commit" and self.chance.random() < 0.5:
            self.end.displayed(event.object_id)

    def shown(self) -> list[Any]:
        content = self.end.content(self.names["main"])
        return [None if _is_made(one.id) else as_object(one) for one in content]


def _is_made(component_id: str) -> bool:
    """Return whether a component stands for an input or an error."""
    return component_id.partition("/")[2].partition("/")[0] in ("input", "error")


def expected(screen: Screen) -> list[Any]:
    """Return what a conversation is as components, inputs and errors as `None`."""
    out: list[Any] = []
    for turn_id in dict.fromkeys((*screen.turns, *screen.surfaces["main"].outputs)):
        turn = screen.turns.get(turn_id)
        told = turn is not None and turn.inputs and turn.inputs[0].input_type == "text"
        out += [None] if told else []
        out += [as_object(one) for one in screen.output(turn_id)]
        out += [None] * (len(turn.errors) if turn is not None else 0)
    return out


@pytest.mark.parametrize("is_slow", [False, True])
@settings(max_examples=examples(8), suppress_health_check=[*HealthCheck], deadline=None)
@given(steps | arrangements)
@example([("show", 308), ("show", 546), ("frame", 177)])
def test_flat_surface_shows_what_the_screens_show(is_slow: bool, program: Program) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(window, "RECENT_TURNS", 2)
        run = Run(("full",))
        watcher, flat = run.watchers[0], FlatRenderer(Random(7 if is_slow else 1))
        flat.feed(watcher.frames)
        feed = watcher.feed

        def both(frames: Sequence[bytes]) -> None:
            feed(frames)
            flat.feed(frames)

        watcher.feed = both  # type: ignore[method-assign]
        run.play(BEGIN)
        for step in program:
            if step[0] != "crash":
                run.play([step])
            if not is_slow:
                flat.exchange(displays_all=True)
        run.play([("return", 0)])
        flat.exchange(displays_all=True)
        assert not flat.needs_snapshot
        assert flat.shown() == expected(watcher.connection.screen)
