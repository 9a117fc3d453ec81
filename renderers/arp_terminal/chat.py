"""A chat in a terminal with a cursor: the conversation above, the prompt below.

Theory of operation. Output that can no longer change is printed above the prompt, once, and scrolls
away with the terminal. Live output is part of the lines of the prompt and is redrawn: at most 20
times per second, and less often if drawing is slow, so that it takes at most a quarter of the time.
An event is only recorded when it arrives; the next frame shows its effect.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from msgspec.structs import replace
from prompt_toolkit import Application
from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.history import History
from prompt_toolkit.input import Input, create_input
from prompt_toolkit.output import ColorDepth, Output
from prompt_toolkit.patch_stdout import patch_stdout

from arp_terminal.drawing.notes import Note, draw_note
from arp_terminal.log.scroll import Scroll, Tail
from arp_terminal.options import Options
from arp_terminal.programs.chat_terminal import (
    copy_sequence,
    erase_reflowed,
    frame,
    history_path,
    open_history,
    reflows,
    terminal_output,
)
from arp_terminal.programs.composer import STYLE, Composer
from arp_terminal.programs.conversation import CONFIRM_LEAVE_S, Client, Conversation
from arp_terminal.programs.line_mode import line_chat
from arp_terminal.programs.status import TURNS_PER_S, Status, spinner
from arp_terminal.programs.terminal import is_dumb, is_terminal, options_for
from arp_terminal.prompt import Prompt

FRAME_S = 0.05
"""Minimum time between two frames: 20 per second."""

SETTLED_S = 0.02
"""Age from which a frame has certainly been drawn by the terminal. When it read a younger frame, it
may already have had another size, and have cut the lines at its border."""

DRAG_S = 1.0
"""Time after a change of the size until there is certainly no other change that the terminal has
not reported yet: tmux reports four changes per second."""

REST = 3
"""Minimum pause after a frame, as a multiple of the time that drawing it took."""


async def chat(
    client: Client, *, place: str = "", level: str = "standard", server: str = ""
) -> str:
    """Run a chat until the user leaves or the connection is lost.

    In a terminal with a cursor, the prompt stays below the output. Elsewhere the chat reads and
    prints line by line.

    Args:
        client: A connected client; it stays open.
        place: Name of the agent and the server, for the first line.
        level: Conformance level that the client has offered.
        server: Address of the server over HTTP; empty if it has none.

    Returns:
        Why it ended: `quit`, `new` (a new session is wanted), `interrupted`, or `lost`.
    """
    options = options_for(sys.stdout, level=level, server=server)
    if not is_terminal(sys.stdin) or not is_terminal(sys.stdout) or is_dumb(os.environ):
        return await line_chat(client, options, sys.stdin, sys.stdout)
    depth = None if options.colour else ColorDepth.DEPTH_1_BIT
    history = open_history(history_path(os.environ))
    screen_chat = ScreenChat(client, options, history)
    screen_chat.greet(place)
    source, output = create_input(), terminal_output()
    with patch_stdout(raw=True), screen_chat.until_told_to_stop():
        return await screen_chat.run(source, output, depth)


class _Application(Application[None]):
    """An application that finds its lines again before it erases them for another size."""

    before_erase: Callable[[], None] = staticmethod(lambda: None)

    def _on_resize(self) -> None:
        self.before_erase()
        super()._on_resize()


class ScreenChat:
    """One conversation in one terminal."""

    def __init__(
        self,
        client: Client,
        options: Options,
        history: History,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._conversation = Conversation(client, hold=True)
        self._scroll = Scroll(self._conversation.transcript, options)
        self._clock = clock
        status = Status(self._conversation, unicode=options.unicode)
        self._composer = Composer(
            history,
            status=lambda: status.fragments(clock()),
            unicode=options.unicode,
            clock=clock,
        )
        self._dirty = asyncio.Event()
        self._question: str | None = None
        self._flash_ends = float("inf")
        """Time at which the note at the prompt disappears."""
        self._app: Application[None] | None = None
        self._tail = self._on_screen = Tail()
        """The tail of the next frame, and the tail that the terminal shows."""
        self._drawn_at = self._resized_at = float("-inf")
        self._rows = 0
        """Lines of the terminal in the last frame."""

    def greet(self, place: str) -> None:
        """Print the first line, with the agent and the server."""
        session = self._conversation.client.session_id or ""
        self._conversation.notes.append(
            Note("info", f"{place}  session {session}  /help", lasting=True)
        )

    async def run(self, source: Input, output: Output, depth: ColorDepth | None = None) -> str:
        """Run until the end and return its reason; the terminal is restored in any case."""
        conversation = self._conversation
        events = conversation.client.events()
        before = self._notes()
        self._rows = output.get_size().rows
        conversation.transcript.adopt(conversation.client.screen)
        app = self._app = _Application(
            layout=self._composer.layout(),
            key_bindings=self._composer.keys(
                self._enter, self._interrupt, self._leave, self._complete
            ),
            style=STYLE,
            color_depth=depth,
            input=source,
            output=output,
            erase_when_done=True,
            refresh_interval=None,
        )
        app.before_erase = self._fit
        app.before_render += lambda _: self._fit()
        app.after_render += lambda _: self._record_drawn()
        jobs = [
            asyncio.create_task(self._listen(events)),
            asyncio.create_task(self._draw()),
            asyncio.create_task(self._spin()),
        ]
        for job in jobs:
            job.add_done_callback(self._ended)
        self._write([*before, *self._advance()])
        try:
            await app.run_async()
        finally:
            for job in jobs:
                job.cancel()
            await asyncio.gather(*jobs, return_exceptions=True)
            self._write(self._scroll.finish())
        return conversation.ended or "quit"

    @contextmanager
    def until_told_to_stop(self) -> Iterator[None]:
        """Leave on SIGTERM, so that the terminal is put back as it was."""
        loop = asyncio.get_running_loop()
        # Not in a thread that is not the main one, and not on Windows.
        with suppress(NotImplementedError, RuntimeError, ValueError):
            loop.add_signal_handler(signal.SIGTERM, self._leave)
        try:
            yield
        finally:
            with suppress(NotImplementedError, RuntimeError, ValueError):
                loop.remove_signal_handler(signal.SIGTERM)

    # -- jobs ------------------------------------------------------------------------------------

    async def _listen(self, events: object) -> None:
        async for event in events:  # type: ignore[attr-defined]  # an async iterator
            self._conversation.receive(event)
            self._dirty.set()
        self._conversation.ended = self._conversation.ended or "lost"
        self._dirty.set()

    def _ended(self, job: asyncio.Task[None]) -> None:
        """End the chat with the exception of a job; otherwise the screen would just freeze."""
        error = None if job.cancelled() else job.exception()
        if error is not None and self._app is not None and not self._app.is_done:
            self._app.exit(exception=error)

    async def _draw(self) -> None:
        """Draw a frame after each change, with pauses between."""
        while True:
            await self._dirty.wait()
            self._dirty.clear()
            began = self._clock()
            await self._frame()
            took = self._clock() - began
            await asyncio.sleep(max(FRAME_S, REST * took))

    async def _spin(self) -> None:
        """Redraw the spinner and the seconds, and remove a brief note."""
        while True:
            await asyncio.sleep(1 / TURNS_PER_S)
            client = self._conversation.client
            if self._composer.flash and self._clock() >= self._flash_ends:
                self._composer.flash = []
                self._dirty.set()
            if self._conversation.running is not None or not client.connected:
                self._dirty.set()

    async def _frame(self) -> None:
        """Print final output above the prompt, and redraw the rest."""
        app = self._app
        assert app is not None
        self._fit()
        lines = self._advance()
        if lines:
            with frame(app.output):
                await run_in_terminal(lambda: self._write(lines))  # it redraws the prompt, too
        else:
            app.invalidate()
        if self._conversation.ended is not None and not app.is_done:
            app.exit()

    def _advance(self) -> list[str]:
        """Return the lines to print, and show the tail and the prompt in the composer."""
        assert self._app is not None
        conversation, scroll, composer = self._conversation, self._scroll, self._composer
        size = self._app.output.get_size()
        room = max(3, size.rows - composer.height(size.columns))
        lines = scroll.advance(room, spinner(self._clock(), scroll.options.unicode))
        if not scroll.live.is_whole:
            # Part of the tail is cut. The user must not approve an input that is partly hidden.
            conversation.show_input()
        lines += self._notes()
        self._show(scroll.live)
        question = conversation.question_id
        changed = question != self._question
        composer.ask(conversation.prompt, changed=changed, question=conversation.asking)
        self._question = question
        return lines

    def _notes(self) -> list[str]:
        """Return the lines of lasting notes, and show other notes at the prompt."""
        lines: list[str] = []
        notes, self._conversation.notes = self._conversation.notes, []
        for note in notes:
            drawn = self._scroll.paint(draw_note(note, self._scroll.options))
            if note.lasting:
                lines += self._scroll.note(drawn)
            else:
                self._composer.flash = drawn
                self._flash_ends = self._clock() + CONFIRM_LEAVE_S if note.brief else float("inf")
        return lines

    def _show(self, tail: Tail) -> None:
        self._tail = tail
        self._composer.show(list(tail.lines))

    def _record_drawn(self) -> None:
        self._composer.record_drawn()
        if self._tail.lines != self._on_screen.lines:
            self._drawn_at = self._clock()
        self._on_screen = self._tail

    def _fit(self) -> None:
        """Adapt to a change of the terminal's size.

        A terminal that got smaller may have pushed part of the tail out of sight, where it cannot
        be erased. So the whole tail stays if possible, and new output continues below it.
        """
        assert self._app is not None
        size, width = self._app.output.get_size(), self._scroll.options.width
        drawn = self._app.renderer.last_rendered_screen
        breaks = size.columns < width and reflows(os.environ)
        is_too_low = size.rows < self._rows and drawn is not None and drawn.height > size.rows
        if breaks or is_too_low:
            first = self._keep_tail()
            if breaks or first:
                columns = size.columns if breaks else width
                erase_reflowed(self._app.renderer, self._app.output, columns, first)
        if size.columns != width:
            self._scroll.resize(replace(self._scroll.options, width=size.columns))
            self._dirty.set()
        if (size.columns, size.rows) != (width, self._rows):
            self._resized_at = self._clock()
        self._rows = size.rows

    def _keep_tail(self) -> int:
        """Count the tail on the screen as printed; return its number of lines, 0 if not safe."""
        now, tail = self._clock(), self._on_screen
        is_safe = now - self._drawn_at >= SETTLED_S and now - self._resized_at >= DRAG_S
        if not is_safe or not self._scroll.leave(tail):
            return 0
        self._show(self._scroll.live)
        return len(tail.lines)

    def _write(self, lines: list[str]) -> None:
        if lines and self._app is not None:
            self._app.output.write_raw("".join(f"{line}\n" for line in lines))
            self._app.output.flush()

    # -- keys ------------------------------------------------------------------------------------

    def _enter(self) -> None:
        composer = self._composer
        prompt, shown = composer.prompt, composer.shown
        self._run_in_background(self._handle_line(composer.take(), prompt, shown))

    async def _handle_line(self, typed: str, prompt: Prompt, shown: object | None) -> None:
        """Handle a line.

        Args:
            typed: The line.
            prompt: The prompt at which it was typed.
            shown: The question that was on the screen when the key was pressed.
        """
        if self._conversation.is_stale(typed, shown):
            # The next frame shows another question or none. The line was not meant for that.
            self._composer.keep(typed, prompt)
            self._dirty.set()
            return
        self._composer.flash = []
        command = await self._conversation.enter(typed)
        if command is not None and command.name == "/copy":
            self._copy()
        self._dirty.set()

    def _complete(self) -> None:
        buffer = self._composer.buffer
        self._composer.flash = []
        buffer.insert_text(self._conversation.complete(buffer.document.text_before_cursor))
        self._dirty.set()

    def _interrupt(self) -> None:
        if self._composer.buffer.text and self._conversation.running is None:
            self._composer.buffer.reset()
        else:
            self._run_in_background(self._stop())

    async def _stop(self) -> None:
        await self._conversation.interrupt(self._clock())
        self._dirty.set()

    def _leave(self) -> None:
        self._conversation.ended = "quit"
        self._dirty.set()

    def _run_in_background(self, job: object) -> None:
        assert self._app is not None
        self._app.create_background_task(job)  # type: ignore[arg-type]  # a coroutine

    def _copy(self) -> None:
        assert self._app is not None
        screen = self._conversation.client.screen
        text = next((text for turn in reversed(screen.turns) if (text := screen.text(turn))), "")
        sequence = copy_sequence(text, os.environ)
        if sequence is None:
            self._conversation.notes.append(Note("bad", "Nothing to copy, or too much."))
            return
        self._app.output.write_raw(sequence)
        self._app.output.flush()
        self._conversation.notes.append(Note("good", f"Copied {len(text):,} characters."))
