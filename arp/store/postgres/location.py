"""The location of a ledger in PostgreSQL: `postgresql://USER:PASSWORD@HOST:PORT/DATABASE`.

The form is that of libpq, with several hosts and with parameters such as `?sslmode=verify-full`. It
is parsed here and not by libpq, because the error messages of libpq quote parts of the location,
and these may contain the password. This module does not need the packages of the extra `postgres`.
"""

from __future__ import annotations

import hashlib
import os
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
_SEARCH_PATH: Final = re.compile(r"(?:^|\s)(?:-c\s*|--)search_path\s*=((?:\\.|\S)*)", re.DOTALL)
_NUMBER: Final = re.compile(r"\d+-")
"""Beginning of a database name that could be read as a port in a file name.

The host `h` with port 1 and database `2-x`, and the host `h-1` with port 2 and database `x`, would
both have the name `h-1-2-x`.
"""

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
        found["host"] = ",".join(names)
        # Without a port, libpq uses that of the environment or of the service.
        found["port"] = ",".join(one or str(PORT) for one in ports) if any(ports) else ""
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
        """Each host, with its port if the location has one; libpq tries them in this order."""
        names, ports = self._parameters["host"].split(","), self._parameters["port"].split(",")
        if len(ports) == 1:
            ports *= len(names)
        pairs = zip(map(_shown_host, names), ports, strict=True)
        return [f"{name}:{port}" if port else name for name, port in pairs]

    @property
    def shown(self) -> str:
        """The location as messages show it, without user, password and parameters."""
        return f"postgresql://{','.join(self.hosts)}/{quote(self._parameters['dbname'], safe='')}"

    @property
    def file_stem(self) -> str:
        """Name of the files on this machine that belong to the ledger, without a suffix.

        It is made from the first host, its port, the name of the database, and the `search_path`
        if the location or `PGOPTIONS` sets one. So standbys can be added after the first host.
        A host or port that the location lacks comes from `PGHOST` and `PGPORT`, as in libpq. If a
        service provides it, the name of the service is used instead.
        """
        host, port = self._first_server()
        database = self._parameters["dbname"]
        path = _search_path(self._parameters.get("options") or os.environ.get("PGOPTIONS", ""))
        plain = f"{_shown_host(host)}:{port}/{database}"
        stem = _UNSAFE.sub("-", plain)
        # The colon and the slash become "-" in every name. After any other change, two locations
        # could have the same name, so a hash is added.
        is_unique = stem == plain.replace(":", "-").replace("/", "-") == stem.lower()
        if path or not is_unique or len(stem) > _MAX_STEM or _NUMBER.match(database):
            text = f"{plain}?{path}" if path else plain
            digest = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:8]
            stem = f"{stem[:_MAX_STEM]}-{digest}"
        return stem.lstrip(".-")

    def _first_server(self) -> tuple[str, str]:
        """Return the first host and its port; see `file_stem`."""
        found, env = self._parameters, os.environ
        service = found.get("service") or env.get("PGSERVICE", "")
        host = found["host"].split(",")[0] or found.get("hostaddr", "").split(",")[0]
        port = found["port"].split(",")[0]
        if service:
            # The service provides what is missing, but its file is not read here.
            return host or "service", port or service
        host = host or (env.get("PGHOST") or env.get("PGHOSTADDR", "")).split(",")[0] or "local"
        port = port or env.get("PGPORT", "").split(",")[0] or str(PORT)
        return host if host.startswith("/") else host.lower(), port

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
    port = match["port"] or ""
    if port and not (port.isascii() and port.isdigit() and 0 < int(port[:6]) < 65536):
        raise _invalid("the port is not a number from 1 to 65535")
    host = _decoded(match["host"])
    return host[1:-1] if host.startswith("[") else host.lower(), port


def _search_path(options: str) -> str:
    """Return the `search_path` in `options` for the server; empty if they set none."""
    found = _SEARCH_PATH.findall(options)
    return found[-1] if found else ""


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
    if any(ports) and not all(port.isascii() and port.isdigit() for port in ports):
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
