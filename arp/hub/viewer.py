"""One renderer on one session: what it takes, how far it is, and whether it keeps up.

Theory of operation. A viewer is *current* (it gets every frame as it leaves), *behind* (its buffer
is full or its commits are unacknowledged: it gets nothing, and only its cursor is kept), *paced*
(as behind, until the pace that it asked for allows more), *joining* (a snapshot or a replay is on
its way) or *returning* (a catch-up is). From behind it becomes current again by one catch-up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from msgspec import Struct

from arp.protocol.codec import Encoding
from arp.protocol.messages import AgentMessage, Presented, RendererInfo, Resume
from arp.session.recorded import Cursor
from arp.view.frames import FrameGroup, encoded
from arp.view.profile import DRAFT, Profile

if TYPE_CHECKING:
    from arp.hub.live import LiveSession

State: TypeAlias = Literal["new", "joining", "current", "behind", "paced", "returning"]

LOW_WATER_BYTES = 32 << 10
"""A renderer that was behind gets its catch-up when less than this waits for it."""


class Outbox(Protocol):
    """Where a transport takes frames. Nothing here waits."""

    def send(self, frames: list[bytes]) -> None:
        """Send frames in order, or keep them until it can."""

    def send_first(self, frame: bytes) -> None:
        """Send a frame before those that wait; of several such only the newest waits."""

    @property
    def buffered(self) -> int:
        """Bytes that wait, without those that the transport has."""

    def waiting(self) -> list[bytes]:
        """Return the frames that these bytes are of; renderers may wait for the very same ones."""

    def close(self, code: int, reason: str) -> None:
        """End the connection, with a WebSocket close code (protocol.md 6)."""


class About(Struct):
    """What a renderer has said of itself."""

    resume: Resume | None = None
    """The place that it had applied when it came."""
    info: RendererInfo = RendererInfo()
    presented: dict[str, Presented] = {}
    """How it has displayed components that are there, where it told (feature `frame-ack`)."""
    session_made: bool = False
    """Its `hello` named no session, and one was made for it."""


class Drained(Protocol):
    """Who wants to know when an outbox has little left."""

    def drained(self) -> None:
        """Is called by the transport when its buffer has become small."""


class Conversation(Protocol):
    """Who is at our end of a connection, as the transport that carries it knows it."""

    @property
    def viewer(self) -> Drained:
        """Whom the outbox tells."""

    def start(self) -> None:
        """Is called once, when frames can be sent."""

    async def receive(self, frame: bytes | str, /) -> None:
        """Take one frame. Never raises for what is in it."""

    def closed(self) -> None:
        """Is called once, when the connection is gone."""


class Viewer:
    """One attached renderer."""

    __slots__ = (
        "cursor",
        "encoding",
        "id",
        "live",
        "made_at",
        "outbox",
        "part",
        "profile",
        "said",
        "said_hello",
        "shared",
        "state",
        "unacknowledged",
    )

    def __init__(self, viewer_id: str, outbox: Outbox, encoding: Encoding) -> None:
        self.id = viewer_id
        self.outbox = outbox
        self.encoding: Encoding = encoding
        self.profile: Profile = DRAFT
        self.live: LiveSession | None = None
        self.made_at: int | None = None
        """The newest fact of the session that was made for it, when it had joined; while there is
        no newer one, nobody has used that session."""
        self.state: State = "new"
        self.cursor: Cursor = Cursor()
        """Where it stands while it is behind."""
        self.part: str | None = None
        """A text part that it knows by id."""
        self.said = About()
        self.said_hello = True
        """False of an event stream without a `hello`: what it shows is assumed then."""
        self.shared: list[bytes] | None = None
        """Frames of a snapshot that wait for it, and may wait for others too."""
        self.unacknowledged: list[int] | None = None
        """Commits that it has not shown yet, if it says so (feature `frame-ack`)."""

    @property
    def resume(self) -> Resume | None:
        """The place that it had applied when it came; `None` once that means nothing any more."""
        return self.said.resume

    @resume.setter
    def resume(self, resume: Resume | None) -> None:
        self.said.resume = resume

    @property
    def group(self) -> FrameGroup:
        """With whom it shares frames."""
        return FrameGroup(self.profile, self.encoding, self.part, self.profile.takes("batch"))

    def tell(self, message: AgentMessage) -> None:
        """Send one message to this renderer alone."""
        self.outbox.send(encoded(message, self.group))

    def drained(self) -> None:
        """Is called by the transport when its buffer has become small."""
        self.shared = None
        if self.state == "behind" and self.live is not None:
            self.live.delivery.drained(self)

    def acknowledge(self, seq: int, presented: Mapping[str, Presented] | None = None) -> None:
        """Record the last commit that the renderer has displayed, and how it did."""
        if self.unacknowledged is None:
            return
        if presented and self.live is not None:
            trees = self.live.session.screen.surfaces.values()
            told = self.said.presented | dict(presented)
            there = set[str]().union(*(told.keys() & tree.nodes.keys() for tree in trees))
            self.said.presented = {name: how for name, how in told.items() if name in there}
        self.unacknowledged = [place for place in self.unacknowledged if place > seq]
        self.drained()

    def count(self, commits: Sequence[int]) -> None:
        """Record commits that are on their way to it."""
        if self.unacknowledged is not None:
            self.unacknowledged.extend(commits)

    def keeps_up(self, high_water_bytes: int, max_pending_commits: int) -> bool:
        """Return whether it can take more now."""
        if self.outbox.buffered > high_water_bytes:
            return False
        return self.unacknowledged is None or len(self.unacknowledged) < max_pending_commits


Action = Callable[[], None]
"""Something to do when facts are durable."""
