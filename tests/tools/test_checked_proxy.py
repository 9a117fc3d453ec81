"""The proxy of a browser does not wait for what does not come, and holds a bounded number."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from arp.tools.run import checked_proxy
from arp.tools.run.addresses import AddressRules
from arp.tools.run.checked_proxy import CheckedProxy


@pytest.fixture
async def port(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[int]:
    monkeypatch.setattr(checked_proxy, "HEAD_S", 0.3)
    monkeypatch.setattr(checked_proxy, "MAX_CONNECTIONS", 2)
    proxy = CheckedProxy(AddressRules())
    await proxy.start()
    yield int(proxy.address.rpartition(":")[2])
    await proxy.aclose()


async def test_head_that_does_not_come_closes_the_connection(port: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"CONNECT a:80 HT")
    async with asyncio.timeout(10):
        assert await reader.read() == b""
    writer.close()


async def test_connections_beyond_the_bound_are_closed(port: int) -> None:
    opened = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
    async with asyncio.timeout(0.2):  # before the heads are late
        assert await opened[2][0].read() == b""
    assert not opened[0][0].at_eof()
    for _, writer in opened:
        writer.close()
