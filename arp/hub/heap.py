"""Memory that nothing uses any more, given back to the system.

glibc keeps what a program frees, and gives back only what lies at the very end of its heap.
Sessions leave the memory in any order, so after a busy hour the heap is mostly holes: a server with
15 sessions held as much as it had held with 980.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable


def trimmer() -> Callable[[], None] | None:
    """Return a function that gives free memory back to the system; `None` where there is none.

    It takes some milliseconds and can run on any thread: it does not hold the interpreter lock.
    """
    try:
        malloc_trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # not glibc: musl, macOS, Windows
        return None
    malloc_trim.argtypes = [ctypes.c_size_t]
    malloc_trim.restype = ctypes.c_int

    def trim() -> None:
        malloc_trim(0)

    return trim
