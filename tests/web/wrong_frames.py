"""Frames as no agent side should send them: messages in any order, often wrong somewhere.

What two languages cannot see alike is left out: whole numbers written as fractions, halves of
surrogate pairs, numbers beyond 2⁵³.
"""

from __future__ import annotations

import copy
import json
from random import Random
from typing import Any

Message = dict[str, Any]

IDS = (*"aabbccddefghij", "t1/1", "t1/2", "t1/01", "t2/1", "/1", "constructor", "__proto__", "")
TURNS = ("t1", "t1", "t2", None)
SURFACES = ("main", "main", "main", "side")
TEXTS = ("", "x", "Salz & 🧂", "🧂🧂🧂", "два", "line\nline")
WRONG: tuple[Any, ...] = (None, True, 3, 1.5, -1, "x", [], {}, [1], {"a": 1}, [{}], [[]])
GARBAGE = ("{", "[]", "null", "1", '"x"', "[[]]", '{"type":null}', "{}", "[{}]", "nope", "[null]")
PATHS = (
    "props.content",
    "props.content",
    "props.code",
    "props.title",
    "props.rows",
    "props.rows.0",
    "props.rows.0.1",
    "props.rows.00",
    "props.rows.9",
    "props.rows.9999999999",
    "props.rows.x",
    "props.tabs.0.label",
    "props.tabs.00.icon",
    "props.tabs.0",
    "props.tabs",
    "props.children",
    "props.children.0",
    "props.left",
    "props.direction",
    "props.a.b",
    "props._x",
    "props.rows.__proto__",
    "props.constructor",
    "props",
    "props.",
    "title",
    "props." + ".".join("a" * 17),
    "props." + "é" * 64,
    "props." + "é" * 65,
)

LOST = None
"""A link that was lost; the next hello says the place."""


def frames(chance: Random) -> list[str | None]:
    """Gives frames, with `LOST` where the link was."""
    out: list[str | None] = [_text(_session(chance, "new"))]
    for _ in range(chance.randint(5, 60)):
        draw = chance.random()
        if draw < 0.04:
            out += [LOST, _text(_session(chance, chance.choice(["new", "replay", "snapshot"])))]
        elif draw < 0.07:
            out.append(chance.choice(GARBAGE))
        elif draw < 0.17:
            out.append(_text([_message(chance) for _ in range(chance.randint(1, 4))]))
        else:
            out.append(_text(_message(chance)))
    return out


def _text(plain: Any) -> str:
    return json.dumps(plain, ensure_ascii=False)


def _session(chance: Random, resume: str) -> Message:
    seq = chance.randint(0, 9)
    head = {"v": 1, "type": "session", "session_id": "s"}
    return {**head, "epoch": chance.choice(["e", "f"]), "seq": seq, "resume": resume}


def _message(chance: Random) -> Message:
    message: Message = {"v": 1, **chance.choice(_MAKERS)(chance)}
    if message["type"] not in ("hello", "session", "ack"):
        message["session_id"] = "s"
        if chance.random() < 0.7:
            message["seq"] = chance.randint(1, 60)
        turn, surface = chance.choice(TURNS), chance.choice(SURFACES)
        if turn is not None:
            message["turn_id"] = turn
        if surface != "main":
            message["surface"] = surface
        if chance.random() < 0.1:
            message["behind"] = {
                "component": chance.choice(IDS),
                "characters": chance.randint(-1, 9),
            }
    if chance.random() < 0.06:
        _spoil(message, chance)
    return message


def _spoil(message: Message, chance: Random) -> None:
    """Puts something wrong into a message, or takes something out; its session stays."""
    holder: Any = message
    while True:
        names: list[Any] = [name for name in _keys(holder) if name not in ("session_id", "type")]
        if not names:
            return
        name = chance.choice(names)
        if isinstance(holder[name], dict | list) and holder[name] and chance.random() < 0.7:
            holder = holder[name]
            continue
        if chance.random() < 0.3:
            del holder[name]
        else:
            holder[name] = copy.deepcopy(chance.choice(WRONG))
        return


def _keys(holder: Any) -> list[Any]:
    return list(range(len(holder))) if isinstance(holder, list) else list(holder)


def _delta(chance: Random) -> Message:
    payload: Message = {"delta": chance.choice(TEXTS)}
    if chance.random() < 0.3:
        payload["target"] = chance.choice(IDS)
    if chance.random() < 0.1:
        payload["kind"] = "thinking"
    return {"type": "delta", "payload": payload}


def _tool_start(chance: Random) -> Message:
    call = chance.choice(["c1", "c2", ""])
    return {"type": "tool_start", "payload": {"tool": "look", "args": "{}", "call_id": call}}


def _tool_end(chance: Random) -> Message:
    payload: Message = {"tool": chance.choice(["look", "other"]), "ok": chance.random() < 0.5}
    if chance.random() < 0.7:
        payload["call_id"] = chance.choice(["c1", "c2"])
    if not payload["ok"]:
        payload["error"] = "broke"
    return {"type": "tool_end", "payload": payload}


def _render(chance: Random) -> Message:
    components = [_component(chance, 3) for _ in range(chance.randint(0, 3))]
    more = {"replace": True} if chance.random() < 0.1 else {}
    return {"type": "render", "components": components, **more}


def _component(chance: Random, levels: int) -> Message:
    kind, props = chance.choice(
        [
            ("text", {"content": chance.choice(TEXTS)}),
            ("text", {"content": chance.choice([*TEXTS, None, 3])}),
            ("markdown", {"content": "*m*"}),
            ("table", {"headers": ["h"], "rows": [["a", 1], [None]]}),
            ("code-block", {"code": "x", "later": 1}),
            ("confirm", {"title": "Sure?"}),
            ("x-acme-dial", {"content": "42", "__proto__": {"a": 1}}),
            ("constructor", {"content": "odd"}),
            _layout(chance, levels - 1),
            _layout(chance, levels - 1),
        ]
    )
    made: Message = {"id": chance.choice(IDS), "type": kind, "props": props}
    if chance.random() < 0.2:
        made["version"] = chance.choice([1, 2])
    if chance.random() < 0.2:
        made["unknown"] = 1
    for _ in range(chance.choice([*[0] * 9, 1, 2, 15, 16, 17])):
        made = {"id": made["id"], "type": "x-y-z", "props": {}, "fallback": made}
    return made


def _layout(chance: Random, levels: int) -> tuple[str, Message]:
    if levels < 0:
        return "group", {"children": []}

    def child() -> Any:
        return chance.choice(WRONG) if chance.random() < 0.01 else _component(chance, levels)

    kind = chance.choice(["group", "group", "tabs", "split"])
    if kind == "split":
        return kind, {"left": child(), "right": child(), "ratio": "1:2"}
    if kind == "tabs":
        return kind, {"tabs": [{"label": "one", "component": child()} for _ in range(2)]}
    return kind, {"children": [child() for _ in range(chance.randint(0, 2))]}


def _patch(chance: Random) -> Message:
    return {"type": "patch", "ops": [_op(chance) for _ in range(chance.choice([0, 1, 1, 1, 1, 2]))]}


def _op(chance: Random) -> Message:
    kind = chance.choice(["update", "append", "insert", "remove", "replace", "reorder", "turn"])
    op: Message = {"op": kind, "target": chance.choice(IDS)}
    if kind in ("update", "append"):
        op["path"] = chance.choice(PATHS)
        op["value"] = chance.choice([*TEXTS, *WRONG])
        if kind == "append" and chance.random() < 0.5:
            op["offset"] = chance.randint(0, 9)
    if kind in ("insert", "replace"):
        op["component"] = _component(chance, 2)
    if kind in ("insert", "reorder") and chance.random() < 0.6:
        op["after"] = chance.choice([None, *IDS])
    if kind == "insert" and chance.random() < 0.4:
        op["parent"] = chance.choice([None, *IDS])
    return op


def _commit(chance: Random) -> Message:
    final = {"final": True} if chance.random() < 0.2 else {}
    return {"type": "commit", **final, **({"usage": {"tokens": 1}} if final else {})}


def _error(chance: Random) -> Message:
    payload: Message = {"error": "it broke", "code": chance.randint(1, 30)}
    if chance.random() < 0.3:
        payload["id"] = "i1"
    return {"type": "error", "payload": payload}


def _input(chance: Random) -> Message:
    return {"type": "input", "input_type": "text", "data": {"text": chance.choice(TEXTS)}}


def _turn(chance: Random) -> Message:
    status = chance.choice(["queued", "running", "waiting", "completed", "odd"])
    more = {"position": 1} if status == "queued" else {}
    return {"type": "turn", "status": status, **more}


def _other(chance: Random) -> Message:
    features = chance.choice([[], ["resume"]])
    return chance.choice(
        [
            {"type": "ack", "id": "i1"},
            {"type": "hello", "capabilities": {"components": ["text"], "features": features}},
            {"type": "news"},
            _session(chance, chance.choice(["new", "replay", "snapshot"])),
        ]
    )


_MAKERS = (
    *(_delta,) * 6,
    *(_render,) * 6,
    *(_patch,) * 6,
    *(_commit,) * 8,
    _tool_start,
    _tool_end,
    _error,
    _input,
    _turn,
    _other,
)
