"""Surfaces besides `main`: how they are created, described, closed and transferred.

Theory of operation. A surface is created by a commit that also describes it, or by a plain commit
to a new name: then it is a toplevel without a title. Its role never changes. It is closed by a fact
of its own; what was placed on it is closed before it, and questions on it are over.

A popup or an overlay also has a *place* in the output of the turn that opened it: an empty group on
`main` under the name of the surface. A renderer without the feature `overlays` shows the components
there (`arp/view/inlined.py`); so they stand in order with the text of the turn on every renderer,
and go away when the popup does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import cast

import msgspec

from arp.protocol.catalog import take_children
from arp.protocol.components import Component
from arp.protocol.errors import ArpError, RoleConflict, SurfaceDestroyed, TransferDenied
from arp.protocol.json_value import Json, JsonObject
from arp.protocol.messages import CloseReason, SurfaceInfo
from arp.protocol.objects.messages import SurfaceTransferRequest
from arp.protocol.patch import Remove
from arp.protocol.tree import levels_of
from arp.session.effects import Effect, ResolveQuestion, SurfaceClosed
from arp.session.session import Session
from arp.surface.change import Change, PatchChange, RenderChange

MAX_TITLE = 200
"""Characters of a surface's title."""

TRANSFERRED = "transfer:"
"""What the id of a transfer has before it among the ids of inputs: both take effect once."""

MAX_TRANSFER_ID = 512
"""Characters of the id of a transfer; one that is signed has the giving session in it."""

ACQUIRED = "acquired"
"""What a surface is called that comes from another agent: its name there is nobody's business."""


def open_surface(
    session: Session,
    turn_id: str | None,
    name: str,
    info: SurfaceInfo,
    changes: Sequence[Change] = (),
) -> None:
    """Create a surface with its first components, or describe one that is there.

    Args:
        session: In which.
        turn_id: The turn that does it; `None`: no turn does, and only a toplevel can be created.
        name: Of the surface.
        info: What it is.
        changes: What it shows first.

    Raises:
        RoleConflict: The surface is there in another role.
        ArpError: A component or a limit. Nothing has changed.
    """
    is_new = name not in session.screen.surfaces
    if not is_new and session.screen.info(name).role != info.role:
        raise RoleConflict(
            f"surface {name!r} is a {session.screen.info(name).role}: a role never changes",
            detail=name,
        )
    if info.parent is not None and info.parent not in session.screen.surfaces:
        raise SurfaceDestroyed(f"there is no surface {info.parent!r}", detail=info.parent)
    session.commit(turn_id, name, changes, info=_plain(session, info))
    if is_new and info.is_transient and turn_id is not None:
        place = Component(name, "group", {"children": []})
        session.commit(turn_id, "main", [RenderChange([place])])


def describe_surface(
    session: Session, turn_id: str, name: str, *, title: str | None = None, **more: Json
) -> None:
    """Give a surface another title, or make it fullscreen; what is `None` stays as it is.

    Args:
        session: In which.
        turn_id: The turn that does it.
        name: Of a surface that is there.
        title: The new one.
        more: Other fields of its `SurfaceInfo` that change.

    Raises:
        SurfaceDestroyed: There is no such surface.
    """
    _check_there(session, name)
    before = session.screen.info(name)
    changed = {**more, **({} if title is None else {"title": title})}
    info = msgspec.structs.replace(before, **changed)
    if info != before or name not in session.screen.infos:
        payload: JsonObject = {"surface": name, "info": _plain(session, info)}
        session.in_turn("artifact.changed", turn_id, payload, artifact_id=name)


def close_surface(
    session: Session, name: str, reason: CloseReason, input_id: str | None = None
) -> list[Effect]:
    """Close a surface for every renderer, with what is placed on it and its open questions.

    Args:
        session: In which.
        name: Of the surface.
        reason: Why.
        input_id: Of the input by which a user closed it.

    Returns:
        What the agent is to be told.

    Raises:
        SurfaceDestroyed: There is no such surface; nothing has changed.
    """
    _check_there(session, name)
    effects: list[Effect] = []
    for placed in [one for one, entry in session.screen.infos.items() if entry.info.parent == name]:
        effects += close_surface(session, placed, "parent")
    effects += _close_questions(session, name, reason)
    entry = session.screen.infos.get(name)
    info = session.screen.info(name)
    payload: JsonObject = {"surface": name, "info": msgspec.to_builtins(info), "closed": reason}
    if input_id is not None:
        payload["inputId"] = input_id
    turn_id = entry.turn_id if entry is not None else None
    if turn_id is None or turn_id not in session.screen.turns:
        session.record("artifact.changed", payload, artifact_id=name)
    else:
        session.in_turn("artifact.changed", turn_id, payload, artifact_id=name)
    if info.is_transient and name in session.screen.main.nodes:
        with suppress(ArpError):  # the agent has put it into something else
            session.commit(turn_id, "main", [PatchChange([Remove(name)])])
    return [*effects, SurfaceClosed(name, reason)]


def _close_questions(session: Session, name: str, reason: CloseReason) -> Iterator[Effect]:
    """Close the open questions on a surface; a user who closes it declines what can be declined."""
    nodes = session.screen.surfaces[name].nodes
    for question in [one for one in session.questions.values() if one.surface == name]:
        is_awaited = question.turn_id == session.running
        node = nodes.get(question.component_id)
        declines = reason == "user" and node is not None and node.own.get("can_decline") is True
        if declines:
            session.decline_question(question, None)
        else:
            session.cancel_question(question)
        if is_awaited:
            yield ResolveQuestion(
                question.action_id, None, is_declined=declines, is_withdrawn=not declines
            )


def transfer_surface(
    source: Session, name: str, target: Session, *, retain_content: bool
) -> list[Effect]:
    """Give a toplevel surface of one session to another one, which may belong to the same user.

    Whoever calls it makes sure of that. The target learns nothing of the source but the surface,
    and the source nothing of the target.

    Args:
        source: Loses it.
        name: What it is called there.
        target: Gets it, under another name if it has a surface of this one.
        retain_content: Whether its components go along.

    Returns:
        What the agent of the source is to be told.

    Raises:
        SurfaceDestroyed: There is no such surface.
        TransferDenied: It is no toplevel, or the target can take no more. Nothing has changed.
    """
    _check_there(source, name)
    info = source.screen.info(name)
    if info.is_transient:
        raise TransferDenied(f"surface {name!r} is a {info.role}: only a toplevel can be given to "
                             "another session", detail=name)  # fmt: skip
    if len(target.screen.surfaces) >= target.rules.limits.max_surfaces:
        raise TransferDenied("the other session can take no more surfaces", detail=name)
    content = source.screen.surfaces[name].output() if retain_content else []
    info = msgspec.structs.replace(info, parent=None, fullscreen=False, serial=None)
    _take_over(target, name, info, content)
    return close_surface(source, name, "transferred")


def note_leaving(session: Session, name: str, request: SurfaceTransferRequest | None) -> None:
    """Record that renderers are asked to hand a surface over, so that a crash does not end that.

    Args:
        session: Has the surface.
        name: Of the surface.
        request: What they are asked; `None`: it stays.
    """
    leaving: JsonObject = {} if request is None else msgspec.to_builtins(request)
    session.record("artifact.changed", {"surface": name, "leaving": leaving}, artifact_id=name)


def has_taken(session: Session, transfer_id: str) -> bool:
    """Return whether a session has taken over the surface of a transfer before."""
    return TRANSFERRED + transfer_id in session.input_log


def acquire_surface(
    session: Session,
    title: str | None,
    components: Sequence[Component],
    transfer_id: str,
    source: str,
) -> str | None:
    """Take over a toplevel surface that another agent has given away, through a renderer.

    Args:
        session: Gets it.
        title: What users read above it; `None`: nothing.
        components: What it shows; nobody has checked them.
        transfer_id: Of the transfer, which takes effect once.
        source: The session that has given it away, as is proven.

    Returns:
        The name of the surface; `None` if it was taken over before, and nothing has changed.

    Raises:
        TransferDenied: The session can take no more surfaces.
        ArpError: A component does not fit the catalog, or a limit. Nothing is shown.
    """
    if len(transfer_id) > MAX_TRANSFER_ID:
        raise TransferDenied(f"transfer_id: more than {MAX_TRANSFER_ID} characters")
    if has_taken(session, transfer_id):
        return None
    if len(session.screen.surfaces) >= session.rules.limits.max_surfaces:
        raise TransferDenied("this session can take no more surfaces")
    name = _take_over(session, ACQUIRED, SurfaceInfo(title=title or ""), components)
    known: JsonObject = {
        "surface": name,
        "inputId": TRANSFERRED + transfer_id,
        "fromSession": source,
    }
    session.record("artifact.changed", known, artifact_id=name)
    return name


def _take_over(session: Session, name: str, info: SurfaceInfo, content: Sequence[Component]) -> str:
    """Create a surface that was somebody else's; return its name, which may be another."""
    free = next(one for one in _names(name) if one not in session.screen.surfaces)
    # Whole components at once as long as they fit into one commit.
    first, *rest = _batches(_renamed(content), session.rules.limits.max_components_per_commit)
    open_surface(session, None, free, info, [RenderChange(first)] if first else [])
    try:
        for batch in rest:
            session.commit(None, free, [RenderChange(batch)])
    except ArpError:
        close_surface(session, free, "agent")  # half of it is of no use to anybody
        raise
    return free


def _renamed(content: Sequence[Component]) -> list[Component]:
    """Return copies of components that have ids as agents may give them.

    What was said on a surface, and what a renderer shows in the place of a layout, has ids with a
    slash: those are made by the agent side, for its own session.
    """
    plain: list[JsonObject] = msgspec.json.decode(msgspec.json.encode(content))
    taken = {found["id"] for one in plain for found in _each(one)}
    for one in plain:
        for found in _each(one):
            if "/" in found["id"]:
                names = _names(found["id"].replace("/", "-"))
                found["id"] = next(name for name in names if name not in taken)
                taken.add(found["id"])
    return msgspec.convert(plain, list[Component])


def _each(component: JsonObject) -> Iterator[JsonObject]:
    """Yield a component and those in it, as objects that may be changed."""
    yield component
    try:
        _, children = take_children(component["type"], component["props"])
    except (KeyError, TypeError, AttributeError):
        return  # it fits no schema, and is refused for that
    for child in cast(list[Json], children):  # what a renderer sent, which nobody has checked
        if isinstance(child, dict) and isinstance(child.get("id"), str):
            yield from _each(child)


def _names(name: str) -> Iterator[str]:
    yield name
    number = 2
    while True:
        yield f"{name}-{number}"
        number += 1


def _batches(components: Sequence[Component], most: int) -> list[list[Component]]:
    """Divide components into lists that fit into one commit each; at least one, maybe empty."""
    out: list[list[Component]] = [[]]
    held = 0
    for component in components:
        size = _count(component)
        if out[-1] and held + size > most:
            out.append([])
            held = 0
        out[-1].append(component)
        held += size
    return out


def _count(component: Component) -> int:
    """Return how many components one has at most, itself included."""
    return 1 if levels_of(component) == 1 else msgspec.json.encode(component).count(b'"type"')


def _check_there(session: Session, name: str) -> None:
    if name == "main":
        raise SurfaceDestroyed("surface 'main' is always there: it cannot be closed or described")
    if name not in session.screen.surfaces:
        raise SurfaceDestroyed(f"there is no surface {name!r} (any more)", detail=name)


def _plain(session: Session, info: SurfaceInfo) -> JsonObject:
    """Return what a surface is as a fact has it, without secrets."""
    cleaned = session.log.clean_value({"title": info.title[:MAX_TITLE]})
    fields: JsonObject = msgspec.to_builtins(msgspec.structs.replace(info, title=cleaned["title"]))
    return fields
