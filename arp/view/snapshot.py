"""All that shows, or all that changed since a cursor, as messages for one profile.

Both are pure functions of the agent side's screen, so that a renderer which joins late, comes back
or was too slow sees what one sees that never left. All components of a catch-up take effect at one
commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

import msgspec

from arp.protocol.component import Component
from arp.protocol.mark import Behind, Mark
from arp.protocol.messages import (
    AgentMessage,
    Commit,
    Delta,
    DeltaPayload,
    ErrorMessage,
    InputEcho,
    Patch,
    Render,
    SessionReady,
    ToolEnd,
    ToolEndPayload,
    ToolProgress,
    ToolStart,
    ToolStartPayload,
    TurnMessage,
)
from arp.protocol.patch import PatchOp, Remove
from arp.protocol.screen import Screen, ToolRun, TurnScreen, is_text_part
from arp.protocol.tree import Tree
from arp.session.recorded import Cursor, SessionName
from arp.view.profile import Profile, fits_in, may_take_other_ids, shown_as, shows

LONG_PART = 256 << 10
"""Characters of a text part from which a snapshot tells it by deltas."""


def snapshot(
    screen: Screen,
    name: SessionName,
    profile: Profile,
    older: int | None = None,
    gaps: dict[str, int] | None = None,
) -> list[AgentMessage]:
    """Gives all turns that the screen keeps and every other surface, whole.

    The last `commit` carries `seq`.

    Args:
        screen: What shows.
        name: Of the session.
        profile: Of the renderer.
        older: How many turns came before the first that the screen keeps.
        gaps: Before which others the screen keeps none of some turns, and of how many.
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
    """Gives what a snapshot begins with: `session`, and the surfaces besides `main`.

    Args:
        screen: What the renderer shows then.
        name: The session, its epoch and newest sequence.
        profile: What the renderer can show.
        older: How many turns came before the first that the screen keeps; `None` = not said.
        gaps: Before which turns the screen keeps none of some others, and of how many.
        workflow: The name of the session's agent; `None` = not said.
    """
    ready = SessionReady(
        session_id=name.session_id,
        epoch=name.epoch,
        seq=name.seq,
        resume="snapshot",
        workflow=workflow,
        older=older,
        gaps=gaps or {},
    )
    out: list[AgentMessage] = [ready]
    for surface, tree in screen.surfaces.items():
        if surface != "main" and tree.outputs.get(""):
            out.append(_surface(surface, tree, name, profile))
    return out


def snapshot_turns(screen: Screen) -> tuple[list[TurnScreen], list[TurnScreen]]:
    """Gives the turns of a snapshot: those at its beginning that are over, and the rest."""
    turns = list(screen.turns.values())
    first = next((n for n, turn in enumerate(turns) if not turn.final), len(turns))
    return turns[:first], turns[first:]


def turns_whole(
    screen: Screen, turns: Iterable[TurnScreen], name: SessionName, profile: Profile
) -> list[AgentMessage]:
    """Gives turns as a snapshot tells them."""
    return [message for turn in turns for message in _turn(screen, turn, name, profile)]


def version_of(screen: Screen, turns: Iterable[TurnScreen]) -> tuple[object, ...]:
    """Gives what is equal, within one branch, as long as a snapshot tells turns the same way."""
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


def _turn(
    screen: Screen, turn: TurnScreen, name: SessionName, profile: Profile
) -> list[AgentMessage]:
    session_id, turn_id = name.session_id, turn.id
    out = list(_marked(screen.surfaces["main"], turn, name, profile, Cursor()))
    out.extend(_statuses(turn, session_id))
    output, rests = _begun(screen.output(turn_id), turn_id, profile)
    components = _shown(output, profile)
    if components:
        out.append(Render(session_id=session_id, turn_id=turn_id, components=components))
    out.append(_ending(turn, session_id))
    for part, rest in rests.items():
        payload = DeltaPayload(rest, target=part)
        out.append(Delta(session_id=session_id, turn_id=turn_id, payload=payload))
    return out


def _ending(turn: TurnScreen, session_id: str) -> Commit:
    """Gives the commit behind a turn's output."""
    return Commit(
        session_id=session_id,
        turn_id=turn.id,
        final=turn.final,
        usage=turn.usage,
        at=turn.ended,
    )


def _begun(
    output: list[Component], turn_id: str, profile: Profile
) -> tuple[list[Component], dict[str, str]]:
    """Gives the output with text parts that are too large for one message begun, and their rests.

    Nothing of what was said is lost: the rest follows as deltas, which go into any message. A part
    that is very long goes so to every renderer, since a snapshot is sent in small pieces.
    """
    rests: dict[str, str] = {}
    for index, component in enumerate(output):
        if is_text_part(component, turn_id) and (
            len(component.props["content"]) > LONG_PART or not fits_in(component, profile)
        ):
            rests[component.id] = component.props["content"]
            props = {**component.props, "content": ""}
            output[index] = msgspec.structs.replace(component, props=props)
    return output, rests


def catch_up(
    screen: Screen, name: SessionName, profile: Profile, cursor: Cursor
) -> list[AgentMessage] | None:
    """Gives what changed since a cursor.

    Returns:
        Messages whose components take effect at one commit, the last with `seq`; `None` if the
        order changed in a way that needs a snapshot. A renderer that knows only the draft cannot
        take one: it gets what can be told.
    """
    main = screen.surfaces["main"]
    if profile.said_hello and not _tellable(main, profile, cursor.seq):
        return None
    turns = screen.turns.values()
    if profile.said_hello and any(_is_edited_since(turn, cursor) for turn in turns):
        return None
    if any(_is_large_part(main, turn, profile, cursor) for turn in screen.turns.values()):
        return None
    out: list[AgentMessage] = []
    renders: list[AgentMessage] = list(_removals(main, name, cursor.seq))
    finals: list[Commit] = []
    for turn in screen.turns.values():
        out.extend(_turn_since(main, turn, name, profile, cursor))
        renders.extend(_output_since(main, turn, name, profile, cursor))
        out.extend(_rest_of_part(main, turn, name, cursor))
        if turn.final and turn.seq > cursor.seq:
            finals.append(_ending(turn, name.session_id))
    for surface, tree in screen.surfaces.items():
        if surface != "main" and _changed(tree, cursor.seq):
            renders.append(_surface(surface, tree, name, profile))
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
    return [*out, *renders, *finals, closing]


def _tellable(tree: Tree, profile: Profile, since: int) -> bool:
    """Tells whether removing and adding at the end tells all that changed since a cursor."""
    takes_parts = not shows(profile, "group", 1)
    if tree.restructured > since or (takes_parts and tree.reshaped > since):
        return False
    removed = (gone.type for gone in tree.removed.values() if gone.seq > since >= gone.born)
    roots = (tree.nodes[root] for output in tree.outputs.values() for root in output)
    changed = (root.type for root in roots if root.seq > since >= root.born)
    return not any(may_take_other_ids(name, profile) for name in chain(removed, changed))


def _is_large_part(tree: Tree, turn: TurnScreen, profile: Profile, cursor: Cursor) -> bool:
    """Tells whether a text part is new since a cursor and does not go into one message.

    Its rest would have to follow as deltas, and those are told before the commit.
    """
    if profile.limits.max_message_bytes is None:
        return False
    news = [
        tree.component(name)
        for name in tree.outputs.get(turn.id, ())
        if tree.nodes[name].seq > cursor.seq and name != cursor.part
    ]
    return any(is_text_part(one, turn.id) and not fits_in(one, profile) for one in news)


def _is_edited_since(turn: TurnScreen, cursor: Cursor) -> bool:
    """Tells whether what began a turn was replaced: a renderer may have what stood there."""
    return bool(turn.inputs) and turn.inputs[0].edited and (turn.inputs[0].seq or 0) > cursor.seq


def _turn_since(
    tree: Tree, turn: TurnScreen, name: SessionName, profile: Profile, cursor: Cursor
) -> list[AgentMessage]:
    if turn.seq <= cursor.seq:
        return []
    return [
        *_marked(tree, turn, name, profile, cursor),
        *_statuses(turn, name.session_id),
    ]


def _marked(
    tree: Tree, turn: TurnScreen, name: SessionName, profile: Profile, cursor: Cursor
) -> Iterator[AgentMessage]:
    """Gives what a turn's marks stand for, in the order in which it came, as far as it is new."""
    session_id, since = name.session_id, cursor.seq
    for mark in turn.marks:
        behind = _behind(tree, mark, profile) if mark.seq > since else None
        if behind == Behind() and turn.marks[0].seq > since:
            behind = None  # nothing of this turn shows there yet
        match mark.kind:
            case "input":
                if mark.seq > since and profile.said_hello:
                    yield _told(turn.inputs[mark.number], behind)
            case "tool":
                yield from _tool(turn.tools[mark.number], session_id, turn.id, behind, since)
            case "thinking":
                if turn.thought > since and profile.takes("thinking"):
                    told = cursor.thinking if turn.id == cursor.turn else 0
                    yield _thinking(session_id, turn.id, turn.thinking[told:], behind)
            case _:
                if mark.seq > since:
                    payload = turn.errors[mark.number]
                    yield ErrorMessage(
                        payload=payload, session_id=session_id, turn_id=turn.id, behind=behind
                    )


def _behind(tree: Tree, mark: Mark, profile: Profile) -> Behind:
    """Gives the place of a mark by what this profile shows there."""
    name = mark.behind.component
    node = tree.nodes.get(name) if name is not None else None
    if node is None or not may_take_other_ids(node.type, profile):
        return mark.behind
    return Behind(shown_as(tree.component(node.id), profile)[-1].id)


def _output_since(
    tree: Tree, turn: TurnScreen, name: SessionName, profile: Profile, cursor: Cursor
) -> list[AgentMessage]:
    roots = [tree.nodes[root] for root in tree.outputs.get(turn.id, ())]
    changed = [root for root in roots if root.seq > cursor.seq and root.id != cursor.part]
    out: list[AgentMessage] = []
    for component in _shown((tree.component(root.id) for root in changed), profile):
        message = Render(session_id=name.session_id, turn_id=turn.id, components=[component])
        out.append(message)
    return out


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


def _told(echo: InputEcho, behind: Behind | None) -> InputEcho:
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
    )


def _tool(
    run: ToolRun, session_id: str, turn_id: str, behind: Behind | None, since: int
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


def _thinking(session_id: str, turn_id: str, text: str, behind: Behind | None) -> Delta:
    payload = DeltaPayload(text, kind="thinking")
    return Delta(session_id=session_id, turn_id=turn_id, payload=payload, behind=behind)


def _statuses(turn: TurnScreen, session_id: str) -> Iterator[TurnMessage]:
    """Gives the turn's status, behind the leave that its tools asked for."""
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
