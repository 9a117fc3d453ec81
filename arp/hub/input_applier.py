"""Application of inputs from renderers to sessions, and scheduling of their effects.

Theory of operation. An input either adds to the shown branch (`receive`), or selects another branch
(`change_branch`). In the second case the log has to be read first, and the session may change while
it is read; so what the input needs is checked before and after.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

from arp.access.principal import Principal
from arp.hub.runner import Runner
from arp.live.delivery import Viewer
from arp.live.live_session import LiveSession
from arp.live.states import States
from arp.protocol.messages import AgentMessage, Input
from arp.session.effects import Effect
from arp.session.input.branching import (
    asks_for_branch,
    branch_of,
    change_branch,
    check_branch_change,
)
from arp.session.input.late_input import check_in_time
from arp.session.input.receive import SILENT, UNKNOWN, InputSender, receive
from arp.session.session import Session
from arp.session.tracking.branches import Survey
from arp.view.profile import DRAFT, Profile, typed_answer

Reply: TypeAlias = Callable[[AgentMessage], None]
"""Sends the answer to an input; called once the facts of that input are durable."""


CarryOutInput: TypeAlias = Callable[[LiveSession, Sequence[Effect], Reply, int | None], None]
"""Schedules the effects of an input, with the input's serial; see `Hub.carry_out`."""


class Sender(NamedTuple):
    """Known properties of the renderer that sent an input, and its user."""

    profile: Profile
    who: InputSender
    shown: int
    """Sequence of the last fact that it shows for certain."""


def sender_of(viewer: Viewer, principal: Principal) -> Sender:
    """Return an attached renderer as the sender of an input."""
    profile = viewer.profile if viewer.said_hello else DRAFT
    return Sender(profile, InputSender(viewer.info, principal.known_as), viewer.shown)


def sender_among(viewers: Sequence[Viewer], principal: Principal, shown: int) -> Sender:
    """Return the sender of an input without a connection: what all attached renderers share.

    Any of them may have sent it. A property in which they differ gets its default.
    """
    profiles = [one.profile if one.said_hello else DRAFT for one in viewers] or [DRAFT]
    infos = [one.info for one in viewers] or [UNKNOWN]
    info = infos[-1] if all(one == infos[-1] for one in infos) else UNKNOWN
    return Sender(
        profiles[-1] if all(one == profiles[-1] for one in profiles) else DRAFT,
        InputSender(info, principal.known_as),
        shown,
    )


class InputApplier:
    """Applies inputs to sessions in memory."""

    def __init__(
        self,
        states: States,
        runner: Runner,
        carry_out: CarryOutInput,
        check_takes_input: Callable[[], None],
    ) -> None:
        """Create the applier of one hub.

        Args:
            states: Reads branches of sessions from the log.
            runner: Agents, which check answers and are notified of inputs.
            carry_out: Schedules effects.
            check_takes_input: Raises `PermissionDenied` if the hub shows a recording.
        """
        self._states = states
        self._runner = runner
        self._carry_out = carry_out
        self._check_takes_input = check_takes_input

    async def apply(
        self,
        live: LiveSession,
        message: Input,
        sender: Sender,
        reply: Reply,
        traceparent: str | None = None,
    ) -> None:
        """Apply an input to its session and schedule its effects.

        Raises:
            ArpError: The input is refused; nothing has changed.
        """
        # A recording accepts focus and resize: a renderer sends them by itself, and they change
        # nothing in the ledger.
        if message.input_type not in SILENT:
            self._check_takes_input()
        session = live.session
        before = session.serials.last
        session.serials.stamp(asyncio.get_running_loop().time())
        if asks_for_branch(session, message):
            # Checked twice: here before the log is read, which may take long, and again in
            # `change_branch`, since the session may have changed while the log was read.
            check_branch_change(session, message)
            survey, branch = await self._read_branch(live, message)
            effects = change_branch(session, message, survey, branch, sender.who, traceparent)
            # What the renderers show belongs to the previous branch.
            live.delivery.resync_all()
            live.keep_deadlines()
            self._runner.services.keep_surface_timers(live)
        else:
            # A busy loop runs timers late. Without this, a late answer would be accepted.
            if live.deadlines:
                live.expire_questions()
            read_typed = partial(typed_answer, sender.profile)
            check = partial(self._runner.check_answer, live)
            check_in_time(session, message, read_typed, sender.shown)
            effects = receive(session, message, read_typed, sender.who, traceparent, check)
        live.touch()
        # The serial of this input, which allows the agent to open a popup where the user acted.
        serial = session.serials.last if session.serials.last > before else None
        self._carry_out(live, effects, reply, serial)
        if message.input_type in SILENT:
            self._runner.surface_input(live, message)

    async def _read_branch(self, live: LiveSession, message: Input) -> tuple[Survey, Session]:
        """Return the survey and the branch that an input refers to.

        The session may grow while its log is read, so this repeats until the survey covers every
        turn and the branch ends at the newest fact.
        """
        states, session = self._states, live.session
        while True:
            if live.stored < session.sequence:
                await live.written()
            survey = await states.survey(session.head)
            branch = await states.branch(session.head, branch_of(message, survey))
            while branch.sequence < session.sequence:
                await live.written()
                async for _ in states.follow(branch):
                    pass
            if live.gone.done():
                raise live.gone.result()
            if len(survey.branches) == session.turn_count:
                return survey, branch
