"""Delivery to the renderers of one session: who gets which frames, and who is lagging.

Theory of operation. Each viewer is in one state:

- `new`: it is not attached.
- `current`: it gets every frame as soon as the frame is durable.
- `behind` (lagging): its buffer is full or its commits are unacknowledged. It gets nothing; only
  its cursor is kept. One catch-up makes it current again.
- `paced`: as `behind`, until the rate that it asked for allows the next commit.
- `joining`: a snapshot or a replay is being prepared for it.
- `returning`: a catch-up is being prepared for it.

Renderers of one `FrameGroup` share every frame; a lagging renderer leaves its group. Joining has
two phases. When the writer collects a batch, `gather` makes the frames of joining renderers from
the current screen. When that batch is durable, `finish` sends them. So a joining renderer misses
and repeats nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from arp.live.outbox import FrameOutbox
from arp.live.settings import HubSettings
from arp.protocol.codec import Encoding
from arp.protocol.messages import AgentMessage, Presented, RendererHello, RendererInfo, Resume
from arp.protocol.objects.messages import SurfaceTransferRequest
from arp.session.recording.recorded import Batch, Cursor, TextBatch
from arp.session.session import Session
from arp.view.frames import FrameGroup, Frames, encoded, text_frames
from arp.view.profile import DRAFT, Profile, profile_of
from arp.view.view import View

logger = logging.getLogger(__name__)

State: TypeAlias = Literal["new", "joining", "current", "behind", "paced", "returning"]

TURN_ENDS = frozenset(("turn.completed", "turn.failed"))
"""Fact types that end a turn."""

COMMITS = frozenset(("artifact.changed", *TURN_ENDS))
"""Fact types that reach a renderer as a commit."""

_NO_SEQUENCES: Sequence[int] = ()

HandOver: TypeAlias = Callable[[str, SurfaceTransferRequest], Awaitable[bool]]
"""Asks a renderer to move a surface, by name, to another agent.

Returns true when that is done, false if the outcome is unknown; raises `TransferDenied` if the
renderer refuses."""

MOST_PACE_S = 3600.0
"""Longest pause between commits, in seconds; a renderer that asks for a longer one gets this."""

_NO_INFO = RendererInfo()


class Viewer:
    """An attached renderer."""

    __slots__ = (
        "_waiter",
        "answered",
        "cursor",
        "delivery",
        "encoding",
        "id",
        "info",
        "made_at",
        "on_turn_end",
        "outbox",
        "part",
        "presented",
        "profile",
        "request_transfer",
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
        """Delivery of the session that it is attached to."""
        self.request_transfer: HandOver | None = None
        """Asks it to move a surface to another of its agents; `None` if it has no others."""
        self.on_turn_end: Callable[[], None] | None = None
        """Called after the end of a turn is delivered."""
        self.made_at: int | None = None
        """Sequence number of the newest fact when it joined a session that was created for it.

        While there is no newer fact, the session is unused. `None` if the session was not created
        for it."""
        self.state: State = "new"
        self.cursor: Cursor = Cursor()
        """Position up to which it got everything; valid only while it gets no frames."""
        self.part: str | None = None
        """Id of the open text part, if a snapshot or a catch-up contained it: the deltas for this
        renderer then name the part. `None` if it knows only "the open part"."""
        self.resume: Resume | None = None
        """Position that its `hello` named; `None` once that is no longer usable."""
        self.info = _NO_INFO
        """Description of the renderer, from its `hello` and resizes."""
        self.presented: dict[str, Presented] = {}
        """How it presented the components that exist, as far as it reported that.

        Feature `frame-ack`; replaced, never changed in place."""
        self.session_made = False
        """Whether its `hello` named no session, so that one was created for it."""
        self.said_hello = True
        """False for an event stream that was opened without a `hello`: the server assumes one.

        `profile.said_hello` is true even then; it is false only for a client of the draft."""
        self.shared: list[bytes] | None = None
        """Frames of a snapshot that it still has to send; other renderers may share them."""
        self.unacknowledged: list[int] | None = None
        """Commits that it has not displayed yet; `None` without the feature `frame-ack`."""
        self.answered = 0
        """Sequence number of its own last answer. Its user knows that this question is closed."""
        self._waiter: asyncio.Future[None] | None = None

    def take_hello(self, hello: RendererHello) -> None:
        """Apply the `hello` of the renderer."""
        self.profile = profile_of(hello.capabilities, is_assumed=not self.said_hello)
        self.resume, self.info, self.presented = hello.resume, hello.info, {}
        self.answered = 0
        self.session_made = hello.session_id is None
        self.unacknowledged = [] if self.profile.takes("frame-ack") else None

    def change_session(self, said_hello: bool) -> None:
        """Prepare for the session that an input names.

        A renderer that has sent no `hello` is treated as a client of the draft.
        """
        self.answered = 0
        if said_hello:
            # The rest of that `hello` described the previous session.
            self.resume, self.presented, self.session_made = None, {}, False
        else:
            self.profile = DRAFT

    @property
    def group(self) -> FrameGroup:
        """Group of renderers that it shares frames with."""
        return FrameGroup(self.profile, self.encoding, self.part, self.profile.takes("batch"))

    def tell(self, message: AgentMessage) -> None:
        """Send a message to this renderer only."""
        self.outbox.send(encoded(message, self.group))

    def drained(self) -> None:
        """Continue delivery; the transport calls this when its buffer has become small."""
        self.shared = None
        self._wake()
        if self.state == "behind" and self.delivery is not None:
            self.delivery.drained(self)

    async def until_drained(self) -> None:
        """Wait until the outbox is nearly empty, or until the renderer left its session."""
        self._wake()
        waiter = self._waiter = asyncio.get_running_loop().create_future()
        await waiter

    def left(self) -> None:
        """Detach from the session and wake the task that waits in `until_drained`."""
        self.delivery = self.made_at = None
        self._wake()

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def acknowledge(self, seq: int, presented: Mapping[str, Presented] | None = None) -> None:
        """Record the last commit that the renderer displayed, and how it presented components."""
        if self.unacknowledged is None:
            return
        if presented and self.delivery is not None:
            merged = self.presented | dict(presented)
            present = self.delivery.components_of(merged)
            # A component that was removed meanwhile cannot be presented.
            self.presented = {name: how for name, how in merged.items() if name in present}
        self.unacknowledged = [sequence for sequence in self.unacknowledged if sequence > seq]
        self.drained()

    @property
    def shown(self) -> int:
        """Sequence number of the last fact that it shows for certain.

        That is the last acknowledged one if it acknowledges commits, else the last one sent, but
        never less than its own last answer.
        """
        if self.delivery is None:
            return 0
        is_behind = self.state in ("behind", "paced", "returning")
        sent = self.cursor.seq if is_behind else self.delivery.cursor.seq
        drawn = self.unacknowledged[0] - 1 if self.unacknowledged else sent
        return max(self.answered, min(sent, drawn))

    def count(self, commits: Sequence[int]) -> None:
        """Record commits that are on their way to the renderer."""
        if self.unacknowledged is not None:
            self.unacknowledged.extend(commits)

    def admit(self, commits: Sequence[int], settings: HubSettings) -> bool:
        """Return whether commits may be sent now; if so, record them as on their way."""
        most = settings.limits.max_pending_commits
        if not self.keeps_up(settings.high_water_bytes, most):
            return False
        # One write may hold more commits than the renderer accepts at once. It then gets them as
        # one catch-up, which is one commit.
        if self.unacknowledged is not None and len(self.unacknowledged) + len(commits) > most:
            return False
        self.count(commits)
        return True

    def room(self, max_pending_commits: int) -> int | None:
        """Return how many commits may be sent before an acknowledgement; `None` is no limit."""
        if self.unacknowledged is None:
            return None
        return max(0, max_pending_commits - len(self.unacknowledged))

    def keeps_up(self, high_water_bytes: int, max_pending_commits: int) -> bool:
        """Return whether its buffer and its unacknowledged commits are below the limits."""
        if self.outbox.buffered > high_water_bytes:
            return False
        return self.unacknowledged is None or len(self.unacknowledged) < max_pending_commits


class Join(Struct, frozen=True):
    """A renderer that joins, with the frames that make it current."""

    viewer: Viewer
    frames: list[bytes]
    cursor: Cursor
    """Its cursor after these frames."""
    shared: Frames | None = None
    """The part of `frames` that other renderers get too."""
    kind: Literal["ready", "replay", "whole"] = "ready"
    """How the renderer becomes current.

    `replay`: messages from the log have to follow the frames. `whole`: the frames are a snapshot
    or a catch-up, which ends in a commit. `ready`: neither."""


Replay: TypeAlias = Callable[[Viewer, Resume], None]
"""Sends a renderer the messages after its position, from the log, and makes it current."""


class SessionDelivery:
    """The renderers of one session."""

    __slots__ = (
        "_delivered",
        "_groups",
        "_mark",
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
        self._delivered: TextBatch | Cursor = session.cursor
        """Batch or cursor that was delivered last."""
        self._replay = replay
        self.session_id = session.id
        self._session = session
        self._settings = settings
        self._mark = mark
        self._groups: dict[FrameGroup, list[Viewer]] = {}
        self._views: dict[Profile, View] = {}
        """Views by profile, of the attached renderers."""
        self.joining: list[Viewer] = []
        """Renderers that join with the next write."""

    # -- attaching and detaching -----------------------------------------------------------------

    def attach(self, viewer: Viewer) -> None:
        """Attach a renderer; it joins with the next write."""
        self.viewers[viewer.id] = viewer
        viewer.delivery = self
        # The view has to follow the screen from here on: the next commit may be its first frame.
        self._view(viewer.profile)
        payload = {"features": sorted(viewer.profile.features), "encoding": viewer.encoding}
        kind = "channel.resumed" if viewer.resume else "channel.connected"
        if self._session.sealed is None:
            self._session.record(kind, payload, channel_id=viewer.id)
        viewer.state, viewer.part = "joining", None
        self.rejoin(viewer)

    def detach(self, viewer: Viewer) -> None:
        """Detach a renderer."""
        viewer.left()
        if self.viewers.pop(viewer.id, None) is None:
            return
        self._leave(viewer)
        viewer.state = "new"
        # A view costs work for every commit, so it goes with the last renderer of its profile.
        if not any(other.profile == viewer.profile for other in self.viewers.values()):
            view = self._views.pop(viewer.profile, None)
            if view is not None:
                self._session.watchers.remove(view)
        if self._session.sealed is None:
            self._session.record("channel.disconnected", {}, channel_id=viewer.id)
            self._mark()

    def rejoin(self, viewer: Viewer) -> None:
        """Bring a renderer to the newest state with the next write."""
        if viewer not in self.joining:
            self.joining.append(viewer)
        self._mark()

    def drained(self, viewer: Viewer) -> None:
        """Start the catch-up of a lagging renderer if it is below its limits again."""
        settings = self._settings
        most = settings.limits.max_pending_commits
        if viewer.state == "behind" and viewer.keeps_up(settings.high_water_bytes, most):
            viewer.state = "returning"
            self.rejoin(viewer)

    def resync(self, viewer: Viewer) -> None:
        """Send a renderer a snapshot with the next write, and no frames before it."""
        self._leave(viewer)
        viewer.state, viewer.resume = "joining", None
        self.rejoin(viewer)

    def resync_all(self) -> None:
        """Send a snapshot to every renderer that supports it, after a change of branch."""
        for viewer in self.viewers.values():
            if viewer.profile.said_hello:
                self.resync(viewer)

    def join_now(self, viewer: Viewer) -> None:
        """Make a renderer current; it must have received everything up to `cursor`."""
        viewer.state = "current"
        self._groups.setdefault(viewer.group, []).append(viewer)

    def components_of(self, names: Mapping[str, object]) -> set[str]:
        """Return the keys of `names` that are ids of current components, on any surface."""
        trees = self._session.screen.surfaces.values()
        return set[str]().union(*(names.keys() & tree.nodes.keys() for tree in trees))

    def _view(self, profile: Profile) -> View:
        """Return the view for a profile; create it and let it follow the screen if needed."""
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

    # -- delivering durable batches --------------------------------------------------------------

    @property
    def cursor(self) -> Cursor:
        """Position up to which facts are durable and delivered."""
        reached = self._delivered
        return reached.cursor if isinstance(reached, TextBatch) else reached

    def deliver(self, batch: TextBatch | Batch) -> None:
        """Send a durable batch to all current renderers."""
        for group, viewers in tuple(self._groups.items()):
            self._deliver_to(group, viewers, batch)
        if isinstance(batch, TextBatch):
            self._delivered = batch
            return
        self._delivered = batch.cursor
        if any(one.type in TURN_ENDS for one in batch.recorded):
            for viewer in list(self.viewers.values()):
                if viewer.on_turn_end is not None:
                    viewer.on_turn_end()

    def _deliver_to(
        self, group: FrameGroup, viewers: list[Viewer], batch: TextBatch | Batch
    ) -> None:
        """Send a batch to a group; renderers that cannot keep up leave the group and lag."""
        frames: list[bytes] | None
        if isinstance(batch, TextBatch):
            frames, commits = text_frames(batch.text, group), _NO_SEQUENCES
            # `Frames` caches what connections send, so that each form is made once per group.
            if len(viewers) > 1:
                frames = Frames(frames)
        else:
            frames = self._view(group.profile).batch_frames(batch, group)
            commits = [one.sequence for one in batch.recorded if one.type in COMMITS]
        if frames is None:
            # The batch cannot be expressed in this profile; a snapshot of the screen can.
            for viewer in list(viewers):
                self.resync(viewer)
            return
        if frames:
            high_water = self._settings.high_water_bytes
            lagging: list[Viewer] = []
            for viewer in viewers:
                outbox = viewer.outbox
                # The check of `admit` without a call, for renderers without `frame-ack`.
                is_ready = outbox.buffered <= high_water and viewer.unacknowledged is None
                if is_ready or viewer.admit(commits, self._settings):
                    outbox.send(frames)
                else:
                    lagging.append(viewer)
            for viewer in lagging:
                self._mark_lagging(viewer, self.cursor)
                # A renderer that only has too many commits in this batch has room for one, so it
                # can catch up at once. Otherwise it would wait for a `drained` that never comes.
                self.drained(viewer)
            if commits and group.profile.limits.max_commits_per_s is not None:
                for viewer in list(viewers):
                    self._pace(viewer, batch.cursor)
        if group.part is not None and group.part != batch.cursor.part:
            self._leave_part(viewers)

    def _leave_part(self, viewers: list[Viewer]) -> None:
        """Move renderers out of a group that refers to a text part by id, since the part ended.

        They know the part by id because they got it in a snapshot; from here on they share the
        frames of renderers that know only the open part.
        """
        for viewer in list(viewers):
            self._leave(viewer)
            viewer.part = None
            self.join_now(viewer)

    def _pace(self, viewer: Viewer, cursor: Cursor) -> None:
        """Pause delivery to a renderer that limits the rate of commits."""
        rate = viewer.profile.limits.max_commits_per_s
        if rate is None:
            return
        self._mark_lagging(viewer, cursor)
        viewer.state = "paced"
        wait_s = min(1 / rate, MOST_PACE_S)
        asyncio.get_running_loop().call_later(wait_s, self._end_pause, viewer)

    def _end_pause(self, viewer: Viewer) -> None:
        # It may have left, or a snapshot may have been requested for it meanwhile.
        if viewer.state == "paced" and self.viewers.get(viewer.id) is viewer:
            viewer.state = "behind"
            self.drained(viewer)

    def _mark_lagging(self, viewer: Viewer, cursor: Cursor) -> None:
        """Stop delivery to a renderer and remember its cursor."""
        self._leave(viewer)
        viewer.state, viewer.cursor = "behind", cursor
        logger.debug("renderer %s is behind at %d", viewer.id, cursor.seq)

    # -- joining ---------------------------------------------------------------------------------

    def gather(self) -> list[Join]:
        """Make the frames of all joining renderers from the current screen."""
        joining, self.joining = self.joining, []
        return [self._make_join(viewer) for viewer in joining]

    def finish(self, join: Join) -> None:
        """Send the frames of a join, which are durable now, and make the renderer current."""
        viewer = join.viewer
        if viewer.id not in self.viewers or viewer in self.joining:
            # It left, or it left and came back. A newer join is then under way, and sending both
            # would repeat frames.
            return
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

    def _make_join(self, viewer: Viewer) -> Join:
        """Choose how a renderer becomes current, and make its frames.

        The choices are: a catch-up after lagging; a replay from the log, if it resumes at a
        position that is not too old; only the first message, if the session is empty; otherwise a
        snapshot.
        """
        session, view = self._session, self._view(viewer.profile)
        if viewer.state == "returning":
            return self._catch_up(viewer)
        if not viewer.profile.said_hello:
            return Join(viewer, view.held_up(session, viewer.group), session.cursor)
        resume, name = viewer.resume, session.name
        if resume is not None and resume.epoch == name.epoch and resume.seq <= name.seq:
            # A replay across a change of branch would mix the messages of two branches.
            is_same_branch = resume.seq >= session.branched_at
            if is_same_branch and name.seq - resume.seq <= self._settings.max_replay:
                frames = view.ready(session, viewer.group, "replay")
                return Join(viewer, frames, session.cursor, kind="replay")
        elif not session.screen.count and len(session.screen.surfaces) == 1 and resume is None:
            return Join(viewer, view.ready(session, viewer.group, "new"), session.cursor)
        return self._snapshot(viewer)

    def _catch_up(self, viewer: Viewer) -> Join:
        """Make the catch-up of a renderer that lagged; a snapshot if it missed too much."""
        cursor = self._session.cursor
        # Nothing happened while it was lagging.
        if viewer.cursor.seq == cursor.seq:
            return Join(viewer, [], cursor)
        view = self._view(viewer.profile)
        frames = view.catch_up(self._session, viewer.group, viewer.cursor)
        if frames is None:
            return self._snapshot(viewer)
        # The catch-up introduces a text part, which its deltas then have to name by id.
        if cursor.part != viewer.cursor.part:
            viewer.part = cursor.part
        return Join(viewer, frames, cursor, kind="whole")

    def _snapshot(self, viewer: Viewer) -> Join:
        cursor = self._session.cursor
        # `viewer.group` contains the part. The snapshot replaces the part that the renderer knew,
        # and the deltas after the snapshot name the new one.
        viewer.part = None
        frames, shared = self._view(viewer.profile).snapshot(self._session, viewer.group)
        viewer.part = cursor.part
        return Join(viewer, frames, cursor, shared, "whole")
