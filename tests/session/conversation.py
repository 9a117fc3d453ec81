"""A session that is talked to, for the tests of this room."""

from __future__ import annotations

from functools import partial
from typing import Any

from arp.ledger.fact import Fact, decode
from arp.protocol.catalog import VERSIONS
from arp.protocol.components import Component
from arp.protocol.limits import Limits
from arp.protocol.messages import Input, RendererCapabilities
from arp.session.effects import Effect, QuestionOutcome, ResolveQuestion
from arp.session.input.receive import receive
from arp.session.questions import Question
from arp.session.session import Head, Session
from arp.session.turn_states import Policy
from arp.view.profile import Profile, profile_of, typed_answer
from arp.view.view import View

AT = "2026-11-21T08:00:00.000000Z"

FULL = profile_of(RendererCapabilities(dict(VERSIONS), ["thinking", "tool-detail", "patch-append"]))
"""A renderer that shows every component itself."""

TEXT = profile_of(RendererCapabilities(["text"]))
"""A renderer that shows text alone, so that its user types answers."""


def new(policy: Policy = "queue", **limits: int) -> Session:
    """A session in which nothing has happened."""
    return Session(Head("s", "e"), Limits(**limits), policy)


def answer_to(question: Question, value: Any) -> ResolveQuestion:
    """The effect that passes an answer to the agent."""
    return ResolveQuestion(question.action_id, QuestionOutcome("answered", value))


def decline_of(question: Question) -> ResolveQuestion:
    """The effect that tells the agent that its question was declined."""
    return ResolveQuestion(question.action_id, QuestionOutcome("declined"))


def begun(policy: Policy = "queue", **limits: int) -> Session:
    """A session in which turn `t1` runs."""
    session = new(policy, **limits)
    user(session, "hi")
    session.drain(AT)
    return session


def user(session: Session, text: str, input_id: str | None = None) -> list[Effect]:
    """The user of a renderer that shows everything types a line."""
    return send(session, "text", {"text": text}, id=input_id)


def send(
    session: Session, input_type: Any, data: dict[str, Any], by: Profile = FULL, **more: Any
) -> list[Effect]:
    """An input comes in."""
    read_typed = partial(typed_answer, by)
    return receive(session, Input(input_type=input_type, data=data, **more), read_typed)


def watched(session: Session, by: Profile) -> View:
    """What renderers of a profile get from now on."""
    view = View(by, session.screen)
    session.watchers.append(view)
    return view


def facts(session: Session) -> list[Fact]:
    """What was recorded since the last time, as it goes to the ledger."""
    return [decode(fact) for fact in session.drain(AT).facts]


def kinds(session: Session) -> list[str]:
    """The types of what was recorded since the last time."""
    return [fact.type for fact in facts(session)]


def text(component_id: str, content: str = "x") -> Component:
    return Component(component_id, "text", {"content": content})


def confirm(component_id: str = "q", **more: Any) -> Component:
    return Component(component_id, "confirm", {"title": "Sure?"}, **more)


def choices(component_id: str = "q") -> Component:
    return Component(component_id, "choices", {"options": ["one", "two"]})


def form(component_id: str = "q") -> Component:
    fields = [
        {"name": "n", "label": "Name"},
        {"name": "p", "label": "Password", "field_type": "password"},
    ]
    return Component(component_id, "form", {"fields": fields})
