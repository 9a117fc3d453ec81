"""Snapshots and catch-ups: the screen, or its changes since a cursor, as messages for one profile.

Theory of operation. Both use the same function: for each turn, everything that changed since a
cursor is rendered again as a whole. A snapshot is a catch-up from the beginning. It is for a
renderer without content and has one commit per turn. A catch-up is for a renderer that shows
something, so all its components take effect at one commit. Both are pure functions of the agent
side's screen. A renderer that joins late, returns or was too slow therefore sees the same as one
that stayed connected.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

import msgspec
from msgspec import UNSET

from arp.protocol.components import Component
from arp.protocol.connection.screen import Screen, ToolRun, TurnScreen, is_text_part
from arp.protocol.mark import Mark, OutputAnchor
from arp.protocol.messages import (
    AgentMessage,
    CommandsMessage,
    Commit,
    Delta,
    DeltaPayload,
    ErrorMessage,
    InputEcho,
    Patch,
    Render,
    SessionReady,
    StateMessage,
    SurfaceMessage,
    ToolEnd,
    ToolEndPayload,
    ToolProgress,
    ToolStart,
    ToolStartPayload,
    TurnMessage,
)
from arp.protocol.patch import PatchOp, Remove
from arp.protocol.tree import Tree
from arp.session.recording.recorded import Cursor, SessionName
from arp.view.inlined import inlines, is_inlined, main_for
from arp.view.profile import Profile, fits_in, may_take_other_ids, shown_as, shows
from arp.view.stream_end import is_waiting

LONG_PART = 256 << 10
"""Length, in characters, above which a text part is sent as deltas."""


def snapshot(
    screen: Screen,
    name: SessionName,
    profile: Profile,
    older: int | None = None,
    gaps: dict[str, int] | None = None,
) -> list[AgentMessage]:
    """Return the messages of all turns on the screen and of all other surfaces.

    The last `commit` carries `seq`.

    Args:
        screen: The screen of the session.
        name: The session, its epoch and newest sequence number.
        profile: Profile of the renderer.
        older: Number of turns before the first turn on the screen.
        gaps: Number of turns left out before a turn, by its id.
    """
    settled, others = snapshot_turns(screen)
    return [
        *opening(screen, name, profile, older, gaps),
        *turns_whole(screen, settled, name, profile),
        *turns_whole(screen, others, name, profile),
        Commit(session_id=name.session_id, seq=name.seq),
    ]


def opening(
    screen: Screen,
    name: SessionName,
    profile: Profile,
    older: int | None = None,
    gaps: dict[str, int] | None = None,
    workflow: str | None = None,
) -> list[AgentMessage]:
    """Return the beginning of a snapshot: `session`, commands, and the surfaces other than `main`.

    Args:
        screen: The screen of the session.
        name: The session, its epoch and newest sequence number.
        profile: Profile of the renderer.
        older: Number of turns before the first turn on the screen; `None` = not sent.
        gaps: Number of turns left out before a turn, by its id.
        workflow: Name of the session's agent; `None` = not sent.
    """
    ready = SessionReady(
        session_id=name.session_id,
        epoch=name.epoch,
        seq=name.seq,
        resume="snapshot",
        workflow=workflow,
        state=(profile.said_hello and screen.shared_state) or UNSET,
        older=older,
        gaps=gaps or {},
    )
    out: list[AgentMessage] = [ready, *_commands(screen, name, Cursor())]
    out += _descriptions(screen, name, 0)
    for surface, tree in _own_surfaces(screen, profile):
        if tree.outputs.get(""):
            out.append(_surface(surface, tree, name, profile))
    return out


def _own_surfaces(screen: Screen, profile: Profile) -> Iterator[tuple[str, Tree]]:
    """Yield the surfaces other than `main` that a profile receives as surfaces of their own."""
    for surface, tree in screen.surfaces.items():
        if surface != "main" and not (inlines(profile) and is_inlined(surface, screen)):
            yield surface, tree


def _descriptions(screen: Screen, name: SessionName, since: int) -> Iterator[SurfaceMessage]:
    """Yield the closings, creations and changed metadata of surfaces since a sequence number."""
    for surface, closing in screen.closings.items():
        if since and closing.seq > since:  # without a cursor the renderer has nothing to close
            yield SurfaceMessage(
                session_id=name.session_id,
                surface=surface,
                payload=closing.info,
                closed=closing.reason,
            )
    for surface, entry in screen.infos.items():
        if entry.seq > since:
            yield SurfaceMessage(
                session_id=name.session_id,
                turn_id=entry.turn_id,
                surface=surface,
                payload=entry.info,
            )


def _commands(screen: Screen, name: SessionName, cursor: Cursor) -> Iterator[CommandsMessage]:
    """Yield the commands of the session if they changed since a cursor."""
    if screen.commands_seq > cursor.seq:
        yield CommandsMessage(session_id=name.session_id, commands=screen.commands)


def snapshot_turns(screen: Screen) -> tuple[list[TurnScreen], list[TurnScreen]]:
    """Return the turns of a snapshot: the leading turns that have ended, and the other turns."""
    turns = list(screen.turns.values())
    first = next((n for n, turn in enumerate(turns) if not turn.final), len(turns))
    return turns[:first], turns[first:]


def turns_whole(
    screen: Screen, turns: Iterable[TurnScreen], name: SessionName, profile: Profile
) -> list[AgentMessage]:
    """Return the messages of turns in a snapshot, each turn with its own commit."""
    out: list[AgentMessage] = []
    for turn in turns:
        begin, renders, rests = _turn_since(screen, turn, name, profile, Cursor())
        out += [*begin, *renders, _ending(turn, name.session_id, profile), *rests]
    return out


def version_of(screen: Screen, turns: Iterable[TurnScreen]) -> tuple[object, ...]:
    """Return a key that changes whenever a snapshot of the turns changes, within one branch."""
    main = screen.surfaces["main"]
    versions: list[object] = [main.restructured, main.reshaped]
    for turn in turns:
        roots = main.outputs.get(turn.id, ())
        changed = max((main.nodes[root].seq for root in roots), default=0)
        versions.append((turn.id, turn.seq, turn.thought, changed, tuple(roots)))
    return tuple(versions)


def _surface(surface: str, tree: Tree, name: SessionName, profile: Profile) -> Render:
    components = _shown(tree.output(), profile)
    return Render(session_id=name.session_id, surface=surface, components=components, replace=True)


def _ending(turn: TurnScreen, session_id: str, profile: Profile) -> Commit:
    """Return the commit after a turn's output."""
    return Commit(
        session_id=session_id,
        turn_id=turn.id,
        final=_is_ended(turn, profile),
        usage=turn.usage,
        at=turn.ended,
    )


def _is_ended(turn: TurnScreen, profile: Profile) -> bool:
    """Return whether a turn has its final commit for this profile.

    That is so when the turn has ended. With `ends_at_questions`, it is also so while the turn waits
    for the user.
    """
    return turn.final or (profile.ends_at_questions and is_waiting(turn))


def _split_long_parts(
    output: list[Component], turn: TurnScreen, name: SessionName, profile: Profile
) -> tuple[list[Component], list[AgentMessage]]:
    """Return the output with long text parts emptied, and their text as deltas.

    A delta can be divided into messages of any size, so that no text is lost to a size limit. Very
    long parts are sent like this to every renderer that supports a `target`, because a snapshot is
    sent in small pieces.
    """
    deltas: list[AgentMessage] = []
    for index, component in enumerate(output):
        if not is_text_part(component, turn.id):
            continue
        text = component.props["content"]
        is_long = len(text) > LONG_PART and profile.said_hello
        if is_long or not fits_in(component, profile):
            props = {**component.props, "content": ""}
            output[index] = msgspec.structs.replace(component, props=props)
            payload = DeltaPayload(text, target=component.id)
            deltas.append(Delta(session_id=name.session_id, turn_id=turn.id, payload=payload))
    return output, deltas


def catch_up(
    screen: Screen, name: SessionName, profile: Profile, cursor: Cursor
) -> list[AgentMessage] | None:
    """Return the messages for everything that changed since a cursor.

    Returns:
        Messages in order. All changed components take effect at the first commit; the text of very
        long parts follows it as deltas. The last message is a commit with `seq`. `None` if a
        snapshot is needed. A renderer of the draft cannot receive a snapshot: it gets the catch-up
        in any case.
    """
    main = main_for(screen, profile)
    is_in_order = _is_in_order(main, profile, cursor.seq)
    if profile.said_hello and (not is_in_order or screen.closings_forgotten > cursor.seq):
        return None
    turns = screen.turns.values()
    if profile.said_hello and any(_is_edited_since(turn, cursor) for turn in turns):
        return None
    out: list[AgentMessage] = [
        *_commands(screen, name, cursor),
        *_descriptions(screen, name, cursor.seq),
    ]
    if screen.state_seq > cursor.seq:
        out.append(StateMessage(session_id=name.session_id, state=screen.shared_state))
    renders: list[AgentMessage] = list(_removals(main, name, cursor.seq))
    rests: list[AgentMessage] = []
    finals: list[Commit] = []
    for turn in screen.turns.values():
        change = _turn_since(screen, turn, name, profile, cursor)
        out += change.begin
        renders += change.renders
        rests += change.rests
        out += _rest_of_part(main, turn, name, cursor)
        if turn.seq > cursor.seq and _is_ended(turn, profile):
            finals.append(_ending(turn, name.session_id, profile))
    for surface, tree in _own_surfaces(screen, profile):
        if _changed(tree, cursor.seq):
            renders.append(_surface(surface, tree, name, profile))
    # The closing commit, which carries the `seq`, also ends the last turn.
    last = finals.pop() if finals else None
    turn_id = last.turn_id if last else None
    closing = Commit(
        session_id=name.session_id,
        seq=name.seq,
        turn_id=turn_id,
        final=last is not None,
        usage=last.usage if last else None,
        at=last.at if last else None,
    )
    if rests:
        # The deltas extend text parts that the renders create, so these must be committed first.
        rests.insert(0, Commit(session_id=name.session_id))
    return [*out, *renders, *finals, *rests, closing]


def _is_in_order(tree: Tree, profile: Profile, since: int) -> bool:
    """Return whether all changes since a cursor can be made by removing, updating and appending."""
    shows_parts = not shows(profile, "group", 1)
    if tree.restructured > since or (shows_parts and tree.reshaped > since):
        return False
    removed = (gone.type for gone in tree.removed.values() if gone.seq > since >= gone.born)
    roots = (tree.nodes[root] for output in tree.outputs.values() for root in output)
    changed = (root.type for root in roots if root.seq > since >= root.born)
    # The renderer may show these as pieces, and the ids of its pieces are not known here.
    return not any(may_take_other_ids(name, profile) for name in chain(removed, changed))


def _is_edited_since(turn: TurnScreen, cursor: Cursor) -> bool:
    """Return whether the first input of a turn was edited after a cursor.

    A renderer at that cursor may still show the old input.
    """
    return bool(turn.inputs) and turn.inputs[0].edited and (turn.inputs[0].seq or 0) > cursor.seq


class _TurnChanges(NamedTuple):
    """The changes of a turn since a cursor."""

    begin: list[AgentMessage]
    """Inputs, tool calls, errors, reasoning and status."""
    renders: list[AgentMessage]
    """Changed output."""
    rests: list[AgentMessage]
    """Text of parts that are rendered empty, to be sent after a commit."""


def _turn_since(
    screen: Screen, turn: TurnScreen, name: SessionName, profile: Profile, cursor: Cursor
) -> _TurnChanges:
    main, session_id = main_for(screen, profile), name.session_id
    begin: list[AgentMessage] = []
    if turn.seq > cursor.seq:
        begin += _mark_messages(main, turn, name, profile, cursor)
        begin += _statuses(turn, session_id)
    changed = [
        main.component(root)
        for root in main.outputs.get(turn.id, ())
        # The renderer has the beginning of `cursor.part`; `_rest_of_part` sends only the rest.
        if main.nodes[root].seq > cursor.seq and root != cursor.part
    ]
    output, rests = _split_long_parts(changed, turn, name, profile)
    components = _shown(output, profile)
    renders: list[AgentMessage] = []
    if components:
        renders.append(Render(session_id=session_id, turn_id=turn.id, components=components))
    return _TurnChanges(begin, renders, rests)


def _mark_messages(
    tree: Tree, turn: TurnScreen, name: SessionName, profile: Profile, cursor: Cursor
) -> Iterator[AgentMessage]:
    """Yield the inputs, tool calls, reasoning and errors since a cursor, in their order."""
    session_id, since = name.session_id, cursor.seq
    for mark in turn.marks:
        behind = _behind(tree, mark, profile) if mark.seq > since else None
        if behind == OutputAnchor() and turn.marks[0].seq > since:
            behind = None  # the turn is new to the renderer: "before all" is also "at the end"
        match mark.kind:
            case "input":
                if mark.seq > since and profile.said_hello:
                    yield _echo(turn.inputs[mark.number], behind)
            case "tool":
                yield from _tool(turn.tools[mark.number], session_id, turn.id, behind, since)
            case "thinking":
                if turn.thought > since and profile.takes("thinking"):
                    # Deltas of thinking are not replaced but appended: skip what was sent already.
                    sent = cursor.thinking if turn.id == cursor.turn else 0
                    yield _thinking(session_id, turn.id, turn.thinking[sent:], behind)
            case _:
                if mark.seq > since:
                    payload = turn.errors[mark.number]
                    yield ErrorMessage(
                        payload=payload, session_id=session_id, turn_id=turn.id, behind=behind
                    )


def _behind(tree: Tree, mark: Mark, profile: Profile) -> OutputAnchor:
    """Return the position of a mark, after the last piece that this profile shows there."""
    name = mark.behind.component
    node = tree.nodes.get(name) if name is not None else None
    if node is None or not may_take_other_ids(node.type, profile):
        return mark.behind
    return OutputAnchor(shown_as(tree.component(node.id), profile)[-1].id)


def _removals(tree: Tree, name: SessionName, since: int) -> Iterable[Patch]:
    ops: list[PatchOp] = [
        Remove(name)
        for name, entry in tree.removed.items()
        if entry.root == name and entry.seq > since >= entry.born
    ]
    if ops:
        yield Patch(session_id=name.session_id, ops=ops)


def _rest_of_part(
    tree: Tree, turn: TurnScreen, name: SessionName, cursor: Cursor
) -> list[AgentMessage]:
    node = tree.nodes.get(cursor.part) if cursor.part is not None else None
    if node is None or node.turn != turn.id or node.seq <= cursor.seq:
        return []
    rest = tree.component(node.id).props["content"][cursor.characters :]
    if not rest:
        return []
    return [Delta(session_id=name.session_id, turn_id=turn.id, payload=DeltaPayload(rest))]


def _changed(tree: Tree, since: int) -> bool:
    return (
        tree.restructured > since
        or any(tree.nodes[root].seq > since for root in tree.outputs.get("", ()))
        or any(gone.seq > since for gone in tree.removed.values())
    )


def _shown(components: Iterable[Component], profile: Profile) -> list[Component]:
    return [piece for component in components for piece in shown_as(component, profile)]


def _echo(echo: InputEcho, behind: OutputAnchor | None) -> InputEcho:
    return InputEcho(
        session_id=echo.session_id,
        turn_id=echo.turn_id,
        surface=echo.surface,
        input_type=echo.input_type,
        data=echo.data,
        source_component=echo.source_component,
        id=echo.id,
        behind=behind,
        versions=echo.versions,
        edited=echo.edited,
        at=echo.at,
        origin=echo.origin,
    )


def _tool(
    run: ToolRun, session_id: str, turn_id: str, behind: OutputAnchor | None, since: int
) -> Iterator[AgentMessage]:
    if run.seq > since:
        start = ToolStartPayload(run.tool, run.args, run.call_id)
        yield ToolStart(session_id=session_id, turn_id=turn_id, payload=start, behind=behind)
    if run.progress is not None and run.progressed > since:
        yield ToolProgress(session_id=session_id, turn_id=turn_id, payload=run.progress)
    if run.ok is not None and run.ended > since:
        end = ToolEndPayload(
            run.tool,
            run.ok,
            run.call_id,
            run.error,
            run.result,
            run.result_ref,
            run.duration_ms,
        )
        yield ToolEnd(session_id=session_id, turn_id=turn_id, payload=end)


def _thinking(session_id: str, turn_id: str, text: str, behind: OutputAnchor | None) -> Delta:
    payload = DeltaPayload(text, kind="thinking")
    return Delta(session_id=session_id, turn_id=turn_id, payload=payload, behind=behind)


def _statuses(turn: TurnScreen, session_id: str) -> Iterator[TurnMessage]:
    """Yield the permission requests of a turn, then its status."""
    if turn.status is None:
        return
    for permission in turn.permissions.values():
        yield TurnMessage(
            session_id=session_id, turn_id=turn.id, status="waiting", permission=permission
        )
    yield TurnMessage(
        session_id=session_id,
        turn_id=turn.id,
        status=turn.status,
        position=turn.position,
        paused=turn.paused,
    )
