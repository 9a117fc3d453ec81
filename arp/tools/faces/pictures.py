"""Pictures in the results of tools.

The interface document does not define pictures. A tool may return a picture anywhere in its result:
as a text `data:image/png;base64,…`, or as an object `{"content_type": "image/png", "base64": "…"}`.
The picture is shown as an image, and a short text takes its place in the rest of the result.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from collections.abc import Iterator
from itertools import islice
from typing import Final, NamedTuple

from arp.protocol.json_value import Json

MAX_PICTURES: Final = 8
"""Maximum number of pictures that one result shows; further ones appear only as a short text."""
MAX_BASE64: Final = 24 << 20
"""Maximum length of one picture as text, in characters."""
_PICTURE: Final = re.compile(r"data:(image/(?:png|jpeg|gif|webp));base64,([A-Za-z0-9+/]+={0,2})")


class Picture(NamedTuple):
    """Picture in a result."""

    path: str
    """Path in the result, such as `image` or `frames[2]`."""
    mime: str
    base64: str

    @property
    def content(self) -> bytes:
        """Decoded bytes."""
        return b64decode(self.base64)


def pictures_in(value: Json) -> list[Picture]:
    """Return the pictures in a result, in order."""
    return list(islice(_found(value, ""), MAX_PICTURES))


def without_pictures(value: Json) -> Json:
    """Return a result with a short text in place of each picture."""
    if isinstance(value, str | dict) and (picture := _picture("", value)) is not None:
        return f"({picture.mime}, {len(picture.base64)} characters)"
    if isinstance(value, list):
        return [without_pictures(one) for one in value]
    if isinstance(value, dict):
        return {name: without_pictures(one) for name, one in value.items()}
    return value


def _picture(path: str, value: Json) -> Picture | None:
    """Return the picture in a value; `None` if the value is not a picture."""
    if isinstance(value, dict):
        if set(value) != {"content_type", "base64"}:
            return None
        value = f"data:{value['content_type']};base64,{value['base64']}"
    if not value.startswith("data:image/") or len(value) > MAX_BASE64:
        return None
    match = _PICTURE.fullmatch(value)
    if match is None:
        return None
    picture = Picture(path, match[1], match[2])
    try:
        return picture if picture.content else None
    except binascii.Error:
        return None


def _found(value: Json, path: str) -> Iterator[Picture]:
    if isinstance(value, str | dict) and (picture := _picture(path, value)) is not None:
        yield picture
    elif isinstance(value, list):
        for number, one in enumerate(value):
            yield from _found(one, f"{path}[{number}]")
    elif isinstance(value, dict):
        for name, one in value.items():
            yield from _found(one, f"{path}.{name}" if path else name)
