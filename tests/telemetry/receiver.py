"""A collector on loopback: takes OTLP over HTTP and keeps what it is told."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

WAIT_S = 40.0


class Receiver:
    """What came."""

    def __init__(self) -> None:
        self.port = 0
        self.headers: list[dict[str, str]] = []
        self.spans: list[Any] = []
        self.services: set[str] = set()
        self.metrics: dict[str, Any] = {}
        self._came = threading.Condition()

    def take(self, path: str, headers: dict[str, str], body: bytes) -> None:
        """Takes one request."""
        data = gzip.decompress(body) if headers.get("content-encoding") == "gzip" else body
        with self._came:
            self.headers.append(headers)
            if path == "/v1/traces":
                self._traces(ExportTraceServiceRequest.FromString(data))
            else:
                self._metrics(ExportMetricsServiceRequest.FromString(data))
            self._came.notify_all()

    def _traces(self, request: Any) -> None:
        for resource in request.resource_spans:
            named = {one.key: one.value.string_value for one in resource.resource.attributes}
            self.services.add(named["service.name"])
            for scope in resource.scope_spans:
                self.spans += scope.spans

    def _metrics(self, request: Any) -> None:
        for resource in request.resource_metrics:
            for scope in resource.scope_metrics:
                self.metrics |= {metric.name: metric for metric in scope.metrics}

    def span(self, name: str) -> Any:
        """Waits for the span of that name."""
        with self._came:
            assert self._came.wait_for(lambda: any(one.name == name for one in self.spans), WAIT_S)
            return next(one for one in self.spans if one.name == name)


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Receives until the block ends."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            receiver.take(self.path, headers, body)
            self.send_response(200)
            self.send_header("content-type", "application/x-protobuf")
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        receiver.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, name="otlp-receiver")
        thread.start()
        try:
            yield receiver
        finally:
            server.shutdown()
            thread.join()
