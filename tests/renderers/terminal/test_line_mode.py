"""The conversation without a cursor: pipes, dumb terminals, tests."""

from __future__ import annotations

import asyncio
import io
import threading

from arp.protocol.components import Component
from arp_terminal.options import Options
from arp_terminal.programs.line_mode import line_chat
from tests.renderers.terminal.drawing import PROMPT, picture
from tests.renderers.terminal.fake_client import FakeClient

OPTIONS = Options(width=60, colour=False, max_rows=None)
WAIT_S = 30


class Typed(io.StringIO):
    """Lines, each of which says when it has been handed over."""

    def __init__(self, *lines: str) -> None:
        super().__init__()
        self.given = [threading.Event() for _ in lines]
        self._waiting = list(lines)

    def readline(self, size: int = -1, /) -> str:  # type: ignore[override]  # as StringIO has it
        if not self._waiting:
            return ""
        self.given[len(self.given) - len(self._waiting)].set()
        return self._waiting.pop(0)


async def some_rounds() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def talk(client: FakeClient, agent: object, typed: str) -> tuple[str, str]:
    """Gives why it ended and what was printed."""
    out = io.StringIO()
    job = asyncio.ensure_future(agent)  # type: ignore[call-overload]  # a coroutine
    why = await asyncio.wait_for(line_chat(client, OPTIONS, io.StringIO(typed), out), WAIT_S)
    job.cancel()
    return why, out.getvalue()


async def echo(client: FakeClient) -> None:
    number = 0
    while True:
        input_id = await client.arrived.get()
        number += 1
        turn = f"t{number}"
        client.ack(input_id, turn)
        client.turn("running", turn)
        client.input(client.sent[-1][1]["text"], turn, input_id)
        client.say(f"You said **{client.sent[-1][1]['text']}**.", turn)
        client.end(turn=turn)


async def test_each_line_is_said_when_the_one_before_is_answered() -> None:
    client = FakeClient()
    why, printed = await talk(client, echo(client), "one\ntwo")
    assert why == "quit"
    assert (
        printed
        == picture(
            f"""
        {PROMPT} one

          You said one.

        {PROMPT} two

          You said two.
        """
        )
        + "\n"
    )


async def test_questions_are_asked_with_their_hints_and_the_next_line_answers() -> None:
    client = FakeClient()

    async def agent() -> None:
        client.ack(await client.arrived.get())
        client.input("export")
        client.turn("running")
        client.show(Component("q", "confirm", {"title": "Write?", "confirm_label": "Write"}))
        client.turn("waiting")
        input_id = await client.arrived.get()
        client.ack(input_id)
        client.answer("q", True)
        client.end()

    why, printed = await talk(client, agent(), "export\nhm\ny\n")
    assert why == "quit"
    assert client.sent[1:] == [("action", {"action": "confirm"}, "q")]
    assert (
        printed
        == picture(
            f"""
        {PROMPT} export

          ┃ Write?
          ┃ [y] Write   [n] No

        ? Write? [y/n]  (y = Write, n = No)
        ✗ Type y or n.
        ? Write? [y/n]  (y = Write, n = No)

          ✓ Write? → Write
        """
        )
        + "\n"
    )


async def test_a_line_waits_until_the_question_on_the_screen_was_heard_of() -> None:
    """The screen is ahead of the events whenever a frame was read and nobody has listened yet."""
    client = FakeClient()
    typed = Typed("export\n", "y\n")

    async def agent() -> None:
        client.ack(await client.arrived.get())
        client.turn("running")
        await some_rounds()  # all of that is heard
        asked = [
            *client.rendered(Component("q", "confirm", {"title": "Write?"})),
            client.turn_message("waiting"),
        ]
        for message in asked:
            client.screen.apply(message)
        client.receive(client.delta("…"))
        await asyncio.to_thread(typed.given[1].wait, WAIT_S)
        await some_rounds()  # in which the line would be sent
        assert len(client.sent) == 1
        client.receive(*asked)
        client.ack(await client.arrived.get())
        client.answer("q", True)
        client.end()

    job = asyncio.ensure_future(agent())
    out = io.StringIO()
    why = await asyncio.wait_for(line_chat(client, OPTIONS, typed, out), WAIT_S)
    await job
    assert why == "quit"
    assert client.sent[1:] == [("action", {"action": "confirm"}, "q")]


async def test_input_that_ends_at_a_question_leaves_it_open() -> None:
    client = FakeClient()

    async def agent() -> None:
        client.ack(await client.arrived.get())
        client.turn("running")
        client.show(Component("q", "confirm", {"title": "Write?"}))
        client.turn("waiting")

    why, printed = await talk(client, agent(), "export\n")
    assert why == "unanswered"
    assert printed.endswith("✗ The input ended. The question stays open.\n")


async def test_a_connection_that_is_gone_for_good_ends_it() -> None:
    client = FakeClient()

    async def agent() -> None:
        await client.arrived.get()
        client.turn("running")
        client.say("half an ans")
        client.close()

    why, printed = await talk(client, agent(), "go\n")
    assert why == "lost"
    assert printed == "  half an ans\n"


async def test_nothing_but_text_is_written() -> None:
    """T9: no escape sequence, no spinner, all of a table."""
    client = FakeClient()

    async def agent() -> None:
        client.ack(await client.arrived.get())
        client.turn("running")
        client.tell(client.tool_start("query"))
        await asyncio.sleep(0)
        client.tell(client.tool_end("query"))
        rows = [[number] for number in range(150)]
        client.show(Component("t", "table", {"headers": ["n"], "rows": rows}))
        client.end()

    why, printed = await talk(client, agent(), "go\n")
    assert why == "quit"
    assert "\x1b" not in printed
    assert "\r" not in printed
    assert printed.count("query") == 1
    assert "  149\n" in printed


async def test_a_command_ends_it() -> None:
    client = FakeClient()
    why, printed = await talk(client, echo(client), "/copy\n/quit\nnever said\n")
    assert why == "quit"
    assert client.sent == []
    assert printed == "✗ /copy needs a terminal with a cursor.\n"


async def test_text_is_printed_line_by_line_while_it_streams() -> None:
    """Whoever reads the pipe sees a line when nothing can change it any more."""
    client = FakeClient()
    out = io.StringIO()
    seen: list[str] = []

    async def agent() -> None:
        client.ack(await client.arrived.get())
        client.turn("running")
        for piece in (
            "first\nsec",
            "ond\nth",
            "ird\n\n```py\na = 1\n",
            "b = 2\n",
            "\n\nc = 3\n```\nend",
        ):
            client.say(piece)
            await some_rounds()
            seen.append(out.getvalue())
        client.end()

    job = asyncio.ensure_future(agent())
    await asyncio.wait_for(line_chat(client, OPTIONS, io.StringIO("go\n"), out), WAIT_S)
    await job
    assert seen == [
        "  first\n",
        "  first\n  second\n",
        "  first\n  second\n  third\n\n  py\n    a = 1\n",
        "  first\n  second\n  third\n\n  py\n    a = 1\n    b = 2\n",
        "  first\n  second\n  third\n\n  py\n    a = 1\n    b = 2\n\n\n    c = 3\n",
    ]
    assert out.getvalue() == f"{seen[-1]}\n  end\n"
