"""`Lifespan`: starts and stops an ASGI application by the lifespan protocol, as a server does."""

from __future__ import annotations

import asyncio
from typing import Any

from arp.testbed.asgi_link import AsgiApp


class Lifespan:
    """Starts and stops an application.

    The lifespan runs in one task, because many resources must be closed in the task that opened
    them.
    """

    def __init__(self, app: AsgiApp) -> None:
        self._app = app
        self._events: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._answers: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start the application; do nothing if it has no lifespan.

        Raises:
            RuntimeError: The application did not start; the message says why.
        """
        self._events.put_nowait({"type": "lifespan.startup"})
        self._task = asyncio.create_task(self._run(), name="arp testing lifespan")
        answer = await self._answers.get()
        if answer["type"] == "lifespan.startup.failed":
            await self._task
            raise RuntimeError(f"the application did not start: {answer.get('message', '')}")

    async def stop(self) -> None:
        """Stop the application.

        Raises:
            RuntimeError: The shutdown failed; the message says why.
        """
        if self._task is None or self._task.done():
            return
        self._events.put_nowait({"type": "lifespan.shutdown"})
        answer = await self._answers.get()
        await self._task
        if answer["type"].endswith(".failed"):
            raise RuntimeError(f"the application did not stop: {answer.get('message', '')}")

    async def _run(self) -> None:
        async def send(message: Any) -> None:
            self._answers.put_nowait(dict(message))

        scope = {"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}, "state": {}}
        is_known = False

        async def receive() -> dict[str, Any]:
            nonlocal is_known
            is_known = True
            return await self._events.get()

        try:
            await self._app(scope, receive, send)
        except Exception as error:  # noqa: BLE001
            # An application without a lifespan raises at once (ASGI), before it calls `receive`.
            kind = "lifespan.startup.failed" if is_known else "lifespan.startup.complete"
            self._answers.put_nowait({"type": kind, "message": f"{type(error).__name__}: {error}"})
        else:
            self._answers.put_nowait({"type": "lifespan.shutdown.complete"})
