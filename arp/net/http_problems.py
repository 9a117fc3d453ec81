"""Descriptions of failed HTTP requests, in plain words.

The functions work with httpx and with clients that have the same interface, and import none of
them, because each framework brings its own client.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

import msgspec

from arp.protocol.framing.event_stream import EVENT_STREAM
from arp.protocol.json_value import Json
from arp.protocol.safe_text import sanitise_line

MAX_WORDS: Final = 300
"""Limit of the characters that are quoted from a server's answer."""
BROKE: Final = "it ended before the answer did"
MAX_CAUSES: Final = 10
_HIDDEN: Final = frozenset(("script", "style", "template"))
_UNMARKED: Final = frozenset(("", "text/plain", "application/octet-stream"))
"""Media types that some servers use for event streams too."""
_NAMES: Final = ("error", "message", "detail", "msg", "reason", "title", "error_description")
"""Fields of a JSON error that may hold its description; the first non-empty one is used."""


def broken_connection(failed: BaseException, where: str = "") -> str:
    """Return why a request got no complete answer; empty if the error has another cause.

    Args:
        failed: Error of the client, or an error of a framework that the client's error caused.
        where: Name of the server in the text; empty means its address.
    """
    chain = list(_causes(failed))
    for one in chain:
        names = {kind.__name__ for kind in type(one).__mro__}
        if "RequestError" not in names:  # base class of httpx's errors of requests
            continue
        where = where or _address_of(one) or "the server"
        if names & {"ConnectError", "ConnectTimeout"}:
            return f"{where} cannot be reached: {_refusal(chain, one)}"
        if "TimeoutException" in names:
            return f"{where} did not answer in time"
        if "TooManyRedirects" in names:
            return f"{where} redirects without end; check the address"
        return f"the connection to {where} broke: {one_line(str(one)) or BROKE}"
    return ""


def answer_problem(
    status: int, headers: Mapping[str, str], body: bytes, url: str = "", *, who: str = "it"
) -> str:
    """Describe an answer with an error status.

    Args:
        status: HTTP status.
        headers: Headers of the answer.
        body: Beginning of the body.
        url: URL of the request, for a relative redirect.
        who: Name of the server in the text.
    """
    location = headers.get("location", "")
    if 300 <= status < 400 and location:
        return f"{who} redirects ({status}) to {one_line(urljoin(url, location))}; use that address"
    said = words_of(body)
    return f"{who} answered {status}: {said}" if said else f"{who} answered {status}"


def not_a_stream(headers: Mapping[str, str]) -> str:
    """Return the media type of an answer that is not an event stream; empty if it may be one."""
    kind = type_of(headers)
    return "" if kind == EVENT_STREAM or kind in _UNMARKED else kind


def type_of(headers: Mapping[str, str]) -> str:
    """Return the media type of an answer in lower case; empty if it has none."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def words_of(body: bytes) -> str:
    """Return the error message in a body as one line. The body may be JSON, HTML or plain text."""
    text = body.decode(errors="replace")
    try:
        return one_line(_message_in(msgspec.json.decode(body)))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    if not text.lstrip().startswith("<"):
        return one_line(text)
    page = _PageText()
    page.feed(text)
    return one_line(": ".join(filter(None, (" ".join(page.title), " ".join(page.shown)))))


class _PageText(HTMLParser):
    """The title and the visible text of an HTML page."""

    def __init__(self) -> None:
        super().__init__()
        self.title: list[str] = []
        self.shown: list[str] = []
        self._inside = ""

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self._inside = tag

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside not in _HIDDEN and data.strip():
            (self.title if self._inside == "title" else self.shown).append(data.strip())


def one_line(text: str) -> str:
    """Return a text as one line of at most `MAX_WORDS` characters."""
    line = sanitise_line(" ".join(text.split()))
    return line if len(line) <= MAX_WORDS else line[: MAX_WORDS - 1] + "…"


def message_in(body: Any) -> str:
    """Return the error message in a body that was read already, as one line.

    Args:
        body: Bytes, text, decoded JSON, or `None`.
    """
    if isinstance(body, bytes):
        return words_of(body)
    return words_of(body.encode()) if isinstance(body, str) else one_line(_message_in(body))


def _message_in(value: Json) -> str:
    if isinstance(value, list):
        return "; ".join(filter(None, map(_message_in, value)))
    if not isinstance(value, dict):
        return "" if value is None else str(value)
    found = (_message_in(value[name]) for name in _NAMES if name in value)
    return next(filter(None, found), "")


def _causes(failed: BaseException | None) -> Iterator[BaseException]:
    for _ in range(MAX_CAUSES):
        if failed is None:
            return
        yield failed
        failed = failed.__cause__ or failed.__context__


def _refusal(chain: list[BaseException], failed: BaseException) -> str:
    names = {type(one).__name__ for one in chain}
    if "ConnectionRefusedError" in names:
        return "it refuses connections; check the address, and that the server runs"
    if "gaierror" in names:
        return "there is no such host; check the address"
    return one_line(str(failed)) or "no connection within the time"


def _address_of(failed: BaseException) -> str:
    """Return the URL of a failed request without query and password; empty if it is not known."""
    try:
        parts = urlsplit(str(failed.request.url))  # type: ignore[attr-defined]  # raises if unset
    except (AttributeError, RuntimeError, ValueError):
        return ""
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}" if parts.netloc else ""
