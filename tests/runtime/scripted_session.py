"""A runtime whose turns are written out in a test: what comes, in which order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar, Literal

from arp.runtime.contract import types as ari
from arp.runtime.contract.driven import DrivenRuntime
from arp.runtime.contract.errors import NotFound
from arp.runtime.contract.feed import PendingPermission, SessionFeed


class ScriptedSession:
    """A native session: a message is given to a function that feeds the feed."""

    def __init__(self, session_id: str, feed: SessionFeed, script: Script) -> None:
        self.session_id = session_id
        self.model, self.mode, self.provider = "model-1", "", ""
        self.feed = feed
        self.script = script
        self.told: list[tuple[object, ari.PermissionResponse]] = []
        self.cancelled = 0
        self.stops_when_told = True
        self.is_open = True
        self.ends: list[str] = []

    async def send(self, request: ari.SendMessageRequest) -> None:
        self.script(request.message.content, self.feed)

    async def respond(self, pending: PendingPermission, response: ari.PermissionResponse) -> None:
        self.told.append((pending.native, response))

    async def cancel(self, open_requests: Sequence[PendingPermission]) -> None:
        self.cancelled += 1
        if self.stops_when_told:
            self.feed.result("whatever")

    async def aclose(self) -> None:
        self.is_open = False
        self.ends.append("aclose")

    async def abandon(self) -> None:
        self.is_open = False
        self.ends.append("abandon")


Script = Callable[[str, SessionFeed], None]


class ScriptedRuntime(DrivenRuntime):
    """Runs a script for each message; keeps the ids of sessions that had a turn."""

    name = "scripted"
    permission: ClassVar[Literal["enforced", "advisory", "none"]] = "enforced"
    takes: ClassVar[frozenset[str]] = frozenset({"session_id", "model"})

    def __init__(self, script: Script, cwd: Path) -> None:
        super().__init__(cwd=cwd)
        self.script = script
        self.natives: dict[str, ScriptedSession] = {}
        self.stored: set[str] = set()

    async def _create(
        self, request: ari.CreateSessionRequest, feed: SessionFeed
    ) -> ScriptedSession:
        session_id = request.session_id or self.new_id("s")
        self.natives[session_id] = ScriptedSession(session_id, feed, self.script)
        return self.natives[session_id]

    async def _resume(
        self, request: ari.ResumeSessionRequest, feed: SessionFeed
    ) -> ScriptedSession:
        if request.session_id not in self.stored:
            raise NotFound(f"there is no session {request.session_id}")
        created = ari.CreateSessionRequest(session_id=request.session_id)
        return await self._create(created, feed)

    async def _stored(self, cwd: str) -> Sequence[ari.RuntimeSession]:
        return [
            ari.RuntimeSession(session_id, ari.SessionState.CLOSED)
            for session_id in sorted(self.stored)
        ]

    async def _forget(self, session_id: str) -> None:
        self.stored.discard(session_id)
