"""Cases about failures: of the model, of the agent's program and its output; and leftovers."""

from __future__ import annotations

import asyncio
import os
import time
import uuid

from arp.conformance.cases import CaseFailed, expect, expect_same
from arp.conformance.runtime.case import (
    WITHIN_S,
    CaseRun,
    Cases,
    is_lifecycle,
    is_text,
    joined,
    lifecycle_events,
    output_text,
)
from arp.runtime.contract import types as ari
from arp.runtime.contract.errors import AriCode, FailedPrecondition

CASES = Cases()
EventType, State = ari.EventType, ari.SessionState

LOST = (AriCode.UNAVAILABLE, AriCode.INTERNAL)
"""Error codes of a turn after its program ended or wrote invalid output."""
POLL_S = 0.02


async def model_answers(run: CaseRun, http_status: int, *codes: AriCode) -> None:
    """Check that the model's HTTP error ends the turn with a code, and that the next turn works."""
    session = await run.session()
    end = (await session.turn(run.text_of("fail", status=str(http_status))))[-1]
    code = end.error.code if end.error is not None else None
    expect(code in codes, f"expected {' or '.join(codes)}, got {end}")
    expect(end.error is not None and end.error.message, "the error has no message")
    await session.echo("after it")


@CASES.add(1, EventType.ERROR)
async def model_error_400(run: CaseRun) -> None:
    """If the model refuses the request (400), the turn ends with `InvalidArgument`."""
    await model_answers(run, 400, AriCode.INVALID_ARGUMENT)


@CASES.add(1, EventType.ERROR)
async def model_error_401(run: CaseRun) -> None:
    """If the model refuses the API key (401), the turn ends with `PermissionDenied`."""
    await model_answers(run, 401, AriCode.PERMISSION_DENIED)


@CASES.add(1, EventType.ERROR)
async def model_error_500(run: CaseRun) -> None:
    """If the model fails (500), the turn ends with `Unavailable`."""
    await model_answers(run, 500, AriCode.UNAVAILABLE)


@CASES.add(2, EventType.LIFECYCLE)
async def retry_is_visible(run: CaseRun) -> None:
    """A retried request to the model is reported, and the turn continues."""
    session = await run.session()
    events = await session.turn(run.text_of("retry"))
    expect_same(events[-1].type, EventType.RESULT, "end")
    expect(lifecycle_events(events, ari.Lifecycle.RETRYING), "no event reports the retry")


async def lose(run: CaseRun) -> ari.Event:
    """Kill the program during a turn and return the terminal event; check that resume works."""
    session = await run.session()
    await session.echo("before")
    await session.send(run.text_of("slow"))
    await session.until(is_text)
    await run.under_test.kill(run.runtime, session.id)
    seen = await session.until(is_lifecycle(ari.Lifecycle.FAILED))
    ends = [event for event in seen if event.done]
    expect_same(len(ends), 1, "number of terminal events")
    expect_same((await session.value()).state, State.FAILED, "state")
    session = await run.resumed(session.id)
    await session.echo("after it")
    return ends[0]


@CASES.add(1, EventType.ERROR)
async def kill_and_resume(run: CaseRun) -> None:
    """If the program is killed, its turn ends with `Unavailable`; the session can be resumed."""
    end = await lose(run)
    expect(end.error is not None and end.error.code is AriCode.UNAVAILABLE, f"end: {end}")


@CASES.add(1, EventType.ERROR, EventType.TOOL_RESULT)
async def kill_while_pending(run: CaseRun) -> None:
    """Killing the program closes its permission request, and the command does not run."""
    session = await run.session()
    await session.send(run.run_text("touch made"))
    request = await session.next_request()
    await run.under_test.kill(run.runtime, session.id)
    seen = await session.until(is_lifecycle(ari.Lifecycle.FAILED))
    expect_same(len([event for event in seen if event.done]), 1, "number of terminal events")
    try:
        await session.answer(request, ari.PermissionResponse("allow"))
    except FailedPrecondition:
        expect(not run.under_test.has_run("made"), "the command ran")
    else:
        raise CaseFailed("an answer to a program that was killed was accepted")


@CASES.add(1)
async def garbage_in_the_output(run: CaseRun) -> None:
    """An invalid line of output is skipped, or ends the turn with an error; it never hangs."""
    run.use(run.under_test.make_behind("garbage"))
    session = await run.session()
    await session.send(run.text_of("hello"))
    events = await session.until_done()
    end = events[-1]
    if end.error is None:
        expect_same(joined(events, EventType.TEXT), run.prompts.hello_text, "text")
    else:
        expect(end.error.code in LOST, f"end: {end}")


@CASES.add(1, EventType.ERROR)
async def output_cut_in_a_line(run: CaseRun) -> None:
    """If the output ends in the middle of a line, the turn ends and the session has failed."""
    run.use(run.under_test.make_behind("cut"))
    session = await run.session()
    await session.send(run.text_of("hello"))
    seen = await session.until(is_lifecycle(ari.Lifecycle.FAILED))
    codes = [event.error.code for event in seen if event.done and event.error is not None]
    expect(len(codes) == 1 and codes[0] in LOST, f"codes of the terminal events: {codes}")
    expect_same((await session.value()).state, State.FAILED, "state")


@CASES.add(1)
async def environment_is_not_inherited(run: CaseRun) -> None:
    """The agent's commands do not inherit the environment of this process."""
    run.under_test.processes()
    name, secret = "ARP_CONFORMANCE_SECRET", uuid.uuid4().hex
    os.environ[name] = secret
    try:
        session = await run.session()
        events = await session.turn(run.run_text("env"))
    finally:
        del os.environ[name]
    output = joined(events, EventType.TOOL_RESULT)
    expect("PATH=" in output, f"the environment of the command: {output!r}")
    expect(secret not in output, f"{name} was inherited")
    expect(secret not in output_text(events), f"{name} was inherited")


@CASES.add(1)
async def close_ends_processes(run: CaseRun) -> None:
    """Closing the runtime during a command ends all of its processes."""
    run.under_test.processes()
    session = await run.session()
    await session.send(run.run_text("touch begun; sleep 300"))
    await session.answer(await session.next_request(), ari.PermissionResponse("allow"))
    deadline = time.monotonic() + WITHIN_S
    while not run.under_test.has_run("begun"):
        expect(time.monotonic() < deadline, "Timeout: the command did not begin")
        await asyncio.sleep(POLL_S)
    expect(run.under_test.processes(), "the runtime has no running process")
    await run.runtime.close(ari.CloseRequest())
    expect_same(list(run.under_test.processes()), [], "processes left after close")
