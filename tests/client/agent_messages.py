"""Messages of an agent side, as plain JSON, for the scripted servers of these tests."""

from __future__ import annotations

import json
from typing import Any

import cbor2
import msgspec

Message = dict[str, Any]

EPOCH = "e1"

HELLO: Message = {
    "v": 1,
    "type": "hello",
    "capabilities": {"components": ["text", "table"], "features": ["frame-ack"], "limits": {}},
}


def session(resume: str = "new", seq: int = 0, session_id: str = "s1") -> Message:
    return {
        "v": 1,
        "type": "session",
        "session_id": session_id,
        "epoch": EPOCH,
        "seq": seq,
        "resume": resume,
    }


def message(kind: str, seq: int | None = None, turn: str | None = "t1", **fields: Any) -> Message:
    made = {"v": 1, "type": kind, "session_id": "s1", "seq": seq, "turn_id": turn, **fields}
    return {name: value for name, value in made.items() if value is not None}


def delta(text: str, seq: int, turn: str = "t1", **more: Any) -> Message:
    return message("delta", seq, turn, payload={"delta": text, **more})


def echo(text: str, seq: int, turn: str = "t1", input_id: str | None = None) -> Message:
    return message("input", seq, turn, input_type="text", data={"text": text}, id=input_id)


def status(word: str, seq: int | None, turn: str = "t1") -> Message:
    return message("turn", seq, turn, status=word)


def tool_start(tool: str, args: str, call_id: str, seq: int) -> Message:
    return message("tool_start", seq, payload={"tool": tool, "args": args, "call_id": call_id})


def tool_end(tool: str, ok: bool, call_id: str, seq: int) -> Message:
    return message("tool_end", seq, payload={"tool": tool, "ok": ok, "call_id": call_id})


def text(component_id: str, content: str) -> Message:
    return {"id": component_id, "type": "text", "props": {"content": content}}


def render(component: Message, seq: int | None, turn: str = "t1", **more: Any) -> Message:
    return message("render", seq, turn, components=[component], **more)


def patch(seq: int | None, *ops: Message) -> Message:
    return message("patch", seq, ops=list(ops))


def commit(seq: int | None, turn: str = "t1", final: bool = False) -> Message:
    return message("commit", seq, turn, final=final)


def ack(input_id: str, turn: str | None = "t1") -> Message:
    return message("ack", None, turn, id=input_id)


def error(text: str, code: int, turn: str | None = None, input_id: str | None = None) -> Message:
    payload = {"error": text, "code": code}
    return message("error", None, turn, payload=payload | ({"id": input_id} if input_id else {}))


def encoded(what: Any, encoding: str = "json") -> bytes:
    if encoding == "msgpack":
        return msgspec.msgpack.encode(what)
    if encoding == "cbor":
        return cbor2.dumps(what)
    return json.dumps(what).encode()


def decoded(frame: bytes | str, encoding: str = "json") -> Any:
    if encoding == "msgpack":
        assert isinstance(frame, bytes)
        return msgspec.msgpack.decode(frame)
    if encoding == "cbor":
        assert isinstance(frame, bytes)
        return cbor2.loads(frame)
    return json.loads(frame)


STORY: list[Message] = [
    echo("Show the sales", 1),
    status("running", 2),
    delta("Let me ", 3),
    delta("look.", 4),
    tool_start("query", '{"sql":"…"}', "c1", 5),
    tool_end("query", True, "c1", 6),
    render(text("a", "one"), 7, tool_name="query"),
    commit(7),
    delta("After.", 8),
    patch(9, {"op": "update", "target": "a", "path": "props.content", "value": "two"}),
    render(text("b", "three"), 9),
    commit(9),
    error("slow", 16, "t1") | {"seq": 10},
    status("completed", None),
    commit(11, final=True),
]
"""A turn with something of everything; `seq` stands as a server writes it."""

STORY_SCREEN = {
    "turns": {
        "t1": {
            "status": "completed",
            "inputs": [["text", {"text": "Show the sales"}]],
            "tools": [["query", '{"sql":"…"}', True, None]],
            "thinking": "",
            "errors": [[16, "slow"]],
            "final": True,
            "output": [
                "Let me look.",
                {"id": "a", "type": "text", "props": {"content": "two"}},
                "After.",
                {"id": "b", "type": "text", "props": {"content": "three"}},
            ],
            "story": [
                "input 0",
                "Let me look.",
                "tool 0",
                "component 1",
                "After.",
                "component 3",
                "error 0",
            ],
        }
    },
    "surfaces": {},
}
"""What shows after it, however it came."""
