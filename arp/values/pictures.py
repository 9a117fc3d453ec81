"""Convert figures and pictures to `data:` URLs."""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Callable
from io import BytesIO
from itertools import product
from typing import Any, Final

from arp.protocol.errors import InvalidComponent, ResourceLimit

MAX_PICTURE_BYTES: Final = 700 << 10
"""Largest image in a component, in bytes before base64. A message has at most 1 MiB."""

_MIMES: Final = (
    (b"\x89PNG\r\n\x1a\n", "png"),
    (b"\xff\xd8\xff", "jpeg"),
    (b"GIF8", "gif"),
)

_FIGURE_DPI: Final = (144, 100, 72, 50)
"""Resolutions of a figure in dpi, tried in this order until the image is small enough."""

_SMALLER: Final = (2000, 1400, 1000, 700)
"""Longest sides of a picture in pixels, tried in this order until the image is small enough."""


def picture_kind(value: Any) -> str:
    """Return the kind of a picture: `matplotlib`, `PIL`, `bytes` or `path`; empty for others."""
    if isinstance(value, bytes | bytearray | memoryview):
        return "bytes"
    if isinstance(value, os.PathLike):
        return "path"
    for kind in type(value).__mro__:
        library = kind.__module__.partition(".")[0]
        if (library, kind.__name__) == ("matplotlib", "Artist"):  # figures and axes are artists too
            return "matplotlib"
        if (library, kind.__name__) == ("PIL", "Image"):
            return "PIL"
    return ""


def source_of(value: Any) -> str:
    """Return a picture as a `data:` URL.

    Args:
        value: Figure or axes of matplotlib, picture of PIL, bytes of a PNG, JPEG, GIF or WebP, or
            path of such a file.

    Raises:
        InvalidComponent: The value is not a picture of a supported kind.
        ResourceLimit: The picture is too large, even with fewer pixels.
        OSError: The file cannot be read.
    """
    readers: dict[str, Callable[[Any], bytes]] = {
        "matplotlib": _of_figure,
        "PIL": _of_pil,
        "bytes": bytes,
        "path": _of_path,
    }
    kind = picture_kind(value)
    if not kind:
        raise InvalidComponent(
            f"ui.image: src: expected an address, a figure, a picture or its bytes, "
            f"got {type(value).__name__}"
        )
    content = readers[kind](value)
    mime = picture_type(content)
    if not mime:
        raise InvalidComponent("ui.image: src: these bytes are not a PNG, JPEG, GIF or WebP")
    if len(content) > MAX_PICTURE_BYTES:
        raise ResourceLimit(
            f"ui.image: src: {len(content):,} bytes; at most {MAX_PICTURE_BYTES:,} in a component: "
            "store it with turn.save_file, and pass turn.file_url(…) as src"
        )
    return f"data:image/{mime};base64,{b64encode(content).decode()}"


def description_of(value: Any) -> str:
    """Return a description of a picture: the titles of a figure, or `Figure` or `Picture`."""
    if picture_kind(value) != "matplotlib":
        return "Picture"
    figure = _figure(value)
    main_title = getattr(figure, "get_suptitle", str)()
    titles = [main_title, *(axes.get_title() for axes in figure.get_axes())]
    return " – ".join(dict.fromkeys(filter(None, titles))) or "Figure"


def figure_of_parts(value: Any) -> Any:
    """Return the figure of the values that plotting functions return: axes, lines or bars.

    Returns:
        The figure; `None` if the values are of another kind, or belong to several figures.
    """
    if type(value).__module__ == "numpy" and value.dtype.kind == "O":
        value = value.reshape(-1).tolist()
    if not isinstance(value, list | tuple) or not value:
        return None
    if any(picture_kind(one) != "matplotlib" for one in value):
        return None
    figures = [_figure(one) for one in value]
    return figures[0] if all(one is figures[0] for one in figures) else None


def _figure(value: Any) -> Any:
    return value.figure if type(value).__name__ != "Figure" and hasattr(value, "figure") else value


def _of_path(path: str | os.PathLike[str]) -> bytes:
    from pathlib import Path

    return Path(path).read_bytes()


def _of_figure(value: Any) -> bytes:
    figure = _figure(value)
    content = b""
    # A figure that contains a photo is many times smaller as JPEG.
    for dpi, form in product(_FIGURE_DPI, ("png", "jpeg")):
        buffer = BytesIO()
        figure.savefig(buffer, format=form, dpi=dpi, bbox_inches="tight")
        content = buffer.getvalue()
        if len(content) <= MAX_PICTURE_BYTES:
            break
    return content


def _of_pil(picture: Any) -> bytes:
    content = _saved(picture, "PNG")
    if len(content) <= MAX_PICTURE_BYTES:
        return content
    # A photo is many times smaller as JPEG, but JPEG has no transparency.
    plain = picture.convert("RGB")
    for side in _SMALLER:
        plain.thumbnail((side, side))
        content = _saved(plain, "JPEG")
        if len(content) <= MAX_PICTURE_BYTES:
            break
    return content


def _saved(picture: Any, form: str) -> bytes:
    buffer = BytesIO()
    if form == "PNG" and picture.mode not in ("1", "L", "LA", "P", "RGB", "RGBA", "I;16"):
        picture = picture.convert("RGBA")
    picture.save(buffer, form)
    return buffer.getvalue()


def picture_type(content: bytes) -> str:
    """Return the image format of bytes: `png`, `jpeg`, `gif` or `webp`; empty for others."""
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "webp"
    return next((mime for start, mime in _MIMES if content.startswith(start)), "")
