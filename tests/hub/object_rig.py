"""A renderer of the object dialect on a hub in the same process; the test plays its user."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from arp.access.principal import Principal
from arp.hub.hub import Hub
from arp.hub.peers.object_peer import ObjectPeer
from arp.protocol.catalog import VERSIONS
from arp.protocol.components import Component
from arp.protocol.connection.agent_connection import ConnectionFailure
from arp.protocol.errors import ArpError
from arp.protocol.json_value import JsonObject
from arp.protocol.limits import Limits
from arp.protocol.messages import InputType
from arp.protocol.objects.connection import ObjectEvent, RefusedMessage
from arp.protocol.objects.messages import (
    CompositorCreateSurfaceRequest,
    DisplayErrorRequest,
    InputAckRequest,
    InputRefuseRequest,
    SessionStateUpdateRequest,
    ShellGetOverlayRequest,
    ShellGetPopupRequest,
    ShellGetToplevelRequest,
    SurfaceCommitRequest,
    SurfaceSetTitleRequest,
    SurfaceTransferRequest,
)
from arp.protocol.objects.renderer import ObjectRendererConnection, Offer, offers
from arp.protocol.objects.wire import ObjectMessage
from tests.hub.rig import WAIT_S, Box


class Display:
    """What somebody would write from the draft: surfaces with components, and no conversation."""

    def __init__(
        self,
        hub: Hub,
        *,
        features: Iterable[str] = ("patch-append", "multi-surface", "overlays"),
        limits: JsonObject | None = None,
        globals: list[Offer] | None = None,
        principal: Principal | None = Principal(),  # noqa: B008
        resumes: tuple[str, str | None] | None = None,
        since: tuple[str, int] | None = None,
        has_conversation: bool = False,
    ) -> None:
        offered = offers(dict(VERSIONS), features, limits, has_conversation=has_conversation)
        made = globals if globals is not None else offered
        self.end = ObjectRendererConnection("json", Limits(), made)
        self.box = Box()
        self.peer = ObjectPeer(hub, self.box, "json", "agent", principal, _check)
        self.displays = True
        """Whether it acknowledges commits at once."""
        self.shown: list[list[str]] = []
        """The ids of the root components of `main`, commit by commit."""
        self.titles: dict[str, str] = {}
        self.names: dict[str, int] = {}
        self.roles: dict[str, str] = {}
        self.answers: list[object] = []
        """What inputs were answered."""
        self.state: Any = None
        self.told: list[DisplayErrorRequest] = []
        self.asked: list[SurfaceTransferRequest] = []
        """What it is to hand over to another agent; it does nothing of the kind."""
        self.finals = 0
        self.most_pending = 0
        self.places: list[int | None] = []
        """The places of commits of `main` in the log."""
        self._resumes = resumes
        self._since = since
        """The epoch and the place up to which it has the session."""
        self._read = 0
        self._came = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Display:
        self.peer.start()
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.wait([self._task])
        if not self._task.cancelled():
            self._task.result()
        self.peer.closed()

    async def _run(self) -> None:
        while True:
            self.box._came.clear()
            frames, self._read = self.box.frames[self._read :], len(self.box.frames)
            for frame in frames:
                for event in self.end.receive(self.came(frame), _now()):
                    self._take(event)
            await self.flush()
            self._came.set()
            if self._read == len(self.box.frames):
                await self.box._came.wait()

    async def flush(self) -> None:
        """Sends what waits."""
        for frame in self.end.data_to_send():
            await self.peer.receive(self.goes(frame))

    def came(self, frame: bytes) -> bytes:
        """Return a frame of the agent side as this renderer gets it."""
        return frame

    def goes(self, frame: bytes) -> bytes:
        """Return a frame of this renderer as the agent side gets it."""
        return frame

    def _take(self, event: ObjectEvent) -> None:
        assert not isinstance(event, RefusedMessage | ConnectionFailure), event
        match event.payload:
            case CompositorCreateSurfaceRequest(new_id, name):
                self.names[name or (str(new_id) if self.names else "main")] = new_id
            case ShellGetToplevelRequest(surface) | ShellGetPopupRequest(surface):
                self._role(surface, event.op)
            case ShellGetOverlayRequest(surface):
                self._role(surface, event.op)
            case SurfaceCommitRequest(final=final, session_seq=place):
                self.finals += final
                self.places.append(place)
                pending = len(self.end.objects.surface(event.object_id).pending)
                self.most_pending = max(self.most_pending, pending)
                if event.object_id == self.names.get("main"):
                    self.shown.append([one.id for one in self.content()])
                if self.displays:
                    self.end.displayed(event.object_id)
            case InputAckRequest() | InputRefuseRequest() as answer:
                self.answers.append(answer)
            case SessionStateUpdateRequest(state):
                self.state = state
            case SurfaceSetTitleRequest(title):
                self.titles[self._name(event.object_id)] = title
            case DisplayErrorRequest() as told:
                self.told.append(told)
            case _:
                pass
        self._take_session(event)

    def _take_session(self, event: ObjectMessage) -> None:
        if isinstance(event.payload, SurfaceTransferRequest):
            self.asked.append(event.payload)
        if event.op == "create" and self._resumes is not None:
            session_id, token = self._resumes
            epoch, place = self._since or (None, 0)
            state = None if epoch is None else {"epoch": epoch}
            self.end.resume(session_id, place, state, token)

    def _role(self, surface: int, op: str) -> None:
        self.roles[self._name(surface)] = op.removeprefix("get_")
        self.end.configure(surface, 80, 24, ["activated"])

    def _name(self, surface: int) -> str:
        return next((name for name, number in self.names.items() if number == surface), "")

    # -- the user ----------------------------------------------------------------------------------

    def content(self, surface: str = "main") -> list[Component]:
        """What a surface shows."""
        try:
            return self.end.content(self.names[surface])
        except (ArpError, KeyError):
            return []

    async def until(self, ready: Callable[[], object]) -> None:
        """Waits until what has come is enough."""
        async with asyncio.timeout(WAIT_S):
            while not ready():
                self._came.clear()
                await self._came.wait()

    async def open(self) -> Display:
        """Waits until `main` is configured."""
        await self.until(lambda: "main" in self.roles)
        return self

    async def use(
        self, input_type: InputType, data: JsonObject, surface: str = "main", **more: Any
    ) -> int:
        """Sends an input; return its serial."""
        serial = self.end.input(self.names[surface], input_type, data, _now(), **more)
        await self.flush()
        return serial

    async def say(self, text: str) -> int:
        """Sends a text."""
        return await self.use("text", {"text": text})

    def texts(self) -> str:
        """The text parts of `main`, joined."""
        found = (one.props.get("content", "") for one in self.content() if "/" in one.id)
        return "".join(found)


def _now() -> float:
    return asyncio.get_running_loop().time()


async def _check(token: str) -> Principal | None:
    return Principal(token) if token == "ada" else None
