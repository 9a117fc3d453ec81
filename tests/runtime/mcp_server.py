"""A real MCP server over standard input and output, with the standard library alone.

    command = [sys.executable, mcp_server.__file__]      # what a CLI is given as MCP server

It has one tool, `add`, which returns the sum of the integers `a` and `b`. Given to a CLI under the
name `sums`, the fake model calls it on `mcp: sums add {"a": 2, "b": 3}`.
"""

from __future__ import annotations

import json
import sys
from typing import Any

INTEGERS = {"a": {"type": "integer"}, "b": {"type": "integer"}}
TOOL = {
    "name": "add",
    "description": "Return the sum of two integers.",
    "inputSchema": {"type": "object", "properties": INTEGERS, "required": ["a", "b"]},
}


def main() -> None:
    """Answer requests, one a line, until the input ends."""
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message and "method" in message:
            answer = {"jsonrpc": "2.0", "id": message["id"], **answered(message)}
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()


def answered(message: dict[str, Any]) -> dict[str, Any]:
    """Return the member `result` or `error` of the answer."""
    params = message.get("params", {})
    match message["method"]:
        case "initialize":
            return {
                "result": {
                    "protocolVersion": params["protocolVersion"],
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "sums", "version": "1"},
                }
            }
        case "ping":
            return {"result": {}}
        case "tools/list":
            return {"result": {"tools": [TOOL]}}
        case "tools/call":
            total = params["arguments"]["a"] + params["arguments"]["b"]
            return {"result": {"content": [{"type": "text", "text": str(total)}]}}
    return {"error": {"code": -32601, "message": f"no method {message['method']}"}}


if __name__ == "__main__":
    main()
