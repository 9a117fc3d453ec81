"""Reasons why an answer is incomplete: texts for people, and marks for the model.

Each provider has its own words for a reason; `cut_off_of` maps them to `CutOffReason`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class CutOffReason(StrEnum):
    """Reason why an answer is incomplete."""

    LENGTH = "length"
    FILTER = "filter"
    REQUESTS = "requests"
    UNFINISHED = "unfinished"
    EMPTY = "empty"


CUT_OFF_WORDS: Final = {
    CutOffReason.LENGTH: (
        "The model reached its limit of output tokens, so this answer is not complete. "
        "Ask it to continue, or raise the limit."
    ),
    CutOffReason.FILTER: (
        "A content filter of the model's provider stopped this answer. Ask in other words."
    ),
    CutOffReason.REQUESTS: (
        "The agent reached its limit of requests to the model, so it stopped before it was done. "
        "Ask it to continue."
    ),
    CutOffReason.UNFINISHED: (
        "The model's server ended this answer without saying that it is complete: a part may be "
        "missing. Ask it to continue."
    ),
    CutOffReason.EMPTY: (
        "The model gave an empty answer. Ask again, or in other words; if it stays empty, check "
        "the model's name and address."
    ),
}
_REASONS: Final = {
    CutOffReason.LENGTH: (
        "length", "max_tokens", "max_output_tokens", "model_length", "token_limit",
        "model_context_window_exceeded",
    ),
    CutOffReason.FILTER: (
        "content_filter", "content_filtered", "guardrail_intervened", "safety", "recitation",
        "prohibited_content", "blocklist", "spii", "sensitive",
    ),
    CutOffReason.REQUESTS: ("max_turn_requests",),
}  # fmt: skip
_BY_REASON: Final = {reason: kind for kind, reasons in _REASONS.items() for reason in reasons}


def cut_off_of(reason: object) -> CutOffReason | None:
    """Return the meaning of a provider's finish reason; `None` if the answer is complete."""
    return _BY_REASON.get(reason.lower()) if isinstance(reason, str) else None


def mark_of(words: str) -> str:
    """Return the mark that shows a model that its own earlier answer is incomplete."""
    return f"[{words}]"
