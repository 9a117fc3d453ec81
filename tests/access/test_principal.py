"""Users, and for whom they count."""

from __future__ import annotations

from typing import Any

import pytest

from arp.access.principal import User


class Odd(str):
    """As the names of a framework."""


def test_user_is_called_by_the_name_where_no_other_is_given() -> None:
    """So that agents need not look which of the two there is."""
    assert User("ada").display_name == "ada"
    assert User("ada", "Ada L.").display_name == "Ada L."
    assert User() == User("", "", (), {})


def test_names_and_roles_are_plain_texts() -> None:
    """The name stands in facts."""
    user = User(Odd("ada"), Odd("Ada"), {Odd("admin")})
    assert [type(text) for text in (user.name, user.display_name, *user.roles)] == [str] * 3
    assert "admin" in user.roles


@pytest.mark.parametrize(
    "name", ["ada\n", "a\x1b[2Jda", "a\u200bda", "\u202eada", " ada", "ada ", "a" * 256, "\ud800"]
)
def test_name_that_looks_like_another_is_none(name: str) -> None:
    with pytest.raises(ValueError, match=r"User.name: expected up to 255 printable characters"):
        User(name)
    assert User("Ada L\u00f6velace, 3rd").name == "Ada L\u00f6velace, 3rd"


def test_what_one_turn_does_to_claims_reaches_no_other() -> None:
    """One user is shown to every turn of a connection."""
    given = {"team": "north"}
    user = User("ada", claims=given)
    with pytest.raises(TypeError):
        user.claims["team"] = "south"  # type: ignore[index]  # the mistake
    given["team"] = "south"
    assert user.claims == {"team": "north"}


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"name": 7}, "User.name: expected a text, got int"),
        ({"display_name": None}, "User.display_name: expected a text, got NoneType"),
        ({"roles": "admin"}, "User.roles: expected a list of texts, got 'admin'"),
        ({"roles": [7]}, "User.roles: expected a text, got int"),
        ({"roles": 7}, "User.roles: expected a list of texts, got 7"),
        ({"claims": "x"}, "User.claims: expected a mapping, got str"),
    ],
)
def test_what_is_no_user_is_refused_where_it_is_made(wrong: dict[str, Any], says: str) -> None:
    """`roles="admin"` would be five roles of one letter."""
    with pytest.raises(TypeError, match=says):
        User(**wrong)
