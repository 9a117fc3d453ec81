"""`Ports`: which ports of this machine tools and containers get, from `docker_port_start` up.

A port is free if we have given it to nobody and if it can be bound now. Somebody else may still
bind it before the tool does: who starts a tool then tries the next one.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterable
from typing import Final

from arp.tools.errors import CapacityExceeded

RANGE: Final = 2000
"""So many ports there are, from the first one."""


class Ports:
    """The ports that are given and returned.

    Args:
        first: Returns the first port of the range; asked each time, since settings change.
        taken: Returns further ports that are in use, such as those in `containers.json`.
    """

    def __init__(
        self, first: Callable[[], int], taken: Callable[[], Iterable[int]] = tuple
    ) -> None:
        self._first = first
        self._taken = taken
        self._given: set[int] = set()
        self._guard = threading.Lock()

    @property
    def given(self) -> frozenset[int]:
        """The ports that were given and not returned."""
        return frozenset(self._given)

    def take(self, but: Iterable[int] = ()) -> int:
        """Return a free port, which nobody else gets until `give_back`.

        Args:
            but: Ports that did not work.

        Raises:
            CapacityExceeded: None is free.
        """
        first = self._first()
        with self._guard:
            not_free = self._given.union(self._taken(), but)
            for port in range(first, min(first + RANGE, 65536)):
                if port not in not_free and _can_be_bound(port):
                    self._given.add(port)
                    return port
        raise CapacityExceeded(
            f"no port of {first} to {min(first + RANGE, 65536) - 1} is free; "
            "stop some tools, or set TOOL_AGENT_DOCKER_PORT_START"
        )

    def take_this(self, port: int) -> bool:
        """Take a port if it is free; return whether it was."""
        with self._guard:
            if port in self._given or port in self._taken() or not _can_be_bound(port):
                return False
            self._given.add(port)
            return True

    def claim(self, port: int) -> None:
        """Note that a port is in use by a tool that was found running."""
        with self._guard:
            self._given.add(port)

    def give_back(self, port: int) -> None:
        """Let others have a port. May be repeated."""
        with self._guard:
            self._given.discard(port)


def _can_be_bound(port: int) -> bool:
    for address in ("127.0.0.1", "0.0.0.0"):  # containers publish on all addresses
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            # As servers do; a port that is only waiting after a connection can be used.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((address, port))
            except OSError:
                return False
    return True
