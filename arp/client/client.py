"""The asyncio client: a session on a server, its screen kept, reconnecting by itself.

```python
async with connect("http://127.0.0.1:8080") as client:
    turn = await client.ask("Show the sales")
    print(client.screen.text(turn.id))
```
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Literal, Unpack

from arp.client.callbacks import CallbackRunner, Callbacks
from arp.client.dial import dialer
from arp.client.driver import Driver
from arp.client.errors import ClientClosed, ServerUnreachable
from arp.client.events import Audience, Connected, Disconnected, Event, EventStream
from arp.client.inputs import Inputs, most_bytes
from arp.client.options import ANSWER_TIMEOUT_S, Backoff, Options, check_names, renderer_hello
from arp.client.uploads import FileSource, Upload, Uploads, read_files
from arp.client.watch import Watch, latest_turn, when_over
from arp.protocol.errors import ArpError, InternalError, error_payload
from arp.protocol.json_value import Json, JsonObject
from arp.protocol.messages import (
    CANCEL,
    REGENERATE,
    AgentHello,
    Command,
    Input,
    InputAck,
    InputType,
    Permission,
)
from arp.protocol.objects.screen import ObjectScreenConnection
from arp.protocol.renderer_connection import RendererConnection
from arp.protocol.screen import Screen, TurnScreen
from arp.protocol.token_address import split_token

_log = logging.getLogger(__name__)


class ArpClient:
    """One renderer on one session, for as long as its `async with` lasts.

    Entering starts it and does not wait: inputs may be sent at once and are delivered when the
    session is there. A lost connection is made again, with growing waits, and the session goes on
    where it was. Only a refusal that would meet us again ends it; then every wait raises that
    error, and `failure` holds it.

    Args:
        url: `http://HOST:PORT` (WebSocket, or SSE where that is refused), or a mounted prefix;
            a token may be behind it: `http://HOST:PORT/#token=…`;
            `ws://…/_arp/v1`; `http+sse://…`; `grpc:HOST:PORT`; each also with TLS; `unix:PATH`;
            `stdio:` with `command=[…]`.
        callbacks: Called as things happen.
        options: See `Options`.

    Raises:
        InvalidAddress: Address and options do not go together; says what to write.
        InvalidMessage: An option that the server would refuse; names it.
        TypeError: An option that there is not.
    """

    def __init__(
        self, url: str, *, callbacks: Callbacks | None = None, **options: Unpack[Options]
    ) -> None:
        check_names(options)
        if isinstance(url, str):  # `dialer` says what is wrong with anything else
            url, options["token"] = split_token(url, options.get("token"))
        dial = self._dial = dialer(url, options)
        dial.on_stderr = options.get("on_stderr")
        hello = renderer_hello(options, dial.access.token if dial.address.socket_path else None)
        backoff = options.get("backoff") or Backoff()
        is_object = dial.access.dialect == "object"
        encoding = dial.access.encoding
        spare_id = secrets.token_hex(8)
        self._connection = (
            ObjectScreenConnection(hello, encoding, time.monotonic, spare_id)
            if is_object
            else RendererConnection(hello, encoding, spare_id)
        )
        self._driver = Driver(
            self._connection,
            dial.open,
            self._hear,
            backoff=backoff,
            answer_timeout_s=options.get("answer_timeout_s", ANSWER_TIMEOUT_S),
            # In the object dialect each commit is acknowledged anyway.
            acks="frame-ack" in hello.capabilities.features and not is_object,
        )
        self._driver.reconnects = options.get("reconnect", True)
        self._uploads = Uploads(dial, backoff, self._driver.receive_json, self._pass, self._settled)
        self._audience = Audience()
        self._caller = CallbackRunner(callbacks or Callbacks())
        self._commands: tuple[Command, ...] = ()
        """Those for which `on_commands` was called last."""
        self._sources: tuple[AgentHello | None, tuple[Command, ...]] = (None, ())
        self._inputs = Inputs()
        self._watch = Watch()
        self._task: asyncio.Task[None] | None = None

    # -- reading ---------------------------------------------------------------------------------

    @property
    def screen(self) -> Screen:
        """What shows now. A snapshot puts a new one in its place, so ask for it each time."""
        return self._connection.screen

    @property
    def session_id(self) -> str | None:
        """The session, once it is known."""
        return self._connection.session_id

    @property
    def agent(self) -> AgentHello | None:
        """What the agent side can do, once it has said so."""
        return self._connection.agent

    @property
    def workflow(self) -> str | None:
        """The name of the session's agent, once it is known."""
        return self._connection.workflow

    @property
    def commands(self) -> tuple[Command, ...]:
        """The slash commands of the app and of the session; none before the agent side's `hello`.

        To give one, send its text: `await client.send_text("/export csv")`.
        """
        return self._connection.commands

    @property
    def connected(self) -> bool:
        """Whether there is a connection with a session."""
        return self._driver.ready.is_set()

    @property
    def failure(self) -> ArpError | None:
        """Why this client will not connect any more; `None` while it may."""
        return self._watch.failure

    def events(self) -> EventStream:
        """Return what happens from now on, to each caller separately.

        Messages come after they were applied to the screen; `render` and `patch` together with
        their `commit`. A stream takes bounded memory, see `EventStream`.
        """
        return self._audience.join()

    # -- life ------------------------------------------------------------------------------------

    async def __aenter__(self) -> ArpClient:
        if self._task is not None:
            raise ClientClosed("a client is started once; make another one")
        self._task = asyncio.create_task(self._run(), name="arp client")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connection, within a few seconds; what has no answer yet may be lost.

        A second call does nothing.
        """
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task])
            self._hear(Disconnected("closed by this side", None))
        self._end(ClientClosed("this client is closed; make another one"))

    async def ready(self) -> None:
        """Wait until the screen shows the session as it is.

        Raises:
            ArpError: It never will.

        Cancel: safe.
        """
        await self._watch.until(
            lambda: (self.connected and self._connection.epoch is not None) or None
        )

    async def _run(self) -> None:
        try:
            error = await self._driver.run(self._uploads.run)
        except Exception:  # noqa: BLE001 - a fault of ours must reach those who wait, not hang them
            _log.exception("the client failed; please report this")
            error = InternalError("the client failed; its log has the traceback")
            self._hear(Disconnected(error.message, None))
        finally:
            await self._dial.aclose()
        self._caller.fail(error_payload(error))
        self._end(error)

    def _end(self, error: ArpError) -> None:
        self._watch.fail(error)
        self._audience.end()

    def _hear(self, event: Event, weight: int = 0) -> None:
        self._inputs.hear(event)
        self._audience.tell(event, weight)
        self._caller.hear(event)
        self._look_at_commands()
        self._watch.notify()

    def _look_at_commands(self) -> None:
        """Call `on_commands` if they have changed, by a message or by another screen."""
        connection = self._connection
        agent, own = sources = (connection.agent, connection.screen.commands)
        if agent is self._sources[0] and own is self._sources[1]:
            return  # as at almost every event
        self._sources = sources
        before, self._commands = self._commands, connection.commands
        if self._commands != before:
            self._caller.commands(self._commands)

    # -- inputs ----------------------------------------------------------------------------------
    # Each gives the input's id at once, also offline; it raises when the client has ended, and what
    # `Inputs.open` raises. The id makes it take effect once, however often it has to be sent.

    async def send_text(self, text: str, *, source: str | None = None) -> str:
        """Say something, or answer the text input `source`."""
        return await self.send_input("text", {"text": text}, source=source)

    async def send_action(
        self, action: str, payload: Json = None, *, source: str | None = None, surface: str = "main"
    ) -> str:
        """Do an action of the component `source`."""
        data = {"action": action} if payload is None else {"action": action, "payload": payload}
        return await self.send_input("action", data, source=source, surface=surface)

    async def send_form(
        self,
        fields: JsonObject,
        *,
        source: str | None = None,
        action: str | None = None,
        surface: str = "main",
    ) -> str:
        """Submit the form `source`."""
        data = {"fields": fields} if action is None else {"action": action, "fields": fields}
        return await self.send_input("form_submit", data, source=source, surface=surface)

    async def send_selection(
        self, selected: Sequence[Json], *, source: str | None = None, surface: str = "main"
    ) -> str:
        """Pick options of the choices `source` by their values, or rows of a table from 0."""
        data = {"selected": list(selected)}
        return await self.send_input("selection", data, source=source, surface=surface)

    async def send_permission(
        self,
        permission: Permission,
        allowed: bool,
        *,
        scope: Literal["once", "session"] = "once",
        reason: str = "",
        updated_input: JsonObject | None = None,
    ) -> str:
        """Allow what a tool asks permission for, or deny it; the server holds it to what was shown.

        Args:
            permission: As the screen has it: `client.screen.turns[…].permissions`.
            allowed: Whether the tool may go on.
            scope: How far it is allowed; `session` only if it is among `permission.scopes`.
            reason: Why it is denied.
            updated_input: What is allowed instead of what was shown, if `permission.editable`.
        """
        payload: JsonObject = {"scope": scope} if allowed else {"reason": reason}
        if permission.digest is not None:
            payload["digest"] = permission.digest
        if allowed and updated_input is not None:
            payload["updated_input"] = updated_input
        action = "confirm" if allowed else "deny"
        return await self.send_action(
            action, payload, source=permission.component, surface=permission.surface
        )

    async def edit(self, turn_id: str, text: str) -> str:
        """Replace the input that began a turn; a queued turn keeps its place."""
        return await self.send_input("text", {"text": text}, edits=turn_id)

    async def regenerate(self, turn_id: str) -> str:
        """Have the input of a turn answered again, as another version of the turn."""
        return await self.send_action(REGENERATE, {"turn_id": turn_id})

    async def cancel(self) -> str:
        """Stop the running turn."""
        return await self.send_action(CANCEL)

    async def send_input(
        self,
        input_type: InputType,
        data: JsonObject,
        *,
        source: str | None = None,
        surface: str = "main",
        edits: str | None = None,
    ) -> str:
        """Send an input of any type.

        Args:
            input_type: Of protocol.md 2.2.
            data: What belongs to the type; plain JSON.
            source: The component that it answers.
            surface: Where that component is.
            edits: The turn whose input it replaces.

        Returns:
            The input's id, for `acknowledged` and `turn_of`.

        Raises:
            InvalidMessage, ResourceLimit: The server would not take it; nothing is sent.
            ArpError: The client has ended.
        """
        message = Input(
            input_type=input_type,
            data=data,
            source_component=source,
            surface=surface,
            edits=edits,
        )
        input_id = self._open(message)
        frame = self._connection.input(
            input_type, data, input_id=input_id, source=source, surface=surface, edits=edits
        )
        self._driver.send(frame)
        return input_id

    async def send_files(self, sources: Sequence[FileSource], text: str | None = None) -> str:
        """Upload files, and say `text` with them.

        Args:
            sources: Paths, or (name, content); read before this returns.
            text: What the user says with them.

        Returns:
            The input's id; the files are sent as soon as there is a session, and again until
            answered.

        Raises:
            OSError: A path cannot be read. Nothing is sent.
            ResourceLimit: A file is bigger, or there are more, than is taken. Nothing is sent.
            UploadUnavailable: The session is on a child process.
        """
        self._uploads.check(len(sources))
        files = await read_files(sources, most_bytes(self.agent, "max_upload_bytes"))
        data: JsonObject = {} if text is None else {"text": text}
        message = Input(input_type="file", data=data)
        input_id = self._open(message)
        self._uploads.add(Upload(input_id, message, files))
        return input_id

    def _pass(self, message: Input, contents: Sequence[bytes]) -> None:
        """Send an input with files as descriptors, behind the frames that wait."""
        link = self._dial.unix_link
        assert link is not None  # a connection with a session is what calls this
        frame = self._connection.input_with_files(message)
        self._driver.send_by(partial(link.send_files, frame, contents))

    def _open(self, message: Input) -> str:
        if self._watch.failure is not None:
            raise self._watch.failure
        return self._inputs.open(message, most_bytes(self.agent, "max_message_bytes"))

    # -- answers ---------------------------------------------------------------------------------
    # Each wait is safe to cancel, and raises the client's `failure` when that ends it.

    async def acknowledged(self, input_id: str) -> InputAck:
        """Wait until the server has an input for good.

        Raises:
            ArpError: It was refused, with the class of the error's code; or the client has ended.
            UnknownObject: Not an input of this client, or one of more than 1000 answers ago.
        """
        return await self._watch.until(lambda: self._inputs.outcome(input_id))

    async def _settled(self, input_id: str) -> None:
        """Wait until an input is answered, either way."""
        with suppress(ArpError):
            await self.acknowledged(input_id)

    async def turn_of(self, input_id: str) -> str:
        """Wait until it is known which turn an input began or answered, and return its id.

        Raises:
            ArpError: As `acknowledged`.
        """

        def look() -> str | None:
            self._inputs.outcome(input_id)
            return self._inputs.turn_of(input_id)

        return await self._watch.until(look)

    async def turn_done(self, turn_id: str | None = None) -> TurnScreen:
        """Wait until a turn is over: completed, failed or cancelled, and all of its output shown.

        Args:
            turn_id: `None` = the turn of the newest input; without one, the newest turn that shows.

        Raises:
            UnknownObject: A snapshot came without it, since it ended too long ago.
            ArpError: The input was refused, or the client has ended.
        """
        if turn_id is None and self._inputs.newest is not None:
            turn_id = await self.turn_of(self._inputs.newest)
        if turn_id is None:
            turn_id = await self._watch.until(lambda: latest_turn(self.screen))
        return await self._watch.until(when_over(turn_id, lambda: self.screen))

    async def ask(self, text: str) -> TurnScreen:
        """Say something and wait until its turn is over.

        A turn that asks back waits for its answer, so this does too; whoever answers listens to
        `events`.

        Raises:
            ArpError: The text was refused, or the client has ended.
        """
        return await self.turn_done(await self.turn_of(await self.send_text(text)))


@asynccontextmanager
async def connect(
    url: str, *, callbacks: Callbacks | None = None, **options: Unpack[Options]
) -> AsyncIterator[ArpClient]:
    """Return a client that is connected and shows its session; it reconnects by itself.

    Args:
        url: As for `ArpClient`.
        callbacks: Called as things happen.
        options: See `Options`.

    Raises:
        ServerUnreachable: The first attempt failed. (`ArpClient` goes on trying.)
        ArpError: The server refuses us, or an option is wrong.
    """
    client = ArpClient(url, callbacks=callbacks, **options)
    events = client.events()
    async with client:
        while not isinstance(event := await anext(events), Connected):
            if isinstance(event, Disconnected):
                raise client.failure or ServerUnreachable(f"cannot connect: {event.reason}")
        del events
        await client.ready()
        yield client
