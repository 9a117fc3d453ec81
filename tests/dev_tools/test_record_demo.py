"""The animated picture of the first minute: that it can be made, and that it fits the README."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from tools.record_demo import END_MS, TARGET, Film, main

MAX_BYTES = 1_500_000


def durations(picture: Image.Image) -> list[int]:
    """The milliseconds that each frame stands."""
    found: list[int] = []
    for number in range(picture.n_frames):  # type: ignore[attr-defined]  # of animated formats
        picture.seek(number)
        picture.load()
        found.append(picture.info["duration"])
    return found


def plain(colour: str) -> Image.Image:
    return Image.new("RGB", (8, 8), colour)


def test_a_frame_that_looks_like_the_last_one_makes_it_stand_longer(tmp_path: Path) -> None:
    film = Film()
    for colour, duration_ms in (("red", 100), ("red", 50), ("blue", 3), ("red", 200)):
        film.add(plain(colour), duration_ms)
    film.write(tmp_path / "film.webp")
    with Image.open(tmp_path / "film.webp") as picture:
        assert durations(picture) == [150, 20, 200]
        assert picture.info["loop"] == 0


def test_the_picture_of_the_docs_is_small_and_pauses_before_it_begins_again() -> None:
    """About the width of a README; long enough to be followed."""
    assert TARGET.stat().st_size < MAX_BYTES
    with Image.open(TARGET) as picture:
        assert picture.width <= 1120
        assert picture.info["loop"] == 0
        shown = durations(picture)
    assert len(shown) > 40
    assert shown[-1] >= END_MS
    assert 10_000 < sum(shown) < 40_000


@pytest.mark.browser
@pytest.mark.timeout(120)
def test_the_demo_is_recorded_in_a_browser_and_a_terminal(
    tmp_path: Path, requires: Callable[[str], str]
) -> None:
    """With few frames: from the empty page to the file that the terminal's answer wrote."""
    requires("browser")
    requires("tmux")
    assert main(["--quick", "--to", str(tmp_path / "demo.webp")]) == 0
    with Image.open(tmp_path / "demo.webp") as picture:
        shown = durations(picture)
        picture.seek(0)
        first = picture.convert("RGB").tobytes()
        picture.seek(len(shown) - 1)
        assert picture.convert("RGB").tobytes() != first
    assert len(shown) > 5
    assert shown[-1] >= END_MS
