"""Names that say that a value is secret, and names that only sound like it."""

from __future__ import annotations

import pytest

from arp.redact.names import (
    is_plain_value,
    is_secret_name,
    is_surely_secret_name,
    secrets_of,
    usable,
)

# fmt: off
SECRET = (
    "password", "PASSWORD", "db_password", "userPassword", "passphrase", "secret", "clientSecret",
    "client-secret", "api_key", "apiKey", "X-API-Key", "x-api-key", "token", "accessToken",
    "refresh_token", "github_token", "GITHUB_TOKEN", "Authorization", "cookie", "Set-Cookie",
    "private_key", "aws_secret_access_key", "credentials", "jwt", "otp", "connectionString",
)
# fmt: on


@pytest.mark.parametrize("name", SECRET)
def test_a_name_that_says_secret(name: str) -> None:
    assert is_secret_name(name)


# fmt: off
PLAIN = (
    "id", "name", "tokens", "max_tokens", "total_tokens", "next_page_token", "nextPageToken",
    "pageToken", "eos_token", "key", "keys", "primary_key", "monkey", "author", "authority",
    "passenger", "bypass", "compass", "secretary", "cookies_enabled", "text", "title", "message",
    "session_id", "turnId", "epoch", "sha256", "path",
)
# fmt: on


@pytest.mark.parametrize("name", PLAIN)
def test_a_name_that_says_nothing(name: str) -> None:
    assert not is_secret_name(name)


def test_of_what_is_shown_only_a_certain_name_counts() -> None:
    assert is_surely_secret_name("password")
    assert is_surely_secret_name("apiKey")
    assert not is_surely_secret_name("token")
    assert not is_surely_secret_name("cookie")


@pytest.mark.parametrize("value", ["", "true", "None", "include", "required"])
def test_a_value_that_says_how_is_no_secret(value: str) -> None:
    assert is_plain_value(value)
    assert not is_plain_value(value + "x")


def test_the_environment_gives_what_its_names_call_secret() -> None:
    environment = {
        "OPENAI_API_KEY": "value-one",
        "DB_PASSWORD": "value-two",
        "GITHUB_TOKEN": "value-three",
        "STRIPE_KEY": "value-four",
        "DATABASE_URL": "postgres://ann:value-five@db/sales",
        "HOME": "/home/ann",
        "MONKEYS": "value-six",
        "KEYBOARD": "value-seven",
    }
    assert list(secrets_of(environment)) == [
        "value-one",
        "value-two",
        "value-three",
        "value-four",
        "value-five",
    ]


def test_only_what_is_no_ordinary_text_is_looked_for_by_value() -> None:
    """Short, a path, a number, too long for one: these stand in texts by chance, or never."""
    given = ["short", "/run/agent.sock", "~/keys", "C:\\keys", "12345678", "x" * 5000, "required"]
    assert usable([*given, " a-real-secret ", "a-real-secret", "a-longer-real-secret"]) == [
        "a-longer-real-secret",
        "a-real-secret",
    ]
    assert usable(["123456789012"]) == ["123456789012"]
