"""`RemoteRuntime`: base class of clients of a remote runtime, for any transport.

A client is a `RuntimeService` itself and has the methods of every optional service. If the remote
runtime cannot carry out a method, it answers with `Unimplemented`; its `status` lists its
capabilities. The contract of each method is in `services`.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod

from arp.runtime.contract import types as ari
from arp.runtime.contract.errors import FailedPrecondition
from arp.runtime.contract.services import EventSubscription
from arp.runtime.contract.threads import ThreadsafeRuntime
from arp.runtime.remote.methods import RemoteMethods


class RemoteRuntime(RemoteMethods):
    """A runtime in another process or on another machine."""

    name = "remote"
    runs_commands = True
    """Whether the agents of the runtime may run commands on this machine."""

    @abstractmethod
    async def session_events(self, request: ari.SessionEventsRequest) -> EventSubscription:
        """Subscribe to a session; a broken connection is restored."""

    @abstractmethod
    async def open(self) -> None:
        """Connect again after `close`, also in another event loop.

        A new runtime is open already.
        """

    @abstractmethod
    async def close(self, request: ari.CloseRequest | None = None) -> ari.CloseResponse:
        """Close the connection; the remote runtime keeps running. May be called again."""

    def threadsafe(self) -> ThreadsafeRuntime:
        """Return a handle for other threads; call this in the loop of the runtime."""
        return ThreadsafeRuntime(self, asyncio.get_running_loop())


def closed() -> FailedPrecondition:
    """Return the error for a call after `close`."""
    return FailedPrecondition("the connection to the runtime is closed")
