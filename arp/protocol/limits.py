"""The limits that the agent side advertises, and the limits that a renderer may set."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

Count = Annotated[int, Meta(ge=1, description="a number from 1")]
Seconds = Annotated[float, Meta(gt=0, description="a number above 0")]


MAX_LEVELS = 3
"""Levels of nested components (protocol.md 3)."""


class Limits(Struct, frozen=True):
    """Limits of what the agent side accepts and sends; advertised in its `hello`.

    Source: protocol.md 4. Each is at least 1.
    """

    max_surfaces: Count = 10
    """Surfaces of one session, including `main`."""
    max_components_per_commit: Count = 100
    """Components of one commit, including nested components."""
    max_pending_commits: Count = 2
    """Unacknowledged commits of a renderer with the feature `frame-ack`."""
    max_patch_ops: Count = 50
    """Patch operations of one commit."""
    max_component_depth: Count = MAX_LEVELS
    """Levels of nested components."""
    max_message_bytes: Count = 1 << 20
    """Size of one message."""
    max_upload_bytes: Count = 25 << 20
    """Size of one uploaded or saved file."""


class RendererLimits(Struct, frozen=True, omit_defaults=True):
    """Limits that a renderer sets in its `hello`; `None` means no limit of the renderer.

    Source: protocol.md 2.2.
    """

    max_commits_per_s: Annotated[float, Meta(gt=0, description="a number above 0")] | None = None
    max_message_bytes: Annotated[int, Meta(ge=1024, description="a number from 1024")] | None = None
    max_table_rows: Count | None = None
