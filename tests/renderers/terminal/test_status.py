"""The line above the prompt."""

from __future__ import annotations

from arp_terminal.programs.conversation import Conversation
from arp_terminal.programs.status import Status, spinner
from tests.renderers.terminal.fake_client import FakeClient


def line(status: Status, now: float) -> str:
    return "".join(fragment[1] for fragment in status.fragments(now))


def test_it_says_what_the_agent_does_and_since_when() -> None:
    client = FakeClient()
    status = Status(Conversation(client, hold=True), unicode=False)
    assert line(status, 1.0) == ""
    client.turn("running")
    assert line(status, 10.0) == "| answering - 0 s - Ctrl-C stops"
    client.think("hm")
    assert line(status, 12.0) == "| thinking - 2 s - Ctrl-C stops"
    client.tell(client.tool_start("que\x1b[2Jry"))
    assert line(status, 13.0) == "| using que␛[2Jry - 3 s - Ctrl-C stops"
    client.turn("waiting")
    assert line(status, 14.0) == "? waiting for your answer - 4 s - Ctrl-C stops"
    client.connected = False
    assert line(status, 14.0) == "| no connection; the agent goes on"
    client.end()
    assert line(status, 15.0) == "| no connection"
    client.connected = True
    assert line(status, 15.0) == ""
    client.turn("running", "t2")
    assert line(status, 20.0) == "| answering - 0 s - Ctrl-C stops"


def test_the_spinner_turns_with_the_time() -> None:
    assert [spinner(now / 8, unicode=False) for now in range(5)] == list("|/-\\|")
    assert spinner(0, unicode=True) == "⠋"
