"""Prompts and replies: what a question offers at the prompt, and what an answer to it is."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from arp.protocol.json_value import Json, JsonObject


class ActionReply(Struct, frozen=True):
    """An action of the component."""

    action: str
    payload: JsonObject | None = None


class SelectionReply(Struct, frozen=True):
    """Values of the selected options."""

    selected: list[Json]


class FormReply(Struct, frozen=True):
    """Values of a form."""

    fields: JsonObject
    """Values by field name, without the fields that were left empty."""
    action: str | None = None


class TextReply(Struct, frozen=True):
    """A text."""

    text: str
    answers: bool = True
    """Whether it answers the question; otherwise it is a new input for the agent."""


Reply: TypeAlias = ActionReply | SelectionReply | FormReply | TextReply


class Problem(Struct, frozen=True):
    """What is wrong with a typed line; the question stays open."""

    message: str


class Option(Struct, frozen=True):
    """One of the answers that a prompt offers.

    The label, the hint, the keys and the error of a prompt, and the drawing of the question, are
    all made from its options. So nothing is offered that is not accepted, and the other way round.
    """

    letter: str
    """Letter that selects it."""
    label: str
    """Its meaning, as one line without control characters."""
    reply: ActionReply | None = None
    """Answer to send; `None` if the dialogue continues, such as with an edit of the arguments."""
    number: int | None = None
    """Number that selects it as well; the page uses the same numbers."""
    words: tuple[str, ...] = ()
    """Words that select it as well, in lower case."""

    @property
    def keys(self) -> str:
        """The characters that select it."""
        return self.letter if self.number is None else f"{self.letter}{self.number}"

    @property
    def is_denial(self) -> bool:
        """Whether it says no."""
        return self.reply is not None and self.reply.action == "deny"

    def accepts(self, word: str) -> bool:
        """Return whether a word, in lower case, selects it; an empty one never does."""
        return bool(word) and (word in self.words or word in tuple(self.keys))


class Prompt(Struct, frozen=True):
    """The prompt for the next line."""

    title: str
    """What is asked, as one line; empty if any text may be typed."""
    note: str = ""
    """Explanation besides the options."""
    options: tuple[Option, ...] = ()
    """Answers that it offers; empty if values are typed, such as numbers or a text."""
    answers_by_key: bool = False
    """Whether a key of an option answers without Enter."""
    open_questions: int = 1
    """Number of open questions; this one is the first of them."""
    secret: bool = False
    """Whether to hide what is typed."""
    multiline: bool = False
    offered: bool = False
    """Whether the agent continues without an answer."""
    initial: str = ""
    """Text that is already in the line, to be edited."""

    @property
    def label(self) -> str:
        """The text before the line: `Delete? [y/n]`; empty if any text may be typed."""
        if not self.title and not self.options:
            return ""
        letters = f"{self.title} {self.letters}" if self.options else self.title
        return f"{letters}{self.count}"

    @property
    def letters(self) -> str:
        """The letters of the options: `[y/n]`."""
        return f"[{'/'.join(option.letter for option in self.options)}]"

    @property
    def count(self) -> str:
        """The text ` (question 1 of 3)`; empty if one question is open."""
        return f" (question 1 of {self.open_questions})" if self.open_questions > 1 else ""

    @property
    def hint(self) -> str:
        """What the options mean, and the explanation."""
        meanings = [f"{' or '.join(one.keys)} = {one.label}" for one in self.options]
        return ", ".join([*meanings, *([self.note] if self.note else [])])

    @property
    def error(self) -> str:
        """The message for a line that selects no option."""
        *others, last = (option.letter for option in self.options)
        return f"type {', '.join(others)} or {last}" if others else f"type {last}"

    @property
    def keys(self) -> str:
        """The characters that answer without Enter."""
        return "".join(option.keys for option in self.options) if self.answers_by_key else ""

    def option(self, word: str) -> Option | None:
        """Return the option that a typed word selects; `None` if it selects none."""
        found = word.strip().casefold()
        return next((option for option in self.options if option.accepts(found)), None)
