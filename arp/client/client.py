"""The asyncio client: it keeps the screen of one session on a server, and reconnects by itself.

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
from arp.client.driver import Driver
from arp.client.errors import ClientClosed, ServerUnreachable
from arp.client.events import Audience, Connected, Disconnected, Event, EventStream
from arp.client.inputs import Inputs, most_bytes
from arp.client.links.dial import dialer
from arp.client.options import ANSWER_TIMEOUT_S, Backoff, Options, check_names, renderer_hello
from arp.client.uploads import FileSource, Upload, Uploads, read_files
from arp.client.watch import Watch, find_finished_turn, latest_turn
from arp.protocol.connection.renderer_connection import RendererConnection
from arp.protocol.connection.screen import Screen, TurnScreen
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
from arp.protocol.token_address import split_token

_log = logging.getLogger(__name__)


class ArpClient:
    """One renderer of one session, for the duration of its `async with` block.

    Entering the block starts the client without waiting. Inputs can be sent immediately; they are
    delivered when the session is ready. After a lost connection the client reconnects, with growing
    waits, and the session continues. Only a refusal that would happen again ends the client. Then
    `failure` is that error, and every wait raises it.

    Args:
        url: `http://HOST:PORT` (WebSocket, or SSE if WebSocket is refused), or the prefix under
            which the server is mounted; it may end with a token: `http://HOST:PORT/#token=…`.
            Or `ws://…/_arp/v1`, `http+sse://…`, `grpc:HOST:PORT`; all of these also with TLS. Or
            `unix:PATH`, or `stdio:` with `command=[…]`.
        callbacks: Functions to call when something happens.
        options: See `Options`.

    Raises:
        InvalidAddress: The address is not valid, or an option does not fit it. The message says
            what to write.
        InvalidMessage: The server would refuse an option; the message names it.
        TypeError: An option does not exist.
    """

    def __init__(
        self, url: str, *, callbacks: Callbacks | None = None, **options: Unpack[Options]
    ) -> None:
        check_names(options)
        if isinstance(url, str):  # `dialer` raises for other types
            url, options["token"] = split_token(url, options.get("token"))
        dial = self._dial = dialer(url, options)
        dial.on_stderr = options.get("on_stderr")
        hello = renderer_hello(options, dial.access.token if dial.address.token_in_hello else None)
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
            self._emit,
            backoff=backoff,
            answer_timeout_s=options.get("answer_timeout_s", ANSWER_TIMEOUT_S),
            # In the object dialect, `ObjectScreenConnection` acknowledges each commit itself.
            acks="frame-ack" in hello.capabilities.features and not is_object,
        )
        self._driver.reconnects = options.get("reconnect", True)
        self._uploads = Uploads(
            dial,
            backoff,
            self._driver.receive_json,
            self._send_with_files,
            self._wait_for_answer,
        )
        self._audience = Audience()
        self._callback_runner = CallbackRunner(callbacks or Callbacks())
        self._commands: tuple[Command, ...] = ()
        """Commands in the last call of `on_commands`."""
        self._command_sources: tuple[AgentHello | None, tuple[Command, ...]] = (None, ())
        """The `hello` and the commands of the screen, from which `_commands` follow."""
        self._inputs = Inputs()
        self._watch = Watch()
        self._task: asyncio.Task[None] | None = None

    # -- reading ---------------------------------------------------------------------------------

    @property
    def screen(self) -> Screen:
        """The current screen. A snapshot replaces the object, so read this property each time."""
        return self._connection.screen

    @property
    def session_id(self) -> str | None:
        """Id of the session; `None` until it is known."""
        return self._connection.session_id

    @property
    def agent(self) -> AgentHello | None:
        """Capabilities of the agent side; `None` until its `hello` is received."""
        return self._connection.agent

    @property
    def workflow(self) -> str | None:
        """Name of the session's agent; `None` until it is known."""
        return self._connection.workflow

    @property
    def commands(self) -> tuple[Command, ...]:
        """Slash commands of the app and the session; empty until the agent side sends its `hello`.

        To run a command, send its text: `await client.send_text("/export csv")`.
        """
        return self._connection.commands

    @property
    def connected(self) -> bool:
        """Whether the client is connected to its session."""
        return self._driver.ready.is_set()

    @property
    def failure(self) -> ArpError | None:
        """Why this client does not connect any more; `None` if it still does."""
        return self._watch.failure

    def events(self) -> EventStream:
        """Return a new stream of the events from now on.

        Messages are emitted after they were applied to the screen, `render` and `patch` together
        with their `commit`. A stream uses bounded memory, see `EventStream`.
        """
        return self._audience.subscribe()

    # -- start and end ---------------------------------------------------------------------------

    async def __aenter__(self) -> ArpClient:
        if self._task is not None:
            raise ClientClosed("a client can be started once; create another one")
        self._task = asyncio.create_task(self._run(), name="arp client")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connection within a few seconds. Inputs without an answer may be lost.

        A second call does nothing.
        """
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task])
            self._emit(Disconnected("closed by this side", None))
        self._end(ClientClosed("this client is closed; create another one"))

    async def ready(self) -> None:
        """Wait until the client is connected and the screen shows the session.

        Raises:
            ArpError: The client has ended.

        Cancel: safe.
        """
        await self._watch.until(
            lambda: (self.connected and self._connection.epoch is not None) or None
        )

    async def _run(self) -> None:
        try:
            error = await self._driver.run(self._uploads.run)
        except Exception:  # noqa: BLE001 - callers that wait must get an error instead of hanging
            _log.exception("the client failed; please report this")
            error = InternalError("the client failed; its log has the traceback")
            self._emit(Disconnected(error.message, None))
        finally:
            await self._dial.aclose()
        self._callback_runner.fail(error_payload(error))
        self._end(error)

    def _end(self, error: ArpError) -> None:
        self._watch.fail(error)
        self._audience.end()

    def _emit(self, event: Event, size: int = 0) -> None:
        """Apply an event to the state of the inputs, and pass it to streams and callbacks."""
        self._inputs.apply(event)
        self._audience.emit(event, size)
        self._callback_runner.handle(event)
        self._update_commands()
        self._watch.notify()

    def _update_commands(self) -> None:
        """Call `on_commands` if a message or a new screen changed the commands."""
        connection = self._connection
        agent, session_commands = sources = (connection.agent, connection.screen.commands)
        # Almost no event changes them, so compare identities before the commands are combined.
        if agent is self._command_sources[0] and session_commands is self._command_sources[1]:
            return
        self._command_sources = sources
        before, self._commands = self._commands, connection.commands
        if self._commands != before:
            self._callback_runner.commands(self._commands)

    # -- inputs ----------------------------------------------------------------------------------
    # Each method returns the id of the input immediately, also while the client is not connected.
    # It raises if the client has ended, and for the reasons of `Inputs.open`. An input is sent
    # again with the same id, so it takes effect only once.

    async def send_text(self, text: str, *, source: str | None = None) -> str:
        """Send a text, or answer the text input `source`."""
        return await self.send_input("text", {"text": text}, source=source)

    async def send_action(
        self, action: str, payload: Json = None, *, source: str | None = None, surface: str = "main"
    ) -> str:
        """Trigger an action of the component `source`."""
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
        """Select options of the choices `source` by value, or rows of a table by number from 0."""
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
        """Allow or deny a tool call that asks for permission.

        The server allows only the call that was shown; the answer contains its digest.

        Args:
            permission: Permission from the screen: `client.screen.turns[…].permissions`.
            allowed: Whether the tool may run.
            scope: How long the permission is valid; `session` only if `permission.scopes` has it.
            reason: Why it is denied.
            updated_input: Arguments to allow instead of those shown, if `permission.editable`.
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
        """Replace the input that started a turn; a queued turn keeps its place in the queue."""
        return await self.send_input("text", {"text": text}, edits=turn_id)

    async def regenerate(self, turn_id: str) -> str:
        """Answer the input of a turn again, as another version of the turn."""
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
            input_type: Type of the input (protocol.md 2.2).
            data: Content for that type, as plain JSON.
            source: Id of the component that the input answers.
            surface: Surface that shows the component.
            edits: Id of the turn to replace the input of.

        Returns:
            The id of the input, for `acknowledged` and `turn_of`.

        Raises:
            InvalidMessage, ResourceLimit: The server would refuse the input; nothing is sent.
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
        """Upload files, with an optional text.

        Args:
            sources: Paths, or pairs of name and content. They are read before this returns.
            text: Text of the user about the files.

        Returns:
            The id of the input. The files are sent when the session is ready, and sent again until
            there is an answer.

        Raises:
            OSError: A path cannot be read. Nothing is sent.
            ResourceLimit: A file is too large, or there are too many files. Nothing is sent.
            UploadUnavailable: The transport carries no files. Nothing is sent.
        """
        self._uploads.check(len(sources))
        files = await read_files(sources, most_bytes(self.agent, "max_upload_bytes"))
        data: JsonObject = {} if text is None else {"text": text}
        message = Input(input_type="file", data=data)
        input_id = self._open(message)
        self._uploads.add(Upload(input_id, message, files))
        return input_id

    def _send_with_files(self, message: Input, contents: Sequence[bytes]) -> None:
        """Send an input with files as descriptors, after the frames in the queue."""
        link = self._dial.unix_link
        assert link is not None  # uploads run only while a connection is ready
        frame = self._connection.input_with_files(message)
        self._driver.enqueue_send(partial(link.send_files, frame, contents))

    def _open(self, message: Input) -> str:
        if self._watch.failure is not None:
            raise self._watch.failure
        return self._inputs.open(message, most_bytes(self.agent, "max_message_bytes"))

    # -- answers ---------------------------------------------------------------------------------
    # Each wait is safe to cancel. If the client ends, it raises `failure`.

    async def acknowledged(self, input_id: str) -> InputAck:
        """Wait until the server has stored an input, and return the acknowledgement.

        Raises:
            ArpError: The input was refused (the class has the code of the error), or the client
                has ended.
            UnknownObject: This client has not sent the input, or there were more than 1000 answers
                since its answer.
        """
        return await self._watch.until(lambda: self._inputs.outcome(input_id))

    async def _wait_for_answer(self, input_id: str) -> None:
        """Wait until an input is acknowledged or refused."""
        with suppress(ArpError):
            await self.acknowledged(input_id)

    async def turn_of(self, input_id: str) -> str:
        """Wait until the turn is known that an input started or answered, and return its id.

        Raises:
            ArpError: The input was refused, or the client has ended.
            UnknownObject: See `acknowledged`.
        """

        def look() -> str | None:
            self._inputs.outcome(input_id)
            return self._inputs.turn_of(input_id)

        return await self._watch.until(look)

    async def turn_done(self, turn_id: str | None = None) -> TurnScreen:
        """Wait until a turn is completed, failed or cancelled, and all its output is on the screen.

        Args:
            turn_id: Id of the turn. `None` means the turn of the newest input; if this client has
                sent no input, the newest turn on the screen.

        Returns:
            The turn on the screen.

        Raises:
            UnknownObject: The turn ended so long ago that a snapshot did not include it.
            ArpError: The input was refused, or the client has ended.
        """
        if turn_id is None and self._inputs.newest is not None:
            turn_id = await self.turn_of(self._inputs.newest)
        if turn_id is None:
            turn_id = await self._watch.until(lambda: latest_turn(self.screen))
        return await self._watch.until(find_finished_turn(turn_id, lambda: self.screen))

    async def ask(self, text: str) -> TurnScreen:
        """Send a text and wait until its turn has ended.

        If the agent asks a question, this also waits until another task answers it. That task can
        read the question from `events`.

        Raises:
            ArpError: The text was refused, or the client has ended.
        """
        return await self.turn_done(await self.turn_of(await self.send_text(text)))


@asynccontextmanager
async def connect(
    url: str, *, callbacks: Callbacks | None = None, **options: Unpack[Options]
) -> AsyncIterator[ArpClient]:
    """Provide a client that is connected and has the screen of its session.

    The client reconnects by itself.

    Args:
        url: See `ArpClient`.
        callbacks: Functions to call when something happens.
        options: See `Options`.

    Raises:
        ServerUnreachable: The first attempt to connect failed. (`ArpClient` itself would retry.)
        ArpError: The server refuses the connection, or an option is wrong.
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
