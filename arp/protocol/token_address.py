"""An address with a token behind `#`, as servers print it: `http://127.0.0.1:8080/#token=…`."""

from __future__ import annotations

from urllib.parse import unquote


def split_token(url: str, token: str | None = None) -> tuple[str, str | None]:
    """Return an address without the token behind it, which is never sent as part of it.

    Args:
        url: The address.
        token: A token that was given besides; it counts more.

    Returns:
        The address, and the token; `None`: there is none.
    """
    place, mark, rest = url.partition("#token=")
    found = unquote(rest.partition("&")[0]) if mark else None
    return place, token or found
