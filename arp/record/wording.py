"""Text from an agent's own code, in a form that every encoding can carry."""

from __future__ import annotations

PREVIEW_CHARACTERS = 2_000
"""Of an output kept in the ledger; a screen shows no more of one at once."""


def well_formed(text: str) -> str:
    """Gives a text without lone surrogates, which models stream now and then.

    Halves that stand side by side become the character that they mean, others become U+FFFD.

    Raises:
        TypeError: It is no text.
    """
    if not isinstance(text, str):
        raise TypeError(f"expected str, got {type(text).__name__}")
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
