"""A key that is pressed before the next frame answers no question that is not on the screen."""

from __future__ import annotations

import asyncio
import io
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output import DummyOutput

from arp.protocol.components import Component
from arp.protocol.messages import Permission, TurnMessage
from arp_terminal.chat import ScreenChat
from arp_terminal.options import Options
from arp_terminal.programs.conversation import Conversation
from arp_terminal.programs.line_mode import LineChat
from arp_terminal.prompt import Prompt
from tests.renderers.terminal.fake_client import FakeClient

WAIT_S = 10
OPTIONS = Options(width=80, colour=False)


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_S):
        while not holds():  # noqa: ASYNC110  # the state has no event
            await asyncio.sleep(0.001)


def ask(client: FakeClient, name: str) -> None:
    """Ask for a permission as the server does."""
    client.show(Component(name, "confirm", {"title": f"Run {name}?"}))
    scopes = ["once", "session"]
    asked = Permission(name, "shell", f"call-{name}", digest=name, input="{}", scopes=scopes)
    client.tell(
        TurnMessage(
            session_id="s1", turn_id="t1", status="waiting", permission=asked, seq=client._next()
        )
    )


class Stopped(ScreenChat):
    """A chat that draws no frame while `is_stopped`."""

    is_stopped = False

    async def _frame(self) -> None:
        if not self.is_stopped:
            await super()._frame()


class Screen:
    """A chat that shows question `a`, and its keyboard."""

    def __init__(self, keyboard: PipeInput) -> None:
        self.now = 0.0
        self.client = FakeClient()
        self.chat = Stopped(self.client, OPTIONS, InMemoryHistory(), lambda: self.now)
        self.composer = self.chat._composer
        self.conversation = self.chat._conversation
        self.keyboard = keyboard

    async def shows(self, question: str | None) -> None:
        """Wait until a question is on the screen and can be answered by a key."""

        def is_shown() -> bool:
            asking = self.conversation.asking
            is_current = asking is not None and asking.id == question
            is_due = is_current if question is not None else asking is None
            return is_due and self.composer.shown is asking

        await until(is_shown)
        self.now += 1

    async def press(self, keys: str) -> None:
        """Press keys, and wait until they have had their effect."""
        self.keyboard.send_text(keys)
        for _ in range(30):
            await asyncio.sleep(0.002)

    async def close_a(self) -> None:
        """Close question `a` elsewhere, without another frame."""
        self.chat.is_stopped = True
        self.client.answer("a", True)
        await until(lambda: self.conversation.question_id != "a")

    def draw(self) -> None:
        self.chat.is_stopped = False
        self.chat._dirty.set()


@asynccontextmanager
async def screen() -> AsyncIterator[Screen]:
    with create_pipe_input() as keyboard:
        found = Screen(keyboard)
        job = asyncio.create_task(found.chat.run(keyboard, DummyOutput()))
        found.client.turn("running")
        ask(found.client, "a")
        await found.shows("a")
        yield found
        found.chat._leave()
        found.draw()
        await asyncio.wait_for(job, WAIT_S)


@pytest.mark.parametrize("keys", ["y", "2", "N not now\r", "\r", "yes\r"])
async def test_what_is_pressed_before_the_next_frame_answers_no_other_question(keys: str) -> None:
    async with screen() as seen:
        ask(seen.client, "b")
        await until(lambda: seen.conversation.prompt.open_questions == 2)
        await seen.close_a()
        await seen.press(keys)
        assert seen.client.sent == []
        assert seen.conversation.question_id == "b"
        seen.draw()
        await seen.shows("b")
        assert seen.composer.buffer.text == ""
        await seen.press("y")
        payload = {"scope": "once", "digest": "b"}
        assert seen.client.sent == [("action", {"action": "confirm", "payload": payload}, "b")]


@pytest.mark.parametrize(("keys", "kept"), [("y", ""), ("2", ""), ("N not now\r", "N not now")])
async def test_an_answer_to_a_closed_question_is_no_input(keys: str, kept: str) -> None:
    async with screen() as seen:
        await seen.close_a()
        await seen.press(keys)
        seen.draw()
        await seen.shows(None)
        assert seen.client.sent == []
        assert seen.composer.buffer.text == kept


async def test_a_text_that_was_typed_before_the_question_was_shown_is_no_answer() -> None:
    async with screen() as seen:
        await seen.close_a()
        seen.draw()
        await seen.shows(None)
        seen.chat.is_stopped = True
        ask(seen.client, "b")
        await until(lambda: seen.conversation.question_id == "b")
        await seen.press("yes\r")
        assert seen.client.sent == []
        assert seen.composer.buffer.text == "yes"
        seen.draw()
        await seen.shows("b")
        assert seen.composer.buffer.text == ""


async def test_a_command_works_at_each_question() -> None:
    async with screen() as seen:
        ask(seen.client, "b")
        await until(lambda: seen.conversation.prompt.open_questions == 2)
        await seen.close_a()
        await seen.press("/skip\r")
        assert seen.conversation.question_id == "b"
        await seen.press("/cancel\r")
        assert [data for _, data, _ in seen.client.sent] == [{"action": "arp.cancel"}]


async def test_a_capital_n_leaves_time_for_the_reason_of_a_no() -> None:
    async with screen() as seen:
        await seen.press("N it is risky\r")
        payload = {"reason": "it is risky", "digest": "a"}
        assert seen.client.sent == [("action", {"action": "deny", "payload": payload}, "a")]


class Keyboard(io.StringIO):
    """A terminal at which no line is typed until it is hung up."""

    def __init__(self) -> None:
        super().__init__()
        self.is_hung_up = threading.Event()

    def isatty(self) -> bool:
        return True

    def readline(self, size: int = -1, /) -> str:  # type: ignore[override]  # as StringIO has it
        self.is_hung_up.wait(WAIT_S)
        return ""


async def test_a_line_that_arrives_before_the_question_is_printed_is_no_answer() -> None:
    """A person at a terminal without a cursor."""
    client, out = FakeClient(), io.StringIO()
    conversation = Conversation(client, hold=False)
    keyboard = Keyboard()
    lines = LineChat(conversation, OPTIONS, keyboard, out)
    client.turn("running")
    ask(client, "a")
    job = asyncio.create_task(lines.run(client.events()))
    await until(lambda: "Run a?" in out.getvalue())
    ask(client, "b")
    await until(lambda: conversation.prompt.open_questions == 2)
    client.answer("a", True)
    lines._arrived("N not now")
    await until(lambda: "not used" in out.getvalue())
    assert client.sent == []
    assert "Run b?" in out.getvalue()
    lines._arrived("N not now")
    await until(lambda: bool(client.sent))
    assert client.sent[0][2] == "b"
    client.close()
    keyboard.is_hung_up.set()
    await asyncio.wait_for(job, WAIT_S)


def test_a_prompt_for_any_text_is_no_question() -> None:
    conversation = Conversation(FakeClient(), hold=True)
    assert conversation.asking is None
    assert not conversation.is_stale("hello", None)
    assert conversation.is_stale("hello", Prompt("Sure?"))
