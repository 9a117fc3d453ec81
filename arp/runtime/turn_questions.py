"""`TurnQuestions`: what a runtime asks during a turn, asked of the turn's user.

Theory of operation. Each request of the runtime is asked in a task of its own: its events go on
meanwhile, and several questions can be open. A tool runs only what its user was shown: an approval
is bound to the input by its digest, and to the files that the input names. Whatever goes wrong
while somebody is asked, the runtime gets an answer, and that answer is a denial.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from arp.hub.question_outcome import DECLINED, Declined
from arp.hub.tool import MAX_RULE, Approval, SecondLook, ToolCall, digest_of
from arp.protocol.components import Component
from arp.protocol.errors import ArpError, SurfaceDestroyed
from arp.protocol.json_value import Json, JsonObject
from arp.record.wording import encoded
from arp.runtime import types as ari
from arp.runtime.errors import AriError, InvalidArgument
from arp.runtime.linked_session import LinkedSession, RuntimeHandle
from arp.runtime.named_files import NO_FILES, FileBinding
from arp.runtime.user_questions import (
    AskedOnce,
    ask_user,
    asked_once,
    is_user_question,
    question_mark,
)
from arp.surface.answers import answer_value, check_answer, is_decline
from arp.values.cell import cell_of

if TYPE_CHECKING:
    from arp.hub.turn import Turn

logger = logging.getLogger(__name__)

RULE = "runtime-permission"
"""The rule by which a person is asked, in facts."""
WHICH_RULE = "What may run without asking again?"
ONCE = "Nothing more than this call"
NO_ANSWER = "The user does not answer this question."
"""What the agent is told if its question is declined."""

Asks = Callable[[ari.PermissionRequest], Awaitable[ari.PermissionResponse]]
"""Asks a person, and returns the answer for the runtime."""


class TurnQuestions:
    """Asks the user of a turn what the runtime wants to know, or wants to do.

    Args:
        runtime: What asks.
        turn: Whose user is asked.
        link: The session of the runtime.
        calls: The tool calls that run now, by their ids.
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
        """A task for each question that is open, by the id of its request."""
        self._looking = asyncio.Lock()
        """Held while files are looked at: questions come in the order of their requests."""
        self._used_late = False
        """Whether the input of the turn has answered a permission that an earlier turn asked."""
        self._refusals: dict[str, str] = {}
        """Why a call was not run although it was allowed, by its id."""
        self.unsent: dict[str, str] = {}
        """Reasons of denials that the runtime has not been sent, by what shows them."""
        self.messages: list[str] = []
        """The same, as the runtime is sent them by a message."""

    def ask(self, event: ari.Event) -> None:
        """Ask what a `permission_request` asks, in a task."""
        request = event.permission
        assert request is not None
        if request.request_id in self._open:
            return  # Somebody else has resumed the session, so the runtime asks again.
        task = asyncio.get_running_loop().create_task(self._answer(request, self._way_of(request)))
        self._open[request.request_id] = task
        task.add_done_callback(lambda _: self._open.pop(request.request_id, None))

    def _way_of(self, request: ari.PermissionRequest) -> Asks:
        """Return how a request is asked: as a question, one component, or a permission."""
        if request.kind is ari.PermissionKind.QUESTION and request.takes_updated_input:
            once = asked_once(request.tool_input_raw, request.tool_call_id, self._turn.id)
            if once is not None:
                return partial(self._asked_once, once)
            if is_user_question(request.tool_input_raw):
                return self._question
        return self._permission

    def resolved(self, event: ari.Event) -> None:
        """Withdraw a question that the runtime does not wait for any more."""
        task = self._open.pop(event.request_id, None)
        if task is not None and event.details.get("outcome") in ("cancelled", "expired"):
            task.cancel()

    def stop(self) -> None:
        """Ask no more; what is asked is withdrawn, unless the server stops."""
        for task in list(self._open.values()):
            task.cancel()

    def refusal_of(self, tool_call_id: str) -> str:
        """Return why an approved call was not run after all; empty: it was. It is returned once."""
        return self._refusals.pop(tool_call_id, "")

    async def _question(self, request: ari.PermissionRequest) -> ari.PermissionResponse:
        """Ask what the agent wants to know."""
        answered = await ask_user(self._turn, request.tool_input_raw)
        if answered is not None:
            return ari.PermissionResponse("allow", updated_input=answered)
        return ari.PermissionResponse("deny", NO_ANSWER if request.takes_message else "")

    async def _asked_once(
        self, once: AskedOnce, request: ari.PermissionRequest
    ) -> ari.PermissionResponse:
        """Ask one thing, unless the input of the turn is its answer already."""
        late = self._late_answer(once, request)
        if late is None:
            if once.about:
                items = [{"key": name, "value": cell_of(one)} for name, one in once.about.items()]
                self._turn.show(Component("", "key-value", {"items": items}))
            late = await self._turn.ask(once.component, can_decline=once.can_decline)
        if late is DECLINED:
            return ari.PermissionResponse("deny", NO_ANSWER)
        answered = {**request.tool_input_raw, "answer": once.answer(late)}
        return ari.PermissionResponse("allow", updated_input=answered)

    def _late_answer(self, once: AskedOnce, request: ari.PermissionRequest) -> Json | Declined:
        """Return the turn's input if it answers this question, which an earlier turn asked."""
        echo = self._turn.input
        asked_by = echo.source_component or ""
        if not asked_by.startswith(question_mark(request.tool_call_id)):
            return None
        try:
            fitting = check_answer(once.component, echo.input_type, echo.data)
        except ArpError:  # the agent asks something else by now
            return None
        if is_decline(once.component, echo.input_type, echo.data):
            return DECLINED
        return answer_value(once.component, echo.input_type, fitting)

    async def _permission(self, request: ari.PermissionRequest) -> ari.PermissionResponse:
        """Ask a person whether a tool may run: what it runs is what was approved."""
        rules = {one.label: one for one in request.rules if len(one.label) <= MAX_RULE}
        call = self._calls[request.tool_call_id]
        title = f"{call.name}: {request.tool_input_summary}".rstrip(": ")
        binding = FileBinding(request, self._link.cwd, call.hides)
        rule: ari.PermissionRule | None = None

        async def still_fits(approval: Approval) -> SecondLook:
            nonlocal rule
            if approval.scope == "session":
                rule = await self._chosen_rule(rules)
            return await binding.again(approval)

        async with self._looking:
            files = await binding.look()
        if (late := self._late_permission(request, call, binding.mark)) is not None:
            return late
        self._link.asks_for(_digest_of(request), binding.mark)
        self._link.remember(self._turn)
        approval = await call.ask_permission(
            title,
            rule=RULE,
            reason=request.message or None,
            input=request.tool_input_raw,
            session_rule=_offered(list(rules)),
            keeps_grant=False,
            editable=request.takes_updated_input,
            timeout_s=_seconds_until(request),
            files=files,
            recheck=still_fits,
            message=request.message or None,
        )
        if binding.refusal:
            self._refusals[request.tool_call_id] = binding.refusal
        if approval.allowed:
            return ari.PermissionResponse(
                "allow",
                updated_input=approval.updated_input,
                rule_id=rule.rule_id if rule is not None else "",
            )
        if approval.reason and not request.takes_message:
            if approval.decision == "deny":
                self._send_later(title, approval.reason)
            return ari.PermissionResponse("deny")
        return ari.PermissionResponse("deny", message=approval.reason)

    def _late_permission(
        self, request: ari.PermissionRequest, call: ToolCall, files: str
    ) -> ari.PermissionResponse | None:
        """Return what the turn's input says of exactly this call; `None`: nothing, so ask.

        The question was asked by a turn that a restart cut off. Its answer names the input that was
        shown by its digest, and counts once, if the files that the input names are as they were.
        """
        data = self._turn.input.data
        payload, action = data.get("payload"), data.get("action")
        given: JsonObject = payload if isinstance(payload, dict) else {}
        digest = _digest_of(request)
        is_it = given.get("digest") == digest and "updated_input" not in given
        is_same = files != "" and self._link.asked.get(digest, NO_FILES) == files
        if self._used_late or action not in ("confirm", "deny") or not (is_it and is_same):
            return None
        self._used_late = True
        permission = call.record.permission(call.name)
        if action == "confirm":
            permission.evaluated("allow", "person", "user", digest=digest)
            return ari.PermissionResponse("allow")
        permission.evaluated("deny", "person", "user", digest=digest)
        reason = str(given.get("reason") or "") if request.takes_message else ""
        return ari.PermissionResponse("deny", reason)

    async def _chosen_rule(
        self, rules: Mapping[str, ari.PermissionRule]
    ) -> ari.PermissionRule | None:
        """Return which rule is to hold; of several, the person chooses one."""
        if len(rules) == 1:
            return next(iter(rules.values()))
        props: JsonObject = {"title": WHICH_RULE, "options": [*rules, ONCE], "style": "list"}
        return rules.get(str(await self._turn.ask(Component("", "choices", props))))

    async def _answer(self, request: ari.PermissionRequest, ask: Asks) -> None:
        """Ask a person, and give the runtime the answer."""
        try:
            response = await ask(request)
            await self._runtime.service.respond_permission(
                ari.RespondPermissionRequest(self._link.session_id, request.request_id, response)
            )
        except InvalidArgument as refused:
            # Such as an agent of ACP that offers no permission for one call alone.
            self._turn.show(Component("", "text", {"content": f"Nothing ran: {refused.message}"}))
            await self._deny(request)
        except AriError as failed:  # the runtime has withdrawn it: nothing runs
            logger.debug("permission %s: %s", request.request_id, failed.message)
        except SurfaceDestroyed:  # the turn was over before the answer counted
            await self._deny(request)
        except Exception:
            # Nobody can be asked: the runtime must not wait for ever, and nothing may run.
            logger.exception("permission %s cannot be asked", request.request_id)
            await self._deny(request)

    async def _deny(self, request: ari.PermissionRequest) -> None:
        """Deny what cannot be answered otherwise, unless the next process asks it again."""
        if self._turn._leaves_questions_open:
            return
        denial = ari.PermissionResponse("deny")
        with suppress(AriError):
            await self._runtime.service.respond_permission(
                ari.RespondPermissionRequest(self._link.session_id, request.request_id, denial)
            )

    def _send_later(self, title: str, reason: str) -> None:
        """Keep why something was denied, for a message when the runtime has stopped."""
        shown = Component("", "text", {"content": f"{self._runtime.name} is told next: {reason}"})
        self.unsent[self._turn.show(shown)] = reason
        self.messages.append(f"I have denied {title!r}: {reason}")

    def show_whether_sent(self, what: str) -> None:
        """Say of each reason for a denial whether the runtime got it.

        Args:
            what: `was told` or `was not told`, as it is shown.
        """
        for shown, reason in self.unsent.items():
            props: JsonObject = {"content": f"{self._runtime.name} {what}: {reason}"}
            self._turn.show(Component(shown, "text", props))
        self.unsent.clear()


def _digest_of(request: ari.PermissionRequest) -> str:
    """Return the digest of the input that is shown; facts have it unless there is a secret."""
    return digest_of(encoded(request.tool_input_raw).decode())


def _offered(labels: Sequence[str]) -> str | None:
    """Return what is offered for the session, in one sentence; of several, which one is asked."""
    if len(labels) < 2:
        return labels[0] if labels else None
    text = f"One of these, which you choose next: {'; '.join(labels)}"
    return text if len(text) <= MAX_RULE else f"One of {len(labels)} rules, which are shown next"


def _seconds_until(request: ari.PermissionRequest) -> float | None:
    """Return how long a request may stay open, in seconds; `None`: for ever."""
    if not request.deadline_ns:
        return None
    return max((request.deadline_ns - time.time_ns()) / 1e9, 0.001)
