"""What users think of an answer: a thumb and a comment."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from arp.access.principal import User

Rating: TypeAlias = Literal["up", "down", "none"]
"""`none`: it was taken back."""

MAX_COMMENT_CHARACTERS = 2_000


class Feedback(Struct, frozen=True):
    """What a user thinks of the answer of one turn; `@app.on_feedback` gets it."""

    session_id: str
    turn_id: str
    rating: Rating
    comment: str
    """Empty: none."""
    user: User
    question: str
    """What the user had said; empty where that is no text."""
    answer: str
    """What the agent said, as text."""
