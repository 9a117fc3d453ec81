"""Every call that an author can make during a turn, found by looking, with arguments that do."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, NamedTuple

import arp.record
from arp import Turn, ui
from arp.ledger.payload_fields import Delivery
from arp.protocol.messages import Command, FileRef
from arp.record.processes import RecordedProcess
from arp.record.recorder import Recorder
from arp.record.work import (
    Hook,
    ModelRequest,
    RecordedAttempt,
    RecordedCompaction,
    RecordedJob,
    RecordedPermission,
    RecordedSubagent,
    RecordedTask,
)
from arp.turn.tool import ToolCall

SHA256 = "0" * 64

MAKERS: Final[dict[type, Callable[[Turn], Any]]] = {
    Turn: lambda turn: turn,
    Recorder: lambda turn: turn.record,
    RecordedTask: lambda turn: turn.record.task("x"),
    RecordedAttempt: lambda turn: turn.record.task("x").attempt(),
    RecordedSubagent: lambda turn: turn.record.subagent(),
    RecordedJob: lambda turn: turn.record.job(),
    RecordedProcess: lambda turn: turn.record.process("ls"),
    ModelRequest: lambda turn: turn.record.model("m"),
    RecordedCompaction: lambda turn: turn.record.compaction(),
    RecordedPermission: lambda turn: turn.record.permission("x"),
    Hook: lambda turn: turn.record.hook("x"),
}
"""What an author has in hand, besides a `ToolCall`."""

FOR_THE_HUB: Final = {
    (RecordedTask, "create"),
}
"""Methods that no author calls."""

INSIDE: Final = {"Entity", "FactScope", "Outputs", "Work"}
"""Classes of the room that no author has in hand."""

SAMPLES: Final[dict[str, Any]] = {
    "after": None,
    "amount": 0.5,
    "args": {"a": 1},
    "artifact_id": "a",
    "attempts": 1,
    "candidates": ["m"],
    "command": ["ls"],
    "commands": [Command("x")],
    "component": ui.text("x"),
    "components": ui.text("x"),
    "content": b"x",
    "currency": "EUR",
    "data": "x",
    "decision": "allow",
    "delivery": Delivery("pending"),
    "done": 1,
    "exit_code": 0,
    "fraction": 0.5,
    "from_sequence": 1,
    "ids": "x",
    "input_tokens": 1,
    "kept": 1,
    "kind": "rule",
    "limit": 1,
    "mime": "text/plain",
    "output_tokens": 1,
    "payload": {"tokens": 1},
    "path": "props.content",
    "pid": 1,
    "position": 1,
    "resets_at": "2026-01-02T03:04:05Z",
    "props": "x",
    "ref": FileRef("i", "a.txt", 1, "text/plain", SHA256),
    "remaining": 0.5,
    "sha256": SHA256,
    "size": 1,
    "stream": "stdout",
    "target": "there",
    "through_sequence": 1,
    "to_sequence": 1,
    "total": 1,
    "type_name": "context.resolved",
    "used": {"a": 1},
    "value": "x",
}
"""By the name of a parameter; where there is none, by its annotation."""

OF_CALLS: Final[dict[tuple[str, str], Any]] = {
    ("Recorder.file", "kept"): None,
    ("Permission.unanswered", "decision"): "cancelled",
    ("Recorder.within", "ids"): "x",
    ("Turn.ask", "asked"): ui.confirm("x"),
    ("Turn.ask", "options"): None,
    ("Turn.question", "asked"): ui.confirm("x"),
    ("Turn.question", "options"): None,
    ("RecordedPermission.refused", "files"): [],
    ("Turn.confirm", "more"): None,
    ("ToolCall.ask", "component"): ui.confirm("x"),
    ("RecordedPermission.refused", "digest"): SHA256,
    ("ToolCall.approve", "options"): None,
    ("ToolCall.ask_permission", "options"): None,
}
"""Where the name means something else."""

KEYWORDS: Final = {
    "Turn.ask": "name",
    "Turn.question": "name",
    "Turn.confirm": "confirm_label",
    "ToolCall.approve": "message",
    "ToolCall.ask_permission": "message",
    "Recorder.within": "task_id",
    "Recorder.__call__": "task_id",
    **{f"{of.__name__}.record": "evidence_id" for of in MAKERS if of is not Turn},
}
"""Under which name something is given to `**`; another call takes any."""


class Call(NamedTuple):
    """A method of something that an author has in hand."""

    of: type
    name: str

    @property
    def told(self) -> str:
        """How tests name it."""
        return f"{self.of.__name__}.{self.name}"

    @property
    def parameters(self) -> dict[str, inspect.Parameter]:
        """Return what it takes."""
        signature = inspect.signature(getattr(self.of, self.name))
        return {name: one for name, one in signature.parameters.items() if name != "self"}

    def sample(self, name: str) -> Any:
        """Return an argument that it takes."""
        if (self.told, name) in OF_CALLS:
            return OF_CALLS[self.told, name]
        if name in SAMPLES:
            return SAMPLES[name]
        kind = str(self.parameters[name].annotation)
        plain = {"str": "x", "int": 1, "float": 0.5, "bool": True, "Json": "x"}
        return plain.get(kind.partition(" ")[0], ["x"] if "Sequence" in kind else "x")

    def arguments(self, given: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return what to call it with: what is given, and samples for what it needs besides."""
        args: list[Any] = []
        named: dict[str, Any] = {}
        for name, one in self.parameters.items():
            value = given[name] if name in given else self.sample(name)
            if one.kind is one.VAR_POSITIONAL:
                args.append(value)
            elif one.kind is one.VAR_KEYWORD and name in given:
                named[KEYWORDS.get(self.told, "extra")] = value
            elif one.kind is one.KEYWORD_ONLY and (name in given or one.default is one.empty):
                named[name] = value
            elif one.kind is one.POSITIONAL_OR_KEYWORD:
                if one.default is one.empty:
                    args.append(value)
                elif name in given:
                    named[name] = value
        return args, named


def calls() -> list[Call]:
    """Gives every call of an author; a class that nobody thought of fails the test that asks."""
    return [
        Call(of, name)
        for of in (*MAKERS, ToolCall)
        for name, member in inspect.getmembers(of)
        if (not name.startswith("_") or name == "__call__")
        and inspect.isfunction(member)
        and (of, name) not in FOR_THE_HUB
    ]


def classes_with_methods() -> set[type]:
    """Return the classes of `arp.record` that an author may get in hand."""
    found: set[type] = set()
    for module in pkgutil.iter_modules(arp.record.__path__, "arp.record."):
        loaded = importlib.import_module(module.name)
        for name, of in inspect.getmembers(loaded, inspect.isclass):
            members = vars(of).items()
            methods = [one for one, member in members if one[0] != "_" and callable(member)]
            if of.__module__ == module.name and methods and name not in INSIDE:
                found.add(of)
    return found


@asynccontextmanager
async def holding(turn: Turn, of: type) -> AsyncIterator[Any]:
    """Return something that the author can call."""
    if of is ToolCall:
        async with turn.tool("x") as tool:
            yield tool
    else:
        yield MAKERS[of](turn)
