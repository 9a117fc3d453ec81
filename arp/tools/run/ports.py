"""`Ports`: allocates ports of this machine to tools and containers, from `docker_port_start` up.

A port is free if it is not allocated and can be bound now. Another program may still bind it before
the tool does; the caller then tries the next port.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterable
from typing import Final

from arp.tools.errors import CapacityExceeded

RANGE: Final = 2000
"""Number of ports in the range."""


class Ports:
    """Allocator of ports.

    Args:
        first: Returns the first port of the range; called each time, because settings change.
        taken: Returns further ports that are in use, such as those in `containers.json`.
    """

    def __init__(
        self, first: Callable[[], int], taken: Callable[[], Iterable[int]] = tuple
    ) -> None:
        self._first = first
        self._taken = taken
        self._allocated: set[int] = set()
        self._guard = threading.Lock()

    @property
    def allocated(self) -> frozenset[int]:
        """Allocated ports."""
        return frozenset(self._allocated)

    def allocate(self, skip: Iterable[int] = ()) -> int:
        """Allocate a free port and return it; it stays allocated until `release`.

        Args:
            skip: Ports to skip, because they did not work.

        Raises:
            CapacityExceeded: No port is free.
        """
        first = self._first()
        with self._guard:
            not_free = self._allocated.union(self._taken(), skip)
            for port in range(first, min(first + RANGE, 65536)):
                if port not in not_free and _can_be_bound(port):
                    self._allocated.add(port)
                    return port
        raise CapacityExceeded(
            f"no port of {first} to {min(first + RANGE, 65536) - 1} is free; "
            "stop some tools, or set TOOL_AGENT_DOCKER_PORT_START"
        )

    def try_allocate(self, port: int) -> bool:
        """Allocate a port if it is free; return whether it was."""
        with self._guard:
            if port in self._allocated or port in self._taken() or not _can_be_bound(port):
                return False
            self._allocated.add(port)
            return True

    def claim(self, port: int) -> None:
        """Record that a running container uses a port."""
        with self._guard:
            self._allocated.add(port)

    def release(self, port: int) -> None:
        """Release a port. May be repeated."""
        with self._guard:
            self._allocated.discard(port)


def _can_be_bound(port: int) -> bool:
    for address in ("127.0.0.1", "0.0.0.0"):  # a server may listen on either
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            # Servers set this option too. A port in the state TIME_WAIT can then be used.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((address, port))
            except OSError:
                return False
    return True
