"""Cases about turns: output, tools, cancel, deadlines, idempotency keys, parts of messages."""

from __future__ import annotations

import base64

from arp.conformance.cases import CaseUnreachable, expect, expect_same
from arp.conformance.runtime.case import (
    CaseRun,
    Cases,
    is_text,
    joined,
    of_type,
    output_text,
    refused,
)
from arp.runtime.contract import types as ari
from arp.runtime.contract.errors import AriCode, FailedPrecondition, InvalidArgument

CASES = Cases()
EventType, State = ari.EventType, ari.SessionState

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)
"""Image of one pixel."""


@CASES.add(1, EventType.TEXT, EventType.RESULT)
async def text(run: CaseRun) -> None:
    """The agent's output arrives as text, once, and the result repeats it."""
    session = await run.session()
    events = await session.turn(run.text_of("hello"))
    expect_same(events[0].lifecycle, ari.Lifecycle.TURN_STARTED, "first event of the turn")
    expect_same(output_text(events), run.prompts.hello_text, "text")
    end = (events[-1].type, events[-1].content)
    expect_same(end, (EventType.RESULT, run.prompts.hello_text), "end")


@CASES.add(1)
async def turns_follow(run: CaseRun) -> None:
    """Turns run one after the other, are counted, and leave the session idle."""
    session = await run.session()
    await session.echo("one")
    await session.echo("two")
    value = await session.value()
    counted = (value.state, value.turn_count, value.active_turn_id)
    expect_same(counted, (State.IDLE, 2, ""), "state, turn_count, active_turn_id")


@CASES.add(2, EventType.THINKING)
async def thinking(run: CaseRun) -> None:
    """The agent's reasoning arrives as thinking, not as text."""
    session = await run.session()
    events = await session.turn(run.text_of("think"))
    thinking_text = joined(events, EventType.THINKING)
    expect(thinking_text, "there is no thinking event")
    expect(thinking_text not in output_text(events), "the thinking is also in the output text")


@CASES.add(2)
async def usage(run: CaseRun) -> None:
    """The terminal event of a turn has its token usage."""
    session = await run.session()
    used = (await session.turn(run.text_of("hello")))[-1].usage
    if used is None or used.input_tokens is None or used.output_tokens is None:
        raise CaseUnreachable(f"the runtime reports no usage of a turn: {used}")
    # A model that answers has read and written tokens, so 0 means that they were not counted.
    expect(used.input_tokens > 0 and used.output_tokens > 0, f"usage: {used}")


@CASES.add(1, EventType.TOOL_CALL, EventType.TOOL_RESULT)
async def tool_call_and_result(run: CaseRun) -> None:
    """A tool call has a name and its full input; its result has the tool's output."""
    session = await run.session()
    events = await session.turn(run.run_text("echo from-a-tool"))
    (call,) = of_type(events, EventType.TOOL_CALL)
    (result,) = of_type(events, EventType.TOOL_RESULT)
    expect(call.tool_name, "the call has no tool_name")
    expect("echo from-a-tool" in str(call.tool_input_raw), f"tool_input_raw: {call}")
    expect_same(result.tool_call_id, call.tool_call_id, "tool_call_id of the result")
    expect("from-a-tool" in result.content and not result.is_error, f"result: {result}")


@CASES.add(2, EventType.TOOL_RESULT)
async def failed_tool(run: CaseRun) -> None:
    """The result of a tool that failed is an error."""
    if not run.under_test.marks_failures:
        raise CaseUnreachable("the agent does not mark failed tools")
    session = await run.session()
    events = await session.turn(run.run_text("exit 3"))
    (result,) = of_type(events, EventType.TOOL_RESULT)
    expect(result.is_error, f"is_error of the result: {result}")


@CASES.add(2, EventType.ERROR)
async def cancel(run: CaseRun) -> None:
    """A cancelled turn ends with `Canceled`, and does not affect the next turn."""
    session = await run.session()
    await session.send(run.text_of("slow"))
    await session.until(is_text)
    await session.cancel()
    end = (await session.until_done())[-1]
    expect(end.error is not None and end.error.code is AriCode.CANCELED, f"end: {end}")
    events = await session.turn(run.text_of("hello"))
    expect_same(output_text(events), run.prompts.hello_text, "text of the next turn")


@CASES.add(2, EventType.ERROR)
async def cancel_at_once(run: CaseRun) -> None:
    """A turn can be cancelled before it has any output."""
    session = await run.session()
    await session.send(run.text_of("slow"))
    await session.cancel()
    end = (await session.until_done())[-1]
    expect(end.error is not None and end.error.code is AriCode.CANCELED, f"end: {end}")
    await session.echo("after it")


@CASES.add(2)
async def cancel_idle(run: CaseRun) -> None:
    """A cancel without an active turn is refused."""
    session = await run.session()
    with refused(FailedPrecondition):
        await session.cancel()
    await session.echo("one")
    with refused(FailedPrecondition):
        await session.cancel()


@CASES.add(2)
async def cancel_another_turn(run: CaseRun) -> None:
    """A cancel of a turn that has ended is refused, and the active turn continues."""
    session = await run.session()
    over = (await session.turn(run.text_of("hello")))[-1].turn_id
    await session.send(run.text_of("slow"))
    with refused(FailedPrecondition):
        await session.cancel(over)
    expect_same((await session.value()).state, State.RUNNING, "state")
    await session.cancel()
    await session.until_done()


@CASES.add(1)
async def busy(run: CaseRun) -> None:
    """A second message is refused while a turn is active, and does not affect that turn."""
    session = await run.session()
    turn_id = await session.send(run.text_of("slow"))
    with refused(FailedPrecondition, names=turn_id):
        await session.send(run.text_of("hello"))
    await session.until(is_text)
    expect_same((await session.value()).active_turn_id, turn_id, "active_turn_id")
    await session.cancel()
    await session.until_done()


@CASES.add(1)
async def idempotency_key(run: CaseRun) -> None:
    """The same idempotency key returns the same turn, while it is active and afterwards."""
    session = await run.session()
    prompt = run.text_of("hello")
    first = await session.send(prompt, idempotency_key="a")
    during = await session.send(prompt, idempotency_key="a")
    await session.until_done()
    after = await session.send(prompt, idempotency_key="a")
    expect_same((during, after), (first, first), "turn_id")
    other = await session.send(prompt, idempotency_key="b")
    expect(other != first, "another key is another turn")
    await session.until_done()
    expect_same((await session.value()).turn_count, 2, "turn_count")


@CASES.add(1, EventType.ERROR)
async def turn_deadline(run: CaseRun) -> None:
    """A turn that exceeds its timeout ends with `DeadlineExceeded`."""
    session = await run.session()
    await session.send(run.text_of("slow"), timeout_s=0.5)
    end = (await session.until_done())[-1]
    expect(end.error is not None and end.error.code is AriCode.DEADLINE_EXCEEDED, f"end: {end}")
    await session.echo("after it")


@CASES.add(1)
async def empty_message(run: CaseRun) -> None:
    """An empty message is refused and starts no turn."""
    session = await run.session()
    for nothing in ("", " \n"):
        with refused(InvalidArgument, names="message"):
            await session.send(nothing)
    expect_same((await session.value()).turn_count, 0, "turn_count")


@CASES.add(1)
async def message_of_another_role(run: CaseRun) -> None:
    """A message of another role than `user` is refused."""
    session = await run.session()
    message = ari.RuntimeMessage("assistant", "I said")
    with refused(InvalidArgument, names="role"):
        await run.runtime.send_message(ari.SendMessageRequest(session.id, message))


@CASES.add(1)
async def text_part(run: CaseRun) -> None:
    """A text part reaches the agent like the content of the message."""
    session = await run.session()
    prompt = run.text_of("echo", text="in a part")
    events = await session.turn("", ari.ContentPart("text", text=prompt))
    expect("in a part" in output_text(events), f"text: {output_text(events)!r}")


@CASES.add(2)
async def image_part(run: CaseRun) -> None:
    """An image part reaches the model, or is refused with its position."""
    session = await run.session()
    part = ari.ContentPart("image", mime_type="image/png", data=PNG)
    prompt = run.text_of("look")
    try:
        events = await session.turn(prompt, part)
    except InvalidArgument as error:
        expect("parts[0]" in error.message, f"the message should name parts[0]: {error.message}")
        raise CaseUnreachable(error.message) from error
    output = output_text(events)
    expect("image/png" in output, f"the model should name image/png: {output!r}")


@CASES.add(1)
async def audio_part(run: CaseRun) -> None:
    """An audio part is accepted, or refused with its position before a turn starts."""
    session = await run.session()
    text_part = ari.ContentPart("text", text="listen")
    audio = ari.ContentPart("audio", mime_type="audio/wav", data=b"RIFF")
    try:
        await session.turn(run.text_of("hello"), text_part, audio)
    except InvalidArgument as error:
        expect("parts[1]" in error.message, f"the message should name parts[1]: {error.message}")
        expect_same((await session.value()).turn_count, 0, "turn_count")


@CASES.add(1)
async def part_without_data(run: CaseRun) -> None:
    """A part with neither data nor a `uri` is refused with its position."""
    session = await run.session()
    with refused(InvalidArgument, names="parts[0]"):
        await session.send(run.text_of("hello"), ari.ContentPart("image", mime_type="image/png"))
