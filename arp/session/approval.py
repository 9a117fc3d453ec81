"""Permission for a tool call: the request, the terms of its answer, and the answer.

Theory of operation. An `ApprovalRequest` is recorded in an `action.required`. `ApprovalTerms` are
read from that fact, so they are the same after a restart. An `ApprovalAnswer` is read from the data
of an input. The terms decide on it: `check` refuses an answer that says more than the request
offers, and `grant_of` returns the grant that it gives. The turn that asked turns an accepted answer
into an `Approval` of one exact input (`arp/turn/approval`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

from msgspec import Struct

from arp.protocol.errors import InvalidAnswer
from arp.protocol.json_value import Json, JsonObject


class ApprovalRequest(Struct, frozen=True):
    """A request for permission to run a tool with one input."""

    tool: str
    ids: Mapping[str, str]
    """Correlation ids of the tool call, by field name."""
    rule: str
    """Name of the rule that requires a person's approval."""
    digest: str = ""
    """Digest of the input, secrets included."""
    input: str | None = None
    """Input to be approved, as JSON; `None` means the arguments of the call."""
    session_rule: str | None = None
    """Rule that a yes may allow for the session; `None` if none is offered."""
    editable: bool = False
    """Whether a yes may contain a changed input."""

    def payload(self, clean: Callable[[JsonObject], JsonObject]) -> JsonObject:
        """Return the fields of an `action.required`; `ApprovalTerms.of` reads them.

        Args:
            clean: Function that replaces secrets by marks.
        """
        payload: JsonObject = {"tool": self.tool, "askedBy": self.rule}
        shown = {"args": self.input, "sessionRule": self.session_rule}
        payload |= clean({name: text for name, text in shown.items() if text})
        if self.digest:
            payload["digest"] = self.digest
        if self.editable:
            payload["editable"] = True
        return payload


class Grant(Struct, frozen=True):
    """A person's permission for a tool, valid until the end of the session."""

    tool: str
    rule: str
    """Description of what is allowed, in the words that the person saw."""


class ApprovalAnswer(Struct, frozen=True):
    """Answer to a request for permission."""

    allows: bool
    scope: Literal["once", "session"] = "once"
    """Extent of a yes: this call, or also later calls that the session rule covers."""
    reason: str = ""
    """Reason for a no, if the person gave one."""
    digest: str | None = None
    """Digest of the input that the person read; `None` if the renderer did not repeat it."""
    updated_input: Json = None
    """Changed input to be run instead; `None` if the person changed nothing."""

    @classmethod
    def of(cls, data: JsonObject) -> ApprovalAnswer:
        """Return the answer in the data of an input. Only the action `confirm` is a yes."""
        payload = data.get("payload")
        given: JsonObject = payload if isinstance(payload, dict) else {}
        reason = given.get("reason")
        return cls(
            data.get("action") == "confirm",
            "session" if given.get("scope") == "session" else "once",
            reason if isinstance(reason, str) else "",
            given.get("digest"),
            given.get("updated_input"),
        )


class ApprovalTerms(Struct, frozen=True):
    """Limits of the answer to a request for permission."""

    digest: str | None = None
    """Digest of the input that was shown."""
    grant: Grant | None = None
    """Permission that a yes may give for the whole session; `None` if none is offered."""
    editable: bool = False
    """Whether a yes may contain a changed input."""

    @classmethod
    def of(cls, payload: JsonObject) -> ApprovalTerms | None:
        """Return the terms of an `action.required`; `None` if it asks for no permission."""
        if "askedBy" not in payload:
            return None
        rule = payload.get("sessionRule")
        grant = Grant(payload["tool"], rule) if rule is not None else None
        return cls(payload.get("digest"), grant, payload.get("editable", False))

    def check(self, answer: ApprovalAnswer) -> None:
        """Refuse an answer that goes beyond what the request offers.

        Raises:
            InvalidAnswer: The answer is about another tool input, allows more than was shown, or
                has a changed input although the request does not offer to change it.
        """
        # The digest binds the yes to the input that the user saw. Without this check a yes could
        # approve a tool call that replaced the shown one.
        if answer.digest is not None and answer.digest != self.digest:
            raise InvalidAnswer(
                "payload.digest: the answer is for another input; read the question again, and "
                "answer what it shows now",
                detail="payload.digest",
            )
        if answer.updated_input is not None and not self.editable:
            raise InvalidAnswer(
                "payload.updated_input: the question offers no change of the input",
                detail="payload.updated_input",
            )
        # Without a digest the question is no request for one input. Its scope is not refused; it
        # has no effect, because `grant_of` returns only a grant that the request offers.
        is_for_session = answer.allows and answer.scope == "session"
        if is_for_session and self.digest and self.grant is None:
            raise InvalidAnswer(
                "payload.scope: the question offers once only, no permission for the session",
                detail="payload.scope",
            )

    def grant_of(self, answer: ApprovalAnswer) -> Grant | None:
        """Return the grant that an answer gives; `None` if it gives none.

        The grant comes from the request, never from the answer: a renderer must not be able to
        choose what is allowed.
        """
        return self.grant if answer.allows and answer.scope == "session" else None


NO_TERMS = ApprovalTerms()
"""Terms of a yes-or-no question that asks for no permission."""
