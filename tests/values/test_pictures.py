"""Figures and pictures as images."""

from __future__ import annotations

import io
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure
from PIL import Image

from arp import ui
from arp.protocol.errors import InvalidComponent, ResourceLimit
from arp.values.pictures import MAX_PICTURE_BYTES


def content(source: str) -> tuple[str, bytes]:
    """Return the kind and the bytes of an image in an address."""
    head, _, body = source.partition(";base64,")
    return head.removeprefix("data:image/"), b64decode(body)


def opened(source: str) -> Image.Image:
    return Image.open(io.BytesIO(content(source)[1]))


@pytest.fixture
def figure() -> Figure:
    made = Figure(figsize=(4, 3))
    axes = made.subplots()
    axes.plot([1, 2, 3])
    axes.set_title("Sales")
    return made


def test_figure_of_matplotlib_is_an_image_with_its_title(figure: Figure) -> None:
    made = ui.image(figure)
    assert made.props["alt"] == "Sales"
    kind, raw = content(made.props["src"])
    assert (kind, raw[:4]) == ("png", b"\x89PNG")
    assert opened(made.props["src"]).width > 300
    assert ui.image(figure, "Sales by month").props["alt"] == "Sales by month"
    axes: Any = figure.axes[0]
    assert ui.image(axes).props["alt"] == "Sales"
    figure.suptitle("2026")
    assert ui.image(figure).props["alt"] == "2026 – Sales"
    assert ui.image(Figure()).props["alt"] == "Figure"


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L", "P", "CMYK", "1", "F"])
def test_picture_of_pil_of_any_mode(mode: str) -> None:
    made = ui.image(Image.new(mode, (8, 4)), "a square")
    assert opened(made.props["src"]).size == (8, 4)


def test_large_picture_gets_fewer_pixels() -> None:
    made = ui.image(Image.effect_noise((2400, 1800), 100), "noise")
    kind, raw = content(made.props["src"])
    assert kind == "jpeg"
    assert len(raw) <= MAX_PICTURE_BYTES
    assert opened(made.props["src"]).width <= 2000


def test_bytes_and_files(tmp_path: Path) -> None:
    for form, kind in (("PNG", "png"), ("JPEG", "jpeg"), ("GIF", "gif"), ("WEBP", "webp")):
        buffer = io.BytesIO()
        Image.new("RGB", (2, 2)).save(buffer, form)
        raw = buffer.getvalue()
        assert content(ui.image(raw, "x").props["src"]) == (kind, raw)
        path = tmp_path / f"x.{kind}"
        path.write_bytes(raw)
        assert content(ui.image(path, "x").props["src"]) == (kind, raw)


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda: ui.image(b"<svg/>", "x"), InvalidComponent, "not a PNG, JPEG, GIF or WebP"),
        (lambda: ui.image(Path("/nowhere/x.png"), "x"), FileNotFoundError, "x.png"),
        (
            lambda: ui.image(b"\x89PNG\r\n\x1a\n" + bytes(MAX_PICTURE_BYTES), "x"),
            ResourceLimit,
            "at most 716,800 in a component: store it with turn.save_file",
        ),
        (lambda: ui.image("https://example.org/x.png"), InvalidComponent, "alt: say in words"),
        (lambda: ui.image(3, "x"), InvalidComponent, "src: expected string, got number"),
    ],
)
def test_what_is_no_picture_is_refused(make: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error) as refused:
        make()
    assert says in str(refused.value)
