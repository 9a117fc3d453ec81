"""Recognise fields and environment variables that contain a secret by their names."""

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
"""Names before `token` that do not mean a secret: `nextPageToken` is a position in a list,
`eos_token` is a token of a language model."""

_PLAIN: Final = re.compile(
    r"(?:true|false|none|null|yes|no|required|optional|include|omit|same-origin|basic|bearer)?\Z",
    re.IGNORECASE,
)
"""Values that are options and not secrets, for example `token: required`."""

_ENVIRONMENT: Final = re.compile(
    r"(?:^|_)(?:PASS|PASSWORD|PASSWD|PASSPHRASE|SECRET|TOKEN|APIKEY|KEY|PAT|CREDENTIALS?|AUTH)(?:_|$)",
    re.IGNORECASE,
)
_PASSWORD_IN_URL: Final = re.compile(r"://[^\s/:@]{0,64}:([^\s/@]{1,256})@")
_PATH: Final = re.compile(r"(?:[/~.]|[A-Za-z]:\\)")

LEAST_SECRET: Final = 8
"""Length of the shortest known secret. Ordinary text may contain a shorter value by chance."""

MOST_SECRET: Final = 4096
"""Length of the longest known secret; a longer value is the content of a file."""


@lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Return whether a field has the name of a secret: `password`, `api_key`, `githubToken`."""
    if _SURE.search(name):
        return True
    plain = name.replace("-", "").replace("_", "").lower()
    if plain in _EXACT:
        return True
    return plain.endswith("token") and not _COUNTED.match(plain[:-5])


@lru_cache(maxsize=4096)
def is_surely_secret_name(name: str) -> bool:
    """Return whether a name certainly means a secret.

    This stricter check is for data that users see, such as the props of a component.
    """
    return _SURE.search(name) is not None


def is_plain_value(value: str) -> bool:
    """Return whether a value is not a secret, whatever the name of its field is."""
    return _PLAIN.match(value) is not None


def secrets_of(environment: Mapping[str, str]) -> Iterator[str]:
    """Yield the values of variables with the name of a secret, and passwords in URLs."""
    for name, value in environment.items():
        if _ENVIRONMENT.search(name):
            yield value
        yield from _PASSWORD_IN_URL.findall(value[:MOST_SECRET])


def usable(secrets: Iterable[str]) -> list[str]:
    """Return the secrets to search for in any text: longest first, without duplicates.

    Values that ordinary text may contain are left out: short values, file paths, numbers with fewer
    than 12 digits, and plain values (`is_plain_value`). Very long values are left out too, because
    they are contents of files.
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
