"""Settings of redaction, in a module without other imports so that it loads fast."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct


class Pattern(Struct, frozen=True, forbid_unknown_fields=True):
    """Format of a token: a fixed prefix, then at least `least` characters of a set."""

    name: Annotated[str, Meta(min_length=1)]
    """Name of the rule in facts."""
    prefix: Annotated[str, Meta(pattern=r"^\S{2,64}\Z")]
    """First characters of each token; they are not removed."""
    characters: Annotated[str, Meta(min_length=1)] = "A-Za-z0-9_-"
    """Characters allowed after the prefix, as ranges and single characters."""
    least: Annotated[int, Meta(ge=4, le=64)] = 16
    """Smallest number of characters after the prefix."""


class Redaction(Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of redaction: whether secrets are removed, and how they are recognised."""

    enabled: bool = True
    """Whether secrets are removed."""
    environment: bool = True
    """Whether to remove the values of environment variables with the name of a secret."""
    fields: tuple[str, ...] = ()
    """Additional names of fields that contain secrets; case does not matter."""
    patterns: tuple[Pattern, ...] = ()
    """Additional formats of tokens."""
    secrets: tuple[str, ...] = ()
    """Values of secrets, each with 8 characters or more."""
