"""Cases about sessions: create, resume, list, history, close, delete."""

from __future__ import annotations

import uuid

from arp.conformance.cases import CaseUnreachable, expect, expect_same
from arp.conformance.runtime.case import (
    CaseRun,
    Cases,
    is_lifecycle,
    is_text,
    output_text,
    read_until,
    refused,
)
from arp.runtime.contract import types as ari
from arp.runtime.contract.errors import (
    AlreadyExists,
    AriCode,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
)
from arp.runtime.contract.services import HistoryManager, RuntimeService

CASES = Cases()
State = ari.SessionState


@CASES.add(1, ari.EventType.LIFECYCLE)
async def create(run: CaseRun) -> None:
    """A session has an id and a directory, and its first event is `created`."""
    session = await run.session(title="A title")
    (first,) = await session.until(lambda _: True)
    expect_same((first.lifecycle, first.sequence), (ari.Lifecycle.CREATED, 1), "first event")
    expect_same(first.session_id, session.id, "session_id of the event")
    value = await session.value()
    expect_same((value.session_id, value.state), (session.id, State.CREATED), "get_session")
    expect_same(value.cwd, str(run.under_test.cwd.resolve()), "cwd")


@CASES.add(2)
async def own_id(run: CaseRun) -> None:
    """The caller can choose the id of a session."""
    wanted = str(uuid.uuid4())
    session = await run.session(session_id=wanted)
    expect_same(session.id, wanted, "session_id")
    await session.echo("by its id")


@CASES.add(2)
async def id_taken(run: CaseRun) -> None:
    """A session id that is already used is refused, also across processes."""
    wanted = str(uuid.uuid4())
    session = await run.session(session_id=wanted)
    with refused(AlreadyExists):
        await run.session(session_id=wanted)
    await session.echo("first")
    await run.new_process()
    with refused(AlreadyExists):
        await run.session(session_id=wanted)


@CASES.add(1)
async def cwd_outside(run: CaseRun) -> None:
    """A directory outside the runtime's directory is refused."""
    with refused(InvalidArgument, names="cwd"):
        await run.session(cwd="..")
    with refused(InvalidArgument, names="cwd"):
        await run.session(cwd="/")


@CASES.add(1)
async def cwd_missing(run: CaseRun) -> None:
    """A directory that does not exist is refused."""
    with refused(InvalidArgument, names="cwd"):
        await run.session(cwd="no-such-directory")


@CASES.add(1)
async def cwd_below(run: CaseRun) -> None:
    """A session can work in a subdirectory of the runtime's directory."""
    below = run.under_test.cwd / "below"
    below.mkdir()
    session = await run.session(cwd="below")
    expect_same((await session.value()).cwd, str(below.resolve()), "cwd")
    await session.echo("from below")


@CASES.add(1)
async def resume_in_new_process(run: CaseRun) -> None:
    """Another process can resume a session, and the agent remembers the conversation."""
    session = await run.session()
    await session.echo("remember the violet")
    await run.new_process()
    session = await run.resumed(session.id)
    expect_same((await session.value()).state, State.IDLE, "state")
    await session.echo("again")
    try:
        received = run.under_test.told()
    except CaseUnreachable:
        return
    remembers = any("remember the violet" in text for text in received)
    expect(remembers, f"the model received {received}")


@CASES.add(1)
async def resume_in_its_directory(run: CaseRun) -> None:
    """A resumed session keeps its directory, unless the request names another one."""
    for name in ("own", "other"):
        (run.under_test.cwd / name).mkdir()
    own, other = (str((run.under_test.cwd / name).resolve()) for name in ("own", "other"))
    session = await run.session(cwd="own")
    await session.echo("here")
    await run.new_process()
    session = await run.resumed(session.id)
    expect_same((await session.value()).cwd, own, "cwd in a new process")
    await session.close()
    session = await run.resumed(session.id)
    expect_same((await session.value()).cwd, own, "cwd of a session that was closed")
    await session.close()
    session = await run.resumed(session.id, cwd="other")
    expect_same((await session.value()).cwd, other, "cwd of the request")
    await session.echo("there")


@CASES.add(1)
async def resume_unknown(run: CaseRun) -> None:
    """Resuming an unknown session is refused with `NotFound`."""
    for session_id in (str(uuid.uuid4()), "no such session", ""):
        with refused(NotFound):
            await run.runtime.resume_session(run.resume_request(session_id))


@CASES.add(1)
async def resume_open(run: CaseRun) -> None:
    """Resuming an open session changes nothing."""
    session = await run.session()
    await session.echo("one")
    before = await session.value()
    resumed = await run.runtime.resume_session(run.resume_request(session.id))
    expect_same(resumed.session, before, "the session")


@CASES.add(1)
async def resume_closed(run: CaseRun) -> None:
    """The same process can resume a closed session."""
    session = await run.session()
    await session.echo("one")
    await session.close()
    session = await run.resumed(session.id)
    await session.echo("two")


@CASES.add(1)
async def unused_session(run: CaseRun) -> None:
    """A session without turns can be closed, resumed and used."""
    session = await run.session()
    await session.close()
    session = await run.resumed(session.id)
    await session.echo("first words")


@CASES.add(1)
async def close_twice(run: CaseRun) -> None:
    """Closing a session twice, or an unknown session, does nothing."""
    session = await run.session()
    await session.close()
    await session.close()
    await run.runtime.close_session(ari.CloseSessionRequest("no-such-session"))
    expect_same((await session.value()).state, State.CLOSED, "state")


@CASES.add(1, ari.EventType.LIFECYCLE)
async def closed_is_the_last_event(run: CaseRun) -> None:
    """`closed` is the last event, and subscriptions end after it."""
    session = await run.session()
    await session.close()
    seen = await session.until(is_lifecycle(ari.Lifecycle.CLOSED))
    expect_same([event async for event in session.events], [], "events after `closed`")
    expect_same(seen[-1].lifecycle, ari.Lifecycle.CLOSED, "last event")


@CASES.add(1, ari.EventType.ERROR)
async def close_in_a_turn(run: CaseRun) -> None:
    """Closing a session ends its active turn with `Canceled`."""
    session = await run.session()
    await session.send(run.text_of("slow"))
    await session.until(is_text)
    await session.close()
    seen = await session.until(is_lifecycle(ari.Lifecycle.CLOSED))
    ends = [event for event in seen if event.done]
    codes = [event.error.code for event in ends if event.error is not None]
    expect_same(codes, [AriCode.CANCELED], "codes of the terminal events")


@CASES.add(2)
async def delete_twice(run: CaseRun) -> None:
    """A deleted session is gone, also in another process; deleting it again does nothing."""
    session = await run.session()
    await session.echo("soon gone")
    await session.delete()
    await session.delete()
    with refused(NotFound):
        await session.value()
    await run.new_process()
    with refused(NotFound):
        await run.runtime.resume_session(run.resume_request(session.id))
    await run.runtime.delete_session(ari.DeleteSessionRequest(session.id))


@CASES.add(2)
async def sessions_of_other_directories(run: CaseRun) -> None:
    """Sessions that worked outside of the runtime's directory are out of reach of every method."""
    session = await run.session()
    await session.echo("kept")
    await run.runtime.close(ari.CloseRequest())
    here = run.under_test.cwd
    link = here.with_name(f"{here.name}-link")
    link.symlink_to(here)
    for elsewhere in (here.with_name(f"{here.name}-next"), here.with_name(here.name.upper())):
        elsewhere.mkdir()
        runtime = run.use(run.under_test.make_in(elsewhere))
        await _check_not_reached(run, runtime, session.id)
        await runtime.close(ari.CloseRequest())
    through_link = run.use(run.under_test.make_in(link))
    found = await through_link.get_session(ari.GetSessionRequest(session.id))
    expect_same(found.session.session_id, session.id, "the session through a symbolic link")


async def _check_not_reached(run: CaseRun, runtime: RuntimeService, session_id: str) -> None:
    """Check that no method reaches a session of another directory."""
    for cwd in ("", str(run.under_test.cwd)):
        request = ari.ListSessionsRequest(ari.SessionFilter(cwd=cwd))
        listed = (await runtime.list_sessions(request)).sessions
        ids = [one.session_id for one in listed]
        expect(session_id not in ids, f"the list of {cwd or 'all'} has the session")
    with refused(NotFound):
        await runtime.get_session(ari.GetSessionRequest(session_id))
    for fields in ({}, {"cwd": "."}):
        with refused(NotFound):
            await runtime.resume_session(run.resume_request(session_id, **fields))
    if isinstance(runtime, HistoryManager):
        with refused(NotFound):
            await runtime.get_session_history(ari.GetSessionHistoryRequest(session_id))
    status = await runtime.status(ari.StatusRequest())
    if any(one.name == "delete_session" and one.enabled for one in status.capabilities):
        with refused(NotFound):
            await runtime.delete_session(ari.DeleteSessionRequest(session_id))


@CASES.add(1)
async def use_after_close(run: CaseRun) -> None:
    """A closed session refuses messages."""
    session = await run.session()
    await session.close()
    with refused(FailedPrecondition, names="resume"):
        await session.send(run.text_of("hello"))


@CASES.add(1)
async def subscribe_after_close(run: CaseRun) -> None:
    """A closed session refuses subscriptions."""
    session = await run.session()
    await session.close()
    with refused(FailedPrecondition):
        await run.runtime.session_events(ari.SessionEventsRequest(session.id))


@CASES.add(1)
async def unknown_session(run: CaseRun) -> None:
    """Calls for an unknown session are refused with `NotFound`."""
    session_id, runtime = str(uuid.uuid4()), run.runtime
    message = ari.RuntimeMessage(content="hello")
    with refused(NotFound):
        await runtime.send_message(ari.SendMessageRequest(session_id, message))
    with refused(NotFound):
        await runtime.session_events(ari.SessionEventsRequest(session_id))
    with refused(NotFound):
        await runtime.cancel_turn(ari.CancelTurnRequest(session_id))


@CASES.add(2)
async def get_unknown(run: CaseRun) -> None:
    """Reading an unknown session is refused with `NotFound`."""
    for session_id in (str(uuid.uuid4()), "no such session", ""):
        with refused(NotFound):
            await run.runtime.get_session(ari.GetSessionRequest(session_id))


@CASES.add(2)
async def list_(run: CaseRun) -> None:
    """Sessions are listed, newest first."""
    before = {one.session_id for one in await listed(run)}
    sessions = [await run.session() for _ in range(2)]
    for session in reversed(sessions):
        await session.echo("listed")
    found = [one.session_id for one in await listed(run) if one.session_id not in before]
    expect_same(found, [one.id for one in sessions], "the list")


async def listed(run: CaseRun) -> tuple[ari.RuntimeSession, ...]:
    """Return all sessions, also those from before the case (agents may share a store)."""
    return (await run.runtime.list_sessions(ari.ListSessionsRequest())).sessions


@CASES.add(2)
async def list_filter(run: CaseRun) -> None:
    """A list has the sessions that match every field of the filter, up to its limit."""
    sessions = [await run.session() for _ in range(3)]
    await sessions[0].close()

    async def ids(**fields: object) -> set[str]:
        wanted = ari.SessionFilter(**fields)  # type: ignore[arg-type]  # fields of a filter
        response = await run.runtime.list_sessions(ari.ListSessionsRequest(wanted))
        return {one.session_id for one in response.sessions}

    both = (sessions[0].id, sessions[1].id)
    expect_same(await ids(session_ids=both), set(both), "session_ids")
    closed = await ids(session_ids=both, states=(State.CLOSED,))
    expect_same(closed, {sessions[0].id}, "session_ids and states")
    expect_same(len(await ids(limit=2)), 2, "limit=2")
    with refused(InvalidArgument, names="limit"):
        await ids(limit=0)


@CASES.add(2)
async def list_of_earlier_process(run: CaseRun) -> None:
    """Sessions of an earlier process are listed and can be read, as closed."""
    before = {one.session_id for one in await listed(run)}
    session = await run.session()
    await session.echo("kept")
    await run.new_process()
    new = [one for one in await listed(run) if one.session_id not in before]
    states = [(one.session_id, one.state) for one in new]
    expect_same(states, [(session.id, State.CLOSED)], "the list")
    read = (await run.runtime.get_session(ari.GetSessionRequest(session.id))).session
    expect_same((read.session_id, read.state), (session.id, State.CLOSED), "get_session")


@CASES.add(2)
async def history(run: CaseRun) -> None:
    """The history has all messages, oldest first, also in another process."""
    session = await run.session()
    prompt = run.text_of("hello")
    await session.turn(prompt)
    await session.echo("second")
    await run.new_process()
    reader = run.service(HistoryManager)
    messages = (await reader.get_session_history(ari.GetSessionHistoryRequest(session.id))).messages
    roles = [message.role for message in messages]
    expect_same(roles, ["user", "assistant"] * 2, "roles")
    expect_same(messages[0].content, prompt, "first message")
    expect(run.prompts.hello_text in messages[1].content, f"first answer: {messages[1]}")
    expect("second" in messages[3].content, f"second answer: {messages[3]}")


@CASES.add(2)
async def history_limit(run: CaseRun) -> None:
    """A history with a limit has the newest messages."""
    session = await run.session()
    await session.echo("first")
    await session.echo("second")
    reader = run.service(HistoryManager)
    request = ari.GetSessionHistoryRequest(session.id, limit=1)
    (message,) = (await reader.get_session_history(request)).messages
    expect("second" in message.content, f"the newest message: {message}")
    with refused(InvalidArgument, names="limit"):
        await reader.get_session_history(ari.GetSessionHistoryRequest(session.id, limit=0))


@CASES.add(2)
async def history_unknown(run: CaseRun) -> None:
    """Reading the history of an unknown session is refused with `NotFound`."""
    reader = run.service(HistoryManager)
    with refused(NotFound):
        await reader.get_session_history(ari.GetSessionHistoryRequest(str(uuid.uuid4())))


@CASES.add(1)
async def two_sessions(run: CaseRun) -> None:
    """Two sessions run at the same time, each with its own events."""
    first, second = await run.session(), await run.session()
    await first.send(run.text_of("slow"))
    await first.until(is_text)
    await second.echo("beside")
    seen = await read_until(
        await run.runtime.session_events(ari.SessionEventsRequest(second.id, 0)),
        lambda event: event.done,
    )
    expect_same({event.session_id for event in seen}, {second.id}, "session_id of the events")
    expect("beside" in output_text(seen), f"output of the second session: {output_text(seen)!r}")
    await first.cancel()
    await first.until_done()
