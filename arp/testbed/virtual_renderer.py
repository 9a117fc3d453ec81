"""`VirtualRenderer`: a renderer with a screen, like every renderer; a test acts as its user."""

from __future__ import annotations

import asyncio
import mimetypes
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal, Protocol, TypeAlias, TypedDict, TypeVar, Unpack
from uuid import uuid4

import httpx
from msgspec import Struct

from arp.access.principal import User
from arp.client.client import ArpClient
from arp.client.errors import coded_error
from arp.client.events import Connected
from arp.client.link import Link
from arp.client.options import FEATURES, Backoff
from arp.client.uploads import ANY_TYPE, FileSource, read_files
from arp.protocol.capabilities import LEVELS
from arp.protocol.catalog import VERSIONS
from arp.protocol.codec import agent_decoder, encode_json
from arp.protocol.connection.screen import Screen
from arp.protocol.json_value import Json, JsonObject
from arp.protocol.messages import ErrorMessage, Input, InputAck, RendererCapabilities
from arp.testbed.rendered_turn import RenderedTurn
from arp.testbed.watched_client import WatchedClient

T = TypeVar("T")

Level: TypeAlias = Literal["minimal", "basic", "standard", "full"]
"""Components that a renderer supports (protocol.md 7); `full` means all of them."""

TIMEOUT_S = 10.0
"""Time limit of a wait in seconds; a turn that takes longer in a test most likely hangs."""

MOST_BYTES = 64 << 20
"""Largest size in bytes of a file that a test uploads."""


def capabilities_of(level: Level) -> RendererCapabilities:
    """Return the capabilities of a renderer at a level.

    Raises:
        ValueError: There is no such level.
    """
    names = {**LEVELS, "full": tuple(VERSIONS)}.get(level)
    if names is None:
        known = ", ".join((*LEVELS, "full"))
        raise ValueError(f"level: expected one of {known}; got {level!r}")
    return RendererCapabilities({name: VERSIONS[name] for name in names}, list(FEATURES))


class ConnectOptions(TypedDict, total=False):
    """Options of a renderer's connection: user, credentials, session and capabilities."""

    user: User | str | None
    """User of the connection, without a login. By default, headers and cookies decide."""
    headers: Mapping[str, str]
    """Headers of the handshake, such as `authorization`."""
    cookies: Mapping[str, str]
    """Cookies of the handshake, such as the cookie of a login."""
    session_id: str | None
    """Id of the session to open; by default a new session."""
    workflow: str | None
    """Agent of a new session, if the app has several."""
    level: Level
    """Level of the renderer: `minimal`, `basic` or `standard`; by default all components."""
    locale: str | None
    """Locale that is sent to the agent, such as `de-CH`."""
    time_zone: str | None
    """Time zone that is sent to the agent, such as `Europe/Zurich`."""
    timeout_s: float
    """Time in seconds after which a wait fails."""


class RendererServer(Protocol):
    """The methods of a served app that its renderers use."""

    async def open_link(
        self, hello: bytes, headers: Mapping[str, str], cookies: Mapping[str, str]
    ) -> Link:
        """Connect one renderer."""

    def http(self, headers: Mapping[str, str], cookies: Mapping[str, str]) -> httpx.AsyncClient:
        """Return a client for its HTTP routes."""

    async def advance(self, seconds: float) -> None:
        """Advance the clock."""

    async def restart(self, *, crash: bool = False) -> None:
        """Stop the server, and start it again with its ledger."""

    def session(
        self, **options: Unpack[ConnectOptions]
    ) -> AbstractAsyncContextManager[VirtualRenderer]:
        """Connect another renderer."""


def _id_of(turn: RenderedTurn | str) -> str:
    return turn if isinstance(turn, str) else turn.id


class EntryPoint(Struct, frozen=True):
    """The server of a renderer, with the headers and cookies of its connections."""

    server: RendererServer
    headers: Mapping[str, str]
    cookies: Mapping[str, str]

    async def open_link(self, hello: bytes) -> Link:
        """Connect."""
        return await self.server.open_link(hello, self.headers, self.cookies)

    def http(self) -> httpx.AsyncClient:
        """Return an HTTP client with the same headers and cookies."""
        return self.server.http(self.headers, self.cookies)


class VirtualRenderer:
    """One renderer on one session; see `session`.

    `say`, `action` and `upload` return a turn after it has ended or waits for an answer. If a wait
    fails, the message contains the current output.
    """

    def __init__(
        self,
        entry: EntryPoint,
        *,
        level: Level = "full",
        timeout_s: float = TIMEOUT_S,
        **options: Any,
    ) -> None:
        self.level = level
        self._entry = entry
        self._client = ArpClient(
            "http://127.0.0.1",
            capabilities=capabilities_of(level),
            open_link=entry.open_link,
            backoff=Backoff(first_s=0.01, most_s=0.05),
            **options,
        )
        self._watched = WatchedClient(self._client, timeout_s)

    # -- reading ---------------------------------------------------------------------------------

    @property
    def client(self) -> ArpClient:
        """The underlying client, for operations without a method in this class."""
        return self._client

    @property
    def screen(self) -> Screen:
        """The state of the screen."""
        return self._client.screen

    @property
    def session_id(self) -> str:
        """The id of the session."""
        assert self._client.session_id is not None, "not connected"
        return self._client.session_id

    @property
    def turns(self) -> list[RenderedTurn]:
        """The turns on the screen, oldest first."""
        return [RenderedTurn(self._watched, turn_id) for turn_id in self.screen.turns]

    @property
    def last_turn(self) -> RenderedTurn:
        """The newest turn.

        Raises:
            LookupError: There is none.
        """
        if not self.screen.turns:
            raise LookupError("this session has no turn yet")
        return self.turns[-1]

    def turn(self, turn_id: str) -> RenderedTurn:
        """Return a turn by its id, which may come from another renderer or the agent."""
        return RenderedTurn(self._watched, turn_id)

    # -- actions of the user ---------------------------------------------------------------------

    async def say(self, text: str, *, wait: bool = True) -> RenderedTurn:
        """Send a text and return its turn.

        Args:
            text: Text of the user; `/name …` is a command.
            wait: Whether to wait until the turn has ended or waits for an answer.

        Raises:
            ArpError: The server refuses the input.
            AssertionError: The wait took longer than `timeout_s`.
        """
        return await self._turn_of(await self._client.send_text(text), wait=wait)

    async def edit(self, turn: RenderedTurn | str, text: str, *, wait: bool = True) -> RenderedTurn:
        """Replace the input of a turn, and return the turn that answers the new text; see `say`.

        The result is another version of the turn; the turns after the old version are no longer
        shown. A queued turn is not replaced: it gets the new text.

        Args:
            turn: The turn, or its id.
            text: New text of the user.
            wait: See `say`.

        Raises:
            ArpError: The server refuses the edit, for example while a turn runs.
        """
        return await self._turn_of(await self._client.edit(_id_of(turn), text), wait=wait)

    async def regenerate(self, turn: RenderedTurn | str, *, wait: bool = True) -> RenderedTurn:
        """Have the agent answer a turn again; return the new version of the turn. See `edit`."""
        return await self._turn_of(await self._client.regenerate(_id_of(turn)), wait=wait)

    async def action(
        self, name: str, payload: Json = None, *, source: str | None = None, wait: bool = True
    ) -> RenderedTurn:
        """Send an action of a component and return its turn; see `say`."""
        input_id = await self._client.send_action(name, payload, source=source)
        return await self._turn_of(input_id, wait=wait)

    async def select(self, rows: list[int], *, source: str, wait: bool = True) -> RenderedTurn:
        """Select rows of a table, counted from 0, and return the turn; see `say`."""
        input_id = await self._client.send_selection(rows, source=source)
        return await self._turn_of(input_id, wait=wait)

    async def upload(
        self, *files: FileSource, text: str | None = None, wait: bool = True
    ) -> RenderedTurn:
        """Upload files, each a path or a pair (name, bytes), with an optional text; see `say`.

        Raises:
            ArpError: The server refuses the files.
        """
        data: JsonObject = {} if text is None else {"text": text}
        message = Input(input_type="file", data=data, id=uuid4().hex, session_id=self.session_id)
        parts: list[Any] = [("message", (None, encode_json(message), "application/json"))]
        for file in await read_files(files, MOST_BYTES):
            kind = mimetypes.guess_type(file.name)[0] or ANY_TYPE
            parts.append(("file", (file.name, file.content, kind)))
        async with self._entry.http() as http:
            response = await http.post("/_arp/v1/input", files=parts)
        (answer,) = agent_decoder("json").decode(response.content)
        if isinstance(answer, ErrorMessage):
            raise coded_error(answer.payload)
        assert isinstance(answer, InputAck)
        turn = RenderedTurn(self._watched, answer.turn_id or "")
        return await turn.settled() if wait else turn

    async def cancel(self) -> None:
        """Cancel the running turn, as the stop button does."""
        await self._client.acknowledged(await self._client.cancel())

    async def _turn_of(self, input_id: str, *, wait: bool) -> RenderedTurn:
        async with asyncio.timeout(self._watched.timeout_s):
            turn = RenderedTurn(self._watched, await self._client.turn_of(input_id))
        return await turn.settled() if wait else turn

    # -- time and others -------------------------------------------------------------------------

    async def until(self, look: Callable[[], T | None], what: str = "such thing") -> T:
        """Wait for something on the screen: `await user.until(lambda: turn.text or None, "text")`.

        Args:
            look: Returns the result of the wait, or `None` to wait longer.
            what: Name of the result in the error message.

        Raises:
            AssertionError: The result did not appear in time.
        """
        return await self._watched.until(look, what)

    async def advance(self, seconds: float) -> None:
        """Advance the clock, so that deadlines of questions and timers of the agent become due."""
        await self._entry.server.advance(seconds)

    async def restart(self, *, crash: bool = False) -> None:
        """Restart the server and reconnect to the session.

        Args:
            crash: Whether to simulate `kill -9`: running turns cannot finish.
        """
        # Subscribed before the restart, during which the renderer may reconnect: a later stream
        # would wait for a `Connected` that has passed.
        events = self._client.events()
        await self._entry.server.restart(crash=crash)
        async with asyncio.timeout(self._watched.timeout_s):
            async for event in events:
                if isinstance(event, Connected):
                    break
            await self._client.ready()

    def join(
        self, **options: Unpack[ConnectOptions]
    ) -> AbstractAsyncContextManager[VirtualRenderer]:
        """Connect another renderer to the same session: `async with user.join(level="minimal")`.

        Args:
            **options: See `ServedApp.session`. By default, the user is the same.
        """
        merged: ConnectOptions = {
            "headers": self._entry.headers,
            "cookies": self._entry.cookies,
            **options,
            "session_id": self.session_id,
        }
        return self._entry.server.session(**merged)

    async def snapshot(self, turn: RenderedTurn, level: Level = "minimal") -> str:
        """Return the text that a new renderer of a level shows for a turn.

        The new renderer joins the session for this, and replaces components that it does not
        support by simpler ones; see components.md.
        """
        async with self.join(level=level) as other:
            return other.turn(turn.id).snapshot()

    async def __aenter__(self) -> VirtualRenderer:
        await self._client.__aenter__()
        try:
            async with asyncio.timeout(self._watched.timeout_s):
                await self._client.ready()
        except BaseException:
            await self._client.aclose()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()

    def __repr__(self) -> str:
        shown = self._watched.everything() or "nothing"
        return f"<{self.level} renderer on {self._client.session_id}\n{shown}>"
