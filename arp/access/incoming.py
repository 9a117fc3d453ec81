"""The argument of an `authenticate` hook: a request, or the handshake of a connection."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, TypeAlias
from urllib.parse import parse_qsl

Scope: TypeAlias = Mapping[str, Any]
"""ASGI scope of a request; from other transports a mapping with `headers`, `client` and `path`."""


class Headers(Mapping[str, str]):
    """The headers of a request by case-insensitive name. Repeated headers are joined.

    Args:
        raw: Headers as in an ASGI scope.
        token: Token that replaces the `authorization` header; `None` keeps the header.
    """

    def __init__(self, raw: Iterable[tuple[bytes, bytes]], token: str | None = None) -> None:
        self._values: dict[str, str] = {}
        for key, value in raw:
            name, text = key.decode("latin-1").lower(), value.decode("latin-1")
            before = self._values.get(name)
            # RFC 9110, 5.3 joins with a comma; cookies are the exception (RFC 9113, 8.2.3).
            between = "; " if name == "cookie" else ", "
            self._values[name] = text if before is None else before + between + text
        if token is not None:
            self._values["authorization"] = f"Bearer {token}"

    def __getitem__(self, name: str) -> str:
        return self._values[name.lower()]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


class IncomingConnection:
    """A request, or the handshake of a connection, of any transport.

    Values that a transport does not have are empty.

    Args:
        scope: Scope of the request.
        client: Client address behind trusted proxies; empty if it is not known.
        token: Token sent after the handshake, in a `hello`.
    """

    def __init__(self, scope: Scope, client: str = "", token: str | None = None) -> None:
        self.scope = scope
        """ASGI scope of the request."""
        self.client = client
        """Client address behind trusted proxies; empty if it is not known."""
        self._hello_token = token

    @cached_property
    def headers(self) -> Mapping[str, str]:
        """The headers, by case-insensitive name.

        A token from a `hello` is returned as the `authorization` header.
        """
        return Headers(self.scope.get("headers", ()), self._hello_token)

    @property
    def token(self) -> str:
        """The token of `Authorization: Bearer …`, or of a `hello`; empty if there is none."""
        if self._hello_token is not None:
            return self._hello_token
        scheme, _, token = self.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            return ""
        return token.strip().encode("latin-1").decode(errors="replace")

    @cached_property
    def cookies(self) -> Mapping[str, str]:
        """The cookies by name; the last one counts if a name is repeated."""
        parts = (part.partition("=") for part in self.headers.get("cookie", "").split(";"))
        return {name.strip(): _unquoted(value.strip()) for name, equals, value in parts if equals}

    @cached_property
    def query(self) -> Mapping[str, str]:
        """The query parameters by name; the last one counts if a name is repeated."""
        text = self.scope.get("query_string", b"").decode("latin-1")
        return dict(parse_qsl(text, keep_blank_values=True))

    @property
    def path(self) -> str:
        """The path, without the path of the mount."""
        path: str = self.scope.get("path", "")
        return path.removeprefix(self.scope.get("root_path", ""))

    @property
    def uid(self) -> int | None:
        """User id of the process at the other end of a Unix socket; `None` for other transports."""
        return self.scope.get("uid")

    @property
    def kind(self) -> str:
        """The transport: `http`, `websocket`, `grpc` or `unix`; more may follow."""
        return str(self.scope.get("type", ""))


def _unquoted(value: str) -> str:
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] == '"' else value
