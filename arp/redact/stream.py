"""Remove secrets from text that arrives in pieces, however it is cut.

Theory of operation. The end of a piece may be the beginning of a secret. It is *held* until the
next pieces decide. As soon as it is known to be a secret, the mark is passed on, and the rest of
the secret is dropped when it arrives (`_inside`). So the held text is short: at most the window of
a shape, or a known value. A lead, such as `token=`, is not secret and is passed on at once;
therefore the caller passes the preceding text with each piece.

Most pieces, and the text before them, have no sign of a lead (`Redactor.has_sign`). They need no
stream. A stream is made for the first piece with a sign, and is used while it is busy.

A stored text that grows from time to time (`grow`) needs no stream between two pieces. The end of
the stored text shows how to continue, even after a mark. Only the held text must be kept.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from arp.redact.redactor import MARK, Found, Redactor
from arp.redact.shapes import Shape

CONTEXT: Final = 160
"""Number of characters before a piece that are searched with it; longer than any lead."""

GROWN_CONTEXT: Final = 2 * CONTEXT
"""The same number for a stored text, which may end with a lead and a mark."""


class SecretStream:
    """One text that arrives in pieces.

    Args:
        redactor: Redactor that finds the secrets.
        inside: Shape of a secret that began in the preceding text; `None` if there is none.
    """

    __slots__ = ("_finished", "_inside", "_redactor", "found", "held", "is_busy")

    def __init__(self, redactor: Redactor, inside: Shape | None = None) -> None:
        self._redactor = redactor
        self._inside = inside
        self._finished = ""
        """Last characters of the text before `finish`, because the next piece may continue it."""
        self.is_busy = False
        """Whether text is held, or the next piece must be searched even without a sign."""
        self.held = ""
        """Received text that is not yet passed on."""
        self.found: Found = {}
        """Matches since the last `take_found`."""

    def admit(self, piece: str, before: str) -> str:
        """Process a piece; return the text that can be passed on now, which may be empty.

        Args:
            piece: Next piece of the text.
            before: Last `CONTEXT` characters that were passed on, or fewer if there are no more.
        """
        return self._pass(self.held + piece, before, is_whole=False)

    def finish(self, before: str) -> str:
        """Decide about the held text as if the text ended here, and return it without secrets.

        The text may still continue later.

        Args:
            before: See `admit`.
        """
        out = self._pass(self.held, before, is_whole=True)
        self._finished, self.is_busy = (self._finished + before + out)[-CONTEXT:], True
        return out

    def take_found(self) -> Found:
        """Return the matches since the last call, and reset them."""
        found, self.found = self.found, {}
        return found

    def _pass(self, text: str, before: str, is_whole: bool) -> str:
        self.held, self.is_busy = "", False
        if self._inside is not None:
            rest = self._after_secret(self._inside, text, is_whole)
            if rest is None:
                return ""
            text = rest
        return self._cleaned(text, (self._finished + before)[-CONTEXT:], is_whole)

    def _after_secret(self, shape: Shape, text: str, is_whole: bool) -> str | None:
        """Drop the rest of a secret that was found before.

        Returns:
            The text after the secret; `None` if the secret may continue.
        """
        match = self._redactor.body_of(shape).match(text)
        rest = text[match.end() :] if match is not None else text
        # Nothing shows yet that the secret has ended, so the rest must not be passed on.
        if not rest or (shape.may_continue(rest, 0) and not is_whole):
            self.held, self.is_busy = rest, True
            return None
        self._inside = None
        return rest

    def _cleaned(self, text: str, before: str, is_whole: bool) -> str:
        joined, done = before + text, len(before)  # everything before `done` was passed on
        pieces = list[str]()
        for span in self._redactor.spans(joined, is_whole):
            if not span.is_secret:
                # The next piece decides. Text that was passed on could not be replaced any more.
                self.is_busy = True
                self.held = joined[max(done, span.start) :]
                joined = joined[: max(done, span.start)]
                break
            if span.end <= done:  # the secret was removed with an earlier piece
                continue
            pieces += (joined[done : max(done, span.start)], MARK)
            done = span.end
            self.found[span.rule] = self.found.get(span.rule, 0) + 1
            # More of this secret may arrive. It is dropped then; it must not get a second mark.
            if span.shape is not None and span.shape.may_continue(joined, done):
                self._inside, self.is_busy = span.shape, True
                if not is_whole:
                    self.held, joined = joined[done:], joined[:done]
        # In the other cases, the end of the text is held already, is inside a secret, or is final.
        if not (is_whole or self.held or self._inside):
            joined = self._hold_known(joined, done)
        return "".join([*pieces, joined[done:]])

    def _hold_known(self, joined: str, done: int) -> str:
        """Hold the beginning of a known value at the end; return the text before it."""
        begin = max(done, self._redactor.beginning_of_known(joined, 0))
        self.held = joined[begin:]
        if self.held or self._redactor.unfinished(joined):
            self.is_busy = True
        return joined[:begin]


class RedactedPiece(NamedTuple):
    """Result of `grow`."""

    out: str
    """Text that can be stored now."""
    held: str
    """Text that the next piece decides about; pass it to `grow` with that piece."""
    found: Found


def grow(redactor: Redactor, held: str, piece: str, before: str) -> RedactedPiece:
    """Remove secrets from a piece that is appended to a stored text.

    Args:
        redactor: Redactor that finds the secrets.
        held: Text that the previous call held.
        piece: Next piece.
        before: Last `GROWN_CONTEXT` characters of the stored text, or fewer if there are no more.
    """
    if not held and not redactor.has_sign(piece) and not redactor.has_sign(before):
        return RedactedPiece(piece, "", {})
    stream = SecretStream(redactor, redactor.shape_before(before))
    out = stream.admit(held + piece, before)
    return RedactedPiece(out, stream.held, stream.found)


def flush(redactor: Redactor, held: str, before: str) -> RedactedPiece:
    """Decide about the held text as if the text ended here, and return it without secrets.

    The text may still continue later.

    Args:
        redactor: Redactor that finds the secrets.
        held: Text that the last `grow` held.
        before: See `grow`.
    """
    stream = SecretStream(redactor, redactor.shape_before(before))
    stream.held = held
    return RedactedPiece(stream.finish(before), "", stream.found)
