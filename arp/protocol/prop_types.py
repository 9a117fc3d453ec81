"""The small types that props are made of: bounded strings, numbers, cells, the place of a child.

A bound has a `description`: the refusal says it after "expected". Patterns are linear in time
and mean the same in Python and in ECMAScript, so that published schemas can carry them.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec

from arp.protocol.json_value import JsonObject

_END = r"(?![\s\S])"
"""The true end of the string: `$` would let a line break follow."""

_NO_URL = r"\s\u0000-\u0020\u007f-\u00a0\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff<>\"\\"
_HTTP = rf"[Hh][Tt][Tt][Pp][Ss]?://[^{_NO_URL}]+"
_MAILTO = rf"[Mm][Aa][Ii][Ll][Tt][Oo]:[^{_NO_URL}]+"
_BLOB = r"/_api/blobs/[A-Za-z0-9][A-Za-z0-9._-]*(?:/[A-Za-z0-9][A-Za-z0-9._-]*)*"
_DATA_IMAGE = r"data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+={0,2}"

Cell: TypeAlias = str | int | float | bool | None
"""What a table or a key-value shows in one place."""

Number: TypeAlias = int | float

Row: TypeAlias = tuple[Cell, ...]

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, description="a whole number from 0")]

Size: TypeAlias = Annotated[float, msgspec.Meta(gt=0, le=10_000, description="a size in 1…10000")]
"""A width or height in CSS pixels; renderers without pixels take it as a proportion."""

Link: TypeAlias = Annotated[
    str,
    msgspec.Meta(
        pattern=rf"^(?:{_HTTP}|{_MAILTO}|{_BLOB}){_END}",
        description="an http, https or mailto address, or a path below /_api/blobs/",
    ),
]
"""Where a click may lead."""

ImageSource: TypeAlias = Annotated[
    str,
    msgspec.Meta(
        pattern=rf"^(?:{_HTTP}|{_DATA_IMAGE}|{_BLOB}){_END}",
        description="an http or https address, data:image/(png|jpeg|gif|webp);base64,…, "
        "or a path below /_api/blobs/",
    ),
]
"""Where an image comes from. No SVG: it can carry scripts."""

Color: TypeAlias = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^(?:#[0-9A-Fa-f]{3,8}|[A-Za-z][A-Za-z0-9-]{0,31}"
        rf"|(?:rgb|hsl)a?\([0-9.,%/ -]{{1,48}}\)){_END}",
        description='a colour such as "#36a2eb", "teal" or "rgb(54, 162, 235)"',
    ),
]
"""Narrow on purpose: no `url(…)` and no `expression(…)` reaches a style sheet."""

Language: TypeAlias = Annotated[
    str,
    msgspec.Meta(
        pattern=rf"^[A-Za-z0-9+#-]{{1,32}}{_END}",
        description='the name of a language such as "python", "c++" or "c#"',
    ),
]

Icon: TypeAlias = Annotated[
    str, msgspec.Meta(max_length=64, description="an icon's name or an emoji, up to 64 characters")
]

FieldName: TypeAlias = Annotated[
    str,
    msgspec.Meta(
        pattern=rf"^(?!__)(?!(?:constructor|prototype){_END})"
        rf"[^\u0000-\u001f\u007f:;=]{{1,128}}{_END}",
        description="a field name: 1…128 characters without : ; = and control characters, "
        "not beginning with two underscores",
    ),
]
"""Names become keys of an object in every language, and the left side of typed answers."""

ActionName: TypeAlias = Annotated[
    str,
    msgspec.Meta(min_length=1, max_length=128, description="an action name, 1…128 characters"),
]

IsoDate: TypeAlias = Annotated[
    str,
    msgspec.Meta(pattern=rf"^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}{_END}", description="YYYY-MM-DD"),
]

Ratio: TypeAlias = Annotated[
    str,
    msgspec.Meta(pattern=rf"^[1-9][0-9]?:[1-9][0-9]?{_END}", description='a ratio such as "1:2"'),
]

Direction: TypeAlias = Literal["vertical", "horizontal"]

QuestionState: TypeAlias = Literal["open", "answered", "expired", "cancelled"]
"""Where a question stands; absent is open (protocol.md 2.2)."""

CHILD = msgspec.Meta(description="a component", extra_json_schema={"$ref": "#/$defs/Component"})
"""Marks the places where a component stands inside of another's props."""

Child: TypeAlias = Annotated[JsonObject, CHILD]
