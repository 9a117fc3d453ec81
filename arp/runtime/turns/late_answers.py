"""`LateAnswers`: what people answered although the turn that asked is over.

Theory of operation. A process ends while a runtime asks several things. After the restart the
answer to one of them begins a turn; the runtime goes on there, and asks all of them again. Each
request then finds, in this order: an answer that it had before the restart (`again`); an answer
that came since, with the turn or behind it, or with an earlier turn whose process ended before it
was taken (`permission`, `component`); or its old question, which the new one replaces. So nothing
shows twice, and each answer reaches one request, once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from arp.protocol.components import Component
from arp.protocol.errors import ArpError
from arp.protocol.json_value import Json, JsonObject
from arp.record.wording import encoded
from arp.runtime.contract import types as ari
from arp.runtime.contract.user_questions import Check
from arp.runtime.turns.linked_session import LinkedSession
from arp.surface.answers import answer_value, check_answer, is_decline
from arp.turn.foreign_names import fitting_name
from arp.turn.question_outcome import DECLINED, Declined
from arp.turn.tool import ToolCall, digest_of

if TYPE_CHECKING:
    from arp.turn.earlier_questions import LateAnswer
    from arp.turn.turn import Turn

MAX_KEPT_BYTES = 4 << 10
"""Of an answer that a restart must find; with a longer one its request is asked again."""


class LateAnswers:
    """The late answers that a turn may take, and the questions of earlier turns that are open.

    Args:
        turn: In which the runtime asks.
        link: The session of the runtime.
    """

    def __init__(self, turn: Turn, link: LinkedSession) -> None:
        self._turn = turn
        self._link = link
        self._earlier = turn._earlier_questions
        # Without a question that is open, or was until now, the runtime was at work when its
        # process ended: what a person allowed for that does not count again.
        was_asking = turn.input.source_component is not None or bool(self._earlier.left_open())
        self._before = dict(link.answered) if was_asking else {}
        """Answers of before a restart that the runtime may have lost."""
        self._lost = [one for one in link.answering if was_asking and one != turn.id]
        """Turns whose input nobody has taken before a restart, so it may answer what is asked."""

    @property
    def are_others_asked(self) -> bool:
        """Whether an earlier turn has asked something else that the runtime may ask again."""
        is_answered = any(True for _ in self._earlier.answers(self._lost))
        return bool(self._before or self._earlier.left_open()) or is_answered

    async def ask(self, component: Component, *, check: Check | None = None) -> Json | Declined:
        """As `Turn.ask`, unless a late input is the answer already.

        Args:
            component: The question.
            check: Refuses an answer that fits the component, but not who asked.
        """
        given = self.component(component, check=check)
        if given is None:
            self.replace_component(component)
            given = await self._turn._ask_checked(component, check)
        return given

    # -- answers of before a restart -------------------------------------------------------------

    def again(
        self, request: ari.PermissionRequest, files: str = ""
    ) -> ari.PermissionResponse | None:
        """Return the answer that exactly this request had before; `None`: it had none."""
        kept = self._before.pop(_key_of(request), None)
        if not isinstance(kept, dict) or kept.get("files") != files:
            return None
        return msgspec.convert(kept.get("response"), ari.PermissionResponse)

    def keep(
        self, request: ari.PermissionRequest, response: ari.PermissionResponse, files: str = ""
    ) -> None:
        """Keep an answer for the next process: the runtime may wait for others meanwhile."""
        key = _key_of(request)
        given: JsonObject = msgspec.to_builtins(response)
        text = encoded(given).decode()
        if self._earlier.has_secret(text) or len(text) > MAX_KEPT_BYTES:
            return
        self._link.keep_answer(key, {"response": given, "files": files})
        self._save()

    def asks(self, request: ari.PermissionRequest) -> None:
        """Note that a request is asked now: what it was answered before is over."""
        if self._link.answered.pop(_key_of(request), None) is not None:
            self._link.remember(self._turn)

    def _save(self) -> None:
        self._link.remember(self._turn)
        self._earlier.save_state()

    # -- answers that came since -----------------------------------------------------------------

    def permission(
        self, request: ari.PermissionRequest, call: ToolCall, files: str
    ) -> ari.PermissionResponse | None:
        """Return what an answer says of exactly this call; `None`: there is none, so ask.

        The answer belongs to a question about the same tool and the same input, and counts if the
        files that the input names are as they were.
        """
        digest = input_digest(request)
        if files == "" or self._link.asked.get(asked_key(call.name, digest)) != files:
            return None
        for answer in self._earlier.answers(self._lost):
            echo = answer.input
            payload, action = echo.data.get("payload"), echo.data.get("action")
            given: JsonObject = payload if isinstance(payload, dict) else {}
            is_same = self._earlier.is_about(echo.source_component or "", call.name, digest)
            if action not in ("confirm", "deny") or not is_same or "updated_input" in given:
                continue
            self._take(answer)
            if action == "confirm":
                return ari.PermissionResponse("allow")
            reason = str(given.get("reason") or "") if request.takes_message else ""
            return ari.PermissionResponse("deny", reason)
        return None

    def component(
        self, asked: Component, mark: str = "", check: Check | None = None
    ) -> Json | Declined:
        """Return the answer to a component that an earlier turn asked; `None`: there is none.

        Args:
            asked: What is asked now.
            mark: As in `EarlierQuestions.asks_same`.
            check: As in `ask`.
        """
        for answer in self._earlier.answers(self._lost):
            echo = answer.input
            source = echo.source_component or ""
            if not source or not self._earlier.asks_same(source, asked, mark):
                continue
            try:
                fitting = check_answer(asked, echo.input_type, echo.data)
                is_declined = is_decline(asked, echo.input_type, echo.data)
                value = DECLINED if is_declined else answer_value(asked, echo.input_type, fitting)
                if check is not None and not is_declined:
                    check(value)
            except ArpError:  # the agent asks something else by now
                continue
            self._take(answer)
            return value
        return None

    def _take(self, answer: LateAnswer) -> None:
        queued = self._earlier.take(answer)
        # What was taken once must not count again, whatever the runtime asks after a restart.
        self._link.answer_taken(answer.turn_id)
        self._link.remember(self._turn)
        if queued:
            self._link.take_answer_of(queued)
            self._save()

    # -- questions that are open still -----------------------------------------------------------

    def replace_permission(self, request: ari.PermissionRequest, call: ToolCall) -> None:
        """Close the open question of an earlier turn that asks for this call."""
        digest = input_digest(request)
        for question in self._earlier.left_open():
            if self._earlier.is_about(question.component_id, call.name, digest):
                self._earlier.replace(question)
                return

    def replace_component(self, asked: Component, mark: str = "") -> None:
        """Close the open question of an earlier turn that asks the same."""
        for question in self._earlier.left_open():
            is_same = self._earlier.asks_same(question.component_id, asked, mark)
            if question.terms is None and is_same:
                self._earlier.replace(question)
                return


def input_digest(request: ari.PermissionRequest) -> str:
    """Return the digest of the input that is shown; facts have it unless there is a secret."""
    return digest_of(encoded(request.tool_input_raw).decode())


def asked_key(tool: str, digest: str) -> str:
    """Return the name under which a link knows the permission to run a tool with an input."""
    return f"{tool} {digest}"


def _key_of(request: ari.PermissionRequest) -> str:
    """Return what names a request also after a restart, where its runtime keeps ids of calls."""
    call, tool = fitting_name(request.tool_call_id, ""), fitting_name(request.tool_name, "tool")
    return f"{call} {asked_key(tool, input_digest(request))}"
