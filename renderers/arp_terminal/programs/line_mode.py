r"""A conversation line by line, for pipes and terminals without a cursor: it only appends.

The next line of a pipe is read when the agent has finished or asks a question. So in
`printf 'show the sales\n2\n' | arp connect URL` the second line answers the question.
"""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from typing import Literal, TextIO

from rich.text import Text

from arp.client.events import Event
from arp_terminal.drawing.notes import Note, draw_note
from arp_terminal.log.scroll import Scroll
from arp_terminal.options import Options
from arp_terminal.programs.conversation import Client, Conversation
from arp_terminal.programs.terminal import is_terminal, write_lines
from arp_terminal.prompt import Prompt


async def line_chat(client: Client, options: Options, source: TextIO, out: TextIO) -> str:
    """Run a chat until the input ends and the agent has finished, or the connection is lost.

    Args:
        client: A connected client.
        options: How to draw.
        source: Lines to send; a thread of its own reads them.
        out: Stream to print the conversation to.

    Returns:
        The reason of the end, as for `chat`; also `unanswered` if the input ended at a question.
    """
    lines = LineChat(Conversation(client, hold=False), options, source, out)
    with lines.signals():
        return await lines.run(client.events())


class LineChat:
    """One conversation on two streams."""

    def __init__(
        self, conversation: Conversation, options: Options, source: TextIO, out: TextIO
    ) -> None:
        self._conversation = conversation
        self._scroll = Scroll(conversation.transcript, options)
        self._source = source
        self._out = out
        self._lines: deque[tuple[str, object | None]] = deque()
        """Lines to use, each with the question that was printed last when it arrived."""
        self._printed: object | None = None
        """The question that was printed last; `None` if any text may be typed."""
        self._is_ended = False
        self._changed = asyncio.Event()
        self._line_requests = threading.Semaphore(1)
        self._last_prompt: Prompt | None = None

    async def run(self, events: AsyncIterator[Event]) -> str:
        """Run to the end; return why it ended."""
        conversation = self._conversation
        conversation.transcript.adopt(conversation.client.screen)
        threading.Thread(target=self._read, args=(asyncio.get_running_loop(),), daemon=True).start()
        listening = asyncio.create_task(self._listen(events))
        try:
            while conversation.ended is None:
                self._changed.clear()
                if self._lines and self._is_line_due():
                    self._show()
                    await self._enter(*self._lines.popleft())
                elif self._is_ended and not self._lines and (why := self._is_over()):
                    return why
                else:
                    self._show()
                    await self._changed.wait()
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)
            self._show()
            write_lines(self._out, self._scroll.finish())
        return conversation.ended

    @contextmanager
    def signals(self) -> Iterator[None]:
        """Handle Ctrl-C as `Conversation.interrupt` while it is open."""
        loop = asyncio.get_running_loop()
        jobs: set[asyncio.Task[None]] = set()

        def on_interrupt() -> None:
            job = asyncio.ensure_future(self._interrupt())
            jobs.add(job)
            job.add_done_callback(jobs.discard)

        # Not in a thread that is not the main one, and not on Windows.
        with suppress(NotImplementedError, RuntimeError, ValueError):
            loop.add_signal_handler(signal.SIGINT, on_interrupt)
        try:
            yield
        finally:
            with suppress(NotImplementedError, RuntimeError, ValueError):
                loop.remove_signal_handler(signal.SIGINT)

    # -- input -----------------------------------------------------------------------------------

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        """Read each line after the last one was used; runs in a thread."""
        with suppress(RuntimeError, ValueError):  # the loop or the stream is closed
            while self._line_requests.acquire() and (line := self._source.readline()):
                loop.call_soon_threadsafe(self._arrived, line.rstrip("\r\n"))
            loop.call_soon_threadsafe(self._arrived, None)

    def _arrived(self, line: str | None) -> None:
        if line is None:
            self._is_ended = True
        else:
            self._lines.append((line, self._printed))
        self._changed.set()

    async def _listen(self, events: AsyncIterator[Event]) -> None:
        async for event in events:
            self._conversation.receive(event)
            self._changed.set()
        self._conversation.ended = self._conversation.ended or "lost"
        self._changed.set()

    async def _interrupt(self) -> None:
        await self._conversation.interrupt(time.monotonic())
        self._changed.set()

    async def _enter(self, line: str, printed: object | None) -> None:
        self._line_requests.release()
        self._last_prompt = None
        # A pipe is written in advance, so each of its lines is meant for the next question.
        if is_terminal(self._source) and self._conversation.is_stale(line, printed):
            note = Note("warning", "The line was not used: the question had changed.")
            self._conversation.notes.append(note)
            self._show()
            return
        command = await self._conversation.enter(line)
        if command is not None:
            note = Note("bad", f"{command.name} needs a terminal with a cursor.")
            self._conversation.notes.append(note)
        self._show()

    def _is_line_due(self) -> bool:
        """Return whether the next line may be used.

        A pipe is written in advance. A line that is used while the agent works would become an
        input, although it was meant for the next question. A person sees what is asked.
        """
        conversation = self._conversation
        person = is_terminal(self._source)
        asked = conversation.question_id is not None or conversation.is_awaited
        return person or asked or conversation.is_idle

    def _is_over(self) -> Literal["quit", "unanswered"] | None:
        conversation = self._conversation
        if conversation.is_awaited:
            conversation.notes.append(Note("bad", "The input ended. The question stays open."))
            return "unanswered"
        return "quit" if conversation.is_idle else None

    # -- output ----------------------------------------------------------------------------------

    def _show(self) -> None:
        """Print new output, and each prompt once."""
        lines = self._scroll.advance()
        notes, self._conversation.notes = self._conversation.notes, []
        for note in notes:
            lines += self._scroll.note(self._scroll.paint(draw_note(note, self._scroll.options)))
        prompt = self._conversation.prompt
        answerable = bool(self._lines) or not self._is_ended
        if prompt.label and prompt != self._last_prompt and answerable:
            hint = f"  ({prompt.hint})" if prompt.hint else ""
            lines += self._scroll.note(self._scroll.paint(Text(f"? {prompt.label}{hint}")))
        self._last_prompt = prompt
        self._printed = self._conversation.asking
        write_lines(self._out, lines)
