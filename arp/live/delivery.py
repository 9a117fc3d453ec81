"""The renderers of one session: who gets what, and who keeps up.

Theory of operation. A viewer is *current* (it gets every frame as it leaves), *behind* (its buffer
is full or its commits are unacknowledged: it gets nothing, and only its cursor is kept), *paced*
(as behind, until the pace that it asked for allows more), *joining* (a snapshot or a replay is on
its way) or *returning* (a catch-up is). From behind it becomes current again by one catch-up.

Renderers of one `FrameGroup` share every frame. One that cannot keep up leaves its group; when it
has drained, or when it comes new, it *joins*: at the moment when the writer gathers, its frames are
made from the screen as it is then, and they leave when the facts of that moment are durable. So no
join can miss or repeat anything.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from arp.live.outbox import FrameOutbox
from arp.live.settings import HubSettings
from arp.protocol.codec import Encoding, encode_shown, recode
from arp.protocol.messages import AgentMessage, Presented, RendererHello, RendererInfo, Resume
from arp.protocol.objects.messages import SurfaceTransferRequest
from arp.session.recorded import Batch, Cursor, TextBatch
from arp.session.session import Session
from arp.view.frames import FrameGroup, Frames, encoded, text_frames
from arp.view.profile import DRAFT, Profile, profile_of
from arp.view.view import View

logger = logging.getLogger(__name__)

State: TypeAlias = Literal["new", "joining", "current", "behind", "paced", "returning"]

TURN_ENDS = frozenset(("turn.completed", "turn.failed"))
"""Types of facts that end a turn."""

COMMITS = frozenset(("artifact.changed", *TURN_ENDS))
"""Types of facts that reach a renderer as a commit."""

_NO_COMMITS: Sequence[int] = ()

HandOver: TypeAlias = Callable[[str, SurfaceTransferRequest], Awaitable[bool]]
"""Asks a renderer to hand a surface (its name) over; returns whether it has, false if that is not
known; raises `TransferDenied` if it does not."""

MOST_PACE_S = 3600.0
"""A renderer that wants its commits still further apart gets one after this."""

_NO_INFO = RendererInfo()


class Viewer:
    """One attached renderer."""

    __slots__ = (
        "_waiter",
        "answered",
        "cursor",
        "delivery",
        "encoding",
        "hand_over",
        "id",
        "info",
        "made_at",
        "on_turn_end",
        "outbox",
        "part",
        "presented",
        "profile",
        "resume",
        "said_hello",
        "session_made",
        "shared",
        "state",
        "unacknowledged",
    )

    def __init__(self, viewer_id: str, outbox: FrameOutbox, encoding: Encoding) -> None:
        self.id = viewer_id
        self.outbox = outbox
        self.encoding: Encoding = encoding
        self.profile: Profile = DRAFT
        self.delivery: SessionDelivery | None = None
        """That of the session that it is on."""
        self.hand_over: HandOver | None = None
        """Asks it to give a surface to another of its agents; `None`: it has no others."""
        self.on_turn_end: Callable[[], None] | None = None
        """Is called when a turn has ended and that is delivered."""
        self.made_at: int | None = None
        """The newest fact of the session that was made for it, when it had joined; while there is
        no newer one, nobody has used that session."""
        self.state: State = "new"
        self.cursor: Cursor = Cursor()
        """Where it stands while it is behind."""
        self.part: str | None = None
        """A text part that it knows by id."""
        self.resume: Resume | None = None
        """The place that it had applied when it came; `None` once that means nothing any more."""
        self.info = _NO_INFO
        """What it has said of itself."""
        self.presented: dict[str, Presented] = {}
        """How it has displayed components that are there, where it told (feature `frame-ack`);
        never changed in place."""
        self.session_made = False
        """Its `hello` named no session, and one was made for it."""
        self.said_hello = True
        """False of an event stream without a `hello`: what it shows is assumed then."""
        self.shared: list[bytes] | None = None
        """Frames of a snapshot that wait for it, and may wait for others too."""
        self.unacknowledged: list[int] | None = None
        """Commits that it has not shown yet, if it says so (feature `frame-ack`)."""
        self.answered = 0
        """The fact of its own last answer: its user knows that this question is closed."""
        self._waiter: asyncio.Future[None] | None = None

    def take_hello(self, hello: RendererHello) -> None:
        """Take what the renderer says of itself."""
        self.profile = profile_of(hello.capabilities, is_assumed=not self.said_hello)
        self.resume, self.info, self.presented = hello.resume, hello.info, {}
        self.answered = 0
        self.session_made = hello.session_id is None
        self.unacknowledged = [] if self.profile.takes("frame-ack") else None

    def change_session(self, said_hello: bool) -> None:
        """Begin on the session that an input names; without a `hello` it is a draft client."""
        self.answered = 0
        if said_hello:  # what that said of the last session means nothing here
            self.resume, self.presented, self.session_made = None, {}, False
        else:
            self.profile = DRAFT

    @property
    def group(self) -> FrameGroup:
        """With whom it shares frames."""
        return FrameGroup(self.profile, self.encoding, self.part, self.profile.takes("batch"))

    def frame(self, message: AgentMessage) -> bytes:
        """Return a message that is too small to be divided for any renderer, as a frame."""
        frame = encode_shown(message)
        return frame if self.encoding == "json" else recode(frame, self.encoding)

    def tell(self, message: AgentMessage) -> None:
        """Send one message to this renderer alone."""
        self.outbox.send(encoded(message, self.group))

    def drained(self) -> None:
        """Is called by the transport when its buffer has become small."""
        self.shared = None
        self._wake()
        if self.state == "behind" and self.delivery is not None:
            self.delivery.drained(self)

    async def until_drained(self) -> None:
        """Wait until little is in the outbox, or until it has left its session."""
        self._wake()
        waiter = self._waiter = asyncio.get_running_loop().create_future()
        await waiter

    def left(self) -> None:
        """Is called when it is on no session any more."""
        self.delivery = self.made_at = None
        self._wake()

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def acknowledge(self, seq: int, presented: Mapping[str, Presented] | None = None) -> None:
        """Record the last commit that the renderer has displayed, and how it did."""
        if self.unacknowledged is None:
            return
        if presented and self.delivery is not None:
            merged = self.presented | dict(presented)
            present = self.delivery.components_of(merged)
            # A component that was removed meanwhile cannot be presented.
            self.presented = {name: how for name, how in merged.items() if name in present}
        self.unacknowledged = [place for place in self.unacknowledged if place > seq]
        self.drained()

    @property
    def shown(self) -> int:
        """The last fact that it shows for certain: drawn where it says so, else sent to it."""
        if self.delivery is None:
            return 0
        is_behind = self.state in ("behind", "paced", "returning")
        sent = self.cursor.seq if is_behind else self.delivery.cursor.seq
        drawn = self.unacknowledged[0] - 1 if self.unacknowledged else sent
        return max(self.answered, min(sent, drawn))

    def count(self, commits: Sequence[int]) -> None:
        """Record commits that are on their way to it."""
        if self.unacknowledged is not None:
            self.unacknowledged.extend(commits)

    def admit(self, commits: Sequence[int], settings: HubSettings) -> bool:
        """Return whether it can take more now; record the commits that go to it then."""
        most = settings.limits.max_pending_commits
        if not self.keeps_up(settings.high_water_bytes, most):
            return False
        # Commits that became durable together may be more than it takes: then it gets them as one.
        if self.unacknowledged is not None and len(self.unacknowledged) + len(commits) > most:
            return False
        self.count(commits)
        return True

    def room(self, max_pending_commits: int) -> int | None:
        """Return how many commits may go to it before it acknowledges one; `None`: any number."""
        if self.unacknowledged is None:
            return None
        return max(0, max_pending_commits - len(self.unacknowledged))

    def keeps_up(self, high_water_bytes: int, max_pending_commits: int) -> bool:
        """Return whether it can take more now."""
        if self.outbox.buffered > high_water_bytes:
            return False
        return self.unacknowledged is None or len(self.unacknowledged) < max_pending_commits


class Join(Struct, frozen=True):
    """A renderer on its way to being current."""

    viewer: Viewer
    frames: list[bytes]
    cursor: Cursor
    """Where it stands with them."""
    shared: Frames | None = None
    """Those among them that other renderers get too."""
    kind: Literal["ready", "replay", "whole"] = "ready"
    """`replay`: what it missed comes from the log, before it is current. `whole`: the frames are a
    snapshot or a catch-up, which end in a commit."""


Replay: TypeAlias = Callable[[Viewer, Resume], None]
"""Sends a renderer what lies behind a cursor, from the log, and makes it current."""


class SessionDelivery:
    """The renderers of one session."""

    __slots__ = (
        "_groups",
        "_mark",
        "_reached",
        "_replay",
        "_session",
        "_settings",
        "_views",
        "joining",
        "session_id",
        "viewers",
    )

    def __init__(
        self, session: Session, settings: HubSettings, mark: Callable[[], None], replay: Replay
    ) -> None:
        self.viewers: dict[str, Viewer] = {}
        self._reached: TextBatch | Cursor = session.cursor
        """What was delivered last."""
        self._replay = replay
        self.session_id = session.head.session_id
        self._session = session
        self._settings = settings
        self._mark = mark
        self._groups: dict[FrameGroup, list[Viewer]] = {}
        self._views: dict[Profile, View] = {}
        """Of the profiles of the renderers that are there."""
        self.joining: list[Viewer] = []
        """Who joins at the next write."""

    # -- coming and going ------------------------------------------------------------------------

    def attach(self, viewer: Viewer) -> None:
        """Let a renderer join at the next write."""
        self.viewers[viewer.id] = viewer
        viewer.delivery = self
        self._view(viewer.profile)  # from here on, since it may get what is committed next
        payload = {"features": sorted(viewer.profile.features), "encoding": viewer.encoding}
        kind = "channel.resumed" if viewer.resume else "channel.connected"
        if self._session.log.sealed is None:
            self._session.record(kind, payload, channel_id=viewer.id)
        viewer.state, viewer.part = "joining", None
        self.rejoin(viewer)

    def detach(self, viewer: Viewer) -> None:
        """Forget a renderer; nothing else changes."""
        viewer.left()
        if self.viewers.pop(viewer.id, None) is None:
            return
        self._leave(viewer)
        viewer.state = "new"
        if not any(other.profile == viewer.profile for other in self.viewers.values()):
            view = self._views.pop(viewer.profile, None)
            if view is not None:
                self._session.watchers.remove(view)
        if self._session.log.sealed is None:
            self._session.record("channel.disconnected", {}, channel_id=viewer.id)
            self._mark()

    def rejoin(self, viewer: Viewer) -> None:
        """Bring a renderer to the newest state at the next write."""
        if viewer not in self.joining:
            self.joining.append(viewer)
        self._mark()

    def drained(self, viewer: Viewer) -> None:
        """Bring a renderer back that was behind, once it keeps up."""
        settings = self._settings
        most = settings.limits.max_pending_commits
        if viewer.state == "behind" and viewer.keeps_up(settings.high_water_bytes, most):
            viewer.state = "returning"
            self.rejoin(viewer)

    def resync(self, viewer: Viewer) -> None:
        """Send a renderer a snapshot instead of what it would have got."""
        self._leave(viewer)
        viewer.state, viewer.resume = "joining", None
        self.rejoin(viewer)

    def resync_all(self) -> None:
        """Send a snapshot to every renderer that can take one: what shows is another branch."""
        for viewer in self.viewers.values():
            if viewer.profile.said_hello:
                self.resync(viewer)

    def join_now(self, viewer: Viewer) -> None:
        """Make a renderer current that stands exactly at `cursor`."""
        viewer.state = "current"
        self._groups.setdefault(viewer.group, []).append(viewer)

    def components_of(self, names: Mapping[str, object]) -> set[str]:
        """Return those of the names that are components on any surface now."""
        trees = self._session.screen.surfaces.values()
        return set[str]().union(*(names.keys() & tree.nodes.keys() for tree in trees))

    def _view(self, profile: Profile) -> View:
        """Return what renderers of a profile get of this session."""
        view = self._views.get(profile)
        if view is None:
            view = self._views[profile] = View(profile, self._session.screen)
            self._session.watchers.append(view)
        return view

    def _leave(self, viewer: Viewer) -> None:
        if viewer in self.joining:
            self.joining.remove(viewer)
        group = self._groups.get(viewer.group)
        if group is not None and viewer in group:
            group.remove(viewer)
            if not group:
                del self._groups[viewer.group]

    # -- what has become durable -----------------------------------------------------------------

    @property
    def cursor(self) -> Cursor:
        """Up to where facts are durable and delivered."""
        reached = self._reached
        return reached.cursor if isinstance(reached, TextBatch) else reached

    def deliver(self, batch: TextBatch | Batch) -> None:
        """Send what is durable now to all who are current."""
        for group, viewers in tuple(self._groups.items()):
            self._deliver_to(group, viewers, batch)
        if isinstance(batch, TextBatch):
            self._reached = batch
            return
        self._reached = batch.cursor
        if any(one.type in TURN_ENDS for one in batch.recorded):
            for viewer in list(self.viewers.values()):
                if viewer.on_turn_end is not None:
                    viewer.on_turn_end()

    def _deliver_to(
        self, group: FrameGroup, viewers: list[Viewer], batch: TextBatch | Batch
    ) -> None:
        frames: list[bytes] | None
        if isinstance(batch, TextBatch):
            frames, commits = text_frames(batch.text, group), _NO_COMMITS
            if len(viewers) > 1:
                frames = Frames(frames)
        else:
            frames = self._view(group.profile).batch_frames(batch, group)
            commits = [one.sequence for one in batch.recorded if one.type in COMMITS]
        if frames is None:
            for viewer in list(viewers):
                self.resync(viewer)
            return
        if frames:
            high_water = self._settings.high_water_bytes
            lagging: list[Viewer] = []
            for viewer in viewers:
                outbox = viewer.outbox
                is_ready = outbox.buffered <= high_water and viewer.unacknowledged is None
                if is_ready or viewer.admit(commits, self._settings):
                    outbox.send(frames)
                else:
                    lagging.append(viewer)
            for viewer in lagging:
                self._fall_behind(viewer, self.cursor)
                self.drained(viewer)  # one that still has room for a commit gets all in one
            if commits and group.profile.limits.max_commits_per_s is not None:
                for viewer in list(viewers):
                    self._pace(viewer, batch.cursor)
        if group.part is not None and group.part != batch.cursor.part:
            self._rename(viewers)

    def _rename(self, viewers: list[Viewer]) -> None:
        """Take renderers out of a group that knew a text part by id: it is no longer open."""
        for viewer in list(viewers):
            self._leave(viewer)
            viewer.part = None
            self.join_now(viewer)

    def _pace(self, viewer: Viewer, cursor: Cursor) -> None:
        """Send nothing for a while to a renderer that asked for a slower pace."""
        rate = viewer.profile.limits.max_commits_per_s
        if rate is None:
            return
        self._fall_behind(viewer, cursor)
        viewer.state = "paced"
        wait_s = min(1 / rate, MOST_PACE_S)
        asyncio.get_running_loop().call_later(wait_s, self._pace_is_over, viewer)

    def _pace_is_over(self, viewer: Viewer) -> None:
        if viewer.state == "paced" and self.viewers.get(viewer.id) is viewer:
            viewer.state = "behind"
            self.drained(viewer)

    def _fall_behind(self, viewer: Viewer, cursor: Cursor) -> None:
        self._leave(viewer)
        viewer.state, viewer.cursor = "behind", cursor
        logger.debug("renderer %s is behind at %d", viewer.id, cursor.seq)

    # -- joining ---------------------------------------------------------------------------------

    def gather(self) -> list[Join]:
        """Prepare those who join, from the screen as it is now."""
        joining, self.joining = self.joining, []
        return [self._join(viewer) for viewer in joining]

    def finish(self, join: Join) -> None:
        """Let a renderer join: what its frames show is durable now."""
        viewer = join.viewer
        if viewer.id not in self.viewers or viewer in self.joining:
            return  # it left, or left and came again: then a newer join is on its way
        if join.frames:
            viewer.outbox.send(join.frames)
            viewer.shared = join.shared if viewer.outbox.buffered else None
        if join.kind == "replay" and viewer.resume is not None:
            self._replay(viewer, viewer.resume)
            return
        self.join_now(viewer)
        if join.kind == "whole":
            viewer.count([join.cursor.seq])
            self._pace(viewer, join.cursor)

    def _join(self, viewer: Viewer) -> Join:
        session, view = self._session, self._view(viewer.profile)
        if viewer.state == "returning":
            return self._catch_up(viewer)
        if not viewer.profile.said_hello:
            return Join(viewer, view.held_up(session, viewer.group), session.cursor)
        resume, name = viewer.resume, session.name
        if resume is not None and resume.epoch == name.epoch and resume.seq <= name.seq:
            is_told = resume.seq >= session.branched_at
            if is_told and name.seq - resume.seq <= self._settings.max_replay:
                frames = view.ready(session, viewer.group, "replay")
                return Join(viewer, frames, session.cursor, kind="replay")
        elif not session.screen.count and len(session.screen.surfaces) == 1 and resume is None:
            return Join(viewer, view.ready(session, viewer.group, "new"), session.cursor)
        return self._snapshot(viewer)

    def _catch_up(self, viewer: Viewer) -> Join:
        cursor = self._session.cursor
        if viewer.cursor.seq == cursor.seq:
            return Join(viewer, [], cursor)
        view = self._view(viewer.profile)
        frames = view.catch_up(self._session, viewer.group, viewer.cursor)
        if frames is None:
            return self._snapshot(viewer)
        if cursor.part != viewer.cursor.part:
            viewer.part = cursor.part
        return Join(viewer, frames, cursor, kind="whole")

    def _snapshot(self, viewer: Viewer) -> Join:
        cursor = self._session.cursor
        viewer.part = None
        frames, shared = self._view(viewer.profile).snapshot(self._session, viewer.group)
        viewer.part = cursor.part
        return Join(viewer, frames, cursor, shared, "whole")
