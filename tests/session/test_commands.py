"""A session's own slash commands: recorded, restored, and one set for each branch."""

from __future__ import annotations

from typing import Any

import pytest

from arp.ledger.fact import Fact
from arp.protocol.errors import ResourceLimit
from arp.protocol.limits import Limits
from arp.protocol.messages import Command, CommandChoice, CommandsMessage
from arp.session.recovery import messages_of
from arp.session.session import Head
from arp.session.session_settings import MAX_COMMANDS_BYTES, Rules
from arp.session.session_values import set_commands
from arp.session.state import decode_state, encode_state
from arp.session.tracking.branches import Branches
from arp.session.turn_end import end_turn
from tests.session.conversation import AT, begun, facts, new
from tests.session.test_agent_state import _made_of, _submit
from tests.support.restoring import restore

HEAD = Head("s", "e")
MODEL = Command(
    "model", "Switches", choices=(CommandChoice("s", current=True), CommandChoice("l", "Large"))
)
AS_JSON: dict[str, Any] = {
    "name": "model",
    "description": "Switches",
    "choices": [{"value": "s", "current": True}, {"value": "l", "label": "Large"}],
}


def updates(log: list[Fact]) -> list[tuple[str | None, Any]]:
    """Return the turn and the commands of each fact that has some."""
    return [
        (fact.turn_id, fact.payload["commands"])
        for fact in log
        if fact.type == "session.updated" and "commands" in fact.payload
    ]


def test_commands_are_one_fact_of_their_turn_and_one_message_of_no_turn() -> None:
    session = begun()
    set_commands(session, "t1", (MODEL,))
    assert session.screen.commands == (MODEL,)
    log = facts(session)
    assert updates(log) == [("t1", [AS_JSON])]
    (message,) = [one for fact in log for one in messages_of(fact)]
    assert message == CommandsMessage(session_id="s", seq=log[-1].sequence, commands=(MODEL,))


def test_commands_that_did_not_change_are_not_recorded_again() -> None:
    session = begun()
    for commands in [(), (MODEL,), (MODEL,), ()]:
        set_commands(session, "t1", commands)
    assert [one for _, one in updates(facts(session))] == [[AS_JSON], []]


def test_commands_of_65536_bytes_are_recorded_and_of_one_more_refused() -> None:
    fits = Command("x", "a" * (MAX_COMMANDS_BYTES - len('[{"name":"x","description":""}]')))
    session = begun()
    set_commands(session, "t1", (fits,))
    with pytest.raises(ResourceLimit, match=r"^commands: 65537 bytes as JSON; at most 65536\."):
        set_commands(session, "t1", (Command("x", f"{fits.description}a"),))
    assert session.screen.commands == (fits,)
    assert len(updates(facts(session))) == 1


def test_commands_of_no_turn_are_of_the_branch_that_shows() -> None:
    """They belong to the turn that runs, else to the one that ended last; first to none."""
    session = new()
    set_commands(session, None, (Command("a"),))
    _submit(session, "t1", None)
    set_commands(session, None, (Command("b"),))
    end_turn(session, "t1", "completed")
    set_commands(session, None, (Command("c"),))
    log = facts(session)
    assert [turn_id for turn_id, _ in updates(log)] == [None, "t1", "t1"]
    assert restore(HEAD, log, Limits()).screen.commands == (Command("c"),)


def test_secret_in_a_command_is_neither_recorded_nor_shown() -> None:
    session = begun()
    choice = CommandChoice("x", description="with ghp_abcdefghijklmnopqrstuvwxyz0123456789")
    set_commands(session, "t1", (Command("key", "ghp_" + "Q7" * 18, choices=(choice,)),))
    log = facts(session)
    assert "Q7Q7" not in str(log)
    assert "abcdefghij" not in str(log)
    assert "Q7Q7" not in str(session.screen.commands)
    assert "abcdefghij" not in str(session.screen.commands)


def test_restored_session_has_the_commands() -> None:
    session = begun()
    set_commands(session, "t1", (MODEL, Command("compact")))
    assert restore(HEAD, facts(session), Limits()).screen.commands == (MODEL, Command("compact"))


def test_stored_session_has_the_commands_and_where_they_changed() -> None:
    session = begun()
    set_commands(session, "t1", (MODEL,))
    session.drain(AT)
    again = decode_state(encode_state(session), HEAD, Rules(), None)
    assert again.screen.commands == (MODEL,)
    assert again.screen.commands_seq == session.screen.commands_seq > 0


@pytest.mark.parametrize("odd", ["x", [1], [{"name": 2}], [{}], {"name": "x"}])
def test_commands_in_a_log_of_others_that_are_none_are_passed_over(odd: Any) -> None:
    """`session.updated` is open to fields of other writers."""
    session = begun()
    session.record("session.updated", {"commands": odd, "title": "Sales"})
    assert (session.screen.commands, session.title) == ((), "Sales")


def test_each_branch_has_the_commands_of_its_own_turns() -> None:
    """As `turn.state`: what an edit goes on from is what stood before the old version."""
    session = new()
    session.settings.branches = Branches()
    log: list[Fact] = []
    for number, edits in enumerate([None, None, "t2"], 1):
        _submit(session, f"t{number}", edits)
        set_commands(session, f"t{number}", (Command(f"c{number}"),))
        end_turn(session, f"t{number}", "completed")
        log += facts(session)
    for shown, name in [(["t1"], "c1"), (["t1", "t2"], "c2"), (["t1", "t3"], "c3")]:
        assert _made_of(log, shown).screen.commands == (Command(name),)
