"""Addresses with a token after `#`, as servers print them: `http://127.0.0.1:8080/#token=…`."""

from __future__ import annotations

from urllib.parse import unquote


def split_token(url: str, token: str | None = None) -> tuple[str, str | None]:
    """Split an address into the address without token and the token.

    The token must not be sent as a part of the address.

    Args:
        url: The address.
        token: A separate token, which takes precedence.

    Returns:
        The address and the token; `None` if there is no token.
    """
    address, mark, rest = url.partition("#token=")
    found = unquote(rest.partition("&")[0]) if mark else None
    return address, token or found
