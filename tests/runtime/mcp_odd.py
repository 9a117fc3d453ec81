"""An MCP server for tests that answers a call with exactly what the call says.

    command = [sys.executable, mcp_odd.__file__]

The tool `raw` has the argument `text`; `$ID` in it is the id of the request. Over pipes each line
of it is a message. At an address (`odd_at_address`) it is the body of the answer, or an event.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOOLS = [
    {"name": "raw", "inputSchema": {"type": "object"}},
    {
        "name": "strict",
        "inputSchema": {"type": "object"},
        "outputSchema": {
            "type": "object",
            "properties": {"n": {"type": "integer"}},
            "required": ["n"],
        },
    },
]


def answered(message: dict[str, Any]) -> bytes:
    """Return what is answered to a request."""
    params = message.get("params", {})
    if message["method"] == "tools/call":
        text = str(params["arguments"]["text"]).replace("$ID", json.dumps(message["id"]))
        return text.encode("latin-1")
    result: dict[str, Any] = {}
    if message["method"] == "initialize":
        result = {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "odd", "version": "1"},
        }
    elif message["method"] == "tools/list":
        result = {"tools": TOOLS}
    return json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()


class _Handler(BaseHTTPRequestHandler):
    kind = "application/json"

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if "id" not in message:
            self.send_response(202)
            self.end_headers()
            return
        body = answered(message)
        if self.kind != "application/json":
            body = b"event: message\ndata: " + body + b"\n\n"
        self.send_response(200)
        self.send_header("content-type", self.kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        self.send_error(405)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@contextmanager
def odd_at_address(kind: str) -> Iterator[str]:
    """Serve over HTTP, and yield the address."""
    handler = type("Handler", (_Handler,), {"kind": kind})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/mcp"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def main() -> None:
    """Answer requests, one a line, until the input ends."""
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message and "method" in message:
            sys.stdout.buffer.write(answered(message) + b"\n")
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
