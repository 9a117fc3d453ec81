"""Cases about permissions: requests, every kind of answer, and answers that come too late."""

from __future__ import annotations

from arp.conformance.cases import CaseFailed, CaseUnreachable, expect, expect_same
from arp.conformance.runtime.case import (
    ALLOW,
    DENY,
    CallerSession,
    CaseRun,
    Cases,
    changed_command,
    is_lifecycle,
    of_type,
    refused,
)
from arp.runtime.contract import types as ari
from arp.runtime.contract.errors import AriCode, FailedPrecondition, InvalidArgument, NotFound

CASES = Cases()
EventType, State = ari.EventType, ari.SessionState
ASKING = (EventType.TOOL_CALL, EventType.PERMISSION_REQUEST, EventType.TOOL_RESULT)
"""Events of a tool call that needs permission, in order."""
SECRET = "the-text-of-a-secret"
COMMANDS = (
    "cat secret.txt",
    "grep -r secret .",
    "head -c 100 secret.txt | base64",
    "ls",
    "touch made",
    "echo more >> secret.txt",
    "curl -s http://127.0.0.1:9/",
)
"""Commands that read, search, write and reach the network."""


async def request_permission(
    run: CaseRun, name: str = "made", **fields: object
) -> tuple[CallerSession, ari.PermissionRequest]:
    """Return a session that waits for permission to run `touch NAME`, and the request."""
    session = await run.session(**fields)
    await session.send(run.run_text(f"touch {name}"))
    return session, await session.next_request()


def outcomes(events: list[ari.Event]) -> list[object]:
    """Return the outcome of each resolved permission request."""
    resolved = ari.Lifecycle.PERMISSION_RESOLVED
    return [event.details["outcome"] for event in events if event.lifecycle is resolved]


@CASES.add(1, *ASKING)
async def request_shows_all(run: CaseRun) -> None:
    """A permission request has the tool, its full input and its ids, and the session waits."""
    session, request = await request_permission(run)
    expect(request.tool_name, "the request has no tool_name")
    expect("touch made" in str(request.tool_input_raw), f"tool_input_raw: {request}")
    expect("touch made" in request.tool_input_summary, f"tool_input_summary: {request}")
    expect_same(request.kind, ari.PermissionKind.COMMAND, "kind")
    value = await session.value()
    expect_same(value.state, State.WAITING, "state")
    ids = (request.session_id, request.turn_id)
    expect_same(ids, (session.id, value.active_turn_id), "session_id and turn_id")
    expect(not run.under_test.has_run("made"), "the command ran before the answer")


@CASES.add(1, *ASKING)
async def allow(run: CaseRun) -> None:
    """An allowed command runs, and not before it is allowed."""
    session, request = await request_permission(run)
    expect(not run.under_test.has_run("made"), "the command ran before the answer")
    await session.answer(request, ALLOW)
    events = await session.until_done()
    expect_same(outcomes(events), ["allowed"], "outcomes")
    expect(run.under_test.has_run("made"), "the command did not run")
    expect_same(events[-1].type, EventType.RESULT, "end")


@CASES.add(1, *ASKING)
async def deny(run: CaseRun) -> None:
    """A denied command does not run, and its result is an error that says that it was denied."""
    session, request = await request_permission(run)
    await session.answer(request, DENY)
    events = await session.until_done()
    expect_same(outcomes(events), ["denied"], "outcomes")
    (result,) = of_type(events, EventType.TOOL_RESULT)
    expect(result.is_error, f"is_error of the result: {result}")
    expect(result.details.get("denied"), f"denied of the result: {result}")
    expect(not run.under_test.has_run("made"), "the command ran")
    wanted = EventType.RESULT if request.deny_continues else EventType.ERROR
    expect_same(events[-1].type, wanted, "end")
    await session.echo("after it")


@CASES.add(1, *ASKING)
async def deny_with_message(run: CaseRun) -> None:
    """The model receives the exact message of a denial."""
    session, request = await request_permission(run)
    why = 'Not on a Monday: ask "Ada" first.'
    response = ari.PermissionResponse("deny", message=why)
    if not request.takes_message:
        with refused(InvalidArgument, names="message"):
            await session.answer(request, response)
        await session.answer(request, DENY)
        await session.until_done()
        raise CaseUnreachable("requests take no message")
    await session.answer(request, response)
    await session.until_done()
    received = run.under_test.told()
    expect(any(why in text for text in received), f"the model received {received}")
    expect(not run.under_test.has_run("made"), "the command ran")


@CASES.add(1, *ASKING)
async def allow_with_changed_input(run: CaseRun) -> None:
    """If the answer changes the input, the changed input runs and the original does not."""
    session, request = await request_permission(run)
    changed = changed_command(request, "touch made", "touch changed")
    response = ari.PermissionResponse("allow", updated_input=changed)
    if not request.takes_updated_input:
        with refused(InvalidArgument, names="updated_input"):
            await session.answer(request, response)
        await session.answer(request, DENY)
        await session.until_done()
        raise CaseUnreachable("requests take no changed input")
    await session.answer(request, response)
    await session.until_done()
    ran = [name for name in ("made", "changed") if run.under_test.has_run(name)]
    expect_same(ran, ["changed"], "the commands that ran")


@CASES.add(1, *ASKING)
async def rule_for_the_session(run: CaseRun) -> None:
    """After an answer with an offered session rule, the same call is not asked again."""
    session, request = await request_permission(run)
    rule = next((rule for rule in request.rules if rule.scope == "session"), None)
    if rule is None:
        await session.cancel()
        raise CaseUnreachable("requests offer no rule for the session")
    expect(rule.label, "the rule has no label that says what it allows")
    await session.answer(request, ari.PermissionResponse("allow", rule_id=rule.rule_id))
    await session.until_done()
    await session.send(run.run_text("touch made"))
    events = await session.until_done()
    expect_same(of_type(events, EventType.PERMISSION_REQUEST), [], "repeated requests")


@CASES.add(1)
async def rule_that_is_not_offered(run: CaseRun) -> None:
    """A rule that the request does not offer is refused, and the request stays open."""
    session, request = await request_permission(run)
    with refused(InvalidArgument, names="rule_id"):
        await session.answer(request, ari.PermissionResponse("allow", rule_id="no-such-rule"))
    expect_same((await session.value()).state, State.WAITING, "state")
    await session.answer(request, DENY)
    await session.until_done()


@CASES.add(1)
async def answer_that_does_not_fit(run: CaseRun) -> None:
    """An allowance with fields of a denial is refused, and a denial with those of an allowance."""
    session, request = await request_permission(run)
    with refused(InvalidArgument, names="interrupt"):
        await session.answer(request, ari.PermissionResponse("allow", interrupt=True))
    with refused(InvalidArgument, names="updated_input"):
        await session.answer(request, ari.PermissionResponse("deny", updated_input={}))
    await session.answer(request, ALLOW)
    await session.until_done()
    expect(run.under_test.has_run("made"), "the command did not run")


@CASES.add(1, *ASKING)
async def two_permissions(run: CaseRun) -> None:
    """Two calls in one answer have a permission request each, answered in any order."""
    session = await run.session()
    await session.send(run.text_of("two", command="touch one", other="touch two"))
    first = await session.next_request()
    names = ["one", "two"] if "touch one" in str(first.tool_input_raw) else ["two", "one"]
    at_once = run.under_test.asks_at_once
    second = await session.next_request() if at_once else None
    if second is not None:
        await session.answer(second, ALLOW)
        await session.answer(first, DENY)
    else:
        # Allow before deny: some agents apply a denial to all following calls.
        await session.answer(first, ALLOW)
        await session.answer(await session.next_request(), DENY)
    await session.until_done()
    ran = [name for name in names if run.under_test.has_run(name)]
    expect_same(ran, names[1:] if at_once else names[:1], "the commands that ran")
    if not at_once:
        raise CaseUnreachable("it asks about one call after the other")


@CASES.add(1)
async def answered_twice(run: CaseRun) -> None:
    """A second answer is refused and changes nothing."""
    session, request = await request_permission(run)
    await session.answer(request, DENY)
    with refused(FailedPrecondition):
        await session.answer(request, ALLOW)
    await session.until_done()
    with refused(FailedPrecondition):
        await session.answer(request, ALLOW)
    expect(not run.under_test.has_run("made"), "the command ran")


@CASES.add(1)
async def answered_after_cancel(run: CaseRun) -> None:
    """An answer after a cancel is refused, and the command does not run."""
    session, request = await request_permission(run)
    await session.cancel()
    with refused(FailedPrecondition):
        await session.answer(request, ALLOW)
    await session.until_done()
    with refused(FailedPrecondition):
        await session.answer(request, ALLOW)
    expect(not run.under_test.has_run("made"), "the command ran")


@CASES.add(1)
async def unknown_request(run: CaseRun) -> None:
    """An answer to an unknown request, or to one of another session, is refused."""
    session, request = await request_permission(run)
    unknown = ari.PermissionRequest("x", request_id="no-such-request")
    with refused(NotFound):
        await session.answer(unknown, ALLOW)
    other = await run.session()
    with refused(NotFound):
        await other.answer(request, ALLOW)
    await session.answer(request, DENY)
    await session.until_done()


@CASES.add(1, *ASKING)
async def permission_deadline(run: CaseRun) -> None:
    """A request that is not answered in time counts as denied."""
    session, request = await request_permission(run, permission_timeout_s=0.5)
    expect(request.deadline_ns, "the request has no deadline")
    events = await session.until_done()
    expect_same(outcomes(events), ["expired"], "outcomes")
    with refused(FailedPrecondition):
        await session.answer(request, ALLOW)
    expect(not run.under_test.has_run("made"), "the command ran")


@CASES.add(2, *ASKING)
async def cancel_while_pending(run: CaseRun) -> None:
    """A cancel closes the open request, gives its call a result, and ends the turn."""
    session, _ = await request_permission(run)
    await session.cancel()
    events = await session.until_done()
    expect_same(outcomes(events), ["cancelled"], "outcomes")
    expect_same(len(of_type(events, EventType.TOOL_RESULT)), 1, "number of results")
    end = events[-1]
    expect(end.error is not None and end.error.code is AriCode.CANCELED, f"end: {end}")
    expect(not run.under_test.has_run("made"), "the command ran")
    await session.echo("after it")


@CASES.add(2, *ASKING)
async def close_while_pending(run: CaseRun) -> None:
    """Closing a session closes its open request, and the command does not run."""
    session, request = await request_permission(run)
    await session.close()
    events = await session.until(is_lifecycle(ari.Lifecycle.CLOSED))
    expect_same(outcomes(events), ["cancelled"], "outcomes")
    with refused(FailedPrecondition):
        await session.answer(request, ALLOW)
    expect(not run.under_test.has_run("made"), "the command ran")


@CASES.add(2, *ASKING)
async def deny_and_interrupt(run: CaseRun) -> None:
    """A denial with `interrupt` ends the turn."""
    session, request = await request_permission(run)
    await session.answer(request, ari.PermissionResponse("deny", interrupt=True))
    end = (await session.until_done())[-1]
    expect(end.error is not None and end.error.code is AriCode.CANCELED, f"end: {end}")
    expect(not run.under_test.has_run("made"), "the command ran")


@CASES.add(1, *ASKING)
async def call_request_result(run: CaseRun) -> None:
    """A tool call comes before its permission request, and the request before the result."""
    session, request = await request_permission(run)
    await session.answer(request, ALLOW)
    await session.until_done()
    order = [
        event.type
        for event in run.seen
        if event.type in ASKING and event.tool_call_id == request.tool_call_id
    ]
    expect_same(order, list(ASKING), "order")


@CASES.add(1)
async def nothing_runs_unasked(run: CaseRun) -> None:
    """If permissions are enforced, nothing is read, searched, written or sent before the answer."""
    permission = (await run.runtime.status(ari.StatusRequest())).permission
    if permission != "enforced":
        raise CaseUnreachable(f"its permissions are `{permission}`")
    (run.under_test.cwd / "secret.txt").write_text(SECRET)
    session = await run.session()
    texts = [run.run_text(command) for command in COMMANDS]
    texts += [run.text_of("use", tool=tool) for tool in run.under_test.own_tools]
    for text in texts:
        await session.send(text)
        events = await session.until(lambda event: event.permission or event.done)
        request = events[-1].permission
        if request is None:
            raise CaseFailed(f"no permission was requested: {text}")
        await session.answer(request, DENY)
        events += await session.until_done()
        results = [event.content for event in of_type(events, EventType.TOOL_RESULT)]
        expect(not any(SECRET in result for result in results), f"it was read: {text}")
    expect(not run.under_test.has_run("made"), "a file was written")
