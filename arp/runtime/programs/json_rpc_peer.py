"""JSON-RPC over the pipes of a child process: one JSON object per line, calls in both directions.

Theory of operation. `JsonRpcPeer` is the protocol without I/O: bytes in, bytes out. Nothing that
the child sends can make it raise: a line that is not JSON-RPC is logged and skipped. `JsonRpcChild`
starts a program as all adapters do (`agent_process`), and runs a peer over its pipes until it ends.
If a program prints text and sends no message soon after it, the program is ended: it is not an
agent, or its arguments are wrong.

When the child ends or closes its output, the peer is closed. Every waiting call fails with
`PeerClosed`, and `closed` of the handler is called once, after the last message.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

import msgspec

from arp.process.program import READ_BYTES, ProgramStart
from arp.protocol.json_value import Json, JsonObject
from arp.runtime.contract.errors import Unavailable
from arp.runtime.programs.agent_process import (
    MAX_LINE_BYTES,
    NO_MESSAGE_S,
    AgentProcess,
    speaks_no_json,
)

logger = logging.getLogger(__name__)

EXIT_S = 1.0
"""Seconds to wait for the end of a program that has closed its output."""

METHOD_NOT_FOUND = -32601
INTERNAL_ERROR = -32603
"""Codes of JSON-RPC 2.0."""

RequestId = int | str


class JsonRpcError(Exception):
    """The other side answered a call with an error."""

    def __init__(self, code: int, message: str, data: Json = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class PeerClosed(Unavailable):
    """The connection has ended; the text gives the reason."""


class JsonRpcHandler(Protocol):
    """Receiver of the other side's messages, in order."""

    def notified(self, method: str, params: JsonObject) -> None:
        """Handle a notification."""

    def requested(self, request_id: RequestId, method: str, params: JsonObject) -> None:
        """Handle a request; it is answered with `answer` or `refuse`, at once or later."""

    def closed(self, reason: str) -> None:
        """Handle the end of the connection; called once."""


class JsonRpcPeer:
    """One side of a JSON-RPC connection.

    Args:
        write: Receives the bytes of each message.
        handler: Receives the messages of the other side.
        has_version: Whether our messages have `"jsonrpc": "2.0"`; received messages need not have
            it.
        note: Receives each line that is not a JSON object.
    """

    def __init__(
        self,
        write: Callable[[bytes], object],
        handler: JsonRpcHandler,
        *,
        has_version: bool = True,
        note: Callable[[bytes], None] = lambda line: None,
    ) -> None:
        self.closed_because = ""
        """Reason of the end of the connection; empty while it is open."""
        self.has_spoken = False
        """Whether a JSON object has been received."""
        self._note = note
        self._write = write
        self._handler = handler
        self._version: JsonObject = {"jsonrpc": "2.0"} if has_version else {}
        self._waiting: dict[int, asyncio.Future[Json]] = {}
        self._last_id = 0
        self._buffer = bytearray()
        self._searched = 0
        """Number of bytes at the start of the buffer that are known to have no line end."""

    async def call(self, method: str, params: JsonObject | None = None) -> Json:
        """Return the result of a call.

        Raises:
            JsonRpcError: The other side answered with an error.
            PeerClosed: The connection has ended, or ends before the answer.

        Cancel: Safe; the answer is dropped.
        """
        future = self.begin(method, params)
        try:
            return await future
        finally:
            future.cancel()

    def begin(self, method: str, params: JsonObject | None = None) -> asyncio.Future[Json]:
        """Send a call at once, so that no later message can overtake it; return its future result.

        Raises:
            PeerClosed: The connection has ended.
        """
        self._check_open()
        self._last_id += 1
        call_id = self._last_id
        future: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self._send({"id": call_id, "method": method, "params": params or {}})
        self._waiting[call_id] = future
        future.add_done_callback(lambda _: self._waiting.pop(call_id, None))
        return future

    def notify(self, method: str, params: JsonObject | None = None) -> None:
        """Send a notification.

        Raises:
            PeerClosed: The connection has ended.
        """
        self._send({"method": method, "params": params} if params else {"method": method})

    def answer(self, request_id: RequestId, result: Json) -> None:
        """Answer a request.

        Raises:
            PeerClosed: The connection has ended.
        """
        self._send({"id": request_id, "result": result})

    def refuse(self, request_id: RequestId, code: int, message: str) -> None:
        """Answer a request with an error.

        Raises:
            PeerClosed: The connection has ended.
        """
        self._send({"id": request_id, "error": {"code": code, "message": message}})

    def receive(self, data: bytes) -> None:
        """Receive bytes; a line that is not JSON-RPC is skipped."""
        self._buffer += data
        start = 0
        while (end := self._buffer.find(b"\n", max(start, self._searched))) >= 0:
            line = bytes(self._buffer[start:end])
            start = end + 1
            self._receive_line(line)
        if start:
            del self._buffer[:start]
        self._searched = len(self._buffer)
        if len(self._buffer) > MAX_LINE_BYTES:
            # The line may be the answer to a call, which would otherwise wait for ever.
            self.close(f"it sent a line of more than {MAX_LINE_BYTES} bytes")

    def printed_text(self) -> bool:
        """Return whether only text was received, and no message or beginning of a message.

        An unfinished line of text is passed to `note`.
        """
        rest = bytes(self._buffer).strip()
        if self.has_spoken or rest.startswith(b"{"):
            return False
        if rest:
            self._note(rest)
        return True

    def end_of_file(self) -> str:
        """Return words for the reason of the end if the last line is unfinished, otherwise `""`."""
        return "in the middle of a line" if self._buffer.strip() else ""

    def close(self, reason: str) -> None:
        """Fail the waiting calls and ignore further messages; may be called again."""
        if self.closed_because:
            return
        self.closed_because = reason
        self._buffer.clear()
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(PeerClosed(reason))
        self._waiting.clear()
        self._handler.closed(reason)

    def _check_open(self) -> None:
        if self.closed_because:
            raise PeerClosed(self.closed_because)

    def _send(self, message: JsonObject) -> None:
        self._check_open()
        self._write(msgspec.json.encode(self._version | message) + b"\n")

    def _receive_line(self, line: bytes) -> None:
        if self.closed_because or not line.strip():
            return
        try:
            message = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            message = None
        if not isinstance(message, dict):
            logger.debug("no JSON object, skipped: %.75r", line)
            self._note(line)
            return
        self.has_spoken = True
        method, params = message.get("method"), message.get("params")
        request_id = message.get("id")
        params = params if isinstance(params, dict) else {}
        if isinstance(method, str):
            self._receive_call(request_id, method, params)
        elif type(request_id) is int and request_id in self._waiting:
            self._receive_answer(self._waiting.pop(request_id), message)
        else:
            logger.debug("no method and no call that waits, skipped: %.75r", line)

    def _receive_call(self, request_id: object, method: str, params: JsonObject) -> None:
        try:
            if isinstance(request_id, int | str):
                self._handler.requested(request_id, method, params)
            else:
                self._handler.notified(method, params)
        except Exception:
            # One message that the handler cannot process must not end all other sessions.
            logger.warning("%s: not understood", method, exc_info=True)
            if isinstance(request_id, int | str):
                with suppress(PeerClosed):
                    self.refuse(request_id, INTERNAL_ERROR, "the client did not understand it")

    def _receive_answer(self, future: asyncio.Future[Json], message: JsonObject) -> None:
        if future.done():
            return
        error = message.get("error")
        if isinstance(error, dict):
            code, text = error.get("code"), error.get("message")
            number = code if isinstance(code, int) else INTERNAL_ERROR
            future.set_exception(JsonRpcError(number, str(text or "no reason"), error.get("data")))
        else:
            future.set_result(message.get("result"))


class JsonRpcChild:
    """The program of an agent and the peer over its pipes; create it with `start`."""

    def __init__(self, process: AgentProcess, peer: JsonRpcPeer) -> None:
        self.process = process
        self.peer = peer
        self._is_stopping = False
        self._deadline: asyncio.TimerHandle | None = None
        """Timer for the first message; set when the first bytes are received."""
        self._reading = asyncio.get_running_loop().create_task(self._read())

    @classmethod
    async def start(
        cls, start: ProgramStart, handler: JsonRpcHandler, *, has_version: bool = True
    ) -> JsonRpcChild:
        """Start a program, and pass its messages to the handler.

        Raises:
            OSError: The program cannot be started.
        """
        process = await AgentProcess.start(start)
        write, note = process.input.write, process.note
        return cls(process, JsonRpcPeer(write, handler, has_version=has_version, note=note))

    @property
    def is_running(self) -> bool:
        """Whether the program can be called."""
        return not self.peer.closed_because

    async def stop(self, grace_s: float) -> None:
        """End the program and everything that it has started; use force after `grace_s`."""
        self._is_stopping = True
        self.peer.close(f"{self.process.name} was ended")
        if self._deadline is not None:
            self._deadline.cancel()
        await self.process.stop(grace_s)
        # A grandchild may keep the pipe open for ever, so it is not read to its end.
        self._reading.cancel()
        await asyncio.wait([self._reading])

    async def _read(self) -> None:
        process, peer = self.process, self.peer
        while data := await process.output.read(READ_BYTES):
            if self.is_running:
                peer.receive(data)
                self._start_message_timer()
            if not (self.is_running or self._is_stopping):
                break  # it has sent a line that is too long
        unfinished = peer.end_of_file()
        if self._is_stopping:
            return
        # Its standard error and its exit code give the reason. A program that has closed its output
        # but still runs is ended.
        await process.wait(EXIT_S)
        await process.wait_for_errors(EXIT_S)
        code = await process.stop(0)
        reason = " ".join(
            filter(None, (f"{process.name} ended", unfinished, f"(exit code {code})"))
        )
        cause = process.cause()
        peer.close(f"{reason}: {cause}" if cause else reason)

    def _start_message_timer(self) -> None:
        """Start the timer for the first message, because a program may print only text."""
        if not self.peer.has_spoken and self._deadline is None:
            loop = asyncio.get_running_loop()
            self._deadline = loop.call_later(NO_MESSAGE_S, self._end_if_no_message)

    def _end_if_no_message(self) -> None:
        if self.is_running and self.peer.printed_text():
            printed = next(iter(self.process.notes), "")
            self.peer.close(speaks_no_json(self.process.name, printed))
            self.process.terminate()
