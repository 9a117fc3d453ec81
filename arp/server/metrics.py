"""`/metrics` for Prometheus: read from the hub when asked, kept nowhere else."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from arp.hub.hub import Hub

if TYPE_CHECKING:
    from arp.server.application import Application


def metrics_routes(application: Application) -> list[BaseRoute]:
    """Gives the route."""

    async def metrics(_: Request) -> Response:
        registry = CollectorRegistry(auto_describe=False)
        registry.register(HubCollector(await application.hub(), application.in_transports))
        return Response(generate_latest(registry), media_type="text/plain; version=0.0.4")

    return [Route("/metrics", metrics)]


class HubCollector:
    """Reads one hub."""

    def __init__(self, hub: Hub, in_transports: Callable[[], int]) -> None:
        self._hub = hub
        self._in_transports = in_transports

    def collect(self) -> Iterable[Metric]:
        """Gives the figures of this moment."""
        hub = self._hub
        viewers = [viewer for live in hub.sessions.values() for viewer in live.viewers.values()]
        behind = sum(viewer.state == "behind" for viewer in viewers)
        yield GaugeMetricFamily("arp_sessions", "Sessions in memory.", len(hub.sessions))
        yield GaugeMetricFamily("arp_renderers", "Attached renderers.", len(viewers))
        yield GaugeMetricFamily("arp_renderers_behind", "Renderers that cannot keep up.", behind)
        yield GaugeMetricFamily("arp_turns_running", "Turns that run.", len(hub.runner.tasks))
        frames = {id(frame): frame for viewer in viewers for frame in viewer.outbox.waiting()}
        buffered = sum(map(len, frames.values())) + self._in_transports()
        yield GaugeMetricFamily(
            "arp_buffered_bytes",
            "Memory held by what waits to be sent, in transports too; shared frames count once.",
            buffered,
        )
        yield CounterMetricFamily("arp_ledger_writes", "Durable writes.", hub.writer.writes)
        yield CounterMetricFamily("arp_ledger_facts", "Facts written.", hub.writer.facts)
