"""Feedback of users about an answer: a rating and a comment."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from arp.access.principal import User

Rating: TypeAlias = Literal["up", "down", "none"]
"""Rating of an answer; `none` takes an earlier rating back."""

MAX_COMMENT_CHARACTERS = 2_000


class Feedback(Struct, frozen=True):
    """A user's rating of the answer of one turn; `@app.on_feedback` receives it."""

    session_id: str
    turn_id: str
    rating: Rating
    comment: str
    """Comment; may be empty."""
    user: User
    question: str
    """Text of the turn's input; empty if it has none."""
    answer: str
    """Output of the turn, as text."""
