"""A session in memory, with the renderers that watch it and the agent that works in it.

Theory of operation. The writer *gathers*: what was recorded becomes facts, and every renderer that wants to join (new, or
behind) gets its frames made from the screen as it is at that very moment. When the facts are durable the
writer *delivers*: frames to those who are current, then to those who join, then what else was waiting
for durability (acknowledgements, starting a turn). So nothing is seen that is not durable, and no join can
miss or repeat anything.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from arp.hub.frames import pack
from arp.hub.settings import HubSettings
from arp.hub.viewer import LOW_WATER_BYTES, Action, Viewer
from arp.protocol.codec import encode_json, recode
from arp.protocol.messages import AgentMessage, SessionReady
from arp.session.emission import Audience, Emission, addressed
from arp.session.session import Session
from arp.surface.snapshot import Place, catch_up, snapshot

if TYPE_CHECKING:
    from arp.hub.turn import Turn

logger = logging.getLogger(__name__)

_COMMITS = frozenset(("artifact.changed", "turn.completed", "turn.failed"))


class Join(Struct):
    """A renderer on its way to being current."""

    viewer: Viewer
    frames: list[bytes]
    place: Place
    replay: bool = False


class Gathered(Struct):
    """What one write to the ledger carries for one session."""

    live: LiveSession
    expected: int
    facts: list[bytes]
    emissions: list[Emission]
    place: Place
    joins: list[Join]
    actions: list[Action]


class LiveSession:
    """One session and everything that is attached to it now."""

    def __init__(
        self, session: Session, settings: HubSettings, mark: Callable[[LiveSession], None]
    ) -> None:
        self.session = session
        self.settings = settings
        self.viewers: dict[str, Viewer] = {}
        self.turn: Turn | None = None
        self.task: asyncio.Task[None] | None = None
        """The agent that works in `turn`."""
        self.used_at = 0.0
        """When it last did something, on the loop's clock."""
        self.dirty = False
        self.closed = False
        """It has left the hub: nothing of it is written any more."""
        self.unwritten = 0
        """Characters said since the last write."""
        self.replay: Callable[[Viewer, int], None] = lambda _viewer, _after: None
        self._mark = mark
        self._groups: dict[Audience, list[Viewer]] = {}
        self._joining: list[Viewer] = []
        self._actions: list[Action] = []
        self._place = session.place

    def mark(self) -> None:
        """Asks for a write, soon."""
        if not self.dirty and not self.closed:
            self.dirty = True
            self._mark(self)

    def after_write(self, action: Action) -> None:
        """Does something when all that is recorded so far is durable."""
        self._actions.append(action)
        self.mark()

    @property
    def delivered(self) -> int:
        """The sequence up to which facts are durable and delivered."""
        return self._place.seq

    @property
    def idle(self) -> bool:
        """Tells whether nobody watches and nothing is going on."""
        return not (self.viewers or self.dirty or self.session.active or self.session.has_recorded)

    # -- renderers -------------------------------------------------------------------------------

    def attach(self, viewer: Viewer) -> None:
        """Lets a renderer join at the next write."""
        viewer.live = self
        self.viewers[viewer.id] = viewer
        self.session.profiles.add(viewer.profile)
        payload = {"features": sorted(viewer.profile.features), "encoding": viewer.encoding}
        kind = "channel.resumed" if viewer.resume else "channel.connected"
        self.session.record(kind, payload, channel_id=viewer.id)
        self.rejoin(viewer)

    def detach(self, viewer: Viewer) -> None:
        """Forgets a renderer; nothing else changes."""
        if self.viewers.pop(viewer.id, None) is None:
            return
        self._leave(viewer)
        viewer.live, viewer.state = None, "new"
        if not any(other.profile == viewer.profile for other in self.viewers.values()):
            self.session.profiles.discard(viewer.profile)
        self.session.record("channel.disconnected", {}, channel_id=viewer.id)
        self.mark()

    def rejoin(self, viewer: Viewer) -> None:
        """Brings a renderer to the newest state at the next write."""
        viewer.state = "joining" if viewer.state == "new" else viewer.state
        if viewer not in self._joining:
            self._joining.append(viewer)
        self.mark()

    def join_now(self, viewer: Viewer) -> None:
        """Makes a renderer current that stands exactly at `delivered`."""
        viewer.state = "current"
        self._groups.setdefault(viewer.audience, []).append(viewer)

    def resync(self, viewer: Viewer) -> None:
        """Sends a renderer a snapshot instead of what it would have got."""
        self._leave(viewer)
        viewer.state, viewer.resume = "joining", None
        self.rejoin(viewer)

    def _leave(self, viewer: Viewer) -> None:
        if viewer in self._joining:
            self._joining.remove(viewer)
        group = self._groups.get(viewer.audience)
        if group is not None and viewer in group:
            group.remove(viewer)
            if not group:
                del self._groups[viewer.audience]

    # -- the writer's two moments ------------------------------------------------------------------

    def gather(self, at: str) -> Gathered:
        """Takes what is to be written now, and prepares those who join."""
        self.dirty = False
        self.closed = False
        """It has left the hub: nothing of it is written any more."""
        self.unwritten = 0
        if self.turn is not None:
            self.turn.flush()
        expected = self.session.sequence_stored
        drained = self.session.drain(at)
        joining, self._joining = self._joining, []
        joins = [join for viewer in joining if (join := self._join(viewer)) is not None]
        actions, self._actions = self._actions, []
        place = self.session.place
        return Gathered(self, expected, drained.facts, drained.emissions, place, joins, actions)

    def deliver(self, gathered: Gathered) -> None:
        """Shows what has become durable."""
        if gathered.emissions:
            for audience, viewers in list(self._groups.items()):
                self._deliver_to(audience, viewers, gathered)
        self._place = gathered.place
        for join in gathered.joins:
            self._finish(join)
        for action in gathered.actions:
            action()

    def _deliver_to(self, audience: Audience, viewers: list[Viewer], gathered: Gathered) -> None:
        frames: list[bytes] = []
        for emission in gathered.emissions:
            made = emission.frames(audience)
            if made is None:
                for viewer in list(viewers):
                    self.resync(viewer)
                return
            frames.extend(made)
        if frames:
            packed = pack(frames, audience.encoding) if audience.batch else frames
            self._send(viewers, packed, gathered)
        if audience.part is not None and audience.part != gathered.place.part:
            for viewer in list(viewers):
                self._leave(viewer)
                viewer.part = None
                self.join_now(viewer)

    def _send(self, viewers: list[Viewer], packed: list[bytes], gathered: Gathered) -> None:
        high_water = self.settings.high_water_bytes
        stuck: list[Viewer] = []
        for viewer in viewers:
            outbox = viewer.outbox
            if outbox.buffered > high_water or viewer.unacknowledged is not None:
                if not viewer.keeps_up(high_water, self.settings.limits.max_pending_commits):
                    stuck.append(viewer)
                    continue
                self._count_commits(viewer, gathered)
            outbox.send(packed)
        for viewer in stuck:
            self._fall_behind(viewer, self._place)
        rate = viewers[0].profile.limits.max_commits_per_s if viewers else None
        if rate is not None and any(emission.type in _COMMITS for emission in gathered.emissions):
            for viewer in list(viewers):
                self._fall_behind(viewer, gathered.place)
                asyncio.get_running_loop().call_later(1 / rate, viewer.drained)

    @staticmethod
    def _count_commits(viewer: Viewer, gathered: Gathered) -> None:
        assert viewer.unacknowledged is not None
        viewer.unacknowledged.extend(
            emission.sequence for emission in gathered.emissions if emission.type in _COMMITS
        )

    def _fall_behind(self, viewer: Viewer, place: Place) -> None:
        self._leave(viewer)
        viewer.state, viewer.place = "behind", place
        if viewer.outbox.buffered <= LOW_WATER_BYTES and viewer.unacknowledged is None:
            return
        logger.debug("renderer %s is behind at %d", viewer.id, place.seq)

    # -- joining ---------------------------------------------------------------------------------

    def _join(self, viewer: Viewer) -> Join | None:
        session, place = self.session, self.session.place
        if viewer.state == "behind":
            return self._catch_up(viewer, place)
        if not viewer.profile.said_hello:
            return Join(viewer, [], place)
        resume, name = viewer.resume, session.name
        if resume is not None and resume.epoch == name.epoch and resume.seq <= name.seq:
            if name.seq - resume.seq <= self.settings.max_replay:
                ready = self._ready(viewer, "replay")
                return Join(viewer, self._encode(viewer, [ready], None), place, replay=True)
        elif not session.screen.turns and len(session.screen.surfaces) == 1 and resume is None:
            return Join(viewer, self._encode(viewer, [self._ready(viewer, "new")], None), place)
        return self._snapshot(viewer, place)

    def _catch_up(self, viewer: Viewer, place: Place) -> Join:
        if viewer.place.seq == place.seq:
            return Join(viewer, [], place)
        messages = catch_up(self.session.screen, self.session.name, viewer.profile, viewer.place)
        if messages is None:
            return self._snapshot(viewer, place)
        part = viewer.place.part
        frames = self._encode(viewer, messages, part)
        viewer.part = viewer.part if place.part == part else place.part
        return Join(viewer, frames, place)

    def _snapshot(self, viewer: Viewer, place: Place) -> Join:
        messages = snapshot(self.session.screen, self.session.name, viewer.profile)
        viewer.part = None
        frames = self._encode(viewer, messages, None)
        viewer.part = place.part
        return Join(viewer, frames, place)

    def _ready(self, viewer: Viewer, resume: str) -> SessionReady:
        name = self.session.name
        return SessionReady(
            session_id=name.session_id,
            epoch=name.epoch,
            seq=name.seq,
            resume=resume,  # type: ignore[arg-type]  # one of its three words
        )

    @staticmethod
    def _encode(viewer: Viewer, messages: list[AgentMessage], part: str | None) -> list[bytes]:
        audience = viewer.audience
        frames = [
            recode(encode_json(message), viewer.encoding)
            for before in messages
            for message in addressed(before, audience, part)
        ]
        return pack(frames, viewer.encoding) if audience.batch and frames else frames

    def _finish(self, join: Join) -> None:
        viewer = join.viewer
        if viewer.live is not self:
            return
        if viewer.unacknowledged is not None:
            viewer.unacknowledged = []
        if join.frames:
            viewer.outbox.send(join.frames)
        if join.replay and viewer.resume is not None:
            self.replay(viewer, viewer.resume.seq)
        else:
            self.join_now(viewer)
