"""The location of a ledger in PostgreSQL: `postgresql://USER:PASSWORD@HOST:PORT/DATABASE`.

The form is that of libpq, with several hosts and with parameters such as `?sslmode=verify-full`. It
is parsed here and not by libpq, because the error messages of libpq quote parts of the location,
and these may contain the password. This module does not need the packages of the extra `postgres`.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final
from urllib.parse import quote, unquote_to_bytes

from arp.store.errors import StoreUnavailable

SCHEMES: Final = ("postgresql", "postgres")

FORM: Final = "postgresql://USER:PASSWORD@HOST:PORT/DATABASE"

PORT: Final = 5432
"""The default port of PostgreSQL."""

_MAX_STEM: Final = 60
"""Maximum number of characters of a host and database in a file name."""

_URL: Final = re.compile(r"(?i:postgres|postgresql)://([^/?]*)/?([^?]*)(?:\?(.*))?", re.DOTALL)
_HOST: Final = re.compile(r"(?P<host>\[[^\]@]*\]|[^:\[\]@]*)(?::(?P<port>[^:@]*))?")
_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_UNSAFE: Final = re.compile(r"[^\w.-]+")


class PostgresLocation:
    """A parsed location. Only `parameters` and `password` contain credentials.

    Args:
        location: The location as a user writes it.

    Raises:
        StoreUnavailable: It is not valid. The message does not quote the location.
    """

    def __init__(self, location: str) -> None:
        match = _URL.fullmatch(location)
        if match is None:
            raise _invalid("it does not begin with postgresql://")
        authority, database, query = match.groups()
        account, has_account, hosts = authority.rpartition("@")
        user, has_password, password = account.partition(":")
        found = {"dbname": _decoded(database)}
        if has_account:
            found["user"] = _decoded(user)
        if has_password:
            found["password"] = _decoded(password)
        names, ports = zip(*map(_host_and_port, hosts.split(",")), strict=True)
        found["host"], found["port"] = ",".join(names), ",".join(ports)
        found |= _query(query or "")
        _check(found)
        self._parameters = found

    @property
    def parameters(self) -> dict[str, str]:
        """Parameters of the connection for libpq, including the user and the password."""
        return {name: value for name, value in self._parameters.items() if value}

    @property
    def password(self) -> str:
        """The password in the location; empty if there is none. libpq may find one elsewhere."""
        return self._parameters.get("password", "")

    @property
    def hosts(self) -> list[str]:
        """Each host with its port; libpq tries them in this order."""
        names, ports = self._parameters["host"].split(","), self._parameters["port"].split(",")
        if len(ports) == 1:
            ports *= len(names)
        pairs = zip(names, ports, strict=True)
        return [f"{_shown_host(name)}:{port}" if name else "" for name, port in pairs]

    @property
    def shown(self) -> str:
        """The location as messages show it, without user, password and parameters."""
        return f"postgresql://{','.join(self.hosts)}/{quote(self._parameters['dbname'], safe='')}"

    @property
    def file_stem(self) -> str:
        """Name of the files on this machine that belong to the ledger, without a suffix.

        It depends only on the hosts, their ports and the name of the database. A local socket has
        no host, and its port does not count.
        """
        plain = f"{','.join(self.hosts) or 'local'}/{self._parameters['dbname']}"
        stem = _UNSAFE.sub("-", plain)
        # A colon and a slash become "-" in every name; other changes could make two names equal.
        if len(stem) > _MAX_STEM or stem != plain.replace(":", "-").replace("/", "-"):
            digest = hashlib.sha256(plain.encode("utf-8", "surrogateescape")).hexdigest()[:8]
            stem = f"{stem[:_MAX_STEM]}-{digest}"
        return stem.lstrip(".-")

    def __repr__(self) -> str:
        return f"PostgresLocation({self.shown!r})"


def is_postgres(location: str) -> bool:
    """Return whether a location names a database in PostgreSQL."""
    return location.partition(":")[0].lower() in SCHEMES


def _shown_host(name: str) -> str:
    return f"[{name}]" if ":" in name else quote(name, safe="")


def _host_and_port(text: str) -> tuple[str, str]:
    match = _HOST.fullmatch(text)
    if match is None:
        raise _invalid("the host is not valid")
    port = match["port"] or str(PORT)
    if not (port.isascii() and port.isdigit() and 0 < int(port[:6]) < 65536):
        raise _invalid("the port is not a number from 1 to 65535")
    host = _decoded(match["host"])
    return host[1:-1] if host.startswith("[") else host.lower(), port


def _query(query: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in filter(None, query.split("&")):
        name, has_value, value = part.partition("=")
        if not has_value or not name.isidentifier():
            raise _invalid("a parameter after the ? is not of the form name=value")
        found[name] = _decoded(value)
    return found


def _check(found: dict[str, str]) -> None:
    if not found["dbname"]:
        raise _invalid("the name of the database is missing")
    if "@" in found["dbname"] or "/" in found["dbname"] or "=" in found["dbname"]:
        # Part of a password with an unescaped "/" would otherwise be shown as the database.
        raise _invalid("the name of the database has a character that must be written as %XX")
    ports = found["port"].split(",")
    if not all(port.isascii() and port.isdigit() for port in ports):
        raise _invalid("the port is not a number from 1 to 65535")
    if len(ports) not in (1, len(found["host"].split(","))):
        raise _invalid("the numbers of hosts and ports differ")


def _decoded(text: str) -> str:
    """Decode the %XX of a part."""
    if _ESCAPE.search(text):
        raise _invalid("a % is not followed by two hexadecimal digits; write % itself as %25")
    try:
        decoded = unquote_to_bytes(text).decode()
    except UnicodeError:
        raise _invalid("it is not UTF-8") from None
    if "\0" in decoded:
        raise _invalid("it has a NUL")
    return decoded


def _invalid(problem: str) -> StoreUnavailable:
    return StoreUnavailable(
        f"the location of the ledger is not valid: {problem}; write {FORM}, with the characters "
        "@ : / ? # % of a password as %40 %3A %2F %3F %23 %25"
    )
