"""The frames of one session for the renderers of one profile.

Theory of operation. There are two ways to bring a renderer up to date. A current renderer gets the
frames of each fact. A joining or lagging renderer gets a snapshot, or a catch-up since its cursor,
made from the current screen.

A view is called directly after each commit, while the screen is in the state after that commit. If
the profile cannot show a change natively, the view makes translated messages and stores them in
`RecordedFact.translated` until the fact is delivered. All other facts have the same messages for
all profiles, except for what `addressed` leaves out.
"""

from __future__ import annotations

from typing import Literal
from weakref import WeakValueDictionary

import msgspec
from msgspec import UNSET

from arp.protocol.connection.screen import Screen
from arp.protocol.messages import AgentMessage, Commit, SessionReady, SurfaceMessage
from arp.session.recording.projection import StoredChange, commit_messages, restored, stored
from arp.session.recording.recorded import AppliedCommit, Batch, Cursor, RecordedFact, Text
from arp.session.session import Session
from arp.surface.change import Change, RenderChange
from arp.view.frames import (
    FrameGroup,
    Frames,
    addressed,
    encoded,
    in_pieces,
    pack,
    text_frames,
)
from arp.view.inlined import filled, inlines, is_inlined, main_for
from arp.view.profile import Profile, shown_as
from arp.view.shown_roots import ShownRoots
from arp.view.snapshot import catch_up, opening, snapshot_turns, turns_whole, version_of
from arp.view.stream_end import ends_stream, holds_queue, is_waiting, stream_end
from arp.view.translate import touched_roots, translated


class View:
    """The commits of one session for one profile."""

    __slots__ = ("_screen", "_settled", "_shown", "profile")

    def __init__(self, profile: Profile, screen: Screen) -> None:
        self.profile = profile
        self._shown: dict[str, ShownRoots] = {}
        """How roots are shown, by surface."""
        self._settled: WeakValueDictionary[object, Frames] | None = None
        """Frames of ended turns, as long as they are queued for some renderer. A hundred renderers
        that receive a snapshot slowly share one copy."""
        self.show_on(screen)

    @property
    def resumes_queue(self) -> bool:
        """Whether its renderers show a paused queue and can resume it."""
        return self.profile.takes("line-pause")

    def show_on(self, screen: Screen) -> None:
        """Switch to another screen; the renderers need a snapshot of it."""
        self._screen = screen
        trees = {**screen.surfaces, "main": main_for(screen, self.profile)}
        self._shown = {surface: ShownRoots(self.profile, tree) for surface, tree in trees.items()}

    def committed(self, commit: AppliedCommit) -> None:
        """Translate a commit that was just applied."""
        recorded = commit.changes
        if inlines(self.profile):
            if is_inlined(commit.surface, self._screen):
                self._committed_inline(commit)
                return
            if commit.surface == "main":
                tree = main_for(self._screen, self.profile)
                changes = filled(recorded, tree)
                commit = msgspec.structs.replace(commit, tree=tree, changes=changes)
        if len(self._shown) > 2 * len(self._screen.surfaces):
            # Surfaces are closed without a commit: their entries would stay here for ever.
            known = self._screen.surfaces
            self._shown = {name: one for name, one in self._shown.items() if name in known}
        self._committed(commit, recorded)

    def _committed_inline(self, commit: AppliedCommit) -> None:
        """Translate a commit of a popup or overlay: render its whole group on `main` again."""
        tree, group_id = main_for(self._screen, self.profile), commit.surface
        if group_id not in tree.nodes:
            # The next commit adds the group, with its content; or the group was removed.
            self._translate(commit.fact, [])
            return
        shown, root = self._shown["main"], tree.root_of(group_id)
        before = shown.before(root.id, tree)
        ids = before.pieces if before is not None and before.pieces is not None else [root.id]
        pieces = shown_as(tree.component(root.id), self.profile)
        if ids != [piece.id for piece in pieces]:
            self._translate(commit.fact, None)
        else:
            at = msgspec.structs.replace(commit.at, turn_id=root.turn)
            made: list[Change] = [RenderChange(pieces)]
            self._translate(commit.fact, commit_messages(at, "main", _isolated(made)))
        if shown.is_needed:
            shown.update(tree, [root.id])

    def _committed(self, commit: AppliedCommit, recorded: list[Change]) -> None:
        shown = self._shown.get(commit.surface)
        if shown is None:  # the commit created the surface
            shown = self._shown[commit.surface] = ShownRoots(self.profile)
        changes = commit.changes
        if commit.is_anew and self.profile.said_hello:
            # The commit reuses the id of an evicted component. Renderers may still show that
            # component, and would change it instead of adding the new one.
            self._translate(commit.fact, None)
        else:
            made = translated(commit, self.profile, shown)
            if made is None:
                self._translate(commit.fact, None)
            # The recorded list itself means that nothing differs: the fact's messages are right.
            elif made is not recorded:
                messages = commit_messages(commit.at, commit.surface, _isolated(made))
                described = [one for one in commit.fact.messages if isinstance(one, SurfaceMessage)]
                self._translate(commit.fact, [*described, *messages])
        if shown.is_needed:
            shown.update(commit.tree, touched_roots(changes, commit.tree))

    def _translate(self, fact: RecordedFact, messages: list[AgentMessage] | None) -> None:
        if fact.translated is None:
            fact.translated = {}
        fact.translated[self] = messages

    # -- current renderers -------------------------------------------------------------------------

    def messages(self, fact: RecordedFact) -> list[AgentMessage] | None:
        """Return the messages of a fact; `None` if the renderers need a snapshot instead."""
        profile = self.profile
        # Only a renderer with the feature `branches` replaces an input that it already shows.
        if fact.is_edit and profile.said_hello and not profile.takes("branches"):
            return None
        if fact.translated is not None:
            return fact.translated.get(self, fact.messages)
        if profile.ends_at_questions and (
            ends_stream(fact.type, fact.payload)
            or holds_queue(fact.type, fact.payload, self._screen)
        ):
            return stream_end(fact.messages)
        return fact.messages

    def frames(self, fact: RecordedFact, group: FrameGroup) -> list[bytes] | None:
        """Return the frames of a fact for a group of this profile.

        Args:
            fact: A recorded fact.
            group: Renderers of this profile.

        Returns:
            `None` if they need a snapshot instead.
        """
        messages = self.messages(fact)
        if messages is None:
            return None
        return [
            frame
            for before in messages
            for message in addressed(before, group)
            for frame in encoded(message, group)
        ]

    def batch_frames(self, batch: Batch, group: FrameGroup) -> Frames | None:
        """Return the frames of all facts of a batch; `None` if a snapshot is needed instead."""
        frames = Frames()
        for one in batch.recorded:
            made = text_frames(one, group) if isinstance(one, Text) else self.frames(one, group)
            if made is None:
                return None
            frames += made
        if group.batch and len(frames) > 1:
            return pack(frames, group.encoding, self.profile.limits.max_message_bytes)
        return frames

    # -- joining and lagging renderers -------------------------------------------------------------

    def ready(
        self, session: Session, group: FrameGroup, resume: Literal["new", "replay"]
    ) -> list[bytes]:
        """Return the `session` message for a new session or before a replay, as frames."""
        name, state = session.name, session.screen.shared_state
        ready = SessionReady(
            session_id=name.session_id,
            epoch=name.epoch,
            seq=name.seq,
            resume=resume,
            workflow=session.workflow,
            state=state or UNSET,
        )
        return in_pieces([ready], group)

    def held_up(self, session: Session, group: FrameGroup) -> list[bytes]:
        """Return the frames that end the stream of a draft client that joins at a question."""
        waiting = [turn.id for turn in session.screen.turns.values() if is_waiting(turn)]
        if not waiting:
            return []
        end = Commit(session_id=session.name.session_id, turn_id=waiting[-1], final=True)
        return encoded(end, group)

    def snapshot(self, session: Session, group: FrameGroup) -> tuple[list[bytes], Frames]:
        """Return the frames of a snapshot, and the frames among them that renderers share.

        Args:
            session: The session.
            group: The group of the renderer, without a text part.
        """
        screen, name, profile = session.screen, session.name, self.profile
        workflow = session.workflow
        begin = opening(screen, name, profile, screen.older, screen.gaps, workflow)
        settled, others = snapshot_turns(screen)
        end = turns_whole(screen, others, name, profile)
        end.append(Commit(session_id=name.session_id, seq=name.seq))
        key = (group, session.branched_at, version_of(screen, settled))
        if self._settled is None:
            self._settled = WeakValueDictionary()
        shared = self._settled.get(key)
        if shared is None:
            messages = turns_whole(screen, settled, name, profile)
            shared = self._settled[key] = Frames(in_pieces(messages, group))
        return [*in_pieces(begin, group), *shared, *in_pieces(end, group)], shared

    def catch_up(self, session: Session, group: FrameGroup, cursor: Cursor) -> list[bytes] | None:
        """Return the frames of the changes since a cursor; `None` if a snapshot is needed."""
        if cursor.seq < session.branched_at and self.profile.said_hello:
            return None
        messages = catch_up(session.screen, session.name, self.profile, cursor)
        return None if messages is None else in_pieces(messages, group, cursor.part)


def _isolated(changes: list[Change]) -> list[Change]:
    """Return a deep copy, because later patches change the values in the tree."""
    raw = msgspec.json.encode(stored(changes))
    return restored(msgspec.json.decode(raw, type=list[StoredChange]))
