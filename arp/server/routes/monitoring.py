"""Routes for monitoring: `/health`, `/ready`, and `/metrics` for Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from arp.hub.hub import Hub
from arp.server.answers import json_response
from arp.server.state import requester
from arp.store.errors import StoreError


async def _health(request: Request) -> Response:
    """Return whether this process can serve sessions; `ok` also before the hub has started."""
    hub = requester(request).state.running
    trouble = hub.trouble if hub is not None else ""
    if trouble:
        return JSONResponse({"status": "failing", "reason": trouble}, 503)
    return JSONResponse({"status": "ok"})


async def _ready(request: Request) -> Response:
    """Return whether the ledger can be read, and the results of verifying its facts.

    A verification that is due starts in the background. The answer names the broken sessions of the
    sender, and gives only the number of the others.
    """
    asker = requester(request)
    reason = await asker.state.ensure_open()
    if reason is None:
        hub = await asker.hub()
        try:
            await hub.store.open_sessions()
        except StoreError as error:
            reason = error.message
    if reason is not None:
        return json_response({"status": "not ready", "error": reason}, 503)
    hub.verifier.begin()
    found = hub.verifier.report(asker.known.name if asker.known is not None else None)
    return json_response({"status": "ready", "verification": found})


async def _metrics(request: Request) -> Response:
    """Return the current figures, which are read from the hub for each request."""
    registry = CollectorRegistry(auto_describe=False)
    asker = requester(request)
    registry.register(HubCollector(await asker.hub(), asker.state.in_transports))
    return Response(generate_latest(registry), media_type="text/plain; version=0.0.4")


class HubCollector:
    """Prometheus collector for one hub."""

    def __init__(self, hub: Hub, in_transports: Callable[[], int]) -> None:
        self._hub = hub
        self._in_transports = in_transports

    def collect(self) -> Iterable[Metric]:
        """Yield the current figures."""
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
            "Bytes queued for renderers, also in transports; shared frames count once.",
            buffered,
        )
        yield CounterMetricFamily("arp_ledger_writes", "Durable writes.", hub.writer.writes)
        yield CounterMetricFamily("arp_ledger_facts", "Facts written.", hub.writer.facts)


MONITORING_ROUTES = [
    Route("/health", _health),
    Route("/ready", _ready),
    Route("/metrics", _metrics),
]
