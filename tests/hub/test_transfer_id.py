"""The id of a transfer proves from where, to where and for whom a surface goes."""

from __future__ import annotations

import pytest

from arp.hub.transfer_id import TransferEnds, new_transfer_id, signed_source

KEY = "a key of two servers"
ENDS = TransferEnds("gives.it / \u00e4", "takes", "ada")


def test_giving_session_is_read_from_a_signed_id() -> None:
    assert signed_source(new_transfer_id(ENDS, KEY), "takes", "ada", KEY) == ENDS.source


@pytest.mark.parametrize(
    ("target", "owner", "key"),
    [
        ("take", "sada", KEY),
        ("other", "ada", KEY),
        ("takes", "bob", KEY),
        ("takes", "ada", KEY[1:]),
    ],
)
def test_id_proves_nothing_about_another_session_user_or_key(
    target: str, owner: str, key: str
) -> None:
    assert signed_source(new_transfer_id(ENDS, KEY), target, owner, key) is None


@pytest.mark.parametrize("text", ["", "a", "a.b", "a.b.c", "a.%.c", "a..", "\u00e4.\u00e4.\u00e4"])
def test_what_is_no_signed_id_proves_nothing(text: str) -> None:
    assert signed_source(text, "takes", "ada", KEY) is None


def test_id_without_a_key_is_unique_and_signs_nothing() -> None:
    one, other = (new_transfer_id(ENDS, None) for _ in range(2))
    assert one != other
    assert "." not in one
