"""A program that runs a command of an agent, to be killed; it closes the runtime when it is told.

    python -m tests.runtime.scripted_host NAME CWD ENVIRONMENT FIELDS MESSAGE

It sends the message and allows whatever is asked. At a line on its input it closes the runtime and
says so; at the end of its input it ends.
"""

from __future__ import annotations

import asyncio
import json
import sys

from arp.runtime.contract import types as ari
from arp.runtime.contract.services import EventSubscription, RuntimeService
from arp.runtime.named import named_runtime


async def main(name: str, cwd: str, environment: str, fields: str, message: str) -> None:
    """Run the command."""
    runtime = named_runtime(name, cwd=cwd, environment=json.loads(environment))
    request = ari.CreateSessionRequest(**json.loads(fields))
    session_id = (await runtime.create_session(request)).session.session_id
    events = await runtime.session_events(ari.SessionEventsRequest(session_id, 0))
    sent = ari.SendMessageRequest(session_id, ari.RuntimeMessage(content=message))
    await runtime.send_message(sent)
    allowing = asyncio.create_task(allow(runtime, session_id, events))
    while await asyncio.to_thread(sys.stdin.readline):
        await runtime.close(ari.CloseRequest())
        print("closed", flush=True)  # noqa: T201 - it is what is waited for
    allowing.cancel()


async def allow(runtime: RuntimeService, session_id: str, events: EventSubscription) -> None:
    """Allow whatever is asked."""
    async for event in events:
        if event.permission is not None:
            answer = ari.PermissionResponse("allow")
            request = ari.RespondPermissionRequest(session_id, event.request_id, answer)
            await runtime.respond_permission(request)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
