"""What one kind of renderer can take; renderers of the same profile share every frame."""

from __future__ import annotations

from functools import lru_cache

from msgspec import Struct

from arp.protocol.catalog import VERSIONS, may_have_parts, take_children
from arp.protocol.components import Component, from_object
from arp.protocol.json_value import JsonObject
from arp.protocol.limits import RendererLimits
from arp.protocol.messages import RendererCapabilities
from arp.protocol.tree import Node
from arp.surface.degrade import Supported, degrade
from arp.surface.draft_answer import understand_draft
from arp.surface.typed_answer import understand
from arp.view.fitting import fits, room, shrunk


class Profile(Struct, frozen=True):
    """Capabilities in a form that can be compared and hashed."""

    versions: tuple[tuple[str, int], ...]
    features: frozenset[str]
    limits: RendererLimits = RendererLimits()
    said_hello: bool = True
    """A renderer that knows only the draft says none (protocol.md 2.2)."""
    ends_at_questions: bool = False
    """It gets a final commit whenever the agent waits for it, since it sends nothing before one."""

    def takes(self, feature: str) -> bool:
        """Return whether the renderer named this feature."""
        return feature in self.features


def profile_of(capabilities: RendererCapabilities, *, is_assumed: bool = False) -> Profile:
    """Return the profile of a renderer; `text` is always among its components.

    Args:
        capabilities: What it shows.
        is_assumed: It has not said so: it knows only the draft.
    """
    versions = {"text": 1, **capabilities.versions()}
    features = frozenset(capabilities.features)
    profile = Profile(
        tuple(sorted(versions.items())),
        features,
        capabilities.limits,
        ends_at_questions=is_assumed,
    )
    return _shared(profile)


@lru_cache(maxsize=1024)
def _shared(profile: Profile) -> Profile:
    """Return the first of equal profiles, so that a thousand renderers of a kind hold one."""
    return profile


DRAFT = Profile(
    tuple(sorted(VERSIONS.items())),
    frozenset(("streaming", "input")),
    said_hello=False,
    ends_at_questions=True,
)
"""A renderer that never says `hello`: everything offered, one component a `render`."""


@lru_cache(maxsize=256)
def supported(profile: Profile) -> Supported:
    """Return what degrading needs to know of a profile."""
    return Supported(dict(profile.versions), profile.limits.max_table_rows)


def shows(profile: Profile, type_name: str, version: int) -> bool:
    """Return whether a component of this type and version is shown as it is, whatever is in it."""
    known = supported(profile)
    if known.versions.get(type_name, 0) < version:
        return False
    return type_name != "table" or known.max_table_rows is None


def is_native(component: Component, profile: Profile) -> bool:
    """Return whether a component and all in it is shown as it is."""
    return fits_in(component, profile) and _is_known(component, profile)


def fits_in(value: object, profile: Profile) -> bool:
    """Return whether a component or an op goes into one message of this profile."""
    most = room(profile.limits)
    return most is None or fits(value, most)


def _is_known(component: Component, profile: Profile) -> bool:
    if not shows(profile, component.type, component.version):
        return False
    children = take_children(component.type, component.props)[1]
    return all(_is_known(from_object(child), profile) for child in children)


def stands_native(node: Node, profile: Profile) -> bool:
    """Return whether a component, and those that contain it, are shown as they are.

    What is in it may not be: its own props and its list of children are what this is about.
    """
    at: Node | None = node
    while at is not None:
        if not shows(profile, at.type, at.component.version):
            return False
        at = at.parent
    return True


def may_take_other_ids(type_name: str, profile: Profile) -> bool:
    """Return whether this profile may show a component as others, under ids that are not its own.

    So stand the children of a layout in its place where a renderer does not even know `group`; the
    fallback of a custom component may be such a layout.
    """
    return may_have_parts(type_name) and not shows(profile, "group", 1)


def shown_as(component: Component, profile: Profile) -> list[Component]:
    """Return a component as this profile shows it: itself, or something simpler that says as much.

    The ids are its own, or those of what stands in its place (see `may_take_other_ids`).
    """
    if is_native(component, profile):
        return [component]
    pieces = degrade(component, supported(profile))
    most = room(profile.limits)
    if most is None:
        return pieces
    return [shrunk(piece, most, profile.limits.max_table_rows) for piece in pieces]


def typed_answer(
    profile: Profile, component: Component, text: str
) -> tuple[str, JsonObject] | None:
    """Read a typed line as the answer to an open question.

    Only a renderer that shows the question as text may answer it so; a client without `hello` may
    answer it as the draft's own client does.

    Returns:
        The input type and its data; `None` if the line is no answer.
    """
    if not profile.said_hello:
        return understand_draft(component, text)
    is_text = component.type not in supported(profile).versions or not fits_in(component, profile)
    return understand(component, text) if is_text else None
