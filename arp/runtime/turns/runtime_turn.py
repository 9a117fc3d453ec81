"""`RuntimeTurn`: shows the events of a runtime's turn in a turn of ARP.

Text becomes output and thoughts become reasoning. Tools, plans, retries and limits are shown while
they are in progress. `TurnQuestions` handles the runtime's requests to the user, and `RunFacts`
records the turn.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from arp.protocol.components import Component
from arp.protocol.errors import ArpError, SurfaceDestroyed
from arp.protocol.json_value import Json, JsonObject
from arp.runtime.contract import types as ari
from arp.runtime.contract.cut_off import CutOffReason
from arp.runtime.contract.errors import AriCode, AriError, ErrorStatus
from arp.runtime.contract.feed import one_line
from arp.runtime.contract.services import EventSubscription
from arp.runtime.turns.linked_session import LinkedSession, RuntimeHandle
from arp.runtime.turns.run_facts import (
    MAX_TEXT_CHARACTERS,
    RunFacts,
    notice_of,
    record_event,
    record_plan,
    record_warning,
)
from arp.runtime.turns.session_commands import CHANGES_COMMANDS, SessionCommands
from arp.runtime.turns.turn_questions import TurnQuestions
from arp.turn.foreign_components import fitting_component
from arp.turn.foreign_names import fitting_name, fitting_steps, shortened
from arp.turn.tool import ToolCall, ToolFailed

if TYPE_CHECKING:
    from arp.turn.turn import Turn

MAX_SHOWN = 20_000
"""Characters of a command's output that are shown as a component; the tool's result has all of
it."""
MAX_DIFF = 200_000
"""Characters of both sides of a change together; of a larger one, only the size is shown."""
MAX_PATH = 500
"""Characters of the path above a change."""
STOP_S = 15.0
"""Seconds to wait for the end of a cancelled turn; more than `CANCEL_GRACE_S` of runtimes."""
MAX_PROGRESS = 200
"""Characters that are shown of the last line of a running tool."""


class RuntimeTurn:
    """One turn of a runtime, on the screens.

    Args:
        runtime: Runtime of the turn.
        commands: Commands of the session; shown again when the runtime changes them.
        turn: Turn of ARP that shows the events.
        link: Session of the runtime.
    """

    def __init__(
        self, runtime: RuntimeHandle, commands: SessionCommands, turn: Turn, link: LinkedSession
    ) -> None:
        self._runtime = runtime
        self._commands = commands
        self._turn = turn
        self._link = link
        self._calls: dict[str, ToolCall] = {}
        self._begun: dict[str, ari.Event] = {}
        """Events that began the calls, by call id."""
        self.questions = TurnQuestions(runtime, turn, link, self._calls)
        self._facts = RunFacts(
            turn.record, link.model, keeps_messages=turn._host.services.records_messages
        )
        self._plan = ""
        """Id of the component with the agent's list."""
        self._retry = ""
        """Id of the component for a repeated request to the model."""
        self._retries = 0
        """Number of retries since the last answer of the model."""
        self._limits: dict[str, str] = {}
        """Components that show limits, by the name of the limit."""

    async def play(self, events: EventSubscription, turn_id: str) -> None:
        """Show a turn to its end; if this is cancelled, the runtime's turn is cancelled too.

        If the server stops while a question is open, the runtime keeps its turn: the next process
        continues it and gives the answer there.
        """
        try:
            await self._finish(await self._show_all(events, turn_id))
        finally:
            self.questions.stop()
            await events.aclose()
            self._link.model = self._facts.model
            if not self._turn._leaves_questions_open:
                self._link.forget_questions(
                    is_asking=bool(self._turn._earlier_questions.left_open())
                )
            self._link.remember(self._turn)

    async def _show_all(self, events: EventSubscription, turn_id: str) -> ari.Event:
        """Show the events of a turn; return the last one, which says how the turn ended."""
        try:
            while self._link.limits:
                self._show_limit(self._link.limits.pop(next(iter(self._link.limits))))
            async for event in events:
                self._link.cursor = event.sequence
                if event.turn_id != turn_id:
                    continue
                await self._show(event)
                if event.done:
                    return event
            raise ToolFailed(f"{self._runtime.name}: the session was closed")
        except BaseException:
            # No one will read this turn's events any more. The questions end first: the runtime may
            # need some time to stop, and no answer must reach it during that time.
            self.questions.stop()
            if not self._turn._leaves_questions_open:
                await asyncio.shield(self._runtime.cancel(self._link.session_id, turn_id))
                await self._drain(events, turn_id)
            raise

    async def _drain(self, events: EventSubscription, turn_id: str) -> None:
        """Read a cancelled turn to its end, so that its usage counts for this turn of ARP."""
        with suppress(AriError, SurfaceDestroyed, TimeoutError):
            await asyncio.wait_for(self._read_to_end(events, turn_id), STOP_S)

    async def _read_to_end(self, events: EventSubscription, turn_id: str) -> None:
        async for event in events:
            self._link.cursor = event.sequence
            if event.turn_id != turn_id:
                continue
            if event.type is ari.EventType.TOOL_RESULT and not event.synthetic:
                await self._end_call(event)
            elif event.lifecycle is ari.Lifecycle.MODEL_REQUEST:
                self._facts.requested(event)
            elif event.lifecycle is ari.Lifecycle.USAGE:
                self._facts.usage(event.details)
            if event.done:
                self._record_end(event)
                return

    async def _show(self, event: ari.Event) -> None:
        if self._retries and event.type is not ari.EventType.LIFECYCLE:
            self._end_retry(event)
        match event.type:
            case _ if event.lifecycle is ari.Lifecycle.COMPONENT:
                self._show_component(event.details.get("component"))
            case _ if event.lifecycle is ari.Lifecycle.SPEAKER:
                self._show_speaker(event.content)
            case ari.EventType.TEXT:
                await self._turn.say(event.content)
            case ari.EventType.THINKING:
                self._turn.think(event.content)
            case ari.EventType.TOOL_CALL:
                self._begin_call(event)
            case ari.EventType.TOOL_RESULT:
                await self._end_call(event)
            case ari.EventType.PERMISSION_REQUEST:
                if event.tool_call_id not in self._calls:  # it began in an earlier turn
                    self._begin_call(event)
                self.questions.ask(event)
            case ari.EventType.LIFECYCLE:
                self._handle_lifecycle(event)
                if event.lifecycle in CHANGES_COMMANDS:
                    found = await self._commands.listed(self._link.session_id)
                    self._turn.set_commands(found.commands)
                    self._link.warn(self._turn.record, found.warnings)

    # -- tools -----------------------------------------------------------------------------------

    def _begin_call(self, event: ari.Event) -> None:
        subagent_id, subagent = self._link.caller(event)
        tool_name = fitting_name(event.tool_name, "tool")
        # The sub-agent is part of the name, because renderers that do not know a field for it would
        # show its calls as those of the agent.
        name = fitting_name(f"{subagent}: {tool_name}", "tool") if subagent_id else tool_name
        call = self._turn.start_tool(
            name,
            event.tool_input_raw or {},
            id=event.tool_call_id or None,
            subagent_id=subagent_id or None,
        )
        self._calls[event.tool_call_id] = call
        self._begun[event.tool_call_id] = event

    async def _end_call(self, event: ari.Event) -> None:
        call = self._calls.pop(event.tool_call_id, None)
        begun = self._begun.pop(event.tool_call_id, None)
        if call is None or begun is None:
            return
        self._record_process(call, begun, event)
        refused = self.questions.refusal_of(event.tool_call_id)
        if event.is_error:
            call.failed(refused or _error_of(event))
        else:
            await call.done(event.content)
        self._show_output(begun, event)

    def _record_process(self, call: ToolCall, begun: ari.Event, event: ari.Event) -> None:
        command = begun.tool_input_summary
        ran = not event.details.get("denied") and not event.synthetic
        if begun.details.get("kind") == ari.PermissionKind.COMMAND and command and ran:
            process = call.record.process(command)
            exit_code = event.details.get("exit_code")
            if isinstance(exit_code, int):
                process.completed(exit_code)
            elif event.is_error:
                process.failed("the command failed")
            else:
                process.completed(0)

    def _show_output(self, begun: ari.Event, event: ari.Event) -> None:
        if event.details.get("denied") or event.details.get("no_output"):
            return
        diffs = event.details.get("diffs") or begun.details.get("diffs")
        if isinstance(diffs, list) and not event.is_error:
            for diff in diffs:
                self._show_diff(diff)
        elif begun.details.get("kind") == ari.PermissionKind.COMMAND and event.content.strip():
            shown = event.content[:MAX_SHOWN]
            props: JsonObject = {"title": one_line(begun.tool_input_summary), "code": shown}
            self._show_component(Component("", "code-block", props))

    def _show_diff(self, diff: Json) -> None:
        if not isinstance(diff, dict):
            return
        path, before, after = (str(diff.get(name) or "") for name in ("path", "before", "after"))
        if len(before) + len(after) > MAX_DIFF:
            before, after = "", f"({len(after):,} characters)"
        title = shortened(path, MAX_PATH)
        diff_props: JsonObject = {"title": title, "before": before, "after": after}
        self._show_component(Component("", "diff", diff_props))

    # -- what else is shown ------------------------------------------------------------------------

    def _handle_lifecycle(self, event: ari.Event) -> None:
        """Show and record a lifecycle event; an invalid one is recorded as a warning.

        The details are free JSON of a program that we do not control; they must never end the turn.
        """
        try:
            self._show_lifecycle(event)
        except SurfaceDestroyed:
            raise
        except (ArpError, ArithmeticError, TypeError, ValueError) as wrong:
            reason = wrong.message if isinstance(wrong, ArpError) else str(wrong)
            what = f"{event.lifecycle} of {self._runtime.name} is left out"
            self._link.warn(self._turn.record, [f"{what}: {reason}"])

    def _show_lifecycle(self, event: ari.Event) -> None:
        details = event.details
        match event.lifecycle:
            case ari.Lifecycle.TOOL_PROGRESS:
                call = self._calls.get(event.tool_call_id)
                if call is not None:
                    call.progress(event.content.rstrip().rpartition("\n")[2][-MAX_PROGRESS:])
            case ari.Lifecycle.PERMISSION_RESOLVED:
                self.questions.resolved(event)
            case ari.Lifecycle.PLAN:
                self._show_plan(details.get("todos"))
            case ari.Lifecycle.RETRYING:
                self._show_retry(event)
            case ari.Lifecycle.MODEL_REQUEST:
                self._facts.requested(event)
            case ari.Lifecycle.USAGE:
                self._facts.usage(details)
            case ari.Lifecycle.RATE_LIMIT:
                self._show_limit(details)
            case ari.Lifecycle.WARNING if details.get("cut_off"):
                self._show_cut_off(event)
        record_event(self._turn.record, event)

    def _show_speaker(self, name: str) -> None:
        """Show which agent speaks from now on."""
        self._turn._speak_as(name)

    def _show_component(self, given: Component | Json) -> str:
        """Show a component of the agent, as far as it is valid; the rest is recorded as a warning.

        Returns:
            Id of the component; empty if nothing is shown.
        """
        found = fitting_component(given, self._turn._host.session.rules.limits.max_message_bytes)
        if found.warning:
            record_warning(self._turn.record, f"{self._runtime.name}: {found.warning}")
        return "" if found.component is None else self._turn.show(found.component)

    def _show_plan(self, todos: Json) -> None:
        found = fitting_steps(todos)
        if found.steps:
            plan = Component(self._plan, "progress", {"title": "Plan", "steps": found.steps})
            self._plan = self._show_component(plan) or self._plan
        self._link.warn(self._turn.record, found.warnings)
        record_plan(self._turn.record, todos, self._link.tasks, f"plan-{self._link.session_id}")

    def _show_retry(self, event: ari.Event) -> None:
        """Show a card while the request to the model is repeated."""
        attempt, attempts, status, delay = map(
            event.details.get, ("attempt", "attempts", "http_status", "delay_ms")
        )
        self._retries += 1
        answered = f"answered {status}" if status else "did not answer"
        wait = f" in {delay / 1000:.0f} s" if isinstance(delay, int | float) else ""
        message = f"The model {answered}; it is asked again{wait}."
        said = shortened(event.content, MAX_TEXT_CHARACTERS)
        text = f"{message}\n{said}" if said else message
        of = f" of {attempts}" if attempts else ""
        props: JsonObject = {
            "status": "warning",
            "title": f"Retry {attempt or self._retries}{of}",
            "message": text,
        }
        card = self._show_component(Component(self._retry, "status-card", props))
        self._retry = card or self._retry
        self._facts.retried(event, event.content or message)
        record_warning(self._turn.record, text)

    def _end_retry(self, event: ari.Event) -> None:
        """Replace the card of a retry by one line, because no further retry follows."""
        many = "1 retry" if self._retries == 1 else f"{self._retries} retries"
        is_over = event.type is ari.EventType.ERROR
        content = f"No answer after {many}." if is_over else f"The model answered after {many}."
        self._turn.show(Component(self._retry, "text", {"content": content}))
        self._retry, self._retries = "", 0

    def _show_limit(self, details: JsonObject) -> None:
        """Show that a limit is reached or nearly reached, and when it resets."""
        notice = notice_of(details)
        props: JsonObject = {
            "status": "error" if notice.is_reached else "warning",
            "title": notice.title,
            "message": notice.message,
        }
        limit = str(details.get("limit"))
        known = self._limits.get(limit, "")
        self._limits[limit] = self._show_component(Component(known, "status-card", props)) or known

    def _show_cut_off(self, event: ari.Event) -> None:
        """Show after the text that the answer is incomplete or missing."""
        is_empty = event.details["cut_off"] == CutOffReason.EMPTY
        title = "No answer" if is_empty else "Not a complete answer"
        props: JsonObject = {"status": "warning", "title": title, "message": event.content}
        self._turn.show(Component("", "status-card", props))

    def _record_end(self, event: ari.Event) -> None:
        """Record the usage of a turn, and how it ended."""
        if event.usage is not None:
            event = msgspec.structs.replace(event, usage=_valid_usage(event.usage))
            self._turn.usage(**msgspec.to_builtins(event.usage))
        self._facts.ended(event)

    async def _finish(self, event: ari.Event) -> None:
        self._record_end(event)
        if event.type is ari.EventType.ERROR:
            error = event.error or ErrorStatus(AriCode.INTERNAL)
            if error.code is AriCode.CANCELED:
                # Some agents cancel their own turn when a request is denied; the reason follows as
                # a message, so the turn must not look cancelled.
                if not self.questions.unsent:
                    await self._turn.say("\n\n*Cancelled.*")
                return
            self.questions.show_whether_sent("has not received")
            failure_of = getattr(self._runtime.service, "failure_of", None)
            cause = failure_of(self._link.session_id) if failure_of is not None else None
            raise ToolFailed(f"{self._runtime.name}: {error.message}") from cause


def _error_of(event: ari.Event) -> str:
    """Return why a tool failed; the text for a denied call always says that it was denied."""
    text = event.content
    if event.details.get("denied") and not text.startswith(("denied", "not answered")):
        return f"denied: {text}" if text else "denied"
    return text or "failed"


def _valid_usage(used: ari.Usage) -> ari.Usage:
    """Return the usage of a turn without negative numbers, which are invalid."""
    given = msgspec.structs.asdict(used)
    below = {name: None for name, one in given.items() if isinstance(one, int | float) and one < 0}
    return msgspec.structs.replace(used, **below)
