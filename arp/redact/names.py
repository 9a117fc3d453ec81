"""Names that say that what they name is secret: of fields, and of environment variables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final

_SURE: Final = re.compile(
    r"(?:pass(?:word|wd|phrase|code)|secret|credentials?|authorization|connection[-_ ]?string"
    r"|(?:api|secret|private|signing|encryption|master)[-_ ]?(?:access[-_ ]?)?key|access[-_ ]?key"
    r"|(?:access|auth|refresh|id|session|bearer|security|api|bot|client)[-_ ]?token)\Z",
    re.IGNORECASE,
)
_EXACT: Final = frozenset(("token", "auth", "cookie", "setcookie", "jwt", "otp", "xapikey"))
_COUNTED: Final = re.compile(
    r"(?:(?:next)?page|next|continuation|sync|cancellation|max|min|eos|bos|pad|unk|sep|mask|stop|end"
    r"|first|last)\Z"
)
"""`nextPageToken` is a place in a list, `eos_token` one of a model's tokens."""

_PLAIN: Final = re.compile(
    r"(?:true|false|none|null|yes|no|required|optional|include|omit|same-origin|basic|bearer)?\Z",
    re.IGNORECASE,
)
"""Values that say how, not what."""

_ENVIRONMENT: Final = re.compile(
    r"(?:^|_)(?:PASS|PASSWORD|PASSWD|PASSPHRASE|SECRET|TOKEN|APIKEY|KEY|PAT|CREDENTIALS?|AUTH)(?:_|$)",
    re.IGNORECASE,
)
_PASSWORD_IN_URL: Final = re.compile(r"://[^\s/:@]{0,64}:([^\s/@]{1,256})@")
_PATH: Final = re.compile(r"(?:[/~.]|[A-Za-z]:\\)")

LEAST_SECRET: Final = 8
"""Characters. A shorter value of the environment stands in ordinary text by chance."""

MOST_SECRET: Final = 4096
"""Characters. What is longer is a file, not a secret that somebody would say."""


@lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Return whether a field of this name holds a secret: `password`, `api_key`, `githubToken`."""
    if _SURE.search(name):
        return True
    plain = name.replace("-", "").replace("_", "").lower()
    if plain in _EXACT:
        return True
    return plain.endswith("token") and not _COUNTED.match(plain[:-5])


@lru_cache(maxsize=4096)
def is_surely_secret_name(name: str) -> bool:
    """Return the same where names are shown on purpose, as in the props of a component."""
    return _SURE.search(name) is not None


def is_plain_value(value: str) -> bool:
    """Return whether a text is no secret, whatever its name is."""
    return _PLAIN.match(value) is not None


def secrets_of(environment: Mapping[str, str]) -> Iterator[str]:
    """Return the values of variables whose names say so, and the passwords in URLs."""
    for name, value in environment.items():
        if _ENVIRONMENT.search(name):
            yield value
        yield from _PASSWORD_IN_URL.findall(value[:MOST_SECRET])


def usable(secrets: Iterable[str]) -> list[str]:
    """Return those that can be looked for in any text, longest first, each once.

    Not: what is short, or long, the path of a file, or a number of less than 12 digits.
    """
    found = {
        secret
        for secret in map(str.strip, secrets)
        if LEAST_SECRET <= len(secret) <= MOST_SECRET
        and not _PATH.match(secret)
        and not (secret.isdigit() and len(secret) < 12)
        and not is_plain_value(secret)
    }
    return sorted(found, key=lambda secret: (-len(secret), secret))
