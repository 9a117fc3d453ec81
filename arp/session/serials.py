"""Which input of a user may open a popup, an overlay or a fullscreen surface: a recent one.

An agent may cover what a user looks at only in answer to something that the user did there. Each
accepted input has a *serial*, the place of its fact in the log. The newest one of each surface is
kept, with the time at which it came; a session that was read from its log has none.
"""

from __future__ import annotations

from arp.protocol.errors import InvalidSerial


class Serials:
    """The newest input of each surface of a session."""

    __slots__ = ("_at_s", "_newest", "_now_s", "last")

    def __init__(self) -> None:
        self.last = 0
        """Of the newest input on any surface; 0: there was none."""
        self._newest: dict[str, int] = {}
        self._at_s: dict[int, float] = {}
        """By serial."""
        self._now_s = 0.0

    def stamp(self, now_s: float) -> None:
        """Take the time at which the inputs come that are noted from now on."""
        self._now_s = now_s

    def note(self, surface: str, serial: int) -> None:
        """Keep an input that was just accepted."""
        self.forget(surface)
        self._newest[surface] = self.last = serial
        self._at_s[serial] = self._now_s

    def forget(self, surface: str) -> None:
        """Forget the input of a surface: there is a newer one, or it is closed."""
        self._at_s.pop(self._newest.pop(surface, 0), None)

    def clear(self) -> None:
        """Forget all inputs: they came before the session was in memory."""
        self._newest.clear()
        self._at_s.clear()

    def check(self, surface: str, now_s: float, max_age_s: float) -> int:
        """Return the serial of the newest input on a surface.

        Args:
            surface: Which the popup, overlay or fullscreen is about.
            now_s: On the clock of `stamp`.
            max_age_s: How old the input may be.

        Raises:
            InvalidSerial: There was no input, or it is older.
        """
        serial = self._newest.get(surface)
        at_s = self._at_s.get(serial) if serial is not None else None
        if serial is None or at_s is None:
            raise InvalidSerial(
                f"nobody has done anything on surface {surface!r}; show the components without a "
                "popup or an overlay, or open it in answer to an input",
                detail=surface,
            )
        if now_s - at_s > max_age_s:
            raise InvalidSerial(
                f"the last input on surface {surface!r} is {now_s - at_s:.1f} s old; a popup, an "
                f"overlay or fullscreen needs one of the last {max_age_s:g} s",
                detail=surface,
            )
        return serial
