"""Surfaces besides `main`: how they are created, described, closed and transferred.

Theory of operation. A surface is created by a commit that also describes it. A plain commit to a
new name creates a toplevel without a title. The role of a surface never changes. A surface is
closed by a fact of its own; before that, the surfaces placed on it are closed, and then its open
questions.

A popup or an overlay also has a *placeholder* in the output of the turn that opened it: an empty
group on `main` with the id of the surface. A renderer without the feature `overlays` shows the
components there (`arp/view/inlined.py`). So they appear in order with the text of the turn on every
renderer, and disappear with the popup.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import cast

import msgspec

from arp.protocol.catalog import split_children
from arp.protocol.components import Component
from arp.protocol.errors import ArpError, RoleConflict, SurfaceDestroyed, TransferDenied
from arp.protocol.json_value import Json, JsonObject
from arp.protocol.messages import CloseReason, SurfaceInfo
from arp.protocol.objects.messages import SurfaceTransferRequest
from arp.protocol.patch import Remove
from arp.protocol.tree import levels_of
from arp.session.asking import cancel_question, decline_question
from arp.session.effects import Effect, QuestionOutcome, ResolveQuestion, SurfaceClosed
from arp.session.session import Session
from arp.surface.change import Change, PatchChange, RenderChange

MAX_TITLE = 200
"""Maximum length of a surface's title, in characters."""

TRANSFERRED = "transfer:"
"""Prefix of transfer ids in the log of inputs. Transfers are remembered there because they, too,
take effect once."""

MAX_TRANSFER_ID = 512
"""Maximum length of a transfer id, in characters; a signed id contains the source session."""

ACQUIRED = "acquired"
"""Name of a surface that another agent transferred. Its name at that agent is not disclosed."""


def open_surface(
    session: Session,
    turn_id: str | None,
    name: str,
    info: SurfaceInfo,
    changes: Sequence[Change] = (),
) -> None:
    """Create a surface with its first components, or describe an existing one.

    Args:
        session: The session.
        turn_id: Turn that opens the surface. Without a turn only a toplevel can be created.
        name: Name of the surface.
        info: Description of the surface.
        changes: First components of the surface.

    Raises:
        RoleConflict: The surface exists with another role.
        ArpError: A component is refused or a limit is exceeded. Nothing has changed.
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
        placeholder = Component(name, "group", {"children": []})
        session.commit(turn_id, "main", [RenderChange([placeholder])])


def describe_surface(
    session: Session, turn_id: str, name: str, *, title: str | None = None, **more: Json
) -> None:
    """Change the description of a surface, for example its title or whether it is fullscreen.

    Args:
        session: The session.
        turn_id: Turn that makes the change.
        name: Name of an existing surface.
        title: New title; `None` keeps the current one.
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
    """Close a surface for every renderer, with the surfaces placed on it and its open questions.

    Args:
        session: The session.
        name: Name of the surface.
        reason: Reason, as recorded and sent to renderers.
        input_id: Id of the user's input that requested it; `None` if it has no id, or if no user
            requested it.

    Returns:
        Effects that inform the agent.

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
    # A fact of an evicted turn would bring that turn back to the screen, without its output.
    if turn_id is None or turn_id not in session.screen.turns:
        session.record("artifact.changed", payload, artifact_id=name)
    else:
        session.in_turn("artifact.changed", turn_id, payload, artifact_id=name)
    if info.is_transient and name in session.screen.main.nodes:
        with suppress(ArpError):  # the agent has moved the placeholder into another component
            session.commit(turn_id, "main", [PatchChange([Remove(name)])])
    return [*effects, SurfaceClosed(name, reason)]


def _close_questions(session: Session, name: str, reason: CloseReason) -> Iterator[Effect]:
    """Close the open questions on a surface, and yield the effects for the agents that wait.

    A user who closes the surface declines the questions that can be declined; the others are
    cancelled.
    """
    nodes = session.screen.surfaces[name].nodes
    for question in session.questions.on_surface(name):
        is_awaited = question.turn_id == session.running
        node = nodes.get(question.component_id)
        declines = reason == "user" and node is not None and node.own.get("can_decline") is True
        if declines:
            decline_question(session, question, None)
        else:
            cancel_question(session, question)
        if is_awaited:
            outcome = QuestionOutcome("declined" if declines else "withdrawn")
            yield ResolveQuestion(question.action_id, outcome)


def transfer_surface(
    source: Session, name: str, target: Session, *, retain_content: bool
) -> list[Effect]:
    """Move a toplevel surface from one session to another.

    The caller checks that the user may access both sessions. The target learns nothing about the
    source except the surface, and the source learns nothing about the target.

    Args:
        source: Session that gives the surface away.
        name: Name of the surface in the source.
        target: Session that receives it, under another name if this one is in use there.
        retain_content: Whether to move the components of the surface.

    Returns:
        Effects that inform the agent of the source.

    Raises:
        SurfaceDestroyed: There is no such surface.
        TransferDenied: It is not a toplevel, or the target has the maximum number of surfaces.
            Nothing has changed.
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
    # Create first, then close: if the target refuses a component, the source keeps the surface.
    _create_transferred(target, name, info, content)
    return close_surface(source, name, "transferred")


def note_leaving(session: Session, name: str, request: SurfaceTransferRequest | None) -> None:
    """Record the state of a transfer through renderers, so that it survives a crash.

    Args:
        session: Session that has the surface.
        name: Name of the surface.
        request: Request that renderers receive; `None` if the surface stays.
    """
    leaving: JsonObject = {} if request is None else msgspec.to_builtins(request)
    session.record("artifact.changed", {"surface": name, "leaving": leaving}, artifact_id=name)


def has_taken(session: Session, transfer_id: str) -> bool:
    """Return whether a session has already received the surface of a transfer."""
    return TRANSFERRED + transfer_id in session.input_log


def acquire_surface(
    session: Session,
    title: str | None,
    components: Sequence[Component],
    transfer_id: str,
    source: str,
) -> str | None:
    """Create a toplevel surface that another agent transferred through a renderer.

    Args:
        session: Session that receives the surface.
        title: Title of the surface; `None` for no title.
        components: Components of the surface, not validated yet.
        transfer_id: Id of the transfer, which takes effect once.
        source: Session that gave the surface away. The caller has verified it.

    Returns:
        The name of the surface; `None` if the transfer took effect before, and nothing has changed.

    Raises:
        TransferDenied: The session has the maximum number of surfaces.
        ArpError: A component does not fit the catalog, or a limit is exceeded. Nothing is shown.
    """
    if len(transfer_id) > MAX_TRANSFER_ID:
        raise TransferDenied(f"transfer_id: more than {MAX_TRANSFER_ID} characters")
    if has_taken(session, transfer_id):
        return None
    if len(session.screen.surfaces) >= session.rules.limits.max_surfaces:
        raise TransferDenied("this session can take no more surfaces")
    name = _create_transferred(session, ACQUIRED, SurfaceInfo(title=title or ""), components)
    known: JsonObject = {
        "surface": name,
        "inputId": TRANSFERRED + transfer_id,
        "fromSession": source,
    }
    session.record("artifact.changed", known, artifact_id=name)
    return name


def _create_transferred(
    session: Session, name: str, info: SurfaceInfo, content: Sequence[Component]
) -> str:
    """Create a surface with transferred content; return its name, `name` or a free variant."""
    free = next(one for one in _names(name) if one not in session.screen.surfaces)
    # The source may have filled the surface in many commits; one commit has a limit of its own.
    first, *rest = _batches(_renamed(content), session.rules.limits.max_components_per_commit)
    open_surface(session, None, free, info, [RenderChange(first)] if first else [])
    try:
        for batch in rest:
            session.commit(None, free, [RenderChange(batch)])
    except ArpError:
        close_surface(session, free, "agent")  # a half-filled surface must not stay
        raise
    return free


def _renamed(content: Sequence[Component]) -> list[Component]:
    """Return copies of components in which no id contains a slash.

    The agent side makes ids with a slash for the text of its own session, and for components that a
    renderer shows instead of a layout. Another session must not receive such ids.
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
    """Yield a component and its descendants, as objects that may be changed."""
    yield component
    try:
        _, children = split_children(component["type"], component["props"])
    except (KeyError, TypeError, AttributeError):
        return  # it fits no schema; the commit refuses it
    for child in cast(list[Json], children):  # sent by a renderer and not validated yet
        if isinstance(child, dict) and isinstance(child.get("id"), str):
            yield from _each(child)


def _names(name: str) -> Iterator[str]:
    """Yield a name, then the name with `-2`, `-3` and so on."""
    yield name
    number = 2
    while True:
        yield f"{name}-{number}"
        number += 1


def _batches(components: Sequence[Component], most: int) -> list[list[Component]]:
    """Split components into lists of at most `most` each; return at least one list, maybe empty."""
    out: list[list[Component]] = [[]]
    size = 0
    for component in components:
        added = _count(component)
        if out[-1] and size + added > most:
            out.append([])
            size = 0
        out[-1].append(component)
        size += added
    return out


def _count(component: Component) -> int:
    """Return an upper bound of the number of components in a component, itself included."""
    return 1 if levels_of(component) == 1 else msgspec.json.encode(component).count(b'"type"')


def _check_there(session: Session, name: str) -> None:
    if name == "main":
        raise SurfaceDestroyed("surface 'main' is always there: it cannot be closed or described")
    if name not in session.screen.surfaces:
        raise SurfaceDestroyed(f"there is no surface {name!r} (any more)", detail=name)


def _plain(session: Session, info: SurfaceInfo) -> JsonObject:
    """Return the description of a surface as facts store it, without secrets."""
    cleaned = session.log.clean_value({"title": info.title[:MAX_TITLE]})
    fields: JsonObject = msgspec.to_builtins(msgspec.structs.replace(info, title=cleaned["title"]))
    return fields
