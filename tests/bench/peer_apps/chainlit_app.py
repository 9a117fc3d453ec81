"""The app of the benchmark as Chainlit has it: `stream N` or `paced N`, in words."""

import asyncio

import chainlit as cl


@cl.on_message
async def answer(message: cl.Message) -> None:
    kind, number = message.content.split()
    reply = cl.Message(content="")
    for _ in range(int(number)):
        await reply.stream_token("word ")
        await asyncio.sleep(0.005 if kind == "paced" else 0)
    await reply.update()
