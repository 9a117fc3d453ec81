"""A turn that writes down what an agent does with it, and gives the answers that a test prepared.

It has the methods of `arp.Turn` that the examples use, so that a handler needs no engine.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from arp import Component, Turn
from arp.protocol.blob_path import blob_path
from arp.protocol.messages import FileRef


@dataclass
class ToolRun:
    """One `async with turn.tool(…)`."""

    name: str
    args: Any
    outcome: str = "running"
    """Then `ok`, or the name of what was raised."""
    value: Any = None

    def progress(self, text: str) -> None:
        """As `ToolCall.progress`."""

    def result(self, value: Any) -> None:
        """As `ToolCall.result`."""
        self.value = value


@dataclass(frozen=True)
class UserInput:
    """As `turn.input`."""

    input_type: str
    data: dict[str, Any]
    source_component: str | None = None
    surface: str = "main"


@dataclass(frozen=True)
class UploadedFile:
    """As an entry of `turn.files`."""

    name: str
    content: bytes


@dataclass
class Recorder:
    """What the user says, and what came of it."""

    text: str = ""
    files: Sequence[UploadedFile] = ()
    selected: str | None = None
    answers: Sequence[Any] = ()
    cache: dict[str, Any] = field(default_factory=dict)
    earlier: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.input = UserInput("text", {"text": self.text})
        if self.selected is not None:
            self.input = UserInput("selection", {"selected": [self.selected]})
        self.pieces: list[str] = []
        self.shown: list[Component] = []
        self.asked: list[Component] = []
        self.tools: list[ToolRun] = []
        self.patches: list[tuple[str, Any]] = []
        self.appended: list[tuple[str, Any]] = []
        self.tool_started = asyncio.Event()
        self._answers = deque(self.answers)

    @property
    def turn(self) -> Turn:
        """Itself, as what a handler takes."""
        return cast(Turn, self)

    @property
    def said(self) -> str:
        """All text."""
        return "".join(self.pieces)

    def only(self, type_name: str) -> dict[str, Any]:
        """The props of the one component of this type that was shown."""
        (component,) = [each for each in self.shown if each.type == type_name]
        return component.props

    def types(self) -> list[str]:
        """The types of what was shown, in order."""
        return [component.type for component in self.shown]

    async def say(self, text: str) -> None:
        """As `Turn.say`."""
        self.pieces.append(text)

    def show(self, *components: Component, surface: str = "main", tool: str | None = None) -> str:
        """As `Turn.show`."""
        self.shown += components
        return f"c{len(self.shown)}"

    async def save_file(self, name: str, content: Path) -> FileRef:
        """As `Turn.save_file`; it keeps nothing."""
        data = await asyncio.to_thread(content.read_bytes)
        digest = hashlib.sha256(data).hexdigest()
        return FileRef(digest, name, len(data), "text/csv", digest)

    def file_url(self, ref: FileRef) -> str:
        """As `Turn.file_url`."""
        return blob_path("s", ref.sha256, ref.name)

    def patch(self, target: str, path: str, value: Any) -> None:
        """As `Turn.patch`; only what is patched is kept."""
        assert target == f"c{len(self.shown)}", "patches something that is not the last shown"
        self.patches.append((path, value))

    def append(self, target: str, path: str, value: Any) -> None:
        """As `Turn.append`; only what is appended is kept."""
        assert target == f"c{len(self.shown)}", "extends something that is not the last shown"
        self.appended.append((path, value))

    def history(self, limit: int = 20) -> list[tuple[str, str]]:
        """As `Turn.history`."""
        return self.earlier[-limit:]

    async def read_file(self, ref: UploadedFile) -> bytes:
        """As `Turn.read_file`."""
        return ref.content

    @asynccontextmanager
    async def tool(self, name: str, args: Any = None) -> AsyncIterator[ToolRun]:
        """As `Turn.tool`."""
        run = ToolRun(name, args)
        self.tools.append(run)
        self.tool_started.set()
        try:
            yield run
        except BaseException as error:
            run.outcome = type(error).__name__
            raise
        run.outcome = "ok"

    async def ask(self, component: Component) -> Any:
        """As `Turn.ask`; gives the next prepared answer."""
        self.asked.append(component)
        return self._answers.popleft()

    async def confirm(self, title: str, **props: Any) -> bool:
        """As `Turn.confirm`."""
        return bool(await self.ask(Component("", "confirm", {"title": title, **props})))
