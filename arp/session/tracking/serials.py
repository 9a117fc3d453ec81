"""Serials of recent inputs: without one, an agent may open no popup, overlay or fullscreen surface.

An agent may cover what a user looks at only in answer to something that the user did there. Each
accepted input has a *serial*, the sequence number of its fact. The newest serial of each surface is
kept with its time of arrival. A session that was just read from its log has no serials.
"""

from __future__ import annotations

from arp.protocol.errors import InvalidSerial


class Serials:
    """The newest input of each surface of a session."""

    __slots__ = ("_newest", "_now_s", "last")

    def __init__(self) -> None:
        self.last = 0
        """Serial of the newest input on any surface; 0 if there is none."""
        self._newest: dict[str, tuple[int, float]] = {}
        """Newest serial of each surface, with its time of arrival in seconds on the clock of
        `stamp`."""
        self._now_s = 0.0

    def stamp(self, now_s: float) -> None:
        """Set the time of arrival of the inputs that `note` records from now on."""
        self._now_s = now_s

    def note(self, surface: str, serial: int) -> None:
        """Record an input that was just accepted."""
        self.last = serial
        self._newest[surface] = (serial, self._now_s)

    def forget(self, surface: str) -> None:
        """Forget the input of a surface that is closed."""
        self._newest.pop(surface, None)

    def clear(self) -> None:
        """Forget all inputs. They were read from the log, so they are not recent."""
        self._newest.clear()

    def check(self, surface: str, now_s: float, max_age_s: float) -> int:
        """Return the serial of the newest input on a surface.

        Args:
            surface: Surface that the popup or overlay is placed on, or that becomes fullscreen.
            now_s: Current time in seconds, on the clock of `stamp`.
            max_age_s: Maximum age of the input, in seconds.

        Raises:
            InvalidSerial: There was no input, or it is older than `max_age_s`.
        """
        newest = self._newest.get(surface)
        if newest is None:
            raise InvalidSerial(
                f"nobody has done anything on surface {surface!r}; show the components without a "
                "popup or an overlay, or open it in answer to an input",
                detail=surface,
            )
        serial, at_s = newest
        if now_s - at_s > max_age_s:
            raise InvalidSerial(
                f"the last input on surface {surface!r} is {now_s - at_s:.1f} s old; a popup, an "
                f"overlay or fullscreen needs one of the last {max_age_s:g} s",
                detail=surface,
            )
        return serial
