"""Safe output of foreign text: invisible and control characters become visible.

Every program that prints text from the wire, a ledger or a pack passes it through this module
first, also when it prints into a pipe, because that output is read later. No text can then move a
cursor, set a title, fill a clipboard, hide a part of itself or reverse its order. The terminal
renderer does this when it reads a text (`props`) and again when it paints (`painter`).
"""

from __future__ import annotations

import re
import unicodedata


def well_formed(text: str) -> str:
    """Return a text as a plain `str` without lone surrogates, which models sometimes stream.

    A subclass of `str` is replaced by its own characters, whatever its methods return, because
    encoders refuse subclasses. A matching pair of surrogates becomes the character that it encodes,
    and a lone surrogate becomes U+FFFD.

    Raises:
        TypeError: The value is not a text.
    """
    kind: type = type(text)
    if kind is not str:
        if not issubclass(kind, str):  # isinstance() trusts the `__class__` of a proxy
            raise TypeError(f"expected str, got {kind.__name__}")
        text = str.__str__(text)
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


_ALWAYS = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 except newline and tab, DEL, C1
    "\u00ad\u034f\u061c"  # soft hyphen, grapheme joiner, Arabic letter mark
    "\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2"  # format controls of Arabic and Syriac
    "\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\uffa0"  # letters and vowels that show nothing
    "\u200b\u200c\u200e\u200f\u2060-\u206f\ufeff\ufff9-\ufffb"  # zero width, marks, isolates
    "\u2028-\u202e"  # separators of lines and paragraphs, bidi overrides
    "\ud800-\udfff"  # halves of surrogate pairs
    "\ufe00-\ufe0d"  # variation selectors that no emoji uses
    "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"  # tags and more variation selectors
)
_JOINER = "\u200d"
_SELECTORS = "\ufe0e\ufe0f"
_SUSPECT = re.compile(f"[{_ALWAYS}{_JOINER}{_SELECTORS}]")
_SUSPECT_IN_LINE = re.compile(f"[\n\t{_ALWAYS}{_JOINER}{_SELECTORS}]")

_EMOJI_BASES = frozenset(("So", "Sm", "Po", "Pd", "Nd"))
"""Unicode categories of the characters that an emoji variation selector can follow."""


def sanitise(text: str) -> str:
    r"""Return `text` with every character visible; newline and tab stay.

    C0 controls become their pictures (ESC becomes `␛`), other invisible characters become their
    code (`<U+202E>`), and `\r\n` becomes a newline. A joiner or a variation selector that is part
    of an emoji stays.
    """
    if "\r\n" in text:
        text = text.replace("\r\n", "\n")
    return _SUSPECT.sub(_visible_form, text)


def sanitise_line(text: str) -> str:
    """Return `text` on one line, sanitised: a newline becomes `␊`, a tab a space."""
    if "\r\n" in text:
        text = text.replace("\r\n", "\n")
    return _SUSPECT_IN_LINE.sub(_visible_form, text)


def escaped_json(text: str) -> str:
    r"""Return JSON with invisible characters escaped, as in `\u001b`; its value stays the same.

    In valid JSON these characters occur only in strings, except for the carriage return, which
    becomes a space. In a text that is not JSON, the escapes make the characters visible too.
    """
    if "\r" in text:
        text = text.replace("\r", " ")
    return _SUSPECT.sub(_json_escape, text)


def is_safe(text: str) -> bool:
    """Return whether `sanitise` would return `text` unchanged."""
    return sanitise(text) == text


def _json_escape(match: re.Match[str]) -> str:
    char = match.group()
    if _is_part_of_emoji(match):
        return char
    units = char.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def _is_part_of_emoji(match: re.Match[str]) -> bool:
    char = match.group()
    return (char == _JOINER and _joins_emoji(match)) or (
        char in _SELECTORS and _selects_emoji(match)
    )


def _visible_form(match: re.Match[str]) -> str:
    char = match.group()
    if char == "\t":
        return " "
    if _is_part_of_emoji(match):
        return char
    code = ord(char)
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else f"<U+{code:04X}>"


def _joins_emoji(match: re.Match[str]) -> bool:
    before = match.string[max(0, match.start() - 3) : match.start()].rstrip("\ufe0f🏻🏼🏽🏾🏿")
    after = match.string[match.end() : match.end() + 1]
    return _is_symbol(before[-1:]) and _is_symbol(after)


def _selects_emoji(match: re.Match[str]) -> bool:
    before = match.string[match.start() - 1 : match.start()]
    return before == "ℹ" or (before != "" and unicodedata.category(before) in _EMOJI_BASES)


def _is_symbol(char: str) -> bool:
    return char != "" and unicodedata.category(char) == "So"
