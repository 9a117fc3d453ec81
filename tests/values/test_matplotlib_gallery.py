"""Figures as in matplotlib's gallery: each is a picture of a size that a component takes."""

from __future__ import annotations

import io
from base64 import b64decode
from collections.abc import Callable
from datetime import date, timedelta
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from PIL import Image

from arp.protocol.validate import check_component
from arp.values.display import as_component, components_of
from arp.values.pictures import MAX_PICTURE_BYTES

X = np.linspace(0, 6, 40)
GRID = np.add.outer(np.sin(X), np.cos(X))
RANDOM = np.random.default_rng(7)
MANY = RANDOM.normal(size=400)

ON_AXES: dict[str, Callable[[Any], object]] = {
    "plot": lambda axes: axes.plot(X, np.sin(X), X, np.cos(X)),
    "scatter": lambda axes: axes.scatter(MANY, MANY[::-1], c=MANY, s=20 + 10 * abs(MANY)),
    "bar": lambda axes: axes.bar(["a", "b", "a"], [1, 2, 3]),
    "bar labels": lambda axes: axes.bar_label(axes.bar(["a", "b"], [1, 2])),
    "barh": lambda axes: axes.barh(["a", "b"], [1, 2]),
    "grouped bars": lambda axes: [axes.bar(X[:4] + at, X[:4], 0.3) for at in (0, 0.3)],
    "stem": lambda axes: axes.stem(X, np.sin(X)),
    "fill between": lambda axes: axes.fill_between(X, np.sin(X), np.cos(X), alpha=0.4),
    "stackplot": lambda axes: axes.stackplot(X, X, 6 - X, labels=["up", "down"]),
    "stairs": lambda axes: axes.stairs([1, 3, 2], fill=True),
    "step": lambda axes: axes.step(X, np.sin(X), where="mid"),
    "hist": lambda axes: axes.hist(MANY, bins=30),
    "boxplot": lambda axes: axes.boxplot([MANY, MANY + 1]),
    "violinplot": lambda axes: axes.violinplot([MANY, MANY + 1]),
    "errorbar": lambda axes: axes.errorbar(X, np.sin(X), yerr=0.2),
    "eventplot": lambda axes: axes.eventplot([MANY[:20], MANY[20:40]]),
    "hist2d": lambda axes: axes.hist2d(MANY, MANY[::-1]),
    "hexbin": lambda axes: axes.hexbin(MANY, MANY[::-1], gridsize=20),
    "pie": lambda axes: axes.pie([1, 2, 3], labels=["a", "b", "c"]),
    "ecdf": lambda axes: axes.ecdf(MANY),
    "imshow": lambda axes: axes.imshow(GRID),
    "matshow": lambda axes: axes.matshow(GRID),
    "pcolormesh": lambda axes: axes.pcolormesh(GRID),
    "contour": lambda axes: axes.clabel(axes.contour(GRID)),
    "contourf": lambda axes: axes.contourf(GRID),
    "barbs": lambda axes: axes.barbs([0, 1], [0, 1], [10, 40], [5, 60]),
    "quiver": lambda axes: axes.quiver(X[:9], X[:9], np.sin(X[:9]), np.cos(X[:9])),
    "streamplot": lambda axes: axes.streamplot(X, X, GRID, GRID.T),
    "tripcolor": lambda axes: axes.tripcolor(MANY[:50], MANY[50:100], MANY[:50]),
    "triplot": lambda axes: axes.triplot(MANY[:50], MANY[50:100]),
    "spy": lambda axes: axes.spy(GRID > 1),
    "broken bars": lambda axes: axes.broken_barh([(1, 2), (4, 1)], (0, 1)),
    "log axes": lambda axes: axes.loglog(X + 1, np.exp(X)),
    "dates": lambda axes: axes.plot([date(2026, 1, 1) + timedelta(one) for one in range(9)], X[:9]),
    "annotation": lambda axes: axes.annotate("here", (0.5, 0.5), (0.1, 0.9), arrowprops={}),
    "formula": lambda axes: axes.text(0.1, 0.5, r"$\int_0^\infty e^{-x^2} dx = \sqrt{\pi}/2$"),
    "table": lambda axes: axes.table([["1", "2"]], colLabels=["a", "b"]),
    "legend outside": lambda axes: axes.plot(X, label="x")[0].axes.legend(loc=(1.1, 0)),
    "lines across": lambda axes: (axes.axhline(0.5), axes.axvspan(0.2, 0.4)),
    "two axes": lambda axes: (axes.plot(X), axes.twinx().plot(np.exp(X), "r")),
    "inset": lambda axes: axes.inset_axes((0.5, 0.5, 0.4, 0.4)).plot(X),
    "gaps": lambda axes: axes.plot([1, 2, np.nan, 4]),
    "colour bar": lambda axes: axes.figure.colorbar(axes.imshow(GRID)),
    "nothing": lambda axes: axes.set_axis_off(),
}


def picture(value: Any) -> tuple[str, Image.Image]:
    """Return the description and the picture that one value shows as."""
    (component,) = components_of(value, "turn.show")
    made = check_component(component, empty_ids=True)
    head, _, body = made.props["src"].partition(";base64,")
    content = b64decode(body)
    assert (made.type, head) == ("image", "data:image/png")
    assert len(content) <= MAX_PICTURE_BYTES
    return made.props["alt"], Image.open(io.BytesIO(content))


def ink(image: Image.Image) -> int:
    """Return how many pixels are not white."""
    return int((np.asarray(image.convert("L")) < 250).sum())


OFTEN = ("plot", "bar", "hist", "pie", "imshow", "contour", "dates", "nothing")
"""Figures that every run of the tests draws; it takes a second to draw ten."""

GALLERY = [
    pytest.param(name, marks=[] if name in OFTEN else [pytest.mark.slow]) for name in ON_AXES
]


def test_there_are_forty() -> None:
    assert len(ON_AXES) >= 40


@pytest.mark.parametrize("name", GALLERY)
def test_figure_is_a_picture_with_its_title(name: str) -> None:
    figure = Figure(figsize=(4, 3))
    axes = figure.subplots()
    bare = ink(picture(figure)[1])
    ON_AXES[name](axes)
    axes.set_title(f"With {name}")
    alt, image = picture(figure)
    assert alt == f"With {name}"
    assert image.width > 300
    assert ink(image) > 0
    assert name == "nothing" or ink(image) != bare


def test_what_plotting_functions_return_shows_the_whole_figure_once() -> None:
    figure = Figure(figsize=(4, 3))
    axes = figure.subplots(2, 2)
    lines = axes[0, 0].plot(X)
    bars = axes[0, 1].bar(["a"], [1])
    whole = picture(figure)[1]
    for part in (axes, axes[0, 0], lines, lines[0], bars, list(axes.flat)):
        assert picture(part)[1].tobytes() == whole.tobytes()
    frame = pd.DataFrame({"a": MANY, "b": MANY[::-1]})
    plots = frame.plot(subplots=True, ax=Figure().subplots(2))
    assert ink(picture(plots)[1]) > 0


def test_parts_of_two_figures_are_two_pictures() -> None:
    two = [Figure(figsize=(1, 1)), Figure(figsize=(1, 1))]
    assert [one.type for one in components_of(two, "turn.show")] == ["image", "image"]


@pytest.mark.parametrize("projection", ["polar", "3d"])
def test_other_projections_are_pictures(projection: str) -> None:
    figure = Figure(figsize=(3, 3))
    figure.add_subplot(projection=projection).plot(X, X)
    assert ink(picture(figure)[1]) > 0


@pytest.mark.slow
def test_figure_of_many_pixels_gets_fewer() -> None:
    figure = Figure(figsize=(12, 9))
    figure.add_axes((0, 0, 1, 1)).imshow(RANDOM.random((1200, 1600)), interpolation="nearest")
    made = as_component(figure, "turn.show")
    assert len(b64decode(made.props["src"].partition(",")[2])) <= MAX_PICTURE_BYTES
