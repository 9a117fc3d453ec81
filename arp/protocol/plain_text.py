"""Text from somebody else's code, in a form that every encoding can carry."""

from __future__ import annotations


def well_formed(text: str) -> str:
    """Return a text as a plain `str` without lone surrogates, which models stream now and then.

    A subclass of `str` gives its own characters, whatever its methods make of them: encoders take
    no subclass. Halves that stand side by side become the character that they mean, others U+FFFD.

    Raises:
        TypeError: It is no text.
    """
    kind: type = type(text)
    if kind is not str:
        if not issubclass(kind, str):  # isinstance() believes what a proxy says of itself
            raise TypeError(f"expected str, got {kind.__name__}")
        text = str.__str__(text)
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
