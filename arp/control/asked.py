"""Parameters that many methods have, with what they may be."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from msgspec import Meta, Struct

SessionId: TypeAlias = Annotated[
    str, Meta(min_length=1, max_length=256, description="1 to 256 characters")
]
Id: TypeAlias = Annotated[
    str, Meta(min_length=1, max_length=256, description="1 to 256 characters")
]
TurnId: TypeAlias = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}\Z",
        description="1 to 64 letters, digits, - and _, not - or _ first",
    ),
]
"""Stands inside other ids, and in facts without escapes."""
ThreadId: TypeAlias = TurnId
"""As a turn's."""
Sequence: TypeAlias = Annotated[int, Meta(ge=0, le=2**53, description="a whole number from 0")]
Traceparent: TypeAlias = Annotated[
    str,
    Meta(
        pattern=r"^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-[^\s]{0,200})?\Z",
        description="a traceparent of W3C Trace Context",
    ),
]
Kinds: TypeAlias = Annotated[tuple[Id, ...], Meta(max_length=150, description="at most 150 types")]
"""Types of facts (`tool.failed`) or families (`tool`); none means all."""
Reason: TypeAlias = Annotated[
    str, Meta(min_length=1, max_length=2000, description="1 to 2000 characters")
]


class Asked(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Parameters of a method: by name, in camelCase, and no others."""


class OfSession(Asked, frozen=True, kw_only=True):
    """Parameters of a method about one session."""

    session_id: SessionId
