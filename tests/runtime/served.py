"""Runtimes behind a server of their own: client and server begin and end together.

The server begins with the first call, so that a client is made without a loop, as other runtimes
are. When the client is closed, the server ends and the runtime behind it is closed: a new client is
what a new process is for other runtimes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any

import msgspec

from arp.runtime.contract import types as ari
from arp.runtime.contract.services import EventSubscription, RuntimeService
from arp.runtime.remote.grpc_runtime import GrpcRuntime
from arp.runtime.remote.http_runtime import HttpRuntime
from arp.runtime.remote.methods import R
from tests.runtime import test_grpc, test_http


class Behind:
    """A runtime, and its server once it was called."""

    def __init__(
        self,
        runtime: RuntimeService,
        served: Callable[[RuntimeService], AbstractAsyncContextManager[str]],
    ) -> None:
        self.runtime, self.served = runtime, served
        self.address = ""
        self.is_closed = False
        self._serving = AsyncExitStack()
        self._starting = asyncio.Lock()

    async def start(self) -> str:
        """Return the address of the server, which is started if it was not."""
        async with self._starting:
            if not self.address and not self.is_closed:
                self.address = await self._serving.enter_async_context(self.served(self.runtime))
        return self.address

    async def close(self) -> None:
        """Close the runtime, then end the server."""
        self.is_closed = True
        await self.runtime.close(ari.CloseRequest())
        await self._serving.aclose()


class ServedByGrpc(GrpcRuntime):
    """A client, and the server that it is connected to."""

    def __init__(self, runtime: RuntimeService) -> None:
        super().__init__("")
        self.behind = Behind(runtime, test_grpc.served)

    async def _call(self, method: str, request: msgspec.Struct, response: type[R]) -> R:
        self._address = await self.behind.start()
        return await super()._call(method, request, response)

    async def _open(self, request: ari.SessionEventsRequest) -> Any:
        self._address = await self.behind.start()
        return await super()._open(request)

    async def close(self, request: ari.CloseRequest | None = None) -> ari.CloseResponse:
        await self.behind.close()
        return await super().close(request)


class ServedByHttp(HttpRuntime):
    """A client, and the gateway that it is connected to."""

    def __init__(self, runtime: RuntimeService) -> None:
        super().__init__("http://127.0.0.1")
        self.behind = Behind(runtime, test_http.served)

    async def _call(self, method: str, request: msgspec.Struct, response: type[R]) -> R:
        await self._start()
        return await super()._call(method, request, response)

    async def session_events(self, request: ari.SessionEventsRequest) -> EventSubscription:
        await self._start()
        return await super().session_events(request)

    async def _start(self) -> None:
        self._client.base_url = f"{await self.behind.start()}/ari/v1/"

    async def close(self, request: ari.CloseRequest | None = None) -> ari.CloseResponse:
        await self.behind.close()
        return await super().close(request)
