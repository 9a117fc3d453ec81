"""Exports that a server makes: asked for over its control plane, then fetched."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

import click
import httpx
import msgspec
from msgspec import Struct
from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

from arp.commands.source import SourceError
from arp.commands.speaking import printable
from arp.evidence.pack_writer import UNFINISHED, PackUnwritable
from arp.protocol.json_value import JsonObject
from arp.store.directory import sync_directory

MAKE_S: Final = 600.0
"""How long a server may take to make an export."""

_SCHEMES: Final = {"http": "ws", "https": "wss"}


class ServedFile(Struct):
    """A file of an export."""

    bytes: int
    sha256: str
    path: str


class ServedExport(Struct, rename="camel"):
    """What a server says of an export."""

    evidence_id: str
    file: ServedFile
    sha256: str


def ask(url: str, token: str | None, method: str, params: JsonObject) -> ServedExport:
    """Lets a server make an export; it keeps it, and its ledger names it.

    Raises:
        SourceError: No server answers, it refuses, or there is nothing to export.
    """
    headers = {"authorization": f"Bearer {token}"} if token else {}
    place = urlsplit(url)
    address = urlunsplit(
        (_SCHEMES.get(place.scheme, ""), place.netloc, f"{place.path.rstrip('/')}/_api/rpc", "", "")
    )
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    try:
        with connect(address, additional_headers=headers, max_size=None, proxy=None) as socket:
            socket.send(msgspec.json.encode(body).decode())
            answer: dict[str, Any] = msgspec.json.decode(socket.recv(MAKE_S))
    except (OSError, TimeoutError, WebSocketException, msgspec.DecodeError) as error:
        raise SourceError(
            f"no server answers at {url} ({printable(str(error))}); name another with --url, give "
            "--token, or read the ledger of a target: --ledger app.py"
        ) from error
    if "error" in answer:
        raise SourceError(f"{url}: {printable(str(answer['error'].get('message')))}")
    result = answer.get("result")
    if isinstance(result, dict) and result.get("state") not in (None, "exported"):
        raise SourceError(f"{result['state']}: {printable(str(result.get('reason')))}")
    try:
        return msgspec.convert(result, ServedExport)
    except msgspec.ValidationError as error:
        raise SourceError(f"{url} is no ARP server: {error}") from error


def fetch(url: str, token: str | None, file: ServedFile, target: Path) -> None:
    """Writes a file of an export: under its name it is whole and durable, or it is not there.

    Raises:
        SourceError: It does not come, or is not what the server said.
        PackUnwritable: Something is there, or the disk refuses.
    """
    if target.exists() or target.is_symlink():
        raise PackUnwritable(f"{target} is there already; name another, or remove it")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _aside(target) as aside:
            digest = _download(url, token, file, aside)
            if digest != file.sha256:
                raise SourceError(f"{url}: what came is not what was exported; try again")
            aside.replace(target)
            sync_directory(target.parent)
    except httpx.HTTPError as error:
        raise SourceError(f"{url}: {printable(str(error))}") from error
    except OSError as error:
        raise PackUnwritable(f"{target} cannot be written: {error.strerror or error}") from error


@contextmanager
def _aside(target: Path) -> Iterator[Path]:
    handle, name = tempfile.mkstemp(prefix=UNFINISHED, dir=target.parent)
    os.close(handle)
    try:
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)


def _download(url: str, token: str | None, file: ServedFile, aside: Path) -> str:
    """Fetches a file with a bar that shows how far it is; gives its SHA-256."""
    headers = {"authorization": f"Bearer {token}"} if token else {}
    digest = sha256()
    with (
        httpx.stream(
            "GET", url.rstrip("/") + file.path, headers=headers, trust_env=False
        ) as answer,
        aside.open("wb") as into,
        click.progressbar(length=file.bytes, label="fetching", file=sys.stderr) as bar,
    ):
        answer.raise_for_status()
        for chunk in answer.iter_bytes():
            into.write(chunk)
            digest.update(chunk)
            bar.update(len(chunk))
        into.flush()
        os.fsync(into.fileno())
    return digest.hexdigest()
