"""Open connections to an address over one of its transports.

They are tried one after the other. The transport that worked last is tried first.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from arp.client.address import Address, Kind, parse_address
from arp.client.errors import InvalidAddress, LinkLost
from arp.client.link import Link
from arp.client.options import LinkSettings, Options, link_settings
from arp.protocol.codec import Encoding
from arp.protocol.errors import LocalError

if TYPE_CHECKING:
    from arp.client.links.grpc_link import GrpcLink
    from arp.client.links.unix_link import UnixLink, UnixListener

UNIX_ENCODING: Encoding = "msgpack"
"""Encoding over a Unix socket, if the caller names none (protocol.md 6)."""


class Dialer:
    """Opens connections to one address.

    Args:
        address: Address of the server.
        access: Options that the transports need.
        open_link: Function that opens connections instead of the transports.
        is_listening: Whether servers connect to this side.
    """

    def __init__(
        self,
        address: Address,
        access: LinkSettings,
        open_link: Callable[[bytes], Awaitable[Link]] | None = None,
        *,
        is_listening: bool = False,
    ) -> None:
        self.address = address
        self.access = access
        self._open_link = open_link
        self.is_listening = is_listening
        """Whether servers connect to this side."""
        self.on_stderr: Callable[[str], None] | None = None
        """Called with each line that a child process writes to its standard error."""
        self.unix_link: UnixLink | None = None
        """The newest connection over a Unix socket."""
        self.grpc_link: GrpcLink | None = None
        """The newest connection over gRPC."""
        self._listener: UnixListener | None = None
        self._kinds: list[Kind] = list(address.kinds)

    async def open(self, hello: bytes) -> Link:
        """Open a connection and send `hello` on it.

        Raises:
            LinkLost: No transport could be opened. If several failed, it is the first failure that
                may be temporary, or else the last failure.
        """
        if self._open_link is not None:
            return await self._open_link(hello)
        lost_link: LinkLost | None = None
        for kind in list(self._kinds):
            try:
                link = await self._open(kind, hello)
            except LinkLost as lost:
                if not lost.unavailable:
                    raise
                # A temporary failure of one transport must not be hidden by the final refusal of
                # another one, or the client would not reconnect.
                lost_link = lost if lost_link is None or lost_link.error is not None else lost_link
            else:
                self._kinds.sort(key=lambda other: other != kind)
                return link
        assert lost_link is not None
        raise lost_link

    async def _open(self, kind: Kind, hello: bytes) -> Link:
        # Imported only when it is used: importing httpx takes longer than connecting.
        if kind == "websocket":
            from arp.client.links.websocket_link import open_websocket

            return await open_websocket(self.address, self.access, hello)
        if kind == "sse":
            from arp.client.links.sse_link import open_sse

            return await open_sse(self.address, self.access, hello)
        if kind == "unix":
            return await self._open_unix(hello)
        if kind == "grpc":
            return await self._open_grpc(hello)
        from arp.client.links.stdio_link import open_stdio

        return await open_stdio(self.address, hello, on_stderr=self.on_stderr)

    async def _open_unix(self, hello: bytes) -> Link:
        from arp.client.links.unix_link import UnixListener, open_unix

        if not self.is_listening:
            self.unix_link = await open_unix(self.address, hello)
            return self.unix_link
        if self._listener is None:
            try:
                self._listener = UnixListener(self.address.socket_path)
            except LocalError as error:
                raise LinkLost(error.message, error=error) from None
        self.unix_link = await self._listener.open(hello)
        return self.unix_link

    async def _open_grpc(self, hello: bytes) -> Link:
        try:
            from arp.client.links.grpc_link import open_grpc
        except ModuleNotFoundError as missing:
            if missing.name != "grpc":
                raise
            message = 'grpc: needs gRPC; install it: pip install "agent-rendering-protocol[grpc]"'
            raise LinkLost(message, error=InvalidAddress(message)) from None
        self.grpc_link = await open_grpc(self.address, self.access, hello)
        return self.grpc_link

    async def aclose(self) -> None:
        """Stop listening, if servers connect to this side."""
        listener, self._listener = self._listener, None
        if listener is not None:
            await listener.aclose()


def dialer(url: str, options: Options) -> Dialer:
    """Return the `Dialer` for an address and options.

    Raises:
        InvalidAddress: The address is not valid, or an option does not fit it. The message says
            what to write.
        InvalidMessage: The token has characters that a header cannot contain.
    """
    address = parse_address(url, options.get("command"), options.get("transport", "auto"))
    settings = link_settings(options)
    is_listening = options.get("listen", False)
    if is_listening and not address.socket_path:
        raise InvalidAddress(f"{url}: a client can listen on a Unix socket only; write unix:PATH")
    if address.socket_path:
        settings = replace(settings, encoding=options.get("encoding", UNIX_ENCODING))
        if settings.encoding == "cbor":
            raise InvalidAddress(f"{url}: a Unix socket carries msgpack or json, not cbor")
        return Dialer(address, settings, is_listening=is_listening)
    if address.grpc_target:
        if settings.token and not (address.is_encrypted or address.is_loopback):
            raise InvalidAddress(
                f"{url}: the token would be sent without TLS, where others can read it; "
                f"write grpcs:{address.grpc_target}"
            )
        return Dialer(address, settings)
    # An event stream carries only JSON of the session dialect, so it must not be tried second.
    if settings.encoding != "json":
        if "websocket" not in address.kinds:
            raise InvalidAddress(
                f"{url}: only WebSocket carries {settings.encoding}; leave encoding=… out"
            )
        address = parse_address(url, transport="websocket")
    elif settings.dialect == "object" and "sse" in address.kinds:
        if "websocket" not in address.kinds:
            raise InvalidAddress(
                f"{url}: an event stream carries only the session dialect; leave dialect=… out"
            )
        address = parse_address(url, transport="websocket")
    return Dialer(address, settings, options.get("open_link"))
