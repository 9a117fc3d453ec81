"""`TurnPlace`: a turn of a session as the workplace of a task.

Each call of the ten tools is shown as a tool call of the turn. A question becomes a permission
request of the turn, which every screen, the terminal and the control plane list and can answer.
Processes are recorded as facts.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Unpack

from arp.protocol.components import Component
from arp.protocol.json_value import Json, JsonObject
from arp.tools.build.workplace import ProcessRun, WorkCall
from arp.tools.errors import ToolAgentError
from arp.turn.approval.approval import Approval, PermissionOptions
from arp.turn.tool import ToolCall, ToolFailed
from arp.turn.turn import Turn

MAX_CODE = 20_000
"""Maximum number of characters of a written file that are shown."""
LANGUAGES = {
    ".py": "python", ".toml": "toml", ".json": "json", ".js": "javascript", ".ts": "typescript",
    ".sh": "bash", ".html": "html", ".css": "css", ".md": "markdown", ".yaml": "yaml",
    ".yml": "yaml",
}  # fmt: skip
"""Language of a file by its extension."""


class TurnPlace:
    """Turn as a workplace.

    Args:
        turn: Turn that shows the tools, questions and facts of the task.
    """

    def __init__(self, turn: Turn) -> None:
        self._turn = turn

    @property
    def session_id(self) -> str:
        """Id of the session of the turn."""
        return self._turn.session_id

    @property
    def turn_id(self) -> str:
        """Id of the turn."""
        return self._turn.id

    async def say(self, text: str) -> None:
        """Add text to the turn's output."""
        await self._turn.say(text)

    def think(self, text: str) -> None:
        """Add text to the turn's reasoning."""
        self._turn.think(text)

    def cost(self, model: str, amount_usd: float) -> None:
        """Record a cost, and add it to the usage of the turn."""
        cost = {"amount": amount_usd, "currency": "USD"}
        self._turn.record("cost.recorded", {"model": model or "coding agent", **cost})
        self._turn.usage(cost_usd=amount_usd)

    @asynccontextmanager
    async def call(self, name: str, args: JsonObject) -> AsyncIterator[WorkCall]:
        """Show a tool call of the turn; the content of a written file is shown as code."""
        try:
            async with self._turn.tool(name, args) as shown:
                if name == "write_file":
                    shown.show(_file_preview(args))
                try:
                    yield TurnCall(shown)
                except ToolAgentError as failed:
                    # A turn shows the message of a `ToolFailed`, but only the class of this error.
                    raise ToolFailed(failed.message) from failed
        except ToolFailed as failed:
            if isinstance(failed.__cause__, ToolAgentError):
                raise failed.__cause__ from None
            raise


class TurnCall:
    """Tool call of a turn, as a call of the task."""

    def __init__(self, call: ToolCall) -> None:
        self._call = call

    def progress(self, text: str) -> None:
        """Show the progress of the tool call."""
        self._call.progress(text)

    def result(self, value: Json) -> None:
        """Show the result of the tool call."""
        self._call.result(value)

    async def ran(self, run: ProcessRun) -> None:
        """Record a process with its output and its sandbox."""
        record = self._call.record
        if run.sandbox:
            record("sandbox.applied", {"sandbox": run.sandbox})
        process = record.process(run.command, cwd=run.cwd)
        if run.stdout:
            await process.output(run.stdout)
        if run.stderr:
            await process.output(run.stderr, "stderr")
        if run.exit_code:
            process.failed(f"exit code {run.exit_code}", exit_code=run.exit_code)
        else:
            process.completed(0)

    async def ask_permission(
        self, title: str, *, rule: str, input: JsonObject, **options: Unpack[PermissionOptions]
    ) -> Approval:
        """Ask for permission in the turn.

        Cancel: Safe; the question is withdrawn.
        """
        # A grant that the session remembers would count for other tasks too, so the task remembers
        # its grants itself (`Approvals`).
        asked: PermissionOptions = {**options, "keeps_grant": False}
        asked["confirm_label"], asked["deny_label"] = "Allow", "Deny"
        return await self._call.ask_permission(title, rule=rule, input=input, **asked)


def _file_preview(args: JsonObject) -> list[Component]:
    """Return the component for a written file; empty if the call writes no file."""
    path, content = args.get("path"), args.get("content")
    if not isinstance(path, str) or not isinstance(content, str) or not content.strip():
        return []
    name = path.rsplit("/", 1)[-1]
    language = LANGUAGES.get(f".{name.rsplit('.', 1)[-1]}" if "." in name else "", "text")
    code = content[:MAX_CODE]
    if len(content) > MAX_CODE:
        code += f"\n… {len(content) - MAX_CODE} more characters"
    return [Component("", "code-block", {"title": name, "language": language, "code": code})]
