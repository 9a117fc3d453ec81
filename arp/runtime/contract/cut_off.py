"""Why an answer ends where it should not: in words for people, and as a mark for the model.

Each provider has its own words for it; `cut_off_of` knows them.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class CutOff(StrEnum):
    """Why an answer is not complete."""

    LENGTH = "length"
    FILTER = "filter"
    REQUESTS = "requests"
    UNFINISHED = "unfinished"
    EMPTY = "empty"


CUT_OFF_WORDS: Final = {
    CutOff.LENGTH: (
        "The model reached its limit of output tokens, so this answer is not complete. "
        "Ask it to continue, or raise the limit."
    ),
    CutOff.FILTER: (
        "A content filter of the model's provider stopped this answer. Ask in other words."
    ),
    CutOff.REQUESTS: (
        "The agent reached its limit of requests to the model, so it stopped before it was done. "
        "Ask it to continue."
    ),
    CutOff.UNFINISHED: (
        "The model's server ended this answer without saying that it is complete: a part may be "
        "missing. Ask it to continue."
    ),
    CutOff.EMPTY: (
        "The model gave an empty answer. Ask again, or in other words; if it stays empty, check "
        "the model's name and address."
    ),
}
_REASONS: Final = {
    CutOff.LENGTH: (
        "length", "max_tokens", "max_output_tokens", "model_length", "token_limit",
        "model_context_window_exceeded",
    ),
    CutOff.FILTER: (
        "content_filter", "content_filtered", "guardrail_intervened", "safety", "recitation",
        "prohibited_content", "blocklist", "spii", "sensitive",
    ),
    CutOff.REQUESTS: ("max_turn_requests",),
}  # fmt: skip
_BY_REASON: Final = {reason: kind for kind, reasons in _REASONS.items() for reason in reasons}


def cut_off_of(reason: object) -> CutOff | None:
    """Return what a provider's reason for an end means; `None`: the answer is complete."""
    return _BY_REASON.get(reason.lower()) if isinstance(reason, str) else None


def mark_of(words: str) -> str:
    """Return the mark that a model reads behind an answer of its own that is not complete."""
    return f"[{words}]"
