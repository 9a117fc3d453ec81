"""Pictures in results are found, and left out where the result is told as text."""

from __future__ import annotations

import base64

from arp.tools.faces.pictures import pictures_in, without_pictures
from tests.tools.house import png

DATA = base64.b64encode(png()).decode()


def test_pictures_are_found_where_they_are() -> None:
    shot = {"content_type": "image/png", "base64": DATA}
    value = {"a": f"data:image/png;base64,{DATA}", "b": [1, {"c": shot}], "size": 7}
    found = pictures_in(value)
    assert [(one.path, one.mime) for one in found] == [("a", "image/png"), ("b[1].c", "image/png")]
    assert found[0].content == png()
    told = f"(image/png, {len(DATA)} characters)"
    assert without_pictures(value) == {"a": told, "b": [1, {"c": told}], "size": 7}


def test_what_is_no_picture_stays() -> None:
    for text in (
        "data:text/html;base64,PGI+",
        "data:image/svg+xml;base64,PHN2Zz4=",
        "data:image/png;base64,?",
    ):
        assert pictures_in([text]) == []
        assert without_pictures([text]) == [text]
    assert pictures_in({"content_type": "image/png", "base64": "=="}) == []
