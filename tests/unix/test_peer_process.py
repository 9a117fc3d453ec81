"""The process at the other end, as the kernel knows it."""

from __future__ import annotations

import os
import socket
import struct
import sys
from typing import Any

import pytest

from arp.unix.peer_process import PeerProcess, peer_of


def test_the_kernel_says_who_is_there() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert peer_of(ours) == PeerProcess(os.geteuid(), os.getpid())


class OtherSystem:
    """A socket of macOS."""

    def getsockopt(self, level: int, option: int, size: int) -> bytes:
        assert (level, option) == (0, 1)
        return struct.pack("=II", 0, 501)[:size]


def test_other_systems_say_the_user_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    own: Any = OtherSystem()
    assert peer_of(own) == PeerProcess(501, None)
