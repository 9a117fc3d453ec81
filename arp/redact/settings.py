"""What can be set about what is taken out of facts. Apart from the work, so that it loads fast."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct


class Pattern(Struct, frozen=True, forbid_unknown_fields=True):
    """Tokens of one's own kind: something known, then at least so many characters of a set."""

    name: Annotated[str, Meta(min_length=1)]
    """The name of the rule in facts."""
    prefix: Annotated[str, Meta(pattern=r"^\S{2,64}\Z")]
    """The text with which these tokens begin; it is not removed."""
    characters: Annotated[str, Meta(min_length=1)] = "A-Za-z0-9_-"
    """The characters after the prefix, as ranges and single characters."""
    least: Annotated[int, Meta(ge=4, le=64)] = 16
    """How many of them there are at least."""


class Redaction(Struct, frozen=True, forbid_unknown_fields=True):
    """What is taken out of facts."""

    enabled: bool = True
    """Whether secrets are removed."""
    environment: bool = True
    """Remove the values of environment variables whose names say that they are secret."""
    fields: tuple[str, ...] = ()
    """More names of fields that hold secrets, in upper or lower case."""
    patterns: tuple[Pattern, ...] = ()
    """More formats of tokens."""
    secrets: tuple[str, ...] = ()
    """Secrets by value, of 8 characters or more."""
