"""What may be typed when, and what becomes of it."""

from __future__ import annotations

import json

import pytest

from arp.client.events import Connected, Disconnected, Event, Skipped
from arp.protocol.components import Component
from arp.protocol.connection.screen import Screen, ToolRun
from arp.protocol.errors import ErrorPayload, ResourceLimit
from arp.protocol.messages import (
    AgentCapabilities,
    AgentHello,
    CommandChoice,
    Commit,
    ErrorMessage,
    Permission,
    ToolStart,
    ToolStartPayload,
    TurnMessage,
)
from arp.protocol.messages import Command as Offered
from arp_terminal.asking.commands import Command
from arp_terminal.drawing.notes import Note
from arp_terminal.programs.conversation import Conversation
from arp_terminal.prompt import Prompt
from tests.renderers.terminal.fake_client import FakeClient


class Talk(FakeClient):
    """A client whose events go straight to a conversation."""

    def __init__(self) -> None:
        super().__init__()
        self.conversation = Conversation(self, hold=True)

    def tell(self, *messages: Event) -> None:
        for message in messages:
            self.screen.apply(message)
        for message in messages:
            self.conversation.receive(message)

    def notes(self) -> list[str]:
        notes, self.conversation.notes = self.conversation.notes, []
        return [note.text for note in notes]

    def question(self, turn: str = "t1", **props: object) -> None:
        self.turn("running", turn)
        self.show(Component(f"q-{turn}", "confirm", {"title": "Sure?", **props}), turn=turn)
        self.turn("waiting", turn)


async def test_a_permission_shows_its_input_whole_and_is_answered_with_its_digest() -> None:
    """That it asks for permission comes behind the component."""
    talk = Talk()
    args = json.dumps({"command": "x" * 5000})
    start = ToolStartPayload("shell", args, "t1.1")
    talk.tell(ToolStart(session_id="s1", turn_id="t1", payload=start, seq=90))
    talk.question()
    assert talk.notes() == []
    asked = Permission("q-t1", "shell", "t1.1", digest="0a")
    talk.tell(
        TurnMessage(session_id="s1", turn_id="t1", status="waiting", permission=asked, seq=99)
    )
    assert talk.notes() == []  # the question shows it
    talk.conversation.show_input()  # but not all of it is in sight
    talk.conversation.show_input()
    (note,) = talk.conversation.notes
    assert note.text == "To be allowed:"
    assert note.tool == ToolRun("t1.1", "shell", args)
    talk.conversation.notes.clear()
    assert talk.conversation.prompt.label == "Sure? [y/n]"
    await talk.conversation.enter("n not now")
    payload = {"reason": "not now", "digest": "0a"}
    assert talk.sent == [("action", {"action": "deny", "payload": payload}, "q-t1")]


async def test_a_permission_that_outlives_its_turn_is_asked_behind_a_newer_turn() -> None:
    """A restart of the server ends the turn: it waits behind its final commit."""
    talk = Talk()
    start = ToolStartPayload("shell", '{"command": "ls"}', "t1.1")
    asked = Permission("q-t1", "shell", "t1.1", scopes=["once", "session"], session_rule="ls")
    talk.tell(ToolStart(session_id="s1", turn_id="t1", payload=start, seq=90))
    talk.question()
    talk.tell(
        TurnMessage(session_id="s1", turn_id="t1", status="waiting", permission=asked, seq=91),
        Commit(session_id="s1", turn_id="t1", final=True, seq=92),
    )
    talk.turn("running", "t2")
    talk.turn("completed", "t2")
    talk.tell(Commit(session_id="s1", turn_id="t2", final=True, seq=95))
    talk.conversation.show_input()
    (note,) = talk.conversation.notes
    assert note.tool == ToolRun("t1.1", "shell", '{"command": "ls"}')
    assert talk.conversation.prompt.label == "Sure? [y/s/n]"
    await talk.conversation.enter("s")
    payload = {"scope": "session"}
    assert talk.sent == [("action", {"action": "confirm", "payload": payload}, "q-t1")]


async def test_the_prompt_counts_the_open_questions() -> None:
    talk = Talk()
    talk.question()
    assert talk.conversation.prompt.label == "Sure? [y/n]"
    talk.show(Component("q2", "confirm", {"title": "Really?"}))
    talk.show(Component("q3", "confirm", {"title": "Really?"}))
    assert talk.conversation.prompt.label == "Sure? [y/n] (question 1 of 3)"
    await talk.conversation.enter("y")
    assert talk.conversation.prompt.label == "Really? [y/n] (question 1 of 2)"
    await talk.conversation.enter("/skip")
    assert talk.conversation.prompt.label == "Really? [y/n]"


async def test_a_question_for_which_nobody_waits_is_not_counted() -> None:
    talk = Talk()
    talk.question()
    talk.show(Component("q2", "confirm", {"title": "Really?"}))
    talk.end()
    assert talk.conversation.prompt.label == "Really? [y/n]"


async def test_a_tool_call_is_shown_by_its_number() -> None:
    """The numbers count on from turn to turn; what has none is a problem and is not sent."""
    talk = Talk()
    await talk.conversation.enter("/tool 1")
    assert talk.notes() == ["/tool NUMBER shows a tool call; no tool was called yet."]
    for turn, tool in (("t1", "read"), ("t1", "write"), ("t2", "plot")):
        talk.turn("running", turn)
        talk.tell(talk.tool_start(tool, turn=turn))
        talk.conversation.transcript.entries()
    for typed, name in (("/tool 1", "read"), ("/tool #2", "write"), ("/tool 3", "plot")):
        await talk.conversation.enter(typed)
        (note,) = talk.conversation.notes
        assert note.lasting
        assert note.tool is talk.conversation.transcript.tool(note.tool_number or 0)
        assert note.tool is not None
        assert note.tool.tool == name
        talk.conversation.notes.clear()
    for wrong in ("/tool", "/tool 0", "/tool 4", "/tool read", f"/tool {'9' * 5000}"):
        await talk.conversation.enter(wrong)
        assert talk.notes() == ["/tool NUMBER shows a tool call; the numbers are 1 to 3."]
    assert talk.sent == []


async def test_a_number_means_the_same_tool_call_after_a_catch_up() -> None:
    talk = Talk()
    talk.turn("running", "t2")
    talk.tell(talk.tool_start("read", turn="t2"))
    transcript = talk.conversation.transcript
    transcript.entries()
    screen = Screen()
    for message in (
        talk.turn_message("running", "t2"),
        talk.tool_start("read", turn="t2"),
        talk.tool_start("write", turn="t2"),
    ):
        screen.apply(message)
    transcript.adopt(screen)
    calls = [transcript.tool(number) for number in (1, 2, 3)]
    assert [call and call.tool for call in calls] == ["read", "write", None]
    transcript.adopt(Screen())
    assert transcript.tool(1) is None


async def test_words_are_sent_as_text() -> None:
    talk = Talk()
    await talk.conversation.enter("show the sales")
    assert talk.sent == [("text", {"text": "show the sales"}, None)]
    await talk.conversation.enter("   ")
    assert len(talk.sent) == 1


CODER = (
    Offered("model", "Switches it", choices=(CommandChoice("large"), CommandChoice("latest"))),
    Offered("mode", "How it works", choices=(CommandChoice("plan", "Plan first", "", True),)),
    Offered("compact", hint="what to keep"),
    Offered("help"),
    Offered("odd\u202e"),
)


def coder(*commands: Offered) -> Talk:
    """A conversation with an agent that has commands."""
    talk = Talk()
    capabilities = AgentCapabilities(["text"], commands=list(commands or CODER))
    talk.agent = AgentHello(capabilities=capabilities)
    return talk


@pytest.mark.parametrize(
    ("typed", "added", "listed"),
    [
        ("/mo", "de", ["/mode", "/model"]),
        ("/mode", "", ["/mode", "/model"]),
        ("/model", " ", []),
        ("/model ", "la", ["/model large", "/model latest"]),
        ("/model lar", "ge", []),
        ("/model x", "", []),
        ("/mode ", "plan", []),
        ("/comp", "act ", []),
        ("/compact s", "", []),
        ("/can", "cel", []),
        ("//", "help", []),
        ("/odd", "", []),
        ("mo", "", []),
        ("", "", []),
    ],
)
async def test_tab_completes_a_command_and_its_choices(
    typed: str, added: str, listed: list[str]
) -> None:
    """What is not clear yet is listed at the prompt; what nobody could see is not offered."""
    talk = coder()
    assert talk.conversation.complete(typed) == added
    assert talk.notes() == (["  ".join(listed)] if listed else [])


async def test_a_long_list_of_commands_is_cut() -> None:
    talk = coder(*[Offered(f"task-{number:02}") for number in range(30)])
    assert talk.conversation.complete("/ta") == "sk-"
    (note,) = talk.notes()
    assert note.startswith("/task-00  /task-01")
    assert note.endswith("/task-19  …")


async def test_help_shows_choices_and_which_of_them_holds() -> None:
    talk = coder()
    await talk.conversation.enter("/help")
    lines = talk.notes()[0].splitlines()
    assert [" ".join(line.split()) for line in lines if line.startswith("/mod")] == [
        "/model large|latest Switches it",
        "/mode plan How it works (now Plan first)",
    ]


async def test_two_slashes_send_a_line_that_begins_with_one() -> None:
    talk = Talk()
    await talk.conversation.enter("//help me")
    await talk.conversation.enter("/usr/bin is full")
    assert [data["text"] for _, data, _ in talk.sent] == ["/help me", "/usr/bin is full"]
    await talk.conversation.enter("/hlep")
    assert len(talk.sent) == 2
    assert talk.notes() == ["No command /hlep. /help lists them all; //… sends it as text."]


async def test_commands_of_the_agent_are_sent_and_listed() -> None:
    """One that this program has too goes with two slashes."""
    talk = Talk()
    commands = [
        Offered("tables", "The tables\nthat there \x1b[31mare"),
        Offered("describe", "The columns", "table"),
        Offered("help", "What you can ask"),
    ]
    talk.agent = AgentHello(capabilities=AgentCapabilities([], commands=commands))
    for typed in ("/tables", "/describe cars", "//help", "/table"):
        await talk.conversation.enter(typed)
    sent = [data["text"] for _, data, _ in talk.sent]
    assert sent == ["/tables", "/describe cars", "/help"]
    assert talk.notes() == ["No command /table. /help lists them all; //… sends it as text."]
    await talk.conversation.enter("/help")
    (shown,) = talk.notes()
    lines = shown.splitlines()
    assert lines[0] == "/help           shows this"
    assert lines[-2:] == ["/describe table The columns", "//help          What you can ask"]
    assert lines[-3].startswith("/tables         The tables that there ")
    assert "\x1b" not in shown


async def test_help_without_commands_of_the_agent_lists_those_of_this_program() -> None:
    talk = Talk()
    await talk.conversation.enter("/help")
    (shown,) = talk.notes()
    assert shown.splitlines()[0] == "/help    shows this"
    assert len(shown.splitlines()) == 11


async def test_a_question_is_asked_when_it_appears_and_answered_with_its_id() -> None:
    talk = Talk()
    talk.question()
    assert talk.conversation.prompt.label == "Sure? [y/n]"
    await talk.conversation.enter("y")
    assert talk.sent == [("action", {"action": "confirm"}, "q-t1")]
    assert talk.conversation.prompt == Prompt("")
    talk.answer("q-t1", True)
    assert talk.conversation.prompt == Prompt("")
    assert talk.notes() == []


async def test_a_wrong_line_is_told_and_asked_again() -> None:
    talk = Talk()
    talk.question()
    await talk.conversation.enter("hm")
    assert talk.sent == []
    assert talk.conversation.notes == [Note("bad", "type y or n")]
    assert talk.conversation.prompt.label == "Sure? [y/n]"


async def test_an_answer_that_the_server_refuses_is_asked_again() -> None:
    talk = Talk()
    talk.turn("running")
    fields = [{"name": "year", "label": "Year"}, {"name": "month", "label": "Month"}]
    talk.show(Component("f", "form", {"fields": fields}))
    talk.turn("waiting")
    await talk.conversation.enter("2012")
    await talk.conversation.enter("x")
    assert talk.sent == [("form_submit", {"fields": {"year": "2012", "month": "x"}}, "f")]
    talk.refuse("i1", "fields.month: expected a number", "fields.month")
    assert talk.notes() == ["expected a number"]
    assert talk.conversation.prompt.label == "Month"
    await talk.conversation.enter("7")
    assert talk.sent[-1] == ("form_submit", {"fields": {"year": "2012", "month": "7"}}, "f")


async def test_a_question_answered_on_another_screen_closes_with_a_note() -> None:
    talk = Talk()
    talk.question()
    talk.answer("q-t1", True)
    assert talk.conversation.prompt == Prompt("")
    assert talk.notes() == ["Answered on another screen."]


@pytest.mark.parametrize("order", ["error first", "answer first"])
async def test_an_answer_that_came_too_late_says_so(order: str) -> None:
    """Another screen has answered at the same time: what was typed here does not count."""
    talk = Talk()
    talk.question()
    await talk.conversation.enter("y")
    if order == "answer first":
        talk.answer("q-t1", False)
    talk.refuse("i1", 'confirm "q-t1" is already answered', "q-t1")
    if order == "error first":
        talk.answer("q-t1", False)
    assert talk.notes() == ['confirm "q-t1" is already answered', "Answered on another screen."]
    assert talk.conversation.prompt == Prompt("")


async def test_a_question_that_has_expired_says_so_and_a_withdrawn_one_just_goes() -> None:
    for state, notes in (
        ("expired", ["The question is over: not answered in time."]),
        ("cancelled", []),
    ):
        talk = Talk()
        talk.question()
        talk.show(Component("q-t1", "confirm", {"title": "Sure?", "state": state}))
        assert talk.conversation.prompt == Prompt("")
        assert talk.notes() == notes


async def test_options_of_a_turn_that_is_over_can_be_picked_or_passed_by() -> None:
    talk = Talk()
    talk.show(Component("c", "choices", {"title": "Next?", "options": ["a", "b"]}))
    talk.end()
    assert talk.conversation.prompt.offered
    await talk.conversation.enter("something else")
    await talk.conversation.enter("2")
    assert talk.sent == [
        ("text", {"text": "something else"}, None),
        ("selection", {"selected": ["b"]}, "c"),
    ]


async def test_options_of_an_older_turn_are_not_asked_any_more() -> None:
    talk = Talk()
    talk.show(Component("c", "choices", {"options": ["a"]}))
    talk.end()
    talk.input("go on", turn="t2")
    assert talk.conversation.prompt == Prompt("")


async def test_a_question_that_somebody_waits_for_comes_before_an_offer() -> None:
    talk = Talk()
    talk.question("t1")
    talk.show(Component("c", "choices", {"options": ["a"]}), turn="t2")
    talk.end(turn="t2")
    assert talk.conversation.question_id == "q-t1"


async def test_a_nested_question_is_found() -> None:
    talk = Talk()
    talk.turn("running")
    inner = {"id": "in", "type": "text-input", "props": {"label": "Name"}}
    talk.show(Component("g", "group", {"children": [inner]}))
    assert talk.conversation.prompt.label == "Name"
    await talk.conversation.enter("Ada")
    assert talk.sent == [("text", {"text": "Ada"}, "in")]


async def test_a_skipped_question_stays_open_and_can_be_asked_again() -> None:
    talk = Talk()
    talk.question()
    await talk.conversation.enter("/skip")
    assert talk.conversation.prompt == Prompt("")
    await talk.conversation.enter("why do you ask?")
    assert talk.sent == [("text", {"text": "why do you ask?"}, None)]
    await talk.conversation.enter("/answer")
    assert talk.conversation.prompt.label == "Sure? [y/n]"


async def test_an_answer_on_its_way_is_not_asked_again() -> None:
    talk = Talk()
    talk.question()
    await talk.conversation.enter("y")
    await talk.conversation.enter("/answer")
    assert talk.conversation.prompt == Prompt("")


async def test_the_first_ctrl_c_stops_the_turn_and_the_second_within_two_seconds_leaves() -> None:
    talk = Talk()
    talk.turn("running")
    await talk.conversation.interrupt(10.0)
    assert talk.sent == [("action", {"action": "arp.cancel"}, None)]
    assert talk.conversation.ended is None
    await talk.conversation.interrupt(13.0)
    assert talk.conversation.ended is None
    await talk.conversation.interrupt(14.9)
    assert talk.conversation.ended == "interrupted"


async def test_ctrl_c_while_nothing_runs_only_warns() -> None:
    talk = Talk()
    await talk.conversation.interrupt(10.0)
    assert talk.sent == []
    assert talk.notes() == ["Press Ctrl-C again or Ctrl-D to leave."]


async def test_commands() -> None:
    talk = Talk()
    await talk.conversation.enter("/help")
    assert "/quit" in talk.notes()[0]
    await talk.conversation.enter("/cancel")
    await talk.conversation.enter("/file a.csv 'b c.csv' -- look at these")
    assert talk.sent == [
        ("action", {"action": "arp.cancel"}, None),
        ("file", {"paths": ["a.csv", "b c.csv"], "text": "look at these"}, None),
    ]
    await talk.conversation.enter("/file 'open")
    assert talk.notes() == ["No closing quotation"]
    await talk.conversation.enter("/back")
    assert talk.notes() == ["/back goes back in a form. No form is open now."]
    assert await talk.conversation.enter("/copy") == Command("/copy")
    await talk.conversation.enter("/new")
    assert talk.conversation.ended == "new"


async def test_quit_leaves() -> None:
    for word in ("/quit", " /exit "):
        talk = Talk()
        await talk.conversation.enter(word)
        assert talk.conversation.ended == "quit"


async def test_what_cannot_be_sent_is_told() -> None:
    talk = Talk()

    async def refuse(text: str, *, source: str | None = None) -> str:
        raise ResourceLimit("too much at once")

    talk.send_text = refuse  # type: ignore[method-assign]
    await talk.conversation.enter("hello")
    assert talk.notes() == ["too much at once"]


async def test_a_lost_connection_is_told_once_and_its_return_too() -> None:
    talk = Talk()
    conversation = talk.conversation
    conversation.receive(Disconnected("closed with 1006", 1.0))
    conversation.receive(Disconnected("refused", 2.0))
    conversation.receive(Connected("s1", "replay"))
    assert [note.text for note in conversation.notes] == [
        "Connection lost: closed with 1006. Reconnecting…",
        "Connected again.",
    ]
    assert all(note.lasting for note in conversation.notes)
    assert conversation.ended is None


async def test_a_connection_that_is_gone_for_good_ends_the_conversation() -> None:
    talk = Talk()
    talk.conversation.receive(Disconnected("not let in", None))
    assert talk.conversation.ended == "lost"
    assert talk.notes() == ["Connection lost: not let in"]


async def test_words_typed_without_a_connection_are_said_to_wait() -> None:
    talk = Talk()
    talk.connected = False
    await talk.conversation.enter("hello")
    assert talk.notes() == ["No connection. This will be sent as soon as there is one."]


async def test_a_new_screen_is_taken_over_with_its_questions() -> None:
    """After a snapshot, or when so much came that events were left out."""
    for event in (Connected("s1", "snapshot"), Skipped(5)):
        talk, other = Talk(), Talk()
        other.question()
        talk.screen = other.screen
        talk.conversation.receive(event)
        assert talk.conversation.transcript.screen is other.screen
        assert talk.conversation.prompt.label == "Sure? [y/n]"


async def test_errors_of_the_session_are_told() -> None:
    talk = Talk()
    talk.tell(ErrorMessage(payload=ErrorPayload("slow down", 16)))
    assert talk.notes() == ["slow down"]
    talk.tell(ErrorMessage(payload=ErrorPayload("agent failed", 18), turn_id="t1"))
    assert talk.notes() == []


async def test_it_is_idle_when_all_that_was_sent_is_done() -> None:
    talk = Talk()
    assert talk.conversation.is_idle
    await talk.conversation.enter("hello")
    assert not talk.conversation.is_idle
    talk.ack("i1")
    assert not talk.conversation.is_idle
    talk.turn("running")
    assert not talk.conversation.is_idle
    talk.end()
    assert talk.conversation.is_idle


async def test_a_screen_ahead_of_what_was_heard_does_not_change_what_may_be_typed() -> None:
    """A line that came just then would be sent as words, past the question that it answers."""
    talk = Talk()
    await talk.conversation.enter("export")
    talk.ack("i1")
    talk.turn("running")
    asked: list[Event] = [
        *talk.rendered(Component("q", "confirm", {"title": "Sure?"})),
        talk.turn_message("waiting"),
    ]
    for message in asked:
        talk.screen.apply(message)
    talk.conversation.receive(talk.delta("…"))
    assert not talk.conversation.is_awaited
    assert talk.conversation.question_id is None
    for message in asked:
        talk.conversation.receive(message)
    assert talk.conversation.is_awaited
    assert talk.conversation.question_id == "q"


async def test_an_end_that_was_not_heard_leaves_the_conversation_busy() -> None:
    talk = Talk()
    await talk.conversation.enter("hello")
    talk.ack("i1")
    talk.turn("running")
    end: list[Event] = [
        *talk.rendered(Component("next", "choices", {"title": "Next?", "options": ["a"]})),
        Commit(session_id="s1", turn_id="t1", final=True),
    ]
    for message in end:
        talk.screen.apply(message)
    assert not talk.conversation.is_idle
    for message in end:
        talk.conversation.receive(message)
    assert talk.conversation.is_idle
    assert talk.conversation.question_id == "next"


async def test_a_question_is_declined_where_it_offers_that() -> None:
    talk = Talk()
    talk.turn("running")
    talk.show(Component("q", "text-input", {"label": "Why?", "can_decline": True}))
    assert talk.conversation.prompt.hint.endswith("/decline")
    await talk.conversation.enter("/decline")
    assert talk.sent[-1] == ("action", {"action": "decline"}, "q")
    assert talk.conversation.question_id is None


async def test_a_question_that_does_not_offer_it_cannot_be_declined() -> None:
    talk = Talk()
    talk.turn("running")
    talk.show(Component("q", "text-input", {"label": "Why?"}))
    assert "/decline" not in talk.conversation.prompt.hint
    await talk.conversation.enter("/decline")
    assert talk.conversation.question_id == "q"
    assert talk.notes() == ["There is no question that you can decline."]


async def test_a_turn_that_was_cut_off_while_it_waited_is_not_awaited() -> None:
    """Its question is asked as one that nobody waits for; the agent is idle."""
    talk = Talk()
    talk.turn("running")
    talk.show(Component("q", "choices", {"options": ["a"]}))
    talk.turn("waiting")
    talk.end("waiting")
    assert not talk.conversation.is_awaited
    assert talk.conversation.running is None
    assert talk.conversation.question_id == "q"
    assert talk.conversation.prompt.offered


async def test_an_answer_that_was_taken_is_not_awaited_before_the_screen_knows_of_it() -> None:
    """Over server-sent events the acknowledgement may overtake what comes of the answer."""
    talk = Talk()
    talk.turn("running")
    talk.say("Sure? Answer with yes or no.")
    talk.turn("waiting")
    assert talk.conversation.is_awaited
    await talk.conversation.enter("yes")
    talk.ack("i1")
    assert not talk.conversation.is_awaited
    assert not talk.conversation.is_idle
    talk.input("yes", input_id="i1")
    assert not talk.conversation.is_awaited  # an agent may echo it before its turn goes on
    talk.turn("running")
    talk.turn("waiting")
    assert talk.conversation.is_awaited


async def test_an_echo_before_the_acknowledgement_does_not_say_that_the_turn_goes_on() -> None:
    talk = Talk()
    talk.turn("running")
    talk.say("Sure? Answer with yes or no.")
    talk.turn("waiting")
    await talk.conversation.enter("yes")
    talk.input("yes", input_id="i1")
    talk.ack("i1")
    assert not talk.conversation.is_awaited


async def test_an_answer_that_a_cut_hid_is_confirmed_by_its_echo() -> None:
    """The turn went on and waits for another answer; nobody here saw that it ran between."""
    talk = Talk()
    talk.turn("running")
    talk.say("Sure? Answer with yes or no.")
    talk.turn("waiting")
    await talk.conversation.enter("yes")
    talk.conversation.receive(Connected("s1", "replay"))
    talk.input("yes", input_id="i1")
    talk.ack("i1")
    assert talk.conversation.is_awaited


async def test_a_turn_that_goes_on_has_its_answer_and_may_wait_for_another() -> None:
    talk = Talk()
    talk.turn("waiting")
    await talk.conversation.enter("yes")
    talk.ack("i1")
    talk.turn("running")
    assert not talk.conversation.is_awaited
    talk.turn("waiting")
    assert talk.conversation.is_awaited


async def test_words_for_another_turn_do_not_answer_the_one_that_waits() -> None:
    talk = Talk()
    talk.turn("waiting")
    await talk.conversation.enter("something else")
    talk.ack("i1", "t2")
    assert talk.conversation.is_awaited


async def test_a_server_that_acknowledges_nothing_is_done_with_its_final_commit() -> None:
    talk = Talk()
    await talk.conversation.enter("hello")
    talk.say("hi")
    assert not talk.conversation.is_idle
    talk.end()
    assert talk.conversation.is_idle


def test_a_new_conversation_shows_what_is_there() -> None:
    talk = Talk()
    assert isinstance(talk.conversation.transcript.screen, Screen)
    assert talk.conversation.running is None
