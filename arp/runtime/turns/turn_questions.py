"""`TurnQuestions`: asks the user of a turn the questions and permission requests of a runtime.

Theory of operation. Each request of the runtime is asked in a separate task, so the turn's events
continue meanwhile, and several questions can be open. A tool runs only with the input that the user
saw: an approval is bound to the digest of the input and to the files that the input names. If
anything fails while a person is asked, the runtime gets a denial.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from arp.protocol.components import Component
from arp.protocol.errors import ArpError, SurfaceDestroyed
from arp.protocol.json_value import JsonObject
from arp.record.wording import encoded
from arp.runtime.contract import types as ari
from arp.runtime.contract.errors import AriError, InvalidArgument
from arp.runtime.contract.feed import one_line
from arp.runtime.contract.user_questions import (
    SingleQuestion,
    ask_user,
    is_user_question,
    question_mark,
    single_question,
)
from arp.runtime.turns.late_answers import LateAnswers, asked_key, input_digest
from arp.runtime.turns.linked_session import LinkedSession, RuntimeHandle
from arp.surface.schema_slot import distinct
from arp.turn.approval.approval import Approval, RecheckResult, digest_of
from arp.turn.approval.approver import MAX_RULE
from arp.turn.approval.file_binding import FileBinding
from arp.turn.foreign_names import shortened
from arp.turn.question_outcome import DECLINED
from arp.turn.tool import ToolCall
from arp.values.cell import cell_of

if TYPE_CHECKING:
    from arp.turn.turn import Turn

logger = logging.getLogger(__name__)

RULE = "runtime-permission"
"""Name of the rule that requires a person's approval, in facts."""
WHICH_RULE = "What may run without asking again?"
ONCE = "Nothing more than this call"
WHICH_WAY = "How is it allowed?"
NO_WAY = "Not at all: deny it"
NOT_CHOSEN = "The user chose none of the ways to allow it."
MAX_RULE_ID = 100
"""Characters of a rule's id that are shown if several rules have the same label."""
MAX_SHOWN_REASON = 500
"""Characters that are shown of the reason why nothing ran."""
NO_ANSWER = "The user does not answer this question."
"""Text for the agent if its question is declined."""

Asks = Callable[[ari.PermissionRequest], Awaitable[ari.PermissionResponse]]
"""Function that asks a person and returns the answer for the runtime."""


class TurnQuestions:
    """The questions and permission requests of a runtime to the user of a turn.

    Args:
        runtime: Runtime that asks.
        turn: Turn of the user.
        link: Session of the runtime.
        calls: Running tool calls, by id.
    """

    def __init__(
        self,
        runtime: RuntimeHandle,
        turn: Turn,
        link: LinkedSession,
        calls: Mapping[str, ToolCall],
    ) -> None:
        self._runtime = runtime
        self._turn = turn
        self._link = link
        self._calls = calls
        self._open: dict[str, asyncio.Task[None]] = {}
        """Tasks of the open questions, by request id."""
        self._reading_files = asyncio.Lock()
        """Held while files are read, so that questions keep the order of their requests."""
        self._late = LateAnswers(turn, link)
        self._refusals: dict[str, str] = {}
        """Reasons why approved calls were not run, by call id."""
        self.unsent: dict[str, str] = {}
        """Reasons of denials that the runtime has not received, by the id of the component that
        shows them."""
        self.messages: list[str] = []
        """The same reasons as messages to the runtime."""

    def ask(self, event: ari.Event) -> None:
        """Start a task that asks the request of a `permission_request` event."""
        request = event.permission
        assert request is not None
        if request.request_id in self._open:
            return  # Another client has resumed the session, so the runtime repeats its requests.
        task = asyncio.get_running_loop().create_task(self._answer(request))
        self._open[request.request_id] = task
        task.add_done_callback(lambda _: self._open.pop(request.request_id, None))

    def _method_for(self, request: ari.PermissionRequest) -> Asks:
        """Return the method that asks a request: as a question, or as a permission."""
        if request.kind is ari.PermissionKind.QUESTION and request.takes_updated_input:
            question = single_question(request.tool_input_raw, request.tool_call_id, self._turn.id)
            if question is not None or is_user_question(request.tool_input_raw):
                return self._ask_question
        return self._ask_permission

    def resolved(self, event: ari.Event) -> None:
        """Withdraw a question that the runtime no longer waits for."""
        task = self._open.pop(event.request_id, None)
        if task is not None and event.details.get("outcome") in ("cancelled", "expired"):
            task.cancel()

    def stop(self) -> None:
        """Cancel the tasks of all open questions.

        This withdraws the questions. If the server stops, they stay open for the next process.
        """
        for task in list(self._open.values()):
            task.cancel()

    def refusal_of(self, tool_call_id: str) -> str:
        """Return and forget the reason why an approved call was not run; empty if there is none."""
        return self._refusals.pop(tool_call_id, "")

    async def _ask_question(self, request: ari.PermissionRequest) -> ari.PermissionResponse:
        """Ask a question of the agent, unless it was answered before a restart."""
        if (known := self._late.again(request)) is not None:
            return self._keep(request, known)
        self._late.asks(request)
        question = single_question(request.tool_input_raw, request.tool_call_id, self._turn.id)
        if question is not None:
            return self._keep(request, await self._ask_component(question, request))
        answered = await ask_user(self._late, request.tool_input_raw)
        if answered is not None:
            return self._keep(request, ari.PermissionResponse("allow", updated_input=answered))
        denial = ari.PermissionResponse("deny", NO_ANSWER if request.takes_message else "")
        return self._keep(request, denial)

    async def _ask_component(
        self, question: SingleQuestion, request: ari.PermissionRequest
    ) -> ari.PermissionResponse:
        """Ask one question, unless a late input already answers it."""
        # A turn that the runtime continues has its original calls, so the call id identifies the
        # question. A new turn may use the id for another question, so the contents are compared.
        is_new = request.turn_id == self._link.sent_turn
        mark = "" if is_new else question_mark(request.tool_call_id)
        given = self._late.component(question.component, mark, question.check)
        if given is None:
            self._late.replace_component(question.component, mark)
            if question.about:
                items = [
                    {"key": name, "value": cell_of(one)} for name, one in question.about.items()
                ]
                self._turn.show(Component("", "key-value", {"items": items}))
            given = await self._turn._ask_checked(question.component, question.check)
        answer = DECLINED if given is DECLINED else question.answer(given)
        if answer is DECLINED:
            return ari.PermissionResponse("deny", NO_ANSWER)
        answered = {**request.tool_input_raw, "answer": answer}
        return ari.PermissionResponse("allow", updated_input=answered)

    def _keep(
        self, request: ari.PermissionRequest, response: ari.PermissionResponse, files: str = ""
    ) -> ari.PermissionResponse:
        """Return an answer, and store it if another question is open.

        Without that, a restart could lose the answer while the runtime waits for the other one.
        """
        if len(self._open) > 1 or self._late.are_others_asked:
            self._late.keep(request, response, files)
        return response

    async def _ask_permission(self, request: ari.PermissionRequest) -> ari.PermissionResponse:
        """Ask a person for permission; the tool runs only with the input that was approved."""
        rules = self._rules_by_label(request.rules)
        call = self._calls[request.tool_call_id]
        call.check_size(request.tool_input_raw)  # before its files are looked up
        title = f"{call.name}: {one_line(request.tool_input_summary)}".rstrip(": ")
        is_command = request.kind is ari.PermissionKind.COMMAND
        shown, cwd = request.tool_input_raw, self._link.cwd
        binding = FileBinding(shown, cwd, call.hides, is_command=is_command)
        ways = _ways_by_label(request.ways)
        chosen = ""

        async def still_fits(approval: Approval) -> RecheckResult:
            nonlocal chosen
            if approval.scope == "session":
                rule = await self._ask_rule(rules)
                chosen = rule.rule_id if rule is not None else ""
            if ways and not chosen:
                chosen = await self._ask_way(ways)
                if not chosen:
                    return RecheckResult(NOT_CHOSEN)
            return await binding.recheck(approval)

        # Reading files takes time that varies. Without the lock, a later request could be shown
        # before an earlier one.
        async with self._reading_files:
            files = await binding.look()
        late = self._late
        known = late.again(request, binding.mark) or late.permission(request, call, binding.mark)
        if known is not None:
            if ways and known.decision == "allow" and not known.rule_id:
                chosen = await self._ask_way(ways)
                known = _with_way(chosen, known)
            return self._keep(request, self._record_answer(request, call, known), binding.mark)
        self._link.asks_for(asked_key(call.name, input_digest(request)), binding.mark)
        self._link.remember(self._turn)
        late.asks(request)
        late.replace_permission(request, call)
        approval = await call.ask_permission(
            title,
            rule=RULE,
            reason=request.message or None,
            input=request.tool_input_raw,
            session_rule=_session_rule_text(list(rules)),
            keeps_grant=False,
            editable=request.takes_updated_input,
            timeout_s=_seconds_until(request),
            files=files,
            recheck=still_fits,
            message=_message_with_ways(request.message, list(ways)) or None,
        )
        if binding.refusal:
            self._refusals[request.tool_call_id] = binding.refusal
        if approval.allowed:
            changed = approval.updated_input
            allowed = ari.PermissionResponse("allow", updated_input=changed, rule_id=chosen)
            return self._keep(request, allowed, binding.mark)
        return self._keep(request, self._denial(request, approval, title), binding.mark)

    def _denial(
        self, request: ari.PermissionRequest, approval: Approval, title: str
    ) -> ari.PermissionResponse:
        """Return the denial for the runtime; a reason that it cannot receive is sent later."""
        if approval.reason and not request.takes_message:
            if approval.decision == "deny":
                self._send_later(title, approval.reason)
            return ari.PermissionResponse("deny")
        return ari.PermissionResponse("deny", message=approval.reason)

    def _record_answer(
        self, request: ari.PermissionRequest, call: ToolCall, given: ari.PermissionResponse
    ) -> ari.PermissionResponse:
        """Record an answer to an earlier question, and return it."""
        digest = input_digest(request)
        if given.updated_input is not None:
            digest = digest_of(encoded(given.updated_input).decode())
        call.record.permission(call.name).evaluated(given.decision, "person", "user", digest=digest)
        return given

    async def _ask_rule(self, rules: Mapping[str, ari.PermissionRule]) -> ari.PermissionRule | None:
        """Return the rule to allow; if there are several, the person chooses one."""
        if len(rules) == 1:
            return next(iter(rules.values()))
        props: JsonObject = {"title": WHICH_RULE, "options": [*rules, ONCE], "style": "list"}
        return rules.get(str(await self._turn.ask(Component("", "choices", props))))

    async def _ask_way(self, ways: Mapping[str, str]) -> str:
        """Return the id of the way to allow a call; empty if the person chooses none."""
        props: JsonObject = {"title": WHICH_WAY, "options": [*ways, NO_WAY], "style": "list"}
        return ways.get(str(await self._turn.ask(Component("", "choices", props))), "")

    def _rules_by_label(self, rules: Iterable[ari.PermissionRule]) -> dict[str, ari.PermissionRule]:
        """Return rules by labels that people can distinguish.

        A rule is offered completely or not at all: a person must not allow text that they could not
        read.
        """
        fitting: list[ari.PermissionRule] = []
        for one in rules:
            if one.label.strip() and len(one.label) <= MAX_RULE - MAX_RULE_ID:
                fitting.append(one)
            else:
                what = f"of {len(one.label)} characters is not offered; expected 1 to {MAX_RULE}"
                self._link.warn(self._turn.record, [f"a rule {what}"])
        ids = [shortened(one.rule_id, MAX_RULE_ID) for one in fitting]
        return dict(zip(distinct([one.label for one in fitting], ids), fitting, strict=True))

    async def _answer(self, request: ari.PermissionRequest) -> None:
        """Ask a person, and send the answer to the runtime."""
        try:
            response = await self._method_for(request)(request)
            await self._runtime.service.respond_permission(
                ari.RespondPermissionRequest(self._link.session_id, request.request_id, response)
            )
        except InvalidArgument as refused:
            # For example, an agent of ACP that offers no permission for a single call.
            self._show_refused(refused.message)
            await self._deny(request)
        except AriError as failed:  # the runtime has withdrawn the request: nothing runs
            logger.debug("permission %s: %s", request.request_id, failed.message)
        except SurfaceDestroyed:  # the turn ended before the answer took effect
            await self._deny(request)
        except Exception as failed:
            # No person can be asked. The runtime must not wait for ever, and nothing may run.
            logger.exception("permission %s cannot be asked", request.request_id)
            reason = failed.message if isinstance(failed, ArpError) else type(failed).__name__
            self._show_refused(f"{request.tool_name} cannot be asked for: {reason}")
            await self._deny(request)

    def _show_refused(self, why: str) -> None:
        """Show that nothing ran, and why; nothing is shown if the turn has ended."""
        with suppress(SurfaceDestroyed):
            content = shortened(f"Nothing ran: {why}", MAX_SHOWN_REASON)
            self._turn.show(Component("", "text", {"content": content}))

    async def _deny(self, request: ari.PermissionRequest) -> None:
        """Deny a request that cannot be answered, unless the next process will ask it again."""
        if self._turn._leaves_questions_open:
            return
        denial = ari.PermissionResponse("deny")
        with suppress(AriError):
            await self._runtime.service.respond_permission(
                ari.RespondPermissionRequest(self._link.session_id, request.request_id, denial)
            )

    def _send_later(self, title: str, reason: str) -> None:
        """Keep the reason of a denial.

        It is sent as a message when the runtime's turn has ended: ACP has no field for the reason
        of a denial, and cancelling the turn would also stop what runs beside the call.
        """
        shown = Component("", "text", {"content": f"{self._runtime.name} receives next: {reason}"})
        self.unsent[self._turn.show(shown)] = reason
        self.messages.append(f"I have denied {title!r}: {reason}")

    def show_whether_sent(self, what: str) -> None:
        """Show for each reason of a denial whether the runtime has received it.

        Args:
            what: Text to show: `has received` or `has not received`.
        """
        for shown, reason in self.unsent.items():
            props: JsonObject = {"content": f"{self._runtime.name} {what}: {reason}"}
            self._turn.show(Component(shown, "text", props))
        self.unsent.clear()


def _session_rule_text(labels: Sequence[str]) -> str | None:
    """Return one sentence about the rules for the session; `None` if there are no rules.

    If there are several rules, the person chooses one of them next.
    """
    if len(labels) < 2:
        return labels[0] if labels else None
    text = f"One of these, which you choose next: {'; '.join(labels)}"
    return text if len(text) <= MAX_RULE else f"One of {len(labels)} rules, which are shown next"


def _ways_by_label(ways: Sequence[ari.Choice]) -> dict[str, str]:
    """Return the ids of ways by labels that people can distinguish."""
    labels = [shortened(one_line(way.label) or way.id, MAX_RULE) for way in ways]
    unique = distinct(labels, [shortened(way.id, MAX_RULE_ID) for way in ways])
    return {label: way.id for label, way in zip(unique, ways, strict=True)}


def _message_with_ways(message: str, labels: Sequence[str]) -> str:
    """Return the message of a permission request, followed by the labels of the ways to allow it.

    If the person allows the call, the next question asks for one of these ways.
    """
    if not labels:
        return message
    text = f"If you allow it, you choose next how: {'; '.join(labels)}."
    return f"{message}\n{text}" if message else text


def _with_way(chosen: str, allowed: ari.PermissionResponse) -> ari.PermissionResponse:
    """Return an earlier answer with the way that was chosen now; a denial if none was chosen."""
    if not chosen:
        return ari.PermissionResponse("deny")
    return msgspec.structs.replace(allowed, rule_id=chosen)


def _seconds_until(request: ari.PermissionRequest) -> float | None:
    """Return the seconds until a request expires; `None` if it does not expire."""
    if not request.deadline_ns:
        return None
    return max((request.deadline_ns - time.time_ns()) / 1e9, 0.001)
