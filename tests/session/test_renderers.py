"""What the renderer that began a turn said of itself is kept with the turn, as long as it lives."""

from __future__ import annotations

from arp.ledger.fact import decode
from arp.protocol.limits import Limits
from arp.protocol.messages import Input, RendererInfo, Viewport
from arp.session.input.receive import InputSender, receive
from arp.session.session import Head, Session
from arp.session.turn_end import end_turn
from arp.surface.draft_answer import understand_draft
from tests.support.restoring import restore

HEAD = Head("s", "e")
SWISS = RendererInfo("de-CH", "Europe/Zurich", "dark", Viewport(800, 600))


def said(session: Session, renderer: RendererInfo) -> None:
    receive(
        session,
        Input(input_type="text", data={"text": "x"}),
        understand_draft,
        InputSender(renderer),
    )


def test_queued_turn_knows_its_renderer_when_the_session_comes_back_from_the_log() -> None:
    """The turn may begin in another process than the one that took its input."""
    session = Session(HEAD, Limits())
    said(session, RendererInfo(locale="en"))
    said(session, SWISS)
    said(session, RendererInfo())
    end_turn(session, "t1", "completed")
    facts = [decode(fact) for fact in session.drain("2026-01-02T03:04:05.000000Z").facts]
    back = restore(HEAD, facts, Limits())
    assert back.input_log.renderers == {"t2": SWISS}
    assert session.input_log.renderers == {"t2": SWISS}


def test_renderer_that_said_nothing_adds_nothing_to_the_ledger() -> None:
    """Most facts stay as small as they were."""
    session = Session(HEAD, Limits())
    said(session, RendererInfo())
    (submitted,) = [
        fact
        for fact in map(decode, session.drain("2026-01-02T03:04:05.000000Z").facts)
        if fact.type == "turn.submitted"
    ]
    assert submitted.payload == {"input": {"input_type": "text", "data": {"text": "x"}}}
