"""Sessions and facts from a server that runs, over HTTP."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar
from urllib.parse import quote

import httpx
import msgspec
from msgspec import Raw, Struct

from arp.client.sse import EventTooLong, SseParser
from arp.commands.source import SessionRow, SourceError
from arp.commands.speaking import printable
from arp.ledger.chain import Checked

TIMEOUT = httpx.Timeout(30.0, connect=10.0)

QUIET_S = 45.0
"""A stream says something every 15 s; three times that and it is dead."""

AGAIN_S = 1.0
"""How long to wait before a stream that broke off is asked for again."""

PAGE = 1000


class _Page(Struct):
    sessions: list[SessionRow]


class _Events(Struct):
    events: list[Raw]
    next: int


S = TypeVar("S")


class _Placed(Struct):
    sequence: int


class ServedLedger:
    """A `Source` over HTTP; the sessions of whoever the token belongs to.

    Args:
        url: Of the server, or of the prefix under which it is mounted.
        token: Its token, if it has one.
    """

    def __init__(self, url: str, token: str | None) -> None:
        if "://" not in url:
            raise SourceError(f"{url}: write it as http://HOST:PORT")
        self._url = url.rstrip("/")
        headers = {"authorization": f"Bearer {token}"} if token else {}
        self._client = httpx.Client(headers=headers, timeout=TIMEOUT, trust_env=False)

    def sessions(self, limit: int) -> list[SessionRow]:
        """As `Source.sessions`."""
        return self._get("/_api/sessions", _Page, limit=limit).sessions

    def events(self, session_id: str, after: int, types: Sequence[str]) -> Iterator[bytes]:
        """As `Source.events`."""
        while True:
            page = self._get(
                _events_of(session_id), _Events, after=after, limit=PAGE, type=list(types)
            )
            yield from (bytes(fact) for fact in page.events)
            if page.next == after:
                return
            after = page.next

    def follow(self, session_id: str, after: int, types: Sequence[str]) -> Iterator[bytes]:
        """As `Source.follow`. A stream that breaks off is taken up again where it was."""
        while True:
            try:
                for fact in self._stream(session_id, after, types):
                    after = msgspec.json.decode(fact, type=_Placed).sequence
                    yield fact
            except (httpx.TransportError, EventTooLong):
                pass
            time.sleep(AGAIN_S)

    def verify(self, session_id: str) -> Checked:
        """As `Source.verify`: the server looks at its own ledger."""
        return self._get(f"/_api/sessions/{quote(session_id)}/verification", Checked)

    def close(self) -> None:
        """As `Source.close`."""
        self._client.close()

    def _stream(self, session_id: str, after: int, types: Sequence[str]) -> Iterator[bytes]:
        parser = SseParser()
        with self._client.stream(
            "GET",
            self._url + _events_of(session_id),
            params={"after": after, "type": list(types)},
            headers={"accept": "text/event-stream"},
            timeout=httpx.Timeout(QUIET_S),
        ) as response:
            if response.status_code != 200:
                response.read()
                self._refuse(response)
            for chunk in response.iter_bytes():
                for event in parser.feed(chunk):
                    if event.name == "message":
                        yield event.data.encode()

    def _get(self, path: str, shape: type[S], **query: Any) -> S:
        try:
            response = self._client.get(self._url + path, params=query)
        except httpx.TransportError as error:
            raise SourceError(
                f"no server answers at {self._url} ({printable(str(error))}); name another with "
                "--url, or read the ledger of a target: --ledger app.py"
            ) from error
        if response.status_code != 200:
            self._refuse(response)
        try:
            return msgspec.json.decode(response.content, type=shape)
        except msgspec.DecodeError as error:
            raise SourceError(f"{self._url} is no ARP server: {error}") from error

    def _refuse(self, response: httpx.Response) -> None:
        try:
            reason = response.json()["payload"]["error"]
        except (ValueError, KeyError, TypeError):
            reason = f"HTTP {response.status_code}"
        hint = "; give --token" if response.status_code == 401 else ""
        raise SourceError(f"{self._url}: {printable(str(reason))}{hint}")


def _events_of(session_id: str) -> str:
    return f"/_api/sessions/{quote(session_id)}/events"
