"""Frames that a renderer sends, as JSON objects."""

from __future__ import annotations

from typing import Any


def hello(*components: str, features: list[str] | None = None, **fields: object) -> dict[str, Any]:
    """Return a `hello`.

    Args:
        components: The component types that the renderer draws.
        features: Its features; `None` leaves them out.
        fields: Other fields, such as `session_id`.
    """
    capabilities: dict[str, object] = {"components": list(components)}
    if features is not None:
        capabilities["features"] = features
    return {"v": 1, "type": "hello", "capabilities": capabilities, **fields}
