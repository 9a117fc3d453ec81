"""Build frames that a renderer sends, as JSON objects."""

from __future__ import annotations

from typing import Any


def hello(*components: str, features: list[str] | None = None, **fields: object) -> dict[str, Any]:
    """Return the `hello` of a renderer.

    Args:
        components: Component types that the renderer can draw.
        features: Features of the renderer; `None` leaves the field out.
        fields: More fields of the `hello`, such as `session_id`.
    """
    capabilities: dict[str, object] = {"components": list(components)}
    if features is not None:
        capabilities["features"] = features
    return {"v": 1, "type": "hello", "capabilities": capabilities, **fields}
