"""The lines at the bottom of the screen: the tail, the status, the prompt and the typed line.

Theory of operation. No key answers a question by accident. When another question appears, the typed
text is set aside as a draft, so that none of it can be the answer. Keys that answer without Enter
work only after `READING_S`, only in an empty line, and not at all if the user was typing. The
composer knows which question the terminal shows, which may be an older one than the current one.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from prompt_toolkit.auto_suggest import AutoSuggestFromHistory, ConditionalAutoSuggest
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition, has_focus
from prompt_toolkit.formatted_text import (
    ANSI,
    AnyFormattedText,
    StyleAndTextTuples,
    to_formatted_text,
)
from prompt_toolkit.history import History
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import (
    BufferControl,
    ConditionalContainer,
    FormattedTextControl,
    HSplit,
    Layout,
    Window,
)
from prompt_toolkit.layout.dimension import Dimension
from prompt_toolkit.layout.processors import (
    AppendAutoSuggestion,
    BeforeInput,
    ConditionalProcessor,
    PasswordProcessor,
)
from prompt_toolkit.styles import Style
from prompt_toolkit.widgets import SearchToolbar
from rich.cells import cell_len

from arp_terminal.drawing.palette import PROMPT_SIGN
from arp_terminal.prompt import Prompt

MAX_INPUT_LINES = 8
"""Maximum height of the typed text; longer text scrolls."""

READING_S = 0.5
"""Time after a question appears before keys answer it, so that the user can read it first."""

MAX_HINT_LINES = 5
MAX_LABEL = 120
"""Maximum length of the label before the typed line; the conversation shows the whole question."""

STYLE = Style.from_dict(
    {
        "prompt": "ansimagenta bold",
        "question": "ansicyan bold",
        "spinner": "ansicyan",
        "warning": "ansiyellow",
        "hint": "dim",
        "auto-suggestion": "dim",
    }
)


class Composer:
    """The editable line and the lines around it; it is independent of sessions."""

    def __init__(
        self,
        history: History,
        *,
        status: Callable[[], StyleAndTextTuples],
        unicode: bool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.prompt = Prompt("")
        self.flash: list[str] = []
        """Painted lines at the prompt, until the next line is typed."""
        self.buffer = Buffer(
            history=history,
            multiline=True,
            auto_suggest=ConditionalAutoSuggest(AutoSuggestFromHistory(), Condition(self._is_free)),
            name="input",
        )
        self._tail: StyleAndTextTuples = []
        self._status = status
        self._sign = PROMPT_SIGN if unicode else ">"
        self._draft = ""
        self._clock = clock
        self._question: object | None = None
        """The question of the prompt, compared by identity; `None` if any text may be typed."""
        self.shown: object | None = None
        """The question that the terminal shows; it is older than the prompt's until a frame."""
        self._keys_from = float("inf")
        """Time from which the keys of the question answer without Enter."""

    def show(self, tail: list[str]) -> None:
        """Show painted lines above the prompt, in place of the last ones."""
        self._tail = to_formatted_text(ANSI("\n".join(tail))) if tail else []

    def height(self, columns: int) -> int:
        """Return the maximum number of lines without the tail, and one to spare."""
        typed = min(MAX_INPUT_LINES, self.buffer.document.line_count)
        hint = min(MAX_HINT_LINES, cell_len(self.hint) // columns + 1)
        return 3 + len(self.flash) + hint + typed

    def record_drawn(self) -> None:
        """Record that the terminal shows the prompt."""
        self.shown = self._question

    def ask(self, prompt: Prompt, *, changed: bool, question: object | None = None) -> None:
        """Show another prompt.

        Args:
            prompt: The prompt.
            question: The question of the prompt; `None` if it has none.
            changed: Whether it is another question. Text in the line was not meant for it, so it is
                set aside and comes back at the prompt for any text.
        """
        was_free = self._is_free()
        begins = prompt.initial != self.prompt.initial
        self.prompt = prompt
        self._question = question
        if prompt.initial and begins:
            self.buffer.reset()
            self.buffer.insert_text(prompt.initial)
            return
        if not changed or (was_free and self._is_free()):
            return
        if was_free:
            self._draft = self.buffer.text
        # A user who is typing has not read the question, so the next key must not answer it.
        self._keys_from = float("inf") if self.buffer.text else self._clock() + READING_S
        self.buffer.reset()
        if self._is_free():
            self.buffer.insert_text(self._draft)
            self._draft = ""

    @property
    def hint(self) -> str:
        """The explanation above the line; empty if the drawing of the question has it already."""
        return "" if self.prompt.keys else self.prompt.hint

    def take(self) -> str:
        """Return the typed text and clear the line; answers are not added to the history."""
        text = self.buffer.text
        if self._is_free() and text.strip():
            self.buffer.append_to_history()
        self.buffer.reset()
        return text

    def keep(self, text: str, prompt: Prompt) -> None:
        """Keep a line that was not used, for the next prompt for any text.

        A key or a word that only selects an answer is dropped, and so is a secret.

        Args:
            text: The line.
            prompt: The prompt at which it was typed.
        """
        if prompt.secret or not text.strip() or prompt.option(text) is not None:
            return
        if self._is_free():
            rest = self.buffer.text
            self.buffer.reset()
            self.buffer.insert_text(f"{text}\n{rest}" if rest else text)
        else:
            self._draft = f"{self._draft}\n{text}" if self._draft else text

    def layout(self) -> Layout:
        """Return the layout for an application."""
        search = SearchToolbar()
        control = BufferControl(
            self.buffer,
            search_buffer_control=search.control,
            input_processors=[
                ConditionalProcessor(PasswordProcessor(), Condition(lambda: self.prompt.secret)),
                ConditionalProcessor(AppendAutoSuggestion(), Condition(self._is_free)),
                BeforeInput(self._before),
            ],
        )
        typed = Window(
            control,
            wrap_lines=True,
            dont_extend_height=True,
            height=Dimension(min=1, max=MAX_INPUT_LINES),
        )
        shown: list[ConditionalContainer | Window | SearchToolbar] = [
            _shown(lambda: self._tail, lambda: bool(self._tail)),
            Window(height=1),
            _shown(self._status, lambda: bool(self._status())),
            _shown(lambda: ANSI("\n".join(self.flash)), lambda: bool(self.flash)),
            _shown(self._hint, lambda: bool(self.hint), MAX_HINT_LINES),
            typed,
            search,
        ]
        return Layout(HSplit(shown), focused_element=typed)

    def keys(
        self,
        enter: Callable[[], None],
        interrupt: Callable[[], None],
        leave: Callable[[], None],
        complete: Callable[[], None],
    ) -> KeyBindings:
        """Return the bindings of the keys that do not edit the line."""
        keys = KeyBindings()
        typing = has_focus(self.buffer)

        @keys.add("enter", filter=typing)
        @keys.add("c-j", filter=typing)
        def _enter(event: KeyPressEvent) -> None:
            enter()

        @keys.add(Keys.Any, filter=typing & Condition(lambda: self._keys_answer()))
        def _key(event: KeyPressEvent) -> None:
            self.buffer.insert_text(event.data)
            if event.data in self.prompt.keys:
                enter()

        @keys.add("escape", "enter", filter=typing)
        def _newline(event: KeyPressEvent) -> None:
            self.buffer.insert_text("\n")

        @keys.add("tab", filter=typing & Condition(self._is_free))
        def _complete(event: KeyPressEvent) -> None:
            complete()

        @keys.add("c-c", filter=typing)
        def _interrupt(event: KeyPressEvent) -> None:
            interrupt()

        @keys.add("c-d", filter=typing & Condition(lambda: not self.buffer.text))
        def _leave(event: KeyPressEvent) -> None:
            leave()

        @keys.add("c-z")
        def _suspend(event: KeyPressEvent) -> None:
            event.app.suspend_to_background()

        return keys

    def _is_free(self) -> bool:
        return not self.prompt.label or self.prompt.offered

    def _keys_answer(self) -> bool:
        is_due = self._clock() >= self._keys_from
        return bool(self.prompt.keys) and is_due and not self.buffer.text

    def _before(self) -> AnyFormattedText:
        if not self.prompt.label:
            return [("class:prompt", f"{self._sign} ")]
        prompt = self.prompt
        is_long = len(prompt.options) > 2  # the form above it says what is asked
        label = f"{prompt.letters}{prompt.count}" if is_long else prompt.label
        label = label[:MAX_LABEL]
        return [("class:question", f"? {label} "), ("class:prompt", f"{self._sign} ")]

    def _hint(self) -> StyleAndTextTuples:
        return [("class:hint", self.hint)]


def _shown(
    text: Callable[[], AnyFormattedText], when: Callable[[], bool], wrapped: int = 0
) -> ConditionalContainer:
    """Return a container that is visible under a condition.

    Args:
        text: Returns its text.
        when: Whether it is visible.
        wrapped: Maximum number of lines after wrapping; 0 wraps nothing.
    """
    window = Window(
        FormattedTextControl(text),
        dont_extend_height=True,
        wrap_lines=bool(wrapped),
        height=Dimension(max=wrapped) if wrapped else None,
    )
    return ConditionalContainer(window, Condition(when))
