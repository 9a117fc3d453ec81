"""What one kind of renderer can take; renderers of the same profile share every frame."""

from __future__ import annotations

from functools import lru_cache

from msgspec import Struct

from arp.protocol.catalog import VERSIONS
from arp.protocol.component import Component
from arp.protocol.json_value import JsonObject
from arp.protocol.limits import RendererLimits
from arp.protocol.messages import RendererCapabilities
from arp.protocol.slots import take_children
from arp.surface.degrade import Supported, degrade


class Profile(Struct, frozen=True):
    """Capabilities in a form that can be compared and hashed."""

    versions: tuple[tuple[str, int], ...]
    features: frozenset[str]
    limits: RendererLimits = RendererLimits()
    said_hello: bool = True
    """A renderer that knows only the draft says none (protocol.md 2.2)."""

    def takes(self, feature: str) -> bool:
        """Tells whether the renderer named this feature."""
        return feature in self.features


def profile_of(capabilities: RendererCapabilities) -> Profile:
    """Gives the profile of a renderer that said `hello`; `text` is always among its components."""
    versions = {"text": 1, **capabilities.versions()}
    return Profile(
        tuple(sorted(versions.items())), frozenset(capabilities.features), capabilities.limits
    )


DRAFT = Profile(
    tuple(sorted(VERSIONS.items())), frozenset(("streaming", "input")), said_hello=False
)
"""A renderer that never says `hello`: everything offered, one component a `render`."""


@lru_cache(maxsize=256)
def supported(profile: Profile) -> Supported:
    """Gives what degrading needs to know of a profile."""
    return Supported(dict(profile.versions), profile.limits.max_table_rows)


def is_native(component: Component | JsonObject, profile: Profile) -> bool:
    """Tells whether a component and all in it is shown as it is."""
    known = supported(profile)
    if isinstance(component, Component):
        kind, version, props = component.type, component.version, component.props
    else:
        kind, version = component["type"], component.get("version", 1)
        props = component["props"]
    if known.versions.get(kind, 0) < version or (kind == "table" and known.max_table_rows is not None):
        return False
    return all(is_native(child, profile) for child in take_children(kind, props)[1])


def shown_as(component: Component, profile: Profile) -> list[Component]:
    """Gives a component as this profile shows it: itself, or something simpler with the same content."""
    if is_native(component, profile):
        return [component]
    return degrade(component, supported(profile))
