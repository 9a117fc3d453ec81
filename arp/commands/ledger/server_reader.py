"""Reading sessions and facts from a running server, and exports that the server creates."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import quote, urlsplit, urlunsplit

import click
import httpx
import msgspec
from msgspec import Raw, Struct
from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

from arp.audit.evidence.pack_writer import UNFINISHED, PackUnwritable
from arp.commands.ledger.reader import ListedSession, ReaderError
from arp.commands.output import printable
from arp.hub.removal import Remainder
from arp.ledger.chain import ChainCheck
from arp.protocol.framing.event_stream import EVENT_STREAM, EventTooLong, SseParser
from arp.protocol.json_value import Json, JsonObject
from arp.protocol.token_address import split_token
from arp.store.directory import sync_directory

TIMEOUT: Final = httpx.Timeout(30.0, connect=10.0)

QUIET_S: Final = 45.0
"""Silence in seconds after which a stream counts as dead: three keep-alive intervals."""

RETRY_S: Final = 1.0
"""Pause before a lost stream is opened again."""

CALL_S: Final = 600.0
"""Time for the answer to a call; an export may take minutes."""

PAGE: Final = 1000
"""Number of facts to ask for in one request."""

_WEBSOCKET_SCHEMES: Final = {"http": "ws", "https": "wss"}


class _SessionList(Struct):
    sessions: list[ListedSession]


class _DeletionAnswer(Struct):
    deleted: str
    remains: list[Remainder] = []


class _EventList(Struct):
    events: list[Raw]
    next: int


class _FactSequence(Struct):
    sequence: int


class ServerFile(Struct):
    """A file of an export."""

    bytes: int
    sha256: str
    path: str


class ServerExport(Struct, rename="camel"):
    """An export that a server has created."""

    evidence_id: str
    file: ServerFile
    sha256: str


S = TypeVar("S")


def _is_address(url: str) -> bool:
    try:
        httpx.URL(url)
    except httpx.InvalidURL:
        return False
    return True


class ServerReader:
    """A `LedgerReader` of a server. It reads the sessions of the user that the token belongs to.

    Args:
        url: Address of the server, or of the prefix under which it is mounted.
        token: Token for the server, if it needs one.
    """

    def __init__(self, url: str, token: str | None) -> None:
        url, token = split_token(url, token)
        if "://" not in url or not _is_address(url):
            raise ReaderError(f"{printable(url)}: write it as http://HOST:PORT")
        self._url = url.rstrip("/")
        self._headers = {"authorization": f"Bearer {token}"} if token else {}
        self._client = httpx.Client(headers=self._headers, timeout=TIMEOUT, trust_env=False)

    def close(self) -> None:
        """See `LedgerReader.close`."""
        self._client.close()

    # -- sessions and facts ----------------------------------------------------------------------

    def sessions(self, limit: int) -> list[ListedSession]:
        """See `LedgerReader.sessions`."""
        return self._get("/_api/sessions", _SessionList, limit=limit).sessions

    def delete(self, session_id: str) -> list[Remainder]:
        """Delete a session.

        Returns:
            The data that a runtime could not delete.

        Raises:
            ReaderError: No server answers, or it refuses the request.
        """
        path = f"/_api/chats/{quote(session_id, safe='')}"
        return self._get(path, _DeletionAnswer, method="DELETE").remains

    def events(self, session_id: str, after: int, types: Sequence[str]) -> Iterator[bytes]:
        """See `LedgerReader.events`."""
        path = _path_of(session_id, "events")
        while True:
            page = self._get(path, _EventList, after=after, limit=PAGE, type=list(types))
            yield from (bytes(fact) for fact in page.events)
            if page.next == after:
                return
            after = page.next

    def follow(self, session_id: str, after: int, types: Sequence[str]) -> Iterator[bytes]:
        """See `LedgerReader.follow`. A lost stream is opened again after the last fact."""
        while True:
            try:
                for fact in self._stream(session_id, after, types):
                    after = msgspec.json.decode(fact, type=_FactSequence).sequence
                    yield fact
            except (httpx.TransportError, EventTooLong):
                pass
            time.sleep(RETRY_S)

    def verify(self, session_id: str) -> ChainCheck:
        """See `LedgerReader.verify`. The server checks its own ledger."""
        return self._get(_path_of(session_id, "verification"), ChainCheck)

    def _stream(self, session_id: str, after: int, types: Sequence[str]) -> Iterator[bytes]:
        parser = SseParser()
        with self._client.stream(
            "GET",
            self._url + _path_of(session_id, "events"),
            params={"after": after, "type": list(types)},
            headers={"accept": EVENT_STREAM},
            timeout=httpx.Timeout(QUIET_S),
        ) as response:
            if response.status_code != 200:
                response.read()
                self._raise_for(response)
            for chunk in response.iter_bytes():
                for event in parser.feed(chunk):
                    if event.name == "message":
                        yield event.data.encode()

    def _get(self, path: str, shape: type[S], *, method: str = "GET", **query: Any) -> S:
        try:
            response = self._client.request(method, self._url + path, params=query)
        except httpx.TransportError as error:
            raise ReaderError(
                f"no server answers at {self._url} ({printable(str(error))}); name another with "
                "--url, or read the ledger of a target: --ledger app.py"
            ) from error
        if response.status_code != 200:
            self._raise_for(response)
        try:
            return msgspec.json.decode(response.content, type=shape)
        except msgspec.DecodeError as error:
            raise ReaderError(f"{self._url} is no ARP server: {error}") from error

    def _raise_for(self, response: httpx.Response) -> None:
        """Raise a `ReaderError` with the reason of a refused request."""
        try:
            reason = response.json()["payload"]["error"]
        except (ValueError, KeyError, TypeError):
            reason = f"HTTP {response.status_code}"
        hint = "; give --token" if response.status_code == 401 else ""
        raise ReaderError(f"{self._url}: {printable(str(reason))}{hint}")

    # -- exports ---------------------------------------------------------------------------------

    def export(self, method: str, params: JsonObject) -> ServerExport:
        """Ask the server to create an export. The server stores the file and records it.

        Raises:
            ReaderError: No server answers, it refuses the request, or there is nothing to export.
        """
        result = self._call(method, params)
        if isinstance(result, dict) and result.get("state") not in (None, "exported"):
            raise ReaderError(f"{result['state']}: {printable(str(result.get('reason')))}")
        try:
            return msgspec.convert(result, ServerExport)
        except msgspec.ValidationError as error:
            raise ReaderError(f"{self._url} is no ARP server: {error}") from error

    def _call(self, method: str, params: JsonObject) -> Json:
        """Call a method of the control plane, on a separate connection."""
        parts = urlsplit(self._url)
        scheme = _WEBSOCKET_SCHEMES.get(parts.scheme, "")
        address = urlunsplit((scheme, parts.netloc, f"{parts.path}/_api/rpc", "", ""))
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        try:
            with connect(
                address, additional_headers=self._headers, max_size=None, proxy=None
            ) as socket:
                socket.send(msgspec.json.encode(request).decode())
                answer: dict[str, Any] = msgspec.json.decode(socket.recv(CALL_S))
        except (OSError, TimeoutError, WebSocketException, msgspec.DecodeError) as error:
            raise ReaderError(
                f"no server answers at {self._url} ({printable(str(error))}); name another with "
                "--url, give --token, or read the ledger of a target: --ledger app.py"
            ) from error
        if "error" in answer:
            raise ReaderError(f"{self._url}: {printable(str(answer['error'].get('message')))}")
        return answer.get("result")

    def download(self, file: ServerFile, target: Path) -> None:
        """Write a file of an export to `target`: complete and durable, or not at all.

        Raises:
            ReaderError: The server does not send the file, or the received bytes are not the file.
            PackUnwritable: `target` exists, or it cannot be written.
        """
        if target.exists() or target.is_symlink():
            raise PackUnwritable(f"{target} is there already; name another, or remove it")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with _temporary_file(target) as temporary:
                if self._fetch(file, temporary) != file.sha256:
                    raise ReaderError(
                        f"{self._url}: the received file is not the exported one; try again"
                    )
                temporary.replace(target)
                sync_directory(target.parent)
        except httpx.HTTPError as error:
            raise ReaderError(f"{self._url}: {printable(str(error))}") from error
        except OSError as error:
            reason = error.strerror or error
            raise PackUnwritable(f"{target} cannot be written: {reason}") from error

    def _fetch(self, file: ServerFile, temporary: Path) -> str:
        """Download a file with a progress bar; return its SHA-256."""
        digest = sha256()
        with (
            self._client.stream("GET", self._url + file.path) as response,
            temporary.open("wb") as output,
            click.progressbar(length=file.bytes, label="fetching", file=sys.stderr) as bar,
        ):
            response.raise_for_status()
            for chunk in response.iter_bytes():
                output.write(chunk)
                digest.update(chunk)
                bar.update(len(chunk))
            output.flush()
            os.fsync(output.fileno())
        return digest.hexdigest()


def _path_of(session_id: str, what: str) -> str:
    return f"/_api/sessions/{quote(session_id)}/{what}"


@contextmanager
def _temporary_file(target: Path) -> Iterator[Path]:
    handle, name = tempfile.mkstemp(prefix=UNFINISHED, dir=target.parent)
    os.close(handle)
    try:
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)
