"""`Approver`: asks a person to approve inputs of one tool call, and records the decisions.

Theory of operation. The question shows the whole input, and its facts name the input by its digest.
The answer becomes an `Approval` of exactly that input, or of the input as the person edited it.
While the person thinks, files that the input names may change. So `recheck` may check them after a
yes, and its refusal overrides the yes. A question that ends without an answer allows nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec

from arp.protocol.components import Component
from arp.protocol.errors import ResourceLimit, SurfaceDestroyed
from arp.protocol.json_value import Json
from arp.record.wording import check_kind, json_text, well_formed
from arp.session.approval import ApprovalAnswer, ApprovalRequest, Grant
from arp.session.session import QuestionOptions
from arp.turn.approval.approval import Approval, PermissionOptions, RecheckResult
from arp.turn.foreign_components import SHARE
from arp.turn.host import TurnHost
from arp.turn.question_outcome import deadline_of

if TYPE_CHECKING:
    from arp.record.recorder import Recorder
    from arp.record.work import RecordedPermission

MAX_RULE: Final = 1_000
"""Most characters of a session rule, because a person has to read it."""

RECHECK: Final = "second-look"
"""Policy, in facts, that overrides a person's approval."""

_NOT_PROPS: Final = frozenset(
    ("reason", "session_rule", "keeps_grant", "editable", "timeout_s", "files", "recheck")
)
"""Options that are not props of the `confirm` component."""


class Approver:
    """Asks a person to approve inputs of one tool call.

    Args:
        host: The turn of the call.
        tool: Name of the tool.
        ids: Correlation ids of the call, by field name.
        record: Recorder of the facts of the call.
    """

    def __init__(self, host: TurnHost, tool: str, ids: Mapping[str, str], record: Recorder) -> None:
        self._host = host
        self._session = host.session
        self._tool = tool
        self._ids = ids
        self._record = record

    def hides(self, text: str) -> bool:
        """Return whether a text holds a secret, which facts and screens only show as a mark."""
        check_kind(text, str, "text")
        return bool(self._session.log.redactor.clean(text)[1])

    def check_size(self, value: Json) -> None:
        """Check that an input fits into a message; a person cannot approve what is not shown.

        Raises:
            ResourceLimit: It is too large.
        """
        size = len(json_text(value).encode())
        most = self._session.rules.limits.max_message_bytes // SHARE
        if size > most:
            raise ResourceLimit(
                f"the input of {self._tool} has {size:,} bytes; at most {most:,} can be approved",
                detail="max_message_bytes",
            )

    def question_for(
        self, shown: Approval, rule: str, call_input: str, options: PermissionOptions
    ) -> QuestionOptions:
        """Return what is recorded of a question.

        Args:
            shown: The undecided approval of the input.
            rule: Name of the rule that requires a person's approval.
            call_input: Arguments of the call as JSON.
            options: Options of the author.

        Raises:
            TypeError, ValueError: An option is invalid.
        """
        editable = options.get("editable", False)
        if editable and not isinstance(shown.args, dict):
            raise ValueError("editable: only an input that is an object can be edited")
        session_rule, expires_at = (
            options.get("session_rule"),
            deadline_of(options.get("timeout_s")),
        )
        keeps_grant = session_rule is not None and options.get("keeps_grant", True)
        if keeps_grant and options.get("recheck") is not None:
            raise ValueError("recheck: a session_rule with it needs keeps_grant=False")
        request = ApprovalRequest(
            self._tool,
            self._ids,
            rule,
            shown.digest,
            # The renderer already shows the input of the call; only another one is repeated.
            shown.input if shown.input != call_input else None,
            None if session_rule is None else _checked_rule(session_rule),
            # A secret is shown as a mark, and a person cannot approve an input that is not shown.
            bool(editable) and not shown.salt,
        )
        return QuestionOptions(expires_at=expires_at, request=request)

    async def ask(
        self, title: str, shown: Approval, question: QuestionOptions, options: PermissionOptions
    ) -> Approval:
        """Ask a person, unless a grant of the session allows the input; record the decision.

        Args:
            title: Text of the question.
            shown: The undecided approval of the input.
            question: Result of `question_for`.
            options: Options of the author.

        Cancel: Safe; a cancelled question is not an approval.
        """
        request = question.request
        assert request is not None
        permission = self._record.permission(self._tool)
        granted = request.session_rule and Grant(self._tool, request.session_rule)
        # With `keeps_grant=False` the caller checks its own grants; a grant here would bypass it.
        if options.get("keeps_grant", True) and granted in self._session.settings.grants:
            permission.evaluated("allow", "person", "user", scope="session", digest=shown.digest)
            return msgspec.structs.replace(shown, decision="allow", scope="session")
        permission.evaluated("ask", "rule", request.rule)
        permission.requested(
            options.get("reason"),
            digest=shown.digest,
            sessionRule=request.session_rule,
            editable=request.editable or None,
            expiresAt=question.expires_at,
            files=options.get("files") or None,
        )
        ids = {**self._ids, "request_id": permission.request_id or ""}
        question = msgspec.structs.replace(
            question, request=msgspec.structs.replace(request, ids=ids)
        )
        try:
            answer = await self._answer(_component(title, options), question)
            approval = shown.decided(answer, self.hides)
            recheck, result = options.get("recheck"), RecheckResult()
            # A person needs time to answer; a file that the input names may have changed since.
            if recheck is not None and approval.allowed:
                result = await recheck(approval)
        except BaseException:
            # If the server stops, the question stays open. Its answer must not follow a refusal.
            if not self._host.is_left_open:
                with suppress(SurfaceDestroyed):
                    permission.unanswered("cancelled", digest=shown.digest)
            raise
        return _record_decision(permission, approval, result)

    async def _answer(
        self, component: Component, question: QuestionOptions
    ) -> ApprovalAnswer | None:
        """Show a question and return its answer; `None` if it was closed without one."""
        asked = self._host.ask(component, question)
        outcome = await self._host.outcome_of(asked, withdraws=True)
        # The turn may have ended while the answer was on its way. Then it is no approval.
        self._host.check_running()
        return ApprovalAnswer.of(outcome.value) if outcome.kind == "answered" else None


def _component(title: str, options: PermissionOptions) -> Component:
    """Return the component of a question."""
    props = {
        name: value
        for name, value in options.items()
        if name not in _NOT_PROPS and value is not None
    }
    return Component("", "confirm", {"title": title, **props})


def _record_decision(
    permission: RecordedPermission, approval: Approval, result: RecheckResult
) -> Approval:
    """Record a decision and return it; a refusal by `recheck` overrides an approval."""
    digest = approval.digest
    if result.refusal:
        permission.refused(RECHECK, result.refusal, digest=digest, files=result.files)
        return approval.refused(result.refusal)
    if approval.decision == "expired":
        permission.unanswered("expired", digest=digest)
    elif approval.decision == "deny":
        permission.denied("person", "user", digest=digest, reason=approval.reason or None)
    else:
        permission.allowed(
            scope=approval.scope, digest=digest, edited=approval.edited, files=result.files
        )
    return approval


def _checked_rule(text: str) -> str:
    """Return a validated session rule."""
    if not isinstance(text, str):
        raise TypeError(f"session_rule: expected a text, got {type(text).__name__}")
    formed = well_formed(text)
    if not formed.strip() or len(formed) > MAX_RULE:
        raise ValueError(f"session_rule: expected 1 to {MAX_RULE} characters that can be read")
    return formed
