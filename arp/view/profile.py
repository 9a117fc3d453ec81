"""Profiles: the capabilities of renderers. Renderers with the same profile share every frame."""

from __future__ import annotations

from functools import lru_cache

from msgspec import Struct

from arp.protocol.catalog import VERSIONS, may_have_parts, split_children
from arp.protocol.components import Component, from_object
from arp.protocol.json_value import JsonObject
from arp.protocol.limits import RendererLimits
from arp.protocol.messages import RendererCapabilities
from arp.protocol.tree import Node
from arp.surface.degrade import RendererSupport, degrade
from arp.surface.draft_answer import understand_draft
from arp.surface.typed_answer import understand
from arp.view.fitting import fits, room, shrunk


class Profile(Struct, frozen=True, cache_hash=True):
    """Capabilities of a renderer as a value that can be hashed: the key of the caches below."""

    versions: tuple[tuple[str, int], ...]
    features: frozenset[str]
    limits: RendererLimits = RendererLimits()
    said_hello: bool = True
    """Whether the renderer sent `hello`; a renderer of the draft does not (protocol.md 2.2)."""
    ends_at_questions: bool = False
    """Whether the renderer gets a final commit when the agent waits for the user. A renderer of the
    draft sends nothing before one."""

    def takes(self, feature: str) -> bool:
        """Return whether the renderer has a feature."""
        return feature in self.features


def profile_of(capabilities: RendererCapabilities, *, is_assumed: bool = False) -> Profile:
    """Return the profile of a renderer; `text` is always among its components.

    Args:
        capabilities: Its capabilities.
        is_assumed: Whether they are only assumed, because the renderer is one of the draft.
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
    """Return the first of equal profiles, so that equal renderers share one object."""
    return profile


DRAFT = Profile(
    tuple(sorted(VERSIONS.items())),
    frozenset(("streaming", "input")),
    said_hello=False,
    ends_at_questions=True,
)
"""Profile of a renderer without `hello`: all components, one per `render`."""


@lru_cache(maxsize=256)
def supported(profile: Profile) -> RendererSupport:
    """Return the part of a profile that `degrade` needs."""
    return RendererSupport(dict(profile.versions), profile.limits.max_table_rows)


def shows(profile: Profile, type_name: str, version: int) -> bool:
    """Return whether a type and version is shown natively, whatever its props and children."""
    known = supported(profile)
    if known.versions.get(type_name, 0) < version:
        return False
    return type_name != "table" or known.max_table_rows is None


def is_native(component: Component, profile: Profile) -> bool:
    """Return whether a component and all its descendants are shown natively."""
    return fits_in(component, profile) and _is_known(component, profile)


def fits_in(value: object, profile: Profile) -> bool:
    """Return whether a component or an operation fits into one message of this profile."""
    most = room(profile.limits)
    return most is None or fits(value, most)


def _is_known(component: Component, profile: Profile) -> bool:
    if not shows(profile, component.type, component.version):
        return False
    children = split_children(component.type, component.props)[1]
    return all(_is_known(from_object(child), profile) for child in children)


def stands_native(node: Node, profile: Profile) -> bool:
    """Return whether a component and its ancestors are shown natively.

    Its children may not be. A change of its own props or of its list of children then passes.
    """
    ancestor: Node | None = node
    while ancestor is not None:
        if not shows(profile, ancestor.type, ancestor.component.version):
            return False
        ancestor = ancestor.parent
    return True


def may_take_other_ids(type_name: str, profile: Profile) -> bool:
    """Return whether this profile may show a component as pieces with other ids.

    A renderer without `group` shows the children of a layout in its place. The fallback of a custom
    component may be such a layout.
    """
    return may_have_parts(type_name) and not shows(profile, "group", 1)


def shown_as(component: Component, profile: Profile) -> list[Component]:
    """Return the pieces that show a component: the component itself, or simpler components.

    A single piece has the id of the component; other ids are possible only if
    `may_take_other_ids` is true.
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
    """Parse a typed line as the answer to an open question.

    Only a renderer that shows the question as text may answer with a line. A client without `hello`
    may answer in the format of the draft's own client.

    Returns:
        The input type and its data; `None` if the line is not an answer.
    """
    if not profile.said_hello:
        return understand_draft(component, text)
    is_text = component.type not in supported(profile).versions or not fits_in(component, profile)
    return understand(component, text) if is_text else None
