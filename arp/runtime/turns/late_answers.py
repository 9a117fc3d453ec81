"""`LateAnswers`: matches answers to questions of a turn that has already ended.

Theory of operation. A process can end while several requests of a runtime are open. After the
restart, an answer to one of them begins a turn. In that turn the runtime continues, and repeats all
its requests. For each of them this class looks, in this order, for:

1. an answer from before the restart (`again`);
2. an answer that came later: the input of this turn, of a queued turn, or of an earlier turn that
   another restart ended before its answer was used (`permission`, `component`);
3. the old question, which the new one replaces.

So no question is shown twice, and each answer is given to one request, once.
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
from arp.session.approval import ApprovalAnswer
from arp.surface.answers import answer_value, check_answer, is_decline
from arp.turn.approval.approval import digest_of
from arp.turn.foreign_names import fitting_name
from arp.turn.question_outcome import DECLINED, Declined
from arp.turn.tool import ToolCall

if TYPE_CHECKING:
    from arp.turn.earlier_questions import LateAnswer
    from arp.turn.turn import Turn

MAX_KEPT_BYTES = 4 << 10
"""Largest answer that is stored for a restart, in bytes. For a larger one, the request is asked
again."""


class LateAnswers:
    """The late answers that a turn may use, and the open questions of earlier turns.

    Args:
        turn: Turn of the runtime's questions.
        link: Session of the runtime.
    """

    def __init__(self, turn: Turn, link: LinkedSession) -> None:
        self._turn = turn
        self._link = link
        self._earlier = turn._earlier_questions
        # If this turn answers no question and none is open, the runtime was not waiting when its
        # process ended. An earlier approval must then not count again.
        was_asking = turn.input.source_component is not None or bool(self._earlier.left_open())
        self._before = dict(link.answered) if was_asking else {}
        """Answers from before a restart that the runtime may have lost."""
        self._unused_turns = [one for one in link.answering if was_asking and one != turn.id]
        """Turns that began with an answer that the runtime may have missed before a restart."""

    @property
    def are_others_asked(self) -> bool:
        """Whether an earlier turn has another question that the runtime may ask again."""
        is_answered = any(True for _ in self._earlier.answers(self._unused_turns))
        return bool(self._before or self._earlier.left_open()) or is_answered

    async def ask(self, component: Component, *, check: Check | None = None) -> Json | Declined:
        """Ask like `Turn.ask`, unless a late input already answers the question.

        Args:
            component: The question.
            check: Additional validation of the answer; raises `InvalidAnswer`.
        """
        given = self.component(component, check=check)
        if given is None:
            self.replace_component(component)
            given = await self._turn._ask_checked(component, check)
        return given

    # -- answers from before a restart -----------------------------------------------------------

    def again(
        self, request: ari.PermissionRequest, files: str = ""
    ) -> ari.PermissionResponse | None:
        """Return the earlier answer to exactly this request; `None` if it had none.

        The answer does not count if the files that the input names have changed since.

        Args:
            request: The request.
            files: Mark of the files that its input names.
        """
        kept = self._before.pop(_key_of(request), None)
        if not isinstance(kept, dict) or kept.get("files") != files:
            return None
        return msgspec.convert(kept.get("response"), ari.PermissionResponse)

    def keep(
        self, request: ari.PermissionRequest, response: ari.PermissionResponse, files: str = ""
    ) -> None:
        """Store an answer for the next process.

        An answer with a secret, or above `MAX_KEPT_BYTES`, is not stored: after a restart, the
        person is asked again.
        """
        key = _key_of(request)
        given: JsonObject = msgspec.to_builtins(response)
        text = encoded(given).decode()
        if self._earlier.has_secret(text) or len(text) > MAX_KEPT_BYTES:
            return
        self._link.keep_answer(key, {"response": given, "files": files})
        self._save()

    def asks(self, request: ari.PermissionRequest) -> None:
        """Record that a request is open now; an earlier answer to it no longer counts."""
        if self._link.answered.pop(_key_of(request), None) is not None:
            self._link.remember(self._turn)

    def _save(self) -> None:
        self._link.remember(self._turn)
        self._earlier.save_state()

    # -- later answers ---------------------------------------------------------------------------

    def permission(
        self, request: ari.PermissionRequest, call: ToolCall, files: str
    ) -> ari.PermissionResponse | None:
        """Return the late answer to exactly this call; `None` if there is none.

        The answer must belong to a question about the same tool and the same input, and the files
        that the input names must not have changed.
        """
        digest = input_digest(request)
        # An empty mark means that the state of the files is unknown: the approval may be for other
        # contents, so the person is asked again.
        if files == "" or self._link.asked.get(asked_key(call.name, digest)) != files:
            return None
        for answer in self._earlier.answers(self._unused_turns):
            echo = answer.input
            given, action = ApprovalAnswer.of(echo.data), echo.data.get("action")
            is_same = self._earlier.is_about(echo.source_component or "", call.name, digest)
            is_edited = given.updated_input is not None
            if action not in ("confirm", "deny") or not is_same or is_edited:
                continue
            self._use(answer)
            if given.allows:
                return ari.PermissionResponse("allow")
            return ari.PermissionResponse("deny", given.reason if request.takes_message else "")
        return None

    def component(
        self, asked: Component, mark: str = "", check: Check | None = None
    ) -> Json | Declined:
        """Return the late answer to a component of an earlier turn; `None` if there is none.

        Args:
            asked: The component of the new question.
            mark: Prefix of component ids, as in `EarlierQuestions.asks_same`.
            check: Additional validation, as in `ask`.
        """
        for answer in self._earlier.answers(self._unused_turns):
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
            except ArpError:  # the new question differs from the old one, so ask it
                continue
            self._use(answer)
            return value
        return None

    def _use(self, answer: LateAnswer) -> None:
        queued = self._earlier.mark_used(answer)
        # A used answer must not count again, whatever the runtime asks after a restart.
        self._link.answer_received(answer.turn_id)
        self._link.remember(self._turn)
        if queued:
            self._link.mark_answer_used(queued)
            self._save()

    # -- open questions of earlier turns ---------------------------------------------------------

    def replace_permission(self, request: ari.PermissionRequest, call: ToolCall) -> None:
        """Close the open question of an earlier turn about the same call."""
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
    """Return the digest of the input; facts contain it unless the input has a secret."""
    return digest_of(encoded(request.tool_input_raw).decode())


def asked_key(tool: str, digest: str) -> str:
    """Return the key of a link's open permission to run a tool with an input."""
    return f"{tool} {digest}"


def _key_of(request: ari.PermissionRequest) -> str:
    """Return the key of a request; it is the same after a restart if the call ids are the same."""
    call, tool = fitting_name(request.tool_call_id, ""), fitting_name(request.tool_name, "tool")
    return f"{call} {asked_key(tool, input_digest(request))}"
