"""What can be set about what is taken out of facts. Apart from the work, so that it loads fast."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct


class Pattern(Struct, frozen=True, forbid_unknown_fields=True):
    """Tokens of one's own kind: something known, then at least so many characters of a set."""

    name: Annotated[str, Meta(min_length=1)]
    """What facts call it."""
    prefix: Annotated[str, Meta(pattern=r"^\S{2,64}\Z")]
    """What they begin with, as it is; it stays."""
    characters: Annotated[str, Meta(min_length=1)] = "A-Za-z0-9_-"
    """What follows, as ranges and characters."""
    least: Annotated[int, Meta(ge=4, le=64)] = 16
    """How many at least."""


class Redaction(Struct, frozen=True, forbid_unknown_fields=True):
    """What is taken out of facts."""

    enabled: bool = True
    """Whether anything is."""
    environment: bool = True
    """Values of environment variables whose names say that they are secret."""
    fields: tuple[str, ...] = ()
    """Names of fields that hold secrets, besides those that are known; in any case."""
    patterns: tuple[Pattern, ...] = ()
    """Shapes of tokens, besides those that are known."""
    secrets: tuple[str, ...] = ()
    """Secrets themselves, of 8 characters or more."""
