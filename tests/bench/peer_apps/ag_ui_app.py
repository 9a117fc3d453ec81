"""The app of the benchmark with the Python SDK of AG-UI, on Starlette: `stream N` or `paced N`."""

import asyncio
from collections.abc import AsyncIterator

from ag_ui.core import (
    EventType,
    RunAgentInput,
    RunFinishedEvent,
    RunStartedEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
)
from ag_ui.encoder import EventEncoder
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Route


async def events(run_input: RunAgentInput) -> AsyncIterator[str]:
    encoder, ids = EventEncoder(), {"thread_id": run_input.thread_id, "run_id": run_input.run_id}
    kind, number = str(run_input.messages[-1].content).split()
    yield encoder.encode(RunStartedEvent(type=EventType.RUN_STARTED, **ids))
    start = TextMessageStartEvent(
        type=EventType.TEXT_MESSAGE_START, message_id="m", role="assistant"
    )
    yield encoder.encode(start)
    for _ in range(int(number)):
        content = TextMessageContentEvent(
            type=EventType.TEXT_MESSAGE_CONTENT, message_id="m", delta="word "
        )
        yield encoder.encode(content)
        await asyncio.sleep(0.005 if kind == "paced" else 0)
    yield encoder.encode(TextMessageEndEvent(type=EventType.TEXT_MESSAGE_END, message_id="m"))
    yield encoder.encode(RunFinishedEvent(type=EventType.RUN_FINISHED, **ids))


async def run(request: Request) -> StreamingResponse:
    run_input = RunAgentInput.model_validate_json(await request.body())
    return StreamingResponse(events(run_input), media_type="text/event-stream")


async def page(_: Request) -> PlainTextResponse:
    return PlainTextResponse("ok")


app = Starlette(routes=[Route("/", page), Route("/run", run, methods=["POST"])])
