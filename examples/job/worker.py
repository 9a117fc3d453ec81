"""A job in its own process: `python examples/job/worker.py SESSION COMPONENT`."""

from __future__ import annotations

import itertools
import json
import os
import sys
from typing import Any

from websockets.sync.client import connect
from websockets.sync.connection import Connection

FILES = 5
numbers = itertools.count(1)


def call(server: Connection, method: str, **params: Any) -> Any:
    """Call a method of the control plane, and return its result when it is durable."""
    request = {"jsonrpc": "2.0", "id": next(numbers), "method": method, "params": params}
    server.send(json.dumps(request))
    answer = json.loads(server.recv())
    if "error" in answer:
        raise RuntimeError(answer["error"]["message"])
    return answer["result"]


def run(server: Connection, session: str, component: str) -> None:
    """Import all files, and report the progress after each."""
    for number in range(1, FILES + 1):
        # … the work for a file …
        is_done = number == FILES
        step = {
            "name": "Import",
            "status": "done" if is_done else "active",
            "detail": f"{number} of {FILES} files",
        }
        change = {"op": "update", "target": component, "path": "props.steps.0", "value": step}
        call(server, "agentSession/surface/update", sessionId=session, ops=[change])


if __name__ == "__main__":
    url = os.environ.get("ARP_URL", "http://127.0.0.1:8080").replace("http", "ws", 1)
    token = os.environ.get("ARP_TOKEN")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    with connect(f"{url}/_api/rpc", additional_headers=headers) as server:
        run(server, *sys.argv[1:])
