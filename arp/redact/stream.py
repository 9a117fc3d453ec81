"""Takes secrets out of text that comes in pieces, wherever the cuts are.

Theory of operation. What a piece ends with may be the beginning of a secret: that is *held* until
what follows decides. When enough has come to tell that it is one, the mark is given out, and what
still belongs to it is dropped as it comes (`_inside`). So little is held: at most a shape's window,
or a known secret. Leads are no secrets, they are given out at once; so who owns the text tells with
each piece what stands before it.

Most pieces have no sign of a lead and follow on nothing that has: for them there is no stream at
all, see `Redactor.has_sign`. A stream is made for the first piece with one, and is of use until it
is no longer busy.

A text that stands somewhere and grows now and then (`grow`) needs no stream that is kept: what
stands before a piece tells where it goes on, also behind a mark. Only what is held is to be kept.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from arp.redact.redactor import MARK, Found, Redactor
from arp.redact.shapes import Shape

CONTEXT: Final = 160
"""Characters before a piece that are looked at with it: more than any lead has."""

GROWN_CONTEXT: Final = 2 * CONTEXT
"""The same where the text itself is asked: a lead may stand before a mark, that before the end."""


class SecretStream:
    """One text on its way; made by whoever says the first piece of it."""

    __slots__ = ("_behind", "_inside", "_redactor", "found", "held", "is_busy")

    def __init__(self, redactor: Redactor, inside: Shape | None = None) -> None:
        self._redactor = redactor
        self._inside = inside
        self._behind = ""
        """What stood before what was held, when something else had to follow."""
        self.is_busy = False
        """Something is held, or what follows is to be looked at whatever it is."""
        self.held = ""
        """What has come and not gone out."""
        self.found: Found = {}
        """Since `take_found`."""

    def admit(self, piece: str, before: str) -> str:
        """Take a piece, and return what may go out now; that may be nothing.

        Args:
            piece: What comes.
            before: What went out last: `CONTEXT` characters, or all there are.
        """
        return self._pass(self.held + piece, before, is_whole=False)

    def finish(self, before: str) -> str:
        """Return what was held, since something else follows now. Text may go on behind that.

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
            rest = self._leave(self._inside, text, is_whole)
            if rest is None:
                return ""
            text = rest
        return self._cleaned(text, (self._behind + before)[-CONTEXT:], is_whole)

    def _leave(self, shape: Shape, text: str, is_whole: bool) -> str | None:
        """Drop what goes on with the secret that was found.

        Returns:
            What is behind it; `None` if it has not come to its end.
        """
        match = self._redactor.body_of(shape).match(text)
        rest = text[match.end() :] if match is not None else text
        if not rest or (shape.may_go_on(rest, 0) and not is_whole):
            self.held, self.is_busy = rest, True
            return None
        self._inside = None
        return rest

    def _cleaned(self, text: str, before: str, is_whole: bool) -> str:
        whole, place = before + text, len(before)
        pieces = list[str]()
        for span in self._redactor.spans(whole, is_whole):
            if not span.is_secret:
                self.is_busy = True
                self.held = whole[max(place, span.start) :]
                whole = whole[: max(place, span.start)]
                break
            if span.end <= place:
                continue
            pieces += (whole[place : max(place, span.start)], MARK)
            place = span.end
            self.found[span.rule] = self.found.get(span.rule, 0) + 1
            if span.shape is not None and span.shape.may_go_on(whole, place):
                self._inside, self.is_busy = span.shape, True
                if not is_whole:
                    self.held, whole = whole[place:], whole[:place]
        if not (is_whole or self.held or self._inside):
            whole = self._hold_known(whole, place)
        return "".join([*pieces, whole[place:]])

    def _hold_known(self, whole: str, place: int) -> str:
        begin = max(place, self._redactor.beginning_of_known(whole, 0))
        self.held = whole[begin:]
        if self.held or self._redactor.unfinished(whole):
            self.is_busy = True
        return whole[:begin]


class Grown(NamedTuple):
    """What comes of a piece by which a text grows."""

    out: str
    """What may be told now."""
    held: str
    """What follows decides; it goes before the next piece."""
    found: Found


def grow(redactor: Redactor, held: str, piece: str, before: str) -> Grown:
    """Take secrets out of a piece by which a text grows that stands somewhere.

    Args:
        redactor: What finds them.
        held: Of the pieces before.
        piece: What comes.
        before: What stands there: its last `GROWN_CONTEXT` characters, or all there are.
    """
    if not held and not redactor.has_sign(piece) and not redactor.has_sign(before):
        return Grown(piece, "", {})
    stream = SecretStream(redactor, redactor.shape_before(before))
    out = stream.admit(held + piece, before)
    return Grown(out, stream.held, stream.found)


def let_go(redactor: Redactor, held: str, before: str) -> Grown:
    """Return what is held, since nothing follows for now; with `before` as in `grow`."""
    stream = SecretStream(redactor, redactor.shape_before(before))
    stream.held = held
    return Grown(stream.finish(before), "", stream.found)
