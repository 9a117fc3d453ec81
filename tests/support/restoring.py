"""A session from all of its facts at once, as the hub makes it from pages of them."""

from __future__ import annotations

from collections.abc import Iterable

from arp.ledger.fact import Fact
from arp.protocol.limits import Limits
from arp.redact.redactor import Redactor
from arp.session.recovery import end_plan, go_on
from arp.session.session import Head, Session
from arp.session.tracking.branches import Survey
from arp.session.turn_states import Policy


def restore(
    head: Head,
    facts: Iterable[Fact],
    limits: Limits,
    policy: Policy = "queue",
    redactor: Redactor | None = None,
) -> Session:
    """Rebuild a session from all of its facts, in order, and leave it as the log does.

    Args:
        head: As it was made.
        facts: From the first. The session goes on with what they hold: nobody else may.
        limits: For what comes.
        policy: For what comes.
        redactor: For what comes; `None`: that of the default settings.
    """
    session = Session(head, limits, policy, redactor)
    facts = list(facts)
    survey = Survey()
    for fact in facts:
        survey.take(fact)
    if survey.is_forked:
        session.settings.begin_plan(survey.branches.shown)
    go_on(session, facts)
    end_plan(session)
    return session
