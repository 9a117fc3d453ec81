"""Addresses with a token behind them, as servers print them."""

from __future__ import annotations

import pytest

from arp.protocol.token_address import split_token


@pytest.mark.parametrize(
    ("url", "token", "found"),
    [
        ("http://h:1/#token=a-b_C", None, ("http://h:1/", "a-b_C")),
        ("http://h:1/?session=s#token=a%2Bb&more=1", None, ("http://h:1/?session=s", "a+b")),
        ("http://h:1/#token=a", "given", ("http://h:1/", "given")),
        ("http://h:1/#token=", None, ("http://h:1/", "")),
        ("unix:/run/a#b", None, ("unix:/run/a#b", None)),
        ("http://h:1", "given", ("http://h:1", "given")),
    ],
)
def test_token_is_taken_from_an_address(
    url: str, token: str | None, found: tuple[str, str | None]
) -> None:
    assert split_token(url, token) == found
