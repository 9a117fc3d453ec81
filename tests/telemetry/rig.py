"""A hub in memory that is followed into the SDK's own memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from arp.control.control import Control
from arp.hub.runner import Handler
from arp.live.settings import HubSettings
from arp.store.memory import MemoryStore
from arp.telemetry.exporting import Sink
from arp.telemetry.follower import Follower
from tests.control.control_rig import controlled, talker

WANTED = HubSettings(telemetry=True)


class Exported:
    """What would have left this machine."""

    def __init__(self) -> None:
        self._spans = InMemorySpanExporter()
        self._metrics = InMemoryMetricReader()

    def sink(self) -> Sink:
        """Return a sink that exports to here, with the sampler that the environment says."""
        return Sink([SimpleSpanProcessor(self._spans)], [self._metrics])

    @property
    def spans(self) -> list[ReadableSpan]:
        """In the order in which they ended."""
        return list(self._spans.get_finished_spans())

    @property
    def names(self) -> list[str]:
        """Their names."""
        return [span.name for span in self.spans]

    def metrics(self) -> dict[str, Any]:
        """Gives data points by the name of their metric."""
        data = self._metrics.get_metrics_data()
        if data is None:
            return {}
        return {
            metric.name: list(metric.data.data_points)
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }


class Followed(NamedTuple):
    """A hub that is followed."""

    control: Control
    follower: Follower
    exported: Exported


@asynccontextmanager
async def followed(
    agent: Handler = talker,
    *,
    store: MemoryStore | None = None,
    exported: Exported | None = None,
    settings: HubSettings = WANTED,
    began_ns: int = 0,
) -> AsyncIterator[Followed]:
    """Return a control plane, and a follower that looks when it is told to."""
    exported = exported or Exported()
    async with controlled(agent, store=store, settings=settings) as control:
        follower = Follower(control.context.hub, exported.sink(), began_ns)
        yield Followed(control, follower, exported)
