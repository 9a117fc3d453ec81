"""Which transport a connection takes: each of the address in turn, first what worked last."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from arp.client.errors import InvalidAddress, LinkLost
from arp.client.link import Link
from arp.client.options import Address, Kind, LinkSettings, Options, access, parse_address


class Dialer:
    """Opens connections to one address.

    Args:
        address: Of the server.
        access: What the transports need.
        open_link: Opens them in the place of the transports.
    """

    def __init__(
        self,
        address: Address,
        access: LinkSettings,
        open_link: Callable[[bytes], Awaitable[Link]] | None = None,
    ) -> None:
        self.address = address
        self.access = access
        self._open_link = open_link
        self._kinds: list[Kind] = list(address.kinds)

    async def open(self, hello: bytes) -> Link:
        """Return a connection on which `hello` has been said.

        Raises:
            LinkLost: No transport came about. Of several failures it tells one that is worth
                coming back for, else the last.
        """
        if self._open_link is not None:
            return await self._open_link(hello)
        told: LinkLost | None = None
        for kind in list(self._kinds):
            try:
                link = await self._open(kind, hello)
            except LinkLost as lost:
                if not lost.unavailable:
                    raise
                told = lost if told is None or told.error is not None else told
            else:
                self._kinds.sort(key=lambda other: other != kind)
                return link
        assert told is not None
        raise told

    async def _open(self, kind: Kind, hello: bytes) -> Link:
        # Loaded by those alone who use it: httpx takes longer to import than to connect.
        if kind == "websocket":
            from arp.client.websocket_link import open_websocket

            return await open_websocket(self.address, self.access, hello)
        if kind == "sse":
            from arp.client.sse_link import open_sse

            return await open_sse(self.address, self.access, hello)
        from arp.client.stdio_link import open_stdio

        return await open_stdio(self.address, hello)


def dialer(url: str, options: Options) -> Dialer:
    """Return what opens connections to an address.

    Raises:
        InvalidAddress: Address and options do not go together; says what to write.
        InvalidMessage: A token that no header can carry.
    """
    address = parse_address(url, options.get("command"), options.get("transport", "auto"))
    entry = access(options)
    if entry.encoding != "json":
        if "websocket" not in address.kinds:
            raise InvalidAddress(
                f"{url}: only WebSocket carries {entry.encoding}; leave encoding=… out"
            )
        address = parse_address(url, transport="websocket")
    return Dialer(address, entry, options.get("open_link"))
