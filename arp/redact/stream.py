"""Removes secrets from text that arrives in pieces, wherever the cuts are.

Theory of operation. The end of a piece may be the beginning of a secret. It is *held* until the
next pieces decide. As soon as it is known to be a secret, the mark is passed on, and the rest of
the secret is dropped as it arrives (`_inside`). So little is held: at most the window of a shape,
or a known secret. A lead, such as `token=`, is no secret and is passed on at once. So the caller
gives with each piece the text before it.

Most pieces have no sign of a lead, and neither has the text before them. They need no stream, see
`Redactor.has_sign`. A stream is made for the first piece with a sign, and used until it is no
longer busy.

A stored text that grows from time to time (`grow`) needs no stream in between: the stored text
shows how to continue, even after a mark. Only the held text must be kept.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from arp.redact.redactor import MARK, Found, Redactor
from arp.redact.shapes import Shape

CONTEXT: Final = 160
"""How many characters before a piece are searched with it: more than any lead has."""

GROWN_CONTEXT: Final = 2 * CONTEXT
"""The same for a stored text: it may end with a lead and a mark."""


class SecretStream:
    """One text that arrives in pieces.

    Args:
        redactor: Finds the secrets.
        inside: The shape of a secret whose beginning the text before already had.
    """

    __slots__ = ("_behind", "_inside", "_redactor", "found", "held", "is_busy")

    def __init__(self, redactor: Redactor, inside: Shape | None = None) -> None:
        self._redactor = redactor
        self._inside = inside
        self._behind = ""
        """The text before, after `finish`: the next piece may continue it."""
        self.is_busy = False
        """Whether text is held, or the next piece must be searched even without a sign."""
        self.held = ""
        """Text that has arrived and was not passed on."""
        self.found: Found = {}
        """What was found since `take_found`."""

    def admit(self, piece: str, before: str) -> str:
        """Take a piece, and return the text that can be passed on now; it may be empty.

        Args:
            piece: The next piece of the text.
            before: The last `CONTEXT` characters that were passed on, or all there are.
        """
        return self._pass(self.held + piece, before, is_whole=False)

    def finish(self, before: str) -> str:
        """Return the held text, since something else than text follows. Text may continue later.

        Args:
            before: As in `admit`.
        """
        out = self._pass(self.held, before, is_whole=True)
        self._behind, self.is_busy = (self._behind + before + out)[-CONTEXT:], True
        return out

    def take_found(self) -> Found:
        """Return what was found since the last time."""
        found, self.found = self.found, {}
        return found

    def _pass(self, text: str, before: str, is_whole: bool) -> str:
        self.held, self.is_busy = "", False
        if self._inside is not None:
            rest = self._after_secret(self._inside, text, is_whole)
            if rest is None:
                return ""
            text = rest
        return self._cleaned(text, (self._behind + before)[-CONTEXT:], is_whole)

    def _after_secret(self, shape: Shape, text: str, is_whole: bool) -> str | None:
        """Drop the rest of the secret that was found.

        Returns:
            The text after it; `None` if the secret may continue.
        """
        match = self._redactor.body_of(shape).match(text)
        rest = text[match.end() :] if match is not None else text
        if not rest or (shape.may_go_on(rest, 0) and not is_whole):
            self.held, self.is_busy = rest, True
            return None
        self._inside = None
        return rest

    def _cleaned(self, text: str, before: str, is_whole: bool) -> str:
        joined, place = before + text, len(before)
        pieces = list[str]()
        for span in self._redactor.spans(joined, is_whole):
            if not span.is_secret:
                self.is_busy = True
                self.held = joined[max(place, span.start) :]
                joined = joined[: max(place, span.start)]
                break
            if span.end <= place:
                continue
            pieces += (joined[place : max(place, span.start)], MARK)
            place = span.end
            self.found[span.rule] = self.found.get(span.rule, 0) + 1
            if span.shape is not None and span.shape.may_go_on(joined, place):
                self._inside, self.is_busy = span.shape, True
                if not is_whole:
                    self.held, joined = joined[place:], joined[:place]
        if not (is_whole or self.held or self._inside):
            joined = self._hold_known(joined, place)
        return "".join([*pieces, joined[place:]])

    def _hold_known(self, joined: str, place: int) -> str:
        begin = max(place, self._redactor.beginning_of_known(joined, 0))
        self.held = joined[begin:]
        if self.held or self._redactor.unfinished(joined):
            self.is_busy = True
        return joined[:begin]


class Grown(NamedTuple):
    """The result for a piece by which a text grows."""

    out: str
    """The text that can be stored now."""
    held: str
    """The text that the next piece decides; it belongs before that piece."""
    found: Found


def grow(redactor: Redactor, held: str, piece: str, before: str) -> Grown:
    """Remove secrets from a piece by which a stored text grows.

    Args:
        redactor: Finds the secrets.
        held: The held text of the pieces before.
        piece: The next piece.
        before: The last `GROWN_CONTEXT` characters of the stored text, or all there are.
    """
    if not held and not redactor.has_sign(piece) and not redactor.has_sign(before):
        return Grown(piece, "", {})
    stream = SecretStream(redactor, redactor.shape_before(before))
    out = stream.admit(held + piece, before)
    return Grown(out, stream.held, stream.found)


def let_go(redactor: Redactor, held: str, before: str) -> Grown:
    """Return the held text, since nothing follows for now; `before` is as in `grow`."""
    stream = SecretStream(redactor, redactor.shape_before(before))
    stream.held = held
    return Grown(stream.finish(before), "", stream.found)
