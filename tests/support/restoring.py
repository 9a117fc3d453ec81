"""Rebuild a session from a list of all its facts; the hub does the same page by page."""

from __future__ import annotations

from collections.abc import Iterable

from arp.ledger.fact import Fact
from arp.protocol.limits import Limits
from arp.redact.redactor import Redactor
from arp.session.recovery import apply_stored, end_plan
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
    """Rebuild a session from all of its facts, in the state in which its log ends.

    A turn that a crash interrupted stays open, because `recover` is not called.

    Args:
        head: Properties with which the session was created.
        facts: All facts, from the first. The session keeps their payloads, so the caller must not
            change them.
        limits: Limits for new facts.
        policy: Policy for an input that arrives while a turn runs.
        redactor: Redactor for new facts; `None` uses the redactor of the default settings.
    """
    session = Session(head, limits, policy, redactor)
    facts = list(facts)
    survey = Survey()
    for fact in facts:
        survey.add(fact)
    if survey.is_forked:
        session.settings.begin_plan(survey.branches.shown)
    apply_stored(session, facts)
    end_plan(session)
    return session
