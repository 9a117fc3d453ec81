"""An MCP server for tests whose list of tools has pages, and that asks what a call says.

    command = [sys.executable, mcp_paged.__file__, "twice"]

Each page has one tool; with the argument `for_ever` the last page names itself as the next, with
`twice` it lists the first tool again. The tool `asks` has the argument `params`: those of its
question. It returns what it was answered, as JSON. Another tool returns its name.
"""

from __future__ import annotations

import json
import sys
from typing import Any

NAMES = ["first", "asks", "my.dotted/tool name", "my.dotted/tool-name"]


def send(message: dict[str, Any]) -> None:
    """Write one message."""
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def page(cursor: str | None) -> dict[str, Any]:
    """Return one page of the list."""
    number = int(cursor or 0)
    names = [NAMES[number]]
    is_last = number == len(NAMES) - 1
    if is_last and "twice" in sys.argv:
        names.append(NAMES[0])
    found: dict[str, Any] = {"tools": [{"name": one, "inputSchema": OBJECT} for one in names]}
    if not is_last:
        found["nextCursor"] = str(number + 1)
    elif "for_ever" in sys.argv:
        found["nextCursor"] = str(number)
    return found


OBJECT = {"type": "object"}


def called(params: dict[str, Any]) -> str:
    """Carry out a call, and return its text."""
    if params["name"] != "asks":
        return str(params["name"])
    send(
        {"id": "question", "method": "elicitation/create", "params": params["arguments"]["params"]}
    )
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("id") == "question":
            return json.dumps(message["result"], sort_keys=True)
    return ""


def main() -> None:
    """Answer requests, one a line, until the input ends."""
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        params = message.get("params") or {}
        result: dict[str, Any] = {}
        match message["method"]:
            case "initialize":
                result = {
                    "protocolVersion": params["protocolVersion"],
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "paged", "version": "1"},
                }
            case "tools/list":
                result = page(params.get("cursor"))
            case "tools/call":
                result = {"content": [{"type": "text", "text": called(params)}]}
        send({"id": message["id"], "result": result})


if __name__ == "__main__":
    main()
