"""JSON-RPC over the pipes of a child process: one JSON object a line, both sides may ask.

`JsonRpcPeer` is the protocol without a process: bytes in, bytes out. What the child sends can never
make it raise: what is no JSON-RPC is logged and skipped. `JsonRpcChild` starts a program as all
adapters do (`agent_process`), and runs a peer over its pipes until it ends. A program that prints
text and sends no message soon after it is ended: it is no agent, or was started as something else.

A child that ends, or closes its output, closes the peer: every call that waits fails with
`PeerClosed`, and `closed` is called once, behind the last message.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

import msgspec

from arp.protocol.json_value import Json, JsonObject
from arp.runtime.programs.agent_process import (
    MAX_LINE_BYTES,
    NO_MESSAGE_S,
    READ_BYTES,
    AgentProcess,
    ProcessStart,
    speaks_no_json,
)

logger = logging.getLogger(__name__)

EXIT_S = 1.0
"""How long to wait for the end of a program whose output has ended."""

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


class PeerClosed(Exception):
    """The other side is gone; the text says why."""


class JsonRpcHandler(Protocol):
    """Receives what the other side sends, in order."""

    def notified(self, method: str, params: JsonObject) -> None:
        """Take a notification."""

    def requested(self, request_id: RequestId, method: str, params: JsonObject) -> None:
        """Take a request; it is answered with `answer` or `refuse`, then or later."""

    def closed(self, reason: str) -> None:
        """Take that the other side is gone; called once."""


class JsonRpcPeer:
    """One side of a JSON-RPC connection.

    Args:
        write: Gets the bytes of each message.
        handler: Is told what the other side says.
        has_version: Whether messages say `"jsonrpc": "2.0"`; what comes in may or may not.
        note: Gets each line that is no JSON object.
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
        """Empty as long as it is open."""
        self.has_spoken = False
        """Whether a JSON object has come."""
        self._note = note
        self._write = write
        self._handler = handler
        self._version: JsonObject = {"jsonrpc": "2.0"} if has_version else {}
        self._waiting: dict[int, asyncio.Future[Json]] = {}
        self._last_id = 0
        self._buffer = bytearray()
        self._searched = 0
        """So many bytes of the buffer have no line end."""

    async def call(self, method: str, params: JsonObject | None = None) -> Json:
        """Return the result of a call.

        Raises:
            JsonRpcError: The other side answered with an error.
            PeerClosed: It is gone, or goes before it answers.

        Cancel: Safe; the answer is dropped.
        """
        future = self.begin(method, params)
        try:
            return await future
        finally:
            future.cancel()

    def begin(self, method: str, params: JsonObject | None = None) -> asyncio.Future[Json]:
        """Send a call at once, before anything that is sent after it; return its result to come.

        Raises:
            PeerClosed: The other side is gone.
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
            PeerClosed: The other side is gone.
        """
        self._send({"method": method, "params": params} if params else {"method": method})

    def answer(self, request_id: RequestId, result: Json) -> None:
        """Answer a request.

        Raises:
            PeerClosed: The other side is gone.
        """
        self._send({"id": request_id, "result": result})

    def refuse(self, request_id: RequestId, code: int, message: str) -> None:
        """Answer a request with an error.

        Raises:
            PeerClosed: The other side is gone.
        """
        self._send({"id": request_id, "error": {"code": code, "message": message}})

    def receive(self, data: bytes) -> None:
        """Take bytes of the other side; what is not JSON-RPC is skipped."""
        self._buffer += data
        start = 0
        while (end := self._buffer.find(b"\n", max(start, self._searched))) >= 0:
            line = bytes(self._buffer[start:end])
            start = end + 1
            self._take_line(line)
        if start:
            del self._buffer[:start]
        self._searched = len(self._buffer)
        if len(self._buffer) > MAX_LINE_BYTES:
            # An answer may be in it: whoever waits for it must not wait for ever.
            self.close(f"it sent a line of more than {MAX_LINE_BYTES} bytes")

    def printed_text(self) -> bool:
        """Return whether text came and no message; the text of an unfinished line is noted."""
        rest = bytes(self._buffer).strip()
        if self.has_spoken or rest.startswith(b"{"):
            return False
        if rest:
            self._note(rest)
        return True

    def end_of_file(self) -> str:
        """Return what the other side left unfinished, for the reason; its output has ended."""
        return "in the middle of a line" if self._buffer.strip() else ""

    def close(self, reason: str) -> None:
        """Fail what waits, and take nothing more; may be called again."""
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

    def _take_line(self, line: bytes) -> None:
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
            self._take_call(request_id, method, params)
        elif type(request_id) is int and request_id in self._waiting:
            self._take_answer(self._waiting.pop(request_id), message)
        else:
            logger.debug("no method and no call that waits, skipped: %.75r", line)

    def _take_call(self, request_id: object, method: str, params: JsonObject) -> None:
        try:
            if isinstance(request_id, int | str):
                self._handler.requested(request_id, method, params)
            else:
                self._handler.notified(method, params)
        except Exception:
            # One message that is not understood must not end the sessions of all others.
            logger.warning("%s: not understood", method, exc_info=True)
            if isinstance(request_id, int | str):
                with suppress(PeerClosed):
                    self.refuse(request_id, INTERNAL_ERROR, "the client did not understand it")

    def _take_answer(self, future: asyncio.Future[Json], message: JsonObject) -> None:
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
    """The program of an agent, and the peer over its pipes; made by `start`."""

    def __init__(self, process: AgentProcess, peer: JsonRpcPeer) -> None:
        self.process = process
        self.peer = peer
        self._is_stopping = False
        self._deadline: asyncio.TimerHandle | None = None
        """Of the first message; set when anything has come."""
        self._reading = asyncio.get_running_loop().create_task(self._read())

    @classmethod
    async def start(
        cls, start: ProcessStart, handler: JsonRpcHandler, *, has_version: bool = True
    ) -> JsonRpcChild:
        """Start a program, and tell the handler what it says.

        Raises:
            OSError: It cannot be started.
        """
        process = await AgentProcess.start(start)
        write, note = process.input.write, process.note
        return cls(process, JsonRpcPeer(write, handler, has_version=has_version, note=note))

    @property
    def is_running(self) -> bool:
        """Whether it can be called."""
        return not self.peer.closed_because

    async def stop(self, grace_s: float) -> None:
        """End the program, by force if it does not end in time, and all that it has started."""
        self._is_stopping = True
        self.peer.close(f"{self.process.name} was ended")
        if self._deadline is not None:
            self._deadline.cancel()
        await self.process.stop(grace_s)
        # What a grandchild keeps open is not read to its end.
        self._reading.cancel()
        await asyncio.wait([self._reading])

    async def _read(self) -> None:
        process, peer = self.process, self.peer
        while data := await process.output.read(READ_BYTES):
            if self.is_running:
                peer.receive(data)
                self._expect_message()
            if not (self.is_running or self._is_stopping):
                break  # It has sent what cannot be taken.
        unfinished = peer.end_of_file()
        if self._is_stopping:
            return
        # Its standard error and its exit code say why it ended. One that has closed its output
        # alone is ended.
        await process.wait(EXIT_S)
        await process.wait_for_errors(EXIT_S)
        code = await process.stop(0)
        reason = " ".join(
            filter(None, (f"{process.name} ended", unfinished, f"(exit code {code})"))
        )
        cause = process.cause()
        peer.close(f"{reason}: {cause}" if cause else reason)

    def _expect_message(self) -> None:
        """End a program that prints text alone: nobody waits for its messages in vain."""
        if not self.peer.has_spoken and self._deadline is None:
            loop = asyncio.get_running_loop()
            self._deadline = loop.call_later(NO_MESSAGE_S, self._check_speaks)

    def _check_speaks(self) -> None:
        if self.is_running and self.peer.printed_text():
            printed = next(iter(self.process.notes), "")
            self.peer.close(speaks_no_json(self.process.name, printed))
            self.process.terminate()
